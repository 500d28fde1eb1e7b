! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) 2026 the Postern authors
!
! Messages, requests and statuses as Fortran 77 has them. Every rank
! sends to the next one and receives from the one before, so that one
! rank is enough.
      PROGRAM P2P
      INCLUDE 'mpif.h'
      INTEGER IERR
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      NEXT = MOD(RANK + 1, RANKS)
      PREV = MOD(RANK + RANKS - 1, RANKS)
      CALL MODES
      CALL MANY
      CALL SOME
      CALL STATUSES
      CALL PROBES
      CALL AGAIN
      CALL IGNORED
      CALL NOBODY
      CALL BUFFER
      CALL LENGTHS
      CALL TIMES
      CALL MPI_FINALIZE(IERR)
      CALL CHECKED(RANK)
      END

! Sends in all modes, received by name or by wildcard.
      SUBROUTINE MODES
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER A(4), B(4), IERR, REQ, I, S(MPI_STATUS_SIZE)
      DO 10 I = 1, 4
        A(I) = 10 * RANK + I
        B(I) = 0
10    CONTINUE
      CALL MPI_IRECV(B, 4, MPI_INTEGER, PREV, 7, MPI_COMM_WORLD, REQ,
     &  IERR)
      CALL MPI_SEND(A, 4, MPI_INTEGER, NEXT, 7, MPI_COMM_WORLD, IERR)
      CALL MPI_WAIT(REQ, S, IERR)
      CALL CHECK(B(4) .EQ. 10 * PREV + 4 .AND. IERR .EQ. MPI_SUCCESS,
     &  'a standard send arrives')
      CALL CHECK(REQ .EQ. MPI_REQUEST_NULL,
     &  'a request that was waited for is MPI_REQUEST_NULL')
      CALL CHECK(S(MPI_SOURCE) .EQ. PREV .AND. S(MPI_TAG) .EQ. 7,
     &  'its status has source and tag')
      B(4) = 0
      CALL MPI_IRECV(B, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG,
     &  MPI_COMM_WORLD, REQ, IERR)
      CALL MPI_SSEND(A, 4, MPI_INTEGER, NEXT, 8, MPI_COMM_WORLD, IERR)
      CALL MPI_WAIT(REQ, S, IERR)
      CALL CHECK(B(4) .EQ. 10 * PREV + 4 .AND. S(MPI_TAG) .EQ. 8,
     &  'a synchronous send arrives, received by wildcards')
      B(1) = 0
      CALL MPI_IRECV(B, 4, MPI_INTEGER, PREV, 9, MPI_COMM_WORLD, REQ,
     &  IERR)
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      CALL MPI_RSEND(A, 1, MPI_INTEGER, NEXT, 9, MPI_COMM_WORLD, IERR)
      CALL MPI_WAIT(REQ, S, IERR)
      CALL CHECK(B(1) .EQ. 10 * PREV + 1, 'a ready send arrives')
      CALL MPI_SENDRECV(A, 2, MPI_INTEGER, NEXT, 3, B, 4, MPI_INTEGER,
     &  PREV, 3, MPI_COMM_WORLD, S, IERR)
      CALL MPI_GET_COUNT(S, MPI_INTEGER, I, IERR)
      CALL CHECK(B(2) .EQ. 10 * PREV + 2 .AND. I .EQ. 2,
     &  'MPI_SENDRECV moves what was sent, and counts it')
      CALL MPI_SENDRECV_REPLACE(A, 4, MPI_INTEGER, NEXT, 3, PREV, 3,
     &  MPI_COMM_WORLD, S, IERR)
      CALL CHECK(A(1) .EQ. 10 * PREV + 1,
     &  'MPI_SENDRECV_REPLACE replaces')
      END

! Arrays of requests: indices count from 1.
      SUBROUTINE MANY
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER N
      PARAMETER (N = 40)
      INTEGER A(N), B(N), REQ(2 * N), IERR, I, K, SEEN(N)
      INTEGER S(MPI_STATUS_SIZE), SS(MPI_STATUS_SIZE, 2 * N)
      LOGICAL FLAG, OK
      DO 10 I = 1, N
        A(I) = 1000 * RANK + I
        CALL MPI_IRECV(B(I), 1, MPI_INTEGER, PREV, I, MPI_COMM_WORLD,
     &    REQ(I), IERR)
10    CONTINUE
      DO 20 I = N, 1, -1
        CALL MPI_ISEND(A(I), 1, MPI_INTEGER, NEXT, I, MPI_COMM_WORLD,
     &    REQ(N + I), IERR)
