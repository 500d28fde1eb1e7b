/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Property: datatypes are what their type maps say. Random types are built from random types
 * with all constructors, beside a model of each (type_model.h), and bounds, packing, unpacking,
 * parts of both, element counts, contents and external32 are compared.
 *
 * Usage: prop_type [TYPES [SEED]]
 */
#include "type_model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/datatype/type.h"

enum {
	DEFAULT = 40000,
	POOL = 24,        /* types of an episode, the basic ones first */
	MEMBERS = 5,      /* of a struct, blocks of an indexed type */
	REACH = 1 << 16,  /* bytes that data may lie away from the buffer's address */
	PACKED = 1 << 17, /* bytes of packed data at most */
	COUNT = 3,        /* elements packed at once */
};

static uint64_t seed, state;
static uint64_t types_made;
static const char *checking = "building";
static struct m_type model[POOL];
static struct mpi_type *real[POOL];
static char text[POOL][300];
static int used;
static char memory[2 * REACH], memory2[2 * REACH], memory3[2 * REACH];
static char packed[PACKED], expected[PACKED];

static uint64_t next_random(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* From low to high, both possible. */
static int64_t between(int64_t low, int64_t high)
{
	return low + (int64_t)(next_random() % (uint64_t)(high - low + 1));
}

/* A count: nothing sometimes, up to `usual` mostly, many now and then. */
static int64_t amount(int64_t usual)
{
	int64_t kind = between(0, 19);

	return kind == 0 ? 0 : kind == 1 ? between(1, 12 * usual) : between(1, usual);
}

static void __attribute__((format(printf, 1, 2), noreturn)) fail(const char *format, ...)
{
	va_list ap;

	printf("not ok 1 - %s\n# replay: prop_type 1 %" PRIu64 "\n# ", checking, seed);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	puts("");
	for (int i = 0; i < used; i++)
		printf("# T%d = %s\n", i, text[i]);
	exit(1);
}

static void __attribute__((format(printf, 1, 2))) describe(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text[used], sizeof(text[used]), format, ap);
	va_end(ap);
}

static void describe_list(const char *name, const MPI_Count *a, int n)
{
	size_t at = strlen(text[used]);

	at += (size_t)snprintf(text[used] + at, sizeof(text[used]) - at, " %s", name);
	for (int i = 0; i < n && at < sizeof(text[used]) - 1; i++)
		at += (size_t)snprintf(text[used] + at, sizeof(text[used]) - at, " %" PRId64, a[i]);
}

static void must(int rc)
{
	extern char alone_text[];

	if (rc != MPI_SUCCESS)
		fail("error %d: %s", rc, alone_text);
}

/* ---- random types ---------------------------------------------------------------------------- */

/* The arguments of constructors, and which of the pool the types are. */
struct recipe {
	int n;
	MPI_Count length[MEMBERS], displacement[MEMBERS];
	struct mpi_type *type[MEMBERS];
	int which[MEMBERS];
};

static void block_recipe(struct recipe *r, int old, int64_t unit, bool one_length, bool tidy)
{
	int64_t extent = (model[old].ub - model[old].lb) / (unit > 0 ? unit : 1);
	int64_t at = between(-3, 3);

	r->n = (int)between(between(0, 9) ? 1 : 0, MEMBERS);
	r->length[0] = amount(3);
	for (int i = 0; i < r->n; i++) {
		if (!one_length)
			r->length[i] = amount(3);
		r->displacement[i] = tidy ? at : between(-8, 24);
		at += (one_length ? r->length[0] : r->length[i]) * (extent < 0 ? -extent : extent) +
		      (tidy && between(0, 1) ? between(0, 4) : 0);
	}
}

