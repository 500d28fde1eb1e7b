# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""The error that an MPI function must return for an invalid argument, kept by hand beside the standard;
args.py makes calls of it. Nothing here comes from the code under test.
"""

ANY = '.*'
SEND = '(Send|[BSR]send|I[bsr]?send)(_init)?'
P2P = SEND + '|Recv(_init)?|Irecv|(S|Is)endrecv(_replace)?'
PART = 'P(send|recv)_init'
COLL = ('(Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce|Allreduce|'
        'Reduce_scatter(_block)?|Scan|Exscan|Neighbor_(allgatherv?|alltoall[vw]?))(_init)?|'
        'I(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce|allreduce|'
        'reduce_scatter(_block)?|scan|exscan|neighbor_(allgatherv?|alltoall[vw]?))')
NEIGHBOR = 'I?[Nn]eighbor_.*'
TOPO = 'Cart.*|Graph.*|Dist_graph.*|Dims_create'

BAD_COMM = [('MPI_COMM_NULL', 'COMM'), ('(MPI_Comm)0', 'COMM'), ('(MPI_Comm)0x1fffff', 'COMM'),
            ('(MPI_Comm)MPI_INT', 'COMM')]
BAD_TYPE = [('MPI_DATATYPE_NULL', 'TYPE'), ('(MPI_Datatype)0', 'TYPE'),
            ('(MPI_Datatype)MPI_COMM_WORLD', 'TYPE'), ('(MPI_Datatype)0x3fffffff', 'TYPE')]
UNCOMMITTED = BAD_TYPE + [('uncommitted', 'TYPE')]
BAD_OP = [('MPI_OP_NULL', 'OP'), ('(MPI_Op)MPI_INT', 'OP')]
BAD_WIN = [('MPI_WIN_NULL', 'WIN'), ('(MPI_Win)0', 'WIN'), ('(MPI_Win)MPI_COMM_WORLD', 'WIN'),
           ('(MPI_Win)0x1fffff', 'WIN')]
BAD_FILE = [('MPI_FILE_NULL', 'FILE'), ('(MPI_File)0', 'FILE'), ('(MPI_File)MPI_COMM_WORLD', 'FILE'),
            ('(MPI_File)0xafffffff', 'FILE')]
BAD_SESSION = [('MPI_SESSION_NULL', 'SESSION'), ('(MPI_Session)0', 'SESSION'),
               ('(MPI_Session)MPI_COMM_WORLD', 'SESSION'), ('(MPI_Session)0xafffffff', 'SESSION')]
BAD_HANDLER = [('MPI_ERRHANDLER_NULL', 'ERRHANDLER'), ('(MPI_Errhandler)MPI_INT', 'ERRHANDLER')]
BAD_GROUP = [('MPI_GROUP_NULL', 'GROUP'), ('(MPI_Group)MPI_COMM_SELF', 'GROUP')]
FILE_IO = 'File_i?(read|write).*'
RMA = '(R?([Pp]ut|[Gg]et|[Aa]ccumulate|[Gg]et_accumulate))|Fetch_and_op|Compare_and_swap'
NULL = [('NULL', 'ARG')]
FREE = []


def holding(type_, bad):
    """Bad handles behind a pointer, and no pointer."""
    return [(f'&({type_}){{ {value} }}', code) for value, code in bad] + NULL


# Function without MPI_ and _c, argument, [(bad value, class)]. The first row that fits counts; FREE: any value
# is right, or what is wrong with it depends on others and is tested elsewhere.
RULES = [
    # null handles have names
    ('Comm_get_name', 'comm', BAD_COMM[1:]),
    ('Type_get_name', 'datatype', BAD_TYPE[1:]),
    ('Win_get_name', 'win', BAD_WIN[1:]),

    # what ends an object
    ('Comm_free|Comm_disconnect', 'comm',
     holding('MPI_Comm', BAD_COMM + [('MPI_COMM_WORLD', 'COMM'), ('MPI_COMM_SELF', 'COMM')])),
    ('Type_free', 'datatype', holding('MPI_Datatype', BAD_TYPE + [('MPI_INT', 'TYPE')])),
    ('Type_commit', 'datatype', holding('MPI_Datatype', BAD_TYPE)),
    ('Op_free', 'op', holding('MPI_Op', BAD_OP + [('MPI_SUM', 'OP')])),
    ('Group_free', 'group', holding('MPI_Group', BAD_GROUP)),
    ('Info_free', 'info', holding('MPI_Info', [('MPI_INFO_NULL', 'INFO'), ('MPI_INFO_ENV', 'INFO'),
                                               ('(MPI_Info)MPI_INT', 'INFO')])),
    ('Errhandler_free', 'errhandler',
     holding('MPI_Errhandler', [('MPI_ERRHANDLER_NULL', 'ERRHANDLER')])),
    ('(Comm|Type)_free_keyval|Keyval_free', '.*keyval',
     [('&(int){ MPI_KEYVAL_INVALID }', 'KEYVAL'), ('&(int){ 987654 }', 'KEYVAL')] + NULL),

    # significant at the root only
    ('Comm_spawn(_multiple)?', 'command|argv|array_of_(commands|argv|maxprocs|info|errcodes)', FREE),
    ('Comm_spawn', 'maxprocs', [('0', 'ARG'), ('-1', 'ARG')]),
    ('Comm_spawn_multiple', 'count', [('0', 'ARG'), ('-1', 'ARG')]),
    ('Comm_(spawn|spawn_multiple|accept|connect)', 'root', [('-1', 'ROOT'), ('1', 'ROOT')]),
    ('Comm_(accept|connect)', 'port_name', [('NULL', 'PORT'), ('"none"', 'PORT')]),
    ('Close_port', 'port_name', [('NULL', 'ARG'), ('"none"', 'PORT')]),
    ('Comm_join', 'fd', [('-1', 'ARG')]),

    # requests
    ('Start|Cancel|Request_free', 'request',
     holding('MPI_Request', [('MPI_REQUEST_NULL', 'REQUEST'),
                             ('(MPI_Request)MPI_INT', 'REQUEST')])),
    ('Wait|Test', 'request', holding('MPI_Request', [('(MPI_Request)MPI_INT', 'REQUEST')])),
    ('Request_get_status|Grequest_complete', 'request', [('(MPI_Request)MPI_INT', 'REQUEST')]),
    ('Pready.*', 'request', [('MPI_REQUEST_NULL', 'REQUEST'), ('(MPI_Request)MPI_INT', 'REQUEST')]),
    ('Parrived', 'request', [('(MPI_Request)MPI_INT', 'REQUEST')]),
    ('Pready.*|Parrived', 'partition|partition_low|partition_high', FREE),
    ('Pready_list', 'length', [('-1', 'ARG')]),
    ('Pready_list', 'array_of_partitions', NULL),
    (ANY, 'array_of_requests', [('(MPI_Request[]){ (MPI_Request)MPI_INT }', 'REQUEST')] + NULL),
    (ANY, 'array_of_indices', NULL),
    ('Mrecv|Imrecv', 'message',
     holding('MPI_Message', [('MPI_MESSAGE_NULL', 'REQUEST'), ('(MPI_Message)MPI_INT', 'REQUEST')])),
    ('Grequest_start', '.*_fn', NULL),

    # windows
    ('Win_free', 'win', holding('MPI_Win', BAD_WIN)),
    (ANY, 'win', BAD_WIN),
    ('Win_(allocate.*|create)', 'size', [('-1', 'SIZE')]),
    ('Win_(allocate.*|create)', 'disp_unit', [('0', 'DISP'), ('-1', 'DISP')]),
    ('Win_create', 'base', [('NULL', 'BASE')]),
    ('Win_attach', 'size', [('-1', 'SIZE')]),
    ('Win_attach', 'base', [('NULL', 'BASE')]),
    ('Win_detach', 'base', [('NULL', 'RMA_ATTACH'), ('buffer + 1', 'RMA_ATTACH')]),
    ('Win_shared_query|Win_(un)?lock|Win_flush.*', 'rank', [('7', 'RANK'), ('-9', 'RANK')]),
    ('Win_lock', 'lock_type', [('77', 'LOCKTYPE'), ('0', 'LOCKTYPE')]),
    ('Win_.*', 'assert', [('1', 'ASSERT'), ('-1', 'ASSERT')]),
    ('Win_call_errhandler', 'errorcode', FREE),
    ('Win_(set|get|delete)_attr', '.*keyval', [('MPI_KEYVAL_INVALID', 'KEYVAL'), ('keyval', 'KEYVAL')]),
    ('Win_(set|delete)_attr', 'attribute_val', FREE),
    ('Win_set_errhandler', 'errhandler',
     [('MPI_ERRHANDLER_NULL', 'ERRHANDLER'), ('(MPI_Errhandler)MPI_INT', 'ERRHANDLER')]),
    (RMA, 'target_rank', [('7', 'RANK'), ('-9', 'RANK')]),
    (RMA, 'target_disp', [('-1', 'DISP'), ('4096', 'RMA_RANGE'), ('1ll << 62', 'RMA_RANGE')]),
    ('R?[Gg]et_accumulate', 'origin_count', FREE),
    ('R?[Gg]et_accumulate|Fetch_and_op', 'origin_addr', [('NULL', 'BUFFER')]),
    (RMA, '(origin|target|result)_count', [('-1', 'COUNT')]),
    (RMA, '(origin_|target_|result_)?datatype', UNCOMMITTED),
    (RMA, '(origin|compare|result)_addr', [('NULL', 'BUFFER'), ('MPI_IN_PLACE', 'BUFFER')]),
    ('R?[Aa]ccumulate', 'op', BAD_OP + [('MPI_NO_OP', 'OP'), ('user_op', 'OP')]),
    (RMA, 'op', BAD_OP + [('user_op', 'OP')]),

    # files
    ('File_(set|get|call)_errhandler', 'fh|file', BAD_FILE[1:]),  # the null file has a handler
    ('File_close', 'fh', holding('MPI_File', BAD_FILE)),
    ('File_set_errhandler', 'errhandler',
     [('MPI_ERRHANDLER_NULL', 'ERRHANDLER'), ('(MPI_Errhandler)MPI_INT', 'ERRHANDLER')]),
    ('File_call_errhandler', 'errorcode', FREE),
    ('File_open', 'fh', NULL),
    (ANY, 'fh', BAD_FILE),
    ('File_open', 'amode', [('0', 'AMODE'), ('MPI_MODE_RDONLY | MPI_MODE_RDWR', 'AMODE'),
                            ('MPI_MODE_RDONLY | MPI_MODE_CREATE', 'AMODE'),
                            ('MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL', 'AMODE'),
                            ('MPI_MODE_RDWR | 1 << 24', 'AMODE')]),
    ('File_(open|delete)', 'filename', [('"/no/such/file"', 'NO_SUCH_FILE'), ('NULL', 'ARG')]),
    ('File_(set_size|preallocate)', 'size', [('-1', 'ARG')]),
    ('File_set_view', 'disp', [('-1', 'DISP'), ('-7', 'DISP')]),
    ('File_set_view', 'etype|filetype', UNCOMMITTED),
    ('File_set_view', 'datarep', [('"nonsense"', 'UNSUPPORTED_DATAREP'), ('NULL', 'ARG')]),
    ('File_seek(_shared)?', 'offset', [('-1', 'ARG')]),
    ('File_seek(_shared)?', 'whence', [('0', 'ARG'), ('77', 'ARG')]),
    ('File_set_atomicity', 'flag', FREE),
    ('File_get_byte_offset', 'offset', [('-1', 'ARG')]),
    (FILE_IO, 'offset', [('-1', 'ARG')]),
    (FILE_IO + '_end', 'fh', BAD_FILE),
    (FILE_IO + '_end', 'buf', FREE),
    (FILE_IO, 'buf', [('NULL', 'BUFFER'), ('MPI_IN_PLACE', 'BUFFER')]),
    (FILE_IO, 'datatype', UNCOMMITTED),
    ('Register_datarep', 'datarep', [('"native"', 'DUP_DATAREP'), ('""', 'ARG'), ('too_long', 'ARG'),
                                     ('NULL', 'ARG')]),
    ('Register_datarep', 'dtype_file_extent_fn', NULL),
    ('Register_datarep', '(read|write)_conversion_fn', FREE),
    # sessions
    ('Session_finalize', 'session', holding('MPI_Session', BAD_SESSION)),
    (ANY, 'session', BAD_SESSION),
    ('Session_get_nth_pset', 'n', [('-1', 'ARG'), ('99', 'ARG')]),
    ('Session_get_nth_pset', 'pset_name', FREE),
    (ANY, 'pset_name', [('"mpi://NONE"', 'ARG'), ('""', 'ARG')] + NULL),
    ('(Session_set_|Comm_create_from_|Intercomm_create_from_).*', 'errhandler', BAD_HANDLER),
    ('Session_call_errhandler', 'errorcode', FREE),
    ('Session_attach_buffer', 'size', [('-1', 'ARG')]),
    ('Session_attach_buffer', 'buffer', FREE),
    (ANY, 'stringtag', NULL),
    (ANY, 'local_group|remote_group', BAD_GROUP),
    ('Intercomm_create_from_groups', 'local_leader|remote_leader', [('7', 'RANK'), ('-1', 'RANK')]),

    # handles
    ('Comm_remote_size|Comm_remote_group', 'comm', BAD_COMM + [('MPI_COMM_SELF', 'COMM')]),
    ('Intercomm_merge', 'intercomm', BAD_COMM + [('MPI_COMM_SELF', 'COMM')]),
    ('Intercomm_merge', ANY, FREE),  # there is no intercommunicator of one process
    ('Cart_map|Graph_map', 'comm', BAD_COMM),
    ('Cart(_.*|dim_get)', 'comm', BAD_COMM + [('MPI_COMM_SELF', 'TOPOLOGY'), ('graph', 'TOPOLOGY')]),
    ('Graph(_.*|dims_get)', 'comm', BAD_COMM + [('MPI_COMM_SELF', 'TOPOLOGY'), ('cart', 'TOPOLOGY')]),
    ('Dist_graph_neighbors.*', 'comm',
     BAD_COMM + [('MPI_COMM_SELF', 'TOPOLOGY'), ('cart', 'TOPOLOGY')]),
    (NEIGHBOR, 'comm', BAD_COMM + [('MPI_COMM_SELF', 'TOPOLOGY')]),
    (ANY, 'comm|comm1|comm2|comm_old|local_comm|peer_comm', BAD_COMM),
    (P2P + '|' + PART, 'datatype|sendtype|recvtype', UNCOMMITTED),
    ('Mrecv|Imrecv', 'datatype', UNCOMMITTED),
    (COLL + '|Reduce_local', 'datatype|sendtype|recvtype', UNCOMMITTED),
    (NEIGHBOR, 'sendtypes|recvtypes',
     [('(MPI_Datatype[]){ MPI_INT, MPI_DATATYPE_NULL }', 'TYPE'),
      ('(MPI_Datatype[]){ MPI_INT, uncommitted }', 'TYPE')] + NULL),
    ('I?[Aa]lltoallw(_init)?', 'sendtypes|recvtypes',
     [('(MPI_Datatype[]){ MPI_DATATYPE_NULL }', 'TYPE'), ('(MPI_Datatype[]){ uncommitted }', 'TYPE')] +
     NULL),
    ('Pack|Unpack|Pack_external|Unpack_external', 'datatype', UNCOMMITTED),
    ('Type_create_struct', 'array_of_types',
     [('(MPI_Datatype[]){ MPI_DATATYPE_NULL }', 'TYPE')] + NULL),
    (ANY, 'datatype|oldtype|value_type|index_type', BAD_TYPE),
    (ANY, 'op', BAD_OP),
    (ANY, 'group|group1|group2', BAD_GROUP),
    ('Comm_set_errhandler', 'errhandler',
     [('MPI_ERRHANDLER_NULL', 'ERRHANDLER'), ('(MPI_Errhandler)MPI_INT', 'ERRHANDLER')]),
    ('Info_.*', 'info', [('MPI_INFO_NULL', 'INFO'), ('(MPI_Info)MPI_INT', 'INFO')]),
    (ANY, 'info', [('(MPI_Info)MPI_INT', 'INFO')]),
    ('(Comm|Type)_(set|get|delete)_attr|Attr_.*', '.*keyval',
     [('MPI_KEYVAL_INVALID', 'KEYVAL'), ('987654', 'KEYVAL')]),
    ('(Comm|Type)_set_attr|Attr_put', 'attribute_val', FREE),

    # messages
    (PART, 'partitions', [('-1', 'ARG')]),
    (PART, 'count', [('-1', 'COUNT')]),
    (PART, 'buf', [('NULL', 'BUFFER'), ('MPI_IN_PLACE', 'BUFFER')]),
    (PART, 'dest|source', [('7', 'RANK'), ('-5', 'RANK'), ('MPI_ANY_SOURCE', 'RANK')]),
    (PART, 'tag', [('-5', 'TAG'), ('MPI_ANY_TAG', 'TAG')]),
    (P2P, 'count|sendcount|recvcount', [('-1', 'COUNT')]),
    (P2P, 'buf|sendbuf|recvbuf', [('NULL', 'BUFFER'), ('MPI_IN_PLACE', 'BUFFER')]),
    (P2P, 'dest', [('7', 'RANK'), ('-5', 'RANK'), ('MPI_ANY_SOURCE', 'RANK')]),
    (ANY, 'source', [('7', 'RANK'), ('-5', 'RANK')]),
    (SEND + '|(S|Is)endrecv.*', 'tag|sendtag', [('-5', 'TAG'), ('MPI_ANY_TAG', 'TAG')]),
    ('Intercomm_create|Comm_create_group', 'tag', [('-5', 'TAG'), ('MPI_ANY_TAG', 'TAG')]),
    (ANY, 'tag|recvtag', [('-5', 'TAG')]),
    ('Mrecv|Imrecv', 'count', [('-1', 'COUNT')]),
    ('Mrecv|Imrecv', 'buf', [('NULL', 'BUFFER')]),
    ('Buffer_attach|Comm_attach_buffer', 'size', [('-1', 'ARG')]),
    ('Buffer_attach|Comm_attach_buffer', 'buffer', FREE),

    # collectives
    (COLL, 'root', [('7', 'ROOT'), ('-1', 'ROOT'), ('MPI_ROOT', 'ROOT')]),
    (COLL, 'count|sendcount|recvcount', [('-1', 'COUNT')]),
    (COLL, 'sendcounts|recvcounts', [('bad_counts', 'COUNT')] + NULL),
    (COLL, 'displs|sdispls|rdispls', NULL),
    ('I?[Bb]cast(_init)?', 'buffer', [('NULL', 'BUFFER')]),
    ('I?[Ee]xscan(_init)?', 'recvbuf', FREE),  # rank 0 receives nothing
    (COLL, 'sendbuf|recvbuf', [('NULL', 'BUFFER')]),
    ('Reduce_local', 'inbuf|inoutbuf', [('NULL', 'BUFFER'), ('MPI_IN_PLACE', 'BUFFER')]),
    ('Reduce_local', 'count', [('-1', 'COUNT')]),
    ('Op_create', 'user_fn', NULL),
    ('Op_create', 'commute', FREE),

    # datatypes
    ('Type_create_darray', 'size|rank|ndims', [('-1', 'ARG')]),
    ('Type_create_subarray', 'ndims', [('-1', 'ARG')]),
    ('Type_create_subarray', 'array_of_subsizes', [('bad_counts', 'ARG')] + NULL),
    ('Type_create_subarray', 'array_of_starts', [('bad_counts', 'ARG')] + NULL),
    ('Type_create_(subarray|darray)', 'order', [('77', 'ARG')]),
    ('Type_create_darray', 'array_of_distribs', [('bad_ints', 'ARG')] + NULL),
    ('Type_create_(subarray|darray)', 'array_of_.*', NULL),
    ('Type_create_f90_.*', 'p|r', FREE),
    ('Type_match_size', 'typeclass', [('77', 'ARG')]),
    ('Type_match_size', 'size', [('77', 'ARG')]),
    ('Type_.*', 'count', [('-1', 'COUNT')]),
    ('Type_.*', 'blocklength', [('-1', 'ARG')]),
    ('Type_.*', 'array_of_blocklengths', [('bad_counts', 'ARG')] + NULL),
    ('Type_.*', 'array_of_displacements', NULL),
    ('Type_.*', 'stride|lb|extent', FREE),
    ('Type_get_contents', 'max_integers|max_datatypes|max_addresses|max_large_counts', [('-1', 'ARG')]),
    ('Type_get_contents', 'array_of_.*', NULL),
    ('Type_create_hvector|Type_create_resized', 'stride|lb|extent', FREE),

    # packing
    ('Pack.*', 'incount', [('-1', 'COUNT')]),
    ('Unpack.*', 'outcount', [('-1', 'COUNT')]),
    ('Pack.*|Unpack.*', 'insize|outsize', [('-1', 'ARG')]),
    ('Pack(_external)?', 'inbuf', [('NULL', 'BUFFER')]),
    ('Pack(_external)?', 'outbuf', NULL),
    ('Unpack(_external)?', 'outbuf', [('NULL', 'BUFFER')]),
    ('Unpack(_external)?', 'inbuf', NULL),
    ('Pack.*|Unpack.*', 'datarep', [('"nonsense"', 'UNSUPPORTED_DATAREP')] + NULL),
    ('Get_address', 'location', FREE),

    # groups
    ('Group_range_.*', 'ranges', [('bad_ranges', 'RANK')] + NULL),
    ('Group_(incl|excl)', 'ranks', [('bad_ints', 'RANK')] + NULL),
    ('Group_translate_ranks', 'ranks1', [('bad_ints', 'RANK')] + NULL),
    ('Group_.*', 'n', [('-1', 'ARG')]),

    # communicators
    ('Comm_split', 'color', [('-1', 'ARG')]),
    ('Comm_split_type', 'split_type', [('77', 'ARG')]),
    ('Comm_split.*', 'key', FREE),
    ('Intercomm_create', 'local_leader|remote_leader', [('7', 'RANK'), ('-1', 'RANK')]),
    ('Comm_call_errhandler', 'errorcode', FREE),
    ('Add_error_code', 'errorclass', [('99', 'ARG'), ('-1', 'ARG')]),
    ('Add_error_string', 'errorcode', [('99', 'ARG'), ('MPI_ERR_TAG', 'ARG')]),
    ('Remove_error_.*', 'errorclass|errorcode', [('99', 'ARG'), ('MPI_ERR_TAG', 'ARG')]),
    ('Error_string|Error_class', 'errorcode', [('-1', 'ARG')]),
    ('(Comm|Type)_create_keyval|Keyval_create', '.*fn|extra_state', FREE),
    ('Comm_create_errhandler', '.*_fn', NULL),

    # info
    ('Info_get_nthkey', 'n', [('-1', 'ARG'), ('99', 'ARG')]),
    ('Info_get_nthkey', 'key', NULL),
    ('Info_.*', 'key', [('NULL', 'INFO_KEY'), ('""', 'INFO_KEY'), ('too_long', 'INFO_KEY')]),
    ('Info_delete', 'key', [('"no such key"', 'INFO_NOKEY')]),
    ('Info_set', 'value', [('NULL', 'INFO_VALUE'), ('too_long', 'INFO_VALUE')]),
    ('Info_get', 'valuelen', [('-1', 'ARG')]),
    ('Info_get_string', 'value', FREE),
    ('Info_create_env', 'argc|argv', FREE),

    # topologies
    (TOPO, 'ndims', [('-1', 'DIMS')]),
    ('Dims_create', 'nnodes', [('0', 'ARG'), ('-3', 'ARG')]),
    ('Dims_create', 'dims', [('(int[]){ 7 }', 'DIMS')] + NULL),
    ('Cart_create|Cart_map', 'dims', [('(int[]){ -2 }', 'DIMS'), ('(int[]){ 50 }', 'DIMS')] + NULL),
    ('Cart_create|Cart_map', 'periods', NULL),
    (TOPO, 'reorder', FREE),
    ('Cart_rank', 'coords', NULL),
    ('Cart_coords|Graph_neighbors.*', 'rank', [('7', 'RANK'), ('-1', 'RANK')]),
    ('Cart_coords|Cart_get', 'maxdims', [('-1', 'ARG')]),
    ('Cart_coords|Cart_get', 'coords|dims|periods', NULL),
    ('Cart_shift', 'direction', [('7', 'DIMS'), ('-1', 'DIMS')]),
    ('Cart_shift', 'disp', FREE),
    ('Cart_sub', 'remain_dims', NULL),
    ('Graph_create|Graph_map', 'nnodes', [('-1', 'ARG'), ('9', 'ARG')]),
    ('Graph_create|Graph_map', 'indx|edges', [('bad_ints', 'ARG')] + NULL),
    ('Graph_.*', 'maxindex|maxedges|maxneighbors', [('-1', 'ARG')]),
    ('Graph_get|Graph_neighbors', 'indx|edges|neighbors', NULL),
    ('Dist_graph_create.*', 'n|indegree|outdegree', [('-1', 'ARG')]),
    ('Dist_graph_create.*', 'sources|destinations', [('bad_ints', 'RANK')] + NULL),
    ('Dist_graph_create', 'degrees', [('bad_ints', 'ARG')] + NULL),
    ('Dist_graph_create.*', '.*weights', FREE),
    ('Dist_graph_neighbors', 'maxindegree|maxoutdegree', [('-1', 'ARG')]),
    ('Dist_graph_neighbors', 'sources|destinations|.*weights', FREE),

    ('Win_create_keyval', '.*fn|extra_state', FREE),
    ('Win_free_keyval', 'win_keyval', [('&(int){ MPI_KEYVAL_INVALID }', 'KEYVAL')] + NULL),
    ('(Win|File|Session)_create_errhandler', '.*_fn', NULL),

    # the rest
    ('Alloc_mem', 'size', [('-1', 'ARG')]),
    ('Free_mem', 'base', FREE),
    ('Status_set_elements', 'count', [('-1', 'COUNT')]),
    ('Status_set_cancelled', 'flag', FREE),
    ('Get_count|Get_elements|Test_cancelled|Status_.*', 'status', NULL),
    ('Abort', 'errorcode', FREE),
    (ANY, 'count|incount', [('-1', 'COUNT')]),
    (ANY, 'extra_state|(array_of_)?status(es)?|resultlen_unused', FREE),
]

# Functions, what they return (or RIGHT), and arguments that belong together: {names: value}. A
# function that has some of these arguments only is given those.
RIGHT = None
BY_CHANCE = '(void *)1'  # a pointer without a value, that happens to be MPI_IN_PLACE
NOTHING = {'count|(send|recv)count': '0', '(send|recv)counts': 'ints'}
NO_TYPES = '(MPI_Datatype[]){ MPI_DATATYPE_NULL, MPI_DATATYPE_NULL }'
NO_MESSAGE = {'(send|recv)?count': '0', 'datatype|(send|recv)type': 'MPI_DATATYPE_NULL',
              'message': '&(MPI_Message){ MPI_MESSAGE_NO_PROC }'}
ABSOLUTE = {'datatype|sendtype': 'absolute_in', 'recvtype': 'absolute_out',
            'sendtypes': '(MPI_Datatype[]){ absolute_in, absolute_in }',
            'recvtypes': '(MPI_Datatype[]){ absolute_out, absolute_out }'}
BYTES = {'(send|recv)type': 'MPI_BYTE'}
ADDRESSES = ('at_in', 'at_out')  # as displacements, where they are of type MPI_Aint
ONE_BLOCK = 'I?([Aa]ll)?[Gg]atherv?(_init)?|I?[Ss]catterv?(_init)?'
TOGETHER = [
    # where nothing is in a buffer it is not looked at
    (COLL, RIGHT, NOTHING | {'(send|recv)buf|buffer': BY_CHANCE}),
    (COLL, RIGHT, NOTHING | {'sendbuf': BY_CHANCE}),
    (COLL, RIGHT, NOTHING | {'recvbuf': BY_CHANCE}),
    (COLL, RIGHT, NOTHING | {'(send|recv)buf|buffer': 'NULL'}),
    ('Reduce_local', RIGHT, NOTHING | {'inbuf|inoutbuf': BY_CHANCE}),

    # no datatype for no elements
    ('I?([Nn]eighbor_)?[Aa]lltoallw(_init)?', RIGHT, NOTHING | {'sendtypes|recvtypes': NO_TYPES}),
    ('I?([Nn]eighbor_)?[Aa]lltoallw(_init)?', 'TYPE',
     NOTHING | {'sendtypes': '(MPI_Datatype[]){ 0, 0 }'}),
    (P2P + '|I?[Mm]recv', RIGHT, NO_MESSAGE),
    (P2P, 'TYPE', NO_MESSAGE | {'dest|source': '0'}),

    # MPI_BOTTOM with addresses as displacements, and without
    ('I?([Nn]eighbor_)?[Aa]lltoallw(_init)?', RIGHT,
     {'(send|recv)buf': 'MPI_BOTTOM', 'sdispls': 'at_in', 'rdispls': 'at_out'}),
    ('I?([Nn]eighbor_)?[Aa]lltoallv(_init)?', RIGHT,
     BYTES | {'(send|recv)buf': 'MPI_BOTTOM', 'sdispls': 'at_in', 'rdispls': 'at_out'}),
    ('I?([Nn]eighbor_)?([Aa]ll)?[Gg]atherv(_init)?', RIGHT,
     BYTES | {'recvbuf': 'MPI_BOTTOM', 'displs': 'at_out'}),
    ('I?[Ss]catterv(_init)?', RIGHT, BYTES | {'sendbuf': 'MPI_BOTTOM', 'displs': 'at_in'}),
    ('I?([Nn]eighbor_)?[Aa]lltoall[vw](_init)?', 'BUFFER',
     {'(send|recv)buf': 'MPI_BOTTOM', '[sr]displs': 'ones'}),
    ('I?([Nn]eighbor_)?([Aa]ll)?[Gg]atherv(_init)?', 'BUFFER',
     {'recvbuf': 'MPI_BOTTOM', 'displs': 'ones'}),
    ('I?[Ss]catterv(_init)?', 'BUFFER', {'sendbuf': 'MPI_BOTTOM', 'displs': 'ones'}),

    # MPI_BOTTOM with datatypes that hold addresses
    (P2P + '|I?[Mm]recv', RIGHT, ABSOLUTE | {'(send|recv)?buf': 'MPI_BOTTOM',
                                             'message': '&(MPI_Message){ MPI_MESSAGE_NO_PROC }'}),
    ('I?[Bb]cast(_init)?', RIGHT, ABSOLUTE | {'buffer': 'MPI_BOTTOM'}),
    ('I?([Nn]eighbor_)?([Aa]lltoall[vw]?|([Aa]ll)?[Gg]atherv?|[Ss]catterv?)(_init)?', RIGHT,
     ABSOLUTE | {'(send|recv)buf': 'MPI_BOTTOM'}),
    ('I?(([Aa]ll)?[Rr]educe(_scatter(_block)?)?|([Ee]x)?[Ss]can)(_init)?', RIGHT,
     ABSOLUTE | {'sendbuf': 'MPI_IN_PLACE', 'recvbuf': 'MPI_BOTTOM', 'op': 'user_op'}),
    ('I?(([Aa]ll)?[Rr]educe(_scatter(_block)?)?|([Ee]x)?[Ss]can)(_init)?', RIGHT,
     ABSOLUTE | {'sendbuf': 'MPI_BOTTOM', 'recvbuf': '(void *)2048', 'op': 'user_op'}),
    ('Reduce_local', RIGHT, ABSOLUTE | {'inbuf': 'MPI_BOTTOM', 'op': 'user_op'}),
    ('Pack(_external)?', RIGHT, ABSOLUTE | {'inbuf': 'MPI_BOTTOM'}),
    ('Unpack(_external)?', RIGHT, ABSOLUTE | {'outbuf': 'MPI_BOTTOM'}),
    ('R?([Pp]ut|[Gg]et|[Aa]ccumulate|[Gg]et_accumulate)', RIGHT,
     {'(origin|result)_addr': 'MPI_BOTTOM', 'origin_datatype': 'absolute_in',
      'result_datatype': 'absolute_out'}),

    # a rank's own block where it is to go; other buffers must be two
    (ONE_BLOCK, RIGHT, {'(send|recv)buf': 'buffer'}),
    ('I?(([Aa]ll)?[Gg]atherv?|[Ss]catter)(_init)?', 'BUFFER',
     {'(send|recv)buf': 'buffer', 'sendcount': '2'}),
    ('I?[Ss]catterv(_init)?', 'BUFFER', {'(send|recv)buf': 'buffer', 'recvcount': '2'}),
    ('I?([Aa]lltoall[vw]?|([Aa]ll)?[Rr]educe(_scatter(_block)?)?|[Ss]can)(_init)?', 'BUFFER',
     {'(send|recv)buf': 'buffer'}),
]

# Functions of which no call can be made here: it would end the job, or begin something.
NOT_CALLED = 'Abort'

# Arguments that are right: function, argument, value; else by the type, below.
VALID = [
    ('Comm_remote_.*', 'comm', 'MPI_COMM_SELF'),
    ('Cart(_.*|dim_get)', 'comm', 'cart'),
    ('Graph(_.*|dims_get)', 'comm', 'graph'),
    ('Dist_graph_neighbors.*', 'comm', 'dist'),
    ('Graph_create|Graph_map', 'indx', 'ones'),
    ('Graph_create|Graph_map', 'edges', 'ints'),
    ('Dist_graph_create', 'degrees', 'ones'),
    (NEIGHBOR, 'comm', 'cart'),
    (NEIGHBOR, 'sendtypes|recvtypes', '(MPI_Datatype[]){ MPI_INT, MPI_INT }'),
    (COLL, '.*counts', 'ones'),
    (COLL, 'recvbuf', 'buffer + 2048'),
    ('Graph_get|Graph_neighbors', 'indx|edges|neighbors', 'out_ints'),
    ('Cart_get|Cart_coords', 'dims|periods|coords', 'out_ints'),
    ('Cart_create|Cart_map', 'dims', 'ones'),
    ('Dims_create', 'dims', 'out_ints'),
    ('Comm_free|Comm_disconnect', 'comm', '&comm'),
    ('Intercomm_create', 'local_comm|peer_comm', 'MPI_COMM_SELF'),
    ('Comm_(spawn|spawn_multiple|accept|connect)', 'root', '0'),
    ('Comm_spawn', 'command', '"/not/there"'),
    ('Comm_spawn', 'argv', 'MPI_ARGV_NULL'),
    ('Comm_spawn_multiple', 'array_of_commands', '(char *[]){ NULL }'),
    ('Comm_spawn_multiple', 'array_of_argv', 'MPI_ARGVS_NULL'),
    ('Comm_spawn_multiple', 'array_of_maxprocs', 'ones'),
    ('Comm_spawn_multiple', 'array_of_info', '(MPI_Info[]){ MPI_INFO_NULL }'),
    ('Comm_spawn(_multiple)?', 'array_of_errcodes', 'MPI_ERRCODES_IGNORE'),
    ('Comm_(accept|connect)|Close_port', 'port_name', '"none"'),
    (ANY, 'dest|source', 'MPI_PROC_NULL'),
    (ANY, '.*keyval', 'keyval'),
    ('Type_.*_attr', '.*keyval', 'type_keyval'),
    ('(Comm|Type|Win)_(create|free)_keyval|Keyval_.*', '.*keyval', '&out'),
    ('Type_create_darray', 'array_of_distribs', 'distribs'),
    ('Type_create_darray', 'array_of_dargs', 'dargs'),
    ('Type_create_(darray|subarray)', 'array_of_(gsizes|sizes|subsizes|psizes)', 'ones'),
    ('Type_.*', 'array_of_blocklengths', 'ones'),
    ('Type_create_(darray|subarray)', 'order', 'MPI_ORDER_C'),
    ('Type_create_darray', 'size', '1'),
    ('Type_create_darray', 'rank', '0'),
    ('Type_match_size', 'typeclass', 'MPI_TYPECLASS_INTEGER'),
    ('Type_match_size', 'size', '4'),
    ('Type_create_f90_.*', 'p|r', '4'),
    ('Type_get_contents', 'datatype', 'struct_type'),
    ('Type_get_contents', 'max_.*', '8'),
    ('Type_get_value_index', 'value_type', 'MPI_DOUBLE'),
    ('Comm_split_type', 'split_type', 'MPI_COMM_TYPE_SHARED'),
    ('Pack.*|Unpack.*', 'insize|outsize', '64'),
    ('Pack.*|Unpack.*', 'datarep', '"external32"'),
    ('Pack.*|Unpack.*', 'position', '&(POSITION){ 0 }'),
    ('Dist_graph_.*', '.*weights', 'MPI_UNWEIGHTED'),
    ('Dist_graph_neighbors', '.*weights', 'out_ints'),
    ('Info_.*', 'info', 'info'),
    ('Info_free', 'info', '&info'),
    ('Info_get_nthkey', 'key', 'text'),
    ('Info_get.*', 'value', 'text'),
    ('Info_.*', 'key', '"key"'),
    ('Info_get', 'valuelen', '8'),
    ('Info_get_nthkey', 'n', '0'),
    ('Add_error_code', 'errorclass', 'MPI_ERR_OTHER'),
    ('.*rror_.*', 'errorclass|errorcode', 'MPI_ERR_OTHER'),
    ('Mrecv|Imrecv', 'message', '&no_proc'),
    ('Session_get_nth_pset', 'pset_name', 'text'),
    (ANY, 'pset_name', '"mpi://SELF"'),
    ('Win_free', 'win', '&win'),
    ('Win_(attach|detach)', 'win', 'dynamic'),
    ('Win_attach', 'size', '8'),
    ('Win_.*_attr', '.*keyval', 'win_keyval'),
    ('Win_start|Win_post', 'group', 'group'),
    ('Win_.*', 'assert', '0'),
    ('Win_lock', 'lock_type', 'MPI_LOCK_SHARED'),
    (RMA, 'target_rank', '0'),
    (RMA, 'origin_addr|compare_addr', 'buffer'),
    (RMA, 'result_addr', 'buffer + 2048'),
    (RMA, 'target_disp', '8'),
    ('File_open', 'amode', 'MPI_MODE_RDWR'),
    ('File_open', 'filename', '"/dev/null"'),
    ('File_close', 'fh', '&file'),
    ('File_seek(_shared)?', 'whence', 'MPI_SEEK_SET'),
    ('File_set_view', 'datarep', '"native"'),
    ('File_set_view', 'disp', '0'),
    ('Start|Cancel|Request_free', 'request', '&null_request'),
    (ANY, 'n|nnodes|ndims|indegree|outdegree|maxdims|max.*|count|.*counts?|blocklength', '1'),
    (ANY, 'root|tag|.*tag|color|key|rank|reorder|direction|disp|.*leader|errorcode|flag', '0'),
]
BY_TYPE = {
    'MPI_Comm': 'MPI_COMM_SELF',
    'MPI_Datatype': 'MPI_INT',
    'MPI_Op': 'MPI_SUM',
    'MPI_Group': 'group',
    'MPI_Info': 'MPI_INFO_NULL',
    'MPI_Win': 'win',
    'MPI_File': 'file',
    'MPI_Session': 'session',
    'MPI_Errhandler': 'MPI_ERRORS_RETURN',
    'MPI_Request': 'MPI_REQUEST_NULL',
    'MPI_Comm *': '&new_comm',
    'MPI_Datatype *': '&new_type',
    'MPI_Op *': '&new_op',
    'MPI_Group *': '&new_group',
    'MPI_Info *': '&new_info',
    'MPI_Win *': '&new_win',
    'MPI_File *': '&new_file',
    'MPI_Session *': '&session',
    'MPI_Errhandler *': '&new_handler',
    'MPI_Request *': '&request',
    'MPI_Message *': '&message',
    'MPI_Status *': '&status',
    'const MPI_Status *': '&status',
    'const int *': 'ints',
    'const MPI_Count *': 'counts',
    'const MPI_Aint *': 'aints',
    'const MPI_Datatype *': 'types',
    'const MPI_Request *': '&null_request',
    'int *': 'out_ints',
    'MPI_Count *': 'out_counts',
    'MPI_Offset *': 'out_offsets',
    'MPI_Offset': '8',
    'MPI_Aint *': 'out_aints',
    'int': '1',
    'MPI_Count': '1',
    'MPI_Aint': '8',
    'const void *': 'buffer',
    'void *': 'buffer',
    'char *': 'text',
    'const char *': '"name"',
    'char **': 'NULL',
    'MPI_User_function *': 'op_fn',
    'MPI_User_function_c *': 'op_fn_c',
    'MPI_Comm_copy_attr_function *': 'MPI_COMM_NULL_COPY_FN',
    'MPI_Comm_delete_attr_function *': 'MPI_COMM_NULL_DELETE_FN',
    'MPI_Type_copy_attr_function *': 'MPI_TYPE_NULL_COPY_FN',
    'MPI_Type_delete_attr_function *': 'MPI_TYPE_NULL_DELETE_FN',
    'MPI_Copy_function *': 'MPI_NULL_COPY_FN',
    'MPI_Delete_function *': 'MPI_NULL_DELETE_FN',
    'MPI_Win_copy_attr_function *': 'MPI_WIN_NULL_COPY_FN',
    'MPI_Win_delete_attr_function *': 'MPI_WIN_NULL_DELETE_FN',
    'MPI_Comm_errhandler_function *': 'handler_fn',
    'MPI_Win_errhandler_function *': '(MPI_Win_errhandler_function *)handler_fn',
    'MPI_File_errhandler_function *': '(MPI_File_errhandler_function *)handler_fn',
    'MPI_Session_errhandler_function *': '(MPI_Session_errhandler_function *)handler_fn',
    'MPI_Datarep_conversion_function *': 'MPI_CONVERSION_FN_NULL',
    'MPI_Datarep_conversion_function_c *': 'MPI_CONVERSION_FN_NULL_C',
    'MPI_Datarep_extent_function *': 'extent_fn',
    'MPI_Grequest_query_function *': 'query_fn',
    'MPI_Grequest_free_function *': 'free_fn',
    'MPI_Grequest_cancel_function *': 'cancel_fn',
}
