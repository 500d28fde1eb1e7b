#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The verbs NAL, in a guest of vm.sh, and that over libfabric with libfabric's provider for verbs.
# Usage: verbs.sh conformance KEY-FILE PROGRAM...
#        verbs.sh memory KEY-FILE PROGRAM-FOR-REMAPPED-MEMORY PROGRAM-WITH-LONG-MESSAGES
#        verbs.sh mpi MPIEXEC FOLDER-OF-PROGRAMS KEY-FILE PROGRAM-THAT-CONNECTS
#        verbs.sh iwarp MPIEXEC FOLDER-OF-PROGRAMS
#        verbs.sh apart MPIEXEC FOLDER-OF-PROGRAMS
#        verbs.sh faults MPIEXEC FOLDER-OF-PROGRAMS KEY-FILE OUTAGE QP-ERROR
#        verbs.sh ofi MPIEXEC FOLDER-OF-PROGRAMS KEY-FILE PROGRAM-FOR-REMAPPED-MEMORY PROGRAM-WITH-LONG-MESSAGES PROGRAM...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

unset PMI_FD PMI_RANK PMI_SIZE "${!PTL_@}"
export PTL_NAL=verbs
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# COMMAND...: in a job or not, it ends well, with cases that passed and none that failed
passes() {
	local status=0
	timeout -k 5 "${limit:-100}" "$@" >"$dir/out" 2>&1 </dev/null || status=$?
	cat "$dir/out"
	echo "status $status"
	[ "$status" -eq 0 ] && grep -q '^ok ' "$dir/out" && ! grep -q '^not ok ' "$dir/out"
}

# Our mpiexec starts "each PROGRAM...": even ranks are on host A, odd ones on host B.
cat >"$dir/each" <<'END'
#!/bin/bash
if [ $((PMI_RANK % 2)) -eq 0 ]; then
	PTL_IFACE=rdmaA
else
	PTL_IFACE=rdmaB
fi
export PTL_IFACE
exec "$@"
END
chmod +x "$dir/each"

crossed() {
	cat /sys/class/net/rdmaA/statistics/rx_bytes
}

conformance() {
	export PTL_KEY_FILE=$1 PTL_IFACE=rdma0 CMOCKA_MESSAGE_OUTPUT=TAP
	shift
	for program in "$@"; do
		check "$(basename "$program" | sed 's/^test_//') over $PTL_NAL" passes "$program"
	done
}

# Root may lock any amount, so the right to do that is taken away.
limited() { # KIB COMMAND...
	(
		ulimit -l "$1"
		shift
		passes setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@"
	)
}
warned() { # KIB PROGRAM: and said what to do before a message came to that
	limited "$@" && grep -q 'only .* KiB of memory may be locked.*ulimit -l unlimited' "$dir/out"
}
refused() { # likewise, but did not work at all
	! limited "$@" && grep -q 'ulimit -l' "$dir/out"
}
silent() {
	limited "$@" && ! grep -q 'ulimit -l' "$dir/out"
}

memory() {
	export PTL_KEY_FILE=$1 PTL_IFACE=rdma0 CMOCKA_MESSAGE_OUTPUT=TAP
	check 'memory that is unmapped and mapped anew' passes "$2"
	check 'the same in two pairs, while long messages go between two others' together "$2" "$3"
	check 'long messages, where little memory may be locked: a warning, and they arrive' warned 2048 "$3"
	check 'where enough may be, no warning' silent 1000000 "$3"
}
# Three pairs of processes at the same time.
together() { # PROGRAM-FOR-REMAPPED-MEMORY PROGRAM-WITH-LONG-MESSAGES
	local others=() program other status=0
	for program in "$@"; do
		timeout -k 5 "${limit:-200}" "$program" >"$dir/${#others[@]}" 2>&1 </dev/null &
		others+=($!)
	done
	passes "$1" || status=$?
	for other in "${others[@]}"; do
		wait "$other" || status=$?
	done
	cat "$dir"/[01]
	return $status
}

packets() { # DEVICE
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}
by_device() { # DEVICE COMMAND...: that is what it goes by
	local before device=$1
	shift
	before=$(packets "$device")
	PTL_VERBS_DEVICE=$device passes "$@" && [ $(($(packets "${device%:*}") - before)) -gt 100 ]
}
no_device() { # NAME COMMAND...: it fails, and says why
	local name=$1
	shift
	! PTL_VERBS_DEVICE=$name passes "$@" && grep -q PTL_VERBS_DEVICE "$dir/out"
}
more_packets() { # COMMAND...: the longest packets of RoCE are cut to a quarter
	local before first
	before=$(packets rxeA)
	passes "$@" || return
	first=$(($(packets rxeA) - before))
	before=$(packets rxeA)
	PTL_VERBS_MTU=1024 passes "$@" || return
	echo "$first packets, then $(($(packets rxeA) - before))"
	[ $(($(packets rxeA) - before)) -gt $((first + first / 2)) ]
}

