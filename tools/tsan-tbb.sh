#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds oneTBB with ThreadSanitizer from the source package of the installed libtbb, and prints the folder it was installed in.
# Needed because TSan reports about a hundred false races with a library that it did not instrument. Kept in the user's cache by
# version, so that it is built once (about 45 s). The system's package sources are read, never changed.
set -euo pipefail

version=$(dpkg-query -W -f '${Version}' libtbb-dev)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dg
prefix=$cache/tsan-tbb-$version-clang19
if [[ -e $prefix/.complete ]]; then
  echo "$prefix"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache" "$work"/{sources,lists/partial,cache/archives/partial}

# The binary sources of this machine, read as source entries, with a package index of our own.
shopt -s nullglob
for file in /etc/apt/sources.list.d/*.sources; do
  sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/${file##*/}"
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ ! -e $file ]] || sed -n 's/^deb /deb-src /p' "$file" >"$work/sources/${file##*/}"
done
cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
Acquire::Retries "3";
APT::Sandbox::User "";
CONF
export APT_CONFIG=$work/apt.conf

log=$work/log
if ! (
  cd "$work"
  timeout 300 apt-get -q update
  timeout 300 apt-get -q source "onetbb=$version"
) >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "tsan-tbb.sh: the source package onetbb $version cannot be had (see above)" >&2
  exit 1
fi
unset APT_CONFIG

sources=("$work"/onetbb-*/)
if ! {
  cmake -S "${sources[0]}" -B "$work/build" -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF \
    -DCMAKE_INSTALL_PREFIX="$prefix.new" -DCMAKE_INSTALL_LIBDIR=lib &&
    cmake --build "$work/build" && rm -rf "$prefix.new" && cmake --install "$work/build"
} >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "tsan-tbb.sh: oneTBB $version did not build with ThreadSanitizer (see above)" >&2
  exit 1
fi
rm -rf "$prefix"
mv "$prefix.new" "$prefix"
touch "$prefix/.complete"
echo "$prefix"
