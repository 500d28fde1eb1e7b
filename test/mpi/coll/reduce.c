/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Blocking, non-blocking and persistent collectives that reduce, in a job: predefined operations
 * and users', commutative and not, on types with gaps and a negative lower bound, against a fold
 * over the ranks in their order. And that all ranks get the same bits.
 */
#include "paths.h"

#include <math.h>

#define PRIME 65521u

/* An element as its numbers. */
struct element {
	uint32_t w[4];
};

/* ---- operations ------------------------------------------------------------------------------ */

enum { SUM_INT, MAX_INT, BXOR_64, MINLOC_2INT, SUM_DOUBLE, MATRIX, WRAPPED_ADD, MATRIX_C, KINDS };

struct kind {
	const char *name;
	MPI_Datatype type;
	MPI_Op op;
	int extent, low; /* bytes; where an element begins */
	bool commutes;
};
static struct kind kinds[KINDS];

/* Elements of the users' type: four numbers with a gap, from 8 bytes before the address on. */
#define GAPPED_EXTENT 24
static const int gapped_at[4] = { -8, -4, 4, 8 };

static struct element gapped_load(const char *at)
{
	struct element e;

	for (int i = 0; i < 4; i++)
		memcpy(&e.w[i], at + gapped_at[i], 4);
	return e;
}

static void gapped_store(char *at, const struct element *e)
{
	for (int i = 0; i < 4; i++)
		memcpy(at + gapped_at[i], &e->w[i], 4);
}

static struct element multiply(struct element a, struct element b)
{
	struct element c;

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			c.w[2 * i + j] = (a.w[2 * i] * b.w[j] % PRIME +
					  a.w[2 * i + 1] * b.w[2 + j] % PRIME) %
					 PRIME;
	return c;
}

static struct element add(struct element a, struct element b)
{
	for (int i = 0; i < 4; i++)
		a.w[i] = (a.w[i] + b.w[i]) % PRIME;
	return a;
}

static void user_loop(char *in, char *inout, long n, bool matrix)
{
	for (long i = 0; i < n; i++, in += GAPPED_EXTENT, inout += GAPPED_EXTENT) {
		struct element a = gapped_load(in), b = gapped_load(inout);
		struct element c = matrix ? multiply(a, b) : add(a, b);

		gapped_store(inout, &c);
	}
}

static void user_matrix(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int size;

	/* a callback may call MPI, and has been given the datatype */
	MPI_Type_size(*type, &size);
	if (size == 16)
		user_loop(in, inout, *n, true);
}

static void user_add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	user_loop(in, inout, *n, false);
}

#if MPI_VERSION >= 4
static void user_matrix_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
	(void)type;
	user_loop(in, inout, (long)*n, true);
}
#endif

static MPI_Datatype gapped;

static void kinds_make(void)
{
	MPI_Aint displs[4];
	int ones[4] = { 1, 1, 1, 1 };
	MPI_Op matrix, sum, matrix_c;
	MPI_Datatype t;

	for (int i = 0; i < 4; i++)
		displs[i] = gapped_at[i];
	MPI_Type_create_hindexed(4, ones, displs, MPI_UNSIGNED, &t);
	MPI_Type_create_resized(t, -8, GAPPED_EXTENT, &gapped);
	MPI_Type_free(&t);
	MPI_Type_commit(&gapped);
	MPI_Op_create(user_matrix, 0, &matrix);
	MPI_Op_create(user_add, 1, &sum);
#if MPI_VERSION >= 4
	MPI_Op_create_c(user_matrix_c, 0, &matrix_c);
#else
	MPI_Op_create(user_matrix, 0, &matrix_c);
#endif
	kinds[SUM_INT] = (struct kind){ "MPI_SUM of MPI_INT", MPI_INT, MPI_SUM, 4, 0, true };
	kinds[MAX_INT] = (struct kind){ "MPI_MAX of MPI_INT", MPI_INT, MPI_MAX, 4, 0, true };
	kinds[BXOR_64] =
		(struct kind){ "MPI_BXOR of MPI_UINT64_T", MPI_UINT64_T, MPI_BXOR, 8, 0, true };
	kinds[MINLOC_2INT] = (struct kind){ "MPI_MINLOC", MPI_2INT, MPI_MINLOC, 8, 0, true };
	kinds[SUM_DOUBLE] =
		(struct kind){ "MPI_SUM of MPI_DOUBLE", MPI_DOUBLE, MPI_SUM, 8, 0, true };
	kinds[MATRIX] = (struct kind){ "matrix product", gapped, matrix, GAPPED_EXTENT, -8, false };
	kinds[WRAPPED_ADD] = (struct kind){ "sum mod p", gapped, sum, GAPPED_EXTENT, -8, true };
	kinds[MATRIX_C] =
		(struct kind){ "matrix product (_c)", gapped, matrix_c, GAPPED_EXTENT, -8, false };
}

