#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs a command under a kernel with RDMA devices, on a machine that has none: Debian's stock kernel in QEMU, with
# this machine's programs and files, and RoCE in software (rdma_rxe). Files that the guest writes
# are gone afterwards, but for the folders named with --share. See usage() below; prepare.sh fetches
# the kernel, init.sh and guest.sh are what runs in the guest.
set -eu -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
	cat <<-'END'
	usage: vm.sh [OPTION...] [--] COMMAND [ARG...]
	       vm.sh [OPTION...] --prepare

	Runs COMMAND as root in a virtual machine that sees this machine's files, in the same folder and
	with the same environment. Its output, of both kinds, goes to stdout; the exit status is its own.

	The guest has a network interface rdma0 (10.77.0.1) with the RDMA device rxe0, which talks to itself.

	  --hosts        two more, rdmaA (10.77.1.1) with rxeA and rdmaB (10.77.1.2) with rxeB, the ends of
	                 one cable: two hosts, as far as RDMA and sockets bound to an address are concerned;
	                 plugA and plugB are the cable's own ends, which can be set down and up
	  --siw          iWARP by siw, devices siw0, siwA, siwB, in place of RoCE; builds siw at first use
	  --share DIR    DIR can be written to from the guest; may be given several times
	  --cpus N       processors, 2 if not said
	  --memory MIB   2048 if not said
	  --memlock KIB  limit of locked memory, none if not said
	  --timeout S    seconds after which the guest is killed, 300 if not said
	  --cache DIR    where kernels are kept, ~/.cache/postern-vm if not said
	  --prepare      only fetch what is missing
	  --console      show what the guest's kernel said at the end
	  --help         this text

	Exit status besides COMMAND's: 124 after the time-out, 125 when the guest failed, 126 when it
	cannot be started here (the reason is the last line on stderr).
	END
}

# fail STATUS TEXT
fail() {
	echo "vm.sh: $2" >&2
	exit "$1"
}

cpus=2 memory=2048 memlock=unlimited limit=300 prepare=0 console=0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/postern-vm
hosts=0 driver=rxe
shares=()
while [ $# -gt 0 ]; do
	case $1 in
	--hosts) hosts=1 ;;
	--siw) driver=siw ;;
	--prepare) prepare=1 ;;
	--console) console=1 ;;
	--share | --cpus | --memory | --memlock | --timeout | --cache)
		[ $# -ge 2 ] || fail 126 "$1 needs a value"
		case $1 in
		--share) shares+=("$(readlink -e "$2")") || fail 126 "$2: no such folder" ;;
		--cpus) cpus=$2 ;;
		--memory) memory=$2 ;;
		--memlock) memlock=$2 ;;
		--timeout) limit=$2 ;;
		--cache) cache=$2 ;;
		esac
		shift
		;;
	-h | --help)
		usage
		exit 0
		;;
	--)
		shift
		break
		;;
	-*) fail 126 "no option $1; --help lists them" ;;
	*) break ;;
	esac
	shift
done
[ "$prepare" -eq 1 ] || [ $# -gt 0 ] || fail 126 'no command; --help says more'

# ---- what is needed ------------------------------------------------------------------------------

[ "$(uname -m)" = x86_64 ] || fail 126 'only made for x86-64'
for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static xz:xz-utils dpkg-deb:dpkg \
	rdma:iproute2 ibv_devinfo:ibverbs-utils; do
	command -v "${tool%:*}" >/dev/null || fail 126 "there is no ${tool%:*}: install ${tool#*:}"
done
kernel=$("$here/prepare.sh" "$cache" "$driver") || exit 126
[ "$prepare" -eq 0 ] || exit 0

# ---- one run -------------------------------------------------------------------------------------

run=$(mktemp -d "${TMPDIR:-/tmp}/postern-vm.XXXXXX")
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM HUP

cp "$here/guest.sh" "$run/guest.sh"
command=("$@")
folder=$PWD
declare -p command folder hosts driver memlock shares >"$run/settings"
declare -px >"$run/environment"

# folders of this machine in the guest, by a tag
disks=()
disk() { # TAG PATH [OPTION]
	disks+=(-fsdev "local,id=$1,path=$2,security_model=none,multidevs=remap${3:-}"
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}
disk root / ,readonly=on
disk run "$run"
for i in "${!shares[@]}"; do
	disk "share$i" "${shares[i]}"
done

# The kernel is told what keeps an emulated processor busy for nothing. An emulated one has to do: /dev/kvm in
# a container that is a guest itself may be slower.
words=(console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check
	cryptomgr.notests audit=0 apparmor=0 rcupdate.rcu_expedited=1
	"vm_driver=$driver")

start() {
	timeout --foreground -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot \
		-display none -machine q35,hpet=off,vmport=off -accel tcg,thread=multi,tb-size=512 \
		-cpu max,la57=off -smp "$cpus" -m "$memory" \
		-kernel "$kernel/vmlinux" -initrd "$kernel/initramfs.cpio" -append "${words[*]}" \
		-chardev "file,id=console,path=$run/console" -serial chardev:console \
		-device virtio-serial-pci -chardev file,id=out,path=/dev/stdout,append=on \
		-device virtserialport,nr=1,chardev=out,name=out "${disks[@]}" \
		</dev/null 2>"$run/qemu" | cat || status=$?
}
status=0
for attempt in 1 2 3 4 5; do
	rm -f "$run/again"
	start
	# guest.sh: its clock ran wrong
	[ -e "$run/again" ] || break
	echo "vm.sh: attempt $attempt: $(grep -a 's off after' "$run/console" | tr -d '\r')" >>"$run/qemu"
done

[ "$console" -eq 0 ] || cat "$run/console" >&2
if [ -s "$run/status" ]; then
	exit "$(cat "$run/status")"
fi
cat "$run/qemu" >&2
[ "$console" -eq 1 ] || tail -n 50 "$run/console" >&2 || true
case $status in
124 | 137) fail 124 "timed out after $limit s" ;;
esac
fail 125 "the guest ended before its command (QEMU: $status)"
