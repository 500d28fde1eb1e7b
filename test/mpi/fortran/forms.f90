! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Module mpi_f08: collectives that are begun and waited for, and those that are begun again and again; what neighbours
! exchange; and sends in all their modes. Results that are there before the second start do not count.
program forms
  use mpi_f08
  implicit none
  integer :: rank, ranks, left, right, total, i
  integer, allocatable, asynchronous :: give(:), get(:)
  integer, allocatable :: cnt(:), dsp(:), each(:), at(:), ones(:)
  type(MPI_Comm) :: ring
  external :: check, checked

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  left = modulo(rank - 1, ranks)
  right = modulo(rank + 1, ranks)
  ! rank r has cnt(r) integers of its own, from dsp(r) on
  allocate(cnt(0:ranks-1), dsp(0:ranks-1), each(0:ranks-1), at(0:ranks-1), ones(0:ranks-1))
  cnt = [(1 + mod(i, 2), i = 0, ranks - 1)]
  dsp = [(sum(cnt(0:i-1)), i = 0, ranks - 1)]
  each = cnt(rank)
  at = [(i * cnt(rank), i = 0, ranks - 1)]
  ones = 1
  total = sum(cnt)
  allocate(give(3 * ranks + 4), get(3 * ranks + 4))
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring)
  call gathers()
  call scatters()
  call exchanges()
  call reductions()
  call neighbours()
  call neighbours_lengths()
  call neighbours_types()
  call sends()
  call sends_again()
  call probes()
  call MPI_Comm_free(ring)
  call MPI_Finalize()
  call checked(rank)

