#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Checks the rules of doc/architecture.md and CONTRIBUTING.md that a compiler cannot see.

Usage: rules.py [SOURCE_DIR]

Each rule is one TAP case; a broken one lists the places.
"""
import pathlib
import re
import sys

import documents
import words

ROOT = pathlib.Path(__file__).resolve().parents[2]

NAL = ['base/', 'nal/nal.h', 'portals/engine/']

# Folder -> what its files may include besides themselves: folders (ending in /) and single headers.
# The longest folder that holds a file decides. test/ may include anything.
MAY_INCLUDE = {
    'include/': [],
    'base/': [],
    'runtime/': ['base/'],
    # the contract of transports is of the engine's floor, and the engine all that they see of the core
    'portals/engine/': ['include/', 'base/', 'nal/nal.h'],
    'portals/job/': ['include/', 'base/', 'runtime/', 'nal/nal.h', 'portals/engine/'],
    'portals/api/': ['include/', 'base/', 'runtime/', 'nal/nal.h', 'portals/engine/', 'portals/job/'],
    'nal/': NAL,
    'nal/net/dgram/': ['base/', 'nal/net/carrier.h', 'nal/net/silence.h'],
    'nal/net/dgram/sim/': ['base/', 'nal/net/dgram/'],
    'nal/net/': NAL + ['nal/net/dgram/'],
    'nal/net/rdma/': NAL + ['nal/net/'],
    # links include the binding
    'nal/udp/': NAL + ['nal/net/'],
    'nal/eth/': NAL + ['nal/net/'],
    'nal/sim/': NAL + ['nal/net/'],
    'nal/ofi/': NAL + ['nal/net/'],
    'nal/verbs/': NAL + ['nal/net/'],
    'mpi_shim/': ['include/', 'base/'],
    'mpifort/': ['include/'],
    'rwapi_shim/': ['include/', 'base/'],
    'dp_shim/': ['include/', 'base/'],
    'mx_shim/': ['include/', 'base/'],
    'tools/': ['include/', 'base/', 'runtime/', 'portals/engine/region.h', 'nal/nal.h', 'mx_shim/mx_seen.h'],
    # bench/scale measures the datagram protocol in its simulation
    'bench/': ['include/', 'nal/net/dgram/dgram.h', 'nal/net/dgram/sim/sim.h'],
    'examples/': ['include/'],
    'test/': [''],
    'doc/': ['include/', 'base/', 'mpi_shim/coll/algorithms.h'],
}

# The rooms of top folders, the lowest first; several in one row are of one floor. The longest folder that holds a file
# decides; a file may include its own room and what stands before it, never what stands behind it. calls.py has the same
# of calls.
ROOMS = {
    # the calls choose among the transports by their registry
    'base/ runtime/ portals/ nal/': [
        'base/', 'runtime/', 'portals/engine/ nal/nal.h', 'nal/net/carrier. nal/net/silence.h', 'nal/net/dgram/',
        'nal/net/dgram/sim/', 'nal/net/', 'nal/net/rdma/', 'nal/', 'nal/registry', 'portals/job/', 'portals/api/'],
    # the chapters of MPI's standard; coll/shm/ is of one floor with coll/
    'mpi_shim/': ['mpi_shim/core/', 'mpi_shim/datatype/', 'mpi_shim/pt2pt/', 'mpi_shim/coll/', 'mpi_shim/comm/',
                  'mpi_shim/rma/', 'mpi_shim/sessions/', 'mpi_shim/io/', 'mpi_shim/dynamic/', 'mpi_shim/api/'],
}

# Includes that go up for the time being -> why. An entry that is not needed any more must go.
INCLUDES_UP = {
}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
GETENV = re.compile(r'\bgetenv\s*\(')
NOLINT = re.compile(r'NOLINTNEXTLINE(?!.*\*/$)', re.MULTILINE)
MACHINE = re.compile(r'/(?:work|farm|home|root|Users)/\w')
SPDX = 'SPDX-License-Identifier: BSD-3-Clause'
SKIP = re.compile(r'^(?:\.git|build|build-[^/]*|__pycache__)$')


def tree(root):
    """Every file of the sources, as paths relative to the root."""
    found = []
    todo = [root]
    while todo:
        for path in sorted(todo.pop().iterdir()):
            if SKIP.match(path.name) or path.is_symlink():
                continue
            if path.is_dir():
                todo.append(path)
            else:
                found.append(path.relative_to(root))
    return sorted(found)


def text_of(root, path):
    return (root / path).read_text(encoding='utf-8', errors='replace')


def line_of(text, match):
    return text.count('\n', 0, match.start()) + 1


def resolve(root, path, name):
    """The project file an #include names, or None for a system header."""
    for base in (root / path.parent, root, root / 'include'):
        target = (base / name).resolve()
        if target.is_file() and root in target.parents:
            return target.relative_to(root)
    return None


