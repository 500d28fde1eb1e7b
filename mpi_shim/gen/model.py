# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The shim's view of the MPI prototypes: which internal function stands behind each MPI function, and what
each of its arguments becomes on the way there.

MPI_Xxx_yyy, MPI_Xxx_yyy_c and (where it exists) MPI_Xxx_yyy_x all lead to one internal function,
mpi_xxx_yyy, with the arguments of the _c form, in which handles have become pointers to objects.
"""
import re
from dataclasses import dataclass

import protos

# MPI functions that are written by hand, whole: no internal function, no generated entry point.
BY_HAND = re.compile(r'''MPI_(?:
    Init | Init_thread | Session_init | Initialized | Finalize | Finalized | Query_thread | Is_thread_main |
    Get_version | Get_library_version | Wtime | Wtick | Pcontrol | Abi_.* |
    Aint_add | Aint_diff | \w+_toint | \w+_fromint |
    Status_[gs]et_(?:source|tag|error) |
    T_.*
)''', re.VERBOSE)

# A _c form that is another function inside, because it takes another kind of callback.
SEPARATE = ('MPI_Op_create_c', 'MPI_Register_datarep_c')

# Handle type -> what it is inside.
OBJECTS = {
    'MPI_Comm': 'struct mpi_comm *',
    'MPI_Group': 'struct mpi_group *',
    'MPI_Datatype': 'struct mpi_type *',
    'MPI_Op': 'struct mpi_op *',
    'MPI_Errhandler': 'struct mpi_errhandler *',
    'MPI_Info': 'struct mpi_info *',
    'MPI_Message': 'struct mpi_message *',
    'MPI_Win': 'struct mpi_win *',
    'MPI_File': 'struct mpi_file *',
    'MPI_Session': 'struct mpi_session *',
}

# Requests stay handles in the functions that wait for, start, cancel or free them: many at once, and
# MPI_REQUEST_NULL and handles that go are theirs to deal with.
RAW_REQUESTS = re.compile(r'''MPI_(?:
    Wait.* | Test.* | Start | Startall | Cancel | Request_.* | Grequest_complete | Pready.* | Parrived
)''', re.VERBOSE)

# Handles that are read, then replaced: the object on entry, NULL (the null handle) on return.
INOUT = re.compile(r'MPI_(?:\w+_free|Comm_disconnect|Session_finalize|Type_commit|Mrecv|Imrecv|File_close)')

# The null handles have names (MPI-4.1, B.1.2).
NAME_OF_NULL = re.compile(r'MPI_(?:Comm|Type|Win)_get_name')

# The null file has an error handler, that of new files (MPI-4 §14.7).
HANDLER_OF_NULL = re.compile(r'MPI_File_(?:set|get|call)_errhandler')

# Collectives pass on what is significant on some ranks only; the internal function checks it.
COLLECTIVE = re.compile(r'collectives: .*')

# With MPI_NO_OP these ignore what is at the origin.
MAY_IGNORE = re.compile(r'MPI_R?get_accumulate(_c)?', re.IGNORECASE)


@dataclass
class Inner:
    """An argument of an internal function. `how` says what the entry point does to get it:

    value       nothing
    in          handle to object, an invalid one is an error
    maybe       handle to object, an invalid one becomes NULL
    null        as in, but the null handle becomes NULL
    array       array of datatypes to array of objects, invalid ones become NULL
    out         object to handle, after the call
    inout       both
    """
    name: str
    type: str
    how: str
    outer: object

    def declare(self):
        if self.outer.array == '[][3]':
            return self.outer.declare()
        space = '' if self.type.endswith('*') else ' '
        return f'{self.type}{space}{self.name}'


class Model:
    """The functions of a header by name, and what follows from their prototypes."""

    def __init__(self, functions):
        self.functions = functions
        self.by_name = {f.name: f for f in functions}

    def plain(self, f):
        """The function whose name has no _c or _x; itself, mostly."""
        if f.name[-2:] in ('_c', '_x') and f.name[:-2] in self.by_name and \
                f.name not in SEPARATE:
            return self.by_name[f.name[:-2]]
        return f

    def large(self, f):
        """The _c form, the function itself if there is none."""
        plain = self.plain(f)
        large = plain.name + '_c'
        return plain if large in SEPARATE else self.by_name.get(large, plain)

    def by_hand(self, f):
        return bool(BY_HAND.fullmatch(f.name))

    def internal_name(self, f):
        return self.plain(f).name.lower()

    def inner(self, f):
        """The arguments of the internal function behind f."""
        large = self.large(f)
        return [self.inner_arg(large, a) for a in large.args]

    def inner_arg(self, f, a):
        base = a.type.replace('const ', '').rstrip(' *')
        pointer = a.type.endswith('*')
        collective = bool(COLLECTIVE.fullmatch(f.section))
        if base == 'MPI_Request' and pointer and not a.array and not RAW_REQUESTS.fullmatch(f.name):
            return Inner(a.name, 'struct mpi_request **', 'out', a)
        if base not in OBJECTS:
            return Inner(a.name, a.type, 'value', a)
        kind = OBJECTS[base]
        if a.array and a.type.startswith('const MPI_Datatype'):
            return Inner(a.name, 'struct mpi_type *const *', 'array', a)
        if a.array:
            return Inner(a.name, a.type, 'value', a)
        if pointer:
            plain = self.plain(f).name
            return Inner(a.name, kind + '*', 'inout' if INOUT.fullmatch(plain) else 'out', a)
        if base == 'MPI_Info' or NAME_OF_NULL.fullmatch(f.name) or \
                (base == 'MPI_File' and HANDLER_OF_NULL.fullmatch(f.name)):
            return Inner(a.name, kind, 'null', a)
        if a.name == 'peer_comm' or (collective and base == 'MPI_Datatype') or \
                (a.name == 'origin_datatype' and MAY_IGNORE.fullmatch(f.name)):
            return Inner(a.name, kind, 'maybe', a)
        return Inner(a.name, kind, 'in', a)

    def internals(self):
        """(internal name, MPI function without _c, arguments), in the order of the header."""
        seen = set()
        for f in self.functions:
            name = self.internal_name(f)
            if self.by_hand(f) or name in seen:
                continue
            seen.add(name)
            yield name, self.plain(f), self.inner(f)


def read(path):
    return Model(protos.read(path))
