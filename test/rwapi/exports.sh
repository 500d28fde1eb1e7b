#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# librwapi.so exports what rwapi.h declares, all of it and nothing else, and each function has a page that
# shows its prototype. Usage: exports.sh SOURCE_DIR LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
source=$1
library=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The compiler itself lists the functions it saw declared.
gcc -std=gnu17 -fsyntax-only -aux-info "$dir/functions" -x c "$source/include/rwapi.h"
grep '^/\* .*include/rwapi\.h:' "$dir/functions" | sed -n 's|.* extern .*[ *]\(rwapi_[a-z_]*\) (.*|\1|p' |
	sort -u >"$dir/declared"
sed -n 's/^\t\(rwapi_[a-z_]*\);$/\1/p' "$source/rwapi_shim/librwapi.map" | sort >"$dir/map"
nm -D --defined-only --format=posix "$library" | sed 's/[ @].*//' | grep -v '^RWAPI_' | sort -u >"$dir/exported"

fourteen() {
	wc -l <"$dir/declared" | grep -x 14
}
same() {
	diff "$1" "$2"
}
# The page that has the function's prototype: its own, or the one that it is an alias of.
has_page() {
	local page=$source/doc/man/$1.3 target
	target=$(sed -n 's,^\.so man3/,,p' "$page")
	grep -q "^\.F[no] \"\{0,1\}$1\b" "${target:+$source/doc/man/}${target:-$page}"
}
is_soname() {
	readelf -d "$library" | grep 'SONAME.*\[librwapi\.so\.1\]'
}

check "the header's declarations are found" fourteen
check "the map lists every function that is declared" same "$dir/declared" "$dir/map"
check "the library exports these and nothing else" same "$dir/map" "$dir/exported"
while read -r name; do
	check "$name has a page" has_page "$name"
done <"$dir/declared"
check "the soname is librwapi.so.1" is_soname

tap_done
