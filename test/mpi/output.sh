#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The output of ranks is not lost when the job is ended, whatever ends it, in whichever language
# they are written, and wherever the output goes. Usage: output.sh MPIEXEC BUILD-DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

mpiexec=$1
wrappers=$2/tools/mpicc
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset "${!PMI_@}"

# Ends the job in the background when its last rank has seen all print.
end_it() {
	local deadline=$((SECONDS + 60))
	until grep -q 'all said' "$dir/err"; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.02
	done
	kill "$(cat "$dir/pid")"
}

# kept PROGRAM HOW STATUS WHERE [OPTION...]: two ranks of the program, and one in C that brings the end.
kept() {
	local program=$1 how=$2 wanted=$3 where=$4 ender status=0
	shift 4
	: >"$dir/err"
	ender=
	if [ "$how" = kill ]; then
		end_it &
		ender=$!
	fi
	# shellcheck disable=SC2016 # the inner shell expands
	set -- timeout 100 sh -c 'echo $$ >"$0"; exec "$@"' "$dir/pid" "$mpiexec" "$@" \
		-n 2 "$program" : -n 1 "$dir/says_c" "$how"
	case $where in
	file) "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$? ;;
	append) "$@" >>"$dir/out" 2>"$dir/err" </dev/null || status=$? ;;
	pipe) "$@" 2>"$dir/err" </dev/null | cat >"$dir/out" || status=$? ;;
	esac
	[ -z "$ender" ] || wait "$ender"
	[ "$status" -eq "$wanted" ] && [ "$(grep -c 'said by rank [012]$' "$dir/out")" -eq 3 ] && return
	echo "status $status; output:"
	cat "$dir/out" "$dir/err"
	return 1
}
all_ends() {
	set -o pipefail
	kept "$1" abort 3 file || return
	kept "$1" crash 137 file || return
	kept "$1" exit 4 file || return
	kept "$1" kill 143 file || return
	kept "$1" abort 3 pipe || return
	kept "$1" crash 137 pipe || return
	kept "$1" abort 3 file -l || return
	rm "$dir/out"
	kept "$1" abort 3 append
}

# build LANGUAGE WRAPPER SOURCE
build() {
	"$wrappers/$2" -w -o "$dir/says_$1" "$here/$3" || exit 1
	check "what programs in $1 have printed is kept" all_ends "$dir/says_$1"
}

own_buffer() {
	cat >"$dir/own.c" <<-'END'
		#include <mpi.h>
		#include <stdio.h>
		#include <stdio_ext.h>

		int main(void)
		{
			static char own[5000];

			setvbuf(stdout, own, _IOFBF, sizeof(own));
			MPI_Init(NULL, NULL);
			MPI_Finalize();
			return __flbf(stdout) || __fbufsize(stdout) != sizeof(own);
		}
	END
	"$wrappers/mpicc" "$dir/own.c" -o "$dir/own" && timeout 60 "$mpiexec" -n 1 "$dir/own"
}

export PTL_QUIET=1
check 'a buffer that a program has given standard output stays' own_buffer
build c mpicc says.c
if command -v c++ >/dev/null; then
	build c++ mpicxx says.cc
else
	tap_skip 'what programs in c++ have printed is kept' 'there is no C++ compiler'
fi
if [ -e "$wrappers/mpifort" ]; then
	build fortran mpifort says.f90
else
	tap_skip 'what programs in fortran have printed is kept' 'MPI for Fortran was not built'
fi
tap_done
