#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Checks that no room uses a symbol of a higher one (rules.py has their order), by what the object files
define and what they lack.

Usage: calls.py SOURCE_DIR BUILD_DIR
"""
import pathlib
import subprocess
import sys

import rules

# Generated sources -> the room they belong to.
GENERATED = {
    'nal_registry.c': 'nal/registry.c',
    'mpi_shim/coll_forms.c': 'mpi_shim/coll/coll_forms.c',
    'mpi_shim/neighbor_forms.c': 'mpi_shim/comm/neighbor_forms.c',
    'mpi_shim/entry_': 'mpi_shim/api/entry_',
}

# "caller -> callee" for the time being -> why. An entry that is not needed any more must go.
CALLS_UP = {
}

DEFINED, UNDEFINED = 'TDBRCVWi', 'Uvw'


def sources_of(source, tops):
    """Source files by the object files meson makes of them, next to the meson.build of any folder they lie in."""
    found = {}
    for top in tops.split():
        for path in (source / top).rglob('*.c'):
            parts = path.relative_to(source).parts
            for i in range(len(parts)):
                found['/'.join([*parts[:i], '_'.join(parts[i:])]) + '.o'] = '/'.join(parts)
    return found


def objects_of(build, tops):
    return sorted(build.glob('*.p/*.o')) + sorted(path for top in tops.split() for path in (build / top).rglob('*.p/*.o'))


def source_of(found, build, path):
    """The source of an object file, or None if it is not of these top folders."""
    where = path.parent.parent.relative_to(build)
    if path.name.startswith('meson-generated_.._'):
        made = (where / path.name[len('meson-generated_.._'):-len('.o')]).as_posix()
        for start, room in GENERATED.items():
            if made.startswith(start):
                return room + made[len(start):]
        return None
    return found.get((where / path.name).as_posix())


def symbols(paths):
    """(defined, undefined) by each of these object files; one call of nm, which starts slowly, for all."""
    found = {str(path): (set(), set()) for path in paths}
    out = subprocess.run(['nm', '-A', '--format=posix', *found], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        path, row = line.split(': ', 1)
        name, kind = row.split()[:2]
        if kind in DEFINED:
            found[path][0].add(name)
        elif kind in UNDEFINED:
            found[path][1].add(name)
    return found


def edges_up(source, build, tops):
    """Calls that go up: "caller -> callee" -> names."""
    found = sources_of(source, tops)
    of = {str(path): source_of(found, build, path) for path in objects_of(build, tops)}
    of = {path: name for path, name in of.items() if name and name.startswith(tuple(tops.split()))}
    where, lacks = {}, []
    for path, (defined, undefined) in (symbols(of) if of else {}).items():
        where.update(dict.fromkeys(defined, of[path]))
        lacks.append((of[path], undefined))
    edges = {}
    for caller, undefined in lacks:
        for name in undefined & where.keys():
            if rules.goes_up(caller, where[name]):
                edges.setdefault(f'{caller} -> {where[name]}', set()).add(name)
    return len(lacks), edges


def check(source, build, tops):
    """Objects looked at, and what is wrong."""
    count, edges = edges_up(source, build, tops)
    wrong = [f'{edge}: {", ".join(sorted(names))}' for edge, names in sorted(edges.items()) if edge not in CALLS_UP]
    if source == rules.ROOT:
        wrong += [f'{edge}: is an exception that nothing needs' for edge in CALLS_UP
                  if count and edge.startswith(tuple(tops.split())) and edge not in edges]
    return count, wrong


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip())
        return 2
    source, build = (pathlib.Path(arg).resolve() for arg in sys.argv[1:])
    broken = False
    print(f'1..{len(rules.ROOMS)}')
    for number, tops in enumerate(rules.ROOMS, 1):
        count, wrong = check(source, build, tops)
        broken |= bool(wrong)
        skipped = '' if count else ' # SKIP not built'
        print(f'{"not ok" if wrong else "ok"} {number} - no call in {tops} goes up ({count} objects){skipped}')
        for line in wrong:
            print(f'# {line}')
    return int(broken)


if __name__ == '__main__':
    sys.exit(main())
