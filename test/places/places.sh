#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Jobs in strange places, a kind at a time: a Portals program, an MPI program, RWAPI's and Directed
# Point's in each; it works, or ends with a sentence that says what to do. doc/places.md is the table.
# Usage: places.sh system|limits|containers|names|clock MPIEXEC REFUSE PORTALS MPI RWAPI DP
#        places.sh prefixes BUILD_DIR
# Within `check` nothing stops at a command that fails: the cases chain theirs.
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"
kind=$1 here=$PWD
examples=$(realpath "$(dirname "$0")/../../examples")
shift
mapfile -t programs < <(realpath "$@") # cases go to other folders
if [ "$kind" = prefixes ]; then
	build=${programs[0]}
else
	mpiexec=${programs[0]} refuse=${programs[1]} portals=${programs[2]} mpi=${programs[3]}
	rwapi=${programs[4]} dp=${programs[5]}
fi
dir=$(mktemp -d "$here/places-XXXXXX")
trap 'cd "$here"; rm -rf "$dir"' EXIT
export LC_ALL=C # the system's words for errors
unset PMI_FD PMI_RANK PMI_SIZE TMPDIR "${!PTL_@}"

# A library beside the program is not found without /proc.
libraries() {
	ldd "$portals" "$mpi" "$rwapi" "$dp" | sed -n 's,.*=> \(/.*\)/lib\(portals\|mpi\|postern-mpi\|rwapi\|dp\)[.].*,\1,p' |
		sort -u | paste -sd:
}

# job N PROGRAM...: the ranks end well; $each stands before each rank's program
each=()
job() {
	local n=$1 status=0
	shift
	timeout -k 5 60 "$mpiexec" -n "$n" ${each[@]+"${each[@]}"} "$@" </dev/null >"$dir/out" 2>&1 || status=$?
	cat "$dir/out"
	return "$status"
}
all_four() {
	job 2 "$portals" && job 2 "$mpi" use && job 3 "$rwapi" && job 3 "$dp"
}
# says CODE WORDS N PROGRAM...: the job ends with that exit code and a sentence with the words
says() {
	local code=$1 words=$2 status=0
	shift 2
	job "$@" >/dev/null || status=$?
	cat "$dir/out"
	echo "exit code $status"
	[ "$status" -eq "$code" ] && grep -q -- "$words" "$dir/out"
}

# in_mounts_of FLAGS SETUP COMMAND...: in namespaces of its own after these commands
in_mounts_of() {
	local flags=$1 setup=$2
	shift 2
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare "$flags" bash -eu -c 'eval "$1"; shift; "$@"' bash "$setup" "$@"
}
# What a shell inside of a namespace needs to go on.
selves() {
	declare -p mpiexec refuse portals mpi rwapi dp dir each
	declare -f job all_four says says_no_null
	# shellcheck disable=SC2016 # expanded by the inner shell
	echo '"$@"'
}
mounted() { # NAME SETUP FUNCTION...
	local name=$1 setup=$2
	shift 2
	# shellcheck disable=SC2016 # expanded by the inner shell
	if in_mounts_of -m "$setup" bash -c '[ -x "$0" ] && [ -w "$1" ]' "$mpiexec" "$dir" >/dev/null 2>&1; then
		check "$name" in_mounts_of -m "$setup" bash -eu -c "$(selves)" bash "$@"
	else
		tap_skip "$name" 'such mount namespaces are not permitted here, or they hide the build'
	fi
}
filtered() { # NAME CALLS ERRNO
	if "$refuse" "$2" "$3" true; then
		check "$1" "$refuse" "$2" "$3" bash -eu -c "$(selves)" bash all_four
	else
		tap_skip "$1" 'no system call filters are permitted here'
	fi
}

# ---- the system --------------------------------------------------------------------------------

as_nobody() {
	chmod 777 "$dir"
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		--no-new-privs bash -eu -c "$(selves)" bash all_four
}
says_no_null() {
	local status=0
	"$mpiexec" -n 2 "$portals" >"$dir/out" 2>&1 || status=$?
	cat "$dir/out"
	[ "$status" -eq 1 ] && grep -q 'cannot open /dev/null.*mknod' "$dir/out"
}

