#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes impl.h: the prototypes of the internal functions behind the MPI functions.

Usage: impl.py MPI_H OUTPUT
"""
import sys

import model
import protos

HEAD = '''\
/* Written by mpi_shim/gen/impl.py from include/mpi_abi/mpi.h.
 *
 * The internal functions, in the order of the header. They are called by entry points, which have checked
 * and converted the arguments, and by each other, always with the global lock held; they return
 * MPI_SUCCESS or mpi_fail(...). To build one, define it in any source of mpi_shim/ with `int` and the
 * name at the start of a line: the entry points find it there.
 */
#ifndef MPI_SHIM_IMPL_H
#define MPI_SHIM_IMPL_H

#include <mpi.h>

struct mpi_comm;
struct mpi_group;
struct mpi_type;
struct mpi_op;
struct mpi_request;
struct mpi_errhandler;
struct mpi_info;
struct mpi_message;
struct mpi_win;
struct mpi_file;
struct mpi_session;
'''


def write(functions):
    parts = [HEAD]
    section = None
    for name, plain, args in functions.internals():
        if plain.section != section:
            section = plain.section
            parts.append(f'\n/* {section} */\n')
        declared = ', '.join(a.declare() for a in args) or 'void'
        parts.append(protos.wrap(f'int {name}({declared})') + ';\n')
    return ''.join(parts) + '\n#endif\n'


if __name__ == '__main__':
    protos.write_if_changed(sys.argv[2], write(model.read(sys.argv[1])))
