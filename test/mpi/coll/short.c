/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collectives one after the other, in a job: short ones of all kinds in a random order, of a few
 * bytes up to more than what may go without messages, with ranks that are late and ranks that
 * run ahead; long ones, of which several segments are under way; and communicators that come and
 * go, of which nothing must stay.
 */
#include "test/mpi/coll_check.h"

#include <time.h>

#define SHORT   1500  /* ints */
#define SEGMENT 65536 /* of a long one */
#define MOST    (4 * SEGMENT)

static int in[MOST], out[MOST];

static void dawdle(void)
{
	struct timespec t;
	long long end;

	clock_gettime(CLOCK_MONOTONIC, &t);
	end = t.tv_sec * 1000000000LL + t.tv_nsec + (long long)(value_of(tap_rank, 7) % 300000);
	do {
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while (t.tv_sec * 1000000000LL + t.tv_nsec < end);
}

static const char *check_sum(const struct cm *c, int n, int base, const char *name)
{
	for (int i = 0; i < n; i++) {
		int want = c->n * base + i * (c->n * (c->n - 1) / 2);

		if (out[i] != want)
			return tap_wrong("%s of %d on %s: int %d is %d, not %d", name, n, c->name,
					 i, out[i], want);
	}
	return NULL;
}

static const char *bcast(const struct cm *c, int n, int base, int root)
{
	for (int i = 0; i < n; i++)
		out[i] = c->rank == root ? base + i : -1;
	MPI_Bcast(out, n, MPI_INT, root, c->comm);
	for (int i = 0; i < n; i++)
		if (out[i] != base + i)
			return tap_wrong("bcast of %d from %d on %s: int %d is %d, not %d", n, root,
					 c->name, i, out[i], base + i);
	return NULL;
}

static const char *one(const struct cm *c, int n, int base)
{
	int kind = draw_below(6);
	int root = draw_below(c->n), late = draw_below(4 * c->n);

	if (late == c->rank)
		dawdle();
	for (int i = 0; i < n; i++)
		in[i] = base + c->rank * i;
	switch (kind) {
	case 0:
		MPI_Barrier(c->comm);
		return NULL;
	case 1:
		MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, c->comm);
		return check_sum(c, n, base, "allreduce");
	case 2:
		MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, c->comm);
		return c->rank == root ? check_sum(c, n, base, "reduce") : NULL;
	case 3:
		memcpy(out, in, (size_t)n * sizeof(*in));
		MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, c->comm);
		return check_sum(c, n, base, "allreduce in place");
	default:
		return bcast(c, n, base, root);
	}
}

static const char *mixed(int round)
{
	const char *wrong = NULL;

	for (int i = 0; i < 60; i++) {
		int n = draw_below(4) ? draw_below(20) : draw_below(SHORT);
		const char *w = one(draw_intra(), n, 1000 * round + i);

		wrong = wrong ? wrong : w;
	}
	return wrong;
}

/* Of whole segments, too, and of a little more. */
static const char *mixed_long(int round)
{
	const char *wrong = NULL;

	for (int i = 0; i < 12; i++) {
		int n = draw_below(2) ? draw_below(MOST) : draw_below(4) * SEGMENT + draw_below(3);
		const char *w = one(draw_intra(), n, 1000 * round + i);

		wrong = wrong ? wrong : w;
	}
	return wrong;
}

/* A root that broadcasts, or ranks that contribute to a reduction, need not wait, and get ahead. */
static const char *ahead(int round)
{
	const struct cm *c = draw_intra();
	int root = draw_below(c->n);
	const char *wrong = NULL;

	for (int i = 0; i < 200; i++) {
		const char *w;

		if (i % 50 == 0 && (round & 1 ? c->rank == root : c->rank == (root + 1) % c->n))
			dawdle();
		if (round & 1) {
			in[0] = i + c->rank;
			MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, root, c->comm);
			w = c->rank == root && out[0] != c->n * i + c->n * (c->n - 1) / 2
				    ? tap_wrong("reduction %d gave %d", i, out[0])
				    : NULL;
		} else {
			w = bcast(c, i % 7 ? 1 : 1000, i, root);
		}
		wrong = wrong ? wrong : w;
	}
	return wrong;
}

/* Mappings of memory that the library shares between processes. */
static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[400];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "postern-mpi") != NULL;
	if (f)
		fclose(f);
	return n;
}

static const char *come_and_go(int round)
{
	int before = mappings();
	const char *wrong = NULL;

	for (int i = 0; i < 20 && !wrong; i++) {
		MPI_Comm comm;
		int sum = 0, one_each = 1;

		MPI_Comm_dup(draw_intra()->comm, &comm);
		for (int j = 0; j < 8; j++)
			MPI_Barrier(comm);
		MPI_Allreduce(&one_each, &sum, 1, MPI_INT, MPI_SUM, comm);
		if (sum != tap_size)
			wrong = tap_wrong("round %d: %d ranks were counted", round, sum);
		MPI_Comm_free(&comm);
	}
	if (!wrong && mappings() != before)
		wrong = tap_wrong("%d mappings of shared memory were there, then %d", before,
				  mappings());
	return wrong;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 20);
	cms_make();
	tap_case("short collectives in any order", mixed);
	tap_case("long collectives in any order", mixed_long);
	tap_case("ranks that need not wait run ahead", ahead);
	tap_rounds_set(3);
	tap_case("nothing stays of communicators that are gone", come_and_go);
	cms_free();
	return tap_end();
}
