/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PTL_MPI_COLL names one algorithm of one collective, perhaps after what is preferred
 * ("messages,barrier=shm"): calls of that collective, in all forms and at odd counts, must have
 * it wherever it can do them, another one elsewhere, and be right. Which one it was is asked of
 * the performance variables.
 */
#include "test/mpi/coll_check.h"
#include "paths.h"

#define MOST 6007 /* ints in a block */

struct call {
	const struct cm *c;
	int n, root;
	bool in_place;
};

static char word[128]; /* collective=algorithm */
static char family[64];
static long node_ranks; /* as PTL_MPI_NODE says; 0: all are on one node */
static int *in, *out;

/* ---- the counters of the collective ---------------------------------------------------------- */

#define ALGORITHMS 10
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle[ALGORITHMS];
static int algorithms, wanted = -1;

static void need(int rc, const char *what)
{
	if (rc == MPI_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void read_setting(const char *name, void *value, size_t most)
{
	MPI_T_cvar_handle cvar;
	int index, count = 0;

	need(MPI_T_cvar_get_index(name, &index), name);
	need(MPI_T_cvar_handle_alloc(index, NULL, &cvar, &count), "its handle");
	if ((size_t)count > most)
		need(MPI_ERR_COUNT, "its length");
	need(MPI_T_cvar_read(cvar, value), "its value");
	MPI_T_cvar_handle_free(&cvar);
}

static void read_settings(void)
{
	read_setting("PTL_MPI_COLL", word, sizeof(word));
	read_setting("PTL_MPI_NODE", &node_ranks, 1); /* a long */
	if (strchr(word, ','))
		memmove(word, strchr(word, ',') + 1, strlen(strchr(word, ',')));
	snprintf(family, sizeof(family), "%.*s", (int)strcspn(word, "="), word);
}

static void find_counters(void)
{
	char prefix[80], full[160], name[160];
	int n, count;

	snprintf(prefix, sizeof(prefix), "mpi_coll_%s_", family);
	snprintf(full, sizeof(full), "%s%s", prefix, word + strlen(family) + 1);
	need(MPI_T_pvar_session_create(&session), "a session");
	need(MPI_T_pvar_get_num(&n), "the number of variables");
	for (int i = 0; i < n; i++) {
		int len = sizeof(name), unused;
		MPI_Datatype type;
		MPI_T_enum choices;

		need(MPI_T_pvar_get_info(i, name, &len, &unused, &unused, &type, &choices, NULL,
					 NULL, &unused, &unused, &unused, &unused),
		     "a variable");
		/* reduce is not reduce_scatter */
		if (strncmp(name, prefix, strlen(prefix)) != 0 ||
		    (!strcmp(family, "reduce") && !strncmp(name, "mpi_coll_reduce_scatter", 23)))
			continue;
		if (!strcmp(name, full))
			wanted = algorithms;
		need(MPI_T_pvar_handle_alloc(session, i, NULL, &handle[algorithms++], &count),
		     "a handle");
	}
	if (wanted < 0)
		need(MPI_ERR_ARG, full);
}

static void read_counters(unsigned long *value)
{
	for (int i = 0; i < algorithms; i++)
		need(MPI_T_pvar_read(session, handle[i], &value[i]), "a value");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *differs(const char *what, int i, int have, int want)
{
	return tap_wrong("%s: int %d is %x, not %x", what, i, have, want);
}

/* The sum over the ranks `from` to `to` - 1. */
static int sum_of(int from, int to, long i)
{
	uint32_t sum = 0;

	for (int r = from; r < to; r++)
		sum += value_of(r, i);
	return (int)sum;
}

/* No rank has left before the last one came. */
static const char *do_barrier(const struct call *k)
{
	double came, last, left;

	if (draw_below(k->c->n) == k->c->rank)
		for (double end = MPI_Wtime() + 1e-4; MPI_Wtime() < end;)
			;
	came = MPI_Wtime();
	MPI_Barrier(k->c->comm);
	left = MPI_Wtime();
	MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, k->c->comm);
	return left < last ? tap_wrong("left %g s before the last one came", last - left) : NULL;
}

static const char *do_bcast(const struct call *k)
{
	for (int i = 0; i < k->n; i++)
		out[i] = k->c->rank == k->root ? (int)value_of(0, i) : -1;
	MPI_Bcast(out, k->n, MPI_INT, k->root, k->c->comm);
	for (int i = 0; i < k->n; i++)
		if (out[i] != (int)value_of(0, i))
			return differs("bcast", i, out[i], (int)value_of(0, i));
	return NULL;
}

static const char *check_blocks(const struct call *k, const char *what)
{
	for (int r = 0; r < k->c->n; r++)
		for (int i = 0; i < k->n; i++)
			if (out[r * k->n + i] != (int)value_of(r, i))
				return differs(what, r * k->n + i, out[r * k->n + i],
					       (int)value_of(r, i));
	return NULL;
}

static void fill(int n)
{
	for (int i = 0; i < n; i++) {
		in[i] = (int)value_of(tap_rank, i);
		out[i] = -1;
	}
}

static const char *do_gather(const struct call *k)
{
	for (int i = 0; i < k->n; i++)
		in[i] = (int)value_of(k->c->rank, i);
	MPI_Gather(in, k->n, MPI_INT, out, k->n, MPI_INT, k->root, k->c->comm);
	return k->c->rank == k->root ? check_blocks(k, "gather") : NULL;
}

static const char *do_scatter(const struct call *k)
{
	for (int r = 0; r < k->c->n; r++)
		for (int i = 0; i < k->n; i++)
			in[r * k->n + i] = (int)value_of(r, i);
	MPI_Scatter(in, k->n, MPI_INT, out, k->n, MPI_INT, k->root, k->c->comm);
	for (int i = 0; i < k->n; i++)
		if (out[i] != (int)value_of(k->c->rank, i))
			return differs("scatter", i, out[i], (int)value_of(k->c->rank, i));
	return NULL;
}

/* With different counts every other time, where the algorithm takes them; the last block has one
 * int less than others. */
static const char *do_allgather(const struct call *k)
{
	const bool unequal = !strcmp(word, "allgather=shm") && node_ranks == 0 && k->n % 2;
	int counts[64], displs[64], n = k->c->n;

	for (int i = 0; i < k->n; i++)
		in[i] = (int)value_of(k->c->rank, i);
	if (!unequal) {
		MPI_Allgather(in, k->n, MPI_INT, out, k->n, MPI_INT, k->c->comm);
		return check_blocks(k, "allgather");
	}
	for (int i = 0; i < n; i++) {
		counts[i] = k->n - (i == n - 1);
		displs[i] = i * k->n;
	}
	out[n * k->n - 1] = (int)value_of(n - 1, k->n - 1); /* stays */
	MPI_Allgatherv(in, counts[k->c->rank], MPI_INT, out, counts, displs, MPI_INT, k->c->comm);
	return check_blocks(k, "allgatherv");
}

/* The same; then both of every other pair have one int less for each other. */
static void do_alltoallv(const struct call *k)
{
	int counts[64], displs[64];

	for (int r = 0; r < k->c->n; r++) {
		counts[r] = k->n - (r + k->c->rank) % 2;
		displs[r] = r * k->n;
		if (counts[r] < k->n) /* stays */
			out[(r + 1) * k->n - 1] =
				(int)value_of(r, (long)k->c->rank * k->n + k->n - 1);
	}
	MPI_Alltoallv(k->in_place ? MPI_IN_PLACE : in, counts, displs, MPI_INT, out, counts, displs,
		      MPI_INT, k->c->comm);
}

/* Block d of rank s holds the numbers of s, from d * n on. */
static const char *do_alltoall(const struct call *k)
{
	const bool unequal = !strcmp(word, "alltoall=shm") && k->n % 2;
	int all = k->c->n * k->n;

	for (int i = 0; i < all; i++)
		in[i] = out[i] = (int)value_of(k->c->rank, i);
	if (unequal)
		do_alltoallv(k);
	else
		MPI_Alltoall(k->in_place ? MPI_IN_PLACE : in, k->n, MPI_INT, out, k->n, MPI_INT,
			     k->c->comm);
	for (int r = 0; r < k->c->n; r++)
		for (int i = 0; i < k->n; i++) {
			int have = out[r * k->n + i];
			int want = (int)value_of(r, (long)k->c->rank * k->n + i);

			if (have != want)
				return differs("alltoall", r * k->n + i, have, want);
		}
	return NULL;
}

static const char *check_sums(const struct call *k, int from, int to, long first, const char *what)
{
	for (int i = 0; i < k->n; i++)
		if (out[i] != sum_of(from, to, first + i))
			return differs(what, i, out[i], sum_of(from, to, first + i));
	return NULL;
}

static void fill_own(const struct call *k, int n)
{
	fill(n);
	for (int i = 0; i < n; i++)
		in[i] = (int)value_of(k->c->rank, i);
}

static const char *do_reduce(const struct call *k)
{
	fill_own(k, k->n);
	MPI_Reduce(in, out, k->n, MPI_INT, MPI_SUM, k->root, k->c->comm);
	return k->c->rank == k->root ? check_sums(k, 0, k->c->n, 0, "reduce") : NULL;
}

static const char *do_allreduce(const struct call *k)
{
	fill_own(k, k->n);
	MPI_Allreduce(in, out, k->n, MPI_INT, MPI_SUM, k->c->comm);
	return check_sums(k, 0, k->c->n, 0, "allreduce");
}

static const char *do_reduce_scatter(const struct call *k)
{
	fill_own(k, k->c->n * k->n);
	MPI_Reduce_scatter_block(in, out, k->n, MPI_INT, MPI_SUM, k->c->comm);
	return check_sums(k, 0, k->c->n, (long)k->c->rank * k->n, "reduce_scatter");
}

static const char *do_scan(const struct call *k)
{
	fill_own(k, k->n);
	if (k->root & 1) {
		MPI_Scan(in, out, k->n, MPI_INT, MPI_SUM, k->c->comm);
		return check_sums(k, 0, k->c->rank + 1, 0, "scan");
	}
	MPI_Exscan(in, out, k->n, MPI_INT, MPI_SUM, k->c->comm);
	return k->c->rank ? check_sums(k, 0, k->c->rank, 0, "exscan") : NULL;
}

static const struct {
	const char *family;
	const char *(*call)(const struct call *k);
} calls[] = {
	{ "barrier", do_barrier },
	{ "bcast", do_bcast },
	{ "gather", do_gather },
	{ "scatter", do_scatter },
	{ "allgather", do_allgather },
	{ "alltoall", do_alltoall },
	{ "reduce", do_reduce },
	{ "allreduce", do_allreduce },
	{ "reduce_scatter", do_reduce_scatter },
	{ "scan", do_scan },
};
static const char *(*call)(const struct call *k);

/* ---- which one ------------------------------------------------------------------------------- */

static bool on_nodes(void)
{
	return node_ranks > 0 && node_ranks < tap_size;
}

/* Over several nodes: those that have a part between nodes, if they have one inside of one. */
static bool shm_can(const struct call *k)
{
	if (way != WAY_BLOCKING || (!strcmp(family, "scan") && k->n * sizeof(int) > 4096))
		return false;
	if (!on_nodes() || !strcmp(family, "barrier"))
		return true;
	return node_ranks > 1 && (!strcmp(family, "bcast") || !strcmp(family, "allgather") ||
				  !strcmp(family, "reduce") || !strcmp(family, "allreduce"));
}

/* Whether the algorithm can do the call, as portals(7) says. */
static bool can(const struct call *k)
{
	const char *algorithm = word + strlen(family) + 1;
	int n = k->c->n;

	if (!strcmp(algorithm, "shm"))
		return shm_can(k);
	if (!strcmp(word, "allgather=doubling"))
		return (n & (n - 1)) == 0;
	if (!strcmp(algorithm, "read"))
		return way == WAY_BLOCKING && !k->in_place && !on_nodes();
	if (!strcmp(family, "alltoall"))
		return k->in_place == !strcmp(algorithm, "swap");
	if (!strcmp(algorithm, "parts"))
		return k->n >= n;
	return true;
}

static const char *once(int round)
{
	struct call k = { .c = draw_intra(), .n = 1 + draw_length(MOST - 1) };
	unsigned long before[ALGORITHMS], after[ALGORITHMS];
	const char *wrong;
	long others = 0, ours;

	(void)round;
	ways_draw();
	k.root = draw_below(k.c->n);
	k.in_place = !strcmp(family, "alltoall") && draw_below(3) == 0;
	read_counters(before);
	wrong = call(&k);
	read_counters(after);
	for (int i = 0; i < algorithms; i++)
		others += i == wanted ? 0 : (long)(after[i] - before[i]);
	ours = (long)(after[wanted] - before[wanted]);
	/* between nodes it has one of the others, which is counted, too */
	if (can(&k) && on_nodes() && others == 1)
		others = 0;
	if (!wrong && (ours != can(&k) || others != !can(&k)))
		wrong = tap_wrong("%d ints, way %d%s: %ld by the algorithm, %ld by others", k.n,
				  way, k.in_place ? ", in place" : "", ours, others);
	return wrong;
}

/* Until there is what is shared, which the first blocking collectives go without. */
static const char *begin(int round)
{
	struct call k = { .c = &cms[round % 2], .n = 3 };

	way = WAY_BLOCKING;
	return call(&k);
}

int main(int argc, char **argv)
{
	int unused;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &unused);
	read_settings();
	tap_start(argc, argv, 60);
	find_counters();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].family, family))
			call = calls[i].call;
	in = malloc(sizeof(int) * MOST * (size_t)tap_size);
	out = malloc(sizeof(int) * MOST * (size_t)tap_size);
	if (!call || !in || !out)
		need(MPI_ERR_OTHER, "a collective and memory");
	cms_make();
	tap_rounds_set(10);
	tap_case("the first calls are right", begin);
	tap_rounds_set(60);
	tap_case(word, once);
	cms_free();
	free(in);
	free(out);
	MPI_T_pvar_session_free(&session);
	MPI_T_finalize();
	return tap_end();
}
