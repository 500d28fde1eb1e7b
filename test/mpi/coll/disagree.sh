#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The error text of ranks that disagree about a collective names both sides, and the job ends.
# Usage: disagree.sh MPIEXEC PROGRAM SOURCE_ROOT
set -u
mpiexec=$1 program=$2
. "$3/test/tap.sh"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# ends CASE RANKS PATTERN: the job fails, and a line says this.
ends() {
	if timeout 60 "$mpiexec" -n "$2" "$program" fatal "$1" >"$out" 2>&1; then
		echo "the job went on:"
		cat "$out"
		return 1
	fi
	grep -Eq "$3" "$out" || { echo "wanted: $3"; cat "$out"; return 1; }
}

# In either order: any rank may be the first to see it.
both() {
	printf 'rank %s called %s, rank %s %s|rank %s called %s, rank %s %s' \
		"$1" "$2" "$4" "$3" "$4" "$5" "$1" "$6"
}

for ranks in 2 3; do
	check "lengths of an allreduce, $ranks ranks" ends allreduce_count "$ranks" \
		"$(both 1 'MPI_Allreduce of 40 bytes' 'of 400' '[02]' 'MPI_Allreduce of 400 bytes' 'of 40$')"
	check "a long and a short allreduce, $ranks ranks" ends allreduce_long "$ranks" \
		"$(both 1 'MPI_Allreduce of 40 bytes' 'of 400000' '[02]' 'MPI_Allreduce of 400000 bytes' 'of 40$')"
	check "operations, $ranks ranks" ends allreduce_op "$ranks" \
		"$(both 1 'MPI_Allreduce with MPI_MAX' 'with MPI_SUM' '[02]' 'MPI_Allreduce with MPI_SUM' 'with MPI_MAX')"
	check "roots, of which nobody hears before MPI_Finalize, $ranks ranks" ends bcast_root "$ranks" \
		"$(both 1 'MPI_Bcast with root 1' 'with root 0' '[02]' 'MPI_Bcast with root 0' 'with root 1')"
	check "another collective, $ranks ranks" ends kinds "$ranks" \
		"$(both 1 'MPI_Allreduce of 40 bytes' 'MPI_Bcast of 40 bytes' '[02]' 'MPI_Bcast of 40 bytes' 'MPI_Allreduce of 40 bytes')"
	check "a barrier, $ranks ranks" ends barrier "$ranks" \
		"$(both 1 'MPI_Allreduce of 40 bytes' 'MPI_Barrier' '[02]' 'MPI_Barrier' 'MPI_Allreduce of 40 bytes')"
	check "a collective that one rank leaves out, $ranks ranks" ends left_out "$ranks" \
		"$(both 1 'MPI_Allreduce of 20 bytes' 'MPI_Bcast of 40 bytes' '[02]' 'MPI_Bcast of 40 bytes' 'MPI_Allreduce of 20 bytes')"
done
export PTL_MPI_SHMCOLL=no
check "lengths by messages" ends allreduce_count 2 \
	'rank . sent (40|400) bytes of MPI_Allreduce where rank . expects (40|400)'
check "another collective by messages" ends barrier 2 \
	'rank 1 called MPI_Allreduce, rank 0 MPI_Barrier|rank 0 called MPI_Barrier, rank 1 MPI_Allreduce'
check "operations by messages" ends allreduce_op 2 \
	'called MPI_Allreduce with different roots, operations or lengths'
tap_done
