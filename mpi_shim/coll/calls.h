/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ranks have to call the same collectives of a communicator, in the same order, with the same root,
 * operation and length. Here each says what it calls, and ranks that disagree are told so.
 *
 * The mark. Each communicator keeps a hash of all that was called on it. Its bits travel with
 * whatever the ranks exchange anyway: in the flags of shared memory (16 bits, shm/meet.c) and
 * in the header data of messages (protocol.h: the kind and 7 bits, of short ones 32 more). Whoever
 * meets a mark that is not its own has found ranks that disagree, now or since an earlier call that
 * nobody could see.
 *
 * The waits. Ranks that disagree may wait for each other by different means, and no mark is met. So
 * each rank also writes its last calls next to its flags, where a peer that waits for long looks
 * (mpi_shmcoll_compare); and a rank that waits for a message for long puts its call into memory
 * of the rank that it waits for, which looks there when it waits itself.
 *
 * The end. The rank that finds out makes one sentence of both sides, keeps it with the
 * communicator, and sends it to all others, who look for it when they wait for long. From then on
 * every collective of the communicator fails with that sentence; it can be freed.
 */
#ifndef MPI_SHIM_CALLS_H
#define MPI_SHIM_CALLS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct mpi_comm;
struct mpi_op;
struct mpi_schedule;
struct mpi_request;

enum mpi_call_kind {
	MPI_CALL_NONE,
	MPI_CALL_BARRIER,
	MPI_CALL_BCAST,
	MPI_CALL_GATHER,
	MPI_CALL_GATHERV,
	MPI_CALL_SCATTER,
	MPI_CALL_SCATTERV,
	MPI_CALL_ALLGATHER,
	MPI_CALL_ALLGATHERV,
	MPI_CALL_ALLTOALL,
	MPI_CALL_ALLTOALLV,
	MPI_CALL_ALLTOALLW,
	MPI_CALL_REDUCE,
	MPI_CALL_ALLREDUCE,
	MPI_CALL_REDUCE_SCATTER,
	MPI_CALL_REDUCE_SCATTER_BLOCK,
	MPI_CALL_SCAN,
	MPI_CALL_EXSCAN,
	MPI_CALL_NEIGHBOR_ALLGATHER,
	MPI_CALL_NEIGHBOR_ALLGATHERV,
	MPI_CALL_NEIGHBOR_ALLTOALL,
	MPI_CALL_NEIGHBOR_ALLTOALLV,
	MPI_CALL_NEIGHBOR_ALLTOALLW,
	MPI_CALL_MAKE, /* communicators and windows are made or freed: internal.c */
	MPI_CALL_LAST, /* MPI_Finalize, MPI_Win_free */
	MPI_CALL_KINDS
};

/* Of calls in which ranks need not agree on a length, or on a root. */
#define MPI_CALL_ANY_BYTES (-1)
#define MPI_CALL_ANY_ROOT  (-1)

/* The plan is of a call of this kind on the communicator; all arguments are checked. `bytes`: of a
 * block, or of all that a rank gives, as the kind has it; `op` may be NULL. Of an intercommunicator
 * only the kind counts. */
void mpi_calls_tell(struct mpi_schedule *p, struct mpi_comm *comm, enum mpi_call_kind kind,
		    int root, const struct mpi_op *op, MPI_Count bytes);

/* The message that a receive of the plan has got is not of the same call: r->differs. Finds the
 * sentence, keeps it with the communicator and tells the others. Its class, as mpi_fail. */
int mpi_calls_refuse(struct mpi_comm *comm, const struct mpi_request *r);
/* The same of two calls as mpi_calls_tell packs them, of ranks of the communicator; `theirs` 0: it
 * is not known. */
int mpi_calls_refuse_calls(struct mpi_comm *comm, int rank, uint64_t theirs, uint64_t mine);

/* Whether ranks are known to disagree: looks for what others tell, and at what they call. For waits
 * that last. */
bool mpi_calls_broken(struct mpi_comm *comm);
/* The class, with the sentence as mpi_fail keeps it; some rank is known to disagree, if not about
 * what. */
int mpi_calls_fail(struct mpi_comm *comm);

/* Whether any rank of the communicator has died, of either group, or ranks disagree; and the error,
 * with its text. */
bool mpi_comm_lost(struct mpi_comm *comm);
int mpi_fail_lost(struct mpi_comm *comm);

/* Tells a world rank that it is waited for in the last call. Of an intercommunicator, nothing. */
void mpi_calls_ask(const struct mpi_comm *comm, int world);

/* A communicator begins, for which nothing has been told; and ends. */
void mpi_calls_forget(uint32_t context);
void mpi_calls_free(struct mpi_comm *comm);

int mpi_calls_init(void);
void mpi_calls_fini(void);

#endif
