#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The C++ bindings: with mpicxx and mpi.h alone, as in old programs; in all versions of C++, without a
# warning; by their own header; and not at all where a program says so. Usage: cxx.sh SOURCE_DIR BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../../tap.sh"
source=$1
mpicxx=$2/tools/mpicc/mpicxx
mpicxx_abi=$2/tools/mpicc/mpicxx_abi
mpiexec=$2/tools/mpiexec/mpiexec
unset MPICH_CXX OMPI_CXX POSTERN_CXX
if ! command -v c++ >/dev/null; then
	tap_skip "the C++ bindings" "no C++ compiler here"
	tap_done
	exit
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# Each source for itself, which shows that constants and functions can be in several.
for file in main messages collectives objects callbacks; do
	check "$file.cc compiles as C++98" "$mpicxx" -std=c++98 -O1 -g -Wall -Wextra -Wpedantic -Wshadow -Werror \
		-c "$source/$file.cc" -o "$file.o"
done
check "they are one program" "$mpicxx" main.o messages.o collectives.o objects.o callbacks.o -o all

# Its cases count as ours; nothing else is printed.
case_lines() {
	local ranks=$1 status=0
	timeout 100 "$mpiexec" -n "$ranks" ./all >"out.$ranks" 2>&1 || status=$?
	while read -r line; do
		check "$ranks ranks: ${line#*ok * - }" [ "${line%% *}" = ok ]
	done < <(grep -E '^(not )?ok ' "out.$ranks")
	grep -v '^ok ' "out.$ranks" | sed 's/^/# /'
	check "$ranks ranks: all of them ran, with a plan" ended "$ranks" "$status"
}
ended() {
	[ "$2" -eq 0 ] && [ "$(grep -c '^ok ' "out.$1")" -gt 60 ] && grep "^1\.\.$(grep -c '^ok ' "out.$1")\$" "out.$1"
}
for ranks in 1 2 3; do
	case_lines "$ranks"
done

cat >one.cc <<'END'
#include <mpi.h>
#ifdef OWN
#include <mpicxx.h>
#endif

int main()
{
	MPI::Init();
	int size = MPI::COMM_WORLD.Get_size();
	MPI::Finalize();
	return size == 1 ? 0 : 1;
}
END
cat >plain.cc <<'END'
#include <mpi.h>

namespace MPI { int ours; }

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Finalize();
	return MPI::ours;
}
END
without() {
	! "$mpicxx" "$1" one.cc -o one && "$mpicxx" "$1" plain.cc -o plain && ./plain
}
by_itself() {
	"$mpicxx" -UPOSTERN_MPI_CXX -DOWN one.cc -o one && ./one
}
not_the_standards() {
	! "$mpicxx_abi" one.cc -o one
}
for version in 98 11 14 17 20; do
	check "C++$version, without a warning" "$mpicxx" "-std=c++$version" -Wall -Wextra -Wpedantic -Wshadow -Werror one.cc -o one
done
check "it runs" ./one
if command -v clang++ >/dev/null; then
	check "clang++ too" "$mpicxx" -cxx=clang++ -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Werror one.cc -o one
	check "it runs" ./one
else
	tap_skip "clang++ too" "no clang++ here"
fi
for off in MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX MPI_NO_CPPBIND; do
	check "-D$off turns them off" without "-D$off"
done
check "mpicxx.h has them by itself" by_itself
check "mpicxx_abi has the standard alone" not_the_standards

tap_done
