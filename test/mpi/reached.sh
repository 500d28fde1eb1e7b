#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# A job starts and runs wherever it can: without calls that containers refuse, in namespaces, as other users. Where it
# cannot it ends soon, and MPI says why. Usage: reached.sh MPIEXEC REFUSE PROGRAM
set -u
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
mpiexec=$1
refuse=$2
export program=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PTL_NET_DEAD_MS=1000

# job COMMAND...: two ranks of it; what they said is in $tmp/said
job() {
	timeout -k 2 60 "$mpiexec" -n 2 "$@" >"$tmp/said" 2>&1 </dev/null
	status=$?
	cat "$tmp/said"
}

works() {
	job "$@"
	[ "$status" = 0 ] && grep -q 'all well' "$tmp/said"
}

# fails TEXT COMMAND...: ends by itself, with this text of MPI's
fails() {
	local text=$1
	shift
	job "$@"
	[ "$status" != 0 ] && [ "$status" != 124 ] && [ "$status" != 137 ] && grep -q "MPI_.*$text" "$tmp/said"
}

# with NAME=VALUE COMMAND...
with() {
	local -x "$1"
	shift
	"$@"
}

# each COMMAND..., rank_1 COMMAND...: what a shell does to start every rank, or rank 1, by this command
each() {
	echo "exec $* \"\$program\""
}
rank_1() {
	echo "[ \"\$PMI_RANK\" = 1 ] && exec $* \"\$program\"; exec \"\$program\""
}

# ---- what was found out about a rank ----

check 'a rank that has ended is said to have' fails 'its process has ended' "$program" ends

nothing_arrives() {
	with PTL_NAL=sim with PTL_SIM=drop=1 fails 'cannot be reached (sim: no answer for 1 s' "$program" &&
		! grep -q 'process has ended' "$tmp/said"
}
check 'a rank that no packet reaches is not said to have ended' nothing_arrives

# ---- calls that are refused ----

if ! "$refuse" getrandom 1 true 2>/dev/null; then
	tap_skip 'calls that are refused' 'system call filters are not permitted'
else
	every=
	for calls in process_vm_readv,process_vm_writev,ptrace pidfd_open,pidfd_getfd,pidfd_send_signal membarrier \
		getrandom eventfd2 sched_getaffinity,sched_setaffinity; do
		check "without $calls" works "$refuse" "$calls" 38 "$program"
		every=$every,$calls
	done
	every=${every#,},madvise,prctl,sched_yield,rseq,getcpu,statx,faccessat2,openat2,userfaultfd,futex_waitv
	every=$every,epoll_pwait2,set_mempolicy,get_mempolicy,mbind,move_pages,mlock,mlock2,fallocate,close_range,kcmp
	every=$every,timerfd_create,signalfd4,sendmmsg,recvmmsg,io_uring_setup,mincore,waitid,setpriority
	for errno in 1 38; do
		check "without all that is not needed, errno $errno" works "$refuse" "$every" "$errno" "$program"
		check "the same by UDP, errno $errno" \
			with PTL_NAL=udp works "$refuse" "$every" "$errno" "$program"
	done
	check 'a rank that ends is noticed without pidfd_open' \
		fails 'its process has ended' "$refuse" pidfd_open 1 "$program" ends
	for call in accept4 bind connect epoll_create1 epoll_wait listen sendmsg; do
		text=$call
		[ "$call" = bind ] && text='network interfaces cannot be listed'
		check "$call refused names itself" fails "$text.*: Operation not permitted" "$refuse" "$call" 1 "$program"
	done
	check 'the cause is said with PTL_QUIET, too' with PTL_QUIET=1 \
		fails 'Init: .*Unix sockets: Operation not permitted' "$refuse" socket 1 "$program"
fi
reports() {
	works "$program" && grep -q 'moved by' "$tmp/said"
}
check 'a report that is asked for is there with PTL_QUIET, too' with PTL_QUIET=1 with PTL_REPORT=1 reports

# ---- namespaces and users ----

# Each rank in namespaces of its own, or one of them.
apart() {
	works sh -c "$(each "unshare $1")" && works sh -c "$(rank_1 "unshare $1")"
}

# The same, where nothing leads from one to the other.
cut_off() {
	fails 'cannot be reached (.*\(another network namespace\|udp: \)' sh -c "$(each "unshare $1")" &&
		! grep -q 'process has ended' "$tmp/said" &&
		fails 'cannot be reached (udp: ' sh -c "$(rank_1 "unshare $1")"
}

for kind in --pid --ipc --mount --uts --user --net; do
	name="ranks in $kind namespaces of their own"
	more=
	[ "$kind" = --user ] && more=--map-root-user
	[ "$kind" = --pid ] && more=--fork
	if ! unshare "$kind" $more true 2>/dev/null; then
		tap_skip "$name" 'not permitted'
	elif [ "$kind" = --net ]; then
		check "$name cannot be reached" cut_off "$kind"
	else
		check "$name" apart "$kind $more"
	fi
done
# A process that cannot be seen must not hold a lock: its death with the lock would not be noticed.
neither_attaches() {
	works sh -c "$(rank_1 'unshare --pid --fork')" &&
		[ "$(grep -c 'no attach: a peer is in another pid namespace' "$tmp/said")" = 2 ]
}
if unshare --pid --fork true 2>/dev/null; then
	check 'of two ranks one of which does not see the other neither attaches' with PTL_REPORT=1 neither_attaches
else
	tap_skip 'one of two ranks in a pid namespace of its own' 'not permitted'
fi
all='--user --map-root-user --pid --fork --mount --ipc --uts --net'
# shellcheck disable=SC2086
if unshare $all true 2>/dev/null; then
	check 'ranks in namespaces of their own of all kinds cannot be reached' cut_off "$all"
else
	tap_skip 'ranks in namespaces of their own of all kinds' 'not permitted'
fi
nobody='setpriv --reuid 65534 --clear-groups'
if $nobody test -x "$program" 2>/dev/null; then
	check 'ranks of two users' works sh -c "$(rank_1 "$nobody")"
else
	tap_skip 'ranks of two users' 'not permitted, or the program is out of reach'
fi
tap_done
