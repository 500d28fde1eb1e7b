#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The ways to build an MPI program in Fortran: the wrappers in the build tree and installed, pkg-config, and
# CMake's FindMPI with mpif.h and both modules; each program is run by the mpiexec beside them, and has our
# libraries although those of another MPI stand in the way. Usage: wrappers.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../../tap.sh"
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset LD_LIBRARY_PATH LIBRARY_PATH MPICH_FC OMPI_FC POSTERN_FC MPICH_CC OMPI_CC POSTERN_CC
cd "$dir"

meson install --no-rebuild -C "$build" --destdir "$dir/root" >"$dir/install.log" 2>&1
prefix=$(meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
root=$dir/root$prefix
built=$build/tools/mpicc
bin=$root/bin

cat >"$dir/sum77.f" <<'END77'
      PROGRAM SUM77
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, TOTAL, IERR
      REAL X, Y
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      CALL MPI_ALLREDUCE(RANK, TOTAL, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, IERR)
      X = 1.0
      CALL MPI_ALLREDUCE(X, Y, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD,
     &  IERR)
      IF (RANK .EQ. 0 .AND. Y .EQ. RANKS)
     &  WRITE(*,'(A,I0,A,I0)') 'sum ', TOTAL, ' of ', RANKS
      CALL MPI_FINALIZE(IERR)
      END
END77
cat >"$dir/sum90.f90" <<'END90'
program sum90
  use mpi
  integer :: rank, ranks, total, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a, i0, a, i0)', 'sum ', total, ' of ', ranks
  call MPI_Finalize(ierr)
end program sum90
END90
sed 's/use mpi/use mpi_f08/; s/sum90/sum08/; s/, ierr)/)/; s/(ierr)/()/; s/, ierr$//' sum90.f90 >sum08.f90

# Another MPI, of which a program must get nothing.
other=$dir/other
mkdir "$other"
cat >"$other/other.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#define OTHER(name) int name(void) { puts("another MPI"); exit(1); }
OTHER(MPI_Init) OTHER(PMPI_Init) OTHER(mpi_init_) OTHER(mpi_comm_rank_) OTHER(mpi_comm_size_) OTHER(mpi_allreduce_)
OTHER(mpi_finalize_)
END
cc -w -shared -fPIC -Wl,-soname,libmpi.so.40 "$other/other.c" -o "$other/libmpi.so.40"
for name in mpi mpich mpi_abi mpifort mpifort_abi mpichfort mpi_mpifh mpi_usempif08; do
	ln -s libmpi.so.40 "$other/lib$name.so"
done

# runs COMMAND: on three ranks, if it is the sum
runs() {
	local out
	out=$(timeout 60 "$bin/mpiexec" -n 3 "$1") || return
	echo "$out"
	[ "$out" = "sum 3 of 3" ]
}
builds() {
	local wrapper=$1 source=$2
	shift 2
	"$wrapper" "$@" "$dir/$source" -o "$dir/program" && runs "$dir/program"
}
in_two_steps() {
	"$1" -c "$dir/sum90.f90" -o "$dir/sum.o" && "$1" "$dir/sum.o" -o "$dir/program" &&
		runs "$dir/program"
}
# needs FORTRAN C: the first, and nothing of MPI but the two; a linker may see that the second is not needed
needs() {
	readelf -d "$dir/program" | grep -o 'NEEDED.*\[lib\(postern-\)\?mpi.*\]' | sed 's/.*\[\(.*\)\]/\1/' >needed
	cat needed
	grep -qFx "$1" needed && ! grep -vFx -e "$1" -e "$2" needed
}

for where in "$built" "$bin"; do
	place=installed
	[ "$where" = "$bin" ] || place="in the build tree"
	check "mpif77 with mpif.h, $place" builds "$where/mpif77" sum77.f
	check "mpif90 with module mpi, $place" builds "$where/mpif90" sum90.f90 -Wall -Werror
	check "mpifort with module mpi_f08, $place" builds "$where/mpifort" sum08.f90 -Wall -Werror
	check "it needs libpostern-mpifort.so.1" needs libpostern-mpifort.so.1 libpostern-mpi.so.1
	check "mpifort_abi, $place" builds "$where/mpifort_abi" sum08.f90
	check "it needs libpostern-mpifort_abi.so.1" \
		needs libpostern-mpifort_abi.so.1 libmpi_abi.so.1
	check "mpifort in two steps, $place" in_two_steps "$where/mpifort"
done

alone() {
	"$@" -o "$dir/static" && runs "$dir/static" && ! readelf -d "$dir/static" | grep NEEDED
}
for where in "$built" "$bin"; do
	check "mpif77 -static, ${where#"$dir/"}" alone "$where/mpif77" -static "$dir/sum77.f"
	check "mpifort -static, ${where#"$dir/"}" alone "$where/mpifort" -static "$dir/sum08.f90"
done

ours() {
	builds "$@" && needs libpostern-mpifort.so.1 libpostern-mpi.so.1
}
behind() {
	"$1" "$dir/sum77.f" "-L$other" -Wl,--as-needed -lmpi_usempif08 -lmpi_mpifh -lmpi -o "$dir/program" &&
		runs "$dir/program" && needs libpostern-mpifort.so.1 libpostern-mpi.so.1
}
# as Autoconf's FLIBS are
system=/usr/lib/$(cc -print-multiarch)
for where in "$built" "$bin"; do
	check "the system's folder first" ours "$where/mpif77" sum77.f "-L$system" -lgfortran -lm
	check "another MPI's folder first" ours "$where/mpifort" sum77.f "-L$other" -lmpichfort -lmpi
	check "its libraries named behind the source, where nothing is linked that is not needed" behind "$where/mpif90"
