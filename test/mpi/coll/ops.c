/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every predefined operation on every predefined datatype, one process: where it is defined, the
 * result is that of the C operator element by element, at any alignment; where not, MPI_ERR_OP.
 */
#include "test/mpi/coll_check.h"

#include <complex.h>
#include <math.h>

enum { SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, REPLACE, NO_OP, OPS };

static MPI_Op ops[OPS];
static const char *const op_names[OPS] = { "SUM",    "PROD",   "MIN",     "MAX",  "BAND",
					   "BOR",    "BXOR",   "LAND",    "LOR",  "LXOR",
					   "MINLOC", "MAXLOC", "REPLACE", "NO_OP" };

#define BIT(op)  (1u << (op))
#define ARITH    (BIT(SUM) | BIT(PROD))
#define ORDER    (BIT(MIN) | BIT(MAX))
#define BITWISE  (BIT(BAND) | BIT(BOR) | BIT(BXOR))
#define LOGIC    (BIT(LAND) | BIT(LOR) | BIT(LXOR))
#define INTEGERS (ARITH | ORDER | BITWISE | LOGIC)
#define FLOATS   (ARITH | ORDER | LOGIC)
#define PLACES   (BIT(MINLOC) | BIT(MAXLOC))

/* The naive model: b[i] = a[i] op b[i]; and how operands are drawn. */
struct row {
	const char *name;
	MPI_Datatype type;
	size_t size;
	unsigned ops;
	void (*fill)(void *at, int n, int op);
	void (*model)(int op, const void *a, void *b, int n);
};

__extension__ typedef unsigned __int128 ubig;

/* Products and sums wrap around; done in the widest type and cut. */
#define INTEGER(name, type)                                                                        \
	static void fill_##name(void *at, int n, int op)                                           \
	{                                                                                          \
		type *p = at;                                                                      \
                                                                                                   \
		for (int i = 0; i < n; i++) {                                                      \
			ubig x = (ubig)draw() << 64 | draw();                                      \
                                                                                                   \
			p[i] = op >= LAND && draw_below(2) ? (type)0 : (type)x;                    \
		}                                                                                  \
	}                                                                                          \
	static void model_##name(int op, const void *in, void *inout, int n)                       \
	{                                                                                          \
		const type *p = in;                                                                \
		type *q = inout;                                                                   \
                                                                                                   \
		for (int i = 0; i < n; i++) {                                                      \
			type a = p[i], b = q[i];                                                   \
                                                                                                   \
			q[i] = op == SUM    ? (type)((ubig)a + (ubig)b)                            \
			       : op == PROD ? (type)((ubig)a * (ubig)b)                            \
			       : op == MIN  ? (b < a ? b : a)                                      \
			       : op == MAX  ? (b > a ? b : a)                                      \
			       : op == BAND ? (type)(a & b)                                        \
			       : op == BOR  ? (type)(a | b)                                        \
			       : op == BXOR ? (type)(a ^ b)                                        \
			       : op == LAND ? (type)(a && b)                                       \
			       : op == LOR  ? (type)(a || b)                                       \
					    : (type)(!a != !b);                                     \
		}                                                                                  \
	}
INTEGER(schar, signed char)
INTEGER(uchar, unsigned char)
INTEGER(char, char)
INTEGER(short, short)
INTEGER(ushort, unsigned short)
INTEGER(int, int)
INTEGER(uint, unsigned)
INTEGER(long, long)
INTEGER(ulong, unsigned long)
#ifdef MPI_ABI_VERSION
__extension__ typedef __int128 big;
INTEGER(big, big)
#endif

/* Values whose sums and products depend on rounding; of truths zeros of both signs, and what is no
 * number is true. */
