#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The archive of `meson dist` builds and passes tests by itself; what is installed from it has guides, examples,
# licence and a modulefile, and `ninja uninstall` leaves nothing. Usage: dist.sh SOURCE_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
dir=$(mktemp -d)
prefix="$dir/a prefix"
trap 'rm -rf "$dir"' EXIT
if ! git -C "$source" rev-parse >/dev/null 2>&1; then
	tap_skip "the archive" "the sources are in no git repository"
	tap_done
	exit
fi
cd "$dir"
small=(-Dnals=shm -Dbench=false -Dfortran=disabled -Dbuildtype=debug -Dtests=enabled)

# what is committed is what the archive has
archive() {
	git clone -q "$source" clone && meson setup clone/build clone "${small[@]}" &&
		meson dist -C clone/build --no-tests --formats xztar && mkdir unpacked &&
		tar -xf clone/build/meson-dist/postern-*.tar.xz -C unpacked --strip-components=1 && rm -rf clone
}
builds() {
	meson setup build unpacked --prefix "$prefix" "${small[@]}" && ninja -C build
}
tests() {
	meson test -C build --no-rebuild --suite unit --timeout-multiplier 5 --no-suite all
}
installs() {
	meson install -C build --no-rebuild && cd "$prefix" &&
		ls share/doc/postern/{LICENSE,README.md,CHANGELOG.md,doc/mpi.md,doc/design/shm-lock.md,examples/mpi/hello.c} &&
		ls share/modulefiles/postern/* share/man/man7/mpi.7 && ! find share/doc -name meson.build | grep .
}
# a module's tools say what it sets
is_module() {
	sh -c 'command -v tclsh' || return 0
	cat >load.tcl <<-END
		proc module-whatis args {}
		proc conflict args {}
		proc setenv {name value} { puts "\$name=\$value" }
		proc prepend-path {name value} { puts "\$name=\$value" }
		source [lindex [glob -directory {$prefix/share/modulefiles/postern} *] 0]
	END
	tclsh load.tcl >paths && cat paths && grep -Fx "PATH=$prefix/bin" paths
}
# Programs are built by what is there, and find their library.
leads_there() {
	local program
	cp unpacked/examples/mpi/hello.c unpacked/examples/hello_put.c .
	"$prefix/bin/mpicc" hello.c -o by_mpicc && "$prefix/bin/mpicc" -static hello.c -o static || return
	export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
	eval "cc hello.c $(pkg-config --cflags --libs postern-mpi) -o by_pkg_config" &&
		eval "cc hello_put.c $(pkg-config --cflags --libs portals3) -o hello_put" || return
	for program in by_mpicc static by_pkg_config; do
		timeout 60 "$prefix/bin/mpiexec" -n 3 "./$program" | grep 'add up to 3' || return
	done
	timeout 60 "$prefix/bin/mpiexec" -n 2 ./hello_put
}
uninstalls() {
	ninja -C build uninstall && ! find "$prefix" ! -type d | grep .
}
check "meson dist makes an archive" archive
check "it builds" builds
check "its tests pass" tests
check "guides, examples, licence and modulefile are installed" installs
check "the modulefile leads there" is_module
check "mpicc, mpiexec and pkg-config lead there, though the prefix has a blank" leads_there
check "ninja uninstall leaves nothing" uninstalls

tap_done
