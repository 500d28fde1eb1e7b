# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""Fortran's knowledge of MPI functions beyond their C prototypes, as rows.

Patterns are matched against the whole of a function's name without MPI_ and _c, and of an argument's name.
The first row that fits counts.
"""
import re

# Functions without a Fortran binding.
C_ONLY = re.compile(r'MPI_(?:T_.*|\w+_toint|\w+_fromint)')

# Bindings that are not generated (mpifort/by_hand_*.c): callbacks, attributes, and what has other arguments
# than in C. They stand in the table all the same, so that modules and tests know them.
BY_HAND = re.compile(r'''MPI_(?:
    Init | Init_thread | Pcontrol | Wtime | Wtick | Aint_add | Aint_diff |
    Op_create(?:_c)? | \w+_create_errhandler | \w+_create_keyval | Keyval_create |
    (?:Comm|Type|Win)_[sg]et_attr | Attr_put | Attr_get |
    Grequest_start | Register_datarep(?:_c)? |
    Comm_spawn | Comm_spawn_multiple | Info_create_env | Info_get_string | Session_get_nth_pset
)''', re.VERBOSE)

# Not in mpi_f08: it began after they were deprecated.
NOT_IN_F08 = ('MPI_Attr_put', 'MPI_Attr_get', 'MPI_Attr_delete', 'MPI_Keyval_create', 'MPI_Keyval_free')

# A _c form that is a procedure of its own in mpi_f08, because only its callbacks tell it from the other.
SEPARATE = ('MPI_Op_create_c', 'MPI_Register_datarep_c')

# Arguments that Fortran does not have.
DROPPED = [
    ('Init|Init_thread|Info_create_env', 'argc|argv'),
]

# Names that C had to change.
RENAMED = {'indx': 'index'}

# The kind of an argument: int is a LOGICAL, void * another thing than a buffer.
KINDS = [
    ('.*', 'flag|reorder|commute|high|weighted|is_set|periods|remain_dims', 'logical'),
    ('.*', 'baseptr', 'cptr'),
    ('.*detach.*', 'buffer_addr', 'cptr'),
    ('.*', 'extra_state|attribute_val', 'aint'),
    ('Comm_spawn', 'argv', 'strings'),
    ('.*', 'array_of_commands', 'strings'),
    ('.*', 'array_of_argv', 'argvs'),
    ('.*', 'array_of_errcodes', 'errcodes'),
    ('.*', '.*weights', 'weights'),
    ('Topo_test', 'status', 'integer'),
]
# ... of MPI-1, where an address was an INTEGER
KINDS_OF_OLD = [
    ('Attr_put|Attr_get|Keyval_create', 'extra_state|attribute_val', 'integer'),
]

# Results that are indices into arrays: from 1 on in Fortran.
INDICES = [
    ('Waitany|Testany|Request_get_status_any', 'index'),
    ('Waitsome|Testsome|Request_get_status_some', 'array_of_indices'),
]

# Arguments that are read and written. Handles: the rest of the pointers are results.
INOUT = [
    (r'\w+_free|Comm_disconnect|File_close|Session_finalize|Type_commit', '.*'),
    (r'Mrecv|Imrecv', 'message'),
    (r'Wait\w*|Test(?!_)\w*|Start|Startall', 'request|array_of_requests'),
    (r'Cancel', 'request'),
    (r'\w*Pack\w*|\w*Unpack\w*', 'position'),
    (r'Dims_create', 'dims'),
    (r'Info_get_string', 'buflen'),
    (r'Session_get_nth_pset', 'pset_len'),
    (r'\w*free_keyval|Keyval_free', '.*keyval'),
    (r'Status_set_\w+', 'status'),
]

# Arguments whose INTENT is not what the prototype in C says (MPI-5 annex A.4).
INTENTS = [
    ('Dist_graph_neighbors', '.*weights', ''),  # MPI_UNWEIGHTED is none to write to
    ('Get_address', 'location', ''),
    ('Win_detach', 'base', ''),
    ('Free_mem', 'base', 'in'),
    ('Status_f2f08', 'f08_status', 'out'),
    ('Status_f082f', 'f_status', 'out'),
]

# Elements of arrays of handles, in C; the arguments are pointers there.
LENGTHS = [
    ('.*', 'array_of_requests', ('incount', 'count')),
    ('Type_create_struct', 'array_of_types', ('count',)),
    ('Type_get_contents', 'array_of_datatypes', ('max_datatypes',)),
    ('I?alltoallw(_init)?', 'sendtypes', 'mpifort_sendtypes(comm_c, sendbuf)'),
    ('I?alltoallw(_init)?', 'recvtypes', 'mpifort_peers(comm_c)'),
    ('I?neighbor_alltoallw(_init)?', 'sendtypes', 'mpifort_neighbours(comm_c, true)'),
    ('I?neighbor_alltoallw(_init)?', 'recvtypes', 'mpifort_neighbours(comm_c, false)'),
]

# Room that C needs for strings that come back.
ROOM = [
    ('Get_library_version', '.*', 'MPI_MAX_LIBRARY_VERSION_STRING'),
    ('Get_processor_name', '.*', 'MPI_MAX_PROCESSOR_NAME'),
    ('Error_string', '.*', 'MPI_MAX_ERROR_STRING'),
    (r'\w+_get_name', '.*', 'MPI_MAX_OBJECT_NAME'),
    ('Open_port|Lookup_name', '.*', 'MPI_MAX_PORT_NAME'),
    ('Info_get_nthkey', '.*', 'MPI_MAX_INFO_KEY'),
    ('Info_get', 'value', '(size_t)(*valuelen < 0 ? 0 : *valuelen) + 1'),
    ('File_get_view', 'datarep', 'MPI_MAX_DATAREP_STRING'),
    ('Info_get_string|Session_get_nth_pset', '.*', ''),  # by hand
]

# Strings whose leading blanks do not count either (MPI-4 §10).
STRIPPED = [
    (r'Info_\w+', 'key|value'),
]

# How mpi_f08 passes on a part of an array that is not contiguous. An operation that is complete when the
# procedure returns goes through a copy; other procedures need a datatype for it, made of the arguments named.
NOT_COMPLETE = re.compile(r'''MPI_(?:
    I(?!nfo|nter|s_|nit|mprobe|probe)\w+ | (?:P?[a-zA-Z]+)_init | \w+_init | File_i\w+ | File_\w+_begin |
    R(?:put|get|accumulate|get_accumulate) | Put | Get | Accumulate | Get_accumulate | Fetch_and_op |
    Compare_and_swap
)(?:_c)?''', re.VERBOSE)
# The arguments that MPI may read or write until the request is complete, beside buffers: of which procedures,
# and what.
KEEPING = re.compile(NOT_COMPLETE.pattern + r' | MPI_Comm_idup(?:_with_info)?', re.VERBOSE)
KEPT = [
    ('.*', '(?:send|recv)(?:counts|types)|[sr]?displs'),
    ('Comm_idup(?:_with_info)?', 'newcomm'),
]
# buffers that are addresses, whatever they look like
ADDRESSES = re.compile(r'MPI_(?:Get_address|Free_mem|Win_(?:create|attach|detach)|\w*attach_buffer|'
                       r'Buffer_attach|Abi_.*|File_\w+_end|F_sync_reg)(?:_c)?')
TYPED = [
    (r'(?:Is|Ib|Iss|Ir)send|I(?:s|bs|ss|rs)end|(?:S|Bs|Ss|Rs)end_init|Irecv|Recv_init|Imrecv|Isendrecv_replace|'
     r'File_i\w+|File_\w+_begin', 'buf', ('count', 'datatype')),
    ('Isendrecv|Igatherv?|Iallgatherv?', 'sendbuf', ('sendcount', 'sendtype')),
    ('Isendrecv|Iscatterv?', 'recvbuf', ('recvcount', 'recvtype')),
    (r'Ineighbor_allgatherv?|(?:Neighbor_all|All|G)gatherv?_init|Gatherv?_init|(?:Neighbor_a|A)llgatherv?_init',
     'sendbuf', ('sendcount', 'sendtype')),
    ('Scatterv?_init', 'recvbuf', ('recvcount', 'recvtype')),
    ('Ibcast|Bcast_init', 'buffer', ('count', 'datatype')),
    (r'R?(?:put|get|accumulate|get_accumulate)|Put|Get|Accumulate|Get_accumulate', 'origin_addr',
     ('origin_count', 'origin_datatype')),
    ('R?get_accumulate|Get_accumulate', 'result_addr', ('result_count', 'result_datatype')),
]

# Functions that MPI-3 removed and old programs call: name, C prototype of its Fortran face. By hand.
REMOVED = '''
/* ---- removed ---- */
int MPI_Address(const void *location, int *address);
int MPI_Type_extent(MPI_Datatype datatype, int *extent);
int MPI_Type_lb(MPI_Datatype datatype, int *displacement);
int MPI_Type_ub(MPI_Datatype datatype, int *displacement);
int MPI_Type_hvector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype);
int MPI_Type_hindexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);
int MPI_Type_struct(int count, const int array_of_blocklengths[], const int array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype *newtype);
int MPI_Errhandler_create(MPI_Comm_errhandler_function *handler_function, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
'''

# Procedures that only Fortran has, by hand as well. MPI_Sizeof is generic and in mpifort/sizeof.f90.
FORTRAN_ONLY = '''
/* ---- Fortran ---- */
int MPI_F_sync_reg(void *buf);
int MPI_Status_f2f08(const MPI_Fint f_status[], MPI_Status *f08_status);
int MPI_Status_f082f(const MPI_Status *f08_status, MPI_Fint f_status[]);
'''

# Predefined callbacks: what is declared like them. They are procedures here.
PREDEFINED = {
    'MPI_COMM_NULL_COPY_FN': 'MPI_Comm_copy_attr_function',
    'MPI_COMM_DUP_FN': 'MPI_Comm_copy_attr_function',
    'MPI_COMM_NULL_DELETE_FN': 'MPI_Comm_delete_attr_function',
    'MPI_TYPE_NULL_COPY_FN': 'MPI_Type_copy_attr_function',
    'MPI_TYPE_DUP_FN': 'MPI_Type_copy_attr_function',
    'MPI_TYPE_NULL_DELETE_FN': 'MPI_Type_delete_attr_function',
    'MPI_WIN_NULL_COPY_FN': 'MPI_Win_copy_attr_function',
    'MPI_WIN_DUP_FN': 'MPI_Win_copy_attr_function',
    'MPI_WIN_NULL_DELETE_FN': 'MPI_Win_delete_attr_function',
    'MPI_CONVERSION_FN_NULL': 'MPI_Datarep_conversion_function',
    'MPI_CONVERSION_FN_NULL_C': 'MPI_Datarep_conversion_function_c',
}
PREDEFINED_OLD = ('MPI_NULL_COPY_FN', 'MPI_DUP_FN', 'MPI_NULL_DELETE_FN')

# Callbacks as Fortran sees them: arguments, C-like types. Buffers are addresses by value.
CALLBACKS = {
    'MPI_User_function': 'addr invec, addr inoutvec, int len, MPI_Datatype datatype',
    'MPI_User_function_c': 'addr invec, addr inoutvec, MPI_Count len, MPI_Datatype datatype',
    'MPI_Comm_errhandler_function': 'MPI_Comm comm, int error_code',
    'MPI_Win_errhandler_function': 'MPI_Win win, int error_code',
    'MPI_File_errhandler_function': 'MPI_File file, int error_code',
    'MPI_Session_errhandler_function': 'MPI_Session session, int error_code',
    'MPI_Grequest_query_function': 'MPI_Aint extra_state, MPI_Status status, int ierror',
    'MPI_Grequest_free_function': 'MPI_Aint extra_state, int ierror',
    'MPI_Grequest_cancel_function': 'MPI_Aint extra_state, logical complete, int ierror',
    'MPI_Datarep_extent_function':
        'MPI_Datatype datatype, MPI_Aint extent, MPI_Aint extra_state, int ierror',
    'MPI_Datarep_conversion_function':
        'addr userbuf, MPI_Datatype datatype, int count, addr filebuf, MPI_Offset position, '
        'MPI_Aint extra_state, int ierror',
    'MPI_Datarep_conversion_function_c':
        'addr userbuf, MPI_Datatype datatype, MPI_Count count, addr filebuf, MPI_Offset position, '
        'MPI_Aint extra_state, int ierror',
}
for _kind, _type, _name in (('Comm', 'MPI_Comm', 'comm'), ('Type', 'MPI_Datatype', 'type'),
                            ('Win', 'MPI_Win', 'win')):
    _dummy = 'datatype' if _name == 'type' else _name
    CALLBACKS[f'MPI_{_kind}_copy_attr_function'] = (
        f'{_type} old{_name}, int {_name}_keyval, MPI_Aint extra_state, MPI_Aint attribute_val_in, '
        f'MPI_Aint attribute_val_out, logical flag, int ierror')
    CALLBACKS[f'MPI_{_kind}_delete_attr_function'] = (
        f'{_type} {_dummy}, int {_name}_keyval, MPI_Aint attribute_val, MPI_Aint extra_state, '
        f'int ierror')