def floor_of(path):
    """(top folders, number of the floor), the latter None outside of all rooms; None where there are no rooms."""
    for tops, floors in ROOMS.items():
        if path.startswith(tuple(tops.split())):
            inside = [(len(room), number) for number, floor in enumerate(floors) for room in floor.split()
                      if path.startswith(room)]
            return tops, max(inside)[1] if inside else None
    return None


def goes_up(path, target):
    """Whether both have rooms in the same top folders, and the target's is above, or one of them is in none."""
    here, there = floor_of(path), floor_of(target)
    if not here or not there or here[0] != there[0]:
        return False
    return here[1] is None or there[1] is None or there[1] > here[1]


def folders_of(own):
    """The folder a/b/ and those it lies in, the innermost first."""
    while own:
        yield own
        own = own[:own.rstrip('/').rfind('/') + 1]


def may_include(path, target):
    path, target = path.as_posix(), target.as_posix()
    # a transport's folder is a layer of its own: nal/shm/ does not include nal/udp/
    own = path[:path.rfind('/') + 1]
    if not own:
        return False
    top = own.split('/')[0] + '/'
    if target.startswith(own) or (top not in ('portals/', 'nal/') and target.startswith(top)):
        return True
    allowed = next((MAY_INCLUDE[folder] for folder in folders_of(own) if folder in MAY_INCLUDE), [])
    return any(target == a or (a.endswith('/') or not a) and target.startswith(a) for a in allowed)


def no_include_goes_up(root, files):
    needed = set()
    for path in files:
        if path.suffix not in ('.c', '.h') or not floor_of(path.as_posix()):
            continue
        text = text_of(root, path)
        if floor_of(path.as_posix())[1] is None:
            yield f'{path}: in none of the rooms of {floor_of(path.as_posix())[0]}'
        for match in INCLUDE.finditer(text):
            target = resolve(root, path, match.group(1))
            if not target or not goes_up(path.as_posix(), target.as_posix()):
                continue
            edge = f'{path} -> {target}'
            needed.add(edge)
            if edge not in INCLUDES_UP:
                yield f'{path}:{line_of(text, match)}: {target} is in a higher room'
    for edge in INCLUDES_UP:
        if edge not in needed and (root == ROOT or (root / edge.split()[0]).exists()):
            yield f'{edge}: is an exception that nothing needs'


def includes_point_downwards(root, files):
    for path in files:
        if path.suffix not in ('.c', '.h'):
            continue
        text = text_of(root, path)
        for match in INCLUDE.finditer(text):
            target = resolve(root, path, match.group(1))
            if target and not may_include(path, target):
                yield f'{path}:{line_of(text, match)}: {path.parts[0]}/ may not include {target}'


# the place; tests of what becomes of the environment itself; tests that change it for their processes, or are programs
# that have the public interface only
READERS = ('base/config.c', 'test/ofi/environ.c', 'test/ofi/unload.c', 'test/support/ptest.c', 'test/net/users.c',
           'test/net/mixed.c')


# Folders whose static functions have names of their own, each among all of them.
NAMED = ('base/', 'portals/', 'nal/', 'runtime/', 'tools/', 'mpi_shim/', 'mpifort/', 'mx_shim/', 'dp_shim/',
         'rwapi_shim/')

ATTRIBUTE = re.compile(r'__attribute__\(\(.*?\)\)\s', re.DOTALL)
STATIC = re.compile(r'^static\b[^;={}()]*?\b(\w+)\([^;{}]*\)\n\{', re.MULTILINE)


