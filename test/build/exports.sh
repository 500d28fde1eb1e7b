#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# libportals.so exports what the public headers declare, but for those of MPI and MX, and nothing else.
# Usage: exports.sh SOURCE_DIR LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
library=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The compiler itself lists the functions it saw declared, with the file; objects are `extern`.
(
	cd "$source/include"
	find . -name '*.h' ! -path './mpi*' ! -path './m[xy]*' ! -name open-mx.h ! -name dp.h ! -name rwapi.h -printf '#include <%P>\n' | sort >"$dir/all.c"
	gcc -std=gnu17 -I. -fsyntax-only -aux-info "$dir/functions" "$dir/all.c"
	sed -n 's|^/\* \./.* extern .*[ *]\([A-Za-z0-9_]*\) (.*|\1|p' "$dir/functions"
	find . -name '*.h' ! -path './mpi*' ! -path './m[xy]*' ! -name open-mx.h ! -name dp.h ! -name rwapi.h -exec cat {} + |
		sed -n 's/^extern [^(]*[ *]\([A-Za-z0-9_]*\)\(\[\]\)\{0,1\};.*/\1/p'
) | sort -u >"$dir/declared"
nm -D --defined-only --format=posix "$library" | sed 's/[ @].*//' | grep -v '^PORTALS_' |
	sort -u >"$dir/exported"

nothing() {
	! grep .
}
all_exported() {
	comm -23 "$dir/declared" "$dir/exported" | nothing
}
nothing_else() {
	comm -13 "$dir/declared" "$dir/exported" | nothing
}
some_declared() {
	grep -x PtlPut "$dir/declared" && grep -x ptl_err_str "$dir/declared" &&
		grep -x cnos_barrier "$dir/declared"
}

check "the headers' declarations are found" some_declared
check "every declared function and object is exported" all_exported
check "nothing else is exported" nothing_else

tap_done