static void make_vector(int old, struct m_type *m, struct mpi_type **t)
{
	int kind = (int)between(0, 2);
	int64_t extent = model[old].ub - model[old].lb;
	MPI_Count count = amount(5), length = amount(4), stride = between(-4, 6);
	int64_t step = stride * extent;

	m_begin(m);
	if (kind == 0) {
		describe("contiguous(%" PRId64 ", T%d)", count, old);
		m_add_row(m, &model[old], 0, count);
		must(mpi_type_contiguous(count, real[old], t));
		m_end(m, false);
		return;
	}
	if (kind == 2) {
		stride = between(0, 1) ? stride * extent + between(0, 3) : between(-40, 80);
		step = stride;
	}
	for (int64_t i = 0; i < count; i++)
		m_add_row(m, &model[old], i * step, length);
	m_end(m, false);
	describe("%svector(%" PRId64 ", %" PRId64 ", %" PRId64 ", T%d)", kind == 2 ? "h" : "",
		 count, length, stride, old);
	must(kind == 1 ? mpi_type_vector(count, length, stride, real[old], t)
		       : mpi_type_create_hvector(count, length, stride, real[old], t));
}

static void make_indexed(int old, struct m_type *m, struct mpi_type **t)
{
	int kind = (int)between(0, 3);
	bool bytes = kind & 1, one_length = kind & 2;
	int64_t extent = model[old].ub - model[old].lb;
	struct recipe r;

	block_recipe(&r, old, bytes ? 1 : extent, one_length, between(0, 1));
	m_begin(m);
	for (int i = 0; i < r.n; i++)
		m_add_row(m, &model[old], r.displacement[i] * (bytes ? 1 : extent),
			  r.length[one_length ? 0 : i]);
	m_end(m, false);
	describe("%sindexed%s(T%d)", bytes ? "h" : "", one_length ? "_block" : "", old);
	describe_list("lengths", r.length, one_length ? 1 : r.n);
	describe_list("displacements", r.displacement, r.n);
	switch (kind) {
	case 0:
		must(mpi_type_indexed(r.n, r.length, r.displacement, real[old], t));
		break;
	case 1:
		must(mpi_type_create_hindexed(r.n, r.length, r.displacement, real[old], t));
		break;
	case 2:
		must(mpi_type_create_indexed_block(r.n, r.length[0], r.displacement, real[old], t));
		break;
	default:
		must(mpi_type_create_hindexed_block(r.n, r.length[0], r.displacement, real[old],
						    t));
	}
}

static void make_struct(struct m_type *m, struct mpi_type **t)
{
	struct recipe r = { .n = (int)between(between(0, 9) ? 1 : 0, MEMBERS) };
	bool tidy = between(0, 1);
	MPI_Count which[MEMBERS];
	int64_t at = between(-2, 2);

	m_begin(m);
	for (int i = 0; i < r.n; i++) {
		int k = (int)between(0, used - 1);
		int marker = between(0, 15) ? 0 : (int)between(1, 2);
		int64_t extent = model[k].ub - model[k].lb;

		r.length[i] = amount(3);
		r.displacement[i] = tidy ? at - model[k].lb : between(-20, 60);
		which[i] = marker ? -marker : k;
		r.type[i] = real[k];
		if (marker) {
			r.type[i] = mpi_type_of(marker == 1 ? MPI_HANDLE_LB : MPI_HANDLE_UB);
			if (r.length[i] > 0 && marker == 1)
				m_mark_lb(m, r.displacement[i]);
			if (r.length[i] > 0 && marker == 2)
				m_mark_ub(m, r.displacement[i]);
			continue;
		}
		m_add_row(m, &model[k], r.displacement[i], r.length[i]);
		at += r.length[i] * (extent < 0 ? -extent : extent) + between(0, 7);
	}
	m_end(m, true);
	describe("struct");
	describe_list("types", which, r.n);
	describe_list("lengths", r.length, r.n);
	describe_list("displacements", r.displacement, r.n);
	must(mpi_type_create_struct(r.n, r.length, r.displacement, r.type, t));
}

static void make_subarray(int old, struct m_type *m, struct mpi_type **t)
{
	struct m_array a = { .ndims = (int)between(1, MODEL_DIMS),
			     .order = between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN };

	for (int d = 0; d < a.ndims; d++) {
		a.size[d] = between(1, 5);
		a.part[d] = between(1, a.size[d]);
		a.start[d] = between(0, a.size[d] - a.part[d]);
	}
	m_subarray(m, &model[old], &a);
	describe("subarray(T%d) order %d", old, a.order);
	describe_list("sizes", a.size, a.ndims);
	describe_list("parts", a.part, a.ndims);
	describe_list("starts", a.start, a.ndims);
	must(mpi_type_create_subarray(a.ndims, a.size, a.part, a.start, a.order, real[old], t));
}