choice() { # MPIEXEC FOLDER-OF-PROGRAMS: of MPI programs
	local mpiexec=$1 at=$2 before
	export PTL_IFACE=rdma0
	check 'order, a device with itself' passes "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 2
	check 'modes' passes "$mpiexec" -n 3 "$at/p2p/mpi_p2p_modes"
	check 'collectives that move' passes "$mpiexec" -n 3 "$at/mpi_coll_move" 1 4
	check 'collectives that reduce' passes "$mpiexec" -n 3 "$at/mpi_coll_reduce" 1 4
	unset PTL_IFACE
	before=$(crossed)
	check 'order, two hosts' passes "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 2
	check 'what goes between them goes over their cable' [ $(($(crossed) - before)) -gt 100000 ]
	check 'four ranks on two hosts: shared memory on each' env "PTL_NAL=shm,$PTL_NAL" \
		bash -c "$(declare -f passes); dir=$dir; passes \"\$@\"" passes \
		"$mpiexec" -n 4 "$dir/each" "$at/mpi_coll_move" 1 2
}

# Whose call stands where calls cross is a matter of microseconds: many times.
meetings() { # MPIEXEC FOLDER-OF-PROGRAMS
	for within in 300 1000 3000 5000 10000 20000; do
		passes "$1" -n 4 "$2/p2p/mpi_p2p_meet" $within || return
		passes "$1" -n 3 "$2/p2p/mpi_p2p_meet" $within || return
	done
}

# Its means, and the memory of a connection.
reported() {
	PTL_REPORT=1 passes "$@" && grep -q 'verbs works by device rxe0, port 1' "$dir/out" &&
		awk '/bytes that each verbs connection takes/ { n++; bad += $2 > 16384 }
			END { exit !n || bad }' "$dir/out"
}

# Where its connections come from: that of the address, if it is not said.
comes_from() { # GID COMMAND...
	local gid=$1
	shift
	PTL_REPORT=1 passes "$@" && grep -q "verbs works by device rxe., port 1, GID $gid," "$dir/out"
}
not_from() { # GID COMMAND...: nobody answers where that is not an address of the network
	! PTL_VERBS_GID=$1 PTL_NET_DEAD_MS=2000 passes "${@:2}" && ! grep -q '^ok ' "$dir/out"
}

mpi() {
	local mpiexec=$1 at=$2
	choice "$@"
	PTL_IFACE=rdma0 check 'a report: the device, and no more than 16 KiB for a connection' \
		reported "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 1
	PTL_IFACE=rdma0 PTL_KEY_FILE=$3 CMOCKA_MESSAGE_OUTPUT=TAP \
		check 'a connection takes the memory that the report says' passes "$4"
	PTL_IFACE=rdma0 check 'all call each other at once' meetings "$@"
	for device in rxe0 rxeA; do
		check "order, with PTL_VERBS_DEVICE=$device" by_device $device "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 1
	done
	check 'order, with PTL_VERBS_DEVICE=rxe0:1' by_device rxe0:1 "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 1
	for device in none7 rxe0:2; do
		check "$device is not there" no_device $device "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 1
	done
	check 'order, with PTL_VERBS_MTU=1024: more packets' \
		more_packets "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
	check 'order, by the GID of the address' comes_from 1 "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
	PTL_VERBS_GID=1 check 'the same, with PTL_VERBS_GID=1' \
		comes_from 1 "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
	check 'the link-local one leads nowhere, with PTL_VERBS_GID=0' \
		not_from 0 "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
	for setting in PTL_PROGRESS=thread PTL_SPIN_US=0 PTL_VERBS_BUFFERS=32; do
		export "${setting?}"
		check "order, with $setting" passes "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
		unset "${setting%=*}"
	done
}

lose_some() {
	tc qdisc add dev rdmaA root netem loss 5%
	tc qdisc add dev rdmaB root netem loss 5%
}

# The provider reserves room in its queues for so many peers from the start, and soft RoCE's are small.
ofi() {
	local mpiexec=$1 at=$2
	shift 2
	export PTL_NAL='ofi:verbs;ofi_rxm' FI_UNIVERSE_SIZE=64
	limit=900
	conformance "$1" "${@:4}"
	check 'memory that is unmapped and mapped anew, and long messages meanwhile' together "$2" "$3"
	unset PTL_KEY_FILE
	PTL_IFACE=rdma0 check 'where little memory may be locked it says what to do' \
		refused 4096 "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 1
	PTL_IFACE=rdma0 check 'where some may be a warning, and messages arrive' \
		warned 49152 "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 1
	choice "$mpiexec" "$at"
	for setting in PTL_PROGRESS=thread PTL_SPIN_US=0 PTL_OFI_READ=off; do
		export "${setting?}"
		check "order, with $setting" passes "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
		unset "${setting%=*}"
	done
	lose_some
	check 'order, while 5 % of the packets are lost each way' \
		passes "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
}

