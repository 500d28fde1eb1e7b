#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs in a guest of vm.sh, as its first process: makes the network and its RDMA devices, then runs the command.
# Starting a program takes long on an emulated processor, hence one call of ip(8) for many things.

# shellcheck disable=SC2154 # set by the file that vm.sh writes
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# shellcheck source=/dev/null
. /run/vm/settings

off() { # STATUS, empty: failed
	[ -z "$1" ] || echo "$1" >/run/vm/status
	exec /bin/busybox poweroff -f
}
fail() {
	echo "vm: $*" >/dev/console
	off ''
}

mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
ln -sf /proc/self/fd /dev/fd
for i in 0:stdin 1:stdout 2:stderr; do
	ln -sf "fd/${i%:*}" "/dev/${i#*:}"
done
for i in "${!shares[@]}"; do
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap "share$i" "${shares[i]}" ||
		fail "cannot share ${shares[i]}"
done
echo guest >/proc/sys/kernel/hostname
echo '10.77.0.1 guest' >>/etc/hosts

# ---- the network ---------------------------------------------------------------------------------

# addresses are of use at once
for i in all default; do
	echo 0 >"/proc/sys/net/ipv6/conf/$i/accept_dad"
done
# a long RDMA read is a burst of more packets than the default lets wait
echo 100000 >/proc/sys/net/core/netdev_max_backlog

ip -batch - <<'END' || fail 'no network'
link set lo up
link add rdma0 type dummy
link set rdma0 mtu 4200 up
addr add 10.77.0.1/24 dev rdma0
END
netdevs=(0)
if [ "$hosts" -eq 1 ]; then
	# The cable is a bridge, so that an end can lose its carrier as by a plug that is pulled, and stay up otherwise.
	# RoCE in software works in the first network namespace only, and there what is for a local address does not
	# go over a cable. So the local addresses are looked up last, after rules that send what is from
	# one end for the other out of its end.
	ip -batch - <<'END' || fail 'no network of two hosts'
link add cable mtu 4200 type bridge mcast_snooping 0
link add rdmaA mtu 4200 type veth peer name plugA mtu 4200
link add rdmaB mtu 4200 type veth peer name plugB mtu 4200
link set plugA master cable up
link set plugB master cable up
link set cable up
link set rdmaA up
link set rdmaB up
addr add 10.77.1.1/24 dev rdmaA
addr add 10.77.1.2/24 dev rdmaB
route add 10.77.1.2 dev rdmaA src 10.77.1.1 table 71
route add 10.77.1.1 dev rdmaB src 10.77.1.2 table 72
rule add pref 10 iif rdmaA lookup local
rule add pref 11 iif rdmaB lookup local
rule add pref 20 to 10.77.1.2 oif rdmaA lookup 71
rule add pref 21 to 10.77.1.2 from 10.77.1.1 lookup 71
rule add pref 22 to 10.77.1.1 oif rdmaB lookup 72
rule add pref 23 to 10.77.1.1 from 10.77.1.2 lookup 72
rule add pref 30 lookup local
rule del pref 0
END
	for i in rdmaA rdmaB; do
		echo 1 >"/proc/sys/net/ipv4/conf/$i/accept_local"
		echo 1 >"/proc/sys/net/ipv4/conf/$i/arp_ignore"
		echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter"
	done
	netdevs+=(A B)
fi
for i in "${netdevs[@]}"; do
	echo "link add $driver$i type $driver netdev rdma$i"
done >/run/links
rdma -b /run/links || fail 'no RDMA devices'

# The kernel finds out how fast its clock runs when it starts; where the host is busy then, it may be wrong by a factor,
# and every time limit below with it. The clock of the mainboard is the host's.
drift=$(($(date +%s) - $(cat /sys/class/rtc/rtc0/since_epoch)))
if [ "${drift#-}" -gt 3 ]; then
	echo "vm: $drift s off after $(cut -d ' ' -f 1 /proc/uptime) s" >/dev/console
	: >/run/vm/again
	off ''
fi

# ---- the command ---------------------------------------------------------------------------------

ulimit -c 0
ulimit -l "$memlock"
cd "$folder" || fail "no folder $folder"
# a pipe, for the port itself can be opened only once
mkfifo /run/out
cat </run/out >/dev/vport0p1 &
copier=$!
(
	# shellcheck source=/dev/null
	. /run/vm/environment
	exec "${command[@]}"
) </dev/null >/run/out 2>&1
status=$?
# what the command left behind may hold the pipe
(
	sleep 5
	kill $copier
) 2>/dev/null &
wait $copier
off $status
