#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The build on a machine that has a compiler, meson and ninja, and none of what is optional (README): what it says
# it will build, and where that goes. Usage: variants.sh SOURCE_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# All programs but those that find libraries, Debian's that tells meson of Debian's folders, and gfortran.
mkdir bin
IFS=: read -ra path <<<"$PATH"
for folder in "${path[@]}"; do
	ln -s "$folder"/* bin/ 2>/dev/null || true # the first of a name stays
done
rm -f bin/*pkg-config bin/pkgconf bin/cmake bin/dpkg-architecture bin/*gfortran*

# sets_up NAME ARGUMENT...
sets_up() {
	env -u PKG_CONFIG -u FC PATH="$dir/bin" meson setup "$1" "$source" -Dbuildtype=plain "${@:2}"
}
option() {
	meson introspect --buildoptions "$1" | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$2"
}
in_lib() {
	[ "$(option least libdir)" = lib ]
}
# installs NAME FILE...: all of them, below the prefix
installs() {
	meson introspect --installed "$1" >installed
	local file
	for file in "${@:2}"; do
		grep -q "/$file\"" installed || return
	done
}
least() {
	installs least lib/libportals.so.3 lib/libpostern-mpi.so.1 lib/libmpi_abi.so.1 bin/mpicc bin/mpiexec bin/portals-info &&
		! installs least bin/ptlperf && ! installs least bin/mpifort
}
says_what_is_missing() {
	! sets_up most -Dnals=udp >log && cat log && grep 'libsodium.*-Dnals=shm' log
}
check "nothing optional is there, and bench is left out" sets_up least -Dnals=shm -Dbench=false
check "libraries go to lib, which is searched" in_lib
check "all but what needs it is built" least
check "the network's transports say what they need" says_what_is_missing

tap_done
