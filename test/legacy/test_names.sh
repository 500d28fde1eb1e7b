#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Clients that use every name there is, in the report and in the implementations before this one, compile
# without a warning as C and as C++, and run. Usage: test_names.sh SOURCE_DIR LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
include=$1/include
library=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD PMI_RANK PMI_SIZE PMI_JOBID "${!PTL_@}"

# works FILE COMPILER...: it compiles, and the program that comes of it says with its status that all is right.
works() {
	local file=$1 status=0
	shift
	"$@" -Wall -Wextra -Werror -I"$include" "$here/$file.c" -x none "$library" \
		-Wl,-rpath,"$(dirname "$library")" -o "$dir/client" || return
	timeout -k 5 60 "$dir/client" || status=$?
	echo "exit status $status"
	return "$status"
}

try() {
	check "$1.c as C99, XT_DEFAULT=$2" works "$1" gcc -std=gnu99 -DXT_DEFAULT="$2" -x c
	check "$1.c as C++17, XT_DEFAULT=$2" works "$1" g++ -std=c++17 -DXT_DEFAULT="$2" -x c++
}
try names_report 0
try names_utcp 0
for default in 0 1 2; do
	try names_xt "$default"
done
tap_done
