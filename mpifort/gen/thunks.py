#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes thunks.c: C functions that know nothing but their number (mpifort/callbacks.c).

Usage: thunks.py MPIFORT_H OUTPUT
"""
import re
import sys


def main(argv):
    with open(argv[0], encoding='utf-8') as file:
        text = file.read()
    count = {name: int(re.search(rf'{name} = (\d+)', text).group(1))
             for name in ('MPIFORT_OPS', 'MPIFORT_ERRHANDLERS')}
    out = ['/* Written by mpifort/gen/thunks.py. */', '/* NOLINTBEGIN */', '#include "mpifort/mpifort.h"', '']
    for i in range(count['MPIFORT_OPS']):
        out.append(f'static void op_{i}(void *in, void *inout, int *len, MPI_Datatype *datatype)\n'
                   f'{{\n\tmpifort_call_op({i}, in, inout, len, datatype);\n}}')
    for i in range(count['MPIFORT_ERRHANDLERS']):
        out.append(f'static void handler_{i}(MPI_Comm *handle, int *code, ...)\n'
                   f'{{\n\tmpifort_call_errhandler({i}, handle, code);\n}}')
    out.append('MPI_User_function *const mpifort_op_thunks[MPIFORT_OPS] = {')
    out += [f'\top_{i},' for i in range(count['MPIFORT_OPS'])] + ['};']
    out.append('MPI_Comm_errhandler_function *const mpifort_errhandler_thunks[MPIFORT_ERRHANDLERS] = {')
    out += [f'\thandler_{i},' for i in range(count['MPIFORT_ERRHANDLERS'])] + ['};', '/* NOLINTEND */']
    with open(argv[1], 'w', encoding='utf-8') as file:
        file.write('\n'.join(out) + '\n')


if __name__ == '__main__':
    main(sys.argv[1:])