contains

  ! What was begun once ...
  subroutine once(request, expected, name)
    type(MPI_Request) :: request
    integer, intent(in) :: expected(:)
    character(len=*), intent(in) :: name
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(get(:size(expected)) == expected) .and. request == MPI_REQUEST_NULL, name)
    get = -1
  end subroutine once

  ! ... and what is started twice.
  subroutine twice(request, expected, name)
    type(MPI_Request) :: request
    integer, intent(in) :: expected(:)
    character(len=*), intent(in) :: name
    logical :: good
    integer :: k
    good = .true.
    do k = 1, 2
      get = -1
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      good = good .and. all(get(:size(expected)) == expected) .and. request /= MPI_REQUEST_NULL
    end do
    call MPI_Request_free(request)
    call check(good, name)
    get = -1
  end subroutine twice

  function all_ranks() result(expected)
    integer :: expected(ranks), r
    expected = [(r, r = 0, ranks - 1)]
  end function all_ranks

  ! Every rank's own integers, which are 100 times its number.
  function all_own() result(expected)
    integer :: expected(total), r
    do r = 0, ranks - 1
      expected(dsp(r)+1:dsp(r)+cnt(r)) = 100 * r
    end do
  end function all_own

  subroutine gathers()
    type(MPI_Request) :: request
    integer :: nothing(0)
    give = rank
    get = -1
    call MPI_Iallgather(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, MPI_COMM_WORLD, request)
    call once(request, all_ranks(), 'MPI_Iallgather')
    call MPI_Allgather_init(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, all_ranks(), 'MPI_Allgather_init')
    call MPI_Igather(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    if (rank == 0) call once(request, all_ranks(), 'MPI_Igather')
    if (rank /= 0) call once(request, nothing, 'MPI_Igather')
    call MPI_Gather_init(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    if (rank == 0) call twice(request, all_ranks(), 'MPI_Gather_init')
    if (rank /= 0) call twice(request, nothing, 'MPI_Gather_init')
    give = 100 * rank
    call MPI_Iallgatherv(give, cnt(rank), MPI_INTEGER, get, cnt, dsp, MPI_INTEGER, MPI_COMM_WORLD, request)
    call once(request, all_own(), 'MPI_Iallgatherv')
    call MPI_Allgatherv_init(give, cnt(rank), MPI_INTEGER, get, cnt, dsp, MPI_INTEGER, MPI_COMM_WORLD, &
      MPI_INFO_NULL, request)
    call twice(request, all_own(), 'MPI_Allgatherv_init')
    call MPI_Igatherv(give, cnt(rank), MPI_INTEGER, get, cnt, dsp, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    if (rank == 0) call once(request, all_own(), 'MPI_Igatherv')
    if (rank /= 0) call once(request, nothing, 'MPI_Igatherv')
    call MPI_Gatherv_init(give, cnt(rank), MPI_INTEGER, get, cnt, dsp, MPI_INTEGER, 0, MPI_COMM_WORLD, &
      MPI_INFO_NULL, request)
    if (rank == 0) call twice(request, all_own(), 'MPI_Gatherv_init')
    if (rank /= 0) call twice(request, nothing, 'MPI_Gatherv_init')
  end subroutine gathers

  subroutine scatters()
    type(MPI_Request) :: request
    integer :: own(cnt(rank)), own_one(1)
    own = 100 * rank
    own_one = 7 * rank
    give(:ranks) = 7 * all_ranks()
    get = -1
    call MPI_Iscatter(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    call once(request, own_one, 'MPI_Iscatter')
    call MPI_Scatter_init(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, own_one, 'MPI_Scatter_init')
    give(:total) = all_own()
    call MPI_Iscatterv(give, cnt, dsp, MPI_INTEGER, get, cnt(rank), MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    call once(request, own, 'MPI_Iscatterv')
    call MPI_Scatterv_init(give, cnt, dsp, MPI_INTEGER, get, cnt(rank), MPI_INTEGER, 0, MPI_COMM_WORLD, &
      MPI_INFO_NULL, request)
    call twice(request, own, 'MPI_Scatterv_init')
  end subroutine scatters

  subroutine exchanges()
    type(MPI_Request) :: request
    integer :: expected(ranks), lengths(ranks * cnt(rank)), r
    give(:ranks) = 100 * rank + all_ranks()
    expected = 100 * all_ranks() + rank
    get = -1
    call MPI_Ialltoall(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, MPI_COMM_WORLD, request)
    call once(request, expected, 'MPI_Ialltoall')
    call MPI_Alltoall_init(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, expected, 'MPI_Alltoall_init')
    do r = 0, ranks - 1
      give(dsp(r)+1:dsp(r)+cnt(r)) = 100 * rank + r
      lengths(at(r)+1:at(r)+cnt(rank)) = 100 * r + rank
    end do
    call MPI_Alltoallv(give, cnt, dsp, MPI_INTEGER, get, each, at, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(get(:size(lengths)) == lengths), 'MPI_Alltoallv')
    get = -1
    call MPI_Ialltoallv(give, cnt, dsp, MPI_INTEGER, get, each, at, MPI_INTEGER, MPI_COMM_WORLD, request)
    call once(request, lengths, 'MPI_Ialltoallv')
    call MPI_Alltoallv_init(give, cnt, dsp, MPI_INTEGER, get, each, at, MPI_INTEGER, MPI_COMM_WORLD, &
      MPI_INFO_NULL, request)
    call twice(request, lengths, 'MPI_Alltoallv_init')
    call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, [integer ::], 'MPI_Barrier_init')
  end subroutine exchanges

  subroutine reductions()
    type(MPI_Request) :: request
    integer :: upto(1), below(min(rank, 1)), whole(merge(1, 0, rank == 0)), block(1), own(cnt(rank)), k
    give = rank + 1
    get = -1
    upto = (rank + 1) * (rank + 2) / 2
    below = rank * (rank + 1) / 2
    whole = ranks * (ranks + 1) / 2
    call MPI_Iscan(give, get, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call once(request, upto, 'MPI_Iscan')
    call MPI_Scan_init(give, get, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, upto, 'MPI_Scan_init')
    call MPI_Iexscan(give, get, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call once(request, below, 'MPI_Iexscan')
    call MPI_Exscan_init(give, get, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, below, 'MPI_Exscan_init')
    call MPI_Ireduce(give, get, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, request)
    call once(request, whole, 'MPI_Ireduce')
    call MPI_Reduce_init(give, get, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, whole, 'MPI_Reduce_init')
    give = [(k, k = 1, size(give))]
    block = ranks * (rank + 1)
    own = ranks * [(dsp(rank) + k, k = 1, cnt(rank))]
    call MPI_Ireduce_scatter_block(give, get, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call once(request, block, 'MPI_Ireduce_scatter_block')
    call MPI_Reduce_scatter_block_init(give, get, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, block, 'MPI_Reduce_scatter_block_init')
    call MPI_Ireduce_scatter(give, get, cnt, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call once(request, own, 'MPI_Ireduce_scatter')
    call MPI_Reduce_scatter_init(give, get, cnt, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    call twice(request, own, 'MPI_Reduce_scatter_init')
  end subroutine reductions

  ! Each has two: the one before it, and the one behind it.
  subroutine neighbours()
    type(MPI_Request) :: request
    integer :: both(2), crossed(2)
    both = [left, right]
    give = rank
    get = -1
    call MPI_Neighbor_allgather(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, ring)
    call check(all(get(:2) == both), 'MPI_Neighbor_allgather')
    get = -1
    call MPI_Ineighbor_allgather(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, ring, request)
    call once(request, both, 'MPI_Ineighbor_allgather')
    call MPI_Neighbor_allgather_init(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, ring, MPI_INFO_NULL, request)
    call twice(request, both, 'MPI_Neighbor_allgather_init')
    ! what goes to the left comes from the right
    give(:2) = [10 * rank + 1, 10 * rank + 2]
    crossed = [10 * left + 2, 10 * right + 1]
    call MPI_Neighbor_alltoall(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, ring)
    call check(all(get(:2) == crossed), 'MPI_Neighbor_alltoall')
    get = -1
    call MPI_Ineighbor_alltoall(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, ring, request)
    call once(request, crossed, 'MPI_Ineighbor_alltoall')
    call MPI_Neighbor_alltoall_init(give, 1, MPI_INTEGER, get, 1, MPI_INTEGER, ring, MPI_INFO_NULL, request)
    call twice(request, crossed, 'MPI_Neighbor_alltoall_init')
  end subroutine neighbours

  ! Of different lengths, with a gap between what comes: one integer to the left, two to the right.
  subroutine neighbours_lengths()
    type(MPI_Request) :: request
    integer :: both(3), crossed(4)
    give = rank
    both = [left, -1, right]
    get = -1
    call MPI_Neighbor_allgatherv(give, 1, MPI_INTEGER, get, [1, 1], [0, 2], MPI_INTEGER, ring)
    call check(all(get(:3) == both), 'MPI_Neighbor_allgatherv')
    get = -1
    call MPI_Ineighbor_allgatherv(give, 1, MPI_INTEGER, get, [1, 1], [0, 2], MPI_INTEGER, ring, request)
    call once(request, both, 'MPI_Ineighbor_allgatherv')
    call MPI_Neighbor_allgatherv_init(give, 1, MPI_INTEGER, get, [1, 1], [0, 2], MPI_INTEGER, ring, &
      MPI_INFO_NULL, request)
    call twice(request, both, 'MPI_Neighbor_allgatherv_init')
    give(:3) = 10 * rank + [1, 2, 3]
    crossed = [10 * left + 2, 10 * left + 3, -1, 10 * right + 1]
    call MPI_Neighbor_alltoallv(give, [1, 2], [0, 1], MPI_INTEGER, get, [2, 1], [0, 3], MPI_INTEGER, ring)
    call check(all(get(:4) == crossed), 'MPI_Neighbor_alltoallv')
    get = -1
    call MPI_Ineighbor_alltoallv(give, [1, 2], [0, 1], MPI_INTEGER, get, [2, 1], [0, 3], MPI_INTEGER, ring, request)
    call once(request, crossed, 'MPI_Ineighbor_alltoallv')
    call MPI_Neighbor_alltoallv_init(give, [1, 2], [0, 1], MPI_INTEGER, get, [2, 1], [0, 3], MPI_INTEGER, ring, &
      MPI_INFO_NULL, request)
    call twice(request, crossed, 'MPI_Neighbor_alltoallv_init')
  end subroutine neighbours_lengths

  ! Places in bytes, and types of their own.
  subroutine neighbours_types()
    integer(MPI_ADDRESS_KIND), parameter :: four = storage_size(0) / 8
    type(MPI_Datatype) :: sent(2), got(2)
    type(MPI_Request) :: request
    integer :: crossed(4)
    call MPI_Type_contiguous(2, MPI_INTEGER, sent(2))
    call MPI_Type_commit(sent(2))
    sent(1) = MPI_INTEGER
    got = [sent(2), MPI_INTEGER]
    give(:3) = 10 * rank + [1, 2, 3]
    crossed = [10 * left + 2, 10 * left + 3, -1, 10 * right + 1]
    get = -1
    call MPI_Neighbor_alltoallw(give, [1, 1], [0_MPI_ADDRESS_KIND, four], sent, get, [1, 1], &
      [0_MPI_ADDRESS_KIND, 3 * four], got, ring)
    call check(all(get(:4) == crossed), 'MPI_Neighbor_alltoallw')
    get = -1
    call MPI_Ineighbor_alltoallw(give, [1, 1], [0_MPI_ADDRESS_KIND, four], sent, get, [1, 1], &
      [0_MPI_ADDRESS_KIND, 3 * four], got, ring, request)
    call once(request, crossed, 'MPI_Ineighbor_alltoallw')
    call MPI_Neighbor_alltoallw_init(give, [1, 1], [0_MPI_ADDRESS_KIND, four], sent, get, [1, 1], &
      [0_MPI_ADDRESS_KIND, 3 * four], got, ring, MPI_INFO_NULL, request)
    call twice(request, crossed, 'MPI_Neighbor_alltoallw_init')
    call MPI_Type_free(sent(2))
  end subroutine neighbours_types

  ! A message of the rank before this one, to a receive that is there; `request` is that of the send to the next.
  subroutine arrives(coming, request, name)
    type(MPI_Request) :: coming, request
    character(len=*), intent(in) :: name
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call once(coming, [left], name)
  end subroutine arrives

  subroutine sends()
    type(MPI_Request) :: request, coming
    integer :: buffer(100), n
    give = rank
    get = -1
    call MPI_Irecv(get, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, coming)
    call MPI_Issend(give, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, request)
    call arrives(coming, request, 'MPI_Issend')
    call MPI_Irecv(get, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, coming)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Irsend(give, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, request)
    call arrives(coming, request, 'MPI_Irsend')
    call MPI_Buffer_attach(buffer, size(buffer) * storage_size(0) / 8)
    call MPI_Irecv(get, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, coming)
    call MPI_Ibsend(give, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, request)
    call arrives(coming, request, 'MPI_Ibsend')
    call MPI_Bsend_init(give, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, request)
    call MPI_Irecv(get, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, coming)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Buffer_flush()
    call once(coming, [left], 'MPI_Bsend_init and MPI_Buffer_flush')
    call MPI_Request_free(request)
    call detach(n)
    call check(n == size(buffer) * storage_size(0) / 8, 'MPI_Buffer_detach tells its length')
    get(1) = rank
    call MPI_Isendrecv_replace(get, 1, MPI_INTEGER, right, 2, left, 2, MPI_COMM_WORLD, request)
    call once(request, [left], 'MPI_Isendrecv_replace')
  end subroutine sends

  subroutine detach(n)
    use, intrinsic :: iso_c_binding, only: c_ptr
    integer, intent(out) :: n
    type(c_ptr) :: where
    call MPI_Buffer_detach(where, n)
  end subroutine detach

  subroutine sends_again()
    type(MPI_Request) :: request(2), coming
    logical :: good
    integer :: k, m
    give = rank
    call MPI_Recv_init(get, 1, MPI_INTEGER, left, 3, MPI_COMM_WORLD, coming)
    call MPI_Ssend_init(give, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD, request(1))
    call MPI_Rsend_init(give, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD, request(2))
    do m = 1, 2
      good = .true.
      do k = 1, 2
        get = -1
        call MPI_Start(coming)
        call MPI_Barrier(MPI_COMM_WORLD)
        call MPI_Start(request(m))
        call MPI_Wait(request(m), MPI_STATUS_IGNORE)
        call MPI_Wait(coming, MPI_STATUS_IGNORE)
        good = good .and. get(1) == left
      end do
      call MPI_Request_free(request(m))
      call check(good, trim(merge('MPI_Ssend_init', 'MPI_Rsend_init', m == 1)))
    end do
    call MPI_Request_free(coming)
  end subroutine sends_again

  subroutine probes()
    type(MPI_Request) :: request, coming
    type(MPI_Message) :: message
    type(MPI_Status) :: status
    logical :: found
    give = rank
    get = -1
    call MPI_Isend(give, 1, MPI_INTEGER, right, 4, MPI_COMM_WORLD, request)
    found = .false.
    do while (.not. found)
      call MPI_Improbe(left, 4, MPI_COMM_WORLD, found, message, status)
    end do
    call MPI_Imrecv(get, 1, MPI_INTEGER, message, coming)
    call arrives(coming, request, 'MPI_Improbe and MPI_Imrecv')
    call check(status%MPI_SOURCE == left .and. status%MPI_TAG == 4 .and. message == MPI_MESSAGE_NULL, &
      'MPI_Improbe says whose it is')
  end subroutine probes
end program forms
