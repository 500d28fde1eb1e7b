/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MX in a job of several ranks: each opens the id that is its rank, connects to all others, and
 * exchanges messages of each kind with them. Compiled with WITH_MPI it does so beside MPI in the
 * same process, whose messages go to and fro meanwhile; the argument "mx" starts MX first.
 */
#include <cnos_mpi_os.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

#include "mx_check.h"

enum { RANKS_MOST = 16, ROUNDS = 40 };

static const uint32_t lengths[] = { 0, 8, 3000, 32768, 50000, 400000 };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), MOST = 400000 };

static int rank, size;
static mx_endpoint_addr_t addr[RANKS_MOST];

static void start_mx(void)
{
	mx_set_error_handler(MX_ERRORS_RETURN);
	mxc_ok(mx_init());
	mxc_ok(mx_open_endpoint(0, (uint32_t)rank, MXC_KEY, NULL, 0, &mxc_ep));
	mxc_ok(mx_board_number_to_nic_id(0, &mxc_nic));
}

/* Others may not have opened theirs yet. */
static void connect_all(void)
{
	for (int i = 0; i < size; i++) {
		double end = mxc_now() + MXC_SECONDS;
		mx_return_t ret;

		do
			ret = mx_connect(mxc_ep, mxc_nic, (uint32_t)i, MXC_KEY, 5000, &addr[i]);
		while (ret == MX_CONNECTION_FAILED && mxc_now() < end);
		mxc_ok(ret);
	}
}

static void exchange(unsigned int round)
{
	uint32_t length = lengths[round % LENGTHS];
	mx_request_t s[RANKS_MOST], r[RANKS_MOST];
	static unsigned char *out, *in[RANKS_MOST];

	if (!out)
		out = malloc(MOST);
	mxc_fill(out, length, round + (unsigned int)rank);
	for (int i = 0; i < size; i++) {
		if (!in[i])
			in[i] = malloc(MOST);
		memset(in[i], 0, length);
		r[i] = mxc_irecv(in[i], length, (uint64_t)i << 32 | round, MX_MATCH_MASK_NONE);
	}
	for (int i = 0; i < size; i++)
		s[i] = round % 3 ? mxc_isend(out, length, addr[i], (uint64_t)rank << 32 | round)
				 : mxc_issend(out, length, addr[i], (uint64_t)rank << 32 | round);
	for (int i = 0; i < size; i++) {
		mx_status_t st = mxc_wait(r[i]);

		mxc_is(st.code, MX_STATUS_SUCCESS);
		mxc_true(!memcmp(&st.source, &addr[i], sizeof(addr[i])));
		mxc_holds(in[i], length, round + (unsigned int)i);
		mxc_is(mxc_wait(s[i]).code, MX_STATUS_SUCCESS);
	}
}

#ifdef WITH_MPI
static void start_mpi(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* A ring of MPI messages that are on their way while MX has its turn. */
static void exchange_with_mpi(unsigned int round)
{
	static char out[70000], in[70000];
	int bytes = round % 2 ? 100 : 70000, sum = 0, one = 1;
	MPI_Request q[2];

	memset(out, (int)round + rank, (size_t)bytes);
	MPI_Irecv(in, bytes, MPI_CHAR, (rank + size - 1) % size, (int)round, MPI_COMM_WORLD, &q[0]);
	MPI_Isend(out, bytes, MPI_CHAR, (rank + 1) % size, (int)round, MPI_COMM_WORLD, &q[1]);
	exchange(round);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < bytes; i++)
		mxc_is((unsigned char)in[i],
		       (unsigned char)((int)round + (rank + size - 1) % size));
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	mxc_is(sum, size);
}
#endif

/* Nobody closes what another one still needs. */
static void meet_before_the_end(void)
{
#ifdef WITH_MPI
	MPI_Barrier(MPI_COMM_WORLD);
#else
	for (int i = 0; i < size; i++)
		mxc_ok(mx_isend(mxc_ep, NULL, 0, addr[i], 1 << 20, NULL, NULL));
	for (int i = 0; i < size; i++)
		mxc_wait(mxc_irecv(NULL, 0, 1 << 20, MX_MATCH_MASK_NONE));
#endif
}

int main(int argc, char **argv)
{
#ifdef WITH_MPI
	bool mx_first = argc > 1 && !strcmp(argv[1], "mx");

	if (!mx_first)
		start_mpi(&argc, &argv);
	rank = cnos_get_rank();
	start_mx();
	if (mx_first)
		start_mpi(&argc, &argv);
#else
	(void)argc;
	(void)argv;
	rank = cnos_get_rank();
	size = cnos_get_size();
	start_mx();
#endif
	mxc_rank = rank;
	mxc_true(size <= RANKS_MOST);
	connect_all();
	for (unsigned int round = 0; round < ROUNDS; round++)
#ifdef WITH_MPI
		exchange_with_mpi(round);
#else
		exchange(round);
#endif
	meet_before_the_end();
	mxc_ok(mx_close_endpoint(mxc_ep));
	mxc_ok(mx_finalize());
#ifdef WITH_MPI
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
#endif
	if (!rank)
		printf("1..1\nok 1 - %d ranks exchange messages of each kind\n", size);
	return 0;
}
