#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# libopen-mx.so exports what open-mx.h declares, without versions, has Open-MX's number, and is a layer on
# libmyriexpress.so. Usage: omx_exports.sh SOURCE_DIR LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
library=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The compiler lists the functions it saw declared, but not those that are inline; objects are `extern`.
echo '#include <open-mx.h>' >"$dir/all.c"
gcc -std=gnu17 -I "$source/include" -fsyntax-only -aux-info "$dir/functions" "$dir/all.c"
{
	sed -n 's|^/\* .*open-mx\.h.* extern .*[ *]\(omx_[A-Za-z0-9_]*\) (.*|\1|p' "$dir/functions"
	sed -n 's/^extern const [a-z_]* \(OMX_[A-Z_]*\);/\1/p' "$source/include/open-mx.h"
} | sort -u >"$dir/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | sort -u >"$dir/exported"

all_declared() {
	grep -x omx_isend "$dir/declared" && grep -x omx__init_api "$dir/declared" &&
		grep -x OMX_ERRORS_RETURN "$dir/declared"
}
# a version would stand behind an @
same() {
	diff "$dir/declared" "$dir/exported"
}
needs() {
	readelf -d "$library" | grep "$1"
}
check 'declarations are found' all_declared
check 'they are exported, and nothing else' same
check 'the soname is that of Open-MX' needs 'SONAME.*\[libopen-mx\.so\.0\]'
check 'it is a layer on libmyriexpress.so' needs 'NEEDED.*\[libmyriexpress\.so\]'
not_portals() {
	! nm -D --undefined-only "$library" | grep -E ' Ptl| base_'
}
check 'it calls nothing below MX' not_portals
tap_done
