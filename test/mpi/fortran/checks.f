! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Results as TAP, for programs in all forms of Fortran. A check is
! made by all ranks together and passes if it holds on each of them;
! rank 0 tells.
      SUBROUTINE CHECK(OK, NAME)
      INCLUDE 'mpif.h'
      LOGICAL OK
      CHARACTER*(*) NAME
      INTEGER MINE, ALL, RANK, IERR, CASES, FAILED
      COMMON /CHECKS/ CASES, FAILED
      SAVE /CHECKS/
      MINE = 0
      IF (.NOT. OK) MINE = 1
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      IF (MINE .EQ. 1) WRITE(*,'(A,I0,2A)') '# rank ',RANK,': ',NAME
      CALL MPI_REDUCE(MINE, ALL, 1, MPI_INTEGER, MPI_SUM, 0,
     &  MPI_COMM_WORLD, IERR)
      IF (RANK .NE. 0) RETURN
      CASES = CASES + 1
      IF (ALL .EQ. 0) THEN
        WRITE(*,'(A,I0,2A)') 'ok ', CASES, ' - ', NAME
      ELSE
        FAILED = FAILED + 1
        WRITE(*,'(A,I0,2A)') 'not ok ', CASES, ' - ', NAME
      ENDIF
      END

! The plan; after MPI_FINALIZE. Its program ends as a failed one.
      SUBROUTINE CHECKED(RANK)
      INTEGER RANK, CASES, FAILED
      COMMON /CHECKS/ CASES, FAILED
      SAVE /CHECKS/
      IF (RANK .NE. 0) RETURN
      WRITE(*,'(A,I0)') '1..', CASES
      IF (FAILED .NE. 0) STOP 1
      END

      BLOCK DATA
      INTEGER CASES, FAILED
      COMMON /CHECKS/ CASES, FAILED
      SAVE /CHECKS/
      DATA CASES /0/, FAILED /0/
      END
