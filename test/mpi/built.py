#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Every MPI function is built, and the document says so.

What other MPIs declare that are installed is compared with our header: names and types of arguments.

Usage: built.py SOURCE_DIR
"""
import glob
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / 'mpi_shim' / 'gen'))
import entries  # noqa: E402
import model  # noqa: E402

FUNCTIONS = model.read(ROOT / 'include/mpi_abi/mpi.h')
BUILT = entries.defined(sorted((ROOT / 'mpi_shim').rglob('*.c')))
DOCUMENT = (ROOT / 'doc/mpi.md').read_text(encoding='utf-8')


def is_built(f):
    name = entries.SAME_AS.get(f.name, FUNCTIONS.internal_name(f)).lower()
    return FUNCTIONS.by_hand(f) or name in BUILT


def missing():
    """Every function is built."""
    return [f.name for f in FUNCTIONS.functions if not is_built(f)]


def wrong_count():
    """doc/mpi.md gives their number."""
    return [] if f'all {len(FUNCTIONS.functions)} functions' in DOCUMENT else [
        f'it should say: all {len(FUNCTIONS.functions)} functions']


OTHERS = ('/usr/include/*/mpich/mpi_proto.h', '/usr/lib/*/openmpi/include/mpi.h')
COMMENT = re.compile(r'/\*.*?\*/|^\s*#[^\n]*', re.DOTALL | re.MULTILINE)
PROTOTYPE = re.compile(r'(?:^|[;}\n])\s*(?:OMPI_DECLSPEC\s+)?(?:int|double|MPI_\w+)\s+(MPI_[A-Z]\w*[a-z]\w*)\s*'
                       r'\(((?:[^;{}()]|\([^()]*\))*)\)[^;{}]*;')
# Conversions of MPI-2 between C and Fortran, which some MPIs have as functions and we as macros
CONVERSION = re.compile(r'MPI_\w+_(c2f|f2c|c2f08|f082c|f082f|f2f08)')


def types_of(arguments):
    """The types of a list of arguments without const, with arrays as pointers."""
    types = []
    for a in re.sub(r'\bconst\b', ' ', arguments).split(','):
        stars = a.count('*') + a.count('[')
        words = re.sub(r'\[[^\]]*\]|\*', ' ', a).split()
        if words not in ([], ['void']):
            types.append(' '.join(words[:-1] if len(words) > 1 else words) + '*' * stars)
    return types


def declared(path):
    """Functions of a header, and the types of their arguments."""
    text = COMMENT.sub(' ', pathlib.Path(path).read_text(encoding='utf-8', errors='replace'))
    return {m[1]: types_of(m[2]) for m in PROTOTYPE.finditer(text)}


def others():
    """What the MPIs that are installed declare is declared here, with the same types of arguments."""
    ours, removed = declared(ROOT / 'include/mpi_abi/mpi.h'), declared(ROOT / 'include/mpi/mpi.h')
    places = []
    for path in [path for pattern in OTHERS for path in glob.glob(pattern)]:
        theirs = declared(path)
        if len(theirs) < 300:
            places.append(f'{path}: only {len(theirs)} functions were found')
        places += [f'{path}: {name}({", ".join(types)}), here: {ours.get(name, "not there")}'
                   for name, types in theirs.items()
                   if ours.get(name) != types and name not in removed and not CONVERSION.fullmatch(name)]
    return places


CASES = [missing, wrong_count, others]


def main():
    failed = 0
    print(f'1..{len(CASES)}')
    for number, case in enumerate(CASES, 1):
        places = case()
        failed += bool(places)
        print(f'{"not ok" if places else "ok"} {number} - {case.__doc__.rstrip(".")}')
        for place in places:
            print(f'# {place}')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
