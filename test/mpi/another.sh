#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Two MPIs in one process, and parts compiled with the mpi.h of another: our library says so in one line.
# Other MPIs are stand-ins; MPICH and Open MPI themselves where they are installed. Usage: another.sh BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
build=$1
mpicc=$build/tools/mpicc/mpicc
mpicc_abi=$build/tools/mpicc/mpicc_abi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset LD_LIBRARY_PATH LD_PRELOAD MPICH_CC OMPI_CC POSTERN_CC
cd "$dir"

cat >main.c <<'END'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	printf("%d\n", size);
	MPI_Finalize();
	return 0;
}
END
# MPI_COMM_WORLD by Open MPI's header, and a library with it.
cat >other.c <<'END'
int ompi_mpi_comm_world[64];
int PMPI_Init(void) { return 0; }
int MPI_Init(void) { return 0; }
int MPI_Comm_size(void *comm, int *size) { *size = 77; return 0; }
int MPI_Finalize(void) { return 0; }
END
cat >part.c <<'END'
extern int ompi_mpi_comm_world[64];
int MPI_Comm_size(void *comm, int *size);
int part(int *size) { return MPI_Comm_size(&ompi_mpi_comm_world, size); }
END
sed 's/MPI_Comm_size(MPI_COMM_WORLD, /part(/; s/^int main/int part(int *);\n\n&/' main.c >with_part.c
# MPI_COMM_WORLD, MPI_DOUBLE and the others of a header with numbers of its own
cat >numbers.c <<'END'
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void *handle = (void *)(intptr_t)(int)strtoul(argv[2], NULL, 0);
	int n = 1;

	MPI_Init(&argc, &argv);
	switch (argv[1][0]) {
	case 'c': return MPI_Comm_size(handle, &n);
	case 'd': return MPI_Type_size(handle, &n);
	case 'o': return MPI_Op_commutative(handle, &n);
	case 'i': return MPI_Info_free((MPI_Info *)&handle);
	case 'g': return MPI_Group_size(handle, &n);
	case 'w': return MPI_Win_fence(0, handle);
	case 'e': return MPI_Comm_set_errhandler(MPI_COMM_WORLD, handle);
	case 'r': return MPI_Cancel((MPI_Request *)&handle);
	}
	return 0;
}
END
# As interpreters do: the library is opened by name and nobody else sees it.
cat >opens.c <<'END'
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *first = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : stdout;
	void *mpi = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	int (*init)(void *, void *), (*size)(void *, int *), (*fini)(void), n = 0;

	if (!first || !mpi) {
		puts(dlerror());
		return 1;
	}
	init = (int (*)(void *, void *))dlsym(mpi, "MPI_Init");
	size = (int (*)(void *, int *))dlsym(mpi, "MPI_Comm_size");
	fini = (int (*)(void))dlsym(mpi, "MPI_Finalize");
	if (init(NULL, NULL) || size((void *)0x101, &n) || fini())
		return 1;
	printf("%d\n", n);
	return 0;
}
END
cc -w -shared -fPIC -Wl,-soname,libmpi.so.40 other.c -o libmpi.so.40
cc -w -shared -fPIC part.c -o libpart.so ./libmpi.so.40 -Wl,-rpath,"$dir"

# run PROGRAM ARGUMENT...: what it printed is in out and err
run() {
	local status=0
	timeout 60 "$@" >out 2>err || status=$?
	cat out err
	return "$status"
}
quietly() {
	run "$@" && [ "$(cat out)" = 1 ] && [ ! -s err ]
}
two() {
	[ "$(grep -c 'two MPI libraries' err)" -eq 1 ] &&
		grep -E "two MPI libraries in this process, [^ ]*$1[^ ]* and [^ ]*$2[^ ]*: calls go to the first" err
}

# ---- two libraries ------------------------------------------------------------------------------

