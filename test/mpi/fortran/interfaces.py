#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Constants and procedures of the three interfaces against mpi.h and the libraries.

Usage: interfaces.py SOURCE_DIR BUILD_DIR

Constants: a program in C and one in each interface of Fortran print all that mpif.h has, in order. Names: each
procedure of the table is a symbol of both libraries, MPI_ ones weak and PMPI_ ones not, and can be used
from its module. Standards: each interface compiles where gfortran is asked for standard Fortran and nothing else.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / 'mpifort/gen'))
import table  # noqa: E402

PROCEDURES = table.read(SOURCE / 'include/mpi_abi/mpi.h')
WRAPPERS = BUILD / 'tools/mpicc'
cases = failed = 0


def case(name, problems):
    global cases, failed
    cases += 1
    failed += bool(problems)
    print(f'{"not ok" if problems else "ok"} {cases} - {name}')
    for problem in list(problems)[:20]:
        print(f'# {problem}')


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        print(f'# {done.stdout}{done.stderr}'.replace('\n', '\n# '))
        sys.exit(f'{command[0]} failed')
    return done.stdout


# ---- constants ------------------------------------------------------------------------------------------------

# Not in C, or one less than there, as strings have no closing zero here.
FORTRAN_ONLY = {'MPI_STATUS_SIZE', 'MPI_SOURCE', 'MPI_TAG', 'MPI_ERROR', 'MPI_ADDRESS_KIND',
                'MPI_OFFSET_KIND', 'MPI_COUNT_KIND', 'MPI_INTEGER_KIND', 'MPI_SUBARRAYS_SUPPORTED',
                'MPI_ASYNC_PROTECTS_NONBLOCKING'}
REMOVED = {'MPI_LB', 'MPI_UB', 'MPI_COMBINER_HVECTOR_INTEGER', 'MPI_COMBINER_HINDEXED_INTEGER',
           'MPI_COMBINER_STRUCT_INTEGER'}


def names_of_mpif():
    text = (BUILD / 'mpifort/mpif.h').read_text()
    return [n for n in re.findall(r'PARAMETER \((MPIX?_\w+)=', text) if n not in FORTRAN_ONLY]


def values(folder, names):
    """Name -> value, by each language."""
    handles = re.findall(r'type\(MPI_\w+\), parameter :: (\w+) =',
                         (BUILD / 'mpifort/mpi_f08.f90').read_text())
    (folder / 'c.c').write_text('#include <mpi.h>\n#include <stdio.h>\nint main(void)\n{\n' + ''.join(
        f'\tprintf("%lld\\n", (long long){n});\n' for n in names) + '\treturn 0;\n}\n')
    (folder / 'f77.f').write_text("      INCLUDE 'mpif.h'\n" + ''.join(
        f'      PRINT *, {n}\n' for n in names) + '      END\n')
    (folder / 'f90.f90').write_text('use mpi\n' + ''.join(f'print *, {n}\n' for n in names) + 'end\n')
    in_f08 = [n for n in names if n not in ('MPI_LB', 'MPI_UB')]
    (folder / 'f08.f90').write_text('use mpi_f08\n' + ''.join(
        f'print *, {n}{"%MPI_VAL" if n in handles else ""}\n' for n in in_f08) + 'end\n')
    found = {}
    for language, wrapper, source in (('C', 'mpicc', 'c.c'), ('mpif.h', 'mpifort', 'f77.f'),
                                      ('mpi', 'mpifort', 'f90.f90'), ('mpi_f08', 'mpifort', 'f08.f90')):
        run([WRAPPERS / wrapper, folder / source, '-o', folder / 'program'])
        printed = run([folder / 'program']).split()
        found[language] = dict(zip(in_f08 if language == 'mpi_f08' else names, map(int, printed)))
        if len(printed) != len(found[language]):
            sys.exit(f'{language} prints {len(printed)} values of {len(found[language])}')
    return found


def c_constants():
    text = re.sub(r'/\*.*?\*/', '', (SOURCE / 'include/mpi_abi/mpi.h').read_text(), flags=re.DOTALL)
    names = re.findall(r'#define (MPI_\w+)\s+(?:\(\(MPI_(?:\w+)\)0x|MPI_|-?\d)', text)
    names += re.findall(r'^\t(MPIX?_\w+) = ', text, re.MULTILINE)
    return {n for n in names if not re.match(r'MPI_(T_|F_)', n)}


def constants(folder):
    names = names_of_mpif()
    found = values(folder, names)
    wanted = {n: v - n.startswith('MPI_MAX_') for n, v in found['C'].items()}
    for language in ('mpif.h', 'mpi', 'mpi_f08'):
        case(f'{language}: constants have the values of mpi.h',
             [f'{n} is {v}, not {wanted[n]}' for n, v in found[language].items() if v != wanted[n]])
    case('mpif.h has all of them', sorted(c_constants() - set(names)))
    case('and no others', sorted(set(names) - c_constants() - REMOVED - {'MPI_DISPLACEMENT_CURRENT'}))
    case('there are many', [] if len(names) > 250 else [len(names)])