system() {
	if setpriv --reuid=65534 --regid=65534 --clear-groups "$mpiexec" -n 1 test -x "$portals" 2>/dev/null; then
		check 'a user without rights' as_nobody
	else
		tap_skip 'a user without rights' 'not root, or the build is in a directory of root'
	fi
	mounted 'no /dev/shm' 'mount -t tmpfs -o ro,size=4k none /dev/shm' all_four
	mounted 'a tiny /tmp' 'mount -t tmpfs -o size=4k none /tmp; mount -t tmpfs -o size=4k none /var/tmp' all_four
	# our own files stay writable, for the output
	mounted 'a root that is read-only' "mount --bind '$dir' '$dir'
		mount -o remount,bind,ro /
		if touch /places-$$ 2>/dev/null; then rm /places-$$; exit 1; fi" all_four
	LD_LIBRARY_PATH=$(libraries) mounted 'no /proc' 'mount -t tmpfs none /proc' all_four
	mounted 'no /dev/null' 'mount -t tmpfs none /dev' says_no_null
	filtered 'neither process_vm_readv nor ptrace (EPERM)' process_vm_readv,process_vm_writev,ptrace 1
	filtered 'neither process_vm_readv nor ptrace (ENOSYS)' process_vm_readv,process_vm_writev,ptrace 38
}

# ---- limits ------------------------------------------------------------------------------------

