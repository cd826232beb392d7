#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs quickstart.sh and check.sh on machines that are not ours: a Debian 12 with nothing in it, made with debootstrap in a folder.
# The mirror and the settings of apt are this machine's, read when it runs.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
aim_s=480

usage() {
  cat <<TEXT
usage: tests/install/run.sh [OPTION...] [SCENARIO...]      (default: quickstart matrix)
       tests/install/run.sh [OPTION...] -- COMMAND...      a command in an empty Debian 12, in the folder of the checkout
scenarios
  quickstart   an empty Debian 12 runs tools/quickstart.sh to its end; prints the seconds of this cold run (aim: $aim_s on 2 cores)
  check        tools/check.sh --fast, on the machine that quickstart left if that ran before, else on an empty one
  matrix       quickstart configures with each package of the group test alone, and with all of them but one
options
  --commit C   the commit that is copied in (default: HEAD; what is not committed is not in it)
  --work F     the folder for the roots, about 15 GB (default: build/install); emptied before and after
  --keep       leaves that folder behind
  --probe      only says whether all this can run here: exit code 0, or 77 and the reason
TEXT
}

commit=HEAD work=$tree/build/install keep='' probe='' scenarios=() command=()
while [[ $# -gt 0 ]]; do
  case $1 in
  --commit) commit=${2:?"run.sh: --commit needs a commit"} && shift ;;
  --work) work=$(realpath -m "${2:?"run.sh: --work needs a folder"}") && shift ;;
  --keep) keep=1 ;;
  --probe) probe=1 ;;
  quickstart | check | matrix) scenarios+=("$1") ;;
  -h | --help) usage && exit 0 ;;
  --) shift && command=("$@") && break ;;
  *)
    echo "run.sh: unknown argument '$1', expected one of the following" >&2
    usage >&2
    exit 2
    ;;
  esac
  shift
