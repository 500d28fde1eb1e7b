/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Partitioned communication (MPI-4 chapter 4). Shared by the files that implement it.
 *
 *   sender                              receiver
 *     | MPI_Psend_init: offer, a message  |
 *     |---------------------------------->| the first MPI_Precv_init from this rank with this
 *     |                                   | tag: exposes its buffer on the PART portal
 *     |<----------- go -------------------| MPI_Start, each time
 *     |--- a put for each partition ----->| straight into the buffer
 *
 * The offer is an ordinary short message on the collective context. So it costs credit, and the
 * order of offers is that of the calls. Its tag is the same for all; the user's tag is inside.
 * partitioned_match.c finds the receive for each. From then on both sides know the number of the
 * other's entry on the PART portal, and no message is matched any more.
 *
 * The sender may put when it has got as many gos as it was started. A receive ends when all
 * data of this start are here, and only then can it be started again. So at most one go is
 * unhandled at the sender, and at most `units` puts at the receiver: both have room for these
 * events.
 *
 * Some partitions may travel together, as a unit: else a million of them would need room for a
 * million events.
 */
#ifndef MPI_SHIM_PARTITIONED_H
#define MPI_SHIM_PARTITIONED_H

#include "mpi_shim/core/request.h"

#define MPI_PART_UNITS 1024 /* units of an operation, at most */

/* A message from the sender when it is made. */
struct mpi_part_offer {
	uint64_t number; /* of its entry on the PART portal */
	uint64_t total;  /* bytes */
	uint32_t partitions, per_unit;
	int32_t tag;
	uint32_t zero;
};

/* A put into the sender's entry. */
struct mpi_part_go {
	uint64_t number; /* of the receiver's entry; 0: it refuses */
	uint64_t total;  /* bytes; differs from the sender's: the receive is another one */
	uint64_t partitions;
};

/* The part of a request that only partitioned communication has. */
struct mpi_partitioned {
	struct mpi_request *r; /* NULL: freed before an offer came for it */
	struct mpi_partitioned *next;
	int world; /* rank of the peer in MPI_COMM_WORLD, or MPI_PROC_NULL */
	int tag;
	int partitions;           /* of this side */
	MPI_Count part, total;    /* bytes of one, and of all */
	int per_unit, units;      /* of the sender */
	MPI_Count unit_bytes;     /* of all units but the last one */
	uint64_t number, theirs;  /* of the entries on the PART portal */
	char *staging;            /* packed bytes; NULL: the datatype has no gaps */
	int broken;               /* code of an error that stays; its text is the request's */
	bool linked;              /* r->me, and for a send r->md, exist */
	bool go_due;              /* recv: the go could not be sent yet */
	uint32_t events;          /* reserved while linked */
	uint64_t starts, gos;     /* send */
	int left;                 /* send: partitions that are not ready */
	int over;                 /* units that are sent, or here */
	int in_flight;            /* send: puts whose event is to come */
	struct mpi_part_go go_in; /* send: the last one received */
	unsigned char *ready;     /* send, by partition */
	int *unready;             /* send, by unit: partitions that are not ready */
	unsigned char *moved;     /* by unit: it is sent, or here */
};

extern const struct mpi_request_ops mpi_psend_ops, mpi_precv_ops;

/* Ends an operation whose peer has died, and tries again what found no memory. */
void mpi_partitioned_check(struct mpi_request *r);
/* MPI_Request_free of such a request. */
int mpi_partitioned_free(struct mpi_request *r);

/* ---- partitioned_match.c --------------------------------------------------------------------- */

/* Sends the offer of a send. */
int mpi_partitioned_offer(const struct mpi_partitioned *p);
/* Waits for the offer for a receive, in the order of the calls. mpi_partitioned_matched gets it,
 * in this call or a later round of progress. */
int mpi_partitioned_await(struct mpi_partitioned *p);
/* Frees what is left in MPI_Finalize. */
void mpi_partitioned_fini(void);

/* ---- partitioned.c, for it ------------------------------------------------------------------- */

/* An offer has come for a receive. */
void mpi_partitioned_matched(struct mpi_partitioned *p, const struct mpi_part_offer *offer);
/* No offer will come for a receive: the error is `code`, with the kept text. */
void mpi_partitioned_unmatched(struct mpi_partitioned *p, int code);
void mpi_partitioned_release(struct mpi_partitioned *p);

#endif
