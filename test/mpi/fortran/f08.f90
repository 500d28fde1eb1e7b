! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Module mpi_f08: handles and statuses are types, IERROR may be left out, callbacks have interfaces.
module f08_callbacks
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copies = 0, deletes = 0, errors = 0, freed = 0
  type(MPI_Comm) :: last_comm
contains
  subroutine add(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype == MPI_INTEGER) b = a + b
  end subroutine add

  subroutine copy_it(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    copies = copies + comm_keyval * 0 + 1
    attribute_val_out = 2 * attribute_val_in + extra_state
    flag = oldcomm == MPI_COMM_SELF
    ierror = MPI_SUCCESS
  end subroutine copy_it

  subroutine delete_it(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + 1
    last_comm = comm
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, comm_keyval /= MPI_KEYVAL_INVALID .and. &
      attribute_val + extra_state /= 0)
  end subroutine delete_it

  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    errors = errors + 1
    last_comm = comm
    if (error_code == MPI_SUCCESS) errors = -1000
  end subroutine on_error

  subroutine query_it(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_BYTE, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 8
    status%MPI_TAG = 9
    ierror = MPI_SUCCESS
  end subroutine query_it

  subroutine free_it(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine free_it

  subroutine cancel_it(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, complete .or. extra_state > 0)
  end subroutine cancel_it
end module f08_callbacks

program f08
  use mpi_f08
  use f08_callbacks
  implicit none
  integer :: rank, ranks, next, prev
  external :: check, checked

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  prev = modulo(rank - 1, ranks)
  call handles()
  call messages()
  call statuses()
  call many()
  call buffers()
  call collectives()
  call operations()
  call attributes()
  call handlers()
  call generalized()
  call topologies()
  call addresses()
  call names()
  call unbuilt()
  call twins()
  call MPI_Finalize()
  call checked(rank)

contains

  subroutine handles()
    type(MPI_Comm) :: comm
    type(MPI_Group) :: group
    integer :: ierr
    ierr = -5
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call check(ierr == MPI_SUCCESS, 'IERROR is set where it is given')
    call check(comm /= MPI_COMM_WORLD .and. comm /= MPI_COMM_NULL .and. .not. comm == MPI_COMM_SELF, &
      'handles are compared')
    call check(MPI_COMM_WORLD%MPI_VAL == 257, 'MPI_COMM_WORLD is 257 in all languages')
    call MPI_Comm_group(comm, group)
    call MPI_Group_free(group)
    call MPI_Comm_free(comm)
    call check(group == MPI_GROUP_NULL .and. comm == MPI_COMM_NULL, 'handles become null')
  end subroutine handles

  subroutine messages()
    real(8) :: a(3, 2), b(3, 2)
    character(len=6) :: word
    type(MPI_Status) :: s
    type(MPI_Request) :: r
    type(MPI_Message) :: m
    logical :: flag
    integer :: n
    type :: pair
      integer :: k
      real :: x
    end type pair
    type(pair) :: p
    a = rank
    b = -1
    call MPI_Sendrecv(a, 6, MPI_DOUBLE_PRECISION, next, 4, b, 6, MPI_DOUBLE_PRECISION, prev, 4, &
      MPI_COMM_WORLD, s)
    call check(all(b == prev) .and. s%MPI_SOURCE == prev .and. s%MPI_TAG == 4, 'a matrix, and its status')
    call MPI_Get_count(s, MPI_DOUBLE_PRECISION, n)
    call check(n == 6, 'MPI_Get_count')
    call MPI_Isend('hello!', 6, MPI_CHARACTER, next, 5, MPI_COMM_WORLD, r)
    call MPI_Mprobe(prev, 5, MPI_COMM_WORLD, m, s)
    call MPI_Mrecv(word, 6, MPI_CHARACTER, m, MPI_STATUS_IGNORE)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(word == 'hello!' .and. m == MPI_MESSAGE_NULL .and. r == MPI_REQUEST_NULL, &
      'a string, received by its message')
    p = pair(0, 0.0)
    call MPI_Sendrecv(pair(rank, 2.0), 8, MPI_BYTE, next, 6, p, 8, MPI_BYTE, prev, 6, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(p%k == prev .and. p%x == 2.0, 'a type of the program')
    call MPI_Sendrecv(b(2, 2), 1, MPI_DOUBLE_PRECISION, next, 7, b(1, 1), 1, MPI_DOUBLE_PRECISION, prev, 7, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(b(1, 1) == modulo(rank - 2, ranks), 'an element of an array')
    call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, flag, s)
    call check(.not. flag, 'MPI_Iprobe')
  end subroutine messages

  subroutine statuses()
    type(MPI_Status) :: s, t
    integer :: f(MPI_STATUS_SIZE), n
    s%MPI_SOURCE = 1
    s%MPI_TAG = 2
    s%MPI_ERROR = 3
    call MPI_Status_set_elements(s, MPI_INTEGER, 7)
    call MPI_Status_set_cancelled(s, .false.)
    call MPI_Status_f082f(s, f)
    call check(f(MPI_SOURCE) == 1 .and. f(MPI_TAG) == 2 .and. f(MPI_ERROR) == 3, 'MPI_Status_f082f')
    call MPI_Status_f2f08(f, t)
    call MPI_Get_elements(t, MPI_INTEGER, n)
    call check(t%MPI_SOURCE == 1 .and. n == 7, 'MPI_Status_f2f08')
    t = s
    call check(t%MPI_TAG == 2, 'statuses are assigned')
  end subroutine statuses

  subroutine many()
    integer, parameter :: n = 40
    type(MPI_Request) :: r(2 * n)
    type(MPI_Status) :: s(2 * n), one
    integer :: a(n), b(n)
    integer :: i, k
    logical :: flag, right
    a = [(100 * rank + i, i = 1, n)]
    do i = 1, n
      call MPI_Irecv(b(i), 1, MPI_INTEGER, prev, i, MPI_COMM_WORLD, r(i))
      call MPI_Isend(a(i), 1, MPI_INTEGER, next, i, MPI_COMM_WORLD, r(n + i))
    end do
    call MPI_Waitall(2 * n, r, s)
    call check(all(b == [(100 * prev + i, i = 1, n)]) .and. all(s(1:n)%MPI_TAG == [(i, i = 1, n)]) .and. &
      all(r == MPI_REQUEST_NULL), 'MPI_Waitall')
    b = 0
    do i = 1, n
      call MPI_Irecv(b(i), 1, MPI_INTEGER, prev, i, MPI_COMM_WORLD, r(i))
    end do
    do i = n, 1, -1
      call MPI_Send(a(i), 1, MPI_INTEGER, next, i, MPI_COMM_WORLD)
    end do
    right = .true.
    do i = 1, n
      call MPI_Waitany(n, r, k, one)
      right = right .and. one%MPI_TAG == k
    end do
    call check(right, 'MPI_Waitany counts from 1')
    call check(all(b == [(100 * prev + i, i = 1, n)]), 'the compiler knows that buffers changed')
    call MPI_F_sync_reg(b)
    call MPI_Testall(n, r, flag, MPI_STATUSES_IGNORE)
    call check(flag, 'MPI_Testall of null requests')
  end subroutine many

  subroutine buffers()
    use, intrinsic :: iso_c_binding
    character, target :: space(5000)
    type(c_ptr) :: back
    integer :: n, got
    call MPI_Buffer_attach(space, 5000)
    call MPI_Bsend(rank, 1, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    call MPI_Recv(got, 1, MPI_INTEGER, prev, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(back, n)
    call check(got == prev .and. n == 5000 .and. c_associated(back, c_loc(space)), &
      'MPI_Buffer_detach gives the address back')
  end subroutine buffers

  subroutine collectives()
    integer :: list(0:ranks-1), i, total
    logical :: l
    type(MPI_Datatype) :: types(0:ranks-1)
    integer :: ones(0:ranks-1), at(0:ranks-1), to(0:ranks-1)
    call MPI_Allgather(rank, 1, MPI_INTEGER, list, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(list == [(i, i = 0, ranks - 1)]), 'MPI_Allgather')
    list = -1
    list(rank) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, list, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(list == [(i, i = 0, ranks - 1)]), 'MPI_IN_PLACE')
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(total == ranks * (ranks - 1) / 2, 'MPI_Allreduce')
    l = rank == ranks - 1
    call MPI_Bcast(l, 1, MPI_LOGICAL, ranks - 1, MPI_COMM_WORLD)
    call check(l, 'MPI_Bcast of a LOGICAL')
    types = MPI_INTEGER
    ones = 1
    at = [(4 * i, i = 0, ranks - 1)]
    list = [(100 * rank + i, i = 0, ranks - 1)]
    call MPI_Alltoallw(list, ones, at, types, to, ones, at, types, MPI_COMM_WORLD)
    call check(all(to == [(100 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoallw with an array of datatypes')
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD)
    else
      call MPI_Reduce(total, MPI_BOTTOM, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD)
    end if
    call check(total == ranks * (ranks - 1) / 2, 'MPI_Reduce in place')
  end subroutine collectives

  subroutine operations()
    type(MPI_Op) :: op
    logical :: flag
    integer :: a(3), b(3)
    call MPI_Op_create(add, .true., op)
    call MPI_Op_commutative(op, flag)
    a = [1, rank, 2]
    call MPI_Allreduce(a, b, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(flag .and. all(b == [ranks, ranks * (ranks - 1) / 2, 2 * ranks]), 'MPI_Op_create')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'MPI_Op_free')
  end subroutine operations

  subroutine attributes()
    type(MPI_Comm) :: dup
    integer :: key
    integer(MPI_ADDRESS_KIND) :: v
    logical :: flag
    call MPI_Comm_create_keyval(copy_it, delete_it, key, 5_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, 100_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, dup)
    call MPI_Comm_get_attr(dup, key, v, flag)
    call check(flag .and. v == 205 .and. copies == 1, 'attributes are copied by a procedure')
    call MPI_Comm_free(dup)
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key)
    call check(deletes == 2 .and. last_comm == MPI_COMM_SELF, 'and deleted by one')
    call MPI_Comm_free_keyval(key)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, -1_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, dup)
    call MPI_Comm_get_attr(dup, key, v, flag)
    call check(flag .and. v == -1, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(dup)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, v, flag)
    call check(.not. flag .or. v >= ranks, 'MPI_UNIVERSE_SIZE is a value')
  end subroutine attributes

  subroutine handlers()
    type(MPI_Errhandler) :: h, g
    integer :: ierr, class
    call MPI_Comm_create_errhandler(on_error, h)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, h)
    call MPI_Comm_get_errhandler(MPI_COMM_SELF, g)
    call MPI_Send(rank, 1, MPI_INTEGER, 3, 0, MPI_COMM_SELF, ierr)
    call MPI_Error_class(ierr, class)
    call check(g == h .and. errors == 1 .and. last_comm == MPI_COMM_SELF .and. class == MPI_ERR_RANK, &
      'an error handler is a procedure')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    call MPI_Errhandler_free(h)
    call MPI_Errhandler_free(g)
  end subroutine handlers

  subroutine generalized()
    type(MPI_Request) :: r
    type(MPI_Status) :: s
    integer :: n
    call MPI_Grequest_start(query_it, free_it, cancel_it, 12_MPI_ADDRESS_KIND, r)
    call MPI_Grequest_complete(r)
    call MPI_Wait(r, s)
    call MPI_Get_count(s, MPI_BYTE, n)
    call check(n == 12 .and. s%MPI_SOURCE == 8 .and. freed == 12, 'generalized requests')
  end subroutine generalized

  subroutine topologies()
    type(MPI_Comm) :: comm
    integer :: dims(1), place(1)
    logical :: around(1), weighted
    integer :: n, m
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., comm)
    call MPI_Cart_get(comm, 1, dims, around, place)
    call check(dims(1) == ranks .and. around(1) .and. place(1) == rank, 'MPI_Cart_get')
    call MPI_Comm_free(comm)
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [next], MPI_UNWEIGHTED, MPI_INFO_NULL, &
      .false., comm)
    call MPI_Dist_graph_neighbors_count(comm, n, m, weighted)
    call check(n == 1 .and. m == 1 .and. .not. weighted, 'MPI_Dist_graph_create, MPI_UNWEIGHTED')
    call MPI_Comm_free(comm)
  end subroutine topologies

  subroutine addresses()
    use, intrinsic :: iso_c_binding
    integer, target :: a(4)
    integer :: b
    integer(MPI_ADDRESS_KIND) :: at
    type(MPI_Datatype) :: t
    type(c_ptr) :: p
    real(8), pointer :: x(:)
    a = [1, 2, 3, 4]
    call MPI_Get_address(a(3), at)
    call check(at == transfer(c_loc(a(3)), at), 'MPI_Get_address')
    call MPI_Type_create_hindexed(1, [1], [at], MPI_INTEGER, t)
    call MPI_Type_commit(t)
    call MPI_Sendrecv(MPI_BOTTOM, 1, t, 0, 0, b, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE)
    call check(b == 3, 'MPI_BOTTOM')
    call MPI_Type_free(t)
    call check(MPI_Aint_diff(MPI_Aint_add(at, 8_MPI_ADDRESS_KIND), at) == 8, 'MPI_Aint_add')
    call MPI_Alloc_mem(800_MPI_ADDRESS_KIND, MPI_INFO_NULL, p)
    call c_f_pointer(p, x, [100])
    x = 1
    call check(sum(x) == 100, 'MPI_Alloc_mem')
    call MPI_Free_mem(x)
  end subroutine addresses

  subroutine names()
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=MPI_MAX_PROCESSOR_NAME) :: host
    integer :: n
    type(MPI_Info) :: info
    logical :: flag
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, n)
    call check(name == 'MPI_COMM_WORLD' .and. n == 14, 'MPI_Comm_get_name')
    call MPI_Get_processor_name(host, n)
    call check(n > 0 .and. host(n:) == host(n:n), 'MPI_Get_processor_name')
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'a', 'b')
    call MPI_Info_get_valuelen(info, 'a', n, flag)
    call check(flag .and. n == 1, 'MPI_Info_get_valuelen')
    call MPI_Info_free(info)
    call check(PMPI_Wtime() > 0 .and. MPI_Wtick() > 0, 'MPI_Wtime and MPI_Wtick')
  end subroutine names

  ! What ends in an error has its arguments converted first; sentinels among them.
  subroutine unbuilt()
    type(MPI_Comm) :: inter
    integer :: ierr, class
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    inter = MPI_COMM_NULL
    call MPI_Comm_spawn('no such program', MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, &
      MPI_ERRCODES_IGNORE, ierr)
    call check(ierr /= MPI_SUCCESS .and. inter == MPI_COMM_NULL, 'MPI_Comm_spawn with MPI_ARGV_NULL')
    call MPI_Comm_spawn('no such program', ['a ', 'bc', '  '], -1, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, &
      MPI_ERRCODES_IGNORE, ierr)
    call check(ierr /= MPI_SUCCESS, 'MPI_Comm_spawn with arguments')
    call MPI_Comm_spawn_multiple(2, ['no such program ', 'nor this program'], &
      reshape(['a', 'b', 'c', ' ', ' ', ' '], [2, 3]), [-1, -1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, &
      MPI_COMM_SELF, inter, MPI_ERRCODES_IGNORE, ierr)
    call MPI_Error_class(ierr, class)
    call check(class /= MPI_SUCCESS, 'MPI_Comm_spawn_multiple')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
  end subroutine unbuilt

  subroutine twins()
    type(MPI_Comm) :: comm
    integer :: n
    call PMPI_Comm_dup(MPI_COMM_SELF, comm)
    call PMPI_Sendrecv(7, 1, MPI_INTEGER, 0, 0, n, 1, MPI_INTEGER, 0, 0, comm, MPI_STATUS_IGNORE)
    call PMPI_Comm_free(comm)
    call check(n == 7 .and. comm == MPI_COMM_NULL, 'PMPI_ procedures')
  end subroutine twins

end program f08
