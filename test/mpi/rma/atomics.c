/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Accumulates: every operation on every type beside MPI_Reduce_local, and what several ranks do
 * to one place at the same time: nothing is lost, nothing is seen half done, and of one rank in
 * order. Usage: [SEED [ROUNDS [tame]]].
 */
#include <complex.h>
#include <stddef.h>
#include <stdint.h>

#include "test/mpi/pt2pt/check.h"

enum { N = 7, STRIDE = 2, MOST = 32, FLAVORS = 2, REPEAT = 200 };

static MPI_Win win;
static char *memory;

/* Zeroed memory of rank 0 alone or of all, of two flavours. */
static void make_window(int flavor, MPI_Aint bytes, int unit)
{
	if (flavor == 0) {
		memory = malloc((size_t)bytes);
		MPI_Win_create(memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	} else {
		MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	}
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, tap_rank, 0, win);
	memset(memory, 0, (size_t)bytes);
	MPI_Win_unlock(tap_rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void free_window(int flavor)
{
	MPI_Win_free(&win);
	if (flavor == 0)
		free(memory);
}

/* ---- every operation on every type ----------------------------------------------------------- */

enum family { WHOLE, REAL, COMPLEX, BYTES, PAIR };

static const struct {
	MPI_Datatype type;
	enum family family;
	int size; /* of the value */
} types[] = {
	{ MPI_SIGNED_CHAR, WHOLE, 1 },
	{ MPI_UNSIGNED_CHAR, WHOLE, 1 },
	{ MPI_CHAR, WHOLE, 1 }, /* beyond the standard */
	{ MPI_SHORT, WHOLE, 2 },
	{ MPI_UNSIGNED_SHORT, WHOLE, 2 },
	{ MPI_INT, WHOLE, 4 },
	{ MPI_UNSIGNED, WHOLE, 4 },
	{ MPI_LONG, WHOLE, 8 },
	{ MPI_UINT64_T, WHOLE, 8 },
	{ MPI_AINT, WHOLE, 8 },
	{ MPI_INT16_T, WHOLE, 2 },
	{ MPI_UINT32_T, WHOLE, 4 },
	{ MPI_LONG_LONG, WHOLE, 8 },
	{ MPI_OFFSET, WHOLE, 8 },
	{ MPI_COUNT, WHOLE, 8 },
	{ MPI_INTEGER, WHOLE, 4 },
	{ MPI_DOUBLE_PRECISION, REAL, 8 },
	{ MPI_FLOAT, REAL, 4 },
	{ MPI_DOUBLE, REAL, 8 },
	{ MPI_LONG_DOUBLE, REAL, sizeof(long double) },
	{ MPI_C_FLOAT_COMPLEX, COMPLEX, 8 },
	{ MPI_C_DOUBLE_COMPLEX, COMPLEX, 16 },
	{ MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, 2 * sizeof(long double) },
	{ MPI_DOUBLE_COMPLEX, COMPLEX, 16 },
	{ MPI_BYTE, BYTES, 1 },
	{ MPI_FLOAT_INT, PAIR, 4 },
	{ MPI_DOUBLE_INT, PAIR, 8 },
	{ MPI_LONG_DOUBLE_INT, PAIR, sizeof(long double) },
	{ MPI_LONG_INT, PAIR, -8 },
	{ MPI_2INT, PAIR, -4 },
	{ MPI_SHORT_INT, PAIR, -2 },
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static const MPI_Op all_ops[] = { MPI_SUM,    MPI_PROD,   MPI_MIN,     MPI_MAX,  MPI_BAND,
				  MPI_BOR,    MPI_BXOR,   MPI_LAND,    MPI_LOR,  MPI_LXOR,
				  MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP };
enum { OPS = sizeof(all_ops) / sizeof(all_ops[0]) };

static bool fits(int type, int op)
{
	if (tap_tame &&
	    (types[type].type == MPI_CHAR || (types[type].family == REAL && op >= 7 && op < 10)))
		return false;
	switch (types[type].family) {
	case WHOLE:
		return op < 10 || op >= 12;
	case REAL: /* the logical ones beyond the standard, too */
		return op < 4 || (op >= 7 && op < 10) || op >= 12;
	case COMPLEX:
		return op < 2 || op >= 12;
	case BYTES:
		return (op >= 4 && op < 7) || op >= 12;
	default:
		return op >= 10;
	}
}

static void one_number(char *to, int size, bool real)
{
	int n = draw_below(19) - 9;
	long double l = n;
	double d = n;
	float f = (float)n;
	long long w = n;

	if (!real)
		memcpy(to, &w, (size_t)size);
	else if (size == 4)
		memcpy(to, &f, 4);
	else if (size == 8)
		memcpy(to, &d, 8);
	else
		memcpy(to, &l, sizeof(l) < (size_t)size ? sizeof(l) : (size_t)size);
}

/* `n` elements, one every `extent` bytes. */
static void numbers(char *to, int type, MPI_Aint extent, int n)
{
	int size = types[type].size,
	    real = types[type].family == REAL || types[type].family == COMPLEX;

	for (int i = 0; i < n; i++, to += extent) {
		memset(to, 0, (size_t)extent);
		if (types[type].family == COMPLEX) {
			one_number(to, size / 2, true);
			one_number(to + size / 2, size / 2, true);
		} else if (types[type].family == PAIR) {
			int at = size == -2 ? 4 : size < 0 ? -size : size;

			one_number(to, size < 0 ? -size : size, size > 0);
			one_number(to + at, 4, false);
		} else {
			one_number(to, size, real);
		}
	}
}

struct long_pair {
	long double value;
	int index;
};

static bool same_long(const long double *a, const long double *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* Data only: what lies in gaps is nobody's. */
static bool same(MPI_Datatype type, const char *a, const char *b, int n)
{
	char pa[N * MOST], pb[N * MOST];
	int at = 0, bt = 0;

	/* those that have a gap inside */
	if (type == MPI_LONG_DOUBLE)
		return same_long((const void *)a, (const void *)b, n);
	if (type == MPI_C_LONG_DOUBLE_COMPLEX)
		return same_long((const void *)a, (const void *)b, 2 * n);
	if (type == MPI_LONG_DOUBLE_INT) {
		const struct long_pair *x = (const void *)a, *y = (const void *)b;

		for (int i = 0; i < n; i++)
			if (x[i].value != y[i].value || x[i].index != y[i].index)
				return false;
		return true;
	}
	memset(pa, 0, sizeof(pa));
	memset(pb, 0, sizeof(pb));
	MPI_Pack(a, n, type, pa, sizeof(pa), &at, MPI_COMM_SELF);
	MPI_Pack(b, n, type, pb, sizeof(pb), &bt, MPI_COMM_SELF);
	return at == bt && memcmp(pa, pb, (size_t)at) == 0;
}

/* The target's elements are every second one. `fetch`: 0 accumulate, 1 get_accumulate, 2
 * fetch_and_op of one. */
static const char *one_op(int type, int op, int fetch)
{
	_Alignas(16) char in[N * MOST], old[N * MOST], want[N * MOST], got[N * MOST],
		spread[STRIDE * N * MOST];
	MPI_Datatype t = types[type].type, vector;
	int n = fetch == 2 ? 1 : N, target = draw_below(tap_size);
	MPI_Aint lb, extent;

	MPI_Type_get_extent(t, &lb, &extent);
	MPI_Type_vector(n, 1, STRIDE, t, &vector);
	MPI_Type_commit(&vector);
	numbers(in, type, extent, n);
	numbers(old, type, extent, n);
	memcpy(want, old, sizeof(want));
	if (all_ops[op] == MPI_REPLACE)
		memcpy(want, in, sizeof(want));
	else if (all_ops[op] != MPI_NO_OP)
		MPI_Reduce_local(in, want, n, t, all_ops[op]);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
	CHECK_OK(MPI_Put(old, n, t, target, 16, 1, vector, win));
	CHECK_OK(MPI_Win_flush(target, win));
	memset(got, 0, sizeof(got));
	if (fetch == 2)
		CHECK_OK(MPI_Fetch_and_op(all_ops[op] == MPI_NO_OP ? NULL : in, got, t, target, 16,
					  all_ops[op], win));
	else if (fetch)
		CHECK_OK(MPI_Get_accumulate(in, n, t, got, n, t, target, 16, 1, vector, all_ops[op],
					    win));
	else
		CHECK_OK(MPI_Accumulate(in, n, t, target, 16, 1, vector, all_ops[op], win));
	CHECK_OK(MPI_Win_flush(target, win));
	memset(spread, 0, sizeof(spread));
	CHECK_OK(MPI_Get(spread, 1, vector, target, 16, 1, vector, win));
	CHECK_OK(MPI_Win_unlock(target, win));
	for (int i = 0; i < n; i++)
		if (!same(t, spread + i * STRIDE * extent, want + i * extent, 1))
			return tap_wrong(
				"type %d, operation %d, fetch %d: element %d of the target", type,
				op, fetch, i);
	if (fetch && !same(t, got, old, n))
		return tap_wrong("type %d, operation %d, fetch %d: what came back", type, op,
				 fetch);
	MPI_Type_free(&vector);
	return NULL;
}

static const char *every_operation(int round)
{
	const char *wrong = NULL;

	make_window(round % FLAVORS, 16 + STRIDE * N * MOST + 64, 1);
	for (int type = 0; type < TYPES && !wrong; type++)
		for (int op = 0; op < OPS && !wrong; op++)
			for (int fetch = 0; fetch < 3 && !wrong; fetch++)
				if (fits(type, op) && (fetch || all_ops[op] != MPI_NO_OP))
					wrong = one_op(type, op, fetch);
	MPI_Barrier(MPI_COMM_WORLD);
	free_window(round % FLAVORS);
	return wrong;
}

/* ---- many ranks, one place ------------------------------------------------------------------- */

static const char *counters(int round)
{
	long long sum = 0, all = 0, total = (long long)tap_size * REPEAT;
	long one = 1, old = -1;
	int last = -1;

	make_window(round % FLAVORS, 64, 8);
	CHECK_OK(MPI_Win_lock_all(0, win));
	for (int i = 0; i < REPEAT; i++) {
		CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 1, MPI_SUM, win));
		CHECK_OK(MPI_Win_flush(0, win));
		if (old <= last)
			return tap_wrong("the counter went from %d to %ld", last, old);
		last = (int)old;
		sum += old;
	}
	CHECK_OK(MPI_Win_unlock_all(win));
	MPI_Allreduce(&sum, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	free_window(round % FLAVORS);
	CHECK_INT(all, total * (total - 1) / 2);
	return NULL;
}

/* A whole number of so many bytes, the lowest first as in memory, is raised by one again and
 * again. */
static const char *swaps(MPI_Datatype type, int target, int element)
{
	uint64_t seen = 0, next = 0, old = 0, mask;
	int size;

	MPI_Type_size(type, &size);
	mask = UINT64_MAX >> (64 - 8 * size);
	CHECK_OK(MPI_Win_lock_all(0, win));
	for (int i = 0; i < REPEAT; i++) {
		for (;;) {
			next = (seen + 1) & mask;
			CHECK_OK(MPI_Compare_and_swap(&next, &seen, &old, type, target,
						      element * (MPI_Aint)sizeof(old), win));
			CHECK_OK(MPI_Win_flush(target, win));
			if (old == seen)
				break;
			seen = old;
		}
		seen = next;
	}
	CHECK_OK(MPI_Win_unlock_all(win));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
	CHECK_OK(MPI_Get(&next, 8, MPI_BYTE, target, element * (MPI_Aint)sizeof(next), 8, MPI_BYTE,
			 win));
	CHECK_OK(MPI_Win_unlock(target, win));
	if (next != ((uint64_t)tap_size * REPEAT & mask))
		return tap_wrong("of %d bytes: %llu in the end", size, (unsigned long long)next);
	return NULL;
}

static const char *compare_and_swap(int round)
{
	static const MPI_Datatype kinds[] = { MPI_INT,           MPI_SIGNED_CHAR, MPI_BYTE,
					      MPI_UINT16_T,      MPI_SHORT,       MPI_LOGICAL,
					      MPI_UNSIGNED_LONG, MPI_AINT };
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	const char *wrong = NULL;

	make_window(round % FLAVORS, KINDS * sizeof(uint64_t), 1);
	for (int i = 0; i < KINDS && !wrong; i++)
		wrong = swaps(kinds[i], tap_size - 1, i);
	MPI_Barrier(MPI_COMM_WORLD);
	free_window(round % FLAVORS);
	return wrong;
}

struct mixed {
	double d[4];
	double complex z[2];
	long double l;
	struct place {
		double value;
		int index;
	} least;
	float f[3];
	short s[5];
};

#define AT(member) 0, (MPI_Aint)offsetof(struct mixed, member)

/* Elements with and without instructions of their own, all at once. */
static const char *sums(int round)
{
	struct mixed add = {
		.d = { 1, 2, 3, 4 }, .l = 5, .f = { 1, 2, 3 }, .s = { 1, 2, 3, 4, 5 }
	};
	struct place places[REPEAT]; /* stay until they are taken */
	struct mixed *m;
	double total = (double)tap_size * REPEAT;

	add.z[0] = 1 + 2 * I;
	add.z[1] = 3 - 4 * I;
	make_window(round % FLAVORS, sizeof(struct mixed), 1);
	m = (struct mixed *)(void *)memory;
	CHECK_OK(MPI_Win_fence(0, win));
	if (tap_rank == 0)
		m->least.value = 1e9;
	CHECK_OK(MPI_Win_fence(0, win));
	for (int i = 0; i < REPEAT; i++) {
		places[i].value = (double)((tap_rank + 1) * 1000 - i);
		places[i].index = tap_rank * REPEAT + i;
		CHECK_OK(MPI_Accumulate(add.d, 4, MPI_DOUBLE, AT(d), 4, MPI_DOUBLE, MPI_SUM, win));
		CHECK_OK(MPI_Accumulate(add.z, 2, MPI_C_DOUBLE_COMPLEX, AT(z), 2,
					MPI_C_DOUBLE_COMPLEX, MPI_SUM, win));
		CHECK_OK(MPI_Accumulate(&add.l, 1, MPI_LONG_DOUBLE, AT(l), 1, MPI_LONG_DOUBLE,
					MPI_SUM, win));
		CHECK_OK(MPI_Accumulate(&places[i], 1, MPI_DOUBLE_INT, AT(least), 1, MPI_DOUBLE_INT,
					MPI_MINLOC, win));
		CHECK_OK(MPI_Accumulate(add.f, 3, MPI_FLOAT, AT(f), 3, MPI_FLOAT, MPI_SUM, win));
		CHECK_OK(MPI_Accumulate(add.s, 5, MPI_SHORT, AT(s), 5, MPI_SHORT, MPI_SUM, win));
	}
	CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	if (tap_rank == 0) {
		for (int i = 0; i < 4; i++)
			CHECK(m->d[i] == total * (i + 1));
		CHECK(m->z[0] == total * add.z[0] && m->z[1] == total * add.z[1]);
		CHECK(m->l == 5 * (long double)total);
		CHECK(m->least.value == 1001 - REPEAT && m->least.index == REPEAT - 1);
		for (int i = 0; i < 3; i++)
			CHECK(m->f[i] == (float)(total * (i + 1)));
		for (int i = 0; i < 5; i++)
			CHECK(m->s[i] == (short)((int)total * (i + 1)));
	}
	free_window(round % FLAVORS);
	return NULL;
}

/* An addition to many elements at a time loses no addition of others to one of them, nor the
 * reverse. */
static const char *few_and_many(int round)
{
	enum { MANY = 600, TIMES = 1200, SINGLE = 50 };
	double ones[MANY], one = 1, old[MANY], *m;
	const char *wrong = NULL;

	for (int i = 0; i < MANY; i++)
		ones[i] = 1;
	make_window(round % FLAVORS, sizeof(ones), sizeof(*ones));
	m = (double *)(void *)memory;
	CHECK_OK(MPI_Win_fence(0, win));
	for (int i = 0; i < TIMES; i++) {
		int at = i % MANY, most = MANY - at < 100 ? MANY - at : 100;

		if ((tap_rank + i / 100) % 3 == 0)
			CHECK_OK(MPI_Accumulate(ones, MANY, MPI_DOUBLE, 0, 0, MANY, MPI_DOUBLE,
						MPI_SUM, win));
		else if ((tap_rank + i / 100) % 3 == 1)
			CHECK_OK(MPI_Get_accumulate(ones, most, MPI_DOUBLE, old, most, MPI_DOUBLE,
						    0, at, most, MPI_DOUBLE, MPI_SUM, win));
		else
			/* where those begin who add to all */
			for (int k = 0; k < SINGLE; k++)
				CHECK_OK(MPI_Fetch_and_op(&one, old, MPI_DOUBLE, 0, 0, MPI_SUM,
							  win));
	}
	CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	for (int k = 0; tap_rank == 0 && k < MANY && !wrong; k++) {
		double sum = 0;

		for (int r = 0; r < tap_size; r++)
			for (int i = 0; i < TIMES; i++) {
				int how = (r + i / 100) % 3, at = i % MANY;

				if (how == 0)
					sum++;
				else if (how == 1)
					sum += k >= at && k < at + 100;
				else
					sum += k == 0 ? SINGLE : 0;
			}
		if (m[k] != sum)
			wrong = tap_wrong("element %d is %g, not %g", k, m[k], sum);
	}
	free_window(round % FLAVORS);
	return wrong;
}

/* A torn or lost update of two words shows. */
static const char *exclusive_locks(int round)
{
	long two[2], end[2] = { 0 };

	make_window(round % FLAVORS, 64, 8);
	for (int i = 0; i < REPEAT; i++) {
		int target = i % tap_size;

		CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
		CHECK_OK(MPI_Get(two, 2, MPI_LONG, target, 2, 2, MPI_LONG, win));
		CHECK_OK(MPI_Win_flush(target, win));
		CHECK_INT(two[0], two[1]);
		two[0]++;
		two[1]++;
		CHECK_OK(MPI_Put(two, 1, MPI_LONG, target, 2, 1, MPI_LONG, win));
		CHECK_OK(MPI_Put(two + 1, 1, MPI_LONG, target, 3, 1, MPI_LONG, win));
		CHECK_OK(MPI_Win_unlock(target, win));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int target = 0; target < tap_size; target++) {
		int times = REPEAT / tap_size + (target < REPEAT % tap_size);

		CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
		CHECK_OK(MPI_Get(end, 2, MPI_LONG, target, 2, 2, MPI_LONG, win));
		CHECK_OK(MPI_Win_unlock(target, win));
		CHECK_INT(end[0], times * tap_size);
		CHECK_INT(end[1], times * tap_size);
	}
	free_window(round % FLAVORS);
	return NULL;
}

/* Operations of one rank on one place happen in the order they were called. */
static const char *in_order(int round)
{
	enum { STEPS = 200 };
	long in[STEPS], back[STEPS], zero = 0;
	int target = (tap_rank + 1) % tap_size;

	make_window(round % FLAVORS, 8 * (tap_size + 1), 8);
	CHECK_OK(MPI_Win_lock_all(0, win));
	for (int i = 0; i < STEPS; i++) {
		in[i] = i + 1;
		if (i % 2)
			CHECK_OK(MPI_Get_accumulate(&in[i], 1, MPI_LONG, &back[i], 1, MPI_LONG,
						    target, tap_rank, 1, MPI_LONG, MPI_REPLACE,
						    win));
		else
			CHECK_OK(MPI_Accumulate(&in[i], 1, MPI_LONG, target, tap_rank, 1, MPI_LONG,
						MPI_REPLACE, win));
	}
	CHECK_OK(MPI_Fetch_and_op(&zero, &back[0], MPI_LONG, target, tap_rank, MPI_NO_OP, win));
	CHECK_OK(MPI_Win_unlock_all(win));
	for (int i = 1; i < STEPS; i += 2)
		CHECK_INT(back[i], i);
	CHECK_INT(back[0], STEPS);
	MPI_Barrier(MPI_COMM_WORLD);
	free_window(round % FLAVORS);
	return NULL;
}

/* More than one message takes. */
static const char *long_vectors(int round)
{
	enum { LONG = 20000 };
	double *in = malloc(LONG * sizeof(*in)), *back = malloc(LONG * sizeof(*back)), *m;
	const char *wrong = NULL;

	make_window(round % FLAVORS, LONG * (MPI_Aint)sizeof(double), sizeof(double));
	for (int i = 0; i < LONG; i++)
		in[i] = i;
	CHECK_OK(MPI_Win_fence(0, win));
	for (int i = 0; i < tap_size; i++)
		CHECK_OK(
			MPI_Accumulate(in, LONG, MPI_DOUBLE, i, 0, LONG, MPI_DOUBLE, MPI_SUM, win));
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Get_accumulate(in, LONG, MPI_DOUBLE, back, LONG, MPI_DOUBLE, tap_rank, 0, LONG,
				    MPI_DOUBLE, MPI_MAX, win));
	CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	m = (double *)(void *)memory;
	for (int i = 0; i < LONG && !wrong; i++)
		if (m[i] != (double)i * tap_size || back[i] != (double)i * tap_size)
			wrong = tap_wrong("element %d is %g, and was %g", i, m[i], back[i]);
	free_window(round % FLAVORS);
	free(in);
	free(back);
	return wrong;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 2);
	tap_case("every operation on every type", every_operation);
	tap_case("a counter gives every number once", counters);
	tap_case("compare and swap loses nothing", compare_and_swap);
	tap_case("sums of many ranks are whole", sums);
	tap_case("few elements and many at the same time", few_and_many);
	tap_case("exclusive locks exclude", exclusive_locks);
	tap_case("operations of one rank are in order", in_order);
	tap_case("vectors longer than a message", long_vectors);
	return tap_end();
}
