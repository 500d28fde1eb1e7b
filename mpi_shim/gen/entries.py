#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes the entry points: MPI_Xxx and PMPI_Xxx for every function of the header that is not written
by hand (model.BY_HAND).

Usage: entries.py OUTPUT_DIR MPI_H SOURCE...

The internal functions defined in the SOURCEs (`int mpi_xxx(` at the start of a line, or the `mpi_xxx_schedule` of
which forms.py makes them) get an entry point
that checks and converts arguments and calls them; every other function one that says that it is not
built. So there is no list to keep: define the function and it is there.
"""
import os
import re
import sys

import checks
import model
import protos

# Output -> sections of the header.
FILES = {
    'entry_p2p.c': 'point-to-point: .*|requests|statuses',
    'entry_types.c': 'datatypes|addresses|packing',
    'entry_comm.c': 'groups|communicators|attributes|topologies',
    'entry_coll.c': 'collectives: .*|reduction operations',
    'entry_misc.c': 'the .*|starting .*|errors|info objects|dynamic .*|sessions|deprecated .*',
    'entry_rma.c': 'one-sided: .*',
    'entry_file.c': 'files: .*',
}

# Old names -> what they have always meant.
SAME_AS = {
    'MPI_Attr_put': 'MPI_Comm_set_attr',
    'MPI_Attr_get': 'MPI_Comm_get_attr',
    'MPI_Attr_delete': 'MPI_Comm_delete_attr',
    'MPI_Keyval_create': 'MPI_Comm_create_keyval',
    'MPI_Keyval_free': 'MPI_Comm_free_keyval',
}

# Checks of the elements of an array, in its wide form.
OF_ELEMENTS = re.compile(r'mpi_check_(lengths|types)\(')

# Their errors go to the error handler of what they were to make.
GIVES_HANDLER = re.compile('MPI_Comm_create_from_group|MPI_Intercomm_create_from_groups')

HEAD = '''\
/* Written by mpi_shim/gen/entries.py from include/mpi_abi/mpi.h. */
/* NOLINTBEGIN */
#include "mpi_shim/api/entry.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/api/weak.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
'''

KINDS = {
    'struct mpi_comm *': 'MPI_KIND_COMM',
    'struct mpi_group *': 'MPI_KIND_GROUP',
    'struct mpi_type *': 'MPI_KIND_TYPE',
    'struct mpi_op *': 'MPI_KIND_OP',
    'struct mpi_errhandler *': 'MPI_KIND_ERRHANDLER',
    'struct mpi_info *': 'MPI_KIND_INFO',
    'struct mpi_message *': 'MPI_KIND_MESSAGE',
    'struct mpi_win *': 'MPI_KIND_WIN',
    'struct mpi_file *': 'MPI_KIND_FILE',
    'struct mpi_session *': 'MPI_KIND_SESSION',
}
NULLS = {
    'struct mpi_comm *': 'MPI_COMM_NULL',
    'struct mpi_group *': 'MPI_GROUP_NULL',
    'struct mpi_type *': 'MPI_DATATYPE_NULL',
    'struct mpi_op *': 'MPI_OP_NULL',
    'struct mpi_errhandler *': 'MPI_ERRHANDLER_NULL',
    'struct mpi_info *': 'MPI_INFO_NULL',
    'struct mpi_message *': 'MPI_MESSAGE_NULL',
    'struct mpi_win *': 'MPI_WIN_NULL',
    'struct mpi_file *': 'MPI_FILE_NULL',
    'struct mpi_session *': 'MPI_SESSION_NULL',
    'struct mpi_request *': 'MPI_REQUEST_NULL',
}


def defined(paths):
    """The internal functions that the sources define, and those that forms.py makes of their schedules."""
    names = set()
    for path in paths:
        with open(path, encoding='utf-8') as file:
            names.update(re.findall(r'^int (mpi_\w+)\(', file.read(), re.MULTILINE))
    for schedule in [name for name in names if name.endswith('_schedule')]:
        base = schedule[len('mpi_'):-len('_schedule')]
        names.update([f'mpi_{base}', f'mpi_i{base}', f'mpi_{base}_init'])
    return names


class Entry:
    """The body of one entry point, built up argument by argument."""

    def __init__(self, functions, f):
        self.f = f
        self.inner = functions.inner(functions.by_name[SAME_AS.get(f.name, f.name)])
        if f.name in SAME_AS:
            for inner, arg in zip(self.inner, f.args):
                inner.name = arg.name
        self.callee = SAME_AS.get(f.name, functions.internal_name(f)).lower()
        self.outer = {a.name: a for a in f.args}
        self.locals = []   # declarations
        self.steps = []    # statements before the call
        self.always = []   # statements after it
        self.results = []  # the same, when it succeeded
        self.wide = []     # struct mpi_wide
        self.any_time = bool(checks.ANY_TIME.fullmatch(f.name))
        self.comm = next((a for a in self.inner if a.how in ('in', 'null') and
                          a.type == 'struct mpi_comm *'), None)
        self.win = next((a for a in self.inner if a.how in ('in', 'null') and
                         a.type == 'struct mpi_win *'), None)
        self.on_file = f.section.startswith('files: ') or any(a.type == 'MPI_File' for a in f.args)
        self.session = next((a for a in self.inner if a.how == 'in' and
                             a.type == 'struct mpi_session *'), None)
        self.on = self.errors_go_to()

    # ---- parts of entry points ----

    def check(self, expression):
        self.steps.append(f'rc = {expression};\n\tif (MPI_UNLIKELY(rc))\n\t\tgoto fail;')

    def fill(self, template, arg, wide=None):
        comm = f'{self.comm.name}_o' if self.comm else 'NULL'
        return template.format(v=arg.name, o=f'{arg.name}_o', n=f'"{arg.name}"', comm=comm, win='win_o',
                               len=checks.length(self.f, arg), wide=wide or arg.name)

    def checks_of(self, arg, wide=None):
        """The rule of ROWS, or that for pointers."""
        row = checks.row_of(self.f, arg)
        if row is None:
            row = ''
            pointer = arg.type.endswith('*')
            if pointer and not checks.may_be_null(self.f, arg):
                row = checks.NOT_NULL
                if arg.array and arg.type != 'const char *':  # a string has an end of its own
                    row = checks.ARRAY if checks.length(self.f, arg) else ''
        for expression in filter(None, row.split(';')):
            yield self.fill(expression, arg, wide)

    # ---- arguments ----

    def converted(self, inner, arg):
        """Converts the argument, and returns how it is passed on."""
        return getattr(self, 'how_' + inner.how)(inner, arg)

    def missing(self, inner):
        """An argument of the _c form only: the large counts of a datatype, of which there are none."""
        if inner.type == 'MPI_Count *' and inner.name.startswith('num_'):
            self.locals.append(f'MPI_Count {inner.name} = 0;')
            return f'&{inner.name}'
        return 'NULL' if inner.type.endswith('*') else '0'

    def how_in(self, inner, arg):
        self.locals.append(f'{inner.type}{arg.name}_o;')
        nothing = checks.null_type(self.f, arg)
        if nothing:
            self.check(f'mpi_in_type({arg.name}, {nothing}, &{arg.name}_o, "{arg.name}")')
            return f'{arg.name}_o'
        self.check(f'mpi_in({KINDS[inner.type]}, {arg.name}, &{arg.name}_o, "{arg.name}")')
        return f'{arg.name}_o'

    def how_maybe(self, inner, arg):
        self.locals.append(f'{inner.type}{arg.name}_o;')
        self.steps.append(f'{arg.name}_o = mpi_object_of({arg.name}, {KINDS[inner.type]});')
        return f'{arg.name}_o'

    def how_null(self, inner, arg):
        if self.f.section == 'info objects':
            return self.how_in(inner, arg)
        self.locals.append(f'{inner.type}{arg.name}_o;')
        self.check(f'mpi_in_or_null({KINDS[inner.type]}, {arg.name}, {NULLS[inner.type]}, '
                   f'&{arg.name}_o, "{arg.name}")')
        return f'{arg.name}_o'

    def how_out(self, inner, arg):
        kind = inner.type[:-1]
        self.locals.append(f'{kind}{arg.name}_o = NULL;')
        self.results.append(f'*{arg.name} = mpi_out({arg.name}_o, {NULLS[kind]});')
        return f'&{arg.name}_o'

    def how_inout(self, inner, arg):
        kind = inner.type[:-1]
        self.check(f'mpi_check_null({arg.name}, "{arg.name}")')
        self.locals.append(f'{kind}{arg.name}_o;')
        self.check(f'mpi_in({KINDS[kind]}, *{arg.name}, &{arg.name}_o, "{arg.name}")')
        # a message is gone with its receive, however that ends
        after = self.always if kind == 'struct mpi_message *' else self.results
        after.append(f'*{arg.name} = mpi_out({arg.name}_o, {NULLS[kind]});')
        return f'&{arg.name}_o'

    def how_array(self, inner, arg):
        counts = checks.null_type(self.f, arg) or 'NULL'
        if counts in self.wide:
            counts += '_w.p'
        return self.widened(arg, 'mpi_widen_types', counts)

    def how_value(self, inner, arg):
        mine, theirs = arg.type, inner.type
        if mine == theirs or not mine.endswith('*'):
            return arg.name
        if mine.startswith('const int'):
            return self.widened(arg, 'mpi_widen')
        if mine.startswith('const '):
            return f'({theirs}){arg.name}'  # MPI_Aint and MPI_Count are alike
        if theirs.rstrip(' *') not in ('MPI_Count', 'MPI_Aint'):
            return arg.name  # one type under two names
        return self.narrowed(arg)

    def narrowed(self, arg):
        """A result that is wider behind: a local variable takes it. Positions go both ways."""
        self.locals.append(f'MPI_Count {arg.name}_n = 0;')
        if arg.name == 'position':
            self.steps.append(f'{arg.name}_n = *{arg.name};')
        value = f'{arg.name}_n'
        if arg.type == 'int *':
            value = f'mpi_narrow({value})'
        self.results.append(f'*{arg.name} = {value};')
        return f'&{arg.name}_n'

    def widened(self, arg, function, *more):
        """An array whose elements are wider behind."""
        self.locals.append(f'struct mpi_wide {arg.name}_w;')
        self.wide.append(arg.name)
        found = checks.significant(self.f, arg)
        if found:
            condition, count = (self.fill(x, arg) for x in found)
        else:
            condition, count = 'true', checks.length(self.f, arg)
        array = arg.name if condition == 'true' else f'{condition} ? {arg.name} : NULL'
        self.check(f'{function}({", ".join([f"&{arg.name}_w", array, *more, count])})')
        return f'{arg.name}_w.p'

    def array_checks(self, arg):
        """An array of a collective has to be there where it is looked at."""
        found = checks.significant(self.f, arg)
        if not found:
            return
        condition, count = (self.fill(x, arg) for x in found)
        if condition != 'true':
            count = f'{condition} ? {count} : 0'
        self.check(f'mpi_check_array({arg.name}, {count}, "{arg.name}")')

    # ---- the whole ----

    def build(self):
        """Files, communicators and windows first: the error handler is theirs. Then handles, then
        numbers, then pointers, each in the order of the prototype."""
        passed = {}
        order = sorted(self.inner, key=lambda a: (a is not self.comm and a is not self.win and
                                                  a.type != 'struct mpi_file *',
                                                  a.how not in ('in', 'maybe', 'null', 'inout'),
                                                  a.type.endswith('*')))
        for inner in order:
            arg = self.outer.get(inner.name)
            if arg is None:
                passed[inner.name] = self.missing(inner)
                continue
            after = inner.how in ('in', 'inout')  # checks look at the object, else at the argument
            if after:
                passed[inner.name] = self.converted(inner, arg)
            self.array_checks(arg)
            row = [e for e in self.checks_of(arg) if not OF_ELEMENTS.match(e)]
            for e in row:
                self.check(e)
            if not after:
                passed[inner.name] = self.converted(inner, arg)
            for e in self.checks_of(arg, passed[inner.name]):
                if OF_ELEMENTS.match(e):
                    self.check(e)
        return [passed[a.name] for a in self.inner]

    def errors_go_to(self):
        """The communicator, window, file or session whose error handler runs, as a handle. A request that
        failed knows its own, see mpi_fail_on. Without a file it is that of the null file."""
        if self.on_file:
            file = next((a for a in self.f.args if a.type == 'MPI_File'), None)
            if file:
                return file.name
            return 'fh ? *fh : MPI_FILE_NULL' if self.f.name == 'MPI_File_close' else 'MPI_FILE_NULL'
        if self.comm or self.win or self.session:
            return (self.comm or self.win or self.session).name
        if GIVES_HANDLER.fullmatch(self.f.name):
            return 'errhandler'
        for a in self.f.args:
            if a.type in ('MPI_Comm *', 'MPI_Win *', 'MPI_Session *') and self.inner[0].how == 'inout':
                return f'{a.name} ? *{a.name} : {a.type[:-2].upper()}_NULL'
        return 'MPI_COMM_NULL'

    def raised_on(self):
        """What the function that raises the error ends in."""
        if self.on_file:
            return '_file'
        if not self.comm and (self.win or 'MPI_WIN_NULL' in self.on):
            return '_win'
        if self.session or 'MPI_SESSION_NULL' in self.on:
            return '_session'
        return '_given' if self.on == 'errhandler' else ''

    def text(self):
        passed = self.build()
        leave = 'mpi_leave()'
        fail = f'mpi_raise_on{self.raised_on()}({self.on}, "{self.f.name}", rc)'
        if self.any_time:
            leave, fail = 'mpi_leave_any_time()', f'mpi_raise_any_time("{self.f.name}", rc)'
        lines = [protos.wrap(self.f.declare('P' + self.f.name)), '{']
        for name in dict.fromkeys(self.locals):
            lines.append(f'\t{name}')
        lines += ['\tint rc;', '']
        for name in self.wide:
            lines.append(f'\tmpi_wide_init(&{name}_w);')
        if self.any_time:
            lines.append('\tmpi_enter_any_time();')
        else:
            lines += ['\tif (!mpi_enter())', f'\t\treturn mpi_not_running("{self.f.name}");']
        lines += [f'\t{s}' for s in self.steps]
        lines.append(f'\trc = {self.callee}({", ".join(passed)});')
        lines += [f'\t{s}' for s in self.always]
        ends = [f'\tmpi_wide_end(&{name}_w);' for name in self.wide]
        lines += ['\tif (MPI_UNLIKELY(rc))', '\t\tgoto fail;']
        if 'num_large_counts' in [a.name for a in self.inner] and self.f.name[-2:] != '_c':
            lines += ['\tif (num_large_counts) {',
                      '\t\trc = mpi_fail(MPI_ERR_TYPE, "counts do not fit an int: use the _c form");',
                      '\t\tgoto fail;', '\t}']
        if self.f.name[-2:] == '_c' and 'newtype' in self.outer:
            lines.append('\tmpi_type_mark_large(newtype_o);')
        lines += [f'\t{r}' for r in self.results] + ends
        lines += [f'\treturn {leave};', 'fail:'] + ends + [f'\treturn {fail};', '}']
        return '\n'.join(lines)


def entry(functions, f, built):
    callee = SAME_AS.get(f.name, functions.internal_name(f)).lower()
    if callee not in built:
        sys.exit(f'{f.name}: no source defines {callee}')
    return f'\nMPI_WEAK({f.name});\n{Entry(functions, f).text()}\n'


def main(argv):
    functions = model.read(argv[1])
    built = defined(argv[2:])
    for name, sections in FILES.items():
        chosen = [f for f in functions.functions
                  if re.fullmatch(sections, f.section) and not functions.by_hand(f)]
        text = HEAD + ''.join(entry(functions, f, built) for f in chosen) + '/* NOLINTEND */\n'
        protos.write_if_changed(os.path.join(argv[0], name), text)


if __name__ == '__main__':
    main(sys.argv[1:])