20    CONTINUE
      CALL MPI_WAITALL(2 * N, REQ, SS, IERR)
      OK = IERR .EQ. MPI_SUCCESS
      DO 30 I = 1, N
        OK = OK .AND. B(I) .EQ. 1000 * PREV + I
        OK = OK .AND. SS(MPI_TAG, I) .EQ. I
        OK = OK .AND. SS(MPI_SOURCE, I) .EQ. PREV
        OK = OK .AND. REQ(I) .EQ. MPI_REQUEST_NULL
        SEEN(I) = 0
30    CONTINUE
      CALL CHECK(OK, 'MPI_WAITALL of 80 requests, with statuses')
      DO 40 I = 1, N
        CALL MPI_IRECV(B(I), 1, MPI_INTEGER, PREV, I, MPI_COMM_WORLD,
     &    REQ(I), IERR)
40    CONTINUE
      DO 50 I = N, 1, -1
        CALL MPI_SEND(A(I), 1, MPI_INTEGER, NEXT, I, MPI_COMM_WORLD,
     &    IERR)
50    CONTINUE
      OK = .TRUE.
      DO 60 I = 1, N
        CALL MPI_WAITANY(N, REQ, K, S, IERR)
        IF (K .LT. 1 .OR. K .GT. N) THEN
          OK = .FALSE.
        ELSE
          SEEN(K) = SEEN(K) + 1
          OK = OK .AND. S(MPI_TAG) .EQ. K
          OK = OK .AND. REQ(K) .EQ. MPI_REQUEST_NULL
        ENDIF
60    CONTINUE
      DO 70 I = 1, N
        OK = OK .AND. SEEN(I) .EQ. 1
70    CONTINUE
      CALL CHECK(OK, 'MPI_WAITANY names each request once, from 1 on')
      CALL MPI_WAITANY(N, REQ, K, S, IERR)
      CALL CHECK(K .EQ. MPI_UNDEFINED,
     &  'MPI_WAITANY of nothing gives MPI_UNDEFINED')
      CALL MPI_TESTANY(N, REQ, K, FLAG, S, IERR)
      CALL CHECK(FLAG .AND. K .EQ. MPI_UNDEFINED,
     &  'MPI_TESTANY of nothing is true, and gives MPI_UNDEFINED')
      END

! MPI_WAITSOME, MPI_TESTSOME, MPI_TESTALL, MPI_TEST.
      SUBROUTINE SOME
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER A(8), B(8), REQ(8), IERR, I, K, N, AT(8), LEFT
      INTEGER SS(MPI_STATUS_SIZE, 8), S(MPI_STATUS_SIZE)
      LOGICAL OK, FLAG
      DO 10 I = 1, 8
        A(I) = I
        CALL MPI_IRECV(B(I), 1, MPI_INTEGER, PREV, I, MPI_COMM_WORLD,
     &    REQ(I), IERR)
10    CONTINUE
      DO 20 I = 1, 8
        CALL MPI_SEND(A(I), 1, MPI_INTEGER, NEXT, I, MPI_COMM_WORLD,
     &    IERR)
20    CONTINUE
      OK = .TRUE.
      LEFT = 8
30    CALL MPI_WAITSOME(8, REQ, N, AT, SS, IERR)
      DO 40 K = 1, N
        OK = OK .AND. AT(K) .GE. 1 .AND. AT(K) .LE. 8
        OK = OK .AND. SS(MPI_TAG, K) .EQ. AT(K)
40    CONTINUE
      LEFT = LEFT - N
      IF (LEFT .GT. 0) GOTO 30
      CALL CHECK(OK .AND. LEFT .EQ. 0,
     &  'MPI_WAITSOME gives indices from 1 on, statuses in their order')
      CALL MPI_WAITSOME(8, REQ, N, AT, SS, IERR)
      CALL CHECK(N .EQ. MPI_UNDEFINED,
     &  'MPI_WAITSOME of nothing gives MPI_UNDEFINED')
      CALL MPI_IRECV(B, 1, MPI_INTEGER, PREV, 1, MPI_COMM_WORLD, REQ,
     &  IERR)
      CALL MPI_TEST(REQ(1), FLAG, S, IERR)
      OK = .NOT. FLAG
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      CALL MPI_SEND(A, 1, MPI_INTEGER, NEXT, 1, MPI_COMM_WORLD, IERR)
50    CALL MPI_TEST(REQ(1), FLAG, S, IERR)
      IF (.NOT. FLAG) GOTO 50
      CALL CHECK(OK .AND. REQ(1) .EQ. MPI_REQUEST_NULL,
     &  'MPI_TEST is false, then true')
      CALL MPI_IRECV(B, 1, MPI_INTEGER, PREV, 1, MPI_COMM_WORLD,
     &  REQ(2), IERR)
      CALL MPI_ISEND(A, 1, MPI_INTEGER, NEXT, 1, MPI_COMM_WORLD, REQ(5),
     &  IERR)
