# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Which MPI functions are not built, and why: what their entry points say, and doc/mpi.md.

An internal function that is defined in mpi_shim/ wins over this table: a part that is built later only
takes its line out.
"""
import re

NOT_BUILT = [
    (r'MPI_File_(?!create_errhandler)\w+|MPI_Register_datarep(_c)?', 'files (MPI-IO)'),
    (r'MPI_Comm_(spawn|spawn_multiple|accept|connect|join)|MPI_(Open|Close)_port|'
     r'MPI_(Publish|Unpublish|Lookup)_name', 'dynamic processes'),
    (r'MPI_Session_(?!create_errhandler)\w+|MPI_Group_from_session_pset|MPI_Comm_create_from_group|'
     r'MPI_Intercomm_create_from_groups', 'sessions'),
    (r'MPI_P(send|recv)_init(_c)?|MPI_Pready\w*|MPI_Parrived', 'partitioned communication'),
    (r'MPI_I?[Nn]eighbor_\w+', 'neighbourhood collectives'),
    (r'MPI_I(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce|allreduce|'
     r'reduce_scatter|reduce_scatter_block|scan|exscan)(_c)?', 'non-blocking collectives'),
    (r'MPI_(Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce|Allreduce|'
     r'Reduce_scatter|Reduce_scatter_block|Scan|Exscan)_init(_c)?', 'persistent collectives'),
]


def why(name):
    """What the function `name` belongs to, if it is not to be built; else None."""
    for pattern, reason in NOT_BUILT:
        if re.fullmatch(pattern, name):
            return reason
    return None
