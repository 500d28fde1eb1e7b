#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Writes the bindings in C: each procedure of the table that is not written by hand.

Usage: bindings.py MPI_H OUTPUT_DIR

bind_old.c is what mpif.h and module mpi call, and mpi_f08 where there is no buffer; bind_f08.c what
mpi_f08 calls with buffers, which come as descriptors.
"""
import os
import sys

import rules
import table

HEAD = '''\
/* Written by mpifort/gen/bindings.py. */
/* NOLINTBEGIN */
#include "mpifort/mpifort.h"

'''
TAIL = '/* NOLINTEND */\n'

C_TYPES = {
    'integer': 'int', 'logical': 'int', 'aint': 'MPI_Aint', 'count': 'MPI_Count',
    'offset': 'MPI_Offset', 'status': 'int', 'weights': 'int', 'errcodes': 'int',
    'choice': 'void', 'cptr': 'void', 'character': 'char',
}


def c_type(arg):
    return 'int' if arg.is_handle else C_TYPES[arg.kind]


class Binding:
    """The body of one binding, built up argument by argument."""

    def __init__(self, p, descriptors, for_f08=False):
        self.p = p
        self.f08 = for_f08 or descriptors or p.large
        self.descriptors = descriptors
        self.params = []
        self.hidden = []
        self.declare = []
        self.open = []
        self.close = []      # always
        self.results = []    # after success
        self.late = []       # when the request is known
        self.values = {}
        self.request = next((a for a in p.args if a.kind == 'Request' and a.intent == 'out'), None)
        self.complete = not rules.NOT_COMPLETE.fullmatch(p.name)

    # ---- arguments: each gives what C is passed ----

    def choice(self, a):
        if not self.descriptors:
            self.params.append(f'void *{a.name}')
            return f'mpifort_buffer({a.name})'
        self.params.append(f'CFI_cdesc_t *{a.name}')
        if rules.ADDRESSES.fullmatch(self.p.name):
            return f'mpifort_buffer({a.name}->base_addr)'
        s = f'{a.name}_s'
        self.declare.append(f'struct mpifort_section {s};')
        written = 'false' if a.intent == 'in' else 'true'
        if self.complete:
            self.open.append(f'mpifort_section_copy(&{s}, {a.name}, &rc);')
            self.close.append(f'mpifort_section_end(&{s}, {a.name}, {written});')
        elif a.typed:
            count, datatype = a.typed
            self.open.append(f'mpifort_section_typed(&{s}, {a.name}, *{count}, '
                             f'mpifort_datatype(*{datatype}), &rc);')
            self.close.append(f'mpifort_section_typed_end(&{s});')
            wide = 'MPI_Count' in next(x for x in self.p.args if x.name == count).c.type
            self.values[count] = f'{"" if wide else "(int)"}{s}.count'
            self.values[datatype] = f'{s}.type'
        elif self.request and not self.p.name.endswith(('_init', '_init_c')):
            self.open.append(f'mpifort_section_copy(&{s}, {a.name}, &rc);')
            self.late.append(f'mpifort_section_keep(&{s}, {a.name}, {written}, '
                             f'mpifort_of_request({self.request.name}_c));')
        else:
            self.open.append(f'mpifort_section_only_simple(&{s}, {a.name}, &rc);')
        return f'{s}.at'

    def character(self, a):
        s = f'{a.name}_s'
        if self.descriptors and self.p.choices:
            self.params.append(f'CFI_cdesc_t *{a.name}')
            text, length = f'{a.name}->base_addr', f'{a.name}->elem_len'
        else:
            self.params.append(f'char *{a.name}')
            self.hidden.append(f'size_t {a.name}_len')
            text, length = a.name, f'{a.name}_len'
        self.declare.append(f'struct mpifort_string {s};')
        if a.intent == 'in':
            strip = 'true' if a.strip else 'false'
            self.open.append(f'mpifort_string_in(&{s}, {text}, {length}, {strip}, &rc);')
        else:
            self.open.append(f'mpifort_string_room(&{s}, {a.room}, &rc);')
            flag = 'if (*flag)\n\t\t\t' if any(x.name == 'flag' for x in self.p.args) else ''
            self.results.append(f'{flag}mpifort_string_out(&{s}, {text}, {length});')
            if any(x.name == 'resultlen' for x in self.p.args):
                self.results.append(f'if (*resultlen > (int){length})\n\t\t\t*resultlen = '
                                    f'(int){length};')
        self.close.append(f'mpifort_string_end(&{s});')
        return f'{s}.at'

    def cptr(self, a):
        self.params.append(f'void *{a.name}')
        if a.name == 'baseptr':
            return a.name
        # The buffer that was attached: mpif.h and module mpi have a buffer there, which stays as it is.
        self.declare.append(f'void *{a.name}_c = NULL;')
        if self.f08:
            self.results.append(f'mpifort_give_address({a.name}_c, {a.name});')
        else:
            self.open.append(f'(void){a.name};')
        return f'&{a.name}_c'

    def handle(self, a):
        lower = a.kind.lower()
        self.params.append(f'int *{a.name}')
        if a.shape:
            return self.handles(a, lower)
        if a.intent == 'in':
            if a.kind == 'Request' and any(x.name == 'flag' for x in self.p.args):
                self.results.append(f'if (*flag)\n\t\t\tmpifort_request_seen(*{a.name});')
            return f'mpifort_{lower}(*{a.name})'
        self.declare.append(f'MPI_{a.kind} {a.name}_c = ' + (
            f'mpifort_{lower}(*{a.name});' if a.intent == 'inout' else
            f'MPI_{"DATATYPE" if a.kind == "Datatype" else a.kind.upper()}_NULL;'))
        if a.intent == 'inout' and a.kind == 'Request':
            self.close.append(f'*{a.name} = mpifort_request_now(*{a.name}, {a.name}_c);')
        elif a.intent == 'inout':
            self.close.append(f'*{a.name} = mpifort_of_{lower}({a.name}_c);')
        else:
            self.results.append(f'*{a.name} = mpifort_of_{lower}({a.name}_c);')
        return f'&{a.name}_c'

    def handles(self, a, lower):
        s = f'{a.name}_s'
        self.declare.append(f'struct mpifort_{lower}s {s};')
        if a.kind == 'Request':
            self.open.append(f'mpifort_requests_open(&{s}, {a.length}, {a.name}, &rc);')
            end = 'close' if a.intent == 'inout' else 'seen'
            self.close.append(f'mpifort_requests_{end}(&{s}, {a.name});')
        elif a.intent == 'out':
            self.open.append(f'mpifort_datatypes_room(&{s}, {a.length}, &rc);')
            self.results.append(f'mpifort_datatypes_give(&{s}, {a.name});')
            self.close.append(f'mpifort_datatypes_close(&{s});')
        else:
            kept = self.request is not None
            length = a.length.replace('comm_c', 'mpifort_comm(*comm)')
            if 'sendbuf' in length:
                length = length.replace(', sendbuf', ', ' + self.values['sendbuf'])
            self.open.append(f'mpifort_datatypes_open{"_kept" if kept else ""}(&{s}, {length}, '
                             f'{a.name}, &rc);')
            if kept:
                self.late.append(f'mpifort_datatypes_keep(&{s}, '
                                 f'mpifort_of_request({self.request.name}_c));')
            else:
                self.close.append(f'mpifort_datatypes_close(&{s});')
        return f'{s}.at'

    def plain(self, a):
        kind = c_type(a)
        self.params.append(f'{kind} *{a.name}')
        if a.kind == 'status':
            if a.intent == 'in' or a.intent == 'inout':
                return f'(MPI_Status *){a.name}'
            return f'mpifort_status({a.name})'
        if a.kind in ('weights', 'errcodes'):
            return f'mpifort_buffer({a.name})'
        if a.shape == '3,*':
            return f'(int (*)[3]){a.name}'
        if a.intent == 'in' and not a.shape:
            return f'*{a.name} != 0' if a.kind == 'logical' else f'*{a.name}'
        if a.kind == 'logical' and not a.shape:
            self.results.append(f'*{a.name} = *{a.name} != 0;')
        if a.index and a.shape:
            self.close.append(f'mpifort_indices({a.name}, outcount_c);')
        elif a.index or a.name == 'outcount':
            return self.also_after_errors(a)
        return a.name

    def also_after_errors(self, a):
        """Which requests are complete is told as well when one of them failed."""
        self.declare.append(f'int {a.name}_c = {"MPI_UNDEFINED" if a.index else "0"};')
        value = f'mpifort_index({a.name}_c)' if a.index else f'{a.name}_c'
        self.close.append(f'*{a.name} = {value};')
        return f'&{a.name}_c'

    def convert(self, a):
        if a.is_handle:
            return self.handle(a)
        return getattr(self, a.kind if a.kind in ('choice', 'character', 'cptr') else 'plain')(a)

    # ---- the whole ----

    def text(self):
        p = self.p
        values = {}
        for a in p.args:
            value = self.convert(a)
            self.values.setdefault(a.name, value)
            values[a.name] = self.values[a.name]
        name = p.f08_name.lower() if self.f08 else p.lower
        params = ', '.join(self.params + ['int *ierror'] + self.hidden)
        call = f'MPIFORT_CALL({p.name[4:]})({", ".join(values.values())})'
        lines = ['int rc = MPI_SUCCESS;'] + self.declare + ['']
        lines += self.open
        if self.open:
            lines.append(f'if (rc == MPI_SUCCESS)\n\t\trc = {call};')
        else:
            lines[0] = 'int rc;'
            lines.append(f'rc = {call};')
        if self.results:
            lines.append('if (rc == MPI_SUCCESS) {\n\t\t' + '\n\t\t'.join(self.results) + '\n\t}')
        lines += self.late + self.close + ['mpifort_done(ierror, rc);']
        body = '\n'.join('\t' + line if line else '' for line in lines)
        return (f'MPIFORT_ENTRY void MPIFORT_NAME({name}_)({params});\n'
                f'MPIFORT_ENTRY void MPIFORT_NAME({name}_)({params})\n{{\n{body}\n}}\n')


def old(procedures):
    out = [HEAD]
    for p in procedures:
        if not p.by_hand and not (p.large and p.described):
            out.append(Binding(p, False).text())
            if p.large:
                continue
            if any(a.name == 'buffer_addr' for a in p.args):
                out.append(Binding(p, False, True).text())
            elif p.in_f08 and not p.described:
                out.append(f'MPIFORT_SAME({p.f08_name.lower()}_, {p.lower}_);\n')
            if table.with_cptr(p):
                out.append(f'MPIFORT_SAME({p.lower}_cptr_, {p.lower}_);\n')
    return '\n'.join(out) + TAIL


def f08(procedures):
    out = [HEAD]
    for p in procedures:
        if not p.by_hand and p.described and p.in_f08:
            out.append(Binding(p, True).text())
    return '\n'.join(out) + TAIL


def main(argv):
    procedures = table.read(argv[0])
    for name, write in (('bind_old.c', old), ('bind_f08.c', f08)):
        table.protos.write_if_changed(os.path.join(argv[1], name), write(procedures))


if __name__ == '__main__':
    main(sys.argv[1:])