60    CALL MPI_TESTALL(8, REQ, FLAG, SS, IERR)
      IF (.NOT. FLAG) GOTO 60
      CALL CHECK(REQ(2) .EQ. MPI_REQUEST_NULL .AND. SS(MPI_SOURCE, 2)
     &  .EQ. PREV, 'MPI_TESTALL, null requests among them')
      CALL MPI_IRECV(B, 1, MPI_INTEGER, PREV, 1, MPI_COMM_WORLD,
     &  REQ(3), IERR)
      CALL MPI_SEND(A, 1, MPI_INTEGER, NEXT, 1, MPI_COMM_WORLD, IERR)
70    CALL MPI_TESTSOME(8, REQ, N, AT, SS, IERR)
      IF (N .EQ. 0) GOTO 70
      CALL CHECK(N .EQ. 1 .AND. AT(1) .EQ. 3,
     &  'MPI_TESTSOME gives an index from 1 on')
      END

! What a status holds beyond source and tag.
      SUBROUTINE STATUSES
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER REQ, IERR, N, S(MPI_STATUS_SIZE), COPY(MPI_STATUS_SIZE)
      INTEGER A, I
      LOGICAL FLAG
      CALL MPI_IRECV(A, 1, MPI_INTEGER, PREV, 99, MPI_COMM_WORLD, REQ,
     &  IERR)
      CALL MPI_CANCEL(REQ, IERR)
      CALL MPI_WAIT(REQ, S, IERR)
      CALL MPI_TEST_CANCELLED(S, FLAG, IERR)
      CALL CHECK(FLAG, 'a receive that was cancelled is told')
      CALL MPI_STATUS_SET_CANCELLED(S, .FALSE., IERR)
      CALL MPI_TEST_CANCELLED(S, FLAG, IERR)
      CALL CHECK(.NOT. FLAG, 'MPI_STATUS_SET_CANCELLED takes a LOGICAL')
      CALL MPI_STATUS_SET_ELEMENTS(S, MPI_INTEGER, 5, IERR)
      CALL MPI_GET_ELEMENTS(S, MPI_INTEGER, N, IERR)
      CALL CHECK(N .EQ. 5, 'MPI_STATUS_SET_ELEMENTS')
      DO 10 I = 1, MPI_STATUS_SIZE
        COPY(I) = S(I)
10    CONTINUE
      CALL MPI_GET_COUNT(COPY, MPI_INTEGER, N, IERR)
      CALL CHECK(N .EQ. 5, 'a status is copied as an array')
      END

      SUBROUTINE PROBES
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      REAL X(3), Y(3)
      INTEGER REQ, IERR, N, M, S(MPI_STATUS_SIZE)
      LOGICAL FLAG
      DATA X /1.0, 2.0, 3.0/
      CALL MPI_ISEND(X, 3, MPI_REAL, NEXT, 4, MPI_COMM_WORLD, REQ, IERR)
      CALL MPI_PROBE(PREV, 4, MPI_COMM_WORLD, S, IERR)
      CALL MPI_GET_COUNT(S, MPI_REAL, N, IERR)
      CALL CHECK(N .EQ. 3, 'MPI_PROBE tells the length')
      CALL MPI_IPROBE(PREV, 4, MPI_COMM_WORLD, FLAG, S, IERR)
      CALL CHECK(FLAG, 'MPI_IPROBE gives .TRUE.')
      CALL MPI_MPROBE(PREV, 4, MPI_COMM_WORLD, M, S, IERR)
      Y(3) = 0.0
      CALL MPI_MRECV(Y, 3, MPI_REAL, M, S, IERR)
      CALL CHECK(Y(3) .EQ. 3.0 .AND. M .EQ. MPI_MESSAGE_NULL,
     &  'MPI_MPROBE and MPI_MRECV')
      CALL MPI_WAIT(REQ, S, IERR)
      CALL MPI_IPROBE(PREV, 4, MPI_COMM_WORLD, FLAG, S, IERR)
      CALL CHECK(.NOT. FLAG, 'MPI_IPROBE gives .FALSE.')
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      END

! Persistent requests. The compiler has to know that the buffers
! change in calls that they are no arguments of.
      SUBROUTINE AGAIN
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER A, B
      COMMON /AGAINB/ A, B
      INTEGER REQ(2), IERR, I, SS(MPI_STATUS_SIZE, 2)
      LOGICAL OK
      CALL MPI_RECV_INIT(B, 1, MPI_INTEGER, PREV, 2, MPI_COMM_WORLD,
     &  REQ(1), IERR)
      CALL MPI_SEND_INIT(A, 1, MPI_INTEGER, NEXT, 2, MPI_COMM_WORLD,
     &  REQ(2), IERR)
      OK = .TRUE.
      DO 10 I = 1, 5
        A = 100 * RANK + I
        CALL MPI_STARTALL(2, REQ, IERR)
        CALL MPI_WAITALL(2, REQ, SS, IERR)
        OK = OK .AND. B .EQ. 100 * PREV + I
        OK = OK .AND. REQ(1) .NE. MPI_REQUEST_NULL
