/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Checks that all ranks call the same collectives of a communicator: in the same order, with
 * the same root, operation and length. Here each rank advertises its calls, and ranks that
 * disagree get an error that says so.
 *
 * The mark. Each communicator keeps a hash of all calls on it. Bits of the hash travel with
 * whatever the ranks exchange anyway. The flags of shared memory carry 16 bits
 * (shm/node_barrier.c). The header data of messages carry the kind and 7 bits, those of short
 * messages 32 more (protocol.h). A rank that sees a mark other than its own has found ranks
 * that disagree. They disagree now, or since an earlier call in which nobody could see it.
 *
 * The waits. Ranks that disagree may wait for each other by different means; then nobody sees a
 * mark. So each rank also writes its last calls next to its flags, and a peer that waits for
 * long reads them (mpi_shmcoll_compare()). A rank that waits long for a message puts its call
 * into the memory of the rank that it waits for. That rank reads it when it waits itself.
 *
 * The end. The rank that finds the disagreement makes one sentence of both sides. It keeps the
 * sentence with the communicator and sends it to all others, which check for it when they wait
 * for long. From then on every collective of the communicator fails with that sentence. The
 * communicator can be freed.
 *
 * For an intercommunicator only the kinds of calls are compared. Functions are called with the
 * MPI lock held, if threads need one.
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

/* For calls in which ranks need not agree on a length or a root. */
#define MPI_CALL_ANY_BYTES (-1)
#define MPI_CALL_ANY_ROOT  (-1)

/* Record that the schedule is of a call of this kind on the communicator; all arguments are
 * checked. `bytes` is the length of a block, or of all that a rank gives, as the kind has it.
 * `op` may be NULL. For an intercommunicator only the kind counts. */
void mpi_calls_announce(struct mpi_schedule *p, struct mpi_comm *comm, enum mpi_call_kind kind,
			int root, const struct mpi_op *op, MPI_Count bytes);

/* A receive of the schedule has got a message of another call (r->differs). Make the sentence,
 * keep it with the communicator and send it to the others. Returns the error class, as
 * mpi_fail(). */
int mpi_calls_refuse(struct mpi_comm *comm, const struct mpi_request *r);
/* The same for two calls, packed as mpi_calls_announce() packs them, of ranks of the communicator.
 * 0 for `theirs`: the other call is not known. */
int mpi_calls_refuse_calls(struct mpi_comm *comm, int rank, uint64_t theirs, uint64_t mine);

/* Whether ranks are known to disagree. Checks for sentences of other ranks, and compares their
 * calls; meant for long waits. */
bool mpi_calls_broken(struct mpi_comm *comm);
/* Returns the error class and keeps the sentence, as mpi_fail(). Call it when some rank is
 * known to disagree, even if it is not known in what. */
int mpi_calls_fail(struct mpi_comm *comm);

/* Whether a rank of the communicator, in either group, has died, or ranks disagree.
 * mpi_fail_comm() returns the error, with its text kept. */
bool mpi_comm_failed(struct mpi_comm *comm);
int mpi_fail_comm(struct mpi_comm *comm);

/* Put this rank's last call into the memory of a world rank that it waits for. Does nothing for
 * an intercommunicator. */
void mpi_calls_ask(const struct mpi_comm *comm, int world);

/* A communicator begins, with no calls of others recorded for its context. mpi_calls_free(): it
 * ends. */
void mpi_calls_forget(uint32_t context);
void mpi_calls_free(struct mpi_comm *comm);

int mpi_calls_init(void);
void mpi_calls_fini(void);

#endif
