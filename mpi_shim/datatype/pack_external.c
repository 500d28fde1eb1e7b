/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The portable format "external32" (MPI-4 §14.5.2): big-endian, with sizes of its own. A long
 * has 4 bytes, a wide character 2, and a long double is an IEEE quadruple. Data pass through a
 * window of packed native data. So only the order of basic elements matters here, not where
 * they lie.
 */
#include "mpi_shim/datatype/body.h"

#include <float.h>
#include <string.h>

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"

enum { WINDOW = 8192, MOST = 32 }; /* bytes; MOST: in a basic element */

/* Convert one basic element. MPI_SUCCESS or mpi_fail(...). */
typedef int convert_fn(const struct mpi_type *basic, unsigned char *to, const unsigned char *from);

/* A window of the packed form of `count` elements of `type`. */
struct window {
	const struct mpi_type *type;
	uintptr_t buf;
	MPI_Count count;
	size_t at, total;  /* packed bytes that passed through; their total */
	size_t used, held; /* packing: bytes read from the window, and in it; unpacking: held */
	unsigned char data[WINDOW];
};

/* ---- elements -------------------------------------------------------------------------------- */

static bool little_endian(void)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* Reverse n bytes; copy them as they are on a big-endian machine. */
static void reverse_bytes(unsigned char *to, const unsigned char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[little_endian() ? n - 1 - i : i];
}

static uint64_t load_be(const unsigned char *from, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | from[i];
	return value;
}

static void store_be(unsigned char *to, uint64_t value, size_t n)
{
	for (size_t i = n; i > 0; i--, value >>= 8)
		to[i - 1] = (unsigned char)value;
}

static uint64_t sign_extended(uint64_t value, size_t bytes)
{
	uint64_t sign = (uint64_t)1 << ((bytes * 8 - 1) & 63);

	return bytes < 8 ? ((value & (2 * sign - 1)) ^ sign) - sign : value;
}

static int does_not_fit(const struct mpi_type *basic, size_t bytes)
{
	return mpi_fail(MPI_ERR_CONVERSION,
			"a value of type %s does not fit the %zu bytes that external32 has for it",
			basic->name, bytes);
}

/* Convert an integer whose two forms differ in size. Both are big-endian and have at most 8
 * bytes. */
static int resize_element(const struct mpi_type *basic, unsigned char *to, size_t to_n,
			  const unsigned char *from, size_t from_n)
{
	bool is_signed = basic->body->basic == MPI_BASIC_SIGNED;
	uint64_t value = load_be(from, from_n), back;

	if (is_signed)
		value = sign_extended(value, from_n);
	store_be(to, value, to_n);
	back = load_be(to, to_n);
	if (is_signed)
		back = sign_extended(back, to_n);
	return back == value ? MPI_SUCCESS : does_not_fit(basic, to_n);
}

#if LDBL_MANT_DIG == 64
/* x87: sign and exponent as in a quadruple, then a significand of 64 bits with an explicit first
 * bit. */

static void quad_from_long_double(unsigned char *to, const unsigned char *from)
{
	uint64_t significand;
	uint16_t top;

	memcpy(&significand, from, 8);
	memcpy(&top, from + 8, 2);
	if ((top & 0x7fff) == 0 && significand >> 63)
		top |= 1; /* the explicit first bit means an exponent of 1 */
	significand <<= 1;
	store_be(to, top, 2);
	store_be(to + 2, significand >> 16, 6);
	store_be(to + 8, significand << 48, 8);
}

static void long_double_from_quad(unsigned char *to, const unsigned char *from)
{
	uint16_t top = (uint16_t)load_be(from, 2);
	uint64_t high = load_be(from + 2, 6), low = load_be(from + 8, 8);
	uint64_t significand = high << 15 | low >> 49; /* 63 bits */
	uint64_t rest = low & (((uint64_t)1 << 49) - 1), half = (uint64_t)1 << 48;

	if ((top & 0x7fff) == 0x7fff) {
		if (high | low)
			significand |= (uint64_t)1 << 62; /* a NaN stays one, whatever is cut off */
	} else if (rest > half || (rest == half && (significand & 1))) {
		significand++; /* to nearest, ties to even; may carry into the exponent */
		if (significand >> 63) {
			significand = 0;
			top++;
		}
	}
	if (top & 0x7fff)
		significand |= (uint64_t)1 << 63;
	memset(to, 0, sizeof(long double));
	memcpy(to, &significand, 8);
	memcpy(to + 8, &top, 2);
}
#endif

static bool is_long_double(const struct mpi_type *basic)
{
	return basic->body->basic == MPI_BASIC_LONG_DOUBLE ||
	       basic->body->basic == MPI_BASIC_LONG_COMPLEX;
}

