#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Portals beside the MPIs installed here: latency and bandwidth between two pinned processes, several
# rounds in turn. Each figure carries how far apart the cores were while it was taken; virtual machines
# move them, and compare_table.py compares only what was taken on cores equally near.
# Usage: compare_mpi.sh BUILD_DIR [ROUNDS]
set -eu -o pipefail
if [ $# -lt 1 ] || [ "$1" = --help ]; then
	echo "usage: compare_mpi.sh BUILD_DIR [ROUNDS]"
	exit $(($# < 1 ? 2 : 0))
fi
here=$(cd "$(dirname "$0")" && pwd)
ptlperf=$1/bench/ptlperf/ptlperf
rounds=${2:-5}
sizes=(8 64 512 2048 4096 16384 65536 262144 1048576 4194304)
min_ms=20
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Compiles the MPI side with one MPI's compiler: compile NAME MPICC
compile() {
	"$2" -O2 -std=gnu17 -o "$dir/pingpong-$1" "$here/mpi_pingpong.c" \
		"$here/ptlperf/clock.c" "$here/ptlperf/stats.c"
}

run_ptlperf() {
	"$ptlperf" latency bandwidth --sizes "$(IFS=, && echo "${sizes[*]}")" --min-time "$min_ms" \
		--json "$1" >/dev/null
}
run_openmpi() {
	local root=()
	[ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
	mpirun.openmpi "${root[@]}" --bind-to core -n 2 "$dir/pingpong-openmpi" \
		"$dir/line" "$min_ms" "${sizes[@]}" >"$1"
}
run_mpich() {
	mpiexec.mpich -bind-to core -n 2 "$dir/pingpong-mpich" \
		"$dir/line" "$min_ms" "${sizes[@]}" >"$1"
}

# The name a compiler of this MPI goes by, if all that is needed is here.
mpis=()
for mpi in openmpi mpich; do
	launcher=mpirun.openmpi
	[ "$mpi" = openmpi ] || launcher=mpiexec.mpich
	if command -v "mpicc.$mpi" >/dev/null && command -v "$launcher" >/dev/null; then
		compile "$mpi" "mpicc.$mpi"
		mpis+=("$mpi")
	else
		echo "compare_mpi.sh: no mpicc.$mpi with $launcher here; leaving it out" >&2
	fi
done

for ((round = 1; round <= rounds; round++)); do
	for program in ptlperf "${mpis[@]}"; do
		[ ! -t 1 ] || printf '\rround %d of %d: %-8s ' "$round" "$rounds" "$program"
		head -c 4096 /dev/zero >"$dir/line" # for the MPI side to look at the cores' distance
		"run_$program" "$dir/$program-$round.json" || {
			echo "compare_mpi.sh: $program failed in round $round" >&2
			exit 1
		}
	done
done
[ ! -t 1 ] || printf '\r%40s\r' ''
python3 "$here/compare_table.py" "$dir" ptlperf "${mpis[@]}"
