/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A rank that can send nothing in the middle of a collective, not even that it has no memory,
 * says so as soon as it can: no rank waits for ever, who is told that all went well has the
 * right result, and the collectives that follow are right. Its calls of Portals fail here as
 * often as they are told to.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <mpi.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/mpi/job_check.h"
#include "test/mpi/put_inject.h"

/* ---- Portals without memory ------------------------------------------------------------------ */

#define PT_RECV 40 /* MPI_PT_RECV of mpi_shim/pt2pt/protocol.h */
#define PT_READ 41 /* MPI_PT_READ */

/* Of a message: as a short one, as a long one, the empty one in its place, and that once more,
 * twice. */
#define REFUSALS 5

static int refusals, refused;

static bool refuse(void)
{
	if (!refusals)
		return false;
	refusals--;
	refused++;
	return true;
}

int PtlPutInject(ptl_handle_ni_t ni, const void *data, ptl_size_t length, ptl_inject_t when,
		 ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
		 ptl_match_bits_t bits, ptl_size_t offset, ptl_hdr_data_t hdr)
{
	if (pt == PT_RECV && refuse())
		return PTL_NO_SPACE;
	return next_put_inject(ni, data, length, when, target, pt, ac, bits, offset, hdr);
}

int PtlMEMDAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t from,
		  ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink_me,
		  ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t unlink_md, ptl_handle_me_t *me,
		  ptl_handle_md_t *at)
{
	static int (*next)(ptl_handle_ni_t, ptl_pt_index_t, ptl_process_id_t, ptl_match_bits_t,
			   ptl_match_bits_t, ptl_unlink_t, ptl_ins_pos_t, ptl_md_t, ptl_unlink_t,
			   ptl_handle_me_t *, ptl_handle_md_t *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PtlMEMDAttach");
	if (pt == PT_READ && refuse())
		return PTL_NO_SPACE;
	return next(ni, pt, from, bits, ignore, unlink_me, position, md, unlink_md, me, at);
}

/* ---- the collectives ------------------------------------------------------------------------- */

#define N     8
#define RANKS 8

static int in[N * RANKS], out[N * RANKS];

static int given(int rank, int i)
{
	return 100 * rank + i;
}

static void fill(void)
{
	for (int i = 0; i < N * RANKS; i++) {
		in[i] = given(job_rank, i);
		out[i] = -1;
	}
}

/* Each says by its result whether it went well, and by *right what came. */

static int bcast(bool *right)
{
	int rc = MPI_Bcast(job_rank == 0 ? in : out, N, MPI_INT, 0, MPI_COMM_WORLD);

	*right = true;
	for (int i = 0; i < N && job_rank; i++)
		*right &= out[i] == given(0, i);
	return rc;
}

static int finish(int rc, MPI_Request *request)
{
	return rc ? rc : MPI_Wait(request, MPI_STATUS_IGNORE);
}

static bool has_sums(void)
{
	for (int i = 0; i < N; i++) {
		int sum = 0;

		for (int rank = 0; rank < job_size; rank++)
			sum += given(rank, i);
		if (out[i] != sum)
			return false;
	}
	return true;
}

static int allreduce(bool *right)
{
	int rc = MPI_Allreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

	*right = has_sums();
	return rc;
}

static int iallreduce(bool *right)
{
	MPI_Request request;
	int rc = MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);

	rc = finish(rc, &request);
	*right = has_sums();
	return rc;
}

static int alltoall(bool *right)
{
	int rc = MPI_Alltoall(in, N, MPI_INT, out, N, MPI_INT, MPI_COMM_WORLD);

	*right = true;
	for (int i = 0; i < N * job_size; i++)
		*right &= out[i] == given(i / N, job_rank * N + i % N);
	return rc;
}

static int (*now)(bool *right);

static int call(bool *right)
{
	fill();
	return now(right);
}

static void each_rank_in_turn(void)
{
	bool right;

	for (int poor = 0; poor < job_size; poor++) {
		int class = MPI_SUCCESS, rc, was_refused;

		MPI_Barrier(MPI_COMM_WORLD);
		refused = 0;
		refusals = job_rank == poor ? REFUSALS : 0;
		rc = call(&right);
		refusals = 0;
		was_refused = refused;
		if (rc)
			MPI_Error_class(rc, &class);
		CHECK(rc || right);
		if (job_rank != poor)
			CHECK(class == MPI_SUCCESS || class == MPI_ERR_OTHER);
		else if (was_refused)
			CHECK_EQUAL(class, MPI_ERR_NO_MEM);
		if (was_refused)
			CHECK_EQUAL(was_refused, REFUSALS);
		/* who sends something in all of them */
		CHECK(was_refused || job_rank != poor || (now == bcast && poor));
		for (int i = 0; i < 2; i++) {
			CHECK_EQUAL(call(&right), MPI_SUCCESS);
			CHECK(right);
		}
	}
}

static void run(const char *name, int (*collective)(bool *right))
{
	now = collective;
	job_case(name, each_rank_in_turn);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	run("bcast", bcast);
	run("allreduce", allreduce);
	run("iallreduce", iallreduce);
	run("alltoall", alltoall);
	return job_end();
}
