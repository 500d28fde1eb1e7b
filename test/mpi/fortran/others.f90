! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Module mpi: groups and communicators made of them, datatypes and what is told of them, topologies, statuses, and windows
! that are waited for and flushed in all ways.
program others
  use mpi
  implicit none
  integer :: rank, ranks, left, right, ierr
  integer(MPI_ADDRESS_KIND), parameter :: four = storage_size(0) / 8
  external :: check, checked

  call begun(.false.)
  call MPI_Init(ierr)
  call begun(.true.)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = modulo(rank - 1, ranks)
  right = modulo(rank + 1, ranks)
  call groups()
  call communicators()
  call duplicates()
  call remote()
  call types()
  call extents()
  call contents()
  call arrays()
  call topologies()
  call statuses()
  call codes()
  call windows()
  call windows_told()
  call MPI_Pcontrol(1)
  call MPI_Finalize(ierr)
  call checked(rank)

contains

  subroutine begun(expected)
    logical, intent(in) :: expected
    logical :: flag
    integer :: provided
    flag = .not. expected
    call MPI_Initialized(flag, ierr)
    if (flag .neqv. expected) error stop 'MPI_Initialized is wrong'
    if (.not. expected) return
    call MPI_Query_thread(provided, ierr)
    call MPI_Is_thread_main(flag, ierr)
    call check(provided >= MPI_THREAD_SINGLE .and. flag, 'MPI_Query_thread and MPI_Is_thread_main')
  end subroutine begun

  subroutine groups()
    integer :: whole, low, high, made, result, n, ranges(3, 1)
    call MPI_Comm_group(MPI_COMM_WORLD, whole, ierr)
    call MPI_Group_excl(whole, 1, [0], high, ierr)
    call MPI_Group_size(high, n, ierr)
    call check(n == ranks - 1, 'MPI_Group_excl')
    call MPI_Group_incl(whole, 1, [0], low, ierr)
    call MPI_Group_union(low, high, made, ierr)
    call MPI_Group_compare(made, whole, result, ierr)
    call check(result == MPI_IDENT, 'MPI_Group_union and MPI_Group_compare')
    call MPI_Group_free(made, ierr)
    call MPI_Group_intersection(whole, low, made, ierr)
    call MPI_Group_compare(made, low, result, ierr)
    call check(result == MPI_IDENT, 'MPI_Group_intersection')
    call MPI_Group_free(made, ierr)
    ranges(:, 1) = [0, ranks - 1, 1]
    call MPI_Group_range_excl(whole, 1, ranges, made, ierr)
    call check(made == MPI_GROUP_EMPTY, 'MPI_Group_range_excl')
    if (high /= MPI_GROUP_EMPTY) call MPI_Group_free(high, ierr)
    call MPI_Group_free(low, ierr)
    call MPI_Group_free(whole, ierr)
  end subroutine groups

  ! Of rank 0 and of the last one.
  subroutine communicators()
    integer :: whole, ends, comm, n, members(2), among
    members = [0, ranks - 1]
    among = min(2, ranks)
    call MPI_Comm_group(MPI_COMM_WORLD, whole, ierr)
    call MPI_Group_incl(whole, among, members, ends, ierr)
    call MPI_Comm_create(MPI_COMM_WORLD, ends, comm, ierr)
    n = among
    if (any(members == rank)) call MPI_Comm_size(comm, n, ierr)
    call check(n == among .and. (any(members == rank) .neqv. comm == MPI_COMM_NULL), 'MPI_Comm_create')
    if (comm /= MPI_COMM_NULL) call MPI_Comm_disconnect(comm, ierr)
    call check(comm == MPI_COMM_NULL, 'MPI_Comm_disconnect')
    n = among
    if (any(members == rank)) then
      call MPI_Comm_create_group(MPI_COMM_WORLD, ends, 5, comm, ierr)
      call MPI_Comm_size(comm, n, ierr)
      call MPI_Comm_free(comm, ierr)
    end if
    call check(n == among, 'MPI_Comm_create_group')
    call MPI_Group_free(ends, ierr)
    call MPI_Group_free(whole, ierr)
    call MPI_Comm_get_parent(comm, ierr)
    call check(comm == MPI_COMM_NULL, 'MPI_Comm_get_parent of who was not spawned')
  end subroutine communicators

  subroutine duplicates()
    integer :: info, other, comm, request, k, n, total
    logical :: flag
    character(len=20) :: value
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, 'mpi_assert_no_any_tag', 'true', ierr)
    call MPI_Info_dup(info, other, ierr)
    call MPI_Info_get_nkeys(other, n, ierr)
    value = ''
    call MPI_Info_get(other, 'mpi_assert_no_any_tag', 20, value, flag, ierr)
    call check(n == 1 .and. flag .and. value == 'true', 'MPI_Info_dup')
    call MPI_Info_free(other, ierr)
    do k = 1, 3
      if (k == 1) call MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, comm, ierr)
      if (k == 2) call MPI_Comm_idup(MPI_COMM_WORLD, comm, request, ierr)
      if (k == 3) call MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, comm, request, ierr)
      if (k > 1) call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
      total = 0
      call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
      call check(total == ranks, trim(merge('MPI_Comm_dup_with_info', 'MPI_Comm_idup, of all ', k == 1)))
      call MPI_Comm_set_info(comm, info, ierr)
      call MPI_Comm_get_info(comm, other, ierr)
      call check(other /= MPI_INFO_NULL, 'MPI_Comm_get_info')
      call MPI_Info_free(other, ierr)
      call MPI_Comm_free(comm, ierr)
    end do
    call MPI_Info_free(info, ierr)
  end subroutine duplicates

  ! Rank 0 and the others.
  subroutine remote()
    integer :: part, comm, group, n
    if (ranks == 1) return
    call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), 0, part, ierr)
    call MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, merge(1, 0, rank == 0), 6, comm, ierr)
    call MPI_Comm_remote_group(comm, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call check(n == merge(ranks - 1, 1, rank == 0), 'MPI_Comm_remote_group')
    call MPI_Group_free(group, ierr)
    call MPI_Comm_free(comm, ierr)
    call MPI_Comm_free(part, ierr)
  end subroutine remote

  ! Integers 1, 2 and 5, 6 of eight, by each way to say that.
  subroutine types()
    integer :: from(8), to(4), type, k, pairs
    character(len=30), parameter :: names(5) = [character(len=30) :: 'MPI_Type_create_hvector', 'MPI_Type_indexed', &
      'MPI_Type_create_indexed_block', 'MPI_Type_create_hindexed_block', 'MPI_Type_create_resized']
    from = [(10 * k + rank, k = 1, 8)]
    call MPI_Type_contiguous(2, MPI_INTEGER, pairs, ierr)
    do k = 1, 5
      select case (k)
      case (1)
        call MPI_Type_create_hvector(2, 2, 4 * four, MPI_INTEGER, type, ierr)
      case (2)
        call MPI_Type_indexed(2, [2, 2], [0, 4], MPI_INTEGER, type, ierr)
      case (3)
        call MPI_Type_create_indexed_block(2, 2, [0, 4], MPI_INTEGER, type, ierr)
      case (4)
        call MPI_Type_create_hindexed_block(2, 2, [0_MPI_ADDRESS_KIND, 4 * four], MPI_INTEGER, type, ierr)
      case (5)
        call MPI_Type_create_resized(pairs, 0_MPI_ADDRESS_KIND, 4 * four, type, ierr)
      end select
      call MPI_Type_commit(type, ierr)
      to = -1
      call MPI_Sendrecv(from, merge(2, 1, k == 5), type, right, 7, to, 4, MPI_INTEGER, left, 7, MPI_COMM_WORLD, &
        MPI_STATUS_IGNORE, ierr)
      call check(all(to == [10, 20, 50, 60] + left), trim(names(k)))
      call MPI_Type_free(type, ierr)
    end do
    call MPI_Type_free(pairs, ierr)
  end subroutine types

  subroutine extents()
    integer :: type, n
    integer(MPI_ADDRESS_KIND) :: lower, extent
    integer(MPI_COUNT_KIND) :: low, long
    character(len=MPI_MAX_OBJECT_NAME) :: name
    call MPI_Type_create_resized(MPI_INTEGER, -four, 5 * four, type, ierr)
    call MPI_Type_get_true_extent(type, lower, extent, ierr)
    call check(lower == 0 .and. extent == four, 'MPI_Type_get_true_extent')
    call MPI_Type_get_extent_x(type, low, long, ierr)
    call check(low == -four .and. long == 5 * four, 'MPI_Type_get_extent_x')
    call MPI_Type_get_true_extent_x(type, low, long, ierr)
    call check(low == 0 .and. long == four, 'MPI_Type_get_true_extent_x')
    call MPI_Type_set_name(type, 'one of five', ierr)
    call MPI_Type_get_name(type, name, n, ierr)
    call check(name == 'one of five' .and. n == 11, 'MPI_Type_set_name')
    call MPI_Type_free(type, ierr)
    call MPI_Type_get_value_index(MPI_INTEGER, MPI_INTEGER, type, ierr)
    call check(ierr == MPI_SUCCESS .and. (type == MPI_2INTEGER .or. type == MPI_DATATYPE_NULL), &
      'MPI_Type_get_value_index')
  end subroutine extents

  subroutine contents()
    integer :: type, combiner, integers, addresses, types, i(3), t(1)
    integer(MPI_ADDRESS_KIND) :: a(1)
    call MPI_Type_create_hvector(3, 2, 40_MPI_ADDRESS_KIND, MPI_REAL, type, ierr)
    call MPI_Type_get_envelope(type, integers, addresses, types, combiner, ierr)
    call MPI_Type_get_contents(type, integers, addresses, types, i, a, t, ierr)
    call check(combiner == MPI_COMBINER_HVECTOR .and. all(i(:2) == [3, 2]) .and. a(1) == 40 .and. t(1) == MPI_REAL, &
      'MPI_Type_get_contents')
    call MPI_Type_free(type, ierr)
  end subroutine contents

  ! Each rank's part of an array, one behind the other; and the order in which packed bytes are for all machines.
  subroutine arrays()
    integer :: whole(2, 0:ranks-1), part(2), type, big(2), status(MPI_STATUS_SIZE), k
    integer(MPI_ADDRESS_KIND) :: at
    integer(MPI_COUNT_KIND) :: elements
    character(len=8) :: packed
    call MPI_Type_create_darray(ranks, rank, 1, [2 * ranks], [MPI_DISTRIBUTE_BLOCK], [MPI_DISTRIBUTE_DFLT_DARG], &
      [ranks], MPI_ORDER_FORTRAN, MPI_INTEGER, type, ierr)
    call MPI_Type_commit(type, ierr)
    whole(1, :) = [(10 * k, k = 0, ranks - 1)]
    whole(2, :) = whole(1, :) + 1
    call MPI_Sendrecv(whole, 1, type, right, 8, part, 2, MPI_INTEGER, left, 8, MPI_COMM_WORLD, status, ierr)
    call check(all(part == [10 * left, 10 * left + 1]), 'MPI_Type_create_darray')
    call MPI_Get_elements_x(status, MPI_INTEGER, elements, ierr)
    call check(elements == 2, 'MPI_Get_elements_x')
    call MPI_Type_free(type, ierr)
    at = 0
    call MPI_Pack_external('external32', [258, -2], 2, MPI_INTEGER, packed, 8_MPI_ADDRESS_KIND, at, ierr)
    call check(packed == char(0) // char(0) // char(1) // char(2) // repeat(char(255), 3) // char(254), &
      'MPI_Pack_external')
    at = 0
    call MPI_Unpack_external('external32', packed, 8_MPI_ADDRESS_KIND, at, big, 2, MPI_INTEGER, ierr)
    call check(all(big == [258, -2]) .and. at == 8, 'MPI_Unpack_external')
  end subroutine arrays

  ! A ring, as a graph in which each has its neighbour behind it.
  subroutine topologies()
    integer :: comm, n, index(ranks), edges(ranks), k, place
    index = [(k, k = 1, ranks)]
    edges = [(modulo(k, ranks), k = 1, ranks)]
    call MPI_Graph_map(MPI_COMM_WORLD, ranks, index, edges, place, ierr)
    call check(place >= 0 .and. place < ranks, 'MPI_Graph_map')
    call MPI_Cart_map(MPI_COMM_WORLD, 1, [ranks], [.true.], place, ierr)
    call check(place >= 0 .and. place < ranks, 'MPI_Cart_map')
    call MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, .false., comm, ierr)
    index = -1
    edges = -1
    call MPI_Graph_get(comm, ranks, ranks, index, edges, ierr)
    call check(all(index == [(k, k = 1, ranks)]) .and. all(edges == [(modulo(k, ranks), k = 1, ranks)]), &
      'MPI_Graph_get')
    call MPI_Graph_neighbors_count(comm, rank, n, ierr)
    call check(n == 1, 'MPI_Graph_neighbors_count')
    call MPI_Comm_free(comm, ierr)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, [ranks, 1], [.true., .false.], .false., comm, ierr)
    call MPI_Cartdim_get(comm, n, ierr)
    call check(n == 2, 'MPI_Cartdim_get')
    call MPI_Comm_free(comm, ierr)
  end subroutine topologies

  subroutine statuses()
    integer :: status(MPI_STATUS_SIZE), source, tag, error
    call MPI_Status_set_source(status, 3, ierr)
    call MPI_Status_set_tag(status, 4, ierr)
    call MPI_Status_set_error(status, MPI_ERR_TAG, ierr)
    call MPI_Status_get_source(status, source, ierr)
    call MPI_Status_get_tag(status, tag, ierr)
    call MPI_Status_get_error(status, error, ierr)
    call check(all([source, tag, error] == [3, 4, MPI_ERR_TAG]), 'parts of a status are set, and told')
    call check(all([status(MPI_SOURCE), status(MPI_TAG), status(MPI_ERROR)] == [3, 4, MPI_ERR_TAG]), &
      'and are where they are looked for')
  end subroutine statuses

  subroutine codes()
    integer :: class, code
    call MPI_Add_error_class(class, ierr)
    call MPI_Add_error_code(class, code, ierr)
    call MPI_Add_error_string(code, 'no good', ierr)
    call MPI_Remove_error_string(code, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Remove_error_string')
    call MPI_Remove_error_code(code, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Remove_error_code')
    call MPI_Remove_error_class(class, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Remove_error_class')
  end subroutine codes

  ! Each puts to the next one.
  subroutine windows()
    integer, asynchronous :: memory(4), mine(4)
    integer :: win, group, next, before
    memory = -1
    mine = [1, 2, 3, 4] + 10 * rank
    call MPI_Win_create(memory, 4 * four, int(four), MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
    call MPI_Group_incl(group, 1, [right], next, ierr)
    call MPI_Group_incl(group, 1, [left], before, ierr)
    call MPI_Win_post(before, 0, win, ierr)
    call MPI_Win_start(next, 0, win, ierr)
    call MPI_Put(mine, 1, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_complete(win, ierr)
    call MPI_Win_wait(win, ierr)
    call check(memory(1) == 1 + 10 * left, 'MPI_Win_wait')
    call MPI_Win_lock_all(0, win, ierr)
    call MPI_Put(mine(2), 1, MPI_INTEGER, right, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_flush_local(right, win, ierr)
    mine(2) = -2
    call MPI_Put(mine(3), 1, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_flush_local_all(win, ierr)
    mine(3) = -3
    call MPI_Put(mine(4), 1, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_flush_all(win, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_sync(win, ierr)
    call check(all(memory == [1, 2, 3, 4] + 10 * left), &
      'MPI_Win_flush_local, MPI_Win_flush_local_all and MPI_Win_flush_all')
    call MPI_Win_unlock_all(win, ierr)
    call MPI_Group_free(next, ierr)
    call MPI_Group_free(before, ierr)
    call MPI_Group_free(group, ierr)
    call MPI_Win_free(win, ierr)
  end subroutine windows

  subroutine windows_told()
    integer :: memory(1), win, info, handler, keyval, n
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    memory = 0
    call MPI_Win_create(memory, four, int(four), MPI_INFO_NULL, MPI_COMM_SELF, win, ierr)
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, 'same_size', 'true', ierr)
    call MPI_Win_set_info(win, info, ierr)
    call MPI_Info_free(info, ierr)
    call MPI_Win_get_info(win, info, ierr)
    call MPI_Info_get_nkeys(info, n, ierr)
    call check(n > 0, 'MPI_Win_set_info and MPI_Win_get_info')
    call MPI_Info_free(info, ierr)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
    call MPI_Win_get_errhandler(win, handler, ierr)
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER, ierr)
    call check(handler == MPI_ERRORS_RETURN .and. ierr == MPI_SUCCESS, &
      'MPI_Win_get_errhandler and MPI_Win_call_errhandler')
    call MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_set_attr(win, keyval, 9_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_delete_attr(win, keyval, ierr)
    call MPI_Win_get_attr(win, keyval, value, flag, ierr)
    call check(.not. flag, 'MPI_Win_delete_attr')
    call MPI_Win_free_keyval(keyval, ierr)
    call MPI_Win_free(win, ierr)
  end subroutine windows_told
end program others
