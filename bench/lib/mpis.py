# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Finds the MPIs that are there, and says how each compiles and starts programs.

Which MPI a compiler wrapper belongs to is what its mpi.h says, and which launcher goes with it what the
launcher says; names and places are only where to look.
"""
import os
import pathlib
import re
import shutil

import jobs

# name -> (title, what its mpi.h defines, what its launcher says of itself)
KINDS = {
    'postern': ('Postern', ('POSTERN_MPI_H',), 'Postern'),
    'mpich': ('MPICH', ('MPICH_VERSION',), 'HYDRA|Hydra|MPICH'),
    'openmpi': ('Open MPI', ('OMPI_MAJOR_VERSION', 'OMPI_MINOR_VERSION', 'OMPI_RELEASE_VERSION'),
                r'Open MPI|OpenRTE|PRRTE'),
}
# Others that define MPICH_VERSION as well
DERIVED = ('I_MPI_VERSION', 'MVAPICH2_VERSION', 'MVAPICH_VERSION', 'CRAY_MPICH_VERSION')
SECONDS = 60


class Mpi:
    """A compiler wrapper and the launcher that goes with it."""

    def __init__(self, name, version, mpicc, mpiexec):
        self.name = name
        self.title = f'{KINDS[name][0]} {version}'.strip()
        self.mpicc = str(mpicc)
        # by its name if that is enough, as users do: Open MPI takes a path for a wish to set a prefix
        known = shutil.which(mpiexec.name)
        self.mpiexec = mpiexec.name if known == str(mpiexec) else str(mpiexec)
        self.options = []
        if name == 'openmpi':
            # It counts cores, and refuses more ranks than that, and the superuser. The ranks are bound by us, as
            # all are.
            self.options = ['--oversubscribe', '--bind-to', 'none']
            if os.geteuid() == 0:
                self.options.insert(0, '--allow-run-as-root')

    def launch(self, ranks, program, cores=2):
        """`cores`: that there are for the job."""
        # told how many there are it knows when it has to share them
        slots = ['--host', f'localhost:{cores}'] if self.name == 'openmpi' else []
        return [self.mpiexec, *slots, *self.options, '-n', str(ranks), *program]


def defines(mpicc, folder):
    """The macros of mpi.h as this wrapper's compiler sees them."""
    source = pathlib.Path(folder) / 'which.c'
    source.write_text('#include <mpi.h>\n', encoding='utf-8')
    output = jobs.run([str(mpicc), '-E', '-dM', str(source)], SECONDS, folder).output
    return dict(re.findall(r'^#define (\w+) ?(.*)$', output, re.MULTILINE))


def kind_of(macros):
    """(name, version), or None for an MPI that is not compared."""
    if any(name in macros for name in DERIVED):
        return None
    for name, (_, wanted, _) in KINDS.items():
        if all(macro in macros for macro in wanted):
            version = '' if name == 'postern' else \
                '.'.join(macros[macro].strip('"') for macro in wanted)
            return name, version
    return None


def launcher(name, places, folder):
    """The first of the places that is this MPI's."""
    for place in places:
        if not place or not os.access(place, os.X_OK):
            continue
        try:
            says = jobs.run([str(place), '--version'], SECONDS, folder).output
        except jobs.Failure:
            continue
        if re.search(KINDS[name][2], says):
            return place
    return None


def launchers_of(mpicc):
    """Where the launcher of a wrapper may be: beside it or beside what it is a link to, under the same
    suffix."""
    places = []
    for path in (pathlib.Path(mpicc), pathlib.Path(os.path.realpath(mpicc))):
        suffix = path.name[len('mpicc'):] if path.name.startswith('mpicc') else ''
        for ending in dict.fromkeys([suffix, '', '.mpich', '.hydra', '.openmpi']):
            places += [path.parent / f'mpiexec{ending}', path.parent / f'mpirun{ending}']
    return list(dict.fromkeys(places))


def own_places(prefix):
    """(mpicc, mpiexec) in a build directory or an installed prefix, whichever this is."""
    for mpicc, mpiexec in (('tools/mpicc/mpicc', 'tools/mpiexec/mpiexec'),
                           ('bin/mpicc', 'bin/mpiexec')):
        if (prefix / mpicc).is_file():
            return prefix / mpicc, [prefix / mpiexec]
    return None


def inspect(mpicc, launchers, wanted, folder, complain):
    try:
        kind = kind_of(defines(mpicc, folder))
    except jobs.Failure as reason:
        complain(f'{mpicc}: {reason}; leaving it out')
        return None
    if not kind:
        complain(f'{mpicc}: its mpi.h is of none of {", ".join(KINDS)}; leaving it out')
        return None
    if kind[0] not in wanted:
        return None
    mpiexec = launcher(kind[0], launchers, folder)
    if not mpiexec:
        complain(f'{mpicc}: no launcher of {KINDS[kind[0]][0]} near it; leaving it out')
        return None
    return Mpi(*kind, mpicc, mpiexec)


def find(prefix, wanted, folder, complain):
    """name -> Mpi of those wanted, ours first. `prefix` is where ours is, or None."""
    found = {}
    looked_at = set()
    places = []
    if prefix:
        own = own_places(prefix)
        if own:
            places.append(own)
        else:
            complain(f'{prefix}: neither tools/mpicc/mpicc nor bin/mpicc is there')
    for command in ('mpicc.mpich', 'mpicc.openmpi', 'mpicc'):
        path = shutil.which(command)
        if path:
            places.append((path, launchers_of(path)))
    for mpicc, launchers in places:
        if os.path.realpath(mpicc) in looked_at and pathlib.Path(mpicc).name == 'mpicc':
            continue
        looked_at.add(os.path.realpath(mpicc))
        mpi = inspect(mpicc, launchers, wanted, folder, complain)
        if mpi and mpi.name not in found:
            found[mpi.name] = mpi
    return {name: found[name] for name in KINDS if name in found}
