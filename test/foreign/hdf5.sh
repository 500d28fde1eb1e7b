#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# HDF5 and NetCDF, built from Debian's source packages with the compilers of a build, and their own
# parallel tests with its mpiexec: hdf5.sh BUILD [WORK]. Nothing of them is kept in this repository.
#
# WORK, by default a folder of the build, keeps sources and what was built, so that a second run only
# tests. FOREIGN_RANKS is the number of ranks (4), FOREIGN_STEPS the last of the steps: fetch, configure,
# make, test. Case by case the output of what failed lies in WORK/log.
set -u

here=$(dirname "$(realpath "$0")")
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

build=$(realpath "$1")
work=${2:-$build/foreign-hdf5}
ranks=${FOREIGN_RANKS:-4}
last=${FOREIGN_STEPS:-test}
limit=1200 # seconds of a program
jobs=$(nproc)

mkdir -p "$work/log" "$work/files"
work=$(realpath "$work")
export PATH=$build/tools/mpicc:$build/tools/mpiexec:$PATH
export LD_LIBRARY_PATH=$work/install/lib:$build/mpi_shim:$build/mpifort:$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# where HDF5's tests write; their clean-up has to find it, too
export HDF5_PARAPREFIX=$work/files

# logged NAME COMMAND...: the output goes to a file, whose end is shown after a failure.
logged() {
	local name=$1
	shift
	"$@" >"$work/log/$name" 2>&1 && return
	tail -n 20 "$work/log/$name"
	echo "... in $work/log/$name"
	return 1
}

# stop_after STEP: whether this was the last step that is wanted.
stop_after() {
	[ "$last" = "$1" ] || return 0
	tap_done
	exit
}

# ---- sources -------------------------------------------------------------------------------------

# An apt of our own that knows source packages only.
apt_of_sources() {
	apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/parts" \
		-o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" "$@"
}

prepare_apt() {
	mkdir -p "$work"/apt/{lists/partial,cache/archives/partial,parts}
	cat >"$work/apt/parts/source.sources" <<-END
		Types: deb-src
		URIs: http://deb.debian.org/debian
		Suites: bookworm
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	END
	apt_of_sources update
}

# fetch PACKAGE: unpacked into WORK/PACKAGE, which is there as a whole or not at all.
fetch() {
	[ ! -d "$work/$1" ] || return 0
	rm -rf "$work/$1.part"
	[ -d "$work/apt/lists/auxfiles" ] || prepare_apt || return
	(cd "$work" && apt_of_sources source --download-only "$1") || return
	dpkg-source --no-check -x "$work/$1"_*.dsc "$work/$1.part" && mv "$work/$1.part" "$work/$1"
}

# ---- build ---------------------------------------------------------------------------------------

# make_in FOLDER TARGET...
make_in() {
	local folder=$1
	shift
	make -C "$folder" -j"$jobs" "$@"
}

# What apt has patched is older than what is made from it, and autotools are not wanted here.
settle_times() {
	find "$1" \( -name aclocal.m4 -o -name configure -o -name Makefile.in -o -name '*config.h.in' \) -exec touch {} +
}

configure_hdf5() {
	mkdir -p "$work/build-hdf5" && cd "$work/build-hdf5" || return
	[ ! -f Makefile ] || return 0
	settle_times "$work/hdf5"
	"$work/hdf5/configure" CC=mpicc RUNPARALLEL="mpiexec -n \$\${NPROCS:=$ranks}" --prefix="$work/install" \
		--enable-parallel --enable-hl --disable-cxx --disable-fortran --disable-java --enable-build-mode=production \
		--without-szlib
}

configure_netcdf() {
	mkdir -p "$work/build-netcdf" && cd "$work/build-netcdf" || return
	[ ! -f Makefile ] || return 0
	settle_times "$work/netcdf"
	"$work/netcdf/configure" CC=mpicc CPPFLAGS="-I$work/install/include" LDFLAGS="-L$work/install/lib" \
		--prefix="$work/install" --enable-parallel-tests --with-mpiexec="mpiexec" --disable-dap --disable-byterange \
		--disable-libxml2 --disable-nczarr --disable-plugins
}