/* Convert a long double, or both of a complex. */
static int long_doubles(const struct mpi_type *basic, unsigned char *to, const unsigned char *from,
			bool outward)
{
	MPI_Count parts = basic->body->external / 16;

	for (MPI_Count i = 0; i < parts; i++) {
		unsigned char *t = to + i * (MPI_Count)(outward ? 16 : sizeof(long double));
		const unsigned char *f = from + i * (MPI_Count)(outward ? sizeof(long double) : 16);
#if LDBL_MANT_DIG == 64
		if (outward)
			quad_from_long_double(t, f);
		else
			long_double_from_quad(t, f);
#elif LDBL_MANT_DIG == 113
		reverse_bytes(t, f, 16);
#else
		(void)t, (void)f;
		return mpi_fail(MPI_ERR_UNSUPPORTED_OPERATION,
				"this platform's long double is not converted to external32");
#endif
	}
	return MPI_SUCCESS;
}

/* Convert a native element to its external form (`outward`), or back. */
static int convert_basic(const struct mpi_type *basic, unsigned char *to, const unsigned char *from,
			 bool outward)
{
	const struct mpi_type_body *b = basic->body;
	size_t native = (size_t)basic->size, external = (size_t)b->external;
	unsigned char other[MOST];
	int rc;

	if (is_long_double(basic))
		return long_doubles(basic, to, from, outward);
	if (b->basic == MPI_BASIC_COMPLEX) {
		reverse_bytes(to, from, native / 2);
		reverse_bytes(to + native / 2, from + native / 2, native / 2);
	} else if (native == external) {
		reverse_bytes(to, from, native);
	} else if (outward) {
		reverse_bytes(other, from, native);
		return resize_element(basic, to, external, other, native);
	} else {
		rc = resize_element(basic, other, native, from, external);
		reverse_bytes(to, other, native);
		return rc;
	}
	return MPI_SUCCESS;
}

static int to_external(const struct mpi_type *basic, unsigned char *to, const unsigned char *from)
{
	return convert_basic(basic, to, from, true);
}

static int to_native(const struct mpi_type *basic, unsigned char *to, const unsigned char *from)
{
	return convert_basic(basic, to, from, false);
}

/* Convert n elements. If only the bytes are reversed, use loops that compilers recognize. */
static int convert_many(const struct mpi_type *basic, unsigned char *to, size_t to_size,
			const unsigned char *from, size_t from_size, size_t n, convert_fn *one)
{
	bool plain = to_size == from_size && basic->body->basic != MPI_BASIC_COMPLEX &&
		     !is_long_double(basic);
	int rc = MPI_SUCCESS;

	if (plain && (to_size == 1 || !little_endian())) {
		memcpy(to, from, n * to_size);
	} else if (plain && to_size == 4) {
		for (size_t i = 0; i < n; i++) {
			uint32_t v;

			memcpy(&v, from + 4 * i, 4);
			v = __builtin_bswap32(v);
			memcpy(to + 4 * i, &v, 4);
		}
	} else if (plain && to_size == 8) {
		for (size_t i = 0; i < n; i++) {
			uint64_t v;

			memcpy(&v, from + 8 * i, 8);
			v = __builtin_bswap64(v);
			memcpy(to + 8 * i, &v, 8);
		}
	} else {
		for (size_t i = 0; i < n && rc == MPI_SUCCESS; i++)
			rc = one(basic, to + i * to_size, from + i * from_size);
	}
	return rc;
}

/* ---- the window ------------------------------------------------------------------------------ */

static void fill_window(struct window *w)
{
	size_t n;

	w->held -= w->used;
	memmove(w->data, w->data + w->used, w->held);
	w->used = 0;
	n = w->total - w->at < WINDOW - w->held ? w->total - w->at : WINDOW - w->held;
	mpi_type_pack_bytes(w->type, (const void *)w->buf, w->count, w->at, w->data + w->held, n);
	w->at += n;
	w->held += n;
}

static void flush_window(struct window *w)
{
	mpi_type_unpack_bytes(w->type, (void *)w->buf, w->count, w->at, w->data, w->held);
	w->at += w->held;
	w->held = 0;
}

/* Pack n elements of a basic type out of the window. */
static int pack_run(struct window *w, const struct mpi_type *basic, MPI_Count n,
		    unsigned char **external)
{
	size_t native = (size_t)basic->size, out = (size_t)basic->body->external;
	int rc = MPI_SUCCESS;

	while (n > 0 && rc == MPI_SUCCESS) {
		size_t some;

		if (w->held - w->used < native)
			fill_window(w);
		some = (w->held - w->used) / native;
		if ((MPI_Count)some > n)
			some = (size_t)n;
		rc = convert_many(basic, *external, out, w->data + w->used, native, some,
				  to_external);
		*external += some * out;
		w->used += some * native;
		n -= (MPI_Count)some;
	}
	return rc;
}

