#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The tests themselves: the same sources, built with MPICH, say the same, but for what is known to be different
# there. Usage: other.sh MPIEXEC
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../../tap.sh"
mpiexec=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# MPICH 4.0 adds one to MPI_UNDEFINED, writes an address into what it should leave alone, strips leading
# blanks of names, has other numbers for its handles, an INTEGER where mpi_f08 has a C_PTR.
known='MPI_WAITANY of nothing gives MPI_UNDEFINED
MPI_TESTANY of nothing is true, and gives MPI_UNDEFINED
it leaves what is beside its argument
names lose the blanks at their end only
MPI_COMM_WORLD is 257 in all languages
MPI_Waitany counts from 1
MPI_Buffer_detach gives the address back'

builds() {
	(cd "$dir" && mpifort.mpich -w "$here/checks.f" "$here/$1" -o "$2")
}
says_the_same() {
	local out
	out=$(timeout 100 "$mpiexec" -n 2 "$dir/$1") || true
	echo "$out"
	grep -q '^1\.\.[1-9]' <<<"$out" &&
		! grep '^not ok' <<<"$out" | sed 's/^not ok [0-9]* - //' | grep -vxF "$known"
}

for source in p2p.f old.f coll.f90 f08.f90; do
	name=${source%.*}
	if command -v mpifort.mpich >/dev/null; then
		check "$source builds with MPICH" builds "$source" "$name"
		check "$source passes with MPICH" says_the_same "$name"
	else
		tap_skip "$source passes with MPICH" "no MPICH here"
	fi
done

tap_done
