#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# `meson install` puts everything where it belongs, and a program that only knows pkg-config builds
# and runs against it, shared and static. The program is the one shown in the README.
# Usage: install.sh SOURCE_DIR BUILD_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
build=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check "meson install" meson install --no-rebuild -C "$build" --destdir "$dir/root"
cd "$dir"
prefix=$(meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
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
		has libmpifort.so.1 && has libmpifort_abi.so.1
}
if [ -f "$build/mpifort/mpif.h" ]; then
	check "Fortran's header, modules and libraries" fortran
else
	tap_skip "Fortran's header, modules and libraries" "no gfortran when this was built"
fi

{
	cd "$source/doc/man" && find . -name '*.[1-9]' -printf '%f\n'
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

# ---- a client ------------------------------------------------------------------------------------

pc=$(has pkgconfig/portals3.pc) || pc=$root/none
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/root

awk '/^```/ { inside = $0 == "```c"; next } inside' "$source/README.md" >hello.c

flags_of() {
	pkg-config "$@" portals3
}
build_shared() {
	# shellcheck disable=SC2046 # pkg-config gives words
	gcc -std=c11 -Wall -Wextra -Werror $(flags_of --cflags) hello.c -o shared $(flags_of --libs)
	readelf -d shared | grep 'NEEDED.*libportals\.so\.3'
}
build_static() {
	# shellcheck disable=SC2046
	gcc -std=c11 -Wall -Wextra -Werror -static $(flags_of --cflags) hello.c -o static \
		$(flags_of --static --libs)
}
runs() {
	local output
	output=$(LD_LIBRARY_PATH=$libdir "$@")
	printf '%s\n' "$output"
	grep -q 'hello' <<<"$output"
}
check "the README's program builds against the shared library" build_shared
check "it runs" runs ./shared
check "it builds against the static library" build_static
check "it runs without any library" env -u LD_LIBRARY_PATH ./static

tap_done
