#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The library has exactly the names of the headers, the symbol versions that old programs look up, and its
# name without a number.
# Usage: exports.sh SOURCE_DIR LIBRARY
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
library=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

declared() {
	cat "$source"/include/{myriexpress,mx_extensions,mx_raw}.h "$source"/include/mx_internals/*.h \
		"$source/mx_shim/mx_keep.h" | grep -v '^#' |
		grep -oE '\bmx_?_[a-z0-9_]+\(|\bMX_ERRORS_[A-Z_]+;' | tr -d '(;' | sort -u
}
exported() {
	nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u
}
same_names() {
	declared >"$work/declared"
	exported >"$work/exported"
	diff "$work/declared" "$work/exported"
}
versions() {
	nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' | grep '@' | sort
}
same_versions() {
	cat >"$work/want" <<-END
		mx__init_api@@MX_0.92
		mx_decompose_endpoint_addr@@MX_0.9
		mx_get_info@@MX_0.91
		mx_iprobe@@MX_0.91
		mx_open_endpoint@@MX_0.9
		mx_test@@MX_0.91
		mx_wait@@MX_0.91
	END
	versions >"$work/versions"
	diff "$work/want" "$work/versions"
}
all_nodes() {
	local node
	for node in MX_0.0 MX_0.9 MX_0.91 MX_0.92; do
		readelf -V "$library" | grep -q "Name: $node\$" || readelf -V "$library" | grep -q "Name: $node " || return 1
	done
}
named() {
	readelf -d "$library" | grep -q 'SONAME.*\[libmyriexpress\.so\]'
}

check "the library has the names of the headers and no others" same_names
check "seven names have the versions that old programs look up" same_versions
check "all version nodes are there" all_nodes
check "its name has no number" named
tap_done
