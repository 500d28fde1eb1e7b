#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The headers have the functions of MPI 5.0, and of before, as bindings.txt lists them.

Usage: bindings.py SOURCE_DIR CC CXX

Names, results, arguments, types, const and arrays are compared. Then a tool that wraps the whole interface is
written from the list, and compiled in C and in C++.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

LIST = pathlib.Path(__file__).with_name('bindings.txt')
INTENTS = ('in', 'out', 'inout', 'none')
# Arrays in the standard, pointers in the header: gcc would warn of MPI_UNWEIGHTED, the address of no array.
WEIGHTS = ('weights', 'sourceweights', 'destweights')


@dataclass
class Arg:
    """One argument: `small` and `large` are its types in C in the two forms, '' if it is not there."""
    name: str
    small: str
    large: str
    fortran: str = ''
    kind: str = ''
    intent: str = 'in'
    later: bool = False


@dataclass
class Function:
    """One function of the list, without MPI_."""
    name: str
    result: str
    large: bool
    args: list
    section: str


def read_arg(text):
    if text == '...':
        return Arg('', '...', '...')
    name, *words = text.split()
    name, _, fortran = name.partition('|')
    later, intent, kind = False, 'in', ''
    while words[-1] in ('async', 'logical', 'integer', 'aint', 'cptr', 'absent', *INTENTS):
        word = words.pop()
        if word == 'async':
            later = True
        elif word in INTENTS:
            intent = word
        else:
            kind = word
    small, two, large = ' '.join(words).partition('/')
    return Arg(name, small, large if two else small, fortran or name, kind, intent, later)


def read():
    """All functions of the list."""
    found, section = [], ''
    text = re.sub(r'\n  ', ' ', LIST.read_text(encoding='utf-8'))
    for line in text.splitlines():
        if line.startswith('['):
            section = line.strip('[]')
        elif line and not line.startswith('#'):
            head, _, args = line.partition(': ')
            m = re.fullmatch(r'(\w+)(\+c)?(?: -> (\w+))?', head)
            found.append(Function(m.group(1), m.group(3) or 'int', bool(m.group(2)),
                                  [] if args == '-' else [read_arg(a) for a in args.split('; ')], section))
    return found


def prototypes(functions):
    """The list, name -> (result, ((argument, type), ...))."""
    found = {}
    for f in functions:
        found[f.name] = (f.result, tuple((a.name, a.small) for a in f.args if a.small))
        if f.large:
            found[f.name + '_c'] = (f.result, tuple((a.name, a.large) for a in f.args if a.large))
    return found


def written(a):
    """The type of an argument of the header, as the list has it."""
    base, array = re.sub(r' \*', '*', a.type), a.array
    if array or a.name in WEIGHTS:
        base, array = base[:-1].rstrip(), array or '[]'
    return base + array


def declared(source, header):
    """A header, likewise."""
    sys.path.insert(0, str(source / 'mpi_shim/gen'))
    import protos  # pylint: disable=import-outside-toplevel
    return {f.name[4:]: (f.result, tuple((a.name, written(a)) for a in f.args))
            for f in protos.read(source / 'include' / header)}


def in_c(name, ctype):
    stem, array = re.fullmatch(r'(.*?)((?:\[\d*\])*)', ctype).groups()
    return '...' if ctype == '...' else f'{stem} {name}{array}'


def tool(listed):
    """A tool that counts all calls."""
    out = ['#include <mpi.h>', 'static long calls;', '#ifdef __cplusplus', 'extern "C" {', '#endif']
    for name, (result, args) in listed.items():
        params = ', '.join(in_c(*a) for a in args) or 'void'
        passed = ', '.join(a for a, _ in args if a)
        out.append(f'{result} MPI_{name}({params})\n{{\n\tcalls++;\n\treturn PMPI_{name}({passed});\n}}')
    return '\n'.join(out + ['#ifdef __cplusplus', '}', '#endif']) + '\n'


def compiled(source, header, text, compiler, language):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f'tool.{language}'
        path.write_text(text)
        done = subprocess.run([*compiler.split(), '-Wall', '-Wextra', '-Werror', '-fsyntax-only',
                               f'-I{(source / "include" / header).parent}', path],
                              capture_output=True, text=True, check=False)
        return done.stderr.splitlines() if done.returncode else []


def cases_of(source, header, listed, compilers):
    found = declared(source, header)
    yield f'{header} has all {len(listed)} functions of the list', sorted(set(listed) - set(found))
    yield 'and no others', sorted(set(found) - set(listed))
    yield 'results, arguments and their types are those of the list', [
        f'{n}: {found[n]}, not {listed[n]}' for n in sorted(set(listed) & set(found)) if found[n] != listed[n]]
    for language, compiler in zip(('c', 'cc'), compilers):
        yield (f'a tool that wraps them all compiles ({language})',
               compiled(source, header, tool(listed), compiler, language))


def main(argv):
    source, functions = pathlib.Path(argv[0]), read()
    standard = prototypes(f for f in functions if f.section != 'libmpi')
    other = prototypes(f for f in functions if f.section == 'libmpi')
    cases = [('the list is the whole of MPI 5.0', [] if len(standard) == 662 else [len(standard)])]
    cases += cases_of(source, 'mpi_abi/mpi.h', standard, argv[1:])
    cases += cases_of(source, 'mpi/mpi.h', other, argv[1:])
    print(f'1..{len(cases)}')
    for number, (name, problems) in enumerate(cases, 1):
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for problem in problems[:20]:
            print(f'# {problem}')
    return any(problems for _, problems in cases)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
