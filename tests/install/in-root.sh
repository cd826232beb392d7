#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a Debian that is a stack of folders: it starts in /src, reads LOWERS and writes into UPPER only, or into memory,
# which is then lost, where UPPER is "-". Mounts and processes are in namespaces of their own and end with this process, however it ends:
# nothing has to be unmounted.
#   in-root.sh UPPER LOWER[:LOWER...] COMMAND [ARGUMENT...]      paths are relative to the working folder; the first LOWER is the topmost
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
  exec unshare --mount --pid --fork --kill-child -- "${BASH_SOURCE[0]}" --inside "$@"
fi
upper=$2 lowers=$3
shift 3

if [[ $upper == - ]]; then
  mkdir -p memory
  mount -t tmpfs tmpfs memory
  upper=memory/layer
fi
mkdir -p "$upper" "$upper.work" "$upper.root"
mount -t overlay overlay -o "lowerdir=$lowers,upperdir=$upper,workdir=$upper.work" "$upper.root"
cd "$upper.root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
# Not chroot, in which no user namespace can be made.
pivot_root . mnt
cd /
umount -l /mnt

# This shell stays, as the process to which orphans go.
cd /src
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" "$@"
