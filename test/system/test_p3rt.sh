#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The job calls of p3rt/p3rt.h and cnos_mpi_os.h: under our mpiexec, under Hydra, by PTL_MY_RID and
# maps, and alone. Usage: test_p3rt.sh MPIEXEC P3RT_JOB
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
p3rt_job=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID "${!PTL_@}"
# the first of ten pids well known to these only: tests may run side by side; the kernel gives no such ports to others
first=$((61000 + $$ % 450 * 10))

# run COMMAND...: under a limit; leaves status, $dir/out, $dir/err.
run() {
	status=0
	timeout -k 5 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}
need() {
	"$@" && return
	echo "not so: $*"
	echo "status ${status-none yet}; stdout:"
	cat "$dir/out"
	echo "stderr:"
	cat "$dir/err"
	exit 1
}
status_is() { [ "$status" -eq "$1" ]; }
out_lines() { [ "$(grep -c -- "$2" "$dir/out")" -eq "$1" ]; }
err_has() { grep -Eq "$1" "$dir/err"; }
err_is_empty() { [ ! -s "$dir/err" ]; }

in_job() {
	run "$1" -n "$2" "$p3rt_job" "$3" "$first"
	need status_is 0
	need out_lines "$2" "of $2: $3 done\$"
	need err_is_empty
}
one_jid() {
	run "$mpiexec" -n 3 "$p3rt_job" jid
	need status_is 0
	need [ "$(grep -c ^jid "$dir/out")" -eq 3 ]
	need [ "$(grep ^jid "$dir/out" | sort -u | wc -l)" -eq 1 ]
}
given_jid() {
	run "$mpiexec" -genv PTL_MY_JID 77 -n 2 "$p3rt_job" jid
	need status_is 0
	need out_lines 2 '^jid 77$'
}
for launcher in "$mpiexec" mpiexec.hydra; do
	name=$(basename "$launcher")
	if ! command -v "$launcher" >/dev/null; then
		tap_skip "$name" 'not there; install the package mpich'
		continue
	fi
	check "$name: nothing set" in_job "$launcher" 4 plain
	check "$name: PtlSetRank(PTL_INVALID_HANDLE, -1, -1) first" in_job "$launcher" 4 set
	check "$name: cnos calls first" in_job "$launcher" 4 cnos
	check "$name: PtlInit again after PtlFini" in_job "$launcher" 3 again
	check "$name: maps of the client" in_job "$launcher" 3 maps
	check "$name: a second interface on one rank only" in_job "$launcher" 3 second
	check "$name: one rank" in_job "$launcher" 1 plain
	check "$name: 32 ranks" in_job "$launcher" 32 quick
done
check 'all ranks of a job have one jid' one_jid
check 'PTL_MY_JID is taken' given_jid

# ---- by the environment --------------------------------------------------------------------------

nid=$("$p3rt_job" nid | sed -n 's/^nid //p')
# by_env RANK WHAT PIDMAP [NIDMAP]
by_env() { run env PTL_MY_RID="$1" PTL_NIDMAP="${4-$nid:$nid:$nid}" PTL_PIDMAP="$3" "$p3rt_job" "$2"; }

env_rank() {
	by_env "$1" quick $first:$((first + 1)):$((first + 2))
	need status_is 0
	need out_lines 1 "^rank $1 of 3: quick done\$"
}
env_alone() {
	run env PTL_MY_RID=0 PTL_NIDMAP="$nid" PTL_PIDMAP=$((first + 3)) "$p3rt_job" set
	need status_is 0
}
env_late() {
	by_env 1 late $((first + 4)):$((first + 5)):$((first + 6))
	need status_is 0
	need err_has 'PtlSetRank: PTL_MY_RID is not set'
}
wrong_nid() {
	by_env 0 refuse 1:2:3 1:2:3
	need status_is 99
	need err_has "rank 0 has the nid 1 \\(0\\.0\\.0\\.1\\) in the job's map .* but this interface has $nid .*PTL_IFACE"
	need err_has 'PtlNIInit gave PTL_FAIL'
}
partial() {
	run env PTL_NIDMAP="$nid" PTL_PIDMAP=$((first + 7)) "$p3rt_job" quick
	need status_is 0
	need err_has 'PTL_PIDMAP is set but PTL_MY_RID is not: this process takes itself for the only one'
}
garbage() {
	by_env 0 refuse 1:2:x
	need err_has 'PTL_PIDMAP: entry 2, "x"'
	need out_lines 1 'refuse done'
}
launcher_lost() {
	run env PMI_RANK=1 PMI_SIZE=2 "$p3rt_job" quick
	need status_is 99
	need err_has 'PtlInit gave PTL_FAIL'
}
check 'PTL_MY_RID=0 and maps' env_rank 0
check 'PTL_MY_RID=2 and maps' env_rank 2
check 'maps of one rank, and PtlSetRank' env_alone
check 'PTL_MY_RID set after PtlInit' env_late
check 'a nid map that contradicts the interface' wrong_nid
check 'maps without PTL_MY_RID warn' partial
check 'garbage in a map: PtlInit fails' garbage
check 'a lost launcher: PtlInit fails' launcher_lost

# ---- alone ---------------------------------------------------------------------------------------

alone() {
	run "$p3rt_job" "$1" "$first"
	need status_is 0
	need out_lines 1 "^rank 0 of 1: $1 done\$"
	need err_is_empty
}
for what in plain set cnos again maps second; do
	check "alone: $what" alone $what
done

tap_done
