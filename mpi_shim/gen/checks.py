# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The checks of entry points for each argument, as rows: section, function, argument, check.

The first three are patterns of the section's title in the header, of the function's name without MPI_
and _c, and of the argument's name. The first row that fits counts. A check is a C expression that gives
an error code; in it, {v} is the argument, {o} the object behind a handle, {n} the argument's name as a
string, {len} the number of elements of an array, {wide} the array with wide elements, {comm} the first
communicator. '' checks nothing; several checks are separated by semicolons.
"""
import re

PART = 'point-to-point: partitioned'
P2P = 'point-to-point: (?!partitioned|buffers).*'
COLL = 'collectives: .*'
RMA = 'one-sided: .*'
FILES = 'files: .*'
ANY = '.*'

NOT_NULL = 'mpi_check_null({v}, {n})'
ARRAY = 'mpi_check_array({v}, {len}, {n})'
BUFFER = 'mpi_check_buffer({v}, %s, %s_o, {n})'
NOT_NEGATIVE = 'mpi_check_not_negative({v}, MPI_ERR_%s, {n})'
COMMITTED = 'mpi_check_committed({o}, {v}, {n})'

ROWS = [
    # messages
    (P2P, ANY, 'buf', BUFFER % ('count', 'datatype')),
    (P2P, ANY, 'sendbuf', BUFFER % ('sendcount', 'sendtype')),
    (P2P, ANY, 'recvbuf', BUFFER % ('recvcount', 'recvtype')),
    (P2P, ANY, 'datatype|sendtype|recvtype', COMMITTED),
    (P2P, ANY, 'dest', 'mpi_check_dest({comm}, {v}, {n})'),
    (P2P, ANY, 'source', 'mpi_check_source({comm}, {v}, {n})'),
    (P2P, '.*[Pp]robe|I?[Rr]ecv(_init)?', 'tag', 'mpi_check_recv_tag({v}, {n})'),
    (P2P, ANY, 'recvtag', 'mpi_check_recv_tag({v}, {n})'),
    (PART, ANY, 'buf', BUFFER % ('partitions ? count : 0', 'datatype')),
    (PART, ANY, 'datatype', COMMITTED),
    (PART, ANY, 'dest|source', 'mpi_check_dest({comm}, {v}, {n})'),
    (PART, ANY, 'partitions|length', NOT_NEGATIVE % 'ARG'),
    (ANY, ANY, 'tag|sendtag', 'mpi_check_tag({v}, {n})'),
    (ANY, '(Comm|Session)_attach_buffer|Buffer_attach', 'size', NOT_NEGATIVE % 'ARG'),

    # one-sided; of what is fetched with an operation, whether the origin matters is for the operation to say
    (RMA, 'R?[Gg]et_accumulate|Fetch_and_op', 'origin_addr', ''),
    (RMA, 'R?[Gg]et_accumulate', 'origin_(count|datatype)', ''),
    (RMA, 'Compare_and_swap|Fetch_and_op', '.*_addr', BUFFER % ('1', 'datatype')),
    (RMA, ANY, 'origin_addr', BUFFER % ('origin_count', 'origin_datatype')),
    (RMA, ANY, 'result_addr', BUFFER % ('result_count', 'result_datatype')),
    (RMA, ANY, '(origin_|target_|result_)?datatype', COMMITTED),
    (RMA, ANY, '(origin|target|result)_count', 'mpi_check_count({v}, {n})'),
    (RMA, ANY, 'target_rank', 'mpi_check_target({win}, {v}, {n})'),
    (RMA, 'Win_shared_query|Win_lock|Win_unlock|Win_flush.*', 'rank', 'mpi_check_target({win}, {v}, {n})'),

    # files
    (FILES, '.*_end', 'buf', ''),
    (FILES, ANY, 'buf', BUFFER % ('count', 'datatype')),
    (FILES, 'File_.*(read|write).*', 'datatype', COMMITTED),
    (FILES, '.*_at(_.*)?', 'offset', NOT_NEGATIVE % 'ARG'),
    (FILES, 'File_(set_size|preallocate)', 'size', NOT_NEGATIVE % 'ARG'),
    # sessions
    ('sessions', 'Session_get_nth_pset', 'pset_name|n', ''),
    ('sessions', 'Intercomm_create_from_groups', '.*leader', ''),

    # memory
    ('the environment', 'Alloc_mem', 'size', NOT_NEGATIVE % 'ARG'),

    # packing
    ('packing', 'Pack', 'inbuf', BUFFER % ('incount', 'datatype')),
    ('packing', 'Unpack', 'outbuf', BUFFER % ('outcount', 'datatype')),
    ('packing', 'Pack_external', 'inbuf', BUFFER % ('incount', 'datatype')),
    ('packing', 'Unpack_external', 'outbuf', BUFFER % ('outcount', 'datatype')),
    ('packing', ANY, 'inbuf', 'mpi_check_array({v}, insize, {n})'),
    ('packing', ANY, 'outbuf', 'mpi_check_array({v}, outsize, {n})'),
    ('packing', 'Pack|Unpack|Pack_external|Unpack_external', 'datatype', COMMITTED),
    ('packing', ANY, 'insize|outsize', NOT_NEGATIVE % 'ARG'),

    # reductions outside of collectives
    # checked behind, as in collectives
    ('reduction operations', 'Reduce_local', 'inbuf|inoutbuf', ''),
    ('reduction operations', 'Reduce_local', 'datatype', COMMITTED),

    # what is significant on some ranks only is checked behind, its arrays here
    (COLL, ANY, '(send|recv)?count|root', ''),

    # significant at the root only
    ('dynamic processes', 'Comm_spawn(_multiple)?', 'count|maxprocs', ''),

    # sizes
    (ANY, ANY, '(send|recv|in|out)?count', 'mpi_check_count({v}, {n})'),
    ('topologies', ANY, 'ndims', NOT_NEGATIVE % 'DIMS'),
    (ANY, ANY, 'n|ndims|nnodes|max.*|indegree|outdegree|blocklength', NOT_NEGATIVE % 'ARG'),
    ('datatypes', 'Type_create_darray', 'size|rank', NOT_NEGATIVE % 'ARG'),
    ('datatypes', ANY, 'array_of_blocklengths',
     ARRAY + ';mpi_check_lengths({wide}, count, {n})'),
    ('datatypes', 'Type_create_struct', 'array_of_types',
     ARRAY + ';mpi_check_types({wide}, count, {n})'),

    # ranks that have to exist
    ('topologies', 'Cart_coords|Graph_neighbors.*', 'rank', 'mpi_check_member({comm}, {v}, {n})'),
    ('communicators', 'Intercomm_create', 'local_leader', 'mpi_check_member({comm}, {v}, {n})'),

    ('topologies', 'Cart_rank|Cart_sub', 'coords|remain_dims',
     'mpi_check_cart_array({comm}, {v}, {n})'),

    # what is predefined stays
    (ANY, '(Comm|Type|Op|Info)_free|Comm_disconnect', 'comm|datatype|op|info',
     'mpi_check_own(&{o}->obj, {n})'),

    # info
    ('info objects', ANY, 'key', 'mpi_check_key({v}, {n})'),
    ('info objects', 'Info_set', 'value', 'mpi_check_value({v}, {n})'),
    ('info objects', 'Info_get_nthkey', 'n', ''),
    ('info objects', 'Info_create_env', 'argv', ''),
    ('info objects', 'Info_get_string', 'value', ''),
]
# the key is a result there
ROWS.insert(0, ('info objects', 'Info_get_nthkey', 'key', NOT_NULL))

# Pointers that may be null, beyond those in ROWS: statuses, buffers, what is set as it is, and arrays
# whose meaning only the internal function knows.
MAY_BE_NULL = [
    ('(?!statuses).*', ANY, '(array_of_)?status(es)?'),
    (ANY, ANY, 'extra_state|.*weights'),
    (COLL, ANY, '.*buf|buffer'),
    (RMA, 'Win_(create|attach|detach)', 'base'),
    (ANY, '.*set_attr|Attr_put', 'attribute_val'),
    ('dynamic processes', 'Comm_spawn(_multiple)?', 'command|argv|array_of_.*'),
    ('dynamic processes', 'Comm_(accept|connect)', 'port_name'),
    (ANY, '.*attach_buffer|Buffer_attach|Get_address|Free_mem', 'buffer|location|base'),
    (ANY, '.*[Kk]eyval_create|.*create_keyval', '.*fn'),
    (FILES, 'Register_datarep', '(read|write)_conversion_fn'),
]

# Elements of arrays: function, argument, length (the first of the names that is an argument, or an
# expression). In collectives see SIGNIFICANT.
LENGTHS = [
    (ANY, 'array_of_requests', 'count|incount'),
    (ANY, 'array_of_indices', 'incount'),
    (ANY, 'array_of_partitions', 'length'),
    (ANY, 'ranks[12]?|ranges', 'n'),
    ('Cart_create|Cart_map|Dims_create', 'dims|periods', 'ndims'),
    ('Cart_get|Cart_coords', 'dims|periods|coords', 'maxdims'),
    ('Graph_create|Graph_map', 'indx', 'nnodes'),
    ('Graph_create|Graph_map', 'edges', '0'),  # checked with what indx says
    ('Graph_get', 'indx', 'maxindex'),
    ('Graph_get', 'edges', 'maxedges'),
    ('Graph_neighbors', 'neighbors', 'maxneighbors'),
    ('Dist_graph_create_adjacent', 'sources', 'indegree'),
    ('Dist_graph_create_adjacent', 'destinations', 'outdegree'),
    ('Dist_graph_create', 'sources|degrees', 'n'),
    ('Dist_graph_create', 'destinations', 'mpi_sum_of(degrees, n)'),
    ('Dist_graph_neighbors', 'sources', 'maxindegree'),
    ('Dist_graph_neighbors', 'destinations', 'maxoutdegree'),
    ('Type_get_contents', 'array_of_integers', 'max_integers'),
    ('Type_get_contents', 'array_of_addresses', 'max_addresses'),
    ('Type_get_contents', 'array_of_large_counts', 'max_large_counts'),
    ('Type_get_contents', 'array_of_datatypes', 'max_datatypes'),
    ('Type_create_(subarray|darray)', 'array_of_.*', 'ndims'),
    ('Type_.*', 'array_of_.*', 'count'),
]

# Arrays of collectives: function, argument, the condition under which they are looked at at all, and
# how many elements they have then.
AT_ROOT = '({comm}->inter ? root == MPI_ROOT : root == {comm}->rank)'
SIGNIFICANT = [
    ('I?gatherv(_init)?', 'recvcounts|displs', AT_ROOT, '{comm}->remote_size'),
    ('I?scatterv(_init)?', 'sendcounts|displs', AT_ROOT, '{comm}->remote_size'),
    ('I?allgatherv(_init)?', 'recvcounts|displs', 'true', '{comm}->remote_size'),
    ('I?alltoall[vw](_init)?', 'sendcounts|sendtypes|sdispls',
     'sendbuf != MPI_IN_PLACE || {comm}->inter', '{comm}->remote_size'),
    ('I?alltoall[vw](_init)?', 'recvcounts|recvtypes|rdispls', 'true', '{comm}->remote_size'),
    ('I?reduce_scatter(_init)?', 'recvcounts', 'true', '{comm}->size'),
    ('I?neighbor_allgatherv(_init)?', 'recvcounts|displs', 'true', 'mpi_neighbors_in({comm})'),
    ('I?neighbor_alltoall[vw](_init)?', 'sendcounts|sendtypes|sdispls', 'true', 'mpi_neighbors_out({comm})'),
    ('I?neighbor_alltoall[vw](_init)?', 'recvcounts|recvtypes|rdispls', 'true', 'mpi_neighbors_in({comm})'),
]

# Where MPI_DATATYPE_NULL is let pass, because programs have it and nothing can go wrong: a datatype
# in messages, and the condition; an array of them in collectives, and the array of counts.
NULL_TYPES = [
    (P2P, '(S|Is)endrecv_replace', 'datatype',
     'count == 0 && dest == MPI_PROC_NULL && source == MPI_PROC_NULL'),
    (P2P, 'I?[Mm]recv', 'datatype', 'count == 0 && message && *message == MPI_MESSAGE_NO_PROC'),
    (P2P, '(I?[Rr]ecv)(_init)?', 'datatype', 'count == 0 && source == MPI_PROC_NULL'),
    (P2P, ANY, 'datatype', 'count == 0 && dest == MPI_PROC_NULL'),
    (P2P, ANY, 'sendtype', 'sendcount == 0 && dest == MPI_PROC_NULL'),
    (P2P, ANY, 'recvtype', 'recvcount == 0 && source == MPI_PROC_NULL'),
    (COLL, ANY, 'sendtypes', 'sendcounts'),
    (COLL, ANY, 'recvtypes', 'recvcounts'),
]

# These look at a number, and do not apply to a result of the same name.
OF_NUMBERS = re.compile(r'mpi_check_(count|not_negative|dest|source|member|tag|recv_tag)\(')

# Functions that may be called before MPI_Init and after MPI_Finalize (MPI-4 §11.4.1).
ANY_TIME = re.compile(r'''MPI_(?:
    Info_.* | Error_class | Error_string | Add_error_.* | Remove_error_.* |
    \w+_create_errhandler | Errhandler_free
)''', re.VERBOSE)


def base_name(f):
    name = f.name[len('MPI_'):]
    return name[:-2] if name.endswith(('_c', '_x')) else name


def fits(row, f, arg):
    section, function, argument = row[:3]
    return (re.fullmatch(section, f.section) and re.fullmatch(function, base_name(f)) and
            re.fullmatch(argument, arg.name))


def row_of(f, arg):
    """The check of an argument from ROWS, or None if no row fits."""
    for row in ROWS:
        if fits(row, f, arg) and not (arg.type.endswith('*') and OF_NUMBERS.match(row[3])):
            return row[3]
    return None


def null_type(f, arg):
    """The condition or the counts of NULL_TYPES, or None."""
    return next((row[3] for row in NULL_TYPES if fits(row, f, arg)), None)


def may_be_null(f, arg):
    return any(fits(row, f, arg) for row in MAY_BE_NULL)


def length(f, arg):
    """How many elements an array has, as a C expression; None if only the callee knows."""
    names = [a.name for a in f.args]
    for function, argument, lengths in LENGTHS:
        if re.fullmatch(function, base_name(f)) and re.fullmatch(argument, arg.name):
            return next((n for n in lengths.split('|') if n in names), lengths)
    return None


def significant(f, arg):
    """(condition, length) of an array of a collective, or None."""
    for function, argument, condition, count in SIGNIFICANT:
        if re.fullmatch(function, base_name(f), re.IGNORECASE) and \
                re.fullmatch(argument, arg.name):
            return condition, count
    return None
