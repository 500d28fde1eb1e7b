#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# An MPI library shows every function that its header declares, MPI_ weak and PMPI_ not, so that a
# profiling library can take the place of one and reach the other; nothing else can be seen.
# Usage: exports.sh SOURCE_DIR LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
library=$2
lib=$(basename "$library" | sed 's/^lib\(.*\)\.so.*/\1/')
header=$source/include/${lib#postern-}/mpi.h
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The compiler itself lists the functions it saw declared.
gcc -std=gnu17 -fsyntax-only -aux-info "$dir/functions" -x c "$header"
grep '^/\* .*include/.*mpi\.h:' "$dir/functions" | grep -oP 'extern .*?\KP?MPI_\w+(?= \()' |
	sort -u >"$dir/declared"
nm -D --defined-only --format=posix "$library" | grep -v '^POSTERN_[^ ]* A' >"$dir/names"
sed 's/@[^ ]*//' "$dir/names" >"$dir/symbols"
sed 's/[ @].*//' "$dir/symbols" | sort -u >"$dir/shown"
awk '$2 == "W" && $1 ~ /^MPI_/ || $2 == "T" && $1 ~ /^PMPI_/ { print $1 }' "$dir/symbols" |
	sort -u >"$dir/right"
# objects, of the header for old programs
sed -n 's/^extern [^(]*[ *]\([A-Za-z0-9_]*\);.*/\1/p' "$header" |
	sort -u >"$dir/objects"

nothing() {
	! grep .
}
many_declared() {
	[ "$(wc -l <"$dir/declared")" -ge 1324 ]
}
all_shown() {
	comm -23 "$dir/declared" "$dir/right" | nothing
}
same_code() {
	awk '/^P?MPI_/ && $2 ~ /[WT]/ { print $3, $1 }' "$dir/symbols" | sed 's/ PMPI_/ MPI_/' | sort |
		uniq -u | nothing
}
nothing_else() {
	comm -13 <(sort -u "$dir/declared" "$dir/objects") "$dir/shown" | nothing
}
is_soname() {
	readelf -d "$library" | grep "SONAME.*\[lib$lib\.so\.1\]"
}

# Ours has versions. That of the standard has none: programs with one could not run with another's.
is_versioned() {
	local versions
	versions=$(sed -n 's/^[^ @]*@@\([^ ]*\) .*/\1/p' "$dir/names" | sort | uniq -c)
	echo "$versions"
	if [ "$lib" = mpi_abi ]; then
		[ -z "$versions" ]
	else
		[ "$(awk '{ n += $1 } END { print n }' <<<"$versions")" -eq "$(wc -l <"$dir/symbols")" ] &&
			! grep -v 'POSTERN_MPI_1\.[0-9]*$' <<<"$versions"
	fi
}

check "$lib: the header's declarations are found" many_declared
check "$lib: every MPI_ function is weak, every PMPI_ one strong" all_shown
check "$lib: MPI_ and PMPI_ are the same code" same_code
check "$lib: nothing else can be seen" nothing_else
check "$lib: each symbol has its version" is_versioned
check "$lib: the soname is lib$lib.so.1" is_soname

tap_done
