/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Credit that a receiver has no memory to give back for a while: its sender goes on as soon as
 * it has some. Its calls of Portals fail here as often as they are told to.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "test/mpi/pt2pt/check.h"
#include "test/mpi/put_inject.h"

#define PT_CREDIT 42 /* MPI_PT_CREDIT of mpi_shim/pt2pt/protocol.h */
#define MESSAGES  1000
/* More than messages for which its sender has still credit: with those it could be told. */
#define REFUSALS 20

static int refusals, refused;

int PtlPutInject(ptl_handle_ni_t ni, const void *data, ptl_size_t length, ptl_inject_t when,
		 ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
		 ptl_match_bits_t bits, ptl_size_t offset, ptl_hdr_data_t hdr)
{
	if (pt == PT_CREDIT && bits == (ptl_match_bits_t)tap_rank && refused < refusals) {
		refused++;
		return PTL_NO_SPACE;
	}
	return next_put_inject(ni, data, length, when, target, pt, ac, bits, offset, hdr);
}

static const char *stream(int round)
{
	static MPI_Request request[MESSAGES];
	static int value[MESSAGES];

	(void)round;
	refused = 0;
	refusals = tap_rank == 0 ? 0 : REFUSALS;
	for (int i = 0; i < MESSAGES; i++) {
		value[i] = tap_rank == 0 ? i : -1;
		if (tap_rank == 0)
			MPI_Isend(&value[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request[i]);
		else if (tap_rank == 1)
			MPI_Irecv(&value[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request[i]);
	}
	MPI_Waitall(tap_rank < 2 ? MESSAGES : 0, request, MPI_STATUSES_IGNORE);
	refusals = 0;
	for (int i = 0; i < MESSAGES && tap_rank == 1; i++)
		CHECK_INT(value[i], i);
	CHECK_INT(tap_rank == 1 ? refused : REFUSALS, REFUSALS);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	tap_case("credit: is given back once there is memory to tell of it", stream);
	return tap_end();
}