def no_two_static_functions_share_a_name(root, files):
    """But those that do the same operation of a table: `.name = name`."""
    places = {}
    for path in files:
        if path.suffix in ('.c', '.h') and path.as_posix().startswith(NAMED):
            text = ATTRIBUTE.sub('', text_of(root, path))
            for name in dict.fromkeys(match.group(1) for match in STATIC.finditer(text)):
                if not re.search(rf'\.{name} = {name}\b', text):
                    places.setdefault(name, []).append(path)
    for name, paths in places.items():
        if len(paths) > 1:
            yield f'{name}(): in {", ".join(map(str, paths))}'


def the_environment_is_read_in_one_place(root, files):
    for path in files:
        if path.suffix in ('.c', '.h') and path.as_posix() not in READERS:
            text = text_of(root, path)
            for match in GETENV.finditer(text):
                yield (f'{path}:{line_of(text, match)}: getenv; add a row to base/config.h '
                       f'and use base_config()')


def no_path_of_one_machine(root, files):
    for path in files:
        text = text_of(root, path)
        for match in MACHINE.finditer(text):
            yield f'{path}:{line_of(text, match)}: {match.group()}'


def every_source_names_its_licence(root, files):
    for path in files:
        if path.suffix in ('.c', '.h', '.py', '.sh', '.in', '.map', '.f', '.f90'):
            head = text_of(root, path)[:300]
            if SPDX not in head or 'the Postern authors' not in head:
                yield f'{path}: no SPDX and copyright line at the top'


def every_nolint_stands_on_the_line_before(root, files):
    for path in files:
        if path.suffix in ('.c', '.h'):
            text = text_of(root, path)
            for match in NOLINT.finditer(text):
                yield f'{path}:{line_of(text, match)}: the line after it is of the comment: clang-tidy takes that one'


def public_functions(root):
    text = re.sub(r'/\*.*?\*/', '', text_of(root, 'portals/libportals.map'), flags=re.DOTALL)
    names = re.findall(r'^\s*(\w+);', text, re.MULTILINE)
    return [name for name in names if name not in ('ptl_err_str', 'ptl_event_str', 'p3_out')]


def every_public_function_has_a_page(root, files):
    pages = {path.name for path in files if path.parent.as_posix() == 'doc/man'}
    for name in public_functions(root):
        if f'{name}.3' not in pages:
            yield f'{name}: no doc/man/{name}.3'


def every_page_is_installed_and_aliases_lead_somewhere(root, files):
    listed = text_of(root, 'doc/meson.build')
    for path in files:
        if path.parent.as_posix() != 'doc/man' or path.suffix == '.in':
            continue
        if f"'man/{path.name}'" not in listed:
            yield f'{path}: not in doc/meson.build'
        text = text_of(root, path)
        if text.startswith('.so '):
            target = root / 'doc/man' / pathlib.PurePath(text.split()[1]).name
            if not target.is_file():
                yield f'{path}: alias of {target.name}, which does not exist'
            elif not re.search(rf'^\.Nm {path.stem}(?: ,)?$', target.read_text(), re.MULTILINE):
                yield f'{path}: alias of {target.name}, whose NAME does not list {path.stem}'


RULES = [
    includes_point_downwards,
    no_include_goes_up,
    no_two_static_functions_share_a_name,
    the_environment_is_read_in_one_place,
    no_path_of_one_machine,
    every_source_names_its_licence,
    every_nolint_stands_on_the_line_before,
    every_public_function_has_a_page,
    every_page_is_installed_and_aliases_lead_somewhere,
    *documents.RULES,
    *words.RULES,
]


def main():
    if '--help' in sys.argv:
        print(__doc__.strip())
        return 0
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    files = tree(root)
    broken = 0
    print(f'1..{len(RULES)}')
    for number, rule in enumerate(RULES, 1):
        places = list(rule(root, files))
        broken += bool(places)
        print(f'{"not ok" if places else "ok"} {number} - {rule.__name__}')
        for place in places:
            print(f'# {place}')
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
