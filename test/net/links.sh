#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# MPI programs on two hosts joined by a cable: of 100 Mbit/s, of 1 Gbit/s, one that loses a frame in
# a hundred, one with a queue of a few frames, and one of jumbo frames. They run over UDP and over
# Ethernet, started by Hydra and by our mpiexec.
# Usage: links.sh CABLE MPIEXEC NALS ORDER MODES MOVE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

cable=$1
mpiexec=$2
nals=$3
order=$4
modes=$5
move=$6
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE "${!PTL_@}"
export PTL_IFACE=eth0
export CABLED_REPORT=$dir/report

status=0
why=$("$here/cabled.sh" "$cable" '' true) || status=$?
if [ $status -eq 77 ]; then
	echo "1..0 # SKIP $why"
	exit 0
fi

passed() { # COMMAND...: no "not ok", and an "ok"
	local status=0
	timeout -k 5 150 "$@" >"$dir/out" 2>&1 </dev/null || status=$?
	cat "$dir/out" "$dir/report"
	[ "$status" -eq 0 ] && grep -q '^ok ' "$dir/out" && ! grep -q '^not ok ' "$dir/out"
}
ours() { # NAL CABLE-OPTIONS PROGRAM...
	local nal=$1 link=$2
	shift 2
	# shellcheck disable=SC2016 # where it runs
	PTL_NAL=$nal passed "$here/cabled.sh" "$cable" "$link" \
		sh -c 'm=$1; shift; exec "$m" -n 2 "$CABLED_EACH" 1 "$@"' sh "$mpiexec" "$@"
}
hydra() {
	local nal=$1 link=$2
	shift 2
	# shellcheck disable=SC2016 # where it runs
	PTL_NAL=$nal passed "$here/cabled.sh" "$cable" "$link" sh -c 'exec mpiexec.hydra -launcher ssh \
		-launcher-exec "$CABLED_LAUNCHER" -iface eth0 -hosts 10.78.0.1,10.78.0.2 -n 2 "$@"' sh "$@"
}
lossy() { # and the cable did lose frames
	"$@" && grep -Eq '[1-9][0-9]* lost by chance' "$dir/report"
}

for nal in ${nals//,/ }; do
	check "$nal at 100 Mbit/s: order" ours "$nal" '--rate 100e6' "$order" 1 3
	check "$nal at 1 Gbit/s: collectives" ours "$nal" '--rate 1e9' "$move" 1 4
	check "$nal with one frame in a hundred lost: order" lossy \
		ours "$nal" '--rate 1e9 --delay 200 --loss 0.01 --seed 3' "$order" 1 3
	check "$nal with one frame in a hundred lost: modes" lossy \
		ours "$nal" '--rate 1e9 --delay 200 --loss 0.01 --seed 4' "$modes"
	check "$nal with a queue of 10 frames: collectives" \
		ours "$nal" '--rate 1e9 --delay 200 --queue 15000' "$move" 1 4
	check "$nal with jumbo frames: modes" ours "$nal" '--rate 1e9 --mtu 9000' "$modes"
	if command -v mpiexec.hydra >/dev/null; then
		check "$nal at 100 Mbit/s under Hydra: modes" hydra "$nal" '--rate 100e6' "$modes"
		check "$nal with jumbo frames and losses under Hydra: order" lossy \
			hydra "$nal" '--rate 1e9 --mtu 9000 --loss 0.01' "$order" 1 3
	else
		tap_skip "$nal under Hydra" 'mpiexec.hydra is not installed'
	fi
done
tap_done
