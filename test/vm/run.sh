#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs a test script in a guest, or says why there is none.
# Usage: run.sh VM-OPTIONS -- SCRIPT [ARG...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)

options=()
while [ "$1" != -- ]; do
	options+=("$1")
	shift
done
shift
prepare=(--prepare)
case " ${options[*]} " in *' --siw '*) prepare=(--siw --prepare) ;; esac
if ! why=$("$here/vm.sh" "${prepare[@]}" 2>&1); then
	echo "1..0 # SKIP $(tail -n 1 <<<"$why")"
	exit 0
fi
exec "$here/vm.sh" "${options[@]}" -- "$@"
