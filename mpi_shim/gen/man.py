#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes the manual pages of the MPI functions, in mdoc, from the headers, descriptions.txt and
arguments.txt.

Usage: man.py --list HEADER...
       man.py OUTPUT_DIR DESCRIPTIONS ARGUMENTS HEADER...

A function and its _c form are one page, which the name of the latter leads to. With --list the names of
the pages are printed, one a line.
"""
import os
import pathlib
import sys

import protos

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / 'mpifort' / 'gen'))
import modules as fortran  # noqa: E402

DATE = 'November 20, 2026'


def table(path):
    """`name: text` lines as a dictionary; # begins a comment line."""
    rows = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                name, text = line.rstrip('\n').split(': ', 1)
                rows[name] = text
    return rows


def is_form(functions, f):
    """Is this the _c form of another function?"""
    return f.name.endswith('_c') and f.name[:-2] in functions


def synopsis(f):
    lines = [f'.Ft {f.result}', f'.Fo {f.name}']
    for a in f.args or [protos.Arg('', 'void')]:
        lines.append(f'.Fa "{a.declare() if a.name or a.type == "..." else "void"}"')
    return lines + ['.Fc']


def inputs_and_outputs(f, words):
    """One item for each argument, in the order of the call."""
    lines = []
    plain = f.name.removesuffix('_c')
    for a in f.args:
        if a.name:
            text = words.get(f'{plain}.{a.name}') or words.get(a.name)
            if not text:
                sys.exit(f'arguments.txt says nothing of {a.name} of {f.name}')
            lines += [f'.It Fa {a.name}', text[0].upper() + text[1:] + '.']
    return lines


def returns(f):
    if f.name.startswith('MPI_T_'):
        return ['.Dv MPI_SUCCESS ,', 'or one of the', '.Dv MPI_T_ERR_', 'codes; no error handler runs.']
    if f.result != 'int' or f.name.endswith(('_toint', '_c2f')):
        return ['The result itself; there are no errors.']
    see = '\n'.join(('.Dv MPI_SUCCESS ,', 'or an error code, whose class', '.Xr MPI_Error_class 3',
                     'and whose text', '.Xr MPI_Error_string 3', 'tells.',
                     'Before it is returned the error handler of the communicator runs, which by default',
                     'ends the job; see', '.Xr MPI_Comm_set_errhandler 3 .'))
    return [see.replace(f'.Xr {f.name} 3', f'.Nm {f.name}')]


def in_fortran(procedures, f):
    """The procedure as module mpi_f08 declares it."""
    p = procedures.get(f.name)
    if not p or not p.in_f08:
        return []
    face = fortran.Face(True)
    names = ', '.join([a.name for a in p.args] + (['ierror'] if p.ierror else []))
    call = f'{p.name}({names})'
    lines = [fortran.wrapped(f'call {call}' if not p.result else f'result = {call}', 0)]
    for a in p.args:
        lines += ['  ' + text for text in face.declare(a, p, False) if not text.startswith('!')]
    if p.ierror:
        lines.append('  integer, optional, intent(out) :: ierror')
    if p.result:
        lines.append(f'  {fortran.FUNCTIONS[p.result]} :: result')
    out = ['.Sh FORTRAN', 'With module', '.Cm mpi_f08 :', '.Bd -literal', 'use mpi_f08'] + lines + ['.Ed', '.Pp']
    return out + ['With module', '.Cm mpi', 'and with', '.Pa mpif.h',
                  'handles are INTEGERs, statuses arrays of MPI_STATUS_SIZE INTEGERs, and ierror is always there.',
                  'See', '.Xr mpifort 1 .']


def page(functions, f, descriptions, words, procedures):
    if f.name not in descriptions:
        sys.exit(f'descriptions.txt says nothing of {f.name}')
    forms = [f]
    if f.name + '_c' in functions:
        forms.append(functions[f.name + '_c'])
    names = [g.name for g in forms]
    out = ['.\\" Written by mpi_shim/gen/man.py.', f'.Dd {DATE}', f'.Dt {f.name.upper()} 3', '.Os Postern',
           '.Sh NAME']
    out += [f'.Nm {n} ,' for n in names[:-1]] + [f'.Nm {names[-1]}']
    out += [f'.Nd {descriptions[f.name]}', '.Sh SYNOPSIS', '.In mpi.h']
    for g in forms:
        out += synopsis(g)
    items = inputs_and_outputs(forms[-1], words)
    out.append('.Sh DESCRIPTION')
    text = descriptions[f.name]
    out.append(f'{text[0].upper()}{text[1:]}.')
    if len(forms) == 2:
        out += ['The form', f'.Fn {names[1]}', 'takes counts that need not fit an int.']
    if items:
        out += ['.Bl -tag -width "array_of_displacements"'] + items + ['.El']
    out += ['.Sh RETURN VALUES'] + returns(f) + in_fortran(procedures, f)
    out += ['.Sh SEE ALSO', '.Xr mpicc 1 ,', '.Xr mpiexec 1 ,',
                                                '.Xr portals 7', '.Sh STANDARDS']
    if f.section.startswith(('addresses and datatypes, before', 'error handlers, before')):
        out.append('MPI\\-1; removed by MPI\\-3. Only programs built with')
        out += ['.Xr mpicc 1', 'have it.']
    elif f.section.startswith(('handles in Fortran', 'statuses in Fortran')):
        out.append('MPI\\-4; not part of the standard binary interface of MPI\\-5. Only programs built with')
        out += ['.Xr mpicc 1', 'have it.']
    else:
        out.append('MPI\\-5.0, with its standard binary interface.')
    return '\n'.join(out) + '\n'


def main(argv):
    listing = argv[0] == '--list'
    headers = argv[1:] if listing else argv[3:]
    functions = {f.name: f for h in headers for f in protos.read(h)}
    if listing:
        print('\n'.join(functions))
        return
    descriptions, words = table(argv[1]), table(argv[2])
    procedures = {p.name: p for p in fortran.table.read(headers[0])}
    for f in functions.values():
        if is_form(functions, f):
            text = f'.so man3/{f.name[:-2]}.3\n'
        else:
            text = page(functions, f, descriptions, words, procedures)
        protos.write_if_changed(os.path.join(argv[0], f.name + '.3'), text)


if __name__ == '__main__':
    main(sys.argv[1:])