#define REAL(name, type)                                                                           \
	static void fill_##name(void *at, int n, int op)                                           \
	{                                                                                          \
		const type few[] = { 0, -(type)0, (type)NAN, (type)1e-30 };                        \
		type *p = at;                                                                      \
                                                                                                   \
		for (int i = 0; i < n; i++)                                                        \
			p[i] = BIT(op) & LOGIC && draw_below(4)                                    \
				       ? few[draw_below(4)]                                        \
				       : (type)((double)(int64_t)draw() / 3e15);                   \
	}                                                                                          \
	static void model_##name(int op, const void *in, void *inout, int n)                       \
	{                                                                                          \
		const type *p = in;                                                                \
		type *q = inout;                                                                   \
                                                                                                   \
		for (int i = 0; i < n; i++) {                                                      \
			type a = p[i], b = q[i];                                                   \
                                                                                                   \
			if (op == SUM)                                                             \
				q[i] = a + b;                                                      \
			else if (op == PROD)                                                       \
				q[i] = a * b;                                                      \
			else if (op == LAND)                                                       \
				q[i] = (type)(a && b);                                             \
			else if (op == LOR)                                                        \
				q[i] = (type)(a || b);                                             \
			else if (op == LXOR)                                                       \
				q[i] = (type)(!a != !b);                                           \
			else if (op == MIN ? a < b : a > b)                                        \
				q[i] = a;                                                          \
		}                                                                                  \
	}
REAL(float, float)
REAL(double, double)
REAL(ldouble, long double)
#ifdef MPI_ABI_VERSION
__extension__ typedef __float128 quad;
REAL(quad, quad)
#endif

/* Whole numbers: C's product may be computed in another way, but is exact then. */
#define COMPLEX(name, part)                                                                        \
	static void fill_##name(void *at, int n, int op)                                           \
	{                                                                                          \
		part *p = at;                                                                      \
                                                                                                   \
		(void)op;                                                                          \
		for (int i = 0; i < 2 * n; i++)                                                    \
			p[i] = (part)(draw_below(2001) - 1000);                                    \
	}                                                                                          \
	static void model_##name(int op, const void *in, void *inout, int n)                       \
	{                                                                                          \
		const part *p = in;                                                                \
		part *q = inout;                                                                   \
                                                                                                   \
		for (int i = 0; i < 2 * n; i += 2) {                                               \
			part re = op == SUM ? p[i] + q[i] : p[i] * q[i] - p[i + 1] * q[i + 1];     \
			part im = op == SUM ? p[i + 1] + q[i + 1]                                  \
					    : p[i + 1] * q[i] + p[i] * q[i + 1];                   \
                                                                                                   \
			q[i] = re;                                                                 \
			q[i + 1] = im;                                                             \
		}                                                                                  \
	}
COMPLEX(cfloat, float)
COMPLEX(cdouble, double)
COMPLEX(cldouble, long double)
#ifdef MPI_ABI_VERSION
COMPLEX(cquad, quad)
#endif

#define PAIR(name, value_type, index_type)                                                         \
	struct name {                                                                              \
		value_type value;                                                                  \
		index_type index;                                                                  \
	};                                                                                         \
	static void fill_##name(void *at, int n, int op)                                           \
	{                                                                                          \
		struct name *p = at;                                                               \
                                                                                                   \
		(void)op;                                                                          \
		for (int i = 0; i < n; i++) {                                                      \
			p[i].value = (value_type)(draw_below(7) - 3);                              \
			p[i].index = (index_type)draw_below(100);                                  \
		}                                                                                  \
	}                                                                                          \
	static void model_##name(int op, const void *in, void *inout, int n)                       \
	{                                                                                          \
		const struct name *p = in;                                                         \
		struct name *q = inout;                                                            \
                                                                                                   \
		for (int i = 0; i < n; i++) {                                                      \
			if (p[i].value == q[i].value) {                                            \
				if (p[i].index < q[i].index)                                       \
					q[i].index = p[i].index;                                   \
			} else if ((p[i].value < q[i].value) == (op == MINLOC)) {                  \
				q[i].value = p[i].value;                                           \
				q[i].index = p[i].index;                                           \
			}                                                                          \
		}                                                                                  \
	}
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(int_int, int, int)
PAIR(short_int, short, int)
PAIR(ldouble_int, long double, int)
PAIR(float_float, float, float)
PAIR(double_double, double, double)