plain() {
	"$mpicc" main.c -o program && quietly ./program
}
other_first() {
	"$mpicc" main.c ./libmpi.so.40 -Wl,-rpath,"$dir" -o program && run ./program && [ "$(cat out)" = 77 ] &&
		two libmpi.so.40 libpostern-mpi.so.1
}
preloaded() {
	"$mpicc" main.c -o program && run env LD_PRELOAD=./libmpi.so.40 ./program && two libmpi.so.40 libpostern-mpi.so.1
}
ours_first() {
	"$mpicc" main.c -Wl,--no-as-needed ./libpart.so -Wl,-rpath-link,"$dir" -o program && run ./program &&
		[ "$(cat out)" = 1 ] && two libpostern-mpi.so.1 libmpi.so.40
}
both_of_ours() {
	"$mpicc_abi" -shared -fPIC -x c - -o libabi.so <<<'#include <mpi.h>
int more(int *size) { return MPI_Comm_size(MPI_COMM_WORLD, size); }' &&
		"$mpicc" main.c -Wl,--no-as-needed ./libabi.so -o program && quietly ./program &&
		"$mpicc_abi" main.c -Wl,--no-as-needed "$build/mpi_shim/libpostern-mpi.so.1" -o program && quietly ./program
}
check "one library: not a word" plain
check "another MPI is called: it is named first" other_first
check "the same if it was preloaded" preloaded
check "another MPI comes with a library: the program works, and it is named" ours_first
check "both of our libraries: not a word" both_of_ours

opened() {
	cc opens.c -o opens && quietly ./opens "$build/mpi_shim/$1" "${@:2}"
}
check "a program opens libmpi" opened libpostern-mpi.so.1
check "a program opens libmpi_abi" opened libmpi_abi.so.1
check "also behind another MPI, as translators do" opened libpostern-mpi.so.1 ./libmpi.so.40

# ---- another header -----------------------------------------------------------------------------

# says TEXT COMMAND...: it ends with an error, which is this
says() {
	local text=$1
	shift
	! run "$@" && grep -q "$text" err
}
with_open_mpi() {
	"$mpicc" with_part.c ./libpart.so -Wl,-rpath-link,"$dir" -o program &&
		says "a handle as in Open MPI's mpi.h" ./program
}
number() {
	says "a handle as in MPICH's mpi.h" ./numbers "$1" "$2"
}
ours_stale() {
	says "not the handle of a communicator" ./numbers communicator 0x10000007
}
check "a part with Open MPI's header" with_open_mpi
check "numbers" "$mpicc" numbers.c -o numbers
check "MPICH's MPI_COMM_WORLD" number communicator 0x44000000
check "MPICH's MPI_DOUBLE" number datatype 0x4c00080b
check "MPICH's MPI_FLOAT_INT" number datatype 0x8c000000
check "MPICH's MPI_SUM" number operation 0x58000003
check "MPICH's MPI_INFO_NULL" number info 0x1c000000
check "MPICH's MPI_GROUP_EMPTY" number group 0x48000000
check "MPICH's MPI_WIN_NULL" number window 0x20000000
check "MPICH's MPI_ERRORS_RETURN" number errhandler 0x54000001
check "MPICH's MPI_REQUEST_NULL" number request 0x2c000000
check "an own handle that is none any more" ours_stale

# ---- the others themselves ----------------------------------------------------------------------

mpich() {
	mpicc.mpich -c main.c -o main.o && "$mpicc" main.o -o program && says "MPICH's mpi.h" ./program
}
open_mpi() {
	sed 's/int main(.*/int part(int *size)/; /MPI_Init\|printf\|MPI_Finalize/d; s/int size;//; s/&size/size/' \
		main.c >real.c
	mpicc.openmpi -shared -fPIC real.c -o libreal.so &&
		"$mpicc" with_part.c ./libreal.so -o program && says "Open MPI's mpi.h" ./program &&
		two libpostern-mpi.so.1 libmpi.so
}
if command -v mpicc.mpich >/dev/null; then
	check "an object of MPICH's mpicc" mpich
else
	tap_skip "an object of MPICH's mpicc" "no mpicc.mpich here"
fi
if command -v mpicc.openmpi >/dev/null; then
	check "a library of Open MPI's mpicc" open_mpi
else
	tap_skip "a library of Open MPI's mpicc" "no mpicc.openmpi here"
fi

tap_done