static void make_darray(int old, struct m_type *m, struct mpi_type **t)
{
	struct m_array a = { .ndims = (int)between(1, MODEL_DIMS),
			     .order = between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
			     .processes = 1 };
	MPI_Count how[4 * MODEL_DIMS];

	for (int d = 0; d < a.ndims; d++) {
		a.size[d] = between(1, 9);
		a.distrib[d] = (int)between(MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC);
		a.psize[d] = a.distrib[d] == MPI_DISTRIBUTE_NONE ? 1 : (int)between(1, 3);
		a.darg[d] = MPI_DISTRIBUTE_DFLT_DARG;
		if (a.distrib[d] == MPI_DISTRIBUTE_BLOCK && between(0, 1))
			a.darg[d] =
				(int)((a.size[d] + a.psize[d] - 1) / a.psize[d] + between(0, 2));
		if (a.distrib[d] == MPI_DISTRIBUTE_CYCLIC && between(0, 1))
			a.darg[d] = (int)between(1, 4);
		a.processes *= a.psize[d];
		how[3 * d] = a.distrib[d];
		how[3 * d + 1] = a.darg[d];
		how[3 * d + 2] = a.psize[d];
	}
	a.rank = (int)between(0, a.processes - 1);
	m_darray(m, &model[old], &a);
	describe("darray(T%d) order %d rank %d", old, a.order, a.rank);
	describe_list("sizes", a.size, a.ndims);
	describe_list("how", how, 3 * a.ndims);
	must(mpi_type_create_darray(a.processes, a.rank, a.ndims, a.size, a.distrib, a.darg,
				    a.psize, a.order, real[old], t));
}

static void make_same(int old, struct m_type *m, struct mpi_type **t)
{
	int64_t lb = between(-9, 9);
	int64_t extent = between(0, 1)
				 ? between(-60, 60)
				 : m_true_ub(&model[old]) - m_true_lb(&model[old]) + between(0, 9);

	m_begin(m);
	m_add(m, &model[old], 0);
	if (between(0, 3) == 0) {
		m_end(m, false);
		describe("dup(T%d)", old);
		must(mpi_type_dup(real[old], t));
		return;
	}
	m->has_lb = m->has_ub = true;
	m->mark_lb = lb;
	m->mark_ub = lb + extent;
	m_end(m, false);
	describe("resized(T%d, %" PRId64 ", %" PRId64 ")", old, lb, extent);
	must(mpi_type_create_resized(real[old], lb, extent, t));
}

static bool within_reach(const struct m_type *m)
{
	int64_t extent = m->ub - m->lb, span = extent * (COUNT - 1);
	int64_t low = m_true_lb(m) + (span < 0 ? span : 0),
		high = m_true_ub(m) + (span > 0 ? span : 0);

	return !m->overfull && low > -REACH && high < REACH && m->lb > -REACH && m->ub < REACH &&
	       m_size(m) * COUNT <= PACKED;
}

/* One type more in the pool, if it is not too large. */
static void make_one(void)
{
	/* rather of those made last: trees, not stars */
	int old = between(0, 2) ? (int)between(used > 6 ? used - 6 : 0, used - 1)
				: (int)between(0, used - 1);
	struct m_type *m = &model[used];

	text[used][0] = '\0';
	switch (between(0, 9)) {
	case 0:
	case 1:
	case 2:
		make_vector(old, m, &real[used]);
		break;
	case 3:
	case 4:
		make_indexed(old, m, &real[used]);
		break;
	case 5:
	case 6:
		make_struct(m, &real[used]);
		break;
	case 7:
		make_subarray(old, m, &real[used]);
		break;
	case 8:
		make_darray(old, m, &real[used]);
		break;
	default:
		make_same(old, m, &real[used]);
	}
	if (!within_reach(m))
		must(mpi_type_free(&real[used]));
	else
		used++;
}

/* ---- properties ------------------------------------------------------------------------------ */