is_parallel() {
	grep -qE "$1" "$2"
}

# ---- tests ---------------------------------------------------------------------------------------

# The programs that HDF5 itself runs in parallel, as its Makefile names them.
hdf5_programs() {
	make -s -C "$work/build-hdf5/testpar" -f Makefile -f - foreign_list <<-'END'
		foreign_list:
			@echo $(TEST_PROG_PARA)
	END
}

# run_program NAME ARGUMENTS...: with all ranks, in a folder that is empty before.
run_program() {
	local name=$1
	shift
	rm -rf "$work/files" && mkdir -p "$work/files" && cd "$work/build-hdf5/testpar" || return
	logged "run-$name" mpiexec --timeout "$limit" -n "$ranks" "./$name" "$@"
}

# One program writes, flushes and ends without closing its file; another one must be able to read it.
flushed_file_is_there() {
	cd "$work/build-hdf5/testpar" || return
	rm -rf "$work/files" && mkdir -p "$work/files"
	mpiexec --timeout "$limit" -n "$ranks" ./t_pflush1 >"$work/log/run-t_pflush1" 2>&1
	logged run-t_pflush2 mpiexec --timeout "$limit" -n "$ranks" ./t_pflush2
}

test_hdf5() {
	local program
	for program in $(hdf5_programs); do
		check "HDF5: $program" run_program "$program"
	done
	check 'HDF5: a file that was flushed and not closed' flushed_file_is_there
}

# netcdf_tests FOLDER SCRIPT: as NetCDF's own scripts run them.
netcdf_tests() {
	logged "netcdf-$1" make -C "$work/build-netcdf/$1" check TESTS="$2"
}

# ---- all -----------------------------------------------------------------------------------------

for tool in apt-get dpkg-source make; do
	if ! command -v "$tool" >/dev/null; then
		tap_skip 'HDF5 and NetCDF' "there is no $tool"
		tap_done
		exit
	fi
done
if ! logged fetch-hdf5 fetch hdf5 >/dev/null || ! logged fetch-netcdf fetch netcdf >/dev/null; then
	tap_skip 'HDF5 and NetCDF' "Debian's sources cannot be fetched: $(tail -qn 1 "$work"/log/fetch-* | tr '\n' ' ')"
	tap_done
	exit
fi
stop_after fetch
check 'HDF5 is configured' logged configure-hdf5 configure_hdf5
check 'HDF5 takes our compiler for one of a parallel MPI' is_parallel 'define H5_HAVE_PARALLEL 1' \
	"$work/build-hdf5/src/H5pubconf.h"
stop_after configure
check 'HDF5 is built' logged make-hdf5 make_in "$work/build-hdf5/src"
check 'its high-level library is built' logged make-hl make_in "$work/build-hdf5/hl/src"
check 'both are installed' logged install-hdf5 sh -c \
	"make -C '$work/build-hdf5/src' install && make -C '$work/build-hdf5/hl/src' install"
check "its tests' library is built" logged make-h5test make_in "$work/build-hdf5/test" libh5test.la
# shellcheck disable=SC2046 # one word for each program
check 'its parallel tests are built' logged make-testpar make_in "$work/build-hdf5/testpar" $(hdf5_programs) \
	t_pflush1 t_pflush2
check 'NetCDF is configured' logged configure-netcdf configure_netcdf
check 'NetCDF takes HDF5 for a parallel one' is_parallel 'define (HDF5_PARALLEL|USE_PARALLEL4?) 1' \
	"$work/build-netcdf/config.h"
check 'NetCDF is built' logged make-netcdf make_in "$work/build-netcdf"
stop_after make
test_hdf5
check 'NetCDF: parallel tests of HDF5 files' netcdf_tests h5_test run_par_tests.sh
check 'NetCDF: parallel tests of NetCDF-4' netcdf_tests nc_test4 run_par_test.sh
tap_done
