#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Which network interface is chosen where nobody says, and by PTL_IFACE, in a network namespace of its own each time.
# Usage: interfaces.sh PORTALS-INFO
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

info=$1
unset PTL_IFACE PTL_NAL
if ! why=$(unshare --net bash -ec 'ip link add eth7 type veth peer name other7; ip link add pod type bridge
	ip addr add 2001:db8::1/64 dev eth7 nodad' 2>&1); then
	echo "1..0 # SKIP no network namespaces with interfaces here: $why"
	exit 0
fi

# chosen COMMANDS: portals-info in a namespace that they have made says this nid
chosen() {
	unshare --net bash -euc "ip link set lo up
		$1
		'$info'" 2>&1
}
is() { # NID COMMANDS
	local said
	said=$(chosen "$2") || true
	echo "$said"
	grep -q "^  nid  *$1 " <<<"$said"
}
v6() { # COMMANDS: a nid made of an IPv6 address
	is '0xf[0-9a-f]*' "$1" && chosen "$1" | grep -q 'made of an address that is not IPv4'
}
card() { # NAME ADDRESS...
	local name=$1
	shift
	printf 'ip link add %s type veth peer name x%s; ip link set %s up; ip link set x%s up; ' "$name" "$name" "$name" "$name"
	printf "ip addr add %s dev $name nodad; " "$@"
}
bridge() { # NAME ADDRESS
	printf 'ip link add %s type bridge; ip link set %s up; ip addr add %s dev %s; ' "$1" "$1" "$2" "$1"
}

check 'nothing but the loopback interface' is 0x7f000001 true
check 'never docker0' is 0x0a010203 "$(card docker0 172.17.0.1/16) $(card eth7 10.1.2.3/24)"
check 'not even if there is no other' is 0x7f000001 "$(card docker0 172.17.0.1/16)"
check 'nor a bridge that comes first, whatever it is called' \
	is 0x0a010203 "$(bridge pod 10.88.0.1/16) $(card eth7 10.1.2.3/24)"
check 'a bridge where there is nothing better' is 0x0a580001 "$(bridge pod 10.88.0.1/16)"
check 'where the default route goes' \
	is 0x0a010203 "$(card eth6 10.9.9.9/24) $(card eth7 10.1.2.3/24) ip route add default via 10.1.2.1"
check 'where that of IPv6 goes, beside a bridge' v6 \
	"$(bridge podman0 10.88.0.1/16) $(card eth7 2001:db8:7::3/64) ip -6 route add default dev eth7"
check 'by the IPv4 address of that interface' is 0x0a010203 \
	"$(card eth6 10.9.9.9/24) $(card eth7 10.1.2.3/24 2001:db8:7::3/64) ip -6 route add default dev eth7"
check 'but not before another that has one' is 0x0a010005 \
	"$(card eth6 10.1.0.5/24) $(card eth7 2001:db8:7::3/64) ip -6 route add default dev eth7"
two="$(card eth6 10.9.9.9/24) $(card eth7 10.1.2.3/24 2001:db8:7::3/64)"
check 'PTL_IFACE: a name' is 0x0a010203 "$two export PTL_IFACE=eth7"
check 'PTL_IFACE: an address' is 0x0a010203 "$two export PTL_IFACE=10.1.2.3"
check 'PTL_IFACE: a network' is 0x0a010203 "$two export PTL_IFACE=10.1.0.0/16"
check 'PTL_IFACE: a network of IPv6' v6 "$two export PTL_IFACE=2001:db8::/32"
none() {
	chosen "$two export PTL_IFACE=$1" >"$dir/said" 2>&1 || true
	cat "$dir/said"
	grep -q "PTL_IFACE=$1: no interface has that name" "$dir/said"
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
check 'PTL_IFACE: nothing here' none 10.7.0.0/16
tap_done