/* Truths as one byte are 0 or 1. */
static void fill_bool(void *at, int n, int op)
{
	(void)op;
	for (int i = 0; i < n; i++)
		((bool *)at)[i] = draw_below(2);
}

#define ROW(type, set, model, ctype)                                                               \
	{                                                                                          \
#type, type, sizeof(ctype), set, fill_##model, model_##model                       \
	}

static const struct row *row;
static struct row rows[] = {
	ROW(MPI_SIGNED_CHAR, INTEGERS, schar, char),
	ROW(MPI_UNSIGNED_CHAR, INTEGERS, uchar, char),
	ROW(MPI_CHAR, INTEGERS, char, char),
	ROW(MPI_CHARACTER, INTEGERS, uchar, char),
	ROW(MPI_SHORT, INTEGERS, short, short),
	ROW(MPI_UNSIGNED_SHORT, INTEGERS, ushort, short),
	ROW(MPI_INT, INTEGERS, int, int),
	ROW(MPI_UNSIGNED, INTEGERS, uint, int),
	ROW(MPI_LONG, INTEGERS, long, long),
	ROW(MPI_UNSIGNED_LONG, INTEGERS, ulong, long),
	ROW(MPI_LONG_LONG, INTEGERS, long, long),
	ROW(MPI_UNSIGNED_LONG_LONG, INTEGERS, ulong, long),
	ROW(MPI_INT8_T, INTEGERS, schar, char),
	ROW(MPI_UINT8_T, INTEGERS, uchar, char),
	ROW(MPI_INT16_T, INTEGERS, short, short),
	ROW(MPI_UINT16_T, INTEGERS, ushort, short),
	ROW(MPI_INT32_T, INTEGERS, int, int),
	ROW(MPI_UINT32_T, INTEGERS, uint, int),
	ROW(MPI_INT64_T, INTEGERS, long, long),
	ROW(MPI_UINT64_T, INTEGERS, ulong, long),
	ROW(MPI_AINT, INTEGERS, long, long),
	ROW(MPI_OFFSET, INTEGERS, long, long),
	ROW(MPI_COUNT, INTEGERS, long, long),
	ROW(MPI_INTEGER, INTEGERS, int, int),
	ROW(MPI_INTEGER1, INTEGERS, schar, char),
	ROW(MPI_INTEGER2, INTEGERS, short, short),
	ROW(MPI_INTEGER4, INTEGERS, int, int),
	ROW(MPI_INTEGER8, INTEGERS, long, long),
	ROW(MPI_FLOAT, FLOATS, float, float),
	ROW(MPI_DOUBLE, FLOATS, double, double),
	ROW(MPI_LONG_DOUBLE, FLOATS, ldouble, long double),
	ROW(MPI_REAL, FLOATS, float, float),
	ROW(MPI_DOUBLE_PRECISION, FLOATS, double, double),
	ROW(MPI_REAL4, FLOATS, float, float),
	ROW(MPI_REAL8, FLOATS, double, double),
	ROW(MPI_C_FLOAT_COMPLEX, ARITH, cfloat, float complex),
	ROW(MPI_C_DOUBLE_COMPLEX, ARITH, cdouble, double complex),
	ROW(MPI_C_LONG_DOUBLE_COMPLEX, ARITH, cldouble, long double complex),
	ROW(MPI_CXX_FLOAT_COMPLEX, ARITH, cfloat, float complex),
	ROW(MPI_CXX_DOUBLE_COMPLEX, ARITH, cdouble, double complex),
	ROW(MPI_CXX_LONG_DOUBLE_COMPLEX, ARITH, cldouble, long double complex),
	ROW(MPI_COMPLEX, ARITH, cfloat, float complex),
	ROW(MPI_DOUBLE_COMPLEX, ARITH, cdouble, double complex),
	ROW(MPI_COMPLEX8, ARITH, cfloat, float complex),
	ROW(MPI_COMPLEX16, ARITH, cdouble, double complex),
	{ "MPI_C_BOOL", MPI_C_BOOL, 1, LOGIC, fill_bool, model_uchar },
	{ "MPI_CXX_BOOL", MPI_CXX_BOOL, 1, LOGIC, fill_bool, model_uchar },
	ROW(MPI_LOGICAL, LOGIC, int, int),
	ROW(MPI_BYTE, BITWISE, uchar, char),
	ROW(MPI_FLOAT_INT, PLACES, float_int, struct float_int),
	ROW(MPI_DOUBLE_INT, PLACES, double_int, struct double_int),
	ROW(MPI_LONG_INT, PLACES, long_int, struct long_int),
	ROW(MPI_2INT, PLACES, int_int, struct int_int),
	ROW(MPI_SHORT_INT, PLACES, short_int, struct short_int),
	ROW(MPI_LONG_DOUBLE_INT, PLACES, ldouble_int, struct ldouble_int),
	ROW(MPI_2REAL, PLACES, float_float, struct float_float),
	ROW(MPI_2DOUBLE_PRECISION, PLACES, double_double, struct double_double),
	ROW(MPI_2INTEGER, PLACES, int_int, struct int_int),
	ROW(MPI_WCHAR, 0, int, int),
	ROW(MPI_PACKED, 0, uchar, char),
#ifdef MPI_ABI_VERSION
	ROW(MPI_INTEGER16, INTEGERS, big, big),
	ROW(MPI_REAL16, FLOATS, quad, quad),
	ROW(MPI_COMPLEX32, ARITH, cquad, quad[2]),
	ROW(MPI_LOGICAL1, LOGIC, uchar, char),
	ROW(MPI_LOGICAL2, LOGIC, ushort, short),
	ROW(MPI_LOGICAL4, LOGIC, uint, int),
	ROW(MPI_LOGICAL8, LOGIC, ulong, long),
	ROW(MPI_LOGICAL16, LOGIC, big, big),
#endif
};