done
[[ ${#scenarios[@]} -gt 0 || ${#command[@]} -gt 0 ]] || scenarios=(quickstart matrix)

# Once: HEAD may move while this runs.
if ! commit=$(git -C "$tree" rev-parse --verify "$commit^{commit}"); then exit 2; fi

child=
finish() {
  # The child of unshare is the first process of its namespaces: all others are gone when unshare has seen it end.
  if [[ -n $child ]]; then
    pkill -KILL -P "$child" || kill -KILL "$child"
    wait "$child"
  fi 2>/dev/null
  [[ -n $keep || -n $probe ]] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs a command such that a signal to this script takes effect at once.
interruptible() {
  "$@" </dev/null &
  child=$!
  wait "$child"
  local status=$?
  child=
  return "$status"
}

inside() { interruptible "$here/in-root.sh" "$@"; }

# The sources of Debian 12 that this machine uses: URI, suite, component.
debian_sources() {
  # shellcheck disable=SC2016 # the fields are apt's
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $3 ~ /^bookworm/ { print $2, $3, $4 }' | sort -u
}

# Why nothing of this can run here; empty if it can.
obstacle() {
  if [[ $EUID -ne 0 ]]; then
    echo "needs root"
  elif ! command -v debootstrap >/dev/null; then
    echo "debootstrap is missing (tools/install.sh full)"
  elif [[ -z $(debian_sources | awk '$2 == "bookworm"') ]]; then
    echo "apt knows no source of Debian 12 here (or apt-get update never ran)"
  elif ! mkdir -p "$work/probe/"{lower,upper,work,root} || ! unshare --mount --pid --fork --kill-child -- mount -t overlay overlay \
    -o "lowerdir=$work/probe/lower,upperdir=$work/probe/upper,workdir=$work/probe/work" "$work/probe/root" 2>/dev/null; then
    echo "namespaces or overlayfs are forbidden in $work (--work names another folder)"
  fi
  rm -rf "$work/probe"
}

reason=$(obstacle)
if [[ -n $reason ]]; then
  echo "$reason"
  exit 77
fi
[[ -z $probe ]] || exit 0

# make_debian: an empty Debian 12 in base, which fetches packages as this machine does.
make_debian() {
  local mirror include=()
  mirror=$(debian_sources | awk '$2 == "bookworm" { print $1; exit }')
  [[ $(debian_sources) != *https:* ]] || include=(--include=ca-certificates)
  interruptible unshare --mount --pid --mount-proc --fork --kill-child -- \
    debootstrap --variant=minbase "${include[@]}" bookworm base "$mirror" >base.log 2>&1 || {
    tail -n 10 base.log >&2
    return 1
  }
  debian_sources | sed 's/^/deb /' >base/etc/apt/sources.list
  apt-config dump | grep '^Acquire::.* "..*";$' >base/etc/apt/apt.conf.d/90this-machine
  cp /etc/resolv.conf /etc/hosts base/etc/
  # As in every container image: a package that brings a daemon does not start it.
  printf '#!/bin/sh\nexit 101\n' >base/usr/sbin/policy-rc.d
  chmod +x base/usr/sbin/policy-rc.d
}

copy_source() {
  mkdir -p source/src
  git -C "$tree" archive "$commit" | tar -x -C source/src
}

passed=0 failed=0
# row NAME LOWERS COMMAND...: runs it quietly in a root that is forgotten afterwards, and counts it; shows the end of what failed.
row() {
  local name=$1 started=$SECONDS
  shift
  if inside - "$@" >row.log 2>&1; then
    printf '%6d s  ok      %s\n' $((SECONDS - started)) "$name"
    passed=$((passed + 1))
  else
    printf '%6d s  FAILED  %s\n' $((SECONDS - started)) "$name"
    tail -n 15 row.log | sed 's/^/    /'
    failed=$((failed + 1))
  fi
}

below=source:base
quickstart() {
  local started=$SECONDS
  if inside quickstart "$below" tools/quickstart.sh; then
    echo "cold quickstart: $((SECONDS - started)) s on $(nproc) cores, packages included (aim: $aim_s s on 2)"
    passed=$((passed + 1))
  else
    echo "quickstart FAILED on an empty Debian 12 after $((SECONDS - started)) s"
    failed=$((failed + 1))
  fi
}

check() {
  local lowers=$below
  [[ ! -d quickstart ]] || lowers=quickstart:$below
  if inside check "$lowers" tools/check.sh --fast; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  rm -rf check check.*
}

# Every state is one into which apt brings a machine: where a package cannot go alone, what needs it goes with it.
matrix() {
  local packages package apt='apt-get -qq -y -o Dpkg::Use-Pty=0'
  local configure='rm -rf build && tools/quickstart.sh --configure-only' is_there="dpkg-query -W -f '\${db:Status-Abbrev}' \$1 2>/dev/null | grep -q ^ii"
  mapfile -t packages < <("$tree/tools/install.sh" --list test)
  # The packages are fetched once, into the layer on which all rows stand. Nobody needs these layers after a power cut.
  if ! inside build "$below" sh -ec "echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/no-fsync && tools/install.sh build && $apt install --no-install-recommends --download-only ${packages[*]}" >row.log 2>&1 ||
    ! inside all "build:$below" sh -ec "$apt install --no-install-recommends ${packages[*]}" >row.log 2>&1; then
    tail -n 15 row.log
    echo "matrix FAILED: apt could not install the groups build and test"
    failed=$((failed + 1))
    return
  fi
  row "none of the group test" "build:$below" sh -ec "$configure"
  row "all of the group test" "all:build:$below" sh -ec "$configure"
  for package in "${packages[@]}"; do
    row "$package alone" "build:$below" sh -ec "$apt install --no-install-recommends \$1; $is_there; $configure" sh "$package"
    row "all but $package" "all:build:$below" sh -ec "$apt remove \$1; if $is_there; then exit 1; fi; $configure" sh "$package"
  done
  rm -rf build build.* all all.*
}

rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
if ! make_debian || ! copy_source; then
  echo "run.sh: no Debian 12 could be made; see above" >&2
  exit 1
fi
if [[ ${#command[@]} -gt 0 ]]; then
  inside own "$below" "${command[@]}"
  exit
fi
for scenario in "${scenarios[@]}"; do
  echo "== $scenario: $(git -C "$tree" log -1 --format='%h %s' "$commit")"
  "$scenario"
done
echo "clean roots: $passed passed, $failed failed"
[[ $failed -eq 0 ]]
