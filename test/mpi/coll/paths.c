/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Long equal blocks of two ranks, or of more than there are processors, so often that the way
 * they go is tried and changed many times: through pages, or read out of the others' memory. All
 * ranks have to be of one mind each time, whatever came between; and both ways are used, where
 * one process may read another's memory and, of two, each has a processor.
 */
#define _GNU_SOURCE
#include <sys/uio.h>
#include <unistd.h>

#include "test/mpi/coll_check.h"

enum { LEAST = 8192, MOST = 100000 }; /* ints of a block */

static int *in, *out;

static const char *wrong_at(int from, int n, int at_sender)
{
	for (int i = 0; i < n; i += i % 64 ? 1 : 63) {
		int want = (int)value_of(from, at_sender + i);

		if (out[from * n + i] != want)
			return tap_wrong("int %d of %d from rank %d is %x, not %x", i, n, from,
					 (unsigned)out[from * n + i], (unsigned)want);
	}
	return NULL;
}

/* A broadcast or reduction, in place or not, of what is read or a message by its length. */
static const char *one_gives(int n, int root, int kind)
{
	const int *got = kind == 1 ? in : out;
	const bool here = tap_rank == root;

	for (int i = 0; i < n; i++) {
		in[i] = (int)value_of(tap_rank, i);
		out[i] = -1;
	}
	if (kind == 0) {
		MPI_Bcast(here ? in : out, n, MPI_INT, root, MPI_COMM_WORLD);
		got = here ? in : out;
	} else if (kind == 1) {
		MPI_Reduce(here ? MPI_IN_PLACE : in, here ? in : NULL, n, MPI_INT, MPI_SUM, root,
			   MPI_COMM_WORLD);
	} else {
		MPI_Reduce(in, here ? out : NULL, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
	}
	for (int i = 0; i < n && (kind == 0 || here); i++) {
		unsigned int want = value_of(root, i) + (kind == 0 ? 0 : value_of(1 - root, i));

		if ((unsigned int)got[i] != want)
			return tap_wrong("int %d of %d from root %d is %x, not %x", i, n, root,
					 (unsigned int)got[i], want);
	}
	return NULL;
}

/* One of either kind of various lengths, between them what is short, in place, from one rank, or
 * of no shared-memory area. */
static const char *some(int round)
{
	const int n = round % 4 ? LEAST + draw_below(LEAST) : LEAST + draw_below(MOST - LEAST);
	const int kind = draw_below(tap_size == 2 ? 4 : 3),
		  from_here = kind == 0 ? 0 : tap_rank * n;
	int word = round;

	if (kind == 3)
		return one_gives(n, round % 2, draw_below(3));
	for (int i = 0; i < tap_size * n; i++) {
		in[i] = (int)value_of(tap_rank, i);
		out[i] = -1;
	}
	if (round % 7 == 0)
		MPI_Bcast(&word, 1, MPI_INT, round % tap_size, MPI_COMM_WORLD);
	if (round % 11 == 0)
		MPI_Barrier(MPI_COMM_WORLD);
	if (kind == 0) {
		MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
	} else if (kind == 1) {
		MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
	} else {
		memcpy(out, in, sizeof(int) * (size_t)(tap_size * n));
		MPI_Alltoall(MPI_IN_PLACE, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
	}
	for (int from = 0; from < tap_size; from++) {
		const char *wrong = wrong_at(from, n, from_here);

		if (wrong)
			return wrong;
	}
	return NULL;
}

/* A rank that need not wait for the other may be as many operations ahead of it as there is room
 * for. */
static const char *ahead(int round)
{
	const int n = LEAST, root = round % tap_size;
	int words[16];

	for (int i = 0; i < n; i++)
		in[i] = (int)value_of(tap_rank, i);
	memset(out, -1, sizeof(int) * (size_t)(tap_size * n));
	MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
	for (int k = 0; k < 31; k++) {
		for (int i = 0; i < 16; i++)
			words[i] = tap_rank == root ? round + k + i : -1;
		MPI_Bcast(words, 16, MPI_INT, root, MPI_COMM_WORLD);
		for (int i = 0; i < 16; i++)
			if (words[i] != round + k + i)
				return tap_wrong("word %d of broadcast %d is %d", i, k, words[i]);
	}
	for (int from = 0; from < tap_size; from++) {
		const char *wrong = wrong_at(from, n, 0);

		if (wrong)
			return wrong;
	}
	return NULL;
}

/* ---- which way they went --------------------------------------------------------------------- */

static unsigned long count_of(const char *name)
{
	MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
	MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
	unsigned long value = 0;
	int index, count;

	if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
	    MPI_T_pvar_session_create(&session) != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
	MPI_T_pvar_read(session, handle, &value);
	MPI_T_pvar_session_free(&session);
	return value;
}

/* Whether all can read each other's memory, so far as each sees of its neighbour, and of two
 * each has a processor. */
static bool can_read(void)
{
	struct {
		long pid, at;
	} mine = { getpid(), (long)&mine }, other;
	struct iovec here, there;
	long seen = 0;
	int good, all, left = (tap_rank + tap_size - 1) % tap_size;

	MPI_Sendrecv(&mine, 2, MPI_LONG, (tap_rank + 1) % tap_size, 1, &other, 2, MPI_LONG, left, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	here = (struct iovec){ &seen, sizeof(seen) };
	there = (struct iovec){ (void *)other.at, sizeof(seen) };
	good = process_vm_readv((pid_t)other.pid, &here, 1, &there, 1, 0) == sizeof(seen) &&
	       seen == other.pid && (tap_size > 2 || sysconf(_SC_NPROCESSORS_ONLN) > 1);
	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return all;
}

static const char *both_ways(int round)
{
	const unsigned long read = count_of("mpi_coll_allgather_read") +
				   count_of("mpi_coll_alltoall_read"),
			    pages = count_of("mpi_coll_allgather_shm") +
				    count_of("mpi_coll_alltoall_shm");

	(void)round;
	if (!can_read()) {
		if (tap_rank == 0)
			printf("# one cannot read another's memory, or two ranks share a "
			       "processor\n");
		return read ? tap_wrong("%lu were read", read) : NULL;
	}
	return read && pages ? NULL : tap_wrong("%lu were read, %lu through pages", read, pages);
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	tap_start(argc, argv, 400);
	in = malloc(sizeof(int) * (size_t)tap_size * MOST);
	out = malloc(sizeof(int) * (size_t)tap_size * MOST);
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	tap_case("long blocks", some);
	tap_case("and broadcasts between them", ahead);
	tap_rounds_set(1);
	tap_case("both ways were used", both_ways);
	free(in);
	free(out);
	return tap_end();
}
