#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Every MPI function is built, or listed as not built, and the document says so.

Usage: built.py SOURCE_DIR
"""
import pathlib
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / 'mpi_shim' / 'gen'))
import entries  # noqa: E402
import model  # noqa: E402
import not_built  # noqa: E402

FUNCTIONS = model.read(ROOT / 'include/mpi_abi/mpi.h')
BUILT = entries.defined(sorted((ROOT / 'mpi_shim').rglob('*.c')))
DOCUMENT = (ROOT / 'doc/mpi.md').read_text(encoding='utf-8')


def is_built(f):
    name = entries.SAME_AS.get(f.name, FUNCTIONS.internal_name(f)).lower()
    return FUNCTIONS.by_hand(f) or name in BUILT


def neither():
    """Every function is built or listed as not built."""
    return [f.name for f in FUNCTIONS.functions if not is_built(f) and not not_built.why(f.name)]


def both():
    """No function that is built is listed as not built."""
    return [f.name for f in FUNCTIONS.functions if is_built(f) and not_built.why(f.name) and
            not FUNCTIONS.by_hand(f)]


def unused():
    """Every row of the list speaks of some function."""
    return [reason for _, reason in not_built.NOT_BUILT
            if not any(not_built.why(f.name) == reason for f in FUNCTIONS.functions)]


def undocumented():
    """doc/mpi.md names everything that is not built."""
    return [reason for _, reason in not_built.NOT_BUILT if f'| {reason} |' not in DOCUMENT]


def wrong_count():
    """doc/mpi.md gives the number of functions that are built in all."""
    count = sum(is_built(f) for f in FUNCTIONS.functions)
    return [] if f'{count} of the {len(FUNCTIONS.functions)} functions' in DOCUMENT else [
        f'it should say: {count} of the {len(FUNCTIONS.functions)} functions']


CASES = [neither, both, unused, undocumented, wrong_count]


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
