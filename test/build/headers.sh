#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Every public header compiles alone, without a warning, as C11 and as C++17, and may be included
# twice. Usage: headers.sh SOURCE_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
cd "$1/include"

compiles() {
	local header=$1
	shift
	printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header" |
		"$@" -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only -
}

while read -r header; do
	case $header in
	mpi/cxx/*) continue ;; # parts of the next
	mpi/mpicxx.h) ;;
	*) check "$header as C11" compiles "$header" gcc -std=c11 -x c ;;
	esac
	check "$header as C++17" compiles "$header" g++ -std=c++17 -x c++
done < <(find . -name '*.h' -printf '%P\n' | sort)

tap_done
