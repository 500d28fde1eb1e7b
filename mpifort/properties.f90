! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! What C cannot know of this compiler: the sizes of its default kinds, and the bytes of .TRUE. and .FALSE.
subroutine mpifort_properties(sizes) bind(C, name="mpifort_properties")
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  integer(c_int), intent(out) :: sizes(4)
  sizes(1) = storage_size(.true.) / 8
  sizes(2) = storage_size(1) / 8
  sizes(3) = storage_size(1.0) / 8
  sizes(4) = storage_size(1.0d0) / 8
end subroutine mpifort_properties

subroutine mpifort_booleans(size, yes, no) bind(C, name="mpifort_booleans")
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_f_pointer
  implicit none
  integer(c_int), value :: size
  type(c_ptr), value :: yes, no
  logical(1), pointer :: l1
  logical(2), pointer :: l2
  logical(4), pointer :: l4
  logical(8), pointer :: l8
  logical(16), pointer :: l16
  select case (size)
  case (1)
    call c_f_pointer(yes, l1)
    l1 = .true._1
    call c_f_pointer(no, l1)
    l1 = .false._1
  case (2)
    call c_f_pointer(yes, l2)
    l2 = .true._2
    call c_f_pointer(no, l2)
    l2 = .false._2
  case (4)
    call c_f_pointer(yes, l4)
    l4 = .true._4
    call c_f_pointer(no, l4)
    l4 = .false._4
  case (8)
    call c_f_pointer(yes, l8)
    l8 = .true._8
    call c_f_pointer(no, l8)
    l8 = .false._8
  case (16)
    call c_f_pointer(yes, l16)
    l16 = .true._16
    call c_f_pointer(no, l16)
    l16 = .false._16
  end select
end subroutine mpifort_booleans
