/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The predefined operations on the predefined types (MPI-4 §6.9.2 to 6.9.4). There is one loop
 * for each operation and machine type, in a form that compilers vectorise, and the table that
 * finds it.
 *
 * Elements are read and written through types of alignment 1. Fortran COMMON blocks and old C
 * codes pass doubles at any multiple of 4, and on today's processors unaligned vectors cost
 * nothing.
 */
#include "mpi_shim/coll/op.h"

#include <limits.h>
#include <string.h>

#define LOOSE __attribute__((may_alias, aligned(1)))

typedef int8_t LOOSE i8;
typedef uint8_t LOOSE u8;
typedef int16_t LOOSE i16;
typedef uint16_t LOOSE u16;
typedef int32_t LOOSE i32;
typedef uint32_t LOOSE u32;
typedef int64_t LOOSE i64;
typedef uint64_t LOOSE u64;
__extension__ typedef __int128 LOOSE i128;
__extension__ typedef unsigned __int128 LOOSE u128;
__extension__ typedef unsigned __int128 wide;
typedef float LOOSE f32;
typedef double LOOSE f64;
typedef long double LOOSE fld;
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 LOOSE f128;
#else
typedef long double LOOSE f128; /* if it has the IEEE format itself */
#endif

/* A complex number as its parts. A product is then four multiplications, as in other languages;
 * C's own would call a function that repairs infinities. */
#define COMPLEX(name, part)                                                                        \
	typedef struct {                                                                           \
		part re, im;                                                                       \
	} LOOSE name;
COMPLEX(c32, f32)
COMPLEX(c64, f64)
COMPLEX(cld, fld)
COMPLEX(c128, f128)

/* Value and index, in C's layout. */
#define PAIR(name, type, index_type)                                                               \
	struct __attribute__((may_alias)) plain_##name {                                           \
		type value;                                                                        \
		index_type index;                                                                  \
	};                                                                                         \
	typedef struct plain_##name __attribute__((aligned(1))) name;
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(short_int, short, int)
PAIR(ld_int, long double, int)
PAIR(two_i32, int32_t, int32_t)
PAIR(two_i64, int64_t, int64_t)
PAIR(two_f32, float, float)
PAIR(two_f64, double, double)

/* The width of vectors is chosen for the processor when the library is loaded. Then sums of
 * data in the nearest cache take a third of the time. Only loops of one operation are marked:
 * of two operations the compiler would make one, with other bits. Sanitizers cannot be in code
 * that runs that early. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__) && __GNUC__ >= 12 &&    \
	!defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define WIDE
#endif

#define LOOP(name, type, expression)                                                               \
	WIDE static void name(const void *restrict in, void *restrict inout, size_t n)             \
	{                                                                                          \
		const type *restrict a = in;                                                       \
		type *restrict b = inout;                                                          \
                                                                                                   \
		for (size_t i = 0; i < n; i++)                                                     \
			b[i] = (type)(expression);                                                 \
	}

#define ORDER_LOOPS(t)                                                                             \
	LOOP(min_##t, t, a[i] < b[i] ? a[i] : b[i])                                                \
	LOOP(max_##t, t, a[i] > b[i] ? a[i] : b[i])

/* Sums and products wrap around without undefined behaviour: `m` is an unsigned type that is
 * not promoted to a signed one. They and the bit operations are the same for both signs. */
