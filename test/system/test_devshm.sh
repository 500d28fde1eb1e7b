#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Containers often have a /dev/shm of 64 KiB or none worth the name: the library must not need it.
# Runs tests in a mount namespace with such a one.
# Usage: test_devshm.sh TEST...
set -eu
# shellcheck source=test/tap.sh
. "$(dirname "$0")/../tap.sh"

# with_tiny COMMAND...: runs it where /dev/shm has 64 KiB, then sees that nothing is left there.
with_tiny() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m bash -eu -c '
		mount -t tmpfs -o size=64k tmpfs /dev/shm
		"$@"
		left=$(ls -A /dev/shm)
		[ -z "$left" ] || { echo "left in /dev/shm: $left"; exit 1; }
	' bash "$@"
}

if ! with_tiny true >/dev/null 2>&1; then
	for test in "$@"; do
		tap_skip "$(basename "$test") with a /dev/shm of 64 KiB" \
			'mount namespaces are not permitted here'
	done
else
	for test in "$@"; do
		check "$(basename "$test") with a /dev/shm of 64 KiB" with_tiny "$test"
	done
fi
tap_done