static void kinds_free(void)
{
	MPI_Op_free(&kinds[MATRIX].op);
	MPI_Op_free(&kinds[WRAPPED_ADD].op);
	MPI_Op_free(&kinds[MATRIX_C].op);
	MPI_Type_free(&gapped);
}

/* Element i of what rank `owner` contributes. */
static struct element contributed(int kind, int owner, long i)
{
	struct element e = { { value_of(owner, 4 * i), value_of(owner, 4 * i + 1),
			       value_of(owner, 4 * i + 2), value_of(owner, 4 * i + 3) } };

	if (kind == MINLOC_2INT) {
		e.w[0] %= 5; /* so that the index decides now and then */
		e.w[1] %= 1000;
	} else if (kind == SUM_DOUBLE) {
		e.w[0] >>= 8; /* whole numbers: exact in any order */
	} else if (kind >= MATRIX) {
		for (int j = 0; j < 4; j++)
			e.w[j] %= PRIME;
	}
	return e;
}

static struct element combined(int kind, struct element a, struct element b)
{
	switch (kind) {
	case SUM_INT:
	case SUM_DOUBLE:
		b.w[0] += a.w[0];
		break;
	case MAX_INT:
		b.w[0] = (int)a.w[0] > (int)b.w[0] ? a.w[0] : b.w[0];
		break;
	case BXOR_64:
		b.w[0] ^= a.w[0];
		b.w[1] ^= a.w[1];
		break;
	case MINLOC_2INT:
		if (a.w[0] < b.w[0] || (a.w[0] == b.w[0] && a.w[1] < b.w[1]))
			b = a;
		break;
	case WRAPPED_ADD:
		b = add(a, b);
		break;
	default:
		b = multiply(a, b);
	}
	return b;
}

/* Element i of the result over ranks first to last - 1, from the left. */
static struct element folded(int kind, int first, int last, long i)
{
	struct element e = contributed(kind, first, i);

	for (int r = first + 1; r < last; r++)
		e = combined(kind, e, contributed(kind, r, i));
	return e;
}

static void store(int kind, char *at, struct element e)
{
	double d = e.w[0];

	if (kind >= MATRIX)
		gapped_store(at, &e);
	else if (kind == SUM_DOUBLE)
		memcpy(at, &d, sizeof(d));
	else
		memcpy(at, e.w, (size_t)kinds[kind].extent);
}

/* ---- vectors --------------------------------------------------------------------------------- */

struct vec {
	int kind;
	char *mem, *want, *base; /* base: what MPI is given */
	size_t bytes;
	long n;
};

static struct vec vec_new(int kind, long n)
{
	struct vec v = { .kind = kind, .n = n };

