! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Codes of MPI-1 that use MPI_BOTTOM with what MPI_ADDRESS gives, an
! INTEGER. That is right where all data is below 2 GiB: with -no-pie,
! for what is in COMMON and static, and with -fno-automatic, for the
! variables of procedures, which are on the stack otherwise.
      PROGRAM ADDRES
      INCLUDE 'mpif.h'
      INTEGER RANK, IERR
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL STATIC
      CALL LOCAL
      CALL MPI_FINALIZE(IERR)
      CALL CHECKED(RANK)
      END

      SUBROUTINE STATIC
      INTEGER K
      DOUBLE PRECISION X
      COMMON /DATA/ X(3), K(4)
      CALL AROUND(X, K, 'of data in COMMON')
      END

      SUBROUTINE LOCAL
      INTEGER K(4)
      DOUBLE PRECISION X(3)
      CALL AROUND(X, K, 'of variables of a procedure')
      END

! Both arrays as one structure at MPI_BOTTOM, there and back.
      SUBROUTINE AROUND(X, K, WHAT)
      INCLUDE 'mpif.h'
      INTEGER K(4), A(2), L(2), T(2), S, N, I, IERR
      DOUBLE PRECISION X(3)
      CHARACTER*(*) WHAT
      CHARACTER PACKED(256)
      DO 10 I = 1, 3
        X(I) = I / 4D0
        K(I) = I
   10 CONTINUE
      K(4) = 4
      CALL MPI_ADDRESS(X(1), A(1), IERR)
      CALL MPI_ADDRESS(K(1), A(2), IERR)
      L(1) = 3
      L(2) = 4
      T(1) = MPI_DOUBLE_PRECISION
      T(2) = MPI_INTEGER
      CALL MPI_TYPE_STRUCT(2, L, A, T, S, IERR)
      CALL MPI_TYPE_COMMIT(S, IERR)
      N = 0
      CALL MPI_PACK(MPI_BOTTOM, 1, S, PACKED, 256, N, MPI_COMM_SELF,
     &  IERR)
      X(2) = 0
      K(4) = 0
      N = 0
      CALL MPI_UNPACK(PACKED, 256, N, MPI_BOTTOM, 1, S, MPI_COMM_SELF,
     &  IERR)
      CALL CHECK(X(2) .EQ. 0.5D0 .AND. K(4) .EQ. 4, 'addresses '//WHAT)
      CALL MPI_TYPE_FREE(S, IERR)
      END
