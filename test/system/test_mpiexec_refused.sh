#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# mpiexec where the system refuses calls, as old kernels and containers' filters do: what it can do without, it
# does without, and it returns; what it cannot is named. Usage: test_mpiexec_refused.sh MPIEXEC RT_JOB REFUSE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
rt_job=$2
refuse=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID "${!PTL_@}"

# run CALLS ERRNO MPIEXEC-ARGS...: leaves status, $dir/out, $dir/err. Standard output is a pipe here: the end
# comes only when no process holds it any more, so that one which mpiexec leaves behind is a time-out.
run() {
	local calls=$1 errno=$2
	shift 2
	status=0
	# shellcheck disable=SC2016 # the inner shell expands
	timeout -k 5 60 bash -c 'set -o pipefail; "$@" 2>"$0/err" </dev/null | cat >"$0/out"' "$dir" \
		"$refuse" "$calls" "$errno" "$mpiexec" "$@" || status=$?
}
need() {
	"$@" && return
	echo "not so: $*"
	echo "status $status; stdout:"
	cat "$dir/out"
	echo "stderr:"
	cat "$dir/err"
	exit 1
}
goes_without() {
	for errno in 1 38; do
		run "$1" "$errno" -n 3 "$rt_job" fence 1
		need [ "$status" -eq 0 ]
		need [ "$(grep -c 'fences done$' "$dir/out")" -eq 3 ]
		need [ ! -s "$dir/err" ]
		run "$1" "$errno" --timeout 0.2 -n 2 sleep 60
		need [ "$status" -eq 124 ]
	done
}
says_unbound() {
	run "$1" 1 --bind-to core -n 2 "$rt_job" fence 1
	need [ "$status" -eq 0 ]
	need [ "$(grep -c 'fences done$' "$dir/out")" -eq 2 ]
	need [ "$(cat "$dir/err")" = \
		'mpiexec: the ranks run unbound: processors cannot be set here: Operation not permitted' ]
}
names() {
	run "$1" 38 -n 2 true
	need [ "$status" -ne 0 ]
	need [ "$status" -lt 127 ]
	need grep -q "^mpiexec: $2 is refused here (Function not implemented)" "$dir/err"
	need [ "$(wc -l <"$dir/err")" -eq 1 ]
}

if ! "$refuse" close_range 38 true 2>"$dir/err"; then
	tap_skip 'mpiexec where calls are refused' "$(cat "$dir/err")"
	tap_done
	exit
fi
for calls in close_range close_range,getdents64 signalfd4,timerfd_create,eventfd2 epoll_pwait2,waitid \
	clone3,statx,pidfd_open,pidfd_send_signal prctl \
	sched_setaffinity sched_getaffinity set_mempolicy,get_mempolicy,mbind; do
	check "$calls refused: the job runs and mpiexec returns" goes_without "$calls"
done
check 'binding refused is said once if it was asked for' says_unbound sched_setaffinity
check 'so is a mask that cannot be read' says_unbound sched_getaffinity
check 'epoll_create1 refused is named' names epoll_create1 epoll_create1
check 'epoll_ctl refused is named' names epoll_ctl epoll_ctl
check 'socketpair refused is named' names socketpair socketpair
check 'pipe2 refused is named' names pipe2 pipe2
check 'fork refused is named' names clone fork
tap_done
