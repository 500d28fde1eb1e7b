#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# `meson install` puts everything where it belongs, and what the README shows does what it says there: its
# program is built and run by its command, without a variable or an option more, shared and static.
# Usage: install.sh SOURCE_DIR BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
build=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Settings that the README does not name must not help.
unset PKG_CONFIG_PATH PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH
unset LD_RUN_PATH

check "meson install" meson install --no-rebuild -C "$build" --destdir "$dir/root"
cd "$dir"
option() {
	meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}
prefix=$(option prefix)
libdir=$(option libdir)
root=$dir/root$prefix

same_list() {
	diff "$1" "$2"
}

has() {
	find "$root" -path "*/$1" | grep .
}

# ---- files ---------------------------------------------------------------------------------------

(cd "$source/include" && find . -name '*.h' | sed 's,^\./mpi,./postern/mpi,' | sort) >want
(cd "$root/include" && find . -name '*.h' ! -path './postern/mpifort/*' | sort) >have
check "all headers, in their folders" same_list want have
fortran() {
	ls "$root/include/postern/mpifort"/{mpif.h,mpi.mod,mpi_f08.mod} &&
		has libpostern-mpifort.so.1 && has libpostern-mpifort_abi.so.1
}
if [ -f "$build/mpifort/mpif.h" ]; then
	check "Fortran's header, modules and libraries" fortran
else
	tap_skip "Fortran's header, modules and libraries" "no gfortran when this was built"
fi

{
	cd "$source/doc/man" && find . -name '*.[1-9]' -printf '%f\n' |
		if [ "$(option bench)" = False ]; then grep -v '^ptlperf\|^dp_bench\|^rwapi_bench'; else cat; fi
	echo portals.7
	python3 "$source/mpi_shim/gen/man.py" --list "$source"/include/mpi*/mpi.h | sed 's/$/.3/'
} | sort >"$dir/want"
find "$root/share/man" -name '*.[1-9]' -printf '%f\n' | sort >"$dir/have"
check "all manual pages" same_list "$dir/want" "$dir/have"

check "shared library" has 'libportals.so.3'
check "shared library, development name" has 'libportals.so'
check "static library" has 'libportals.a'
check "pkg-config file" has 'pkgconfig/portals3.pc'

is_soname() {
	readelf -d "$(has libportals.so.3)" | grep 'SONAME.*\[libportals\.so\.3\]'
}
check "the soname is libportals.so.3" is_soname

# Installed programs find their libraries, wherever they are.
find_theirs() {
	local file
	for file in "$root"/bin/* "$root/$libdir"/*.so.*; do
		readelf -h "$file" >readelf.out 2>&1 || continue
		! ldd "$file" | grep 'not found' || return
	done
}
check "programs and libraries find their libraries" find_theirs

# ---- a client ------------------------------------------------------------------------------------

awk '/^```/ { inside = $0 == "```c"; next } inside' "$source/README.md" >hello.c
command=$(sed -n 's/^    \(cc hello\.c .*\) && \.\/a\.out$/\1/p' "$source/README.md")

# in_place COMMAND...: with what was installed where it will be, for this command alone
in_place() {
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare --mount --map-root-user sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$root" "$prefix" "$@"
}
# elsewhere COMMAND...: where that cannot be had, with a pkg-config that knows where it is
elsewhere() {
	mkdir -p bin
	printf '#!/bin/sh\nPKG_CONFIG_PATH=%q exec %q --define-variable=prefix=%q "$@"\n' \
		"$root/$libdir/pkgconfig" "$(command -v pkg-config)" "$root" >bin/pkg-config
	chmod +x bin/pkg-config
	PATH=$PWD/bin:$PATH "$@"
}
view=elsewhere
if [ -d "$prefix" ] && in_place true 2>/dev/null &&
	pkg-config --variable pc_path pkg-config | tr : '\n' | grep -qFx "$prefix/$libdir/pkgconfig"; then
	view=in_place
fi
echo "# the program sees it $view"

builds() {
	[ -n "$command" ] && "$view" sh -c "$command -std=c11 -Wall -Wextra -Werror" &&
		readelf -d a.out | grep 'NEEDED.*libportals\.so\.3'
}
# shellcheck disable=SC2016
static='cc -static hello.c -o static $(pkg-config --static --cflags --libs portals3)'
builds_static() {
	"$view" sh -c "$static" && ! readelf -d static | grep NEEDED
}
runs() {
	local output
	output=$("$@") || return
	printf '%s\n' "$output"
	grep -q 'hello' <<<"$output"
}
check "the README's command builds its program" builds
check "it runs" runs "$view" ./a.out
check "the same against the static library" builds_static
check "it runs without any library" runs ./static

tap_done
