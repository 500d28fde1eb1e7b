# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The table of signatures: every MPI procedure that Fortran has, from the prototypes of mpi.h and rules.py.

Usage: table.py MPI_H {mpif|mpi|f08}: the linker names of an interface's procedures.

Modules, C bindings and tests are written from what `read` returns.
"""
import pathlib
import re
import sys
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'mpi_shim' / 'gen'))
import protos  # noqa: E402

import rules  # noqa: E402

HANDLES = ('Comm', 'Datatype', 'Errhandler', 'File', 'Group', 'Info', 'Message', 'Op', 'Request',
           'Session', 'Win')
SIMPLE = {
    'int': 'integer', 'MPI_Fint': 'integer', 'MPI_Aint': 'aint', 'MPI_Count': 'count',
    'MPI_Offset': 'offset', 'char': 'character', 'void': 'choice', 'MPI_Status': 'status',
    'double': 'double',
}


@dataclass
class Arg:
    """One argument. `kind` is choice, integer, logical, aint, count, offset, character, status, cptr,
    procedure, strings, argvs, errcodes, weights, or the name of a handle type; `shape` is '' or that of
    a Fortran array, `length` the elements of an array of handles in C, `index` says that C counts from
    0, `room` is how much C may write into a string."""
    name: str
    kind: str
    intent: str
    shape: str = ''
    c: object = None
    callback: str = ''
    length: str = ''
    index: bool = False
    room: str = ''
    strip: bool = False
    typed: tuple = ()
    kept: bool = False

    @property
    def is_handle(self):
        return self.kind in HANDLES


@dataclass
class Procedure:
    """One procedure. `result` is '' for a subroutine."""
    name: str
    args: list
    result: str = ''
    section: str = ''
    by_hand: bool = False
    removed: bool = False
    c: object = None
    ierror: bool = True
    choices: list = field(default_factory=list)

    @property
    def large(self):
        return self.name.endswith('_c')

    @property
    def lower(self):
        return self.name.lower()

    @property
    def in_f08(self):
        return not self.removed and self.name not in rules.NOT_IN_F08

    @property
    def in_mpi(self):
        return not self.large

    @property
    def described(self):
        """Do buffers in mpi_f08 come as descriptors? That takes BIND(C), where standard Fortran has no LOGICAL
        of default kind: beside one (MPI_Abi_get_fortran_booleans) they come as in module mpi."""
        return bool(self.choices) and not any(a.kind == 'logical' for a in self.args)

    @property
    def f08_name(self):
        """The specific name in mpi_f08: MPI-4 §19.1.5, table 19.1."""
        return self.name + ('_f08ts' if self.described else '_f08')


def fits(row, name, arg):
    return re.fullmatch(row[0], name, re.IGNORECASE if row[0].startswith('I?') else 0) and \
        re.fullmatch(row[1], arg)


def first(rows, name, arg):
    return next((row for row in rows if fits(row, name, arg)), None)


def base_name(f):
    name = f.name[len('MPI_'):]
    return name[:-2] if name.endswith(('_c', '_x')) else name


def kind_of(f, name, a):
    row = first(rules.KINDS_OF_OLD, name, a.name) or first(rules.KINDS, name, a.name)
    if row and not (row[2] == 'logical' and 'int' not in a.type):
        return row[2], ''
    base = a.type.replace('const ', '').rstrip(' *')
    if base.startswith('MPI_') and base[4:] in HANDLES:
        return base[4:], ''
    if base in SIMPLE:
        return SIMPLE[base], ''
    if base.endswith(('_function', '_function_c')):
        return 'procedure', base
    sys.exit(f'{f.name}: what is {a.declare()} in Fortran?')


def intent_of(name, a, kind):
    row = first(rules.INTENTS, name, a.name)
    if row:
        return row[2]
    if kind in ('choice', 'procedure'):
        return 'in' if a.type.startswith('const') else ''
    if not a.type.endswith('*') or a.type.startswith('const') or a.name == 'attribute_val' and \
            'get' not in name.lower() or kind in ('strings', 'argvs') or a.name == 'extra_state' or \
            a.array == '[][3]':
        return 'in'
    return 'inout' if first(rules.INOUT, name, a.name) else 'out'


def shape_of(a, kind):
    if a.array == '[][3]':
        return '3,*'
    if kind == 'argvs':
        return 'count,*'
    if kind == 'character':
        return ''
    return '*' if a.array or kind in ('strings', 'errcodes', 'weights') else ''


def length_of(f, name, a):
    row = first(rules.LENGTHS, name, a.name)
    if not row:
        return ''
    if isinstance(row[2], str):
        return row[2]
    return '*' + next(n for n in row[2] if n in [x.name for x in f.args])


def make_arg(f, name, a):
    kind, callback = kind_of(f, name, a)
    arg = Arg(rules.RENAMED.get(a.name, a.name), kind, intent_of(name, a, kind), shape_of(a, kind), a,
              callback)
    arg.index = bool(first(rules.INDICES, name, arg.name))
    arg.strip = bool(first(rules.STRIPPED, name, arg.name))
    if arg.is_handle and arg.shape:
        arg.length = length_of(f, name, a)
        if not arg.length and not rules.BY_HAND.fullmatch(f.name) and f.section != 'removed':
            sys.exit(f'{f.name}: how long is {a.name}?')
    if kind == 'character' and arg.intent == 'out':
        row = first(rules.ROOM, name, a.name)
        if not row:
            sys.exit(f'{f.name}: how long may {a.name} become?')
        arg.room = row[2]
    arg.kept = bool(rules.KEEPING.fullmatch(f.name) and first(rules.KEPT, name, a.name))
    row = first(rules.TYPED, name, a.name)
    if row and rules.NOT_COMPLETE.fullmatch(f.name):
        names = [x.name for x in f.args]
        arg.typed = tuple(row[2]) if all(n in names for n in row[2]) else ()
    return arg


def make(f):
    name = base_name(f)
    args = [make_arg(f, name, a) for a in f.args
            if a.type != '...' and not first(rules.DROPPED, name, a.name)]
    p = Procedure(f.name, args, section=f.section, c=f)
    p.removed = f.section == 'removed'
    p.by_hand = bool(rules.BY_HAND.fullmatch(f.name)) or f.section in ('removed', 'Fortran')
    p.choices = [a for a in args if a.kind == 'choice']
    if f.result != 'int':
        p.result = SIMPLE[f.result]
        p.ierror = False
    if f.name in ('MPI_Pcontrol', 'MPI_F_sync_reg'):
        p.ierror = False
    return p


def read(path):
    """All procedures, in the order of the header, then the others."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    functions = [f for f in protos.parse(text) if not rules.C_ONLY.fullmatch(f.name)]
    functions += protos.parse(rules.REMOVED.replace(' ---- */', ' ----- */'))
    functions += protos.parse(rules.FORTRAN_ONLY.replace(' ---- */', ' ----- */'))
    return [make(f) for f in functions]


# Procedures that return an address twice in module mpi: as an INTEGER, and as TYPE(C_PTR).
def with_cptr(p):
    return not p.large and any(a.name == 'baseptr' for a in p.args)


def linker_names(procedures, interface):
    names = []
    for p in procedures:
        if interface == 'f08':
            if p.in_f08:
                names.append(p.f08_name.lower() + '_')
        elif p.in_mpi:
            names.append(p.lower + '_')
            if interface == 'mpi' and with_cptr(p):
                names.append(p.lower + '_cptr_')
    return names + ['p' + n for n in names]


def main(argv):
    print('\n'.join(linker_names(read(argv[0]), argv[1])))


if __name__ == '__main__':
    main(sys.argv[1:])
