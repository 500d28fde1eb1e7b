#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The first process of a guest of vm.sh, in its initial file system: loads the modules, puts a file system in memory
# over the host's files, and goes on with guest.sh there.
export PATH=/bin
alias b=/bin/busybox

fail() {
	echo "vm: $*"
	b poweroff -f
}
b mount -t proc proc /proc
b mount -t sysfs sysfs /sys
b mount -t devtmpfs dev /dev
for word in $(b cat /proc/cmdline); do
	case $word in vm_driver=*) driver=${word#*=} ;; esac
done
while read -r module; do
	case $module in
	rdma_rxe.ko) [ "$driver" = rxe ] || continue ;;
	siw.ko) [ "$driver" = siw ] || continue ;;
	dummy.ko) module="$module numdummies=0" ;;
	esac
	# shellcheck disable=SC2086 # a file and maybe its parameter
	b insmod /modules/$module || fail "cannot load $module"
done </modules/order

nine=trans=virtio,version=9p2000.L,msize=512000
b mount -t 9p -o "$nine,ro,cache=loose" root /below || fail "no host's files"
b mount -t tmpfs -o size=75% tmpfs /above
b mkdir /above/files /above/scratch
b mount -t overlay -o lowerdir=/below,upperdir=/above/files,workdir=/above/scratch overlay /new ||
	fail 'no overlay'
b mkdir -p /new/proc /new/sys /new/dev /new/run
for folder in proc sys dev; do
	b mount -o move /$folder /new/$folder
done
# all symbols of the kernel: libfabric 1.17 reads them twice in each process, which takes an emulated processor seconds
b mount -o bind /new/dev/null /new/proc/kallsyms
b mount -t tmpfs -o mode=755 run /new/run
b mkdir /new/run/vm
b mount -t 9p -o "$nine,cache=none" run /new/run/vm || fail 'no folder of this run'
exec /bin/busybox switch_root -c /dev/console /new /bin/bash /run/vm/guest.sh
