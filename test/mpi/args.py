#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes a table of calls with one invalid argument each, with some arguments that belong together,
and of calls of functions that are not built.

Usage: args.py MPI_H OUTPUT

The calls follow from the prototypes, what they must return from args_rules.py. Each function is one test case;
an argument that no rule speaks of is an error here.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'mpi_shim' / 'gen'))
import model  # noqa: E402
import protos  # noqa: E402

import args_rules as rules  # noqa: E402

HEAD = '''\
/* Written by test/mpi/args.py. */
#include "args.h"
'''


def base(f):
    name = f.name[len('MPI_'):]
    return name[:-2] if name.endswith(('_c', '_x')) else name


def fits(row, f, arg):
    return re.fullmatch(row[0], base(f)) and re.fullmatch(row[1], arg.name)


def fix(value, f, arg):
    """Names of arrays by the type they have in this form of the function."""
    wide = 'MPI_Count' if 'MPI_Count' in arg.type else 'MPI_Aint' if 'MPI_Aint' in arg.type else 'int'
    names = {'MPI_Count': '_c', 'MPI_Aint': '_a', 'int': ''}[wide]
    if value in ('ones', 'ints', 'bad_counts', 'bad_ints'):
        return {'bad_counts': 'bad_ints'}.get(value, value) + names
    return value.replace('POSITION', arg.type.rstrip(' *'))


def valid(f, arg):
    for row in rules.VALID:
        number = re.fullmatch(r'\d|MPI_ERR_\w+', row[2])
        if fits(row, f, arg) and not (number and arg.type.endswith('*')):
            return fix(row[2], f, arg)
    if arg.array == '[][3]':
        return 'ranges'
    if arg.array and arg.type == 'MPI_Request *':
        return '&null_request'
    if arg.array and arg.type == 'MPI_Datatype *':
        return 'out_types'
    if arg.array and arg.type == 'int *':
        return 'out_ints'
    return {'counts': 'ints_c', 'aints': 'ints_a'}.get(rules.BY_TYPE[arg.type],
                                                       rules.BY_TYPE[arg.type])


def result_of_that_name(arg, values):
    """A pointer, where a rule speaks of a number or a handle."""
    return arg.type.endswith('*') and not arg.array and any(
        re.fullmatch(r'-?\d+|MPI_[A-Z]+_NULL|MPI_KEYVAL_INVALID|\(MPI_[A-Z]\w+\)\w+', v)
        for v, _ in values)


def bad(f, arg):
    """[(value, class)] of an argument."""
    for row in rules.RULES:
        if fits(row, f, arg):
            if result_of_that_name(arg, row[2]):
                continue
            return [(fix(v, f, arg), code) for v, code in row[2]]
    if arg.type.endswith('*'):
        return rules.NULL
    sys.exit(f'{f.name}: no rule for the argument {arg.name}')


def call(f, values):
    return f'{f.name}({", ".join(values)})'


def is_called(functions, f):
    return not functions.by_hand(f) and not re.fullmatch(rules.NOT_CALLED, base(f))


def calls_of(f):
    good = [valid(f, a) for a in f.args]
    for i, arg in enumerate(f.args):
        for value, code in bad(f, arg):
            yield call(f, good[:i] + [value] + good[i + 1:]), f'{arg.name} = {value}', code


def together_of(f):
    """Calls with several arguments that belong together."""
    good = [valid(f, a) for a in f.args]
    for functions, code, values in rules.TOGETHER:
        found = [next((v for names, v in values.items() if re.fullmatch(names, a.name)), None)
                 for a in f.args]
        narrow = any(v in rules.ADDRESSES and 'MPI_Aint' not in a.type for v, a in zip(found, f.args))
        if not re.fullmatch(functions, base(f)) or narrow or not any(found):
            continue
        changed = [(a, v) for a, v in zip(f.args, found) if v]
        yield (call(f, [fix(v, f, a) if v else g for v, g, a in zip(found, good, f.args)]),
               ', '.join(f'{a.name} = {v}' for a, v in changed), code)


def main(argv):
    functions = model.read(argv[0])
    parts, names = [HEAD], []
    for f in functions.functions:
        if is_called(functions, f):
            lines = [f'\tcheck({c}, "{what}", MPI_ERR_{code});'.replace('"' + what + '"', quoted(what))
                     for c, what, code in calls_of(f)]
            for c, what, code in together_of(f):
                code = 'MPI_SUCCESS' if code == rules.RIGHT else f'MPI_ERR_{code}'
                lines.append(f'\tcheck({c}, {quoted(what)}, {code});')
                if code == 'MPI_SUCCESS' and any(a.type == 'MPI_Request *' for a in f.args):
                    lines.append('\tend_request();')
        else:
            continue
        names.append(f.name)
        parts.append(f'\nstatic void args_{f.name}(void)\n{{\n' + '\n'.join(lines or ['\tnothing();']) +
                     '\n}\n')
    parts.append('\nconst struct args_case args_cases[] = {\n' +
                 ''.join(f'\t{{ "{n}", args_{n} }},\n' for n in names) +
                 '\t{ NULL, NULL },\n};\n')
    protos.write_if_changed(argv[1], ''.join(parts))


def quoted(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'


if __name__ == '__main__':
    main(sys.argv[1:])
