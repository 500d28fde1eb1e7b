#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs that hang, and what is said of them; and jobs that only look like it, of which nothing may be said. Many run at
# the same time, since they do nothing but wait.
#
# Usage: hangs.sh MPIEXEC PORTALS_STAT PROGRAM SOURCE NALS
set -eu
# shellcheck source=test/tap.sh
. "$(cd "$(dirname "$0")/../.." && pwd)/tap.sh"

mpiexec=$1
stat=$2
program=$3
source=$4
nals=" $5 "
unset PMI_FD PMI_RANK PMI_SIZE MPIEXEC_TIMEOUT
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# start NAME ARGS...: mpiexec in the background; leaves $dir/NAME.out, .err, .status
start() {
	local name=$1
	shift
	(
		rc=0
		timeout -k 5 120 "$mpiexec" "$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null || rc=$?
		echo $rc >"$dir/$name.status"
	) &
}
# The place of the call behind which the word stands in a comment.
at() {
	echo "($(basename "$source"):$(grep -n "/\* $1 \*/" "$source" | cut -d: -f1))"
}
# until_true COMMAND...: within a minute
until_true() {
	local end=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
# ends NAME STATUS TEXT...: the job ended so, and a line of what mpiexec said has each of the texts.
ends() {
	local name=$1 status=$2 text
	shift 2
	echo "status $(cat "$dir/$name.status"), not $status; of $name:"
	cat "$dir/$name.err"
	[ "$(cat "$dir/$name.status")" = "$status" ] || return 1
	for text; do
		grep -qF -- "$text" "$dir/$name.err" || {
			echo "lacks: $text"
			return 1
		}
	done
}
# quiet NAME: the job ended well, and nothing was said.
quiet() {
	ends "$1" 0 || return 1
	[ ! -s "$dir/$1.err" ]
}

# ---- everything at once ------------------------------------------------------------------------

# Whether lines can be known here is for the report to say: without libdw there are none.
lines=yes
ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
"$ldconfig" -p 2>/dev/null | grep -q 'libdw\.so\.1' || lines=
soon=(--deadlock 1 --deadlock-abort)

for way in recv ssend send tag comm waitall waitany probe lock complete threads; do
	start "$way" "${soon[@]}" -n 2 "$program" $way
done
start recv3 "${soon[@]}" -n 3 "$program" recv
start collective "${soon[@]}" -n 3 "$program" collective
# shellcheck disable=SC2016 # the ranks' shells expand
start script "${soon[@]}" -n 2 sh -c '"$0" recv; true' "$program"
if [[ $nals == *' udp '* ]]; then
	for way in tag lock; do
		PTL_NAL=udp start "udp_$way" "${soon[@]}" -n 2 "$program" $way
	done
	PTL_NAL=udp start udp_collective "${soon[@]}" -n 3 "$program" collective
fi
start once --deadlock 0.5 --timeout 10 -n 2 "$program" recv
wait
for way in computing sleeping slow polls thread; do
	start "$way" "${soon[@]}" -n 2 "$program" $way 3
done

if [[ $nals == *' sim '* ]]; then
	PTL_NAL=sim PTL_SIM=rate=2 start transfer "${soon[@]}" -n 2 "$program" transfer
fi

# deadlock NAME TEXT...: ended by mpiexec after a report with these texts; without lines only ended
deadlock() {
	local name=$1
	shift
	[ -n "$lines" ] || set --
	ends "$name" 250 'all ranks wait, and none has made progress for 1 s' 'ending the job' "$@"
}
# both CALL WORD: of two ranks in the same call
both() {
	local there
	there=$(at "$2")
	echo "deadlock: rank 0 ${1//PEER/1} $there, rank 1 ${1//PEER/0} $there"
}

check 'two receives' deadlock recv "$(both 'MPI_Recv from PEER tag 5' recv)" \
	"MPI_Recv from 1 tag 5 $(at recv), at most 4 bytes, for " "in one place: ranks 0, 1 in MPI_Recv $(at recv)" \
	'waits for: 0 -> 1 -> 0'
check 'three receives in a ring' deadlock recv3 "deadlock: rank 0 MPI_Recv from 1 tag 5 $(at recv), rank 1 MPI_Recv \
from 2 tag 5 $(at recv), rank 2 MPI_Recv from 0 tag 5 $(at recv)" 'waits for: 0 -> 1 -> 2 -> 0'
check 'two synchronous sends' deadlock ssend "$(both 'MPI_Ssend to PEER tag 5' ssend)" \
	'not received: rank 1 has a message of 4 bytes from 0 with tag 5 on MPI_COMM_WORLD'
check 'two long sends' deadlock send 'tag 7 '"$(at send)"', 1048576 bytes, for ' "$(both 'MPI_Send to PEER tag 7' send)"
check 'a message with another tag' deadlock tag "$(both 'MPI_Recv from PEER tag 5' tag)" 'not received: rank 1 has a message \
of 4 bytes from 0 with tag 6 on MPI_COMM_WORLD; what is nearest to it, from 0 tag 5, differs in tag: 6 and 5'
check 'a message on another communicator' deadlock comm 'not received: rank 1 has a message of 4 bytes from 0 with tag 5 on \
solver; what is nearest to it, from 0 tag 5, differs in communicator: solver and MPI_COMM_WORLD'
check 'a collective that one rank has not called' deadlock collective "collective: ranks 0, 1 of 3 in MPI_Barrier on \
MPI_COMM_WORLD; rank 2 is not in it, but in MPI_Recv from 0 tag 9 $(at missing)" "deadlock: rank 0 MPI_Barrier on \
MPI_COMM_WORLD $(at barrier), rank 2 MPI_Recv from 0 tag 9 $(at missing)"
check 'all of several requests' deadlock waitall "$(both 'MPI_Waitall from PEER tag 2' waitall)"
check 'any of several requests' deadlock waitany \
	"$(both 'MPI_Waitany for any of: from PEER tag 1, from PEER tag 2' waitany)"
check 'two probes' deadlock probe "$(both 'MPI_Probe from PEER tag 3' probe)"
check 'two locks' deadlock lock "deadlock: rank 0 MPI_Win_lock for the lock of rank 1's window $(at lock), \
rank 1 MPI_Win_lock for the lock of rank 0's window $(at lock)"
check 'access epochs that nobody has posted' deadlock complete 'deadlock: rank 0 MPI_Win_' ', rank 1 MPI_Win_'
check 'all threads of all ranks' deadlock threads '; 1 more threads wait'
check 'ranks that a script has started' deadlock script "$(both 'MPI_Recv from PEER tag 5' recv)"
if [[ $nals == *' udp '* ]]; then
	check 'over udp: a message with another tag' deadlock udp_tag 'differs in tag: 6 and 5'
	check 'over udp: two locks' deadlock udp_lock "deadlock: rank 0 MPI_Win_lock for the lock of rank 1's window $(at lock), "
	check 'over udp: a collective that one rank has not called' deadlock udp_collective \
		"rank 2 is not in it, but in MPI_Recv from 0 tag 9 $(at missing)"
fi

# ---- once, and at the time-out -----------------------------------------------------------------

said_once() {
	ends once 124 '10 s are over; ending the job' || return 1
	[ "$(grep -c 'all ranks wait' "$dir/once.err")" = 1 ] || return 1
	[ "$(grep -c 'waits for: 0 -> 1 -> 0' "$dir/once.err")" = 2 ]
}
check 'said once, and again when the time is over' said_once

# ---- no deadlocks ------------------------------------------------------------------------------

# A rank that reads from a pipe. The others wait for longer than the limit before there is something.
reads() {
	local pid rc=0
	mkfifo "$dir/pipe"
	"$mpiexec" "${soon[@]}" --timeout 100 -n 2 "$program" input <"$dir/pipe" >"$dir/input.out" 2>"$dir/input.err" &
	pid=$!
	exec 3>"$dir/pipe"
	until_true grep -q reads "$dir/input.out"
	until_true waits_for "$pid" 1 2
	echo x >&3
	exec 3>&-
	wait "$pid" || rc=$?
	cat "$dir/input.err"
	[ $rc = 0 ] && [ ! -s "$dir/input.err" ]
}
# waits_for PID RANK SECONDS: the rank of this job has waited for so long
waits_for() {
	local line
	line=$("$stat" --job "$1" 2>/dev/null | grep "^  rank $2 .*, for ") || return 1
	line=${line##*, for }
	[ "${line%%.*}" -ge "$3" ]
}
# A rank is stopped while the other waits for it, and runs on later.
stopped() {
	local pid rank rc=0
	"$mpiexec" "${soon[@]}" --timeout 100 -n 2 "$program" stopped >"$dir/stopped.out" 2>"$dir/stopped.err" </dev/null &
	pid=$!
	until_true grep -q pid "$dir/stopped.out"
	rank=$(sed -n 's/^pid //p' "$dir/stopped.out")
	until_true waits_for "$pid" 1 2
	"$stat" --job "$pid" >"$dir/stopped.stat"
	kill -CONT "$rank"
	wait "$pid" || rc=$?
	cat "$dir/stopped.err" "$dir/stopped.stat"
	[ $rc = 0 ] && [ ! -s "$dir/stopped.err" ] && grep -q 'rank 0 .* does not wait in MPI; it is stopped' "$dir/stopped.stat"
}
check 'no alarm: a rank reads' reads
check 'no alarm: a rank is stopped' stopped
wait
check 'no alarm: a rank computes' quiet computing
if [[ $nals == *' sim '* ]]; then
	check 'no alarm: a long message over a slow link' quiet transfer
fi
check 'no alarm: a rank sleeps' quiet sleeping
check 'no alarm: messages come slowly' quiet slow
check 'no alarm: ranks poll' quiet polls
check 'no alarm: a thread of a rank is busy' quiet thread

# ---- when asked --------------------------------------------------------------------------------

# The report of a job that mpiexec was told to leave alone: by both programs, then on SIGQUIT.
asked() {
	local pid rc=0
	env --default-signal=QUIT "$mpiexec" --deadlock 0 --timeout 100 -n 2 "$program" recv >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	until_true waits_for "$pid" 0 1
	until_true waits_for "$pid" 1 1
	"$mpiexec" --status "$pid" >"$dir/status"
	[ ! -s "$dir/err" ] || return 1
	kill -QUIT "$pid"
	wait "$pid" || rc=$?
	cat "$dir/status" "$dir/err"
	[ $rc = 131 ] && grep -q '^waits for: 0 -> 1 -> 0' "$dir/status" && grep -q 'waits for: 0 -> 1 -> 0' "$dir/err"
}
# Without libdw: the place in the program's file, and a remedy. An empty file stands in for the library.
without_lines() {
	local pid rc=0
	mkdir "$dir/lib"
	: >"$dir/lib/libdw.so.1"
	"$mpiexec" --deadlock 0 --timeout 100 -n 2 "$program" recv >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	until_true waits_for "$pid" 1 0
	LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$stat" --job "$pid" >"$dir/stat"
	kill "$pid"
	wait "$pid" || rc=$?
	cat "$dir/stat"
	grep -q "from 0 tag 5 ($(basename "$program")+0x[0-9a-f]*)" "$dir/stat" && grep -q 'Debian: libdw1' "$dir/stat"
}
no_job() {
	local rc=0
	"$stat" --job $$ >"$dir/out" 2>"$dir/err" || rc=$?
	cat "$dir/err"
	[ $rc = 1 ] && grep -q 'is no rank of an MPI job' "$dir/err"
}
check 'the report when asked for, and on SIGQUIT' asked
check 'without libdw' without_lines
check 'a process that is of no job' no_job
tap_done