	v.bytes = (size_t)(n * kinds[kind].extent + 128);
	v.mem = malloc(v.bytes);
	v.want = malloc(v.bytes);
	if (!v.mem || !v.want) {
		fprintf(stderr, "no memory for a vector\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(v.mem, 0x5c, v.bytes);
	v.base = v.mem + 64;
	return v;
}

/* Elements first... of what `owner` contributes. */
static void vec_fill(struct vec *v, int owner)
{
	for (long i = 0; i < v->n; i++)
		store(v->kind, v->base + i * kinds[v->kind].extent, contributed(v->kind, owner, i));
}

static void vec_keep(struct vec *v)
{
	memcpy(v->want, v->mem, v->bytes);
}

/* n results over ranks [first, last), the ones from element `from` on, at the beginning. */
static void vec_want(struct vec *v, int first, int last, long from, long n)
{
	char *base = v->want + (v->base - v->mem);

	for (long i = 0; i < n; i++)
		store(v->kind, base + i * kinds[v->kind].extent,
		      folded(v->kind, first, last, from + i));
}

static const char *vec_end(struct vec *v, const char *name)
{
	const char *wrong = NULL;

	if (memcmp(v->mem, v->want, v->bytes) != 0) {
		size_t i = 0;

		while (v->mem[i] == v->want[i])
			i++;
		wrong = tap_wrong("%s, %s: byte %ld of %ld elements differs", name,
				  kinds[v->kind].name, (long)i - (long)(v->base - v->mem), v->n);
	}
	free(v->mem);
	free(v->want);
	return wrong;
}

static const char *both_end(struct vec *in, struct vec *out, const char *name)
{
	const char *a = vec_end(in, "sendbuf"), *b = vec_end(out, name);

	return a ? a : b;
}

static int draw_count(int kind)
{
	return draw_length(kind >= MATRIX ? 6000 : 120000);
}

static bool in_place_works(int root)
{
	return root == 0 || !tap_tame;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const char *reduce(int round)
{
	struct cm *c = draw_cm();
	struct root r = draw_root(c);
	int kind = round % KINDS, n = draw_count(kind);
	bool in_place = draw_below(3) == 0 && !c->inter && r.me && in_place_works(r.rank);
	int me = c->here + c->rank;
	struct vec in = vec_new(kind, n), out = vec_new(kind, n);

	vec_fill(in_place ? &out : &in, me);
	vec_keep(&in);
	vec_keep(&out);
	if (r.me)
		vec_want(&out, c->there, c->there + c->remote, 0, n);
	MPI_Reduce(in_place ? MPI_IN_PLACE : in.base, out.base, n, kinds[kind].type, kinds[kind].op,
		   r.argument, c->comm);
	return both_end(&in, &out, c->name);
}

static const char *allreduce(int round)
{
	struct cm *c = draw_cm();
	int kind = round % KINDS, n = draw_count(kind);
	bool in_place = draw_below(3) == 0 && !c->inter;
	struct vec in = vec_new(kind, n), out = vec_new(kind, n);

	vec_fill(in_place ? &out : &in, c->here + c->rank);
	vec_keep(&in);
	vec_keep(&out);
	vec_want(&out, c->there, c->there + c->remote, 0, n);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in.base, out.base, n, kinds[kind].type,
		      kinds[kind].op, c->comm);
	return both_end(&in, &out, c->name);
}

/* Counts of the local ranks; with two groups both have the same sum. */
static long draw_parts(const struct cm *c, int *counts, int most, bool block)
{
	int n[2] = { c->here <= c->there ? c->n : c->remote,
		     c->here <= c->there ? c->remote : c->n };
	long sum = 0;

	if (block) {
		int unit = draw_length(most / (n[0] > n[1] ? n[0] : n[1]));

		for (int i = 0; i < c->n; i++)
			counts[i] = c->inter ? unit * c->remote : unit;
	} else {
		int total = draw_length(most);

		for (int i = 0; i < c->n; i++) {
			int left = total - (int)sum;

			counts[i] =
				left && i < c->n - 1
					? (int)(value_of(c->here, -50 - i) % (unsigned)(left + 1))
					: left;
			sum += counts[i];
		}
	}
	sum = 0;
	for (int i = 0; i < c->n; i++)
		sum += counts[i];
	return sum;
}

static const char *reduce_scatter_any(int round, bool block)
{
	struct cm *c = draw_cm();
	int kind = block && tap_tame ? round % MATRIX : round % KINDS, counts[64];
	long sum = draw_parts(c, counts, kind >= MATRIX ? 6000 : 120000, block), before = 0;
	bool in_place = draw_below(3) == 0 && !c->inter;
	struct vec in = vec_new(kind, sum), out;
	struct vec whole = vec_new(kind, sum);

	for (int i = 0; i < c->rank; i++)
		before += counts[i];
	out = in_place ? whole : vec_new(kind, counts[c->rank]);
	vec_fill(in_place ? &out : &in, c->here + c->rank);
	vec_keep(&in);
	vec_keep(&out);
	vec_want(&out, c->there, c->there + c->remote, before, counts[c->rank]);
	if (block)
		MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in.base, out.base, counts[0],
					 kinds[kind].type, kinds[kind].op, c->comm);
	else
		MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : in.base, out.base, counts,
				   kinds[kind].type, kinds[kind].op, c->comm);
	if (in_place) {
		/* what lies behind the result is the library's to use */
		size_t end = (size_t)(counts[c->rank] * kinds[kind].extent) + 64;
		size_t all = (size_t)(sum * kinds[kind].extent) + 64;

		end += (size_t)(long)kinds[kind].low;
		all += (size_t)(long)kinds[kind].low;
		memcpy(out.want + end, out.mem + end, all - end);
	} else {
		free(whole.mem);
		free(whole.want);
	}
	return both_end(&in, &out, c->name);
}

