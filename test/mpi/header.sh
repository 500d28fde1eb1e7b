#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The MPI header declares every function of the MPI 5.0 C binding as MPI_ and as PMPI_, alike.
# Usage: header.sh SOURCE_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
header=$1/include/mpi_abi/mpi.h

# declared PREFIX: the names declared with it, by the compiler's reckoning
declared() {
	gcc -E -P -x c "$header" | tr '\n;' ' \n' | grep -v typedef | grep -oE "\\b$1_\\w+\\(" |
		tr -d '(' | sort
}

has_662() {
	local n
	n=$(declared "$1" | uniq | wc -l)
	[ "$n" -eq 662 ] || { echo "$n"; return 1; }
}

same_names() {
	diff <(declared MPI) <(declared PMPI | sed 's/^P//')
}

check "662 functions MPI_" has_662 MPI
check "662 functions PMPI_" has_662 PMPI
check "each name once in both halves" same_names
check "the PMPI half follows from the other" \
	python3 "$1/mpi_shim/gen/pmpi.py" --check "$header"

tap_done
