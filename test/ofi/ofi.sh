#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Runs a test over libfabric if the provider that PTL_NAL names is here, else says why not:
# ofi.sh PORTALS-INFO COMMAND...
info=$1
shift
line=$("$info" 2>/dev/null | grep '^  ofi ')
case $line in
*" usable"*)
	# libfabric 1.17 reads all symbols of the kernel, twice, in each process that opens it: a quarter of these tests' time
	if unshare -m mount --bind /dev/null /proc/kallsyms 2>/dev/null; then
		# shellcheck disable=SC2016 # expanded by the inner shell
		exec unshare -m sh -c 'mount --bind /dev/null /proc/kallsyms; exec "$@"' sh "$@"
	fi
	exec "$@"
	;;
*)
	echo "1..0 # SKIP ${line:-there is no libfabric in this build}"
	;;
esac