static const char *reduce_scatter(int round)
{
	return reduce_scatter_any(round, false);
}

static const char *reduce_scatter_block(int round)
{
	return reduce_scatter_any(round, true);
}

/* Parts of different lengths, one of them empty, longer than what the ranks have in common has
 * room for at once. */
static const char *reduce_scatter_long(int round)
{
	const bool in_place = round % 2;
	int counts[64], sum = 0, before = 0, *in, *out;
	const char *wrong = NULL;

	/* shared memory is made after some collectives, and non-blocking ones go by messages */
	way = WAY_BLOCKING;
	for (int i = 0; i < 20 && round == 0; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < tap_size; i++) {
		counts[i] = i == 1 ? 0 : (1 << 20) / (int)sizeof(int) / tap_size + i * 1000 + round;
		before += i < tap_rank ? counts[i] : 0;
		sum += counts[i];
	}
	in = malloc(sizeof(int) * (size_t)sum);
	out = in_place ? in : malloc(sizeof(int) * (size_t)(counts[tap_rank] + 1));
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < sum; i++)
		in[i] = (int)value_of(tap_rank, i);
	MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : in, out, counts, MPI_INT, MPI_BXOR,
			   MPI_COMM_WORLD);
	for (int i = 0; i < counts[tap_rank] && !wrong; i++) {
		int want = 0;

		for (int r = 0; r < tap_size; r++)
			want ^= (int)value_of(r, before + i);
		if (out[i] != want)
			wrong = tap_wrong("int %d of %d is %x, not %x", i, counts[tap_rank], out[i],
					  want);
	}
	if (!in_place)
		free(out);
	free(in);
	return wrong;
}

static const char *scan_any(int round, bool exclusive)
{
	struct cm *c = draw_intra();
	int kind = round % KINDS, n = draw_count(kind);
	bool in_place = draw_below(3) == 0;
	struct vec in = vec_new(kind, n), out = vec_new(kind, n);
	const void *from = in_place ? MPI_IN_PLACE : in.base;

	vec_fill(in_place ? &out : &in, c->rank);
	vec_keep(&in);
	vec_keep(&out);
	if (!exclusive)
		vec_want(&out, 0, c->rank + 1, 0, n);
	else if (c->rank > 0)
		vec_want(&out, 0, c->rank, 0, n);
	if (exclusive)
		MPI_Exscan(from, out.base, n, kinds[kind].type, kinds[kind].op, c->comm);
	else
		MPI_Scan(from, out.base, n, kinds[kind].type, kinds[kind].op, c->comm);
	if (exclusive && c->rank == 0)
		memcpy(out.want, out.mem, out.bytes); /* undefined there */
	return both_end(&in, &out, c->name);
}

