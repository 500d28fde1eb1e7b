#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The ways to build an MPI program: the compiler wrappers in the build tree and installed,
# pkg-config, CMake's FindMPI, and libtool; each program is run by the mpiexec beside them, and has
# our library although that of another MPI stands in the way. Usage: wrappers.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset LD_LIBRARY_PATH LIBRARY_PATH MPICH_CC MPICH_CXX OMPI_CC OMPI_CXX POSTERN_CC POSTERN_CXX

meson install --no-rebuild -C "$build" --destdir "$dir/root" >"$dir/install.log" 2>&1
prefix=$(meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
root=$dir/root$prefix
built=$build/tools/mpicc
bin=$root/bin

cat >"$dir/sum.c" <<'END'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("sum %d of %d\n", sum, size);
	MPI_Finalize();
	return 0;
}
END
cp "$dir/sum.c" "$dir/sum.cc"

# what only the header for old programs has
cat >"$dir/old.c" <<'END'
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

struct body { double x; char tag; };

int main(int argc, char **argv)
{
	int lengths[3] = { 1, 1, 1 };
	MPI_Aint at[3] = { offsetof(struct body, x), offsetof(struct body, tag), sizeof(struct body) };
	MPI_Datatype types[3] = { MPI_DOUBLE, MPI_CHAR, MPI_UB }, body;
	MPI_Aint extent, address;
	MPI_Errhandler handler;

	MPI_Init(&argc, &argv);
	MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Errhandler_get(MPI_COMM_WORLD, &handler);
	MPI_Address(&extent, &address);
	MPI_Type_struct(3, lengths, at, types, &body);
	MPI_Type_extent(body, &extent);
	printf("extent %d handler %d address %d\n", (int)extent, handler == MPI_ERRORS_RETURN,
	       address == (MPI_Aint)&extent);
	MPI_Finalize();
	return 0;
}
END

