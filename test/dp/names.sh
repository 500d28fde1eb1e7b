#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# libdp.so exports what dp.h declares, all of it and nothing else, and every function has a page.
# Usage: names.sh SOURCE_DIR LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
library=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

echo '#include <dp.h>' >"$dir/all.c"
(cd "$source/include" && gcc -std=gnu17 -I. -fsyntax-only -aux-info "$dir/functions" "$dir/all.c")
sed -n 's|^/\* \./dp\.h.* extern .*[ *]\([A-Za-z0-9_]*\) (.*|\1|p' "$dir/functions" | sort -u >"$dir/declared"
nm -D --defined-only --format=posix "$library" | sed 's/[ @].*//' | grep -v '^DP_' | sort -u >"$dir/exported"

same() {
	diff "$1" "$2" && grep -qx dp_open "$1"
}
has_pages() {
	local name
	while read -r name; do
		[ -f "$source/doc/man/$name.3" ] || return
		grep -q "^\.Nm $name\b\|^\.so " "$source/doc/man/$name.3" || return
	done <"$dir/declared"
}
check "the library exports what the header declares" same "$dir/declared" "$dir/exported"
check "every function has a page" has_pages

tap_done