iwarp() {
	local mpiexec=$1 at=$2
	export PTL_IFACE=rdma0
	check 'order over iWARP, a device with itself' passes "$mpiexec" -n 2 "$at/p2p/mpi_p2p_order" 1 2
	check 'collectives that reduce over iWARP' passes "$mpiexec" -n 3 "$at/mpi_coll_reduce" 1 4
	unset PTL_IFACE
	check 'order over iWARP, two hosts' passes "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 2
}

# Even ranks are in one subnet, odd ones in another: UDP leads from one to the other, verbs does not.
cat >"$dir/subnets" <<'END'
#!/bin/bash
if [ $((PMI_RANK % 2)) -eq 0 ]; then
	PTL_IFACE=rdmaA
else
	PTL_IFACE=rdma0
fi
export PTL_IFACE
exec "$@"
END
chmod +x "$dir/subnets"

falls() { # TRANSPORTS COMMAND...: both ranks take UDP, and say so at once and in the end
	PTL_NAL=$1 PTL_REPORT=1 passes "${@:2}" &&
		[ "$(grep -c 'verbs does not lead to .* udp is used for it' "$dir/out")" -eq 2 ] &&
		[ "$(grep -c '  verbs does not lead to .*: no answer' "$dir/out")" -eq 2 ] &&
		[ "$(grep -c 'peer nid .* by udp[^:]*: [1-9]' "$dir/out")" -eq 2 ] &&
		! grep -q 'peer nid .* by verbs' "$dir/out"
}
stays() { # COMMAND...: it fails
	! passes "$@" && ! grep -q 'does not lead to' "$dir/out"
}

unopened() { # COMMAND...: unasked it is not used, and the report says why
	PTL_NAL=auto PTL_VERBS_DEVICE=none7 PTL_REPORT=1 passes "$@" &&
		[ "$(grep -c '  verbs is not used: .*PTL_VERBS_DEVICE names' "$dir/out")" -eq 2 ]
}

apart() {
	local order=$2/p2p/mpi_p2p_order
	export PTL_NET_DEAD_MS=4000
	for nals in verbs,udp auto; do
		check "whom verbs does not lead to is reached by UDP, with PTL_NAL=$nals" \
			falls $nals "$1" -n 2 "$dir/subnets" "$order" 1 1
	done
	check 'but not if PTL_NAL names verbs alone' stays "$1" -n 2 "$dir/subnets" "$order" 1 1
	check 'where verbs cannot listen the report says why' unopened "$1" -n 2 "$dir/each" "$order" 1 1
}

# ---- faults --------------------------------------------------------------------------------------