#define MOST 1000

static const char *right(int op, int n, int shift)
{
	static _Alignas(64) char a[MOST * 32], b[MOST * 32], in[MOST * 32 + 64],
		out[MOST * 32 + 64];
	size_t bytes = (size_t)n * row->size;

	memset(a, 0, bytes);
	memset(b, 0, bytes);
	row->fill(a, n, op);
	row->fill(b, n, op);
	memset(out, 0x77, sizeof(out));
	memcpy(in + shift, a, bytes);
	memcpy(out + shift, b, bytes);
	MPI_Reduce_local(in + shift, out + shift, n, row->type, ops[op]);
	row->model(op, a, b, n);
	if (memcmp(out + shift, b, bytes) != 0)
		return tap_wrong("%s of %d is wrong", op_names[op], n);
	if (memcmp(in + shift, a, bytes) != 0)
		return tap_wrong("%s wrote its left operand", op_names[op]);
	return out[(size_t)shift + bytes] == 0x77 ? NULL
						  : tap_wrong("%s wrote too far", op_names[op]);
}

static const char *refused(int op)
{
	long a[4] = { 1 }, b[4] = { 2 };
	int code = MPI_Reduce_local(a, b, 1, row->type, ops[op]), class = 0;

	if (code)
		MPI_Error_class(code, &class);
	return class == MPI_ERR_OP ? NULL : tap_wrong("%s gave %d", op_names[op], class);
}

static const char *all_ops(int round)
{
	const char *wrong = NULL;

	for (int op = 0; op < OPS && !wrong; op++) {
		if (tap_tame && row->ops == FLOATS && BIT(op) & LOGIC)
			continue; /* MPICH 4.0 ends, or does nothing */
		if (tap_tame && (op == MIN || op == MAX) &&
		    (strchr(row->name, 'U') || row->fill == fill_uchar))
			continue; /* MPICH 4.0 compares unsigned numbers as signed ones */
		if (row->ops & BIT(op)) {
			int n = round % 3 == 0 ? 1 + draw_below(40) : 1 + draw_below(MOST);

			wrong = right(op, n, tap_tame ? 0 : (int)(draw() % 17));
		} else if (!tap_tame) {
			wrong = refused(op);
		}
	}
	return wrong;
}

