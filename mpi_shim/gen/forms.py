#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes the three forms of every collective: blocking, non-blocking and persistent.

Usage: forms.py MPI_H OUTPUT_H OUTPUT_C OUTPUT_NEIGHBOR_C SOURCE...

A collective is defined once, in a SOURCE, as `int mpi_xxx_schedule(struct mpi_schedule *p, ...)` with the arguments of the
internal function of its blocking form. Those among neighbours, which are of a higher room, have an output of their
own. The output is the prototypes of those, and mpi_xxx, mpi_ixxx and mpi_xxx_init, which make the schedule
and carry it out, start it, or keep it.
"""
import re
import sys

import model
import protos

HEAD = '''\
/* Written by mpi_shim/gen/forms.py from include/mpi_abi/mpi.h. */
'''


def defined(paths):
    names = set()
    for path in paths:
        with open(path, encoding='utf-8') as file:
            names.update(re.findall(r'^int (mpi_\w+)_schedule\(', file.read(), re.MULTILINE))
    return names


def forms(functions, name):
    """(prototype of the schedule, the three functions)"""
    public = {internal: args for internal, _, args in functions.internals()}
    args = public[name]
    declared = ', '.join(a.declare() for a in args)
    passed = ', '.join(a.name for a in args)
    comm = next(a.name for a in args if a.type == 'struct mpi_comm *')
    schedule = f'int {name}_schedule(struct mpi_schedule *p, {declared})'
    base = name[len('mpi_'):]
    texts = [f'''{protos.wrap(f"int {name}({declared})")}
{{
\tstruct mpi_schedule p;
\tint rc = mpi_schedule_begin(&p, {comm});

\treturn mpi_schedule_end(&p, rc ? rc : {name}_schedule(&p, {passed}));
}}
''']
    others = {
        f'mpi_i{base}': ('struct mpi_request **request', 'mpi_schedule_start'),
        f'{name}_init': ('struct mpi_info *info, struct mpi_request **request', 'mpi_schedule_keep'),
    }
    for other, (more, end) in others.items():
        if other not in public:
            continue
        unused = '\t(void)info; /* no hints are known */\n' if 'info' in more else ''
        texts.append(f'''{protos.wrap(f"int {other}({declared}, {more})")}
{{
\tstruct mpi_schedule *p = mpi_schedule_new({comm});

{unused}\tif (!p)
\t\treturn MPI_ERR_NO_MEM;
\treturn {end}(p, {name}_schedule(p, {passed}), request);
}}
''')
    return protos.wrap(schedule) + ';\n', '\n'.join(texts)


def main(argv):
    functions = model.read(argv[0])
    built = defined(argv[4:])
    names = [name for name, _, _ in functions.internals() if name in built]
    missing = built - set(names)
    if missing:
        sys.exit(f'forms.py: not in the header: {", ".join(sorted(missing))}')
    texts = [forms(functions, name) for name in names]
    protos.write_if_changed(argv[1], HEAD + '''\
#ifndef MPI_SHIM_COLL_PLANS_H
#define MPI_SHIM_COLL_PLANS_H

#include "mpi_shim/coll/schedule.h"

/* Checks the arguments and makes the schedule. */
''' + ''.join(schedule for schedule, _ in texts) + '\n#endif\n')
    for path, among_neighbors in ((argv[2], False), (argv[3], True)):
        protos.write_if_changed(path, HEAD + '''\
#include "mpi_shim/coll/coll_impl.h"
#include "mpi_shim/coll_schedules.h"
#include "mpi_shim/impl.h"

''' + '\n'.join(text for name, (_, text) in zip(names, texts)
                    if name.startswith('mpi_neighbor_') == among_neighbors))


if __name__ == '__main__':
    main(sys.argv[1:])
