! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Collectives, communicators, topologies and datatypes with module mpi: handles are INTEGERs, buffers of any
! type, kind and rank.
program coll
  use mpi
  implicit none
  integer :: rank, ranks, ierr, provided
  logical :: over
  external :: check, checked

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  call check(provided >= MPI_THREAD_FUNNELED .and. ierr == MPI_SUCCESS, 'MPI_Init_thread')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call movement()
  call vectors()
  call different_types()
  call reductions()
  call communicators()
  call groups()
  call cartesian()
  call graphs()
  call types()
  call contents()
  call packing()
  call MPI_Finalize(ierr)
  call MPI_Finalized(over, ierr)
  if (.not. over) error stop 'MPI_Finalized is .FALSE. after MPI_Finalize'
  call checked(rank)

contains

  subroutine movement()
    real(8) :: matrix(3, 2), everyone(3, 2, 0:ranks-1)
    integer :: one, list(ranks), i
    character(len=5) :: word
    matrix = real(rank, 8)
    everyone = -1
    call MPI_Allgather(matrix, 6, MPI_DOUBLE_PRECISION, everyone, 6, MPI_DOUBLE_PRECISION, &
      MPI_COMM_WORLD, ierr)
    call check(all([(all(everyone(:, :, i) == real(i, 8)), i = 0, ranks - 1)]), &
      'MPI_Allgather of matrices')
    word = 'none'
    if (rank == ranks - 1) word = 'hello'
    call MPI_Bcast(word, 5, MPI_CHARACTER, ranks - 1, MPI_COMM_WORLD, ierr)
    call check(word == 'hello', 'MPI_Bcast of a string')
    list = 0
    call MPI_Gather(rank, 1, MPI_INTEGER, list, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call check(rank /= 0 .or. all(list == [(i, i = 0, ranks - 1)]), 'MPI_Gather of a scalar')
    if (rank == 0) then
      list = [(10 * i, i = 1, ranks)]
      call MPI_Scatter(list, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      one = list(1)
    else
      call MPI_Scatter(MPI_BOTTOM, 0, MPI_INTEGER, one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    end if
    call check(one == 10 * (rank + 1), 'MPI_Scatter, MPI_IN_PLACE at its root')
    list = [(100 * rank + i, i = 0, ranks - 1)]
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, list, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all([(list(i + 1) == 100 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoall in place')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Barrier')
  end subroutine movement

  ! rank r has r + 1 elements
  subroutine vectors()
    integer :: counts(0:ranks-1), at(0:ranks-1), i, total
    integer, allocatable :: mine(:), everyone(:), wanted(:)
    counts = [(i + 1, i = 0, ranks - 1)]
    at = [(i * (i + 1) / 2, i = 0, ranks - 1)]
    total = ranks * (ranks + 1) / 2
    allocate(mine(rank + 1), everyone(total), wanted(total))
    mine = rank
    do i = 0, ranks - 1
      wanted(at(i) + 1:at(i) + counts(i)) = i
    end do
    everyone = -1
    call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, everyone, counts, at, MPI_INTEGER, &
      MPI_COMM_WORLD, ierr)
    call check(all(everyone == wanted), 'MPI_Allgatherv')
    mine = -1
    call MPI_Scatterv(everyone, counts, at, MPI_INTEGER, mine, rank + 1, MPI_INTEGER, 0, &
      MPI_COMM_WORLD, ierr)
    call check(all(mine == rank), 'MPI_Scatterv')
    everyone = -1
    call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, everyone, counts, at, MPI_INTEGER, 0, &
      MPI_COMM_WORLD, ierr)
    call check(rank /= 0 .or. all(everyone == wanted), 'MPI_Gatherv')
    everyone = 1
    call MPI_Reduce_scatter(everyone, mine, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(all(mine == ranks), 'MPI_Reduce_scatter')
  end subroutine vectors

  ! MPI_Alltoallw with more datatypes than have room on a stack
  subroutine different_types()
    integer :: counts(40), at(40), kinds(40), comm, i
    real(8) :: from(ranks), to(ranks)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    counts = 1
    at = [(8 * (i - 1), i = 1, 40)]
    kinds = MPI_DOUBLE_PRECISION
    from = [(100.0d0 * rank + i, i = 0, ranks - 1)]
    to = -1
    call MPI_Alltoallw(from, counts, at, kinds, to, counts, at, kinds, comm, ierr)
    call check(all([(to(i + 1) == 100.0d0 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoallw')
    call MPI_Comm_free(comm, ierr)
  end subroutine different_types

  subroutine reductions()
    integer :: mine(2), res(2), i
    logical :: l
    complex(8) :: z
    mine = [rank + 1, -rank]
    res = 0
    call MPI_Reduce(mine, res, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    call check(rank /= 0 .or. all(res == [ranks * (ranks + 1) / 2, -ranks * (ranks - 1) / 2]), &
      'MPI_Reduce')
    call MPI_Scan(mine, res, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(res(1) == (rank + 1) * (rank + 2) / 2, 'MPI_Scan')
    res(1) = 0
    call MPI_Exscan(mine, res, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(rank == 0 .or. res(1) == rank * (rank + 1) / 2, 'MPI_Exscan')
    l = rank == 0
    call MPI_Allreduce(MPI_IN_PLACE, l, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
    call check(l, 'a LOGICAL in place')
    z = (1.0d0, -1.0d0)
    call MPI_Allreduce(MPI_IN_PLACE, z, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(abs(z - ranks * (1.0d0, -1.0d0)) < 1d-12, 'a COMPLEX in place')
    call MPI_Reduce_local(mine, res, 0, MPI_INTEGER, MPI_SUM, ierr)
    res = [1, 2]
    call MPI_Reduce_local([10, 20], res, 2, MPI_INTEGER, MPI_SUM, ierr)
    call check(all(res == [11, 22]), 'MPI_Reduce_local of an expression')
    res = [(i, i = 1, 2)]
    call MPI_Reduce_scatter_block([(i, i = 1, ranks)], res, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(res(1) == rank + 1, 'MPI_Reduce_scatter_block')
  end subroutine reductions

  subroutine communicators()
    integer :: comm, half, order, inter, merged, n, r
    logical :: flag
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_compare(comm, MPI_COMM_WORLD, order, ierr)
    call check(order == MPI_CONGRUENT, 'MPI_Comm_dup and MPI_Comm_compare')
    call MPI_Comm_split(comm, mod(rank, 2), -rank, half, ierr)
    call MPI_Comm_size(half, n, ierr)
    call MPI_Comm_rank(half, r, ierr)
    call check(n == (ranks + 1 - mod(rank, 2)) / 2 .and. r == n - 1 - rank / 2, 'MPI_Comm_split')
    call MPI_Comm_test_inter(half, flag, ierr)
    call check(.not. flag, 'MPI_Comm_test_inter of an intracommunicator')
    if (ranks > 1) then
      call MPI_Intercomm_create(half, 0, comm, highest(1 - mod(rank, 2)), 5, inter, ierr)
      call MPI_Comm_test_inter(inter, flag, ierr)
      call MPI_Comm_remote_size(inter, n, ierr)
      call MPI_Intercomm_merge(inter, mod(rank, 2) == 1, merged, ierr)
      call MPI_Comm_rank(merged, r, ierr)
      call check(flag .and. n == (ranks + mod(rank, 2)) / 2, 'MPI_Intercomm_create')
      call check((r < (ranks + 1) / 2) .eqv. mod(rank, 2) == 0, &
        'MPI_Intercomm_merge, high ones after the others')
      call MPI_Comm_free(inter, ierr)
      call MPI_Comm_free(merged, ierr)
    end if
    call MPI_Comm_split(comm, MPI_UNDEFINED, 0, inter, ierr)
    call check(inter == MPI_COMM_NULL, 'MPI_UNDEFINED gives MPI_COMM_NULL')
    call MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, merged, ierr)
    call MPI_Comm_size(merged, n, ierr)
    call check(n == ranks, 'MPI_Comm_split_type')
    call MPI_Comm_free(merged, ierr)
    call MPI_Comm_free(half, ierr)
    call MPI_Comm_free(comm, ierr)
    call check(comm == MPI_COMM_NULL, 'MPI_Comm_free')
  end subroutine communicators

  ! of the ranks of this parity
  integer function highest(parity)
    integer, intent(in) :: parity
    highest = ranks - 1
    if (mod(highest, 2) /= parity) highest = highest - 1
  end function highest

  subroutine groups()
    integer :: world, part, rest, n, there(2), ranges(3, 1), r
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_incl(world, 1, [ranks - 1], part, ierr)
    call MPI_Group_difference(world, part, rest, ierr)
    call MPI_Group_size(rest, n, ierr)
    call check(n == ranks - 1, 'MPI_Group_incl and MPI_Group_difference')
    call MPI_Group_translate_ranks(part, 1, [0], world, there, ierr)
    call check(there(1) == ranks - 1, 'MPI_Group_translate_ranks')
    call MPI_Group_free(rest, ierr)
    ranges(:, 1) = [0, ranks - 1, 2]
    call MPI_Group_range_incl(world, 1, ranges, rest, ierr)
    call MPI_Group_size(rest, n, ierr)
    call MPI_Group_rank(rest, r, ierr)
    call check(n == (ranks + 1) / 2 .and. r == merge(rank / 2, MPI_UNDEFINED, mod(rank, 2) == 0), &
      'MPI_Group_range_incl')
    call MPI_Group_free(rest, ierr)
    call MPI_Group_free(part, ierr)
    call MPI_Group_free(world, ierr)
    call check(world == MPI_GROUP_NULL, 'MPI_Group_free')
  end subroutine groups

  subroutine cartesian()
    integer :: comm, line, dims(2), n(2), place(2), below, above, kind, r
    logical :: around(2)
    dims = 0
    call MPI_Dims_create(ranks, 2, dims, ierr)
    call check(product(dims) == ranks, 'MPI_Dims_create')
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., comm, ierr)
    call MPI_Topo_test(comm, kind, ierr)
    call check(kind == MPI_CART, 'MPI_Topo_test')
    call MPI_Cart_get(comm, 2, n, around, place, ierr)
    call check(all(n == dims) .and. around(1) .and. .not. around(2), &
      'MPI_Cart_create and MPI_Cart_get with LOGICALs')
    call MPI_Cart_rank(comm, place, r, ierr)
    call check(r == rank, 'MPI_Cart_rank')
    call MPI_Cart_coords(comm, rank, 2, n, ierr)
    call check(all(n == place), 'MPI_Cart_coords')
    call MPI_Cart_shift(comm, 1, 1, below, above, ierr)
    call check((above == MPI_PROC_NULL) .eqv. place(2) == dims(2) - 1, 'MPI_Cart_shift at the edge')
    call MPI_Cart_shift(comm, 0, 1, below, above, ierr)
    call check(below /= MPI_PROC_NULL .and. above /= MPI_PROC_NULL, 'MPI_Cart_shift around')
    call MPI_Cart_sub(comm, [.true., .false.], line, ierr)
    call MPI_Comm_size(line, r, ierr)
    call check(r == dims(1), 'MPI_Cart_sub')
    call MPI_Comm_free(line, ierr)
    call MPI_Comm_free(comm, ierr)
  end subroutine cartesian

  subroutine graphs()
    integer :: comm, ends(ranks), edges(2 * ranks), i, n, m, next, prev
    integer :: sources(2), destinations(2), w(2), v(2)
    logical :: weighted
    next = mod(rank + 1, ranks)
    prev = mod(rank + ranks - 1, ranks)
    ends = [(2 * i, i = 1, ranks)]
    edges = [(mod(i + ranks - 1, ranks), mod(i + 1, ranks), i = 0, ranks - 1)]
    call MPI_Graph_create(MPI_COMM_WORLD, ranks, ends, edges, .false., comm, ierr)
    call MPI_Graphdims_get(comm, n, m, ierr)
    call check(n == ranks .and. m == 2 * ranks, 'MPI_Graph_create')
    call MPI_Graph_neighbors(comm, rank, 2, sources, ierr)
    call check(all(sources == [prev, next]), 'MPI_Graph_neighbors')
    call MPI_Comm_free(comm, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [prev], MPI_UNWEIGHTED, 1, [next], &
      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., comm, ierr)
    call MPI_Dist_graph_neighbors_count(comm, n, m, weighted, ierr)
    call check(n == 1 .and. m == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
    call MPI_Dist_graph_neighbors(comm, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED, ierr)
    call check(sources(1) == prev .and. destinations(1) == next, 'MPI_Dist_graph_neighbors')
    call MPI_Comm_free(comm, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [prev], [3], 1, [next], [4], &
      MPI_INFO_NULL, .false., comm, ierr)
    call MPI_Dist_graph_neighbors_count(comm, n, m, weighted, ierr)
    call MPI_Dist_graph_neighbors(comm, 1, sources, w, 1, destinations, v, ierr)
    call check(weighted .and. w(1) == 3 .and. v(1) == 4, 'weights')
    call MPI_Comm_free(comm, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, [0], MPI_WEIGHTS_EMPTY, 0, [0], &
      MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., comm, ierr)
    call MPI_Dist_graph_neighbors_count(comm, n, m, weighted, ierr)
    call check(n == 0 .and. m == 0 .and. weighted, 'MPI_WEIGHTS_EMPTY')
    call MPI_Comm_free(comm, ierr)
  end subroutine graphs

  subroutine types()
    integer :: vector, part, body, n, status(MPI_STATUS_SIZE), res(4, 4), from(4, 4), i
    integer(MPI_ADDRESS_KIND) :: lb, extent, at(2)
    integer(MPI_COUNT_KIND) :: big
    type :: pair
      sequence
      real(8) :: x
      integer :: k(2)
    end type pair
    type(pair) :: one, two
    from = reshape([(i, i = 1, 16)], [4, 4])
    res = 0
    call MPI_Type_vector(4, 1, 4, MPI_INTEGER, vector, ierr)
    call MPI_Type_commit(vector, ierr)
    call MPI_Sendrecv(from(2, 1), 1, vector, 0, 1, res(1, 3), 4, MPI_INTEGER, 0, 1, MPI_COMM_SELF, &
      status, ierr)
    call check(all(res(:, 3) == from(2, :)), 'a row of a matrix becomes a column')
    call MPI_Type_create_subarray(2, [4, 4], [2, 2], [1, 2], MPI_ORDER_FORTRAN, MPI_INTEGER, part, ierr)
    call MPI_Type_commit(part, ierr)
    res = 0
    call MPI_Sendrecv(from, 1, part, 0, 1, res, 1, part, 0, 1, MPI_COMM_SELF, status, ierr)
    call check(all(res(2:3, 3:4) == from(2:3, 3:4)) .and. sum(res) == sum(from(2:3, 3:4)), &
      'MPI_Type_create_subarray in Fortran''s order')
    call MPI_Get_address(one%x, at(1), ierr)
    call MPI_Get_address(one%k, at(2), ierr)
    at = MPI_Aint_diff(at(2), at(1)) * [0_MPI_ADDRESS_KIND, 1_MPI_ADDRESS_KIND]
    call MPI_Type_create_struct(2, [1, 2], at, [MPI_DOUBLE_PRECISION, MPI_INTEGER], body, ierr)
    call MPI_Type_commit(body, ierr)
    call MPI_Type_get_extent(body, lb, extent, ierr)
    call check(lb == 0 .and. extent == 16, 'MPI_Type_create_struct and MPI_Type_get_extent')
    one = pair(1.5d0, [7, 8])
    two = pair(0d0, [0, 0])
    call MPI_Sendrecv(one, 1, body, 0, 1, two, 1, body, 0, 1, MPI_COMM_SELF, status, ierr)
    call check(two%x == 1.5d0 .and. all(two%k == [7, 8]), 'a derived type')
    call MPI_Type_size_x(body, big, ierr)
    call check(big == 16, 'MPI_Type_size_x')
    call MPI_Get_elements(status, body, n, ierr)
    call check(n == 3, 'MPI_Get_elements')
    call MPI_Type_free(body, ierr)
    call MPI_Type_free(part, ierr)
    call MPI_Type_free(vector, ierr)
  end subroutine types

  subroutine contents()
    integer :: a, b, ni, na, nd, combiner, ints(9), parts(9)
    integer(MPI_ADDRESS_KIND) :: addresses(9)
    call MPI_Type_contiguous(3, MPI_REAL, a, ierr)
    call MPI_Type_create_struct(2, [1, 2], [0_MPI_ADDRESS_KIND, 12_MPI_ADDRESS_KIND], [a, MPI_INTEGER], b, ierr)
    call MPI_Type_get_envelope(b, ni, na, nd, combiner, ierr)
    call check(ni == 3 .and. na == 2 .and. nd == 2 .and. combiner == MPI_COMBINER_STRUCT, &
      'MPI_Type_get_envelope')
    parts = -7
    call MPI_Type_get_contents(b, 9, 9, 9, ints, addresses, parts, ierr)
    call check(all(ints(:3) == [2, 1, 2]) .and. addresses(2) == 12 .and. parts(2) == MPI_INTEGER, &
      'MPI_Type_get_contents')
    call check(all(parts(3:) == -7), 'which leaves alone what it does not need')
    call MPI_Type_get_envelope(parts(1), ni, na, nd, combiner, ierr)
    call check(combiner == MPI_COMBINER_CONTIGUOUS, 'its datatypes are datatypes')
    call MPI_Type_free(parts(1), ierr)
    call MPI_Type_free(a, ierr)
    call MPI_Type_free(b, ierr)
  end subroutine contents

  subroutine packing()
    character :: box(100)
    integer :: at, n, k
    real :: x
    integer(MPI_ADDRESS_KIND) :: where, room
    at = 0
    call MPI_Pack(17, 1, MPI_INTEGER, box, 100, at, MPI_COMM_WORLD, ierr)
    call MPI_Pack(2.5, 1, MPI_REAL, box, 100, at, MPI_COMM_WORLD, ierr)
    call MPI_Pack_size(1, MPI_INTEGER, MPI_COMM_WORLD, n, ierr)
    call check(at == 8 .and. n >= 4, 'MPI_Pack and MPI_Pack_size')
    at = 0
    call MPI_Unpack(box, 100, at, k, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call MPI_Unpack(box, 100, at, x, 1, MPI_REAL, MPI_COMM_WORLD, ierr)
    call check(k == 17 .and. x == 2.5, 'MPI_Unpack')
    where = 0
    room = 100
    call MPI_Pack_external('external32', 258, 1, MPI_INTEGER, box, room, where, ierr)
    call check(where == 4 .and. ichar(box(3)) == 1 .and. ichar(box(4)) == 2, &
      'MPI_Pack_external, its name a CHARACTER')
    call MPI_Pack_external_size('external32  ', 3, MPI_INTEGER, room, ierr)
    call check(room == 12, 'MPI_Pack_external_size, with blanks at its end')
  end subroutine packing

end program coll
