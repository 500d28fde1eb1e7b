#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs a test of the harness over Ethernet: in a network namespace of its own with a veth pair, its ranks in turn on
# the two ends, which have no IP; or all of them on the loopback interface; or on one end, with an address, from where
# they get to each other by the loopback interface; or the pair is a cable of a rate and with losses, by that program.
# All that is made here goes with the namespace.
# Usage: wire.sh MTU|lo|host|"CABLE CABLE-OPTION..." PROGRAM [ARG...]
set -eu

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}
if [ -z "${POSTERN_ON_WIRE-}" ]; then
	command -v ip >/dev/null || skip_all 'ip(8) is not installed'
	unshare -rn true 2>/dev/null || skip_all 'network namespaces are not allowed here'
	exec env POSTERN_ON_WIRE=1 unshare -rn --kill-child "$0" "$@"
fi

how=$1
up=UP
shift
case $how in
lo)
	mtu=1500
	interfaces=lo
	;;
host)
	mtu=1500
	interfaces=wire0
	;;
*cable*)
	mtu=
	up='(UP|UNKNOWN)' # a TAP device has no more to say
	interfaces=wire0,wire1
	;;
*)
	mtu=$how
	interfaces=wire0,wire1
	;;
esac
ip link set lo up
# IP frames that a test sends by itself on the loopback interface are to arrive as well
for switch in accept_local route_localnet; do
	echo 1 >"/proc/sys/net/ipv4/conf/lo/$switch" 2>/dev/null || true
done
if [ -n "$mtu" ]; then
	why=$(ip link add wire0 mtu "$mtu" type veth peer name wire1 mtu "$mtu" 2>&1) ||
		skip_all "virtual links are not allowed here: $why"
else
	[ -w /dev/net/tun ] || skip_all '/dev/net/tun cannot be opened'
	# ends with what this process becomes
	read -ra cable <<<"$how"
	"${cable[@]}" --name wire0,wire1 $$ $$ 2>/dev/null &
	deadline=$((SECONDS + 10))
	until ip link show wire1 >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || skip_all 'the cable does not come up'
	done
fi
for end in wire0 wire1; do
	echo 1 >"/proc/sys/net/ipv6/conf/$end/disable_ipv6" 2>/dev/null || true
	ip link set "$end" up
done
deadline=$((SECONDS + 10))
until [ "$(ip link show up | grep -Ec "wire.*state $up")" -eq 2 ]; do
	[ $SECONDS -lt $deadline ] || skip_all 'the virtual links do not come up'
done
[ "$how" != host ] || ip addr add 10.79.0.1/24 dev wire0
program=$1
shift
exec "$program" --interfaces "$interfaces" "$@"