# A cable that loses everything, or a plug that is pulled, so that the link is down. (An interface that is switched off would be
# another fault, but rxe does not survive it: its connection manager stays mute once one of its packets has found no route.)
pull() { # losses|link
	case $1 in
	losses) tc qdisc add dev rdmaA root netem loss 100% ;;
	link) ip link set plugA down ;;
	esac
}
plug() {
	case $1 in
	losses) tc qdisc del dev rdmaA root ;;
	link) ip link set plugA up ;;
	esac
}
carrier() {
	cat /sys/class/net/rdmaA/carrier
}
says() { # WORD: the job does, before it ends
	local deadline=$((SECONDS + 60))
	until grep -q "$1" "$dir/said"; do
		[ $SECONDS -lt $deadline ] || return 1
		kill -0 "$job" 2>/dev/null || return 1
	done
}
# Nothing passes, and then it does again, after so many seconds, or with "fails" when that was noticed.
outage() {
	local fault=$1 mpiexec=$2 program=$3 long=$4 status=0
	rm -f "$dir/over"
	timeout -k 5 150 "$mpiexec" -n 2 "$dir/each" "$program" "$dir/over" >"$dir/said" 2>&1 </dev/null &
	job=$!
	says talks || echo 'never talked'
	pull "$fault"
	[ "$fault" = losses ] || [ "$(carrier)" -eq 0 ] || {
		echo 'the link is not down'
		status=1
	}
	if [ "$long" = fails ]; then
		says fails || echo 'never failed'
	else
		sleep "$long"
	fi
	plug "$fault"
	: >"$dir/over"
	wait $job || status=$?
	cat "$dir/said"
	echo "status $status"
	[ "$status" -eq 0 ]
}
short_outage() {
	outage "$@" 1 && ! grep -q fails "$dir/said"
}
long_outage() {
	PTL_NET_DEAD_MS=4000 outage "$@" fails && [ "$(tail -n 1 "$dir/said")" = talks ]
}
dead_ranks() {
	PTL_IFACE=rdma0 PTL_NET_DEAD_MS=5000 passes "$here/../mpi/p2p/dead.sh" "$@"
}
waits_for() { # SECONDS COMMAND...: until it is true
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		sleep 0.05
		[ $SECONDS -lt $deadline ] || return 1
	done
}
# The one who serves is killed while it is being written to and read from, and another takes its place. (Who is killed
# between two operations is missed by neither.)
killed() {
	local program=$1 status=0 server
	export PTL_IFACE=rdma0 PTL_KEY_FILE=$2
	rm -f "$dir/over"
	: >"$dir/said"
	timeout -k 5 150 "$program" talk 4711 "$dir/over" >"$dir/said" 2>&1 </dev/null &
	job=$!
	for round in 1 2 3 4 5; do
		"$program" serve 4711 >"$dir/served" 2>&1 </dev/null &
		server=$!
		waits_for 30 grep -q hears "$dir/served" || {
			echo "round $round: it does not talk"
			status=1
		}
		[ "$round" -eq 5 ] || kill -9 $server
		[ "$round" -eq 5 ] || wait $server || true
	done
	: >"$dir/over"
	wait $job || status=$?
	wait $server || status=$?
	cat "$dir/said" "$dir/served"
	echo "status $status"
	unset PTL_IFACE PTL_KEY_FILE
	[ "$status" -eq 0 ] && grep -q fails "$dir/said"
}
said() { # WORD NUMBER: so many times at least
	[ "$(grep -c "$1" "$dir/said")" -ge "$2" ]
}
# Queue pairs fail while they talk, of one rank or the other, whether work is under way on them or not, then all that a device
# has. They talk again long before anything would be done about the silence, in 30 s. Between two operations nothing fails:
# once more.
failing_pairs() { # MPIEXEC PROGRAM QP-ERROR
	local mpiexec=$1 program=$2 status=0 rank round signal
	rm -f "$dir/over"
	# shellcheck disable=SC2016
	PTL_NET_DEAD_MS=120000 timeout -k 5 150 "$mpiexec" -n 2 "$dir/each" bash -c \
		'echo $$ >"$0/pid$PMI_RANK"; LD_PRELOAD=$1 exec "${@:2}"' \
		"$dir" "$3" "$program" "$dir/over" >"$dir/said" 2>&1 </dev/null &
	job=$!
	waits_for 20 said talks 1 || echo 'it does not talk'
	for round in 1 2 3 4 5 6 7 8 9 10; do
		rank=$((round % 2))
		signal=USR$((1 + (round > 8)))
		for _ in 1 2 3 4; do
			kill "-$signal" "$(cat "$dir/pid$rank")"
			waits_for 5 said fails $round && break
		done
		waits_for 20 said talks $((round + 1)) || break
	done
	: >"$dir/over"
	wait $job || status=$?
	cat "$dir/said"
	echo "status $status"
	[ "$status" -eq 0 ] && [ "$(grep -c talks "$dir/said")" -eq 11 ] &&
		[ "$(grep -c fails "$dir/said")" -eq 10 ] &&
		[ "$(grep -c 'queue pairs in error: 1 of [12]$' "$dir/said")" -ge 8 ]
}

faults() {
	local mpiexec=$1 at=$2 key=$3 outage=$4 qp_error=$5
	limit=200
	for fault in losses link; do
		check "an outage of a second is not noticed ($fault)" short_outage $fault "$mpiexec" "$outage"
		check "a long one makes operations fail, and they talk again when it is over ($fault)" \
			long_outage $fault "$mpiexec" "$outage"
	done
	check 'queue pairs that fail make operations fail, and they talk again at once' \
		failing_pairs "$mpiexec" "$outage" "$qp_error"
	check 'dead ranks' dead_ranks "$mpiexec" "$at/p2p/mpi_p2p_dead"
	check 'a process killed in the middle of long messages, and others in its place' \
		killed "$outage" "$key"
	lose_some
	check 'order, while 5 % of the packets are lost each way' \
		passes "$mpiexec" -n 2 "$dir/each" "$at/p2p/mpi_p2p_order" 1 1
	check 'collectives, while 5 % of the packets are lost each way' \
		passes "$mpiexec" -n 2 "$dir/each" "$at/mpi_coll_reduce" 1 1
}

case $1 in
conformance | memory | mpi | ofi | iwarp | apart | faults) "$@" ;;
*)
	echo "verbs.sh: no part $1" >&2
	exit 2
	;;
esac
tap_done