done

# Longer default kinds: INTEGERs that are not MPI's are an error of the compiler, not of the run.
cat >"$dir/time.f" <<'ENDTIME'
      PROGRAM TIME
      INCLUDE 'mpif.h'
      INTEGER IERR
      DOUBLE PRECISION T
      CALL MPI_INIT(IERR)
      T = MPI_WTIME()
      IF (T .GT. 0.01 .AND. MPI_WTIME() - T .LT. 60) PRINT '(A)', 'time'
      CALL MPI_FINALIZE(IERR)
      END
ENDTIME
refuses_integers() {
	"$built/mpif77" -fdefault-integer-8 -c "$dir/time.f" -o "$dir/time.o" 2>errors && return 1
	cat errors
	grep -q 'mpif\.h:' errors
}
tells_time() {
	"$built/mpif77" "$@" "$dir/time.f" -o "$dir/program" &&
		[ "$(timeout 60 "$bin/mpiexec" -n 1 "$dir/program")" = time ]
}
check "mpif.h with INTEGERs of 8 bytes is an error" refuses_integers
check "MPI_WTIME with longer REALs" tells_time -fdefault-real-8

# ---- what they say ------------------------------------------------------------------------------

says() {
	local wanted=$1 out
	shift
	out=$("$@") || return
	echo "$out"
	grep -qE -- "$wanted" <<<"$out"
}
shown_works() {
	local command
	command=$("$1" -show "$dir/sum77.f" -o "$dir/program")
	sh -c "$command" && runs "$dir/program"
}
check "-show is a command that works" shown_works "$bin/mpifort"
check "also in the build tree" shown_works "$built/mpifort"
check "-show runs nothing" says '^gfortran -I.*/mpifort.* -L.*nothing\.f .*-lpostern-mpifort -lpostern-mpi -Wl,--pop-state$' \
	"$bin/mpif90" -show nothing.f
check "-compile-info" says '^gfortran -I[^ ]*/postern/mpifort' "$bin/mpifort" -compile-info
check "-link-info" says '^gfortran .*-L.* -lpostern-mpifort_abi -lpostern-mpi_abi -Wl,--pop-state$' "$bin/mpifort_abi" -link_info
check "--showme:libs" says '^postern-mpifort postern-mpi$' "$bin/mpifort" --showme:libs
check "POSTERN_FC names the compiler" says '^other -I' env POSTERN_FC=other "$bin/mpifort" -show
check "MPICH_FC does too" says '^other -I' env MPICH_FC=other "$bin/mpif77" -show
check "-fc= comes before all" says '^mine -I' env POSTERN_FC=first "$bin/mpifort" -fc=mine -show

# ---- pkg-config --------------------------------------------------------------------------------

pc=$(find "$root" -name postern-mpifort.pc)
by_pkg_config() {
	local flags
	flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config "--define-variable=prefix=$root" --cflags --libs \
		"postern-$1") || return
	# shellcheck disable=SC2086
	gfortran "$dir/sum08.f90" "-L$other" $flags -o "$dir/program" && runs "$dir/program" &&
		needs "libpostern-$1.so.1" "$2"
}
check "pkg-config postern-mpifort" by_pkg_config mpifort libpostern-mpi.so.1
check "pkg-config postern-mpifort_abi" by_pkg_config mpifort_abi libmpi_abi.so.1

# ---- CMake -------------------------------------------------------------------------------------

mkdir "$dir/cmake"
cp "$dir"/sum* "$dir/cmake"
cat >"$dir/cmake/CMakeLists.txt" <<'ENDCMAKE'
cmake_minimum_required(VERSION 3.16)
project(sum Fortran)
find_package(MPI REQUIRED COMPONENTS Fortran)
link_directories($ENV{OTHER})
foreach(program sum77.f sum90.f90 sum08.f90)
  get_filename_component(name ${program} NAME_WE)
  add_executable(${name} ${program})
  target_link_libraries(${name} MPI::MPI_Fortran)
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/found.txt "${MPIEXEC_EXECUTABLE}
header ${MPI_Fortran_HAVE_F77_HEADER}
mpi ${MPI_Fortran_HAVE_F90_MODULE}
mpi_f08 ${MPI_Fortran_HAVE_F08_MODULE}
version ${MPI_Fortran_VERSION}
")
ENDCMAKE
find_mpi() {
	OTHER=$other CMAKE_LIBRARY_PATH=$other PATH=$bin:$PATH cmake -G Ninja -S "$dir/cmake" -B "$dir/cmake/build" && cmake --build "$dir/cmake/build"
}
found() {
	cat "$dir/cmake/build/found.txt"
	grep -Fxi "$1" "$dir/cmake/build/found.txt"
}
if command -v cmake >/dev/null; then
	check "FindMPI builds with us" find_mpi
	check "it finds our mpiexec" found "$bin/mpiexec"
	check "it finds mpif.h" found "header TRUE"
	check "it finds module mpi" found "mpi TRUE"
	check "it finds module mpi_f08" found "mpi_f08 TRUE"
	check "it finds our version" found "version 5.0"
	for program in sum77 sum90 sum08; do
		check "$program runs" runs "$dir/cmake/build/$program"
		cp "$dir/cmake/build/$program" "$dir/program"
		check "$program has our libraries" needs libpostern-mpifort.so.1 libpostern-mpi.so.1
	done
else
	tap_skip "FindMPI builds with us" "no cmake here"
fi

tap_done
