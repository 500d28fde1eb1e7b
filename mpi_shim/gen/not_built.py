# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Which MPI functions are not built, and why: what their entry points say, and doc/mpi.md.

An internal function that is defined in mpi_shim/ wins over this table: a part that is built later only
takes its line out.
"""
import re

NOT_BUILT = [
]


def why(name):
    """The group of the function `name`, if it is not to be built; else None."""
    for pattern, reason in NOT_BUILT:
        if re.fullmatch(pattern, name):
            return reason
    return None