static const char *scan(int round)
{
	return scan_any(round, false);
}

static const char *exscan(int round)
{
	return scan_any(round, true);
}

/* A number in each of three types; in two of them with the rank that has it, and a gap. */
struct short_at {
	short v;
	int at;
};

struct double_at {
	double v;
	int at;
};

static void put_number(int kind, void *buf, int i, int v, int at)
{
	if (kind == 0)
		((int *)buf)[i] = v;
	else if (kind == 1)
		((struct short_at *)buf)[i] = (struct short_at){ .v = (short)v, .at = at };
	else
		((struct double_at *)buf)[i] = (struct double_at){ .v = v, .at = at };
}

static bool is_number(int kind, const void *buf, int i, int v, int at)
{
	if (kind == 0)
		return ((const int *)buf)[i] == v;
	if (kind == 1)
		return ((const struct short_at *)buf)[i].v == v &&
		       ((const struct short_at *)buf)[i].at == at;
	return ((const struct double_at *)buf)[i].v == v &&
	       ((const struct double_at *)buf)[i].at == at;
}

/* Of the ranks below `end`: the least, and who has it first, or of ints the exclusive or. */
static bool is_prefix(int kind, const void *buf, int i, int end)
{
	int v = (int)value_of(0, i) % 1000, at = 0;

	for (int r = 1; r < end; r++) {
		int other = (int)value_of(r, i) % 1000;

		if (kind == 0) {
			v ^= other;
		} else if (other < v) {
			v = other;
			at = r;
		}
	}
	return is_number(kind, buf, i, v, at);
}

static const char *scan_of(int kind, int n, bool exclusive, bool in_place)
{
	static const int extents[] = { sizeof(int), sizeof(struct short_at),
				       sizeof(struct double_at) };
	const MPI_Datatype types[] = { MPI_INT, MPI_SHORT_INT, MPI_DOUBLE_INT };
	const MPI_Op op = kind ? MPI_MINLOC : MPI_BXOR;
	const bool none = exclusive && tap_rank == 0;
	char *in = malloc((size_t)(n * extents[kind])), *out = malloc((size_t)(n * extents[kind]));
	const char *wrong = NULL;

	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < n; i++)
		put_number(kind, in_place ? out : in, i, (int)value_of(tap_rank, i) % 1000,
			   tap_rank);
	if (exclusive)
		MPI_Exscan(in_place ? MPI_IN_PLACE : in, none && !in_place ? NULL : out, n,
			   types[kind], op, MPI_COMM_WORLD);
	else
		MPI_Scan(in_place ? MPI_IN_PLACE : in, out, n, types[kind], op, MPI_COMM_WORLD);
	for (int i = 0; i < n && !wrong && !none; i++)
		if (!is_prefix(kind, out, i, tap_rank + !exclusive))
			wrong = tap_wrong("kind %d%s%s: element %d of %d is wrong", kind,
					  exclusive ? ", exclusive" : "",
					  in_place ? ", in place" : "", i, n);
	free(in);
	free(out);
	return wrong;
}

/* Of lengths at which data begin to go in segments, and to go as one again. */
static const char *scan_long(int round)
{
	static const int sizes[] = { 4, 6, 12 };
	const int kind = round % 3, bytes = round / 3 % 2 ? 128 << 10 : 32 << 10;
	const int n = bytes / sizes[kind] + round / 6 % 2;
	const char *wrong = NULL;

	way = WAY_BLOCKING;
	for (int i = 0; i < 4 && !wrong; i++)
		wrong = scan_of(kind, n, i % 2, i / 2);
	return wrong;
}

static const char *reduce_local(int round)
{
	int kind = round % KINDS, n = draw_count(kind);
	struct vec in = vec_new(kind, n), out = vec_new(kind, n);

	vec_fill(&in, 0);
	vec_fill(&out, 1);
	vec_keep(&in);
	vec_keep(&out);
	vec_want(&out, 0, 2, 0, n);
	MPI_Reduce_local(in.base, out.base, n, kinds[kind].type, kinds[kind].op);
	return both_end(&in, &out, "local");
}

