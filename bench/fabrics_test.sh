#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# fabric and verbs_compare measure ours and the bare fabric in turns, say which targets are met of the best of all turns,
# and their exit status tells that from what could not be measured. The programs they run are stubs
# that print figures.
# Usage: fabrics_test.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../test/tap.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
build=$dir/build

# stub PATH: a command made of what is on stdin
stub() {
	mkdir -p "$(dirname "$1")"
	(echo '#!/bin/bash' && cat) >"$1"
	chmod +x "$1"
}
# The figures of ours are in "$dir/ours", those of the bare fabric in "$dir/bare": the next line. None left: it failed.
cat >"$dir/next" <<'END'
value=$(head -n 1 "$1")
sed -i 1d "$1"
[ -n "$value" ] || exit 1
END
stub "$build/bench/fabprobe/fabprobe" </dev/null
stub "$build/tools/mpiexec/mpiexec" <<END
. "$dir/next" "$dir/ours"
echo "\$value"
END
stub "$dir/bin/taskset" <<'END'
shift 2
exec "$@"
END
stub "$dir/bin/ip" <<'END'
echo '2: rdma0 inet 10.77.0.1/24 scope global rdma0'
END
stub "$dir/bin/ss" <<'END'
echo 'LISTEN 0 1 0.0.0.0:18515 0.0.0.0:*'
END
# Only clients are told an address, and print.
stub "$dir/bin/fi_pingpong" <<END
[[ \$* = *127.0.0.1 ]] || exit 0
. "$dir/next" "$dir/bare"
printf 'bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec\n64 4k =4k 500k 0.02s 1 %s 1\n' "\$value"
END
for tool in ib_send_lat ib_write_bw; do
	stub "$dir/bin/$tool" <<-END
		[[ \$* = *10.77.0.1 ]] || exit 0
		. "$dir/next" "$dir/bare"
		echo "8 2000 1 \$value \$value"
	END
done
export PATH=$dir/bin:$PATH

figures() { # OURS BARE
	tr " " "\n" <<<"$1" >"$dir/ours"
	tr " " "\n" <<<"$2" >"$dir/bare"
}
# The output of a command that must end with this status.
says() { # STATUS PATTERNS COMMAND...
	local want=$1 patterns=$2 pattern status=0
	shift 2
	"$@" >"$dir/said" 2>"$dir/errors" || status=$?
	cat "$dir/said" "$dir/errors"
	echo "status $status"
	[ $status -eq "$want" ] || return 1
	while read -r pattern; do
		grep -q -e "$pattern" "$dir/said" || return 1
	done <<<"$patterns"
}
fabric() { # STATUS PATTERNS
	ROUNDS=2 SIZES='64 4096' says "$@" "$here/fabric" "$build" shm
}
verbs() { # STATUS PATTERNS
	says "$@" "$here/verbs_compare" --prefix "$build" --turns 2 --sizes 8 --bytes 65536 --counted ''
}

# 64 bytes, 4096 bytes, and so again
fabric_met() {
	figures '0.54 1.0 0.70 1.1' '0.60 1.2 0.50 1.0'
	fabric 0 '^shm *64 bytes, us: fi_pingpong *0.54 *0.50 *1.08 *at most 1.10  met$
		^shm *4096 bytes, us: fi_pingpong *1.00 *1.00 *1.00 *at most 1.10  met$'
}
fabric_missed() {
	figures '0.55 1.2 0.70 1.3' '0.50 1.2 0.60 1.0'
	fabric 2 '^shm *64 bytes.* met$
		^shm *4096 bytes, us: fi_pingpong *1.20 *1.00 *1.20 *at most 1.10  MISSED$'
}
fabric_failed() {
	figures '0.55 1.2 0.70' '0.50 1.2'
	fabric 1 '^shm *64 bytes.* 0.55 *0.50 .* met$
		^shm *4096 bytes.* 1.20 *1.20 .* met$
		^3 measurements failed$'
}
# 8 bytes twice, and 64 KiB twice: of rates the highest, in Gbit/s of the bare device
verbs_met() {
	figures '12.9 14 0.091 0.08' '10.5 10 0.72 0.8'
	verbs 0 '^rxe0 *8 bytes, us: ib_send_lat *12.90 *10.00 *1.29 *at most 1.30  met$
		^rxe0 *65536 bytes, GB/s: ib_write_bw *0.091 *0.100 *0.91 *at least 0.90  met$'
}
verbs_missed() {
	figures '13.2 14 0.089 0.08' '10.5 10 0.72 0.8'
	verbs 2 '^rxe0 *8 bytes.* 1.32 .* MISSED$
		^rxe0 *65536 bytes.* 0.89 .* MISSED$'
}
verbs_failed() {
	figures '13 14 0.09 0.1' '10.5 10 0.8'
	verbs 1 '^rxe0 *8 bytes.* met$
		^rxe0 *65536 bytes.* met$
		^1 measurements failed$'
}

check "fabric: where the best of all rounds meets the target it says so" fabric_met
check "fabric: a target that is missed is named, and the exit status is 2" fabric_missed
check "fabric: what could not be measured makes the exit status 1" fabric_failed
check "verbs_compare: where the best of all turns meets the target it says so" verbs_met
check "verbs_compare: a target that is missed is named, and the exit status is 2" verbs_missed
check "verbs_compare: what could not be measured makes the exit status 1" verbs_failed
tap_done
