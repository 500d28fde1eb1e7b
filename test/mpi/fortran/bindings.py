#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The modules mpi and mpi_f08 have the procedures of MPI 5.0, as ../bindings.txt lists them.

Usage: bindings.py BUILD_DIR

The interfaces are read from the sources the modules are compiled from: names of arguments, which programs use as
keywords, types, arrays, and in mpi_f08 INTENT, ASYNCHRONOUS and OPTIONAL.
"""
import importlib.util
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SPEC = importlib.util.spec_from_file_location('listed', HERE.parent / 'bindings.py')
listed = importlib.util.module_from_spec(SPEC)
sys.modules['listed'] = listed
SPEC.loader.exec_module(listed)

# The _c form would be the other one again: MPI_ADDRESS_KIND is MPI_COUNT_KIND (MPI-5 §19.1.5).
ONE_KIND = ('File_get_type_extent', 'Type_create_resized', 'Type_get_extent', 'Type_get_true_extent')
# Forms that are procedures of their own: only their callbacks differ.
SEPARATE = ('Op_create', 'Register_datarep')
# More is said here than the standard does: these are kept until the request is complete, too.
ALSO_LATER = (('Psend_init', 'buf'), ('Precv_init', 'buf'), ('Neighbor_allgatherv_init', 'displs'))
# Buffers here, a LOGICAL of default kind there: so LOGICALs of all kinds can be told of.
BUFFERS = ('logical_true', 'logical_false')
HANDLES = ('Comm', 'Datatype', 'Errhandler', 'File', 'Group', 'Info', 'Message', 'Op', 'Request', 'Session', 'Win')
KINDS = {'MPI_Aint': 'integer(kind=MPI_ADDRESS_KIND)', 'MPI_Count': 'integer(kind=MPI_COUNT_KIND)',
         'MPI_Offset': 'integer(kind=MPI_OFFSET_KIND)', 'double': 'double precision', 'int': 'integer',
         'char': 'character(len=*)'}
STATUS = 'MPI_STATUS_SIZE'
BLOCK = re.compile(r'^  interface(?: (P?MPI_\w+))?\n(.*?)^  end interface', re.MULTILINE | re.DOTALL)
PROCEDURE = re.compile(r'^    (?:[\w ]+ )?(?:subroutine|function) (\w+)\((.*?)\)[^\n]*\n(.*?)^    end',
                       re.MULTILINE | re.DOTALL)


def fortran_type(f, a, ctype, f08):
    """(type, shape) of an argument as the standard has it."""
    base = ctype.replace('const ', '').rstrip('*[]3')
    array = ctype.endswith(']')
    shape = '(3, *)' if ctype.endswith('[][3]') else '(*)' if array else ''
    if a.kind == 'aint':
        return KINDS['MPI_Aint'], ''
    if a.kind == 'cptr':
        return 'type(c_ptr)' if f08 else 'address', ''
    if a.kind == 'integer':
        return KINDS['int'], ''
    if base == 'void':
        return 'choice', ''
    if a.kind == 'logical':
        return 'logical', shape
    if base.endswith(('_function', '_function_c')):
        return (f'procedure({base})' if f08 else 'external'), ''
    if base == 'MPI_Status':
        return ('type(MPI_Status)', shape) if f08 else ('integer', f'({STATUS}, *)' if array else f'({STATUS})')
    if base.startswith('MPI_') and base[4:] in HANDLES:
        return (f'type({base})' if f08 else 'integer'), shape
    if base == 'char' and array:
        return KINDS['char'], {'char**[]': '(count, *)', 'char*[]': '(*)'}.get(ctype, '')
    return KINDS[base], shape


def wanted(functions, f08):
    """Procedure -> forms, each a list of (argument, type, shape, intent, later)."""
    found = {}
    for f in functions:
        if f.section in ('C only', 'libmpi') or f08 and f.section == 'not in mpi_f08':
            continue
        forms = ['small'] + ['large'] * (f.large and f08 and f.name not in ONE_KIND)
        for form in forms:
            name = f.name + '_c' * (form == 'large' and f.name in SEPARATE)
            args = []
            for a in f.args:
                ctype = getattr(a, form)
                if not ctype or ctype == '...' or a.kind == 'absent':
                    continue
                kind, shape = fortran_type(f, a, ctype, f08)
                later = a.later or (f.name, a.name) in ALSO_LATER
                args.append((a.fortran, kind, shape, a.intent if f08 else '', later and f08))
            found.setdefault(name, []).append(args)
    return found


def declaration(line):
    """One declaration of a body -> (names, (type, shape, intent, later, optional))."""
    m = re.fullmatch(r'\s*(.*?) :: (\w+)(\(.*\))?', line)
    kind, *words = re.split(r', (?![^(]*\))', m.group(1))
    intent = next((w[7:-1] for w in words if w.startswith('intent')), 'none')
    if kind == 'type(*)':
        kind = 'choice'
    return m.group(2), (kind, m.group(3) or '' if kind != 'choice' else '', intent, 'asynchronous' in words,
                        'optional' in words)


def interfaces(text):
    """Generic name -> forms: lists of (argument, (type, ...))."""
    text = re.sub(r' &\n\s*', ' ', text)
    found = {}
    for block in BLOCK.finditer(text):
        for m in PROCEDURE.finditer(block.group(2)):
            if m.group(1).endswith('_cptr'):
                continue
            lines = [x for x in m.group(3).splitlines() if '::' in x and '!GCC$' not in x]
            declared = dict(declaration(x) for x in lines)
            names = [n for n in m.group(2).split(', ') if n]
            found.setdefault(block.group(1) or m.group(1), []).append([(n, declared[n]) for n in names])
    return found


def differences(name, form, want, f08):
    """One form of a procedure against what it should be."""
    names = [n for n, _ in form]
    if want is None or [n for n in names if n != 'ierror'] != [a[0] for a in want]:
        return [f'{name}({", ".join(names)})']
    out = []
    for (n, kind, shape, intent, later) in want:
        has = dict(form)[n]
        if n in BUFFERS and has[0] == 'choice':
            continue
        if kind == 'address':
            kind = 'choice' if has[0] == 'choice' else KINDS['MPI_Aint']
        is_now = (has[0], has[1], has[2] if f08 else '', has[3] and f08)
        if is_now != (kind, shape, intent, later):
            out.append(f'{name}: {n} is {is_now}, not {(kind, shape, intent, later)}')
    if f08 and 'ierror' in names and not dict(form)['ierror'][4]:
        out.append(f'{name}: ierror is not OPTIONAL')
    return out


def compare(functions, text, f08):
    """Problems of a module, in its MPI_ and its PMPI_ half."""
    want, have, out = wanted(functions, f08), interfaces(text), []
    for prefix in ('MPI_', 'PMPI_'):
        for name, forms in want.items():
            present = have.get(prefix + name, [])
            if len(present) != len(forms):
                out.append(f'{prefix}{name} has {len(present)} forms, not {len(forms)}')
            for form, one in zip(present, forms):
                out += differences(name, form, one, f08)
    return out


def no_others(functions, text, f08, more):
    want = {prefix + n for n in wanted(functions, f08) for prefix in ('MPI_', 'PMPI_')}
    return sorted(n for n in interfaces(text) if n not in want and not re.fullmatch(more, n))


def main(argv):
    build = pathlib.Path(argv[0])
    functions = listed.read()
    # what only Fortran has, and what MPI-3 removed
    more = r'P?MPI_(?:F_sync_reg|Status_f2f08|Status_f082f)'
    removed = r'|P?MPI_(?:Address|Type_(?:extent|lb|ub|hvector|hindexed|struct)|Errhandler_(?:create|set|get))'
    cases = []
    for module, f08 in (('mpi', False), ('mpi_f08', True)):
        text = (build / f'mpifort/{module}.f90').read_text(encoding='utf-8')
        cases.append((f'module {module} has the procedures of the list', compare(functions, text, f08)))
        cases.append((f'{module} has no others', no_others(functions, text, f08, more + ('' if f08 else removed))))
    print(f'1..{len(cases)}')
    for number, (name, problems) in enumerate(cases, 1):
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
        for problem in problems[:int(argv[1]) if len(argv) > 1 else 20]:
            print(f'# {problem}')
    return any(problems for _, problems in cases)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