# a profiling library inside of the program
cat >"$dir/profile.c" <<'END'
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
		  MPI_Comm comm)
{
	calls++;
	return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int main(int argc, char **argv)
{
	int rank, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d calls, sum %d\n", calls, sum);
	MPI_Finalize();
	return 0;
}
END

# Another MPI, of which a program must get nothing.
other=$dir/other
mkdir "$other"
cat >"$other/other.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#define OTHER(name) int name(void) { puts("another MPI"); exit(1); }
OTHER(MPI_Init) OTHER(PMPI_Init) OTHER(MPI_Comm_rank) OTHER(MPI_Comm_size) OTHER(MPI_Allreduce) OTHER(MPI_Finalize)
END
(
	cd "$other"
	cc -w -shared -fPIC -Wl,-soname,libmpi.so.40 other.c -o libmpi.so.40
	cc -w -c other.c && ar rc libmpi.a other.o
	for name in mpi mpich mpi_abi; do
		ln -s libmpi.so.40 lib$name.so
		[ -e lib$name.a ] || ln -s libmpi.a lib$name.a
	done
)
system=/usr/lib/$(cc -print-multiarch)

# runs COMMAND WANTED: on three ranks, if it is the sum
runs() {
	local out
	out=$(timeout 60 "$bin/mpiexec" -n 3 "$1") || return
	echo "$out"
	[ "$out" = "${2:-sum 3 of 3}" ]
}
builds() {
	local wrapper=$1 source=$2
	shift 2
	"$wrapper" -Wall -Wextra -Werror "$@" "$dir/$source" -o "$dir/program" && runs "$dir/program"
}
in_two_steps() {
	"$1" -c "$dir/sum.c" -o "$dir/sum.o" && "$1" "$dir/sum.o" -o "$dir/program" &&
		runs "$dir/program"
}
in_parts() {
	"$1" -c "$dir/sum.c" -o "$dir/sum.o" && "$1" -r "$dir/sum.o" -o "$dir/part.o" &&
		"$1" "$dir/part.o" -o "$dir/program" && runs "$dir/program"
}
builds_old() {
	"$1" "$dir/old.c" -o "$dir/program" && runs_alone "$dir/program"
}
by_mpirun() {
	[ "$(timeout 60 "$bin/mpirun" -np 3 "$dir/program")" = "sum 3 of 3" ]
}
runs_alone() {
	local out
	out=$("$1") || return
	echo "$out"
	[ "$out" = "extent 16 handler 1 address 1" ]
}
refuses_old() {
	! "$1" "$dir/old.c" -o "$dir/program"
}
needs_only() {
	readelf -d "$dir/program" | grep -o 'NEEDED.*\[lib\(postern-\)\?mpi.*\]' >"$dir/needed"
	cat "$dir/needed"
	[ "$(wc -l <"$dir/needed")" -eq 1 ] && grep -q "\[$1\]" "$dir/needed"
}

for where in "$built" "$bin"; do
	place=installed
	[ "$where" = "$bin" ] || place="in the build tree"
	check "mpicc, $place" builds "$where/mpicc" sum.c
	check "it needs libpostern-mpi.so.1" needs_only libpostern-mpi.so.1
	[ "$where" = "$built" ] || check "mpirun -np" by_mpirun
	check "mpicc in two steps, $place" in_two_steps "$where/mpicc"
	check "mpicc -r, $place" in_parts "$where/mpicc"
	check "an old program with mpicc, $place" builds_old "$where/mpicc"
	check "mpicc_abi, $place" builds "$where/mpicc_abi" sum.c
	check "it needs libmpi_abi.so.1" needs_only libmpi_abi.so.1
	check "mpicc_abi has no removed functions, $place" refuses_old "$where/mpicc_abi"
	for name in mpicxx mpic++ mpiCC mpicxx_abi; do
		check "$name, $place" builds "$where/$name" sum.cc
	done
done

# ---- our library, not another's -----------------------------------------------------------------

# ours LIBRARY WRAPPER SOURCE ARGUMENT...
ours() {
	local library=$1
	shift
	builds "$@" && needs_only "$library"
}
behind() {
	"$1" "$dir/sum.c" "-L$other" -Wl,--as-needed -lmpich -lmpi -o "$dir/program" && runs "$dir/program" &&
		needs_only libpostern-mpi.so.1
}
for where in "$built" "$bin"; do
	check "the system's folder first" ours libpostern-mpi.so.1 "$where/mpicc" sum.c "-L$system" -L/usr/lib -lm
	check "another MPI's folder first" ours libpostern-mpi.so.1 "$where/mpicc" sum.c "-L$other" -lm
	check "and its library named" ours libpostern-mpi.so.1 "$where/mpicc" sum.c "-L$other" -lmpi -lmpich
	check "also behind the source, where nothing is linked that is not needed" behind "$where/mpicc"
	check "mpicxx" ours libpostern-mpi.so.1 "$where/mpicxx" sum.cc "-L$other" -lmpi_cxx -lmpicxx -lmpichcxx -lpmpich -lmpi
	check "mpicc_abi" ours libmpi_abi.so.1 "$where/mpicc_abi" sum.c "-L$other" -lmpi_abi -lmpi
done
check "LIBRARY_PATH" env "LIBRARY_PATH=$other" "$bin/mpicc" "$dir/sum.c" -lmpi -o "$dir/program"
check "is no way either" needs_only libpostern-mpi.so.1
taken_apart() {
	# shellcheck disable=SC2046 # words
	cc $("$1" --showme:compile) "$dir/sum.c" "-L$other" $("$1" --showme:link) -o "$dir/program" &&
		runs "$dir/program" && needs_only libpostern-mpi.so.1
}
check "the words of --showme behind another folder" taken_apart "$built/mpicc"
check "the same, installed" taken_apart "$bin/mpicc"
alone() {
	"$@" "-L$other" -o "$dir/static" && runs "$dir/static" && ! readelf -d "$dir/static" | grep NEEDED
}
for where in "$built" "$bin"; do
	check "mpicc -static, ${where#"$dir/"}" alone "$where/mpicc" -static "$dir/sum.c" -lmpi -lm
	check "mpicxx -static, ${where#"$dir/"}" alone "$where/mpicxx" -static "$dir/sum.cc"
done
check "mpicc_abi -static-pie" alone "$bin/mpicc_abi" -static-pie -fPIE "$dir/sum.c"
by_pkg_config_static() {
	# shellcheck disable=SC2046 # words
	alone cc -static "$dir/sum.c" $(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --static "--define-variable=prefix=$root" \
		--cflags --libs postern-mpi)
}

profiles() {
	"$bin/mpicc" "$dir/profile.c" -o "$dir/program" && runs "$dir/program" "2 calls, sum 3"
}
check "a program can take the place of a function" profiles

# ---- what they say ------------------------------------------------------------------------------

says() {
	local wanted=$1 out
	shift
	out=$("$@") || return
	echo "$out"
	grep -qE -- "$wanted" <<<"$out"
}
silent_on_link() {
	! "$@" | grep -E -- '-L|-l'
}
shown_works() {
	local command
	command=$("$bin/mpicc" -show "$dir/sum.c" "-DTEXT=\"two \$words\"" -o "$dir/program")
	sh -c "$command" && runs "$dir/program"
}
check "-show is a command that works" shown_works
check "-show runs nothing" says '^cc -I.*/mpi -L.*nothing\.c .*-lpostern-mpi -Wl,--pop-state$' "$bin/mpicc" -show nothing.c
check "no library when only compiling" silent_on_link "$bin/mpicc" -show -c x.c
check "-compile-info" says '^cc -I[^ ]*/postern/mpi$' "$bin/mpicc" -compile-info
check "-link-info" says '^cc .*-L.* -lpostern-mpi_abi -Wl,--pop-state$' "$bin/mpicc_abi" -link_info
check "--showme:compile" says '^-I[^ ]*/postern/mpi$' "$bin/mpicc" --showme:compile
check "--showme:link" says '^-L[^ ]* .*-lpostern-mpi -Wl,--pop-state$' "$bin/mpicc" --showme:link
check "--showme:incdirs" says '/postern/mpi_abi$' "$bin/mpicc_abi" --showme:incdirs
check "POSTERN_CC names the compiler" says '^other -I' env POSTERN_CC=other "$bin/mpicc" -show
check "MPICH_CC does too" says '^other -I' env MPICH_CC=other "$bin/mpicc" -show
check "and OMPI_CXX for C++" says '^other -I' env OMPI_CXX=other "$bin/mpicxx" -show
check "POSTERN_CC comes first" says '^first -I' env MPICH_CC=other POSTERN_CC=first "$bin/mpicc" -show
check "-cc= comes before all" says '^mine -I' env POSTERN_CC=first "$bin/mpicc" -cc=mine -show
check "arguments with blanks stay whole" \
	builds "$bin/mpicc" sum.c "-DTEXT=\"two words\""

# ---- pkg-config --------------------------------------------------------------------------------

pc=$(find "$root" -name postern-mpi.pc)
by_pkg_config() {
	local flags
	flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config "--define-variable=prefix=$root" --cflags --libs \
		"postern-$1") || return
	# shellcheck disable=SC2086
	cc "$dir/sum.c" "-L$other" $flags -o "$dir/program" && runs "$dir/program" && needs_only "$2"
}
check "pkg-config postern-mpi" by_pkg_config mpi libpostern-mpi.so.1
check "pkg-config --static postern-mpi" by_pkg_config_static
check "pkg-config postern-mpi_abi" by_pkg_config mpi_abi libmpi_abi.so.1