# ---- names ------------------------------------------------------------------------------------------------------

def symbols(library):
    out = run(['nm', '-D', '--defined-only', '--format=posix', library])
    names = [line.split() for line in out.splitlines()]
    return {name[0].split('@')[0]: name[1] for name in names if name[1] != 'A'}  # A: the version itself


def linker_names():
    for name in ('postern-mpifort', 'postern-mpifort_abi'):
        shown = symbols(BUILD / f'mpifort/lib{name}.so.1')
        for interface in ('mpif', 'mpi', 'f08'):
            wanted = table.linker_names(PROCEDURES, interface)
            case(f'lib{name}: {len(wanted)} procedures of interface {interface}', [
                n for n in wanted if shown.get(n) != ('T' if n.startswith('p') else 'W')])
        known = {n for i in ('mpif', 'mpi', 'f08') for n in table.linker_names(PROCEDURES, i)}
        rest = [n for n in shown if n not in known and not re.match(
            r'__mpi|mpifort_(numbers|strings)_$|mpi_\w*(copy|dup|delete|null|null_c)_(fn_)?', n)]
        case(f'lib{name}: nothing else can be seen', rest)


def in_modules(folder):
    """Every procedure, named in a USE statement."""
    for module in ('mpi', 'mpi_f08'):
        present = [p for p in PROCEDURES if (p.in_mpi if module == 'mpi' else p.in_f08 and (
            not p.large or p.name in ('MPI_Op_create_c', 'MPI_Register_datarep_c')))]
        names = sorted({prefix + p.name for p in present for prefix in ('', 'P')} | {'MPI_Sizeof'})
        text = ''.join(f'subroutine s{i}\n  use {module}, only: ' + ', &\n    '.join(names[i:i + 100]) +
                       '\nend subroutine\n' for i in range(0, len(names), 100))
        (folder / 'names.f90').write_text(text)
        run([WRAPPERS / 'mpifort', '-c', folder / 'names.f90', '-o', folder / 'names.o'])
        case(f'module {module} has {len(names)} procedures', [] if len(names) > 800 else names)


def covered():
    """Every function of the header but those of the tool interface and handle conversions."""
    text = (SOURCE / 'include/mpi_abi/mpi.h').read_text().split('/* ---- PMPI')[0]
    declared = set(re.findall(r'^(?:int|double|MPI_Aint|MPI_\w+)\s+(MPI_\w+)\(', text, re.MULTILINE))
    declared = {n for n in declared if not re.match(r'MPI_T_|\w+_(toint|fromint)$', n)}
    case(f'the table has the {len(declared)} functions of mpi.h that Fortran has',
         sorted(declared - {p.name for p in PROCEDURES}) if len(declared) > 500 else ['too few'])


# ---- standards ------------------------------------------------------------------------------------------------

STRICT = [['-std=f2003'], ['-std=f2008'], ['-std=f2008ts'], ['-std=f2018'], ['-pedantic', '-Wall', '-Werror']]
USES = {'mpif.h': ('', "include 'mpif.h'\n"), 'mpi': ('use mpi\n', ''), 'mpi_f08': ('use mpi_f08\n', '')}


def standards(folder):
    for interface, (use, include) in USES.items():
        source = folder / 'strict.f90'
        source.write_text(f'program strict\n{use}implicit none\n{include}integer :: rank, ierr\n'
                          'call MPI_Init(ierr)\ncall MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)\n'
                          'call MPI_Finalize(ierr)\nend program strict\n')
        for flags in STRICT:
            done = subprocess.run([WRAPPERS / 'mpifort', *flags, '-c', source, '-o', folder / 'strict.o'],
                                  capture_output=True, text=True)
            case(f'{interface} compiles with {" ".join(flags)}',
                 done.stderr.splitlines() if done.returncode else [])


# ---- booleans ---------------------------------------------------------------------------------------------------

# The one procedure of mpi_f08 with buffers and a LOGICAL, under both of its names; one buffer has gaps.
BOOLEANS = '''\
program booleans
  use mpi_f08
  implicit none
  logical(4) :: yes(4), no
  logical :: is_set(2)
  yes = .false.
  no = .true.
  call MPI_Init()
  call MPI_Abi_get_fortran_booleans(4, yes(2), no, is_set(1))
  call PMPI_Abi_get_fortran_booleans(4, yes(4:1:-3), no, is_set(2))
  print '(7l1)', is_set, yes, no
  call MPI_Finalize()
end program booleans
'''


def booleans(folder):
    (folder / 'booleans.f90').write_text(BOOLEANS)
    run([WRAPPERS / 'mpifort', folder / 'booleans.f90', '-o', folder / 'program'])
    printed = run([folder / 'program'], timeout=60).strip()
    case('MPI_Abi_get_fortran_booleans of mpi_f08', [] if printed == 'TTFTFTF' else [printed])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        covered()
        constants(folder)
        linker_names()
        in_modules(folder)
        standards(folder)
        booleans(folder)
    print(f'1..{cases}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
