#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# DP in jobs: under a launcher, one rank of which never calls it; described by a file of nodes;
# with MPI in the same process; and what is said of a file that is wrong.
# Usage: jobs.sh MPIEXEC JOB MPI_JOB PID
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
mpiexec=$1 job=$2 mpi_job=$3
export PTL_DP_PID=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The address that becomes the node id of processes here.
address=$("$job" address)

# four STATUS...: four processes of a job without a launcher, each told how many there are and which it is
four() {
	local pids=() status=0 i
	for i in 0 1 2 3; do
		timeout 60 "$job" ring "$i" 4 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	return $status
}
by_file() {
	printf '# the nodes\n\n3 %s # this one\n' "$address" >"$dir/nodes"
	PTL_DP_NODES=$dir/nodes four
}
refused() { # LINES TEXT
	printf '%b' "$1" >"$dir/wrong"
	! PTL_DP_NODES=$dir/wrong "$job" ring 0 1 2>"$dir/said" && cat "$dir/said" && grep "$2" "$dir/said"
}
no_file() {
	! PTL_DP_NODES=$dir/none "$job" ring 0 1 2>"$dir/said" && grep 'cannot read the nodes' "$dir/said"
}

check "four ranks of a launcher" timeout 60 "$mpiexec" -n 4 "$job" ring
check "one of four ranks never calls DP" timeout 60 "$mpiexec" -n 4 "$job" idle
check "four processes without a launcher" four
check "four processes, and a file of nodes" by_file
check "a file without this node" refused '0 192.0.2.1\n' 'no line for this node'
check "a file with a word for a number" refused 'x 192.0.2.1\n' 'line 1.*no number'
check "a file with a number too large" refused '65536 192.0.2.1\n' 'line 1.*no number'
check "a file with half a line" refused '# nothing\n7\n' 'line 2'
check "a file with a node twice" refused '0 192.0.2.1\n0 192.0.2.2\n' 'line 2.*already'
check "a file with an address twice" refused '0 192.0.2.1\n1 192.0.2.1\n' 'line 2.*already'
check "a file that is not there" no_file
check "MPI in the same processes" timeout 60 "$mpiexec" -n 3 "$mpi_job"

tap_done