/* ---- the same bits --------------------------------------------------------------------------- */

/* Sums of fractions, and extremes of zeros of both signs: they depend on the order. */
static const char *same_bits(int round)
{
	int n = 1 + draw_length(20000), differ;
	/* MPICH 4.0 mixes up zeros of different sign */
	MPI_Op op = tap_tame         ? MPI_SUM
		    : round % 3 == 0 ? MPI_MAX
		    : round % 3 == 1 ? MPI_MIN
				     : MPI_SUM;
	double *in = malloc((size_t)n * sizeof(*in)), *out = malloc((size_t)n * sizeof(*out));
	double *first = malloc((size_t)n * sizeof(*first));

	for (int i = 0; i < n; i++) {
		uint32_t x = value_of(tap_rank, i);

		in[i] = op == MPI_SUM ? x / 3.0 * pow(10, x % 20) : x & 1 ? 0.0 : -0.0;
	}
	MPI_Allreduce(in, out, n, MPI_DOUBLE, op, MPI_COMM_WORLD);
	memcpy(first, out, (size_t)n * sizeof(*out));
	if (tap_rank == 0)
		for (int i = 1; i < tap_size; i++)
			MPI_Send(first, n, MPI_DOUBLE, i, 3, MPI_COMM_WORLD);
	else
		MPI_Recv(first, n, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	differ = memcmp(first, out, (size_t)n * sizeof(*out)) != 0;
	free(in);
	free(out);
	free(first);
	return differ ? tap_wrong("%d doubles are not those of rank 0", n) : NULL;
}

/* A new communicator's first reductions, of which the later ones may go another way, and the
 * root's of them. Extremes depend on the order, too, of zeros of both signs and of what is not a
 * number. */
static const char *same_bits_again(int round)
{
	enum { CALLS = 6, MOST = 40000 };
	static double in[MOST], out[MOST], first[MOST];
	int n = 1 + draw_length(MOST - 1), root = draw_below(tap_size), differ = 0;
	const bool all = round % 2;
	MPI_Op op = tap_tame             ? MPI_SUM
		    : round / 2 % 3 == 0 ? MPI_MAX
		    : round / 2 % 3 == 1 ? MPI_MIN
					 : MPI_SUM;
	MPI_Comm comm;

	for (int i = 0; i < n; i++) {
		uint32_t x = value_of(tap_rank, i);

		in[i] = op == MPI_SUM ? x / 3.0 * pow(10, x % 20)
			: x % 3 == 0  ? (double)NAN
			: x % 3 == 1  ? 0.0
				      : -0.0;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int k = 0; k < CALLS; k++) {
		if (all)
			MPI_Allreduce(in, out, n, MPI_DOUBLE, op, comm);
		else
			MPI_Reduce(in, out, n, MPI_DOUBLE, op, root, comm);
		if (k == 0)
			memcpy(first, out, sizeof(out));
		differ += (all || tap_rank == root) &&
			  memcmp(first, out, (size_t)n * sizeof(*out)) != 0;
	}
	MPI_Comm_free(&comm);
	return differ ? tap_wrong("%d doubles are not those of the first call", n) : NULL;
}

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
	tap_start(argc, argv, 48);
	cms_make();
	kinds_make();
	each_way("reduce", reduce);
	each_way("allreduce", allreduce);
	each_way("reduce_scatter", reduce_scatter);
	each_way("reduce_scatter_block", reduce_scatter_block);
	each_way("scan", scan);
	each_way("exscan", exscan);
	each_way("reduce_local", reduce_local);
	each_way("allreduce gives all ranks the same bits", same_bits);
	each_way("the same operands give the same bits again", same_bits_again);
	tap_rounds_set(4);
	tap_case("reduce_scatter of long parts", reduce_scatter_long);
	tap_rounds_set(12);
	tap_case("scan and exscan of long vectors", scan_long);
	kinds_free();
	cms_free();
	return tap_end();
}
