#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Makes several nodes of one machine: gives each rank of a job an address of the loopback network, so that ranks with
# the same one share memory and the others do not.
# Usage: mpiexec -n N nodes.sh RANKS_PER_NODE PROGRAM [ARG...]
per_node=$1
shift
PTL_IFACE=127.0.1.$((1 + PMI_RANK / per_node))
export PTL_IFACE
exec "$@"