# ---- CMake -------------------------------------------------------------------------------------

mkdir "$dir/cmake"
cp "$dir/sum.c" "$dir/sum.cc" "$dir/cmake"
cat >"$dir/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(sum C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
link_directories($ENV{OTHER})
add_executable(sum_c sum.c)
target_link_libraries(sum_c MPI::MPI_C)
add_executable(sum_cxx sum.cc)
target_link_libraries(sum_cxx MPI::MPI_CXX)
file(WRITE ${CMAKE_BINARY_DIR}/mpiexec.txt "${MPIEXEC_EXECUTABLE}")
file(WRITE ${CMAKE_BINARY_DIR}/version.txt "${MPI_C_VERSION}")
END
find_mpi() {
	OTHER=$other CMAKE_LIBRARY_PATH=$other PATH=$bin:$PATH cmake -G Ninja -S "$dir/cmake" -B "$dir/cmake/build" && cmake --build "$dir/cmake/build"
}
finds_ours() {
	grep -Fx "$bin/mpiexec" "$dir/cmake/build/mpiexec.txt" &&
		grep -x 5.0 "$dir/cmake/build/version.txt"
}
if command -v cmake >/dev/null; then
	check "FindMPI builds with us" find_mpi
	check "it finds our mpiexec and our version" finds_ours
	check "its C program runs" runs "$dir/cmake/build/sum_c"
	check "its C++ program runs" runs "$dir/cmake/build/sum_cxx"
	for program in sum_c sum_cxx; do
		cp "$dir/cmake/build/$program" "$dir/program"
		check "$program has our library" needs_only libpostern-mpi.so.1
	done
else
	tap_skip "FindMPI builds with us" "no cmake here"
fi

# ---- libtool -----------------------------------------------------------------------------------

cat >"$dir/total.c" <<'END'
#include <mpi.h>

int total(int mine, int *sum)
{
	return MPI_Allreduce(&mine, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}
END
sed 's/^int main/int total(int, int *);\n\n&/; s/MPI_Allreduce.*/total(rank, \&sum);/' "$dir/sum.c" >"$dir/main.c"
# A library and a program with it, by the wrapper or by what pkg-config says. The library is given other ones.
by_libtool() {
	local flags=$1 cc=$2
	(
		mkdir -p "$dir/libtool/lib" && cd "$dir/libtool"
		lt() {
			libtool --quiet --tag=CC "$@"
		}
		# shellcheck disable=SC2086
		lt --mode=compile $cc -c "$dir/total.c" -o total.lo $flags &&
			lt --mode=link $cc -o libtotal.la total.lo -rpath "$PWD/lib" "-L$other" $flags &&
			lt --mode=install install -c libtotal.la "$PWD/lib" &&
			lt --mode=compile $cc -c "$dir/main.c" -o main.lo $flags &&
			lt --mode=link $cc -o main main.lo "-L$other" "$PWD/lib/libtotal.la" $flags
	) && cp "$dir/libtool/main" "$dir/program" && runs "$dir/program" && needs_only libpostern-mpi.so.1
}
if command -v libtool >/dev/null; then
	check "libtool with mpicc" by_libtool "-lmpi" "$bin/mpicc"
	check "libtool with pkg-config" by_libtool "$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config \
		"--define-variable=prefix=$root" --cflags --libs postern-mpi)" cc
else
	tap_skip "libtool builds with us" "no libtool here"
fi

tap_done
