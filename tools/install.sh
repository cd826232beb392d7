#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing of the package groups in tools/packages. Does nothing, quickly, when all is there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  echo "usage: tools/install.sh [--list] [build|test|full|bench]...   (default: build)"
  echo "  --list   prints the Debian packages of the groups, one a line, and installs nothing"
}

# Prints the entries of one group of tools/packages.
entries() {
  awk -v group="[$1]" '/^#/ || NF == 0 { next } /^\[/ { inside = ($1 == group); next } inside { print $1 }' "$root/tools/packages"
}

list=
if [[ ${1:-} == --list ]]; then
  list=1
  shift
fi
[[ $# -gt 0 ]] || set -- build
packages=() pips=()
for group in "$@"; do
  case $group in
  build | test | full | bench) ;;
  -h | --help)
    usage
    exit 0
    ;;
  *)
    echo "install.sh: unknown group '$group', expected build, test, full or bench" >&2
    usage >&2
    exit 2
    ;;
  esac
  while read -r entry; do
    if [[ $entry == pip:* ]]; then pips+=("${entry#pip:}"); else packages+=("$entry"); fi
  done < <(entries "$group")
done

if [[ -n $list ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install.sh: this is not Debian (no apt-get). Install what these packages hold: ${packages[*]} ${pips[*]}" >&2
  exit 1
fi

# One dpkg-query for all: it exits with 1 when a package is unknown, which is the answer and not an error.
declare -A installed=()
while read -r status name; do
  [[ $status == ii ]] && installed[$name]=1
done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  [[ -n ${installed[$package]:-} ]] || missing+=("$package")
done

if [[ ${#missing[@]} -gt 0 ]]; then
  as_root=()
  if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "install.sh: these packages are missing and neither root nor sudo is available; install them and run again:" >&2
      echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "installing ${#missing[@]} packages: ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { "${as_root[@]}" update && "${as_root[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "install.sh: apt-get failed (its last lines are above) while installing: ${missing[*]}" >&2
    exit 1
  fi
fi

if [[ ${#pips[@]} -gt 0 ]]; then
  venv=$root/build/venv
  if [[ "$(cat "$venv/.installed" 2>/dev/null)" != "${pips[*]}" ]]; then
    echo "installing into build/venv: ${pips[*]}"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${pips[@]}"
    echo "${pips[*]}" >"$venv/.installed"
  fi
fi
