#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes mpif.h and the sources of the modules mpi and mpi_f08.

Usage: modules.py MPI_ABI_H MPI_H OUTPUT_DIR
"""
import os
import sys

import constants
import rules
import table

NOTE = '! Written by mpifort/gen/modules.py.\n'
KINDS = {'aint': 'MPI_ADDRESS_KIND', 'count': 'MPI_COUNT_KIND', 'offset': 'MPI_OFFSET_KIND'}

# The COMMON blocks of mpifort/mpifort.h: what each interface calls these addresses.
NUMBERS = [('MPI_BOTTOM', ''), ('MPI_IN_PLACE', ''), ('MPI_BUFFER_AUTOMATIC', ''),
           ('MPI_UNWEIGHTED', '(1)'), ('MPI_WEIGHTS_EMPTY', '(1)'), ('MPI_ERRCODES_IGNORE', '(1)'),
           ('MPI_STATUS_IGNORE', '(MPI_STATUS_SIZE)'), ('MPI_STATUSES_IGNORE', '(MPI_STATUS_SIZE,1)')]
STRINGS = [('MPI_ARGV_NULL', '(1)'), ('MPI_ARGVS_NULL', '(1,1)')]

FUNCTIONS = {'double': 'double precision', 'aint': 'integer(kind=MPI_ADDRESS_KIND)'}


def wrapped(text, indent):
    """A statement broken after commas, in free form."""
    lines, line = [], ' ' * indent
    for i, piece in enumerate(text.split(', ')):
        if i:
            if len(line) + len(piece) > 94:
                lines.append(line + ', &')
                line = ' ' * (indent + 2)
            else:
                line += ', '
        line += piece
    return '\n'.join(lines + [line])


# ---- mpif.h ---------------------------------------------------------------------------------------------

def fixed(statement):
    """One statement that is right in fixed and in free form."""
    line = '      ' + statement
    if len(line) > 72:
        sys.exit(f'too long for fixed form: {line}')
    return line


def mpif(integers, handles, procedures):
    out = ['! SPDX-License-Identifier: BSD-3-Clause', '! Copyright (c) 2026 the Postern authors', '!',
           '! MPI for Fortran 77 and for programs that have not changed', '! since. For fixed and for free form.',
           NOTE.rstrip()]
    # a division by zero with -fdefault-integer-8, where all calls would be wrong
    out += ['!', '! Here INTEGER has 4 bytes. Where it has 8 this does not compile:']
    out += [fixed('INTEGER MPIFORT_INTEGER_OF_4_BYTES'),
            fixed('PARAMETER (MPIFORT_INTEGER_OF_4_BYTES=32/(64-BIT_SIZE(0)))')]
    for name, value in integers + [(n, v) for n, _, v in handles]:
        out.append(fixed(f'INTEGER {name}'))
        statement = f'PARAMETER ({name}={value})'
        out.append(fixed(statement))
    out.append(fixed('INTEGER(KIND=8) MPI_DISPLACEMENT_CURRENT'))
    out.append(fixed('PARAMETER (MPI_DISPLACEMENT_CURRENT=-1)'))
    for name in ('MPI_SUBARRAYS_SUPPORTED', 'MPI_ASYNC_PROTECTS_NONBLOCKING'):
        out += [fixed(f'LOGICAL {name}'), fixed(f'PARAMETER ({name}=.FALSE.)')]
    for name, shape in NUMBERS:
        out.append(fixed(f'INTEGER {name}{shape}'))
    for name, shape in STRINGS:
        out.append(fixed(f'CHARACTER {name}{shape}'))
    for block, names in (('MPIFORT_NUMBERS', NUMBERS), ('MPIFORT_STRINGS', STRINGS)):
        out += [fixed(f'COMMON /{block}/ {name}') for name, _ in names]
        out.append(fixed(f'SAVE /{block}/'))
    for name in list(rules.PREDEFINED) + list(rules.PREDEFINED_OLD):
        if name != 'MPI_CONVERSION_FN_NULL_C':
            out.append(fixed(f'EXTERNAL {name}'))
    # by its kind: -fdefault-real-8 makes DOUBLE PRECISION longer
    types = {'double': 'REAL(KIND=8)', 'aint': 'INTEGER(KIND=8)'}
    for p in procedures:
        if p.result:
            upper = p.name.upper()
            out += [fixed(f'{types[p.result]} {n}') for n in (upper, 'P' + upper)]
            out += [fixed(f'EXTERNAL {n}') for n in (upper, 'P' + upper)]
    return '\n'.join(out) + '\n'


# ---- what both modules have -------------------------------------------------------------------------------

def common_module(integers):
    out = [NOTE, 'module mpifort_constants', '  implicit none', '  public']
    for name, value in integers:
        out.append(f'  integer, parameter :: {name} = {value}')
    out += ['  integer(kind=MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = -1',
            'end module mpifort_constants', '']
    out += types_module()
    return '\n'.join(out) + '\n'


def types_module():
    out = ['module mpifort_types', '  use mpifort_constants', '  implicit none', '  private', '']
    out += ['  type, bind(C), public :: MPI_Status', '    integer :: MPI_SOURCE', '    integer :: MPI_TAG',
            '    integer :: MPI_ERROR', '    integer, private :: MPI_internal(5)', '  end type MPI_Status']
    for kind in table.HANDLES:
        out += [f'  type, bind(C), public :: MPI_{kind}', '    integer :: MPI_VAL',
                f'  end type MPI_{kind}']
    for operator, name in (('==', 'equal'), ('/=', 'differ')):
        out += [f'  interface operator({operator})']
        out += [f'    module procedure {name}_{kind.lower()}' for kind in table.HANDLES]
        out += ['  end interface', f'  public :: operator({operator})']
    out += ['contains']
    for kind in table.HANDLES:
        for operator, name in (('==', 'equal'), ('/=', 'differ')):
            function = f'{name}_{kind.lower()}'
            out += [f'  elemental logical function {function}(a, b)',
                    f'    type(MPI_{kind}), intent(in) :: a, b',
                    f'    {function} = a%MPI_VAL {operator} b%MPI_VAL', f'  end function {function}']
    return out + ['end module mpifort_types']


def predefined_handles(handles, typed):
    for name, kind, value in handles:
        if typed:
            yield f'  type(MPI_{kind}), parameter :: {name} = MPI_{kind}({value})'
        else:
            yield f'  integer, parameter :: {name} = {value}'


def commons(f08):
    out = []
    for name, shape in NUMBERS:
        if f08 and 'STATUS' in name:
            out.append(f'  type(MPI_Status) :: {name}{"(1)" if "," in shape else ""}')
        else:
            # its address comes back from MPI_Buffer_detach
            target = ', target' if name == 'MPI_BUFFER_AUTOMATIC' else ''
            out.append(f'  integer{target} :: {name}{shape}')
    for name, shape in STRINGS:
        out.append(f'  character(len=1) :: {name}{shape}')
    for block, names in (('mpifort_numbers', NUMBERS), ('mpifort_strings', STRINGS)):
        out += [wrapped(f'common /{block}/ ' + ', '.join(n for n, _ in names), 2),
                f'  save /{block}/']
    return out


# ---- interfaces ---------------------------------------------------------------------------------------------

class Face:
    """Declares procedures as one of the modules does."""

    def __init__(self, f08):
        self.f08 = f08

    def type_of(self, a, cptr):
        if a.is_handle and self.f08:
            return f'type(MPI_{a.kind})'
        if a.kind == 'status' and self.f08:
            return 'type(MPI_Status)'
        if a.kind in KINDS:
            return f'integer(kind={KINDS[a.kind]})'
        if a.kind == 'cptr':
            return 'type(c_ptr)' if self.f08 or cptr else 'integer(kind=MPI_ADDRESS_KIND)'
        if a.kind in ('character', 'strings', 'argvs'):
            return 'character(len=*)'
        return {'logical': 'logical'}.get(a.kind, 'integer')

    def later(self):
        """Of what MPI keeps. A TARGET: gfortran then knows that it may be read and change in later
        calls, which ASYNCHRONOUS alone does not tell it."""
        return (', asynchronous' if self.f08 else '') + ', target'

    def choice(self, a, p):
        later = self.later() if self.keeps(p) else ''
        if self.f08 and p.described:
            intent = ', intent(in)' if a.intent == 'in' else ''
            return [f'type(*), dimension(..){intent}{later} :: {a.name}']
        return [f'!GCC$ ATTRIBUTES NO_ARG_CHECK :: {a.name}', f'type(*), dimension(*){later} :: {a.name}']

    def declare(self, a, p, cptr):
        if a.kind == 'choice' or a.name == 'buffer_addr' and not self.f08:
            return self.choice(a, p)
        if a.kind == 'procedure':
            if self.f08:
                return [f'procedure({a.callback}) :: {a.name}']
            return [f'external :: {a.name}']
        intent = f', intent({a.intent})' if self.f08 and a.intent else ''
        if a.kind in ('status', 'errcodes') and a.intent == 'out' and not p.name.startswith('MPI_Status_f'):
            intent = ''
        if a.kept:
            intent += self.later()
        if self.f08 and p.name == 'MPI_Cancel':
            intent = ', intent(in)'
        # the callbacks get the variable itself, in later calls
        if a.name == 'extra_state' and not p.name.lower().endswith('keyval'):
            intent += ', target'
        shape = a.shape.replace('count,*', 'count, *').replace('3,*', '3, *')
        if a.name == 'f_status':
            shape = 'MPI_STATUS_SIZE'
        kind = self.type_of(a, cptr)
        if a.kind == 'status' and (not self.f08):
            if a.name != 'f08_status':
                shape = 'MPI_STATUS_SIZE' + (', *' if shape else '')
            else:
                kind = 'type(MPI_Status)'
        return [f'{kind}{intent} :: {a.name}{f"({shape})" if shape else ""}']

    def keeps(self, p):
        return rules.NOT_COMPLETE.fullmatch(p.name) or rules.ADDRESSES.fullmatch(p.name)

    def procedure(self, p, prefix, cptr=False):
        """One procedure of an interface block."""
        lower = p.f08_name.lower() if self.f08 else p.lower + ('_cptr' if cptr else '')
        name = p.f08_name if self.f08 else p.name + ('_cptr' if cptr else '')
        names = [a.name for a in p.args] + (['ierror'] if p.ierror else [])
        kind = 'function' if p.result else 'subroutine'
        bind = f' bind(C, name="{prefix.lower()}{lower}_")' if self.f08 and p.described else ''
        head = f'{kind} {prefix}{name}({", ".join(names)})'
        out = []
        if p.result:
            head = f'{FUNCTIONS[p.result]} {head}'
            # the kind is known in the body only
            if p.result != 'double':
                head = f'{kind} {prefix}{name}({", ".join(names)}) result(res)'
        out.append(wrapped(head, 4) + (f' &\n      {bind.strip()}' if bind else ''))
        out += ['      import', '      implicit none']
        for a in sorted(p.args, key=lambda a: a.name != 'count'):
            out += ['      ' + line for line in self.declare(a, p, cptr)]
        if p.ierror:
            out.append('      integer' + (', optional, intent(out)' if self.f08 else '') + ' :: ierror')
        if p.result and p.result != 'double':
            out.append(f'      {FUNCTIONS[p.result]} :: res')
        out.append(f'    end {kind} {prefix}{name}')
        return out


def signature(p):
    """The difference of two procedures of one name."""
    same = {'aint': 'wide', 'count': 'wide', 'offset': 'wide', 'weights': 'integer', 'errcodes': 'integer'}
    return tuple((same.get(a.kind, a.kind), bool(a.shape)) for a in p.args)


def callbacks():
    out = ['  abstract interface']
    types = {'int': 'integer', 'logical': 'logical', 'addr': 'type(c_ptr), value',
             'MPI_Aint': 'integer(kind=MPI_ADDRESS_KIND)', 'MPI_Count': 'integer(kind=MPI_COUNT_KIND)',
             'MPI_Offset': 'integer(kind=MPI_OFFSET_KIND)'}
    for name, args in rules.CALLBACKS.items():
        out += callback_like(name, [a.split() for a in args.split(', ')], types)
    return out + ['  end interface']


def callback_like(name, args, types):
    out = [wrapped(f'subroutine {name}({", ".join(a for _, a in args)})', 4), '      import',
           '      implicit none']
    out += [f'      {types.get(t) or f"type({t})"} :: {a}' for t, a in args]
    return out + [f'    end subroutine {name}']


def predefined_callbacks(f08):
    if not f08:
        names = [n for n in rules.PREDEFINED if n != 'MPI_CONVERSION_FN_NULL_C']
        return [f'  external :: {n}' for n in names + list(rules.PREDEFINED_OLD)]
    return [f'  procedure({like}) :: {name}' for name, like in rules.PREDEFINED.items()]


def mpi_module(handles, procedures):
    face = Face(False)
    out = [NOTE, 'module mpi', '  use, intrinsic :: iso_c_binding, only: c_ptr', '  use mpifort_constants',
           '  use mpifort_types', '  use mpifort_sizeof', '  implicit none', '  public',
           '  private :: c_ptr',
           '  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.',
           '  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .true.']
    out += predefined_handles(handles, False)
    out += commons(False) + predefined_callbacks(False)
    for prefix in ('', 'P'):
        for p in procedures:
            if not p.in_mpi:
                continue
            out.append(f'  interface {prefix}{p.name}' if table.with_cptr(p) else '  interface')
            out += face.procedure(p, prefix)
            if table.with_cptr(p):
                out += face.procedure(p, prefix, True)
            out.append('  end interface')
    return '\n'.join(out + ['end module mpi']) + '\n'


def f08_module(handles, procedures):
    face = Face(True)
    removed = ('MPI_LB', 'MPI_UB')
    out = [NOTE, 'module mpi_f08', '  use, intrinsic :: iso_c_binding, only: c_ptr', '  use mpifort_constants',
           '  use mpifort_types', '  use mpifort_sizeof', '  implicit none', '  public',
           '  private :: c_ptr',
           '  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .true.',
           '  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .true.']
    out += predefined_handles([h for h in handles if h[0] not in removed], True)
    out += commons(True) + callbacks() + predefined_callbacks(True)
    present = {p.name: p for p in procedures if p.in_f08}
    for prefix in ('', 'P'):
        for p in present.values():
            if p.large and p.name not in rules.SEPARATE:
                continue
            out.append(f'  interface {prefix}{p.name}')
            out += face.procedure(p, prefix)
            large = present.get(p.name + '_c')
            if large and large.name not in rules.SEPARATE and signature(large) != signature(p):
                out += face.procedure(large, prefix)
            out.append('  end interface')
    return '\n'.join(out + ['end module mpi_f08']) + '\n'


def sizeof_module():
    out = [NOTE, 'module mpifort_sizeof', '  implicit none', '  private', '  public :: MPI_Sizeof, PMPI_Sizeof']
    kinds = [('integer', k) for k in (1, 2, 4, 8, 16)] + [('real', k) for k in (4, 8, 10, 16)] + \
        [('complex', k) for k in (4, 8, 10, 16)] + [('logical', k) for k in (1, 2, 4, 8, 16)] + \
        [('character', 1), ('character', 4)]
    for prefix in ('', 'P'):
        out.append(f'  interface {prefix}MPI_Sizeof')
        out += [f'    module procedure sizeof_{t}{k}' for t, k in kinds] + ['  end interface']
    out.append('contains')
    for t, k in kinds:
        declared = f'character(len=*, kind={k})' if t == 'character' else f'{t}({k})'
        out += [f'  subroutine sizeof_{t}{k}(x, size, ierror)',
                f'    {declared}, dimension(..), intent(in) :: x', '    integer, intent(out) :: size',
                '    integer, optional, intent(out) :: ierror', '    size = storage_size(x) / 8',
                '    if (present(ierror)) ierror = 0', f'  end subroutine sizeof_{t}{k}']
    return '\n'.join(out + ['end module mpifort_sizeof']) + '\n'


def main(argv):
    procedures = table.read(argv[0])
    integers, handles = constants.read(argv[:2])
    texts = {
        'mpif.h': mpif(integers, handles, procedures),
        'common.f90': common_module(integers),
        'sizeof.f90': sizeof_module(),
        'mpi.f90': mpi_module(handles, procedures),
        'mpi_f08.f90': f08_module(handles, procedures),
    }
    for name, text in texts.items():
        table.protos.write_if_changed(os.path.join(argv[2], name), text)


if __name__ == '__main__':
    main(sys.argv[1:])