/* ---- operations as objects ------------------------------------------------------------------- */

static void take_left(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	memcpy(inout, in, (size_t)*n * sizeof(int));
}

static const char *objects(int round)
{
	int commutes = -1, class = 0, a = 1, b = 2, code;
	MPI_Op op;

	(void)round;
	MPI_Op_create(take_left, 0, &op);
	MPI_Op_commutative(op, &commutes);
	MPI_Reduce_local(&a, &b, 1, MPI_INT, op);
	if (commutes != 0 || b != 1)
		return tap_wrong("commutes %d, result %d", commutes, b);
	MPI_Op_free(&op);
	if (op != MPI_OP_NULL)
		return tap_wrong("the handle stands after MPI_Op_free");
	MPI_Op_commutative(MPI_SUM, &commutes);
	if (!commutes)
		return tap_wrong("MPI_SUM does not commute");
	op = MPI_SUM;
	code = MPI_Op_free(&op);
	if (code)
		MPI_Error_class(code, &class);
	if (class != MPI_ERR_OP || op != MPI_SUM)
		return tap_wrong("freeing MPI_SUM gave %d", class);
	return NULL;
}

static const char *derived(int round)
{
	long a[4] = { 0 }, b[4] = { 0 };
	int class = 0, code;
	MPI_Datatype pair;

	(void)round;
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	code = MPI_Reduce_local(a, b, 1, pair, MPI_SUM);
	if (code)
		MPI_Error_class(code, &class);
	MPI_Type_free(&pair);
	return class == MPI_ERR_OP ? NULL : tap_wrong("MPI_SUM of a derived type gave %d", class);
}

#ifdef MPI_ABI_VERSION
/* Types without a name are predefined, too. */
static const char *unnamed(int round)
{
	struct {
		long value;
		short index;
	} p = { 5, 3 }, q = { 5, 4 };
	double x = 1.5, y = 2.25;
	MPI_Datatype t;

	(void)round;
	MPI_Type_create_f90_real(12, MPI_UNDEFINED, &t);
	if (MPI_Reduce_local(&x, &y, 1, t, MPI_SUM) || y != 3.75)
		return tap_wrong("a sum of Fortran's reals is %g", y);
	MPI_Type_get_value_index(MPI_LONG, MPI_SHORT, &t);
	if (t == MPI_DATATYPE_NULL)
		return tap_wrong("no pairs of MPI_LONG and MPI_SHORT");
	if (MPI_Reduce_local(&p, &q, 1, t, MPI_MAXLOC) || q.value != 5 || q.index != 3)
		return tap_wrong("equal values: index %d", q.index);
	p.value = 6;
	p.index = 9;
	if (MPI_Reduce_local(&p, &q, 1, t, MPI_MAXLOC) || q.value != 6 || q.index != 9)
		return tap_wrong("a greater value: index %d", q.index);
	if (MPI_Reduce_local(&q, &p, 1, t, MPI_SUM) == MPI_SUCCESS)
		return tap_wrong("MPI_SUM of pairs");
	return NULL;
}
#endif

int main(int argc, char **argv)
{
	static const MPI_Op all[OPS] = { MPI_SUM,    MPI_PROD,   MPI_MIN,     MPI_MAX,  MPI_BAND,
					 MPI_BOR,    MPI_BXOR,   MPI_LAND,    MPI_LOR,  MPI_LXOR,
					 MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP };

	tap_start(argc, argv, 12);
	memcpy(ops, all, sizeof(ops));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		row = &rows[i];
		tap_case(row->name, all_ops);
	}
	tap_case("operations are objects", objects);
	tap_case("no predefined operation on derived types", derived);
#ifdef MPI_ABI_VERSION
	tap_case("operations on types without a name", unnamed);
#endif
	return tap_end();
}
