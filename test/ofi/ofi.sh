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
	exec "$@"
	;;
*)
	echo "1..0 # SKIP ${line:-there is no libfabric in this build}"
	;;
esac
