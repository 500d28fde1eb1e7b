/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Blocking, non-blocking and persistent collectives that move data, in a job: random lengths,
 * roots, datatypes (each rank its own), places, MPI_IN_PLACE, inside a group and between two,
 * against what each rank knows it must receive.
 */
#include "paths.h"

#include <time.h>

#define MOST 24000 /* dozens of ints in a block */

static const char *first_of(const char *a, const char *b)
{
	return a ? a : b;
}

/* The values that rank `owner` uses; any rank knows them. */
static const struct shape *shape_of(int owner, int salt)
{
	return &shapes[value_of(tap_tame ? 0 : owner, -1 - salt) % SHAPES];
}

static int largest(const struct cm *c)
{
	return c->n > c->remote ? c->n : c->remote;
}

/* ---- barrier --------------------------------------------------------------------------------- */

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* None leaves before the last has come; all ranks are on one machine and have one clock. */
static const char *barrier(int round)
{
	struct cm *c = &cms[round % cm_count];
	int late = draw_below(tap_size);
	long long came, left, last = 0;
	long long until = now() + 1000000;

	while (tap_rank == late && now() < until)
		;
	came = now();
	MPI_Barrier(c->comm);
	left = now();
	if (tap_rank == 0) {
		last = came;
		for (int i = 1; i < tap_size; i++) {
			MPI_Recv(&came, 1, MPI_LONG_LONG, i, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			last = came > last ? came : last;
		}
		for (int i = 1; i < tap_size; i++)
			MPI_Send(&last, 1, MPI_LONG_LONG, i, 9, MPI_COMM_WORLD);
	} else {
		MPI_Send(&came, 1, MPI_LONG_LONG, 0, 9, MPI_COMM_WORLD);
		MPI_Recv(&last, 1, MPI_LONG_LONG, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return left < last
		       ? tap_wrong("%s: left %lld ns before the last came", c->name, last - left)
		       : NULL;
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static const char *bcast(int round)
{
	struct cm *c = draw_cm();
	struct root r = draw_root(c);
	int items = SHAPE_LCM * draw_length(MOST);
	const struct shape *s = shape_of(c->here + c->rank, 0);
	int count = items / s->k;
	struct buf b = buf_new(s, 0, count);

	(void)round;
	if (r.me)
		buf_fill(&b, s, 0, count, r.side_first + r.rank, 0);
	buf_keep(&b);
	if (r.other && !r.me)
		buf_want(&b, s, 0, count, r.side_first + r.rank, 0);
	MPI_Bcast(b.base, count, s->type, r.argument, c->comm);
	return buf_end(&b, c->name);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A vector of blocks for or from n owners, each of items[i] ints, at displs[i] (in elements). */
struct blocks {
	const struct shape *s;
	int n, counts[64], displs[64], last;
};

/* Equal blocks one after the other, or (v) places in a random order with gaps between. */
static struct blocks layout(const struct shape *s, int n, const int *items, bool v, int owner)
{
	struct blocks b = { .s = s, .n = n };
	int order[64], at = 0;

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0 && v; i--) {
		int j = (int)(value_of(owner, -100 - i) % (unsigned)(i + 1)), o = order[i];

		order[i] = order[j];
		order[j] = o;
	}
	for (int k = 0; k < n; k++) {
		int i = order[k];

		b.counts[i] = items[i] / s->k;
		b.displs[i] = at;
		at += b.counts[i] + (v ? (int)(value_of(owner, -200 - i) % 3) : 0);
	}
	b.last = at;
	return b;
}

static void fill_block(struct buf *buf, const struct blocks *b, int i, int owner, long first)
{
	buf_fill(buf, b->s, b->displs[i], b->counts[i], owner, first);
}

static void want_block(struct buf *buf, const struct blocks *b, int i, int owner, long first)
{
	buf_want(buf, b->s, b->displs[i], b->counts[i], owner, first);
}

/* How many ints a block has: all the same, or (v) by its owner and number. Drawn alike on all
 * ranks. */
struct sizes {
	bool v;
	int same, limit;
};

static struct sizes draw_sizes(bool v, int most)
{
	struct sizes z = { .v = v };

	z.same = draw_length(most);
	z.limit = draw_length(most) + 1;
	return z;
}

static int size_of(const struct sizes *z, int owner, int i)
{
	return SHAPE_LCM *
	       (z->v ? (int)(value_of(owner, -1000 - i) % (unsigned)z->limit) : z->same);
}

/* The blocks of n owners from `first` on, one of each. */
static struct blocks layout_of(const struct shape *s, const struct sizes *z, int first, int n,
			       int owner)
{
	int items[64];

	for (int i = 0; i < n; i++)
		items[i] = size_of(z, first + i, 0);
	return layout(s, n, items, z->v, owner);
}

/* ---- gather and scatter ---------------------------------------------------------------------- */

static const char *gather_any(bool v)
{
	struct cm *c = draw_cm();
	struct root r = draw_root(c);
	struct sizes z = draw_sizes(v, MOST / largest(c));
	bool in_place = draw_below(3) == 0 && !c->inter && r.me;
	int me = c->here + c->rank, mine = size_of(&z, me, 0);
	const struct shape *s = shape_of(me, 0), *t = shape_of(me, 1);
	struct blocks b = layout_of(t, &z, c->there, c->remote, me);
	struct buf in = buf_new(s, 0, mine / s->k), out = buf_new(t, 0, b.last);
	void *from = in_place ? MPI_IN_PLACE : in.base;

	buf_fill(&in, s, 0, mine / s->k, me, 0);
	if (in_place)
		fill_block(&out, &b, c->rank, me, 0);
	buf_keep(&in);
	buf_keep(&out);
	for (int i = 0; i < c->remote && r.me; i++)
		want_block(&out, &b, i, c->there + i, 0);
	if (v)
		MPI_Gatherv(from, mine / s->k, s->type, out.base, b.counts, b.displs, t->type,
			    r.argument, c->comm);
	else
		MPI_Gather(from, mine / s->k, s->type, out.base, b.counts[0], t->type, r.argument,
			   c->comm);
	return first_of(buf_end(&in, "sendbuf"), buf_end(&out, c->name));
}

static const char *gather(int round)
{
	return gather_any(round < 0);
}

static const char *gatherv(int round)
{
	return gather_any(round >= 0);
}

static const char *scatter_any(bool v)
{
	struct cm *c = draw_cm();
	struct root r = draw_root(c);
	struct sizes z = draw_sizes(v, MOST / largest(c));
	bool in_place = draw_below(3) == 0 && !c->inter && r.me;
	int me = c->here + c->rank, mine = size_of(&z, me, 0);
	const struct shape *s = shape_of(me, 0), *t = shape_of(me, 1);
	struct blocks b = layout_of(t, &z, c->there, c->remote, me);
	struct buf in = buf_new(t, 0, b.last), out = buf_new(s, 0, mine / s->k);
	void *to = in_place ? MPI_IN_PLACE : out.base;

	/* a block has the numbers of the rank it is for */
	for (int i = 0; i < c->remote; i++)
		fill_block(&in, &b, i, c->there + i, 0);
	buf_keep(&in);
	buf_keep(&out);
	if (r.other && !in_place)
		buf_want(&out, s, 0, mine / s->k, me, 0);
	if (v)
		MPI_Scatterv(in.base, b.counts, b.displs, t->type, to, mine / s->k, s->type,
			     r.argument, c->comm);
	else
		MPI_Scatter(in.base, b.counts[0], t->type, to, mine / s->k, s->type, r.argument,
			    c->comm);
	return first_of(buf_end(&in, "sendbuf"), buf_end(&out, c->name));
}

static const char *scatter(int round)
{
	return scatter_any(round < 0);
}

static const char *scatterv(int round)
{
	return scatter_any(round >= 0);
}

/* ---- allgather ------------------------------------------------------------------------------- */

static const char *allgather_any(bool v)
{
	struct cm *c = draw_cm();
	struct sizes z = draw_sizes(v, MOST / largest(c));
	bool in_place = draw_below(3) == 0 && !c->inter;
	int me = c->here + c->rank, mine = size_of(&z, me, 0);
	const struct shape *s = shape_of(me, 0), *t = shape_of(me, 1);
	struct blocks b = layout_of(t, &z, c->there, c->remote, me);
	struct buf in = buf_new(s, 0, mine / s->k), out = buf_new(t, 0, b.last);
	void *from = in_place ? MPI_IN_PLACE : in.base;

	buf_fill(&in, s, 0, mine / s->k, me, 0);
	if (in_place)
		fill_block(&out, &b, c->rank, me, 0);
	buf_keep(&in);
	buf_keep(&out);
	for (int i = 0; i < c->remote; i++)
		want_block(&out, &b, i, c->there + i, 0);
	if (v)
		MPI_Allgatherv(from, mine / s->k, s->type, out.base, b.counts, b.displs, t->type,
			       c->comm);
	else
		MPI_Allgather(from, mine / s->k, s->type, out.base, b.counts[0], t->type, c->comm);
	return first_of(buf_end(&in, "sendbuf"), buf_end(&out, c->name));
}

static const char *allgather(int round)
{
	return allgather_any(round < 0);
}

static const char *allgatherv(int round)
{
	return allgather_any(round >= 0);
}

/* ---- alltoall -------------------------------------------------------------------------------- */

/* In place both directions of a pair have one length. */
static int pair_size(const struct sizes *z, int from, int to, bool in_place)
{
	if (in_place && from > to)
		return size_of(z, to, from % 1000);
	return size_of(z, from, to % 1000);
}

static struct blocks pairs(const struct cm *c, const struct shape *s, const struct sizes *z,
			   bool send, bool in_place)
{
	int items[64], me = c->here + c->rank;

	for (int i = 0; i < c->remote; i++)
		items[i] = send ? pair_size(z, me, c->there + i, in_place)
				: pair_size(z, c->there + i, me, in_place);
	return layout(s, c->remote, items, z->v, me);
}

static const char *alltoall_any(bool v)
{
	struct cm *c = draw_cm();
	struct sizes z = draw_sizes(v, MOST / largest(c) / 4);
	bool in_place = draw_below(3) == 0 && !c->inter;
	int me = c->here + c->rank;
	const struct shape *s = shape_of(me, 0), *t = shape_of(me, 1);
	struct blocks give = pairs(c, s, &z, true, in_place),
		      take = pairs(c, t, &z, false, in_place);
	struct buf in = buf_new(s, 0, give.last), out = buf_new(t, 0, take.last);
	void *from = in_place ? MPI_IN_PLACE : in.base;

	/* the numbers of the sender, from a place that the receiver gives */
	for (int i = 0; i < c->remote; i++) {
		fill_block(&in, &give, i, me, (c->there + i) * 1000000L);
		if (in_place)
			fill_block(&out, &take, i, me, (c->there + i) * 1000000L);
	}
	buf_keep(&in);
	buf_keep(&out);
	for (int i = 0; i < c->remote; i++)
		want_block(&out, &take, i, c->there + i, me * 1000000L);
	if (v)
		MPI_Alltoallv(from, give.counts, give.displs, s->type, out.base, take.counts,
			      take.displs, t->type, c->comm);
	else
		MPI_Alltoall(from, give.counts[0], s->type, out.base, take.counts[0], t->type,
			     c->comm);
	return first_of(buf_end(&in, "sendbuf"), buf_end(&out, c->name));
}

/* Every `gap`th of so many times n ints is one element. */
static MPI_Datatype apart(int n, int gap)
{
	MPI_Datatype column, type;

	MPI_Type_vector(n, 1, gap, MPI_INT, &column);
	MPI_Type_create_resized(column, 0, (MPI_Aint)sizeof(int) * n * gap, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&column);
	return type;
}

/* More than one meeting of the ranks has room for, of which no rank's reaches into another's:
 * from one place into another, in place, and with gaps. */
static const char *alltoall_long(int round)
{
	const bool in_place = round % 3 == 1;
	/* of many ranks more than a segment of each block goes at once, and the last segment is a
	 * short one */
	const int n = (tap_size > 12 ? 5 << 20 : 2 << 20) / (int)sizeof(int) / tap_size + round;
	const int in_gap = round % 3 == 2 ? 3 : 1, out_gap = round % 3 == 2 ? 2 : 1;
	const size_t bytes = sizeof(int) * (size_t)n * (size_t)tap_size;
	int *in = malloc(bytes * (size_t)in_gap), *out = malloc(bytes * (size_t)out_gap);
	MPI_Datatype give = apart(n, in_gap), take = apart(n, out_gap);
	const char *wrong = NULL;

	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	/* shared memory is made after some collectives, and non-blocking ones go by messages */
	way = WAY_BLOCKING;
	for (int i = 0; i < 20 && round == 0; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	memset(in, 0, bytes * (size_t)in_gap);
	memset(out, 0xff, bytes * (size_t)out_gap);
	for (int i = 0; i < n * tap_size; i++)
		*(in_place ? &out[i * out_gap] : &in[i * in_gap]) = (int)value_of(tap_rank, i);
	MPI_Alltoall(in_place ? MPI_IN_PLACE : in, 1, give, out, 1, take, MPI_COMM_WORLD);
	for (int i = 0; i < n * tap_size && !wrong; i++) {
		int want = (int)value_of(i / n, (long)tap_rank * n + i % n);

		if (out[i * out_gap] != want || (out_gap > 1 && out[i * out_gap + 1] != -1))
			wrong = tap_wrong("int %d of rank %d is %x, not %x", i % n, i / n,
					  out[i * out_gap], want);
	}
	MPI_Type_free(&give);
	MPI_Type_free(&take);
	free(in);
	free(out);
	return wrong;
}

/* How many ints rank `from` has for rank `to` in a round: some none; in the last rounds only two
 * ranks have any. */
static int long_count(int round, int from, int to, int most)
{
	if (round >= 6)
		return from + to == tap_size - 1 && (from == 0 || to == 0) ? most : 0;
	return (from + to + round) % 3 == 0 ? 0 : (int)(value_of(from, to) % (unsigned int)most);
}

static void call_long(int round, bool in_place, const void *in, MPI_Datatype give, const int *sent,
		      void *out, MPI_Datatype take, const int *got, int most)
{
	MPI_Datatype gives[64], takes[64];
	int displs[64], give_at[64], take_at[64];
	MPI_Aint lb, give_extent, take_extent;

	MPI_Type_get_extent(give, &lb, &give_extent);
	MPI_Type_get_extent(take, &lb, &take_extent);
	for (int r = 0; r < tap_size; r++) {
		gives[r] = give;
		takes[r] = take;
		displs[r] = r * most;
		give_at[r] = r * most * (int)give_extent;
		take_at[r] = r * most * (int)take_extent;
	}
	if (round % 2)
		MPI_Alltoallw(in_place ? MPI_IN_PLACE : in, sent, give_at, gives, out, got, take_at,
			      takes, MPI_COMM_WORLD);
	else
		MPI_Alltoallv(in_place ? MPI_IN_PLACE : in, sent, displs, give, out, got, displs,
			      take, MPI_COMM_WORLD);
}

/* The same of lengths that differ; in place both of a pair have one. */
static const char *alltoallv_long(int round)
{
	const bool in_place = round % 3 == 1, gaps = round % 3 == 2 || round == 4;
	const int bytes = round >= 6 ? (tap_size > 4 ? 1 << 20 : 4 << 20)
				     : (tap_size > 12 ? 5 << 20 : 2 << 20) / tap_size;
	const int most = bytes / (int)sizeof(int), in_gap = gaps ? 3 : 1, out_gap = gaps ? 2 : 1;
	const size_t ints = (size_t)most * (size_t)tap_size;
	int *in = malloc(sizeof(int) * ints * (size_t)in_gap);
	int *out = malloc(sizeof(int) * ints * (size_t)out_gap);
	MPI_Datatype give = apart(1, in_gap), take = apart(1, out_gap);
	int sent[64], got[64];
	const char *wrong = NULL;

	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	way = WAY_BLOCKING;
	memset(in, 0, sizeof(int) * ints * (size_t)in_gap);
	memset(out, 0xff, sizeof(int) * ints * (size_t)out_gap);
	for (int r = 0; r < tap_size; r++) {
		int low = r < tap_rank ? r : tap_rank, high = r + tap_rank - low;

		sent[r] = long_count(round, in_place ? low : tap_rank, in_place ? high : r, most);
		got[r] = long_count(round, in_place ? low : r, in_place ? high : tap_rank, most);
		for (int i = r * most; i < r * most + sent[r]; i++)
			*(in_place ? &out[i * out_gap] : &in[i * in_gap]) =
				(int)value_of(tap_rank, i);
	}
	call_long(round, in_place, in, give, sent, out, take, got, most);
	for (size_t i = 0; i < ints && !wrong; i++) {
		int r = (int)(i / (size_t)most), at = (int)(i % (size_t)most);
		int want = at < got[r] ? (int)value_of(r, tap_rank * most + at) : -1;
		const int *have = &out[i * (size_t)out_gap];

		if (have[0] != want || (out_gap > 1 && have[1] != -1))
			wrong = tap_wrong("int %d of %d of rank %d is %x, not %x", at, got[r], r,
					  have[0], want);
	}
	MPI_Type_free(&give);
	MPI_Type_free(&take);
	free(in);
	free(out);
	return wrong;
}

static const char *alltoall(int round)
{
	return alltoall_any(round < 0);
}

static const char *alltoallv(int round)
{
	return alltoall_any(round >= 0);
}

/* Blocks of different datatypes in one buffer of ints, at displacements in bytes. */
struct mixed {
	const struct shape *s[64];
	int n, counts[64], displs[64], at[64], last;
	MPI_Datatype types[64];
};

static struct mixed mixed_pairs(const struct cm *c, const struct sizes *z, bool send, bool in_place)
{
	int me = c->here + c->rank, at = 16;
	struct mixed m = { .n = c->remote };

	for (int i = 0; i < c->remote; i++) {
		int items = send ? pair_size(z, me, c->there + i, in_place)
				 : pair_size(z, c->there + i, me, in_place);

		m.s[i] = shape_of(me, 2 + 2 * i + (send && !in_place));
		m.counts[i] = items / m.s[i]->k;
		m.types[i] = m.s[i]->type;
		m.at[i] = at;
		m.displs[i] = at * (int)sizeof(int);
		at += m.counts[i] * m.s[i]->extent + 8;
	}
	m.last = at + 8;
	return m;
}

/* A buffer of ints whose base is moved to block i, for buf_fill and buf_want. */
static struct buf moved(struct buf b, const struct mixed *m, int i)
{
	b.base += m->at[i];
	return b;
}

static const char *alltoallw(int round)
{
	struct cm *c = draw_cm();
	struct sizes z = draw_sizes(true, MOST / largest(c) / 4);
	bool in_place = draw_below(3) == 0 && !c->inter;
	int me = c->here + c->rank;
	struct mixed give = mixed_pairs(c, &z, true, in_place);
	struct mixed take = mixed_pairs(c, &z, false, in_place);
	struct buf in = buf_new(&shapes[0], 0, give.last), out = buf_new(&shapes[0], 0, take.last);

	(void)round;
	for (int i = 0; i < c->remote; i++) {
		struct buf b = moved(in, &give, i), o = moved(out, &take, i);

		buf_fill(&b, give.s[i], 0, give.counts[i], me, (c->there + i) * 1000000L);
		if (in_place)
			buf_fill(&o, take.s[i], 0, take.counts[i], me, (c->there + i) * 1000000L);
	}
	buf_keep(&in);
	buf_keep(&out);
	for (int i = 0; i < c->remote; i++) {
		struct buf o = moved(out, &take, i);

		buf_want(&o, take.s[i], 0, take.counts[i], c->there + i, me * 1000000L);
	}
	MPI_Alltoallw(in_place ? MPI_IN_PLACE : in.base, give.counts, give.displs, give.types,
		      out.base, take.counts, take.displs, take.types, c->comm);
	return first_of(buf_end(&in, "sendbuf"), buf_end(&out, c->name));
}

/* ---- large counts ---------------------------------------------------------------------------- */

#if MPI_VERSION >= 4
/* More than 2^31 elements, of no size: counts pass through unharmed. */
static const char *large_counts(int round)
{
	MPI_Count huge = ((MPI_Count)1 << 33) + round;
	MPI_Datatype nothing;
	char in[8] = { 1 }, out[8] = { 2 };
	MPI_Count counts[64];
	MPI_Aint displs[64];

	for (int i = 0; i < tap_size; i++) {
		counts[i] = huge;
		displs[i] = 0;
	}
	MPI_Type_contiguous(0, MPI_INT, &nothing);
	MPI_Type_commit(&nothing);
	MPI_Bcast_c(in, huge, nothing, 0, MPI_COMM_WORLD);
	MPI_Allgather_c(in, huge, nothing, out, huge, nothing, MPI_COMM_WORLD);
	MPI_Allgatherv_c(in, huge, nothing, out, counts, displs, nothing, MPI_COMM_WORLD);
	MPI_Alltoall_c(in, huge, nothing, out, huge, nothing, MPI_COMM_WORLD);
	MPI_Alltoallv_c(in, counts, displs, nothing, out, counts, displs, nothing, MPI_COMM_WORLD);
	MPI_Type_free(&nothing);
	return in[0] == 1 && out[0] == 2 ? NULL : tap_wrong("a buffer was written");
}
#endif

static const char *(*body)(int round);

static const char *any_way(int round)
{
	ways_draw();
	return body(round);
}

static void each_way(const char *name, const char *(*of)(int round))
{
	body = of;
	tap_case(name, any_way);
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 40);
	cms_make();
	shapes_make();
	each_way("barrier: none leaves before all have come", barrier);
	each_way("bcast", bcast);
	each_way("gather", gather);
	each_way("gatherv", gatherv);
	each_way("scatter", scatter);
	each_way("scatterv", scatterv);
	each_way("allgather", allgather);
	each_way("allgatherv", allgatherv);
	each_way("alltoall", alltoall);
	each_way("alltoallv", alltoallv);
	if (tap_tame) /* MPICH 4.0 mixes up the types of MPI_Ialltoallw */
		tap_case("alltoallw", alltoallw);
	else
		each_way("alltoallw", alltoallw);
#if MPI_VERSION >= 4
	each_way("counts above 2^31", large_counts);
#endif
	tap_rounds_set(6);
	tap_case("alltoall of long blocks", alltoall_long);
	tap_rounds_set(8);
	tap_case("alltoallv and alltoallw of long blocks", alltoallv_long);
	shapes_free();
	cms_free();
	return tap_end();
}