#define BIT_LOOPS(t)                                                                               \
	LOOP(band_##t, t, a[i] & b[i])                                                             \
	LOOP(bor_##t, t, a[i] | b[i])                                                              \
	LOOP(bxor_##t, t, a[i] ^ b[i])
#define LOGICAL_LOOPS(t)                                                                           \
	LOOP(land_##t, t, (a[i] != 0) & (b[i] != 0))                                               \
	LOOP(lor_##t, t, (a[i] != 0) | (b[i] != 0))                                                \
	LOOP(lxor_##t, t, (a[i] != 0) ^ (b[i] != 0))
#define INTEGER_LOOPS(u, s, m)                                                                     \
	LOOP(sum_##u, u, (m)a[i] + (m)b[i])                                                        \
	LOOP(prod_##u, u, (m)a[i] * (m)b[i])                                                       \
	BIT_LOOPS(u)                                                                               \
	LOGICAL_LOOPS(u)                                                                           \
	ORDER_LOOPS(s)
INTEGER_LOOPS(u8, i8, unsigned)
INTEGER_LOOPS(u16, i16, unsigned)
INTEGER_LOOPS(u32, i32, uint32_t)
INTEGER_LOOPS(u64, i64, uint64_t)
INTEGER_LOOPS(u128, i128, wide)
ORDER_LOOPS(u8)
ORDER_LOOPS(u16)
ORDER_LOOPS(u32)
ORDER_LOOPS(u64)

#define FLOAT_LOOPS(t)                                                                             \
	LOOP(sum_##t, t, a[i] + b[i])                                                              \
	LOOP(prod_##t, t, a[i] * b[i])                                                             \
	LOGICAL_LOOPS(t)                                                                           \
	ORDER_LOOPS(t)
FLOAT_LOOPS(f32)
FLOAT_LOOPS(f64)
FLOAT_LOOPS(fld)
FLOAT_LOOPS(f128)

#define COMPLEX_LOOPS(t, part)                                                                     \
	static void sum_##t(const void *restrict in, void *restrict inout, size_t n)               \
	{                                                                                          \
		sum_##part(in, inout, 2 * n);                                                      \
	}                                                                                          \
	static void prod_##t(const void *restrict in, void *restrict inout, size_t n)              \
	{                                                                                          \
		const t *restrict a = in;                                                          \
		t *restrict b = inout;                                                             \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			part re = a[i].re * b[i].re - a[i].im * b[i].im;                           \
			part im = a[i].re * b[i].im + a[i].im * b[i].re;                           \
                                                                                                   \
			b[i].re = re;                                                              \
			b[i].im = im;                                                              \
		}                                                                                  \
	}
COMPLEX_LOOPS(c32, f32)
COMPLEX_LOOPS(c64, f64)
COMPLEX_LOOPS(cld, fld)
COMPLEX_LOOPS(c128, f128)

/* Of equal values the lesser index is taken (MPI-4 §6.9.4). */
#define LOC_LOOP(name, t, better)                                                                  \
	static void name(const void *restrict in, void *restrict inout, size_t n)                  \
	{                                                                                          \
		const t *restrict a = in;                                                          \
		t *restrict b = inout;                                                             \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			if (a[i].value better b[i].value ||                                        \
			    (a[i].value == b[i].value && a[i].index < b[i].index)) {               \
				b[i].value = a[i].value;                                           \
				b[i].index = a[i].index;                                           \
			}                                                                          \
		}                                                                                  \
	}
#define LOC_LOOPS(t)                                                                               \
	LOC_LOOP(minloc_##t, t, <)                                                                 \
	LOC_LOOP(maxloc_##t, t, >)
LOC_LOOPS(float_int)
LOC_LOOPS(double_int)
LOC_LOOPS(long_int)
LOC_LOOPS(short_int)
LOC_LOOPS(ld_int)
LOC_LOOPS(two_i32)
LOC_LOOPS(two_i64)
LOC_LOOPS(two_f32)
LOC_LOOPS(two_f64)

/* ---- which loop ------------------------------------------------------------------------------ */

/* Machine types that have loops. */
enum element {
	NONE,
	I8,
	I16,
	I32,
	I64,
	I128,
	U8,
	U16,
	U32,
	U64,
	F32,
	F64,
	FLD,
	F128,
	C32,
	C64,
	CLD,
	C128,
	L8,
	L16,
	L32,
	L64,
	L128,
	BYTE,
	FLOAT_INT,
	DOUBLE_INT,
	LONG_INT,
	SHORT_INT,
	LD_INT,
	TWO_I32,
	TWO_I64,
	TWO_F32,
	TWO_F64,
	ELEMENTS
};

/* Predefined operations by their handles' distance from MPI_OP_NULL. */
#define OP_BASE 0x20u
#define OPS     0x20u
#define AT(op)  [(0x##op) - OP_BASE]
#define SUM     AT(21)
#define MIN     AT(22)
#define MAX     AT(23)
#define PROD    AT(24)
#define BAND    AT(28)
#define BOR     AT(29)
#define BXOR    AT(2a)
#define LAND    AT(30)
#define LOR     AT(31)
#define LXOR    AT(32)
#define MINLOC  AT(38)
#define MAXLOC  AT(39)

#define BITS(t)     BAND = band_##t, BOR = bor_##t, BXOR = bxor_##t
#define LOGIC(t)    LAND = land_##t, LOR = lor_##t, LXOR = lxor_##t
#define SUMS(t)     SUM = sum_##t, PROD = prod_##t
#define EXTREMES(t) MIN = min_##t, MAX = max_##t
#define PLACES(t)   MINLOC = minloc_##t, MAXLOC = maxloc_##t

static mpi_op_loop *const loops[ELEMENTS][OPS] = {
	[I8] = { SUMS(u8), EXTREMES(i8), BITS(u8), LOGIC(u8) },
	[I16] = { SUMS(u16), EXTREMES(i16), BITS(u16), LOGIC(u16) },
	[I32] = { SUMS(u32), EXTREMES(i32), BITS(u32), LOGIC(u32) },
	[I64] = { SUMS(u64), EXTREMES(i64), BITS(u64), LOGIC(u64) },
	[I128] = { SUMS(u128), EXTREMES(i128), BITS(u128), LOGIC(u128) },
	[U8] = { SUMS(u8), EXTREMES(u8), BITS(u8), LOGIC(u8) },
	[U16] = { SUMS(u16), EXTREMES(u16), BITS(u16), LOGIC(u16) },
	[U32] = { SUMS(u32), EXTREMES(u32), BITS(u32), LOGIC(u32) },
	[U64] = { SUMS(u64), EXTREMES(u64), BITS(u64), LOGIC(u64) },
	[F32] = { SUMS(f32), EXTREMES(f32), LOGIC(f32) },
	[F64] = { SUMS(f64), EXTREMES(f64), LOGIC(f64) },
	[FLD] = { SUMS(fld), EXTREMES(fld), LOGIC(fld) },
	[F128] = { SUMS(f128), EXTREMES(f128), LOGIC(f128) },
	[C32] = { SUMS(c32) },
	[C64] = { SUMS(c64) },
	[CLD] = { SUMS(cld) },
	[C128] = { SUMS(c128) },
	[L8] = { LOGIC(u8) },
	[L16] = { LOGIC(u16) },
	[L32] = { LOGIC(u32) },
	[L64] = { LOGIC(u64) },
	[L128] = { LOGIC(u128) },
	[BYTE] = { BITS(u8) },
	[FLOAT_INT] = { PLACES(float_int) },
	[DOUBLE_INT] = { PLACES(double_int) },
	[LONG_INT] = { PLACES(long_int) },
	[SHORT_INT] = { PLACES(short_int) },
	[LD_INT] = { PLACES(ld_int) },
	[TWO_I32] = { PLACES(two_i32) },
	[TWO_I64] = { PLACES(two_i64) },
	[TWO_F32] = { PLACES(two_f32) },
	[TWO_F64] = { PLACES(two_f64) },
};

/* Types whose size depends on the platform or the Fortran compiler: a row by log2 of the size. */
enum family { FIXED, SIGNED, UNSIGNED, REALS, COMPLEXES, LOGICALS, INT_PAIRS, REAL_PAIRS };

static const uint8_t by_size[][6] = {
	[SIGNED] = { I8, I16, I32, I64, I128 },
	[UNSIGNED] = { U8, U16, U32, U64 },
	[REALS] = { NONE, NONE, F32, F64, F128 },
	[COMPLEXES] = { NONE, NONE, NONE, C32, C64, C128 },
	[LOGICALS] = { L8, L16, L32, L64, L128 },
	[INT_PAIRS] = { NONE, NONE, NONE, TWO_I32, TWO_I64 },
	[REAL_PAIRS] = { NONE, NONE, NONE, TWO_F32, TWO_F64 },
};

#define TYPE_BASE 0x200u
#define TYPES     0x100u
#define OF(type)  [(0x##type) - TYPE_BASE]

/*
 * By the datatype's handle. Characters (MPI_CHAR, MPI_CHARACTER) are integers here, and
 * floating-point numbers have truth values. The standard does not ask for either; old codes use
 * them, and other implementations allow them.
 */
static const struct {
	uint8_t family;  /* enum family */
	uint8_t element; /* if FIXED */
} kinds[TYPES] = {
	OF(201) = { SIGNED, 0 },                     /* AINT */
	OF(202) = { SIGNED, 0 },                     /* COUNT */
	OF(203) = { SIGNED, 0 },                     /* OFFSET */
	OF(208) = { SIGNED, 0 },                     /* SHORT */
	OF(209) = { SIGNED, 0 },                     /* INT */
	OF(20a) = { SIGNED, 0 },                     /* LONG */
	OF(20b) = { SIGNED, 0 },                     /* LONG_LONG */
	OF(20c) = { UNSIGNED, 0 },                   /* UNSIGNED_SHORT */
	OF(20d) = { UNSIGNED, 0 },                   /* UNSIGNED */
	OF(20e) = { UNSIGNED, 0 },                   /* UNSIGNED_LONG */
	OF(20f) = { UNSIGNED, 0 },                   /* UNSIGNED_LONG_LONG */
	OF(210) = { FIXED, F32 },                    /* FLOAT */
	OF(212) = { FIXED, C32 },                    /* C_COMPLEX */
	OF(213) = { FIXED, C32 },                    /* CXX_FLOAT_COMPLEX */
	OF(214) = { FIXED, F64 },                    /* DOUBLE */
	OF(216) = { FIXED, C64 },                    /* C_DOUBLE_COMPLEX */
	OF(217) = { FIXED, C64 },                    /* CXX_DOUBLE_COMPLEX */
	OF(218) = { LOGICALS, 0 },                   /* LOGICAL */
	OF(219) = { SIGNED, 0 },                     /* INTEGER */
	OF(21a) = { REALS, 0 },                      /* REAL */
	OF(21b) = { COMPLEXES, 0 },                  /* COMPLEX */
	OF(21c) = { REALS, 0 },                      /* DOUBLE_PRECISION */
	OF(21d) = { COMPLEXES, 0 },                  /* DOUBLE_COMPLEX */
	OF(21e) = { FIXED, U8 },                     /* CHARACTER */
	OF(220) = { FIXED, FLD },                    /* LONG_DOUBLE */
	OF(224) = { FIXED, CLD },                    /* C_LONG_DOUBLE_COMPLEX */
	OF(225) = { FIXED, CLD },                    /* CXX_LONG_DOUBLE_COMPLEX */
	OF(228) = { FIXED, FLOAT_INT },              /* FLOAT_INT */
	OF(229) = { FIXED, DOUBLE_INT },             /* DOUBLE_INT */
	OF(22a) = { FIXED, LONG_INT },               /* LONG_INT */
	OF(22b) = { FIXED, TWO_I32 },                /* 2INT */
	OF(22c) = { FIXED, SHORT_INT },              /* SHORT_INT */
	OF(22d) = { FIXED, LD_INT },                 /* LONG_DOUBLE_INT */
	OF(230) = { REAL_PAIRS, 0 },                 /* 2REAL */
	OF(231) = { REAL_PAIRS, 0 },                 /* 2DOUBLE_PRECISION */
	OF(232) = { INT_PAIRS, 0 },                  /* 2INTEGER */
	OF(238) = { LOGICALS, 0 },                   /* C_BOOL */
	OF(239) = { LOGICALS, 0 },                   /* CXX_BOOL */
	OF(240) = { SIGNED, 0 },                     /* INT8_T */
	OF(241) = { UNSIGNED, 0 },                   /* UINT8_T */
	OF(243) = { FIXED, CHAR_MIN < 0 ? I8 : U8 }, /* CHAR */
	OF(244) = { SIGNED, 0 },                     /* SIGNED_CHAR */
	OF(245) = { UNSIGNED, 0 },                   /* UNSIGNED_CHAR */
	OF(247) = { FIXED, BYTE },                   /* BYTE */
	OF(248) = { SIGNED, 0 },                     /* INT16_T */
	OF(249) = { UNSIGNED, 0 },                   /* UINT16_T */
	OF(250) = { SIGNED, 0 },                     /* INT32_T */
	OF(251) = { UNSIGNED, 0 },                   /* UINT32_T */
	OF(258) = { SIGNED, 0 },                     /* INT64_T */
	OF(259) = { UNSIGNED, 0 },                   /* UINT64_T */
	OF(2c0) = { LOGICALS, 0 },                   /* LOGICAL1 and so on */
	OF(2c1) = { SIGNED, 0 },                     /* INTEGER1 */
	OF(2c8) = { LOGICALS, 0 },                   /* LOGICAL2 */
	OF(2c9) = { SIGNED, 0 },                     /* INTEGER2 */
	OF(2d0) = { LOGICALS, 0 },                   /* LOGICAL4 */
	OF(2d1) = { SIGNED, 0 },                     /* INTEGER4 */
	OF(2d2) = { REALS, 0 },                      /* REAL4 */
	OF(2d8) = { LOGICALS, 0 },                   /* LOGICAL8 */
	OF(2d9) = { SIGNED, 0 },                     /* INTEGER8 */
	OF(2da) = { REALS, 0 },                      /* REAL8 */
	OF(2db) = { COMPLEXES, 0 },                  /* COMPLEX8 */
	OF(2e0) = { LOGICALS, 0 },                   /* LOGICAL16 */
	OF(2e1) = { SIGNED, 0 },                     /* INTEGER16 */
	OF(2e2) = { REALS, 0 },                      /* REAL16 */
	OF(2e3) = { COMPLEXES, 0 },                  /* COMPLEX16 */
	OF(2eb) = { COMPLEXES, 0 },                  /* COMPLEX32 */
};

/* The machine type of a predefined datatype. NONE: no operation is defined on it. This includes
 * the types that this platform does not have, whose size is no valid size. */
static enum element element_of(const struct mpi_type *type)
{
	uint32_t i = type->obj.handle - TYPE_BASE;
	unsigned log;

	if (i >= TYPES || type->size <= 0)
		return NONE;
	if (kinds[i].family == FIXED)
		return kinds[i].element;
	log = (unsigned)__builtin_ctzll((unsigned long long)type->size);
	if (log >= sizeof(by_size[0]) || type->size != (MPI_Count)1 << log)
		return NONE;
	return by_size[kinds[i].family][log];
}

mpi_op_loop *mpi_op_loop_of(const struct mpi_op *op, const struct mpi_type *type)
{
	uint32_t i = op->obj.handle - OP_BASE;
	const struct mpi_type *part;
	MPI_Aint offset;

	if (i >= OPS)
		return NULL;
	/* an unnamed predefined type, made for a Fortran kind, counts as the type of its data */
	if (type->predefined && type->obj.handle >= MPI_HANDLE_PREDEFINED &&
	    !mpi_type_pair(type, &part, &part, &offset) && mpi_type_basic(type))
		type = mpi_type_basic(type);
	return loops[element_of(type)][i];
}

/* a < b (MPI_MIN) or a > b (MPI_MAX), found by whether a replaces b. */
static bool precedes(mpi_op_loop *extreme, const char *a, const char *b, size_t size)
{
	_Alignas(16) char best[32];

	memcpy(best, b, size);
	extreme(a, best, 1);
	return memcmp(best, b, size) != 0;
}

bool mpi_op_pair(const struct mpi_op *op, const struct mpi_type *type, const char *in, char *inout,
		 size_t n)
{
	uint32_t o = op->obj.handle - OP_BASE;
	const struct mpi_type *value, *index;
	mpi_op_loop *extreme, *least;
	MPI_Aint at;

	if (o >= OPS || !loops[FLOAT_INT][o] || !mpi_type_pair(type, &value, &index, &at))
		return false;
	extreme = loops[element_of(value)]
		       [(loops[FLOAT_INT][o] == minloc_float_int ? 0x22 : 0x23) - OP_BASE];
	least = loops[element_of(index)][0x22 - OP_BASE];
	if (!extreme || !least)
		return false;
	for (; n > 0; n--, in += type->extent, inout += type->extent) {
		size_t v = (size_t)value->size, x = (size_t)index->size;

		if (precedes(extreme, in, inout, v) ||
		    (!precedes(extreme, inout, in, v) && precedes(least, in + at, inout + at, x))) {
			memcpy(inout, in, v);
			memcpy(inout + at, in + at, x);
		}
	}
	return true;
}
