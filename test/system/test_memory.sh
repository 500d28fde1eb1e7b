#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs' use of a machine's memory and limits: address space, core files, file lengths, and what they
# do where memory that processes share is hard to come by.
# Usage: test_memory.sh MPIEXEC JOB REFUSE
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
mpiexec=$1 job=$2 refuse=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# right N ARGUMENT...: a job of N ranks is right
right() {
	local n=$1
	shift
	timeout 120 "$mpiexec" -n "$n" "$job" "$@" </dev/null >"$dir/out" 2>&1 || true
	grep -q '^right$' "$dir/out" || {
		cat "$dir/out"
		return 1
	}
}

# within LIMIT N ARGUMENT...: the same under `ulimit LIMIT`
within() {
	local option=${1% *} value=${1#* }
	shift
	(ulimit "$option" "$value" && right "$@")
}

# without CALLS ERRNO: a job to which the system refuses these calls is right
without() {
	timeout 120 "$refuse" "$1" "$2" "$mpiexec" -n 3 "$job" use </dev/null >"$dir/out" 2>&1 || true
	grep -q '^right$' "$dir/out" || {
		cat "$dir/out"
		return 1
	}
}

# ended_with WORDS CODE: a job failed by itself and said so
ended_with() {
	if [ "$2" -eq 0 ] || [ "$2" -ge 124 ] || ! grep -q "$1" "$dir/out"; then
		echo "code $2"
		cat "$dir/out"
		return 1
	fi
}

# says WORDS LIMIT: a job under that limit ends with a sentence that has the words, and by no signal
says() {
	local words=$1 option=${2% *} value=${2#* } code=0
	(ulimit "$option" "$value" && timeout 60 "$mpiexec" -n 2 "$job" use) </dev/null >"$dir/out" 2>&1 ||
		code=$?
	ended_with "$words" "$code"
}

# dumps LEAST MOST: KiB of shared memory in a core file, with a window of 8 MiB of each of two ranks
dumps() {
	local kib
	right 2 dump $((8 << 20)) || return 1
	kib=$(sed -n 's/ KiB$//p' "$dir/out")
	echo "$kib KiB"
	[ "$kib" -ge "$1" ] && [ "$kib" -le "$2" ]
}

check '8 ranks take no more than 1 GB of addresses each' right 8 size 953
check '4 ranks work within 2 GB of addresses' within '-v 2000000' 4 use
check 'a core has of the shared memory what is the own of a window' dumps 8192 8200
check 'a core has all of it if that is wanted' env PTL_DUMP_SHARED=1 bash -c "
	. '$(dirname "$0")/../tap.sh'
	mpiexec='$mpiexec' job='$job' dir='$dir'
	$(declare -f right dumps)
	dumps 20000 1000000"
check 'files of 100 MB are enough' within '-f 100000' 3 use
check 'files of 20 MB are enough' within '-f 20000' 2 use
check 'files of 1 MB are not, and that is said' says 'ulimit -f' '-f 1000'

if ! "$refuse" memfd_create 1 true; then
	tap_skip 'without memfd_create' 'no system call filters are permitted here'
else
	check 'without memfd_create (EPERM)' without memfd_create 1
	check 'without memfd_create (ENOSYS) and fallocate' without memfd_create,fallocate 38
	check 'without madvise' without madvise 38
fi

# tiny COMMAND...: where /dev/shm has 64 KiB, and TMPDIR is elsewhere
tiny() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m bash -eu -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm; "$@"' bash "$@"
}

# narrow COMMAND...: where /dev/shm has room for some of the ranks, that all look at the same time
narrow() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	env -u TMPDIR unshare -m bash -eu -c 'mount -t tmpfs -o size=30m tmpfs /dev/shm; "$@"' bash "$@"
}

# full COMMAND...: where neither /dev/shm nor /tmp has room
full() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m bash -eu -c '
		mount -t tmpfs -o size=1m tmpfs /dev/shm
		mount -t tmpfs -o size=1m tmpfs /tmp
		"$@"' bash "$@"
}

short_of_room() {
	local code=0
	TMPDIR=/tmp full timeout 60 "$refuse" memfd_create 1 "$mpiexec" -n 2 "$job" use </dev/null >"$dir/out" 2>&1 || code=$?
	ended_with 'memfd_create.*No space left' "$code"
}

# The dynamic linker finds no library beside the program without /proc.
without_proc() {
	local libs
	libs=$(ldd "$job" | sed -n 's,.*=> \(.*\)/libpostern-mpi[.].*,\1,p')
	# shellcheck disable=SC2016 # expanded by the inner shell
	LD_LIBRARY_PATH=$libs timeout 120 unshare -m bash -eu -c 'mount -t tmpfs tmpfs /proc; "$@"' bash \
		"$mpiexec" -n 3 "$job" use </dev/null >"$dir/out" 2>&1 || true
	grep -q '^right$' "$dir/out" || {
		cat "$dir/out"
		return 1
	}
}

if ! tiny true >/dev/null 2>&1; then
	tap_skip 'without memfd_create, with a small /dev/shm' 'mount namespaces are not permitted here'
	tap_skip 'without /proc' 'mount namespaces are not permitted here'
else
	if "$refuse" memfd_create 1 true; then
		check 'without memfd_create, with a small /dev/shm' tiny timeout 120 bash -c "
			mpiexec='$mpiexec' job='$job' refuse='$refuse' dir='$dir'
			$(declare -f without)
			without memfd_create 1"
		check 'without memfd_create, with a /dev/shm for some of the ranks' narrow timeout 120 bash -c "
			mpiexec='$mpiexec' job='$job' refuse='$refuse' dir='$dir'
			$(declare -f without)
			without memfd_create 1"
		case $mpiexec:$job in
		/tmp/* | *:/tmp/*) tap_skip 'no room anywhere is said' 'the build is in /tmp' ;;
		*) check 'no room anywhere is said' short_of_room ;;
		esac
	fi
	check 'without /proc' without_proc
fi
tap_done
