# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Which MPI functions are not built, and why: what their entry points say, and doc/mpi.md.

An internal function that is defined in mpi_shim/ wins over this table: a part that is built later only
takes its line out.
"""
import re

NOT_BUILT = [
    (r'MPI_Session_(?!create_errhandler)\w+|MPI_Group_from_session_pset|MPI_Comm_create_from_group|'
     r'MPI_Intercomm_create_from_groups', 'sessions'),
]


# Sessions are begun and used without MPI_Init (MPI-4 §11.3): programs ask for them to see whether
# there are any.
ANY_TIME = 'sessions'


def any_time(name):
    """Whether the function `name` may be called before MPI_Init."""
    return why(name) == ANY_TIME


def why(name):
    """The group of the function `name`, if it is not to be built; else None."""
    for pattern, reason in NOT_BUILT:
        if re.fullmatch(pattern, name):
            return reason
    return None
