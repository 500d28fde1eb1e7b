#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Every MPI function that is built is called by some C program of the test suite.

Usage: called.py SOURCE_DIR BUILD_DIR

A program wants from the library the functions that it calls. mpi_args does not count: it calls everything,
with arguments that are wrong.
"""
import pathlib
import re
import subprocess
import sys

SOURCE, BUILD = (pathlib.Path(a) for a in sys.argv[1:])
sys.path.insert(0, str(SOURCE / 'mpi_shim' / 'gen'))
import model  # noqa: E402


def is_program(path):
    if path.name == 'mpi_args' or 'fortran' in path.parts or not path.is_file():
        return False
    with path.open('rb') as f:
        return f.read(4) == b'\x7fELF' and path.suffix == ''


PROGRAMS = [p for p in sorted((BUILD / 'test' / 'mpi').rglob('*')) if is_program(p)]
WANTED = subprocess.run(['nm', '-D', '--undefined-only', '--format=posix', *map(str, PROGRAMS)],
                        capture_output=True, text=True, check=True).stdout
CALLED = set(re.findall(r'^P?(MPI_\w+)', WANTED, re.MULTILINE))


def not_called(lib):
    functions = model.read(SOURCE / 'include' / lib / 'mpi.h')
    return [f.name for f in functions.functions if f.name not in CALLED]


def main():
    failed = 0
    print('1..2')
    for number, lib in enumerate(['mpi_abi', 'mpi'], 1):
        names = not_called(lib)
        failed += bool(names)
        print(f'{"not ok" if names else "ok"} {number} - '
              f'every function that is built of lib{lib} is called by one of the programs')
        for name in names:
            print(f'# {name} is not called')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
