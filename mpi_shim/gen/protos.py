# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Reads the prototypes of include/mpi_abi/mpi.h: the one place where an MPI function is declared.

Everything that has to exist once per function (the PMPI half of the header, the internal prototypes,
the entry points, the manual pages, tests) is written from what this module returns.
"""
import re
from dataclasses import dataclass, field

HALVES = re.compile(r'^/\* ---- PMPI: .*$', re.MULTILINE)
SECTION = re.compile(r'^/\* ---- (.*?) -+ \*/$', re.MULTILINE)
PROTOTYPE = re.compile(r'^((?:\w+ )+)(P?MPI_\w+)\(([^;{}]*)\);', re.MULTILINE)


@dataclass
class Arg:
    """One argument: `type` as in C without the name, arrays as pointers."""
    name: str
    type: str
    array: str = ''  # '[]' or '[][3]' as declared

    def declare(self):
        """The argument as it stands in the header."""
        base = self.type
        if self.type == '...':
            return '...'
        if self.array:
            base = base[:-1].rstrip()
        return f'{base}{"" if base.endswith("*") else " "}{self.name}{self.array}'


@dataclass
class Function:
    """One MPI function; `section` is the title of the part of the header it stands in."""
    name: str
    result: str
    args: list = field(default_factory=list)
    section: str = ''

    @property
    def large(self):
        return self.name.endswith('_c')

    def declare(self, name=None):
        args = ', '.join(a.declare() for a in self.args) or 'void'
        return f'{self.result} {name or self.name}({args})'


def parse_arg(text):
    text = ' '.join(text.split())
    if text == '...':
        return Arg('', '...')
    m = re.fullmatch(r'(.*?)(\w+)((?:\[\d*\])*)', text)
    base, name, array = m.group(1).strip(), m.group(2), m.group(3)
    if array == '[][3]':
        return Arg(name, base + ' *', array)
    if array:
        base += '*' if base.endswith('*') else ' *'
    return Arg(name, base, array)


def parse_args(text):
    text = ' '.join(text.split())
    return [] if text == 'void' else [parse_arg(a) for a in text.split(',')]


def parse(header):
    """All MPI_ functions of the text of a header, in its order."""
    half = HALVES.split(header)[0]
    half = re.sub(r'^(\w+)\n\t*(?=MPI_)', r'\1 ', half, flags=re.MULTILINE)
    marks = [(m.start(), m.group(1)) for m in SECTION.finditer(half)]
    functions = []
    for m in PROTOTYPE.finditer(half):
        section = [title for at, title in marks if at < m.start()][-1]
        if m.group(1).startswith('typedef'):
            continue
        functions.append(Function(m.group(2), m.group(1).strip(), parse_args(m.group(3)), section))
    return functions


def read(path):
    with open(path, encoding='utf-8') as file:
        return parse(file.read())


def wrap(text, width=100):
    """A C declaration broken after commas, continued under its opening bracket, tabs of 8."""
    indent = text.index('(') + 1
    lines, line, column = [], '', 0
    for i, parameter in enumerate(text.split(', ')):
        if i:
            line += ','
            column += 1
            if column + 1 + len(parameter) + 1 > width:
                lines.append(line)
                line, column = '\t' * (indent // 8) + ' ' * (indent % 8), indent
            else:
                line += ' '
                column += 1
        line += parameter
        column += len(parameter)
    return '\n'.join(lines + [line])


def write_if_changed(path, text):
    """Leaves an unchanged file alone, so that nothing that depends on it is built again."""
    try:
        with open(path, encoding='utf-8') as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
