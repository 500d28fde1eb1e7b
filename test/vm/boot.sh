#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The virtual machine itself: what the other tests in this folder need of it. Usage: boot.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
vm=$here/vm.sh

if ! why=$("$vm" --prepare 2>&1); then
	echo "1..0 # SKIP $(tail -n 1 <<<"$why")"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/shared" "$dir/own"

# The tasks of one guest, for starting one takes long; a case checks one of the answers.
cat >"$dir/guest" <<'END'
cd "$1"
ulimit -l >shared/memlock
echo lost >own/file && cat own/file >shared/own
ibv_devinfo >shared/devices
talk() { # NAME SERVER-DEVICE SERVER-ADDRESS CLIENT-DEVICE
	ib_send_lat -d "$2" -x 1 -n 200 >/dev/null 2>&1 &
	server=$!
	deadline=$((SECONDS + 60))
	until [ -n "$(ss -Hltn 'sport = 18515')" ]; do
		[ $SECONDS -lt $deadline ] || break
	done
	timeout 60 ib_send_lat -d "$4" -x 1 -n 200 "$3" >"shared/$1" 2>&1
	echo $? >>"shared/$1"
	wait $server
}
talk alone rxe0 10.77.0.1 rxe0
talk cable rxeA 10.77.1.1 rxeB
crossed() {
	cat /sys/class/net/rdmaA/statistics/rx_packets
}
before=$(crossed)
tc qdisc add dev rdmaB root netem loss 5%
talk lossy rxeA 10.77.1.1 rxeB
echo $(($(crossed) - before)) >shared/crossed
tc -s qdisc show dev rdmaB | sed -n 's/.*dropped \([0-9]*\).*/\1/p' >shared/dropped
exit 7
END
status=0
"$vm" --hosts --memlock 64 --share "$dir/shared" --timeout 280 bash "$dir/guest" "$dir" >"$dir/out" 2>&1 ||
	status=$?

came_back() {
	cat "$dir/out"
	[ "$status" -eq 7 ]
}
file_has() { # FILE PATTERN
	cat "$dir/shared/$1"
	grep -Eq "$2" "$dir/shared/$1"
}
at_least() { # FILE NUMBER
	cat "$dir/shared/$1"
	[ "$(cat "$dir/shared/$1")" -ge "$2" ]
}
nothing_stays() {
	file_has own lost && [ ! -e "$dir/own/file" ]
}
lasts() {
	local s=0
	"$vm" --timeout 3 sleep 60 || s=$?
	[ "$s" -eq 124 ]
}

check 'the exit status of a command in a guest comes back' came_back
check 'the limit of locked memory is the one asked for' file_has memlock '^64$'
check 'what a guest writes is gone afterwards, but for shared folders' nothing_stays
for device in rxe0 rxeA rxeB; do
	check "there is an RDMA device $device" file_has devices "hca_id:.*$device\$"
done
check 'ib_send_lat from a device to itself' file_has alone '^0$'
check 'ib_send_lat between two hosts' file_has cable '^0$'
check 'ib_send_lat where 5 % of the packets are lost' file_has lossy '^0$'
check 'what goes between two hosts goes over their cable' at_least crossed 200
check 'and is lost there' at_least dropped 1
check 'a guest that takes too long is ended' lasts
tap_done