/* Unpack n elements of a basic type into the window. */
static int unpack_run(struct window *w, const struct mpi_type *basic, MPI_Count n,
		      unsigned char **external)
{
	size_t native = (size_t)basic->size, in = (size_t)basic->body->external;
	int rc = MPI_SUCCESS;

	while (n > 0 && rc == MPI_SUCCESS) {
		size_t some;

		if (WINDOW - w->held < native)
			flush_window(w);
		some = (WINDOW - w->held) / native;
		if ((MPI_Count)some > n)
			some = (size_t)n;
		rc = convert_many(basic, w->data + w->held, native, *external, in, some, to_native);
		*external += some * in;
		w->held += some * native;
		n -= (MPI_Count)some;
	}
	return rc;
}

typedef int run_fn(struct window *w, const struct mpi_type *basic, MPI_Count n,
		   unsigned char **external);

/* Process all runs of one basic type in `count` elements, in order. The depth of types is
 * bounded. */
static int each_run_of_type(struct window *w, const struct mpi_type *t, MPI_Count count,
			    run_fn *run, unsigned char **external)
{
	const struct mpi_type_body *b = t->body;
	int rc = MPI_SUCCESS;

	if (t->size == 0)
		return MPI_SUCCESS;
	if (b->only)
		return run(w, b->only, count * b->elements, external);
	for (MPI_Count i = 0; i < count && rc == MPI_SUCCESS; i++) {
		for (size_t k = 0; k < b->n_types && rc == MPI_SUCCESS; k++) {
			MPI_Count times;
			const struct mpi_type *m = mpi_type_member(t, k, &times);

			rc = each_run_of_type(w, m, times, run, external);
		}
	}
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int check_external(const char *datarep, const struct mpi_type *t, MPI_Count count,
			  bool committed, MPI_Count *native, MPI_Count *external)
{
	int rc;

	if (strcmp(datarep, "external32") != 0)
		return mpi_fail(MPI_ERR_UNSUPPORTED_DATAREP,
				"the data representation \"%s\" is not known; use \"external32\"",
				datarep);
	if (committed && !t->committed)
		return mpi_fail(MPI_ERR_TYPE, "the datatype is not committed; MPI_Type_commit it");
	rc = mpi_type_bytes(t, count, t->size, native);
	return rc != MPI_SUCCESS ? rc : mpi_type_bytes(t, count, t->body->external, external);
}

int mpi_pack_external(const char *datarep, const void *inbuf, MPI_Count incount,
		      struct mpi_type *datatype, void *outbuf, MPI_Count outsize,
		      MPI_Count *position)
{
	struct window w = { .type = datatype, .buf = (uintptr_t)inbuf, .count = incount };
	MPI_Count native = 0, external = 0;
	unsigned char *out;
	int rc = check_external(datarep, datatype, incount, true, &native, &external);

	if (rc == MPI_SUCCESS)
		rc = mpi_pack_room(*position, outsize, external);
	if (rc != MPI_SUCCESS || external == 0)
		return rc;
	w.total = (size_t)native;
	out = (unsigned char *)outbuf + *position;
	rc = each_run_of_type(&w, datatype, incount, pack_run, &out);
	if (rc == MPI_SUCCESS)
		*position += external;
	return rc;
}

int mpi_unpack_external(const char *datarep, const void *inbuf, MPI_Count insize,
			MPI_Count *position, void *outbuf, MPI_Count outcount,
			struct mpi_type *datatype)
{
	struct window w = { .type = datatype, .buf = (uintptr_t)outbuf, .count = outcount };
	MPI_Count native = 0, external = 0;
	unsigned char *in;
	int rc = check_external(datarep, datatype, outcount, true, &native, &external);

	if (rc == MPI_SUCCESS)
		rc = mpi_pack_room(*position, insize, external);
	if (rc != MPI_SUCCESS || external == 0)
		return rc;
	w.total = (size_t)native;
	/* only read from */
	in = (unsigned char *)(uintptr_t)inbuf + *position;
	rc = each_run_of_type(&w, datatype, outcount, unpack_run, &in);
	flush_window(&w);
	if (rc == MPI_SUCCESS)
		*position += external;
	return rc;
}

int mpi_pack_external_size(const char *datarep, MPI_Count incount, struct mpi_type *datatype,
			   MPI_Count *size)
{
	MPI_Count native = 0, external = 0;
	int rc = check_external(datarep, datatype, incount, false, &native, &external);

	if (rc == MPI_SUCCESS)
		*size = external;
	return rc;
}