static void check_bounds(int i, struct mpi_type *t, const struct m_type *m)
{
	struct {
		const char *what;
		MPI_Count is, should;
	} row[] = { { "size", t->size, m_size(m) },
		    { "lb", t->lb, m->lb },
		    { "extent", t->extent, m->ub - m->lb },
		    { "true lb", t->true_lb, m_true_lb(m) },
		    { "true extent", t->true_extent, m_true_ub(m) - m_true_lb(m) } };

	checking = "bounds are those of the type map";
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		if (row[k].is != row[k].should)
			fail("T%d: %s is %" PRId64 " instead of %" PRId64, i, row[k].what,
			     row[k].is, row[k].should);
	}
}

static void random_bytes(char *to, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t r = next_random();

		memcpy(to + i, &r, 8);
	}
}

static void check_packing(int i, struct mpi_type *t, const struct m_type *m)
{
	int count = (int)between(1, COUNT);
	size_t total = (size_t)(m_size(m) * count), at, n;

	checking = "packed data is the type map's, in its order";
	m_pack(m, memory + REACH, count, expected);
	memset(packed, 0x5a, total + 1);
	mpi_type_pack_bytes(t, memory + REACH, count, 0, packed, total);
	if (memcmp(packed, expected, total) != 0 || packed[total] != 0x5a)
		fail("T%d: %d packed", i, count);
	checking = "any part of the packed data is the same as all of it";
	for (int k = 0; k < 4 && total > 0; k++) {
		at = (size_t)between(0, (int64_t)total - 1);
		n = (size_t)between(0, (int64_t)(total - at));
		memset(packed, 0x5a, n + 1);
		mpi_type_pack_bytes(t, memory + REACH, count, at, packed, n);
		if (memcmp(packed, expected + at, n) != 0 || packed[n] != 0x5a)
			fail("T%d: bytes %zu to %zu of %d packed", i, at, at + n, count);
	}
}

static void check_unpacking(int i, struct mpi_type *t, const struct m_type *m)
{
	int count = (int)between(1, COUNT);
	size_t total = (size_t)(m_size(m) * count), at = 0;

	if (m_overlaps(m, count))
		return; /* what comes of it is not defined */
	checking = "unpacking writes the type map's bytes and no others";
	memset(memory2, 0x5a, sizeof(memory2));
	memset(memory3, 0x5a, sizeof(memory3));
	random_bytes(packed, total);
	m_unpack(m, memory2 + REACH, count, packed);
	mpi_type_unpack_bytes(t, memory3 + REACH, count, 0, packed, total);
	if (memcmp(memory2, memory3, sizeof(memory2)) != 0)
		fail("T%d: %d unpacked", i, count);
	checking = "data unpacked in parts is the same as at once";
	memset(memory3, 0x5a, sizeof(memory3));
	while (at < total) {
		size_t n = (size_t)between(1, 1 + (int64_t)total / 3);

		n = n < total - at ? n : total - at;
		mpi_type_unpack_bytes(t, memory3 + REACH, count, at, packed + at, n);
		at += n;
	}
	if (memcmp(memory2, memory3, sizeof(memory2)) != 0)
		fail("T%d: %d unpacked in parts", i, count);
}

static void check_elements(int i, struct mpi_type *t, const struct m_type *m)
{
	checking = "elements are counted as the type map has them";
	for (int k = 0; k < 5; k++) {
		MPI_Count bytes = between(0, m_size(m) * 2);
		MPI_Count elements = mpi_type_elements(t, bytes);

		if (elements != m_elements(m, bytes))
			fail("T%d: %" PRId64 " elements in %" PRId64 " bytes, should be %" PRId64,
			     i, elements, bytes, m_elements(m, bytes));
		if (elements >= 0 && mpi_type_element_bytes(t, elements) != bytes)
			fail("T%d: %" PRId64 " elements are %" PRId64 " bytes, should be %" PRId64,
			     i, elements, mpi_type_element_bytes(t, elements), bytes);
	}
}