# within LIMIT FUNCTION...
within() {
	local option=${1% *} value=${1#* }
	shift
	(ulimit "$option" "$value" && "$@")
}
# The ranks alone: what starts them may need more.
ranks_within() {
	local option=${1% *} value=${1#* }
	shift
	# shellcheck disable=SC2016 # expanded by the inner shell
	each=(bash -c 'ulimit "$0" "$1" && shift && exec "$@"' "$option" "$value")
	"$@"
}
limits() {
	check '64 descriptors' within '-n 64' all_four
	check '10 descriptors are too few, and that is said' within '-n 10' says 126 'ulimit -n' 2 "$portals"
	check 'no locked memory' within '-l 0' all_four
	check 'a stack of 128 KiB' within '-s 128' all_four
	check '400 MB of addresses' within '-v 400000' all_four
	check '60 MB of addresses: RWAPI says what to raise' ranks_within '-v 60000' says 1 'ulimit -v' 2 "$rwapi"
	check '30 MB of addresses: MPI says what to lower or raise' ranks_within '-v 30000' says 1 'ulimit -v\|PTL_MPI_POOL_KIB' 2 "$mpi" use
	check 'a rank that fails there ends the job' ranks_within '-v 30000' says 1 'ending the job' 2 "$portals"
}

# ---- containers --------------------------------------------------------------------------------

# apart NAME FLAGS FUNCTION...: each rank in namespaces of its own
apart() {
	local name=$1
	local -a flags
	read -ra flags <<<"$2"
	shift 2
	if unshare "${flags[@]}" true 2>/dev/null; then
		each=(unshare "${flags[@]}")
		check "$name" "$@"
		each=()
	else
		tap_skip "$name" 'such namespaces are not permitted here'
	fi
}
no_windows() {
	says 39 'PID namespaces of their own' 2 "$mpi" use
}
three() {
	job 2 "$portals" && job 3 "$rwapi" && job 3 "$dp"
}
containers() {
	apart 'other ipc, host name and mount namespaces' '--ipc --uts --mount' all_four
	apart 'other pid namespaces' '--pid --fork --mount-proc --kill-child' three
	apart 'other pid namespaces: shared windows say why not' '--pid --fork --kill-child' no_windows
	# silent for a second is gone
	export PTL_NET_DEAD_MS=1000
	apart 'other network namespaces without a cable' '--net' says 58 'another network namespace' 2 "$mpi" use
	apart 'the same: RWAPI says why' '--net' says 1 'RWAPI: rank.*another network namespace' 3 "$rwapi"
	apart 'the same: Directed Point says why' '--net' says 1 'DP: node.*another network namespace' 3 "$dp"
	unset PTL_NET_DEAD_MS
	if unshare -rn true 2>/dev/null; then
		check 'one network namespace with lo down' unshare -rn bash -eu -c "$(selves)" bash all_four
	else
		tap_skip 'one network namespace with lo down' 'such namespaces are not permitted here'
	fi
}

# ---- names and paths ---------------------------------------------------------------------------

without_home() {
	env -u HOME -u USER -u LOGNAME "$mpiexec" -n 2 "$mpi" use && env -i "$mpiexec" -n 2 "$portals"
}
# At this place the programs run from it, in it, with their files there.
in_place() {
	cd "$1" && cp "$portals" './a program' && cp "$mpi" './an mpi program' || return
	LD_LIBRARY_PATH=$(libraries) TMPDIR=$PWD job 2 './a program' || return
	LD_LIBRARY_PATH=$(libraries) TMPDIR=$PWD job 2 "./an mpi program" use || return
	if "$refuse" memfd_create 1 true; then # then its memory is a file there, or in /dev/shm
		LD_LIBRARY_PATH=$(libraries) TMPDIR=$PWD "$refuse" memfd_create 1 timeout -k 5 60 \
			"$mpiexec" -n 2 './an mpi program' use
	fi
}
blanks() {
	mkdir "$dir/a place  with blanks" && in_place "$dir/a place  with blanks"
}
deep() { # in a directory whose path has about 4,000 characters
	local name
	name=$(printf 'd%.0s' {1..200})
	cd "$dir" || return
	while [ ${#PWD} -lt 3800 ]; do
		mkdir -p "$name" && cd "$name" || return
	done
}
long_path() {
	deep && in_place "$PWD" && LD_LIBRARY_PATH=$(libraries) job 2 "$PWD/a program" && job 2 -wdir "$PWD" "$portals"
}
too_long_is_said() {
	deep && says 127 'give the path of a program' 2 "$PWD/none"
}
nameless() {
	in_mounts_of -um 'hostname no.such.host.invalid
		mount --bind /dev/null /etc/resolv.conf
		mount --bind /dev/null /etc/hosts' bash -eu -c "$(selves)" bash all_four
}
names() {
	check 'HOME is not set' without_home
	check 'paths with blanks' blanks
	check 'paths of 4,000 characters' long_path
	check 'a wrong path of 4,000 characters: the reason is said' too_long_is_said
	if unshare -um true 2>/dev/null; then
		check 'a host whose name does not resolve' nameless
	else
		tap_skip 'a host whose name does not resolve' 'such namespaces are not permitted here'
	fi
}

# ---- prefixes ----------------------------------------------------------------------------------

option() {
	meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}
installs() {
	meson install --no-rebuild -C "$build" --destdir "$dir/root" >"$dir/install.log" 2>&1 || tail "$dir/install.log"
	[ -e "$installed/bin/mpicc" ] && [ -d "$installed/$libdir/pkgconfig" ]
}
# What programs need of it is here as well.
linked_here() {
	mkdir -p "$(dirname "$libdir")" && cp -al "$installed/bin" "$installed/include" . && cp -al "$installed/$libdir" "$libdir"
}
# The wrappers and pkg-config lead there, and what they build finds its library there.
builds_here() {
	local prefix=$PWD program
	cat >"$dir/sum.c" <<-'END'
		#include <mpi.h>
		#include <stdio.h>
		int main(int argc, char **argv)
		{
			int rank, sum;

			MPI_Init(&argc, &argv);
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
			MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			if (!rank)
				printf("sum %d\n", sum);
			return MPI_Finalize();
		}
	END
	cp "$examples/hello_put.c" "$dir" && cd "$dir" || return
	"$prefix/bin/mpicc" sum.c -o by_mpicc && "$prefix/bin/mpicc" -static sum.c -o static &&
		sh -c "$("$prefix/bin/mpicc" -show sum.c -o shown)" || return
	export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
	eval "cc sum.c $(pkg-config --define-prefix --cflags --libs postern-mpi) -o by_pkg_config" || return
	eval "cc hello_put.c $(pkg-config --define-prefix --cflags --libs portals3) -o hello_put" || return
	for program in by_mpicc static shown by_pkg_config; do
		[ "$(timeout 60 "$prefix/bin/mpiexec" -n 3 "./$program")" = 'sum 3' ] || return
		! ldd "$program" 2>/dev/null | grep -F 'not found' || return
	done
	timeout 60 "$prefix/bin/mpiexec" -n 2 ./hello_put
}
blank_prefix() {
	mkdir "$dir/a prefix  with blanks" && cd "$dir/a prefix  with blanks" && linked_here && builds_here
}
long_prefix() {
	deep && linked_here && builds_here
}
prefixes() {
	libdir=$(option libdir)
	installed=$dir/root$(option prefix)
	installs || exit 1
	check 'a prefix with blanks' blank_prefix
	check 'a prefix of 4,000 characters' long_prefix
}

# ---- clocks ------------------------------------------------------------------------------------

# The clock of each process jumps by a day and back all the time.
jumps() {
	local lib=$1 pid status=0
	echo '+0' >"$dir/clock"
	(while :; do
		for by in +1d -1d +0; do
			echo "$by" >"$dir/clock.new"
			mv "$dir/clock.new" "$dir/clock"
			sleep 0.02
		done
	done) &
	pid=$!
	each=(env "LD_PRELOAD=$lib" "FAKETIME_TIMESTAMP_FILE=$dir/clock" FAKETIME_NO_CACHE=1
		FAKETIME_DONT_FAKE_MONOTONIC=1)
	all_four || status=$?
	each=()
	kill "$pid"
	return "$status"
}
other_times() {
	each=(unshare --time --monotonic 900000 --boottime 900000 --fork)
	all_four
}
clock() {
	local lib
	lib=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
	case $lib in
	'') tap_skip 'a clock that jumps' 'libfaketime is not installed' ;;
	*) check 'a clock that jumps' jumps "$lib" ;;
	esac
	if unshare --time --monotonic 900000 --fork true 2>/dev/null; then
		check 'a clock since boot that differs' other_times
	else
		tap_skip 'a clock since boot that differs' 'time namespaces are not permitted here'
	fi
}

"$kind"
tap_done