10    CONTINUE
      CALL CHECK(OK, 'persistent requests start again and again')
      CALL MPI_REQUEST_FREE(REQ(1), IERR)
      CALL MPI_REQUEST_FREE(REQ(2), IERR)
      CALL CHECK(REQ(1) .EQ. MPI_REQUEST_NULL, 'MPI_REQUEST_FREE')
      END

      SUBROUTINE IGNORED
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER REQ(2), IERR, A, B
      A = RANK
      CALL MPI_IRECV(B, 1, MPI_INTEGER, PREV, 2, MPI_COMM_WORLD,
     &  REQ(1), IERR)
      CALL MPI_ISEND(A, 1, MPI_INTEGER, NEXT, 2, MPI_COMM_WORLD,
     &  REQ(2), IERR)
      CALL MPI_WAITALL(2, REQ, MPI_STATUSES_IGNORE, IERR)
      CALL CHECK(B .EQ. PREV, 'MPI_STATUSES_IGNORE')
      CALL MPI_SENDRECV(A, 1, MPI_INTEGER, NEXT, 3, B, 1, MPI_INTEGER,
     &  PREV, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, IERR)
      CALL CHECK(IERR .EQ. MPI_SUCCESS, 'MPI_STATUS_IGNORE')
      END

      SUBROUTINE NOBODY
      INCLUDE 'mpif.h'
      INTEGER IERR, A, N, S(MPI_STATUS_SIZE)
      CALL MPI_SEND(A, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
     &  IERR)
      A = 5
      CALL MPI_RECV(A, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
     &  S, IERR)
      CALL MPI_GET_COUNT(S, MPI_INTEGER, N, IERR)
      CALL CHECK(A .EQ. 5 .AND. N .EQ. 0 .AND. S(MPI_SOURCE) .EQ.
     &  MPI_PROC_NULL, 'nothing comes from MPI_PROC_NULL')
      END

! Buffered sends.
      SUBROUTINE BUFFER
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      INTEGER SIZE, IERR, A, B, GOT, GUARD(3)
      CHARACTER BUF(4096)
      GUARD(1) = 1
      GUARD(2) = 2
      GUARD(3) = 3
      CALL MPI_BUFFER_ATTACH(BUF, 4096, IERR)
      A = RANK
      CALL MPI_BSEND(A, 1, MPI_INTEGER, NEXT, 5, MPI_COMM_WORLD, IERR)
      A = -1
      CALL MPI_RECV(B, 1, MPI_INTEGER, PREV, 5, MPI_COMM_WORLD,
     &  MPI_STATUS_IGNORE, IERR)
      CALL CHECK(B .EQ. PREV, 'a buffered send arrives')
      CALL MPI_BUFFER_DETACH(GUARD(2), GOT, IERR)
      CALL CHECK(GOT .EQ. 4096, 'MPI_BUFFER_DETACH tells the size')
      SIZE = GUARD(1) + GUARD(3)
      CALL CHECK(SIZE .EQ. 4, 'it leaves what is beside its argument')
      END

! Character data, and a length that is only known when it is there.
      SUBROUTINE LENGTHS
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, NEXT, PREV
      COMMON /JOB/ RANK, RANKS, NEXT, PREV
      CHARACTER*20 TEXT, GOT
      INTEGER IERR, N, S(MPI_STATUS_SIZE)
      TEXT = 'abcdefghij'
      GOT = '--------------------'
      CALL MPI_SENDRECV(TEXT, 10, MPI_CHARACTER, NEXT, 1, GOT, 20,
     &  MPI_CHARACTER, PREV, 1, MPI_COMM_WORLD, S, IERR)
      CALL MPI_GET_COUNT(S, MPI_CHARACTER, N, IERR)
      CALL CHECK(N .EQ. 10 .AND. GOT .EQ. 'abcdefghij----------',
     &  'characters arrive, and no more of them than were sent')
      END

      SUBROUTINE TIMES
      INCLUDE 'mpif.h'
      DOUBLE PRECISION T
      T = MPI_WTIME()
      CALL CHECK(MPI_WTIME() .GE. T .AND. T .GT. 0.0D0,
     &  'MPI_WTIME is a function of DOUBLE PRECISION')
      CALL CHECK(MPI_WTICK() .GT. 0.0D0 .AND. MPI_WTICK() .LT. 1.0D0,
     &  'MPI_WTICK too')
      CALL CHECK(PMPI_WTIME() .GE. T, 'and PMPI_WTIME')
      END