/* A type made anew from what get_contents says. */
static void rebuild(struct mpi_type *t, struct mpi_type **again)
{
	MPI_Count ni, na, nl, nd;
	int combiner, integer[64], k;
	MPI_Aint address[64];
	MPI_Count c[64], a[64];
	MPI_Datatype handle[MEMBERS];
	struct mpi_type *old[MEMBERS], *child;

	must(mpi_type_get_envelope(t, &ni, &na, &nl, &nd, &combiner));
	if (combiner == MPI_COMBINER_NAMED) {
		*again = t;
		return;
	}
	if (ni > 64 || na > 64 || nl != 0 || nd > MEMBERS)
		fail("envelope: %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, ni, na, nl, nd);
	must(mpi_type_get_contents(t, ni, na, 0, nd, integer, address, NULL, handle));
	for (k = 0; k < ni; k++)
		c[k] = integer[k];
	for (k = 0; k < na; k++)
		a[k] = address[k];
	for (k = 0; k < nd; k++) {
		child = mpi_type_of(handle[k]);
		rebuild(child, &old[k]);
		if (!child->predefined)
			must(mpi_type_free(&child));
	}
	k = integer[0];
	switch (combiner) {
	case MPI_COMBINER_DUP:
		must(mpi_type_dup(old[0], again));
		break;
	case MPI_COMBINER_RESIZED:
		must(mpi_type_create_resized(old[0], a[0], a[1], again));
		break;
	case MPI_COMBINER_CONTIGUOUS:
		must(mpi_type_contiguous(c[0], old[0], again));
		break;
	case MPI_COMBINER_VECTOR:
		must(mpi_type_vector(c[0], c[1], c[2], old[0], again));
		break;
	case MPI_COMBINER_HVECTOR:
		must(mpi_type_create_hvector(c[0], c[1], a[0], old[0], again));
		break;
	case MPI_COMBINER_INDEXED:
		must(mpi_type_indexed(c[0], c + 1, c + 1 + k, old[0], again));
		break;
	case MPI_COMBINER_HINDEXED:
		must(mpi_type_create_hindexed(c[0], c + 1, a, old[0], again));
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		must(mpi_type_create_indexed_block(c[0], c[1], c + 2, old[0], again));
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		must(mpi_type_create_hindexed_block(c[0], c[1], a, old[0], again));
		break;
	case MPI_COMBINER_STRUCT:
		must(mpi_type_create_struct(c[0], c + 1, a, old, again));
		break;
	case MPI_COMBINER_SUBARRAY:
		must(mpi_type_create_subarray(k, c + 1, c + 1 + k, c + 1 + 2 * k,
					      integer[1 + 3 * k], old[0], again));
		break;
	case MPI_COMBINER_DARRAY:
		k = integer[2];
		must(mpi_type_create_darray(integer[0], integer[1], k, c + 3, integer + 3 + k,
					    integer + 3 + 2 * k, integer + 3 + 3 * k,
					    integer[3 + 4 * k], old[0], again));
		break;
	default:
		fail("combiner %d", combiner);
	}
	for (k = 0; k < nd; k++) {
		if (!old[k]->predefined)
			must(mpi_type_free(&old[k]));
	}
}

static void check_contents(int i, struct mpi_type *t, const struct m_type *m)
{
	struct mpi_type *again = NULL;

	checking = "a type made from another's contents is the same";
	rebuild(t, &again);
	check_bounds(i, again, m);
	check_packing(i, again, m);
	if (!again->predefined)
		must(mpi_type_free(&again));
}

/* ---- external32 ------------------------------------------------------------------------------ */

/* A value that both representations can hold, and its big-endian bytes. */
static void random_value(const struct m_basic *b, char *native, unsigned char *external)
{
	unsigned char bytes[16];

	random_bytes((char *)bytes, sizeof(bytes));
	if (b->handle == MPI_LONG_DOUBLE) {
		/* quadruples of small whole numbers: sign and exponent, then the fraction */
		int64_t whole = between(1, 1 << 20);
		int log = 63 - __builtin_clzll((unsigned long long)whole);
		uint64_t fraction = (uint64_t)whole << (48 - log) & 0xffffffffffffu;
		uint64_t top = (uint64_t)(0x3fff + log) << 48 | fraction;
		long double value = (long double)whole;

		memset(native, 0, sizeof(value));
		memcpy(native, &value, 10);
		memset(external, 0, 16);
		for (int i = 0; i < 8; i++)
			external[i] = (unsigned char)(top >> (56 - 8 * i));
		return;
	}
	if (b->handle == MPI_LONG) {
		long value = between(INT32_MIN, INT32_MAX);

		memcpy(native, &value, sizeof(value));
	} else if (b->handle == MPI_WCHAR) {
		wchar_t value = (wchar_t)between(0, UINT16_MAX);

		memcpy(native, &value, sizeof(value));
	} else {
		memcpy(native, bytes, (size_t)b->size);
	}
	if (b->handle == MPI_C_DOUBLE_COMPLEX) {
		for (int i = 0; i < 16; i++)
			external[i] = (unsigned char)native[i < 8 ? 7 - i : 23 - i];
		return;
	}
	for (int i = 0; i < b->external; i++)
		external[i] = (unsigned char)native[b->external - 1 - i];
}

static void check_external(int i, struct mpi_type *t, const struct m_type *m)
{
	int count = (int)between(1, COUNT);
	int64_t total = m_external_size(m) * count;
	unsigned char *out = (unsigned char *)expected;
	MPI_Count position = 0, size;

	if (total > PACKED - 1 || m_overlaps(m, count))
		return;
	checking = "external32 has each element's bytes in order";
	memset(memory2, 0, sizeof(memory2));
	for (int k = 0; k < count; k++) {
		for (size_t e = 0; e < m->n; e++) {
			const struct m_basic *b = m->entry[e].basic;

			random_value(b, memory2 + REACH + k * (m->ub - m->lb) + m->entry[e].at,
				     out);
			out += b->external;
		}
	}
	must(mpi_pack_external_size("external32", count, t, &size));
	if (size != total)
		fail("T%d: %" PRId64 " bytes in external32, should be %" PRId64, i, size, total);
	must(mpi_pack_external("external32", memory2 + REACH, count, t, packed, size, &position));
	if (position != total || memcmp(packed, expected, (size_t)total) != 0)
		fail("T%d: %d in external32", i, count);
	checking = "what comes from external32 is what went there";
	memset(memory3, 0, sizeof(memory3));
	position = 0;
	must(mpi_unpack_external("external32", packed, size, &position, memory3 + REACH, count, t));
	if (position != total || memcmp(memory2, memory3, sizeof(memory2)) != 0)
		fail("T%d: %d from external32", i, count);
}

/* ---- episodes -------------------------------------------------------------------------------- */

static const struct {
	MPI_Datatype handle;
	int value; /* of m_basics; the index is an int */
} pairs[] = { { MPI_DOUBLE_INT, 1 }, { MPI_SHORT_INT, 3 }, { MPI_LONG_DOUBLE_INT, 7 } };

static void begin(void)
{
	used = 0;
	for (; used < 5; used++) {
		const struct m_basic *b = &m_basics[between(0, m_basic_count - 1)];

		describe("%s", b->name);
		real[used] = mpi_type_of(b->handle);
		m_of_basic(&model[used], b);
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++, used++) {
		describe("pair of %s", m_basics[pairs[i].value].name);
		real[used] = mpi_type_of(pairs[i].handle);
		m_of_pair(&model[used], &m_basics[pairs[i].value], &m_basics[0]);
	}
}

static void episode(void)
{
	int before;

	state = seed;
	begin();
	random_bytes(memory, sizeof(memory));
	for (int tries = 0; tries < 2 * POOL && used < POOL; tries++) {
		checking = "building";
		before = used;
		make_one();
		if (used == before)
			continue;
		must(mpi_type_commit(&real[before]));
		types_made++;
		check_bounds(before, real[before], &model[before]);
		check_packing(before, real[before], &model[before]);
		check_unpacking(before, real[before], &model[before]);
		check_elements(before, real[before], &model[before]);
		check_contents(before, real[before], &model[before]);
		check_external(before, real[before], &model[before]);
	}
	checking = "freed types leave nothing behind";
	for (int i = 0; i < used; i++) {
		if (!real[i]->predefined)
			must(mpi_type_free(&real[i]));
	}
	if (mpi_pools[MPI_KIND_TYPE].in_use != 0)
		fail("%u types are left", mpi_pools[MPI_KIND_TYPE].in_use);
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : DEFAULT;

	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	puts("1..1");
	must(mpi_types_init());
	for (; types_made < wanted; seed++)
		episode();
	mpi_types_fini();
	mpi_pools_fini();
	printf("ok 1 - %" PRIu64 " random datatypes are what their type maps say\n", types_made);
	return 0;
}
