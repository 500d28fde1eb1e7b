/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Windows as objects, what is wrong with a call, and what the standard lets a program rely on
 * besides the operations: attributes, hints, names, groups, error handlers, shared memory,
 * attached memory, epochs. Usage: [SEED [ROUNDS [tame]]].
 */
#include "test/mpi/pt2pt/check.h"

enum { FLAVORS = 4, INTS = 16 };

static MPI_Win win;
static int *memory;

static void make_window(int flavor)
{
	MPI_Aint bytes = INTS * (MPI_Aint)sizeof(int);

	if (flavor == 0) {
		memory = malloc((size_t)bytes);
		MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	} else if (flavor == 1) {
		MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else if (flavor == 2) {
		MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
					&win);
	} else {
		memory = malloc((size_t)bytes);
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_attach(win, memory, bytes);
	}
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
}

static void free_window(int flavor)
{
	if (flavor == 3)
		MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	if (flavor == 0 || flavor == 3)
		free(memory);
}

static const char *attributes(int flavor)
{
	static const int flavors[] = { MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
				       MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC };
	void *base;
	MPI_Aint *size;
	int *number, flag, keyval, value = 5, *got;

	make_window(flavor);
	CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
	CHECK(flag && base == (flavor == 3 ? MPI_BOTTOM : (void *)memory));
	CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &flag));
	CHECK(flag);
	CHECK_INT(*size, flavor == 3 ? 0 : INTS * sizeof(int));
	CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag));
	CHECK(flag);
	CHECK_INT(*number, flavor == 3 ? 1 : sizeof(int));
	CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag));
	CHECK(flag);
	CHECK_INT(*number, flavors[flavor]);
	CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag));
	CHECK(flag);
	CHECK_INT(*number, MPI_WIN_UNIFIED);
	CHECK_OK(
		MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
	CHECK_OK(MPI_Win_get_attr(win, keyval, &got, &flag));
	CHECK(!flag);
	CHECK_OK(MPI_Win_set_attr(win, keyval, &value));
	CHECK_OK(MPI_Win_get_attr(win, keyval, &got, &flag));
	CHECK(flag && got == &value);
	CHECK_OK(MPI_Win_delete_attr(win, keyval));
	CHECK_OK(MPI_Win_get_attr(win, keyval, &got, &flag));
	CHECK(!flag);
	CHECK_OK(MPI_Win_free_keyval(&keyval));
	if (!tap_tame)
		CHECK_CLASS(MPI_Win_set_attr(win, MPI_WIN_SIZE, &value), MPI_ERR_KEYVAL);
	free_window(flavor);
	return NULL;
}

static int deleted;

static int on_delete(MPI_Win of, int keyval, void *value, void *extra)
{
	(void)of, (void)keyval, (void)extra;
	deleted += *(int *)value;
	return MPI_SUCCESS;
}

static const char *names_and_groups(int flavor)
{
	char name[MPI_MAX_OBJECT_NAME];
	int len, result, keyval, seven = 7;
	MPI_Group group, world;

	make_window(flavor);
	CHECK_OK(MPI_Win_get_name(win, name, &len));
	CHECK_OK(MPI_Win_set_name(win, "a window with a name"));
	CHECK_OK(MPI_Win_get_name(win, name, &len));
	CHECK(strcmp(name, "a window with a name") == 0 && len == (int)strlen(name));
	CHECK_OK(MPI_Win_get_group(win, &group));
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_compare(group, world, &result);
	CHECK_INT(result, MPI_IDENT);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	deleted = 0;
	CHECK_OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, NULL));
	CHECK_OK(MPI_Win_set_attr(win, keyval, &seven));
	CHECK_OK(MPI_Win_free_keyval(&keyval));
	free_window(flavor);
	CHECK_INT(deleted, 7);
	CHECK(win == MPI_WIN_NULL);
	return NULL;
}

static const char *hints(int flavor)
{
	char value[MPI_MAX_INFO_VAL];
	MPI_Info info, used;
	int flag;

	(void)flavor;
	MPI_Info_create(&info);
	MPI_Info_set(info, "no_locks", "true");
	MPI_Info_set(info, "what nobody knows", "1");
	CHECK_OK(MPI_Win_allocate(8, 1, info, MPI_COMM_WORLD, &memory, &win));
	CHECK_OK(MPI_Win_get_info(win, &used));
	MPI_Info_get(used, "no_locks", sizeof(value) - 1, value, &flag);
	CHECK(flag && strcmp(value, "true") == 0);
	if (!tap_tame) {
		MPI_Info_get(used, "what nobody knows", sizeof(value) - 1, value, &flag);
		CHECK(!flag);
		MPI_Info_get(used, "accumulate_ordering", sizeof(value) - 1, value, &flag);
		CHECK(flag && strcmp(value, "rar,raw,war,waw") == 0);
	}
	MPI_Info_free(&used);
	MPI_Info_set(info, "no_locks", "false");
	CHECK_OK(MPI_Win_set_info(win, info));
	CHECK_OK(MPI_Win_get_info(win, &used));
	MPI_Info_get(used, "no_locks", sizeof(value) - 1, value, &flag);
	CHECK(flag && strcmp(value, "false") == 0);
	MPI_Info_free(&used);
	MPI_Info_free(&info);
	CHECK_OK(MPI_Win_free(&win));
	return NULL;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static const char *shared(int gaps)
{
	MPI_Info info;
	MPI_Aint size;
	char *mine, *at, *before = NULL;
	int unit;

	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", gaps ? "true" : "false");
	CHECK_OK(MPI_Win_allocate_shared(tap_rank == 1 ? 0 : 24 + 8 * tap_rank, 1 + tap_rank, info,
					 MPI_COMM_WORLD, &mine, &win));
	MPI_Info_free(&info);
	CHECK_OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
	if (tap_rank != 1)
		memset(mine, tap_rank + 1, (size_t)(24 + 8 * tap_rank));
	CHECK_OK(MPI_Win_sync(win));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Win_sync(win));
	for (int r = 0; r < tap_size; r++) {
		CHECK_OK(MPI_Win_shared_query(win, r, &size, &unit, &at));
		CHECK_INT(size, r == 1 ? 0 : 24 + 8 * r);
		CHECK_INT(unit, 1 + r);
		for (int i = 0; i < size; i++)
			CHECK_INT(at[i], r + 1);
		if (!gaps && r > 1 && before)
			CHECK(at == before);
		if (size)
			before = at + size;
		if (r == tap_rank && size)
			CHECK(at == mine);
	}
	CHECK_OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &at));
	CHECK(size == 24 && at[0] == 1);
	CHECK_OK(MPI_Win_unlock_all(win));
	CHECK_OK(MPI_Win_free(&win));
	return NULL;
}

/* A request of some ranks only. */
static const char *shared_asked_by_some(int round)
{
	MPI_Info info;
	MPI_Aint size;
	char *mine, *at;
	int unit;

	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", tap_rank % 2 == round ? "true" : "false");
	CHECK_OK(MPI_Win_allocate_shared(5000, 1, info, MPI_COMM_WORLD, &mine, &win));
	MPI_Info_free(&info);
	CHECK_OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
	memset(mine, tap_rank + 1, 5000);
	CHECK_OK(MPI_Win_sync(win));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Win_sync(win));
	for (int r = 0; r < tap_size; r++) {
		CHECK_OK(MPI_Win_shared_query(win, r, &size, &unit, &at));
		for (int i = 0; i < 5000; i++)
			CHECK_INT(at[i], r + 1);
	}
	CHECK_OK(MPI_Win_unlock_all(win));
	CHECK_OK(MPI_Win_free(&win));
	return NULL;
}

/* ---- attached memory ------------------------------------------------------------------------- */

static const char *attached(int round)
{
	enum { SEGMENTS = 20 };
	int *piece[SEGMENTS], got, peer = (tap_rank + 1) % tap_size, put;
	MPI_Aint at[SEGMENTS], theirs[SEGMENTS];

	(void)round;
	CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	CHECK_OK(MPI_Win_lock_all(0, win));
	for (int pass = 0; pass < 3; pass++) {
		for (int i = 0; i < SEGMENTS; i++) {
			/* at the same addresses as before, mostly */
			piece[i] = malloc((size_t)(i + pass + 1) * sizeof(int));
			for (int k = 0; k <= i + pass; k++)
				piece[i][k] = 1000 * pass + 100 * tap_rank + i;
			CHECK_OK(MPI_Win_attach(win, piece[i],
						(i + pass + 1) * (MPI_Aint)sizeof(int)));
			MPI_Get_address(piece[i], &at[i]);
		}
		MPI_Sendrecv(at, SEGMENTS, MPI_AINT, (tap_rank + tap_size - 1) % tap_size, 5,
			     theirs, SEGMENTS, MPI_AINT, peer, 5, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		for (int i = 0; i < SEGMENTS; i++) {
			CHECK_OK(
				MPI_Get(&got, 1, MPI_INT, peer,
					MPI_Aint_add(theirs[i], (i + pass) * (MPI_Aint)sizeof(int)),
					1, MPI_INT, win));
			CHECK_OK(MPI_Win_flush(peer, win));
			CHECK_INT(got, 1000 * pass + 100 * peer + i);
			put = got + 50;
			CHECK_OK(MPI_Put(&put, 1, MPI_INT, peer, theirs[i], 1, MPI_INT, win));
			CHECK_OK(MPI_Win_flush(peer, win));
		}
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK_OK(MPI_Win_sync(win));
		for (int i = 0; i < SEGMENTS; i++) {
			CHECK_INT(piece[i][0], 1000 * pass + 100 * tap_rank + i + 50);
			CHECK_OK(MPI_Win_detach(win, piece[i]));
			free(piece[i]);
		}
		if (!tap_tame) {
			MPI_Barrier(MPI_COMM_WORLD);
			CHECK_CLASS(MPI_Get(&got, 1, MPI_INT, peer, theirs[0], 1, MPI_INT, win),
				    MPI_ERR_RMA_RANGE);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	CHECK_OK(MPI_Win_unlock_all(win));
	CHECK_OK(MPI_Win_free(&win));
	return NULL;
}

/* One type over two segments of memory. */
static const char *scattered(int round)
{
	int one[4] = { 1, 2, 3, 4 }, two[4] = { 5, 6, 7, 8 }, got[4] = { 0 },
	    peer = (tap_rank + 1) % tap_size;
	MPI_Aint at[2], theirs[2];
	MPI_Datatype both;

	(void)round;
	CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	CHECK_OK(MPI_Win_attach(win, one, sizeof(one)));
	CHECK_OK(MPI_Win_attach(win, two, sizeof(two)));
	MPI_Get_address(&one[1], &at[0]);
	MPI_Get_address(&two[2], &at[1]);
	MPI_Sendrecv(at, 2, MPI_AINT, (tap_rank + tap_size - 1) % tap_size, 5, theirs, 2, MPI_AINT,
		     peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Type_create_hindexed(2, (int[]){ 2, 2 }, theirs, MPI_INT, &both);
	MPI_Type_commit(&both);
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Get(got, 4, MPI_INT, peer, (MPI_Aint)MPI_BOTTOM, 1, both, win));
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK(got[0] == 2 && got[1] == 3 && got[2] == 7 && got[3] == 8);
	CHECK_OK(MPI_Win_detach(win, two));
	CHECK_OK(MPI_Win_detach(win, one));
	CHECK_OK(MPI_Win_free(&win));
	MPI_Type_free(&both);
	return NULL;
}

/* Runs over two segments of memory one behind the other, of elements that Portals calculates with
 * and of others. */
static const char *over_the_border(int round)
{
	enum { N = 3000, FIRST = 1111 };
	static _Alignas(16) double here[N], there[N], before[N];
	int peer = (tap_rank + 1) % tap_size, elements = round ? N / 2 : N;
	MPI_Datatype type = round ? MPI_C_DOUBLE_COMPLEX : MPI_DOUBLE;
	MPI_Aint at, theirs, border = round ? FIRST / 2 * 2 : FIRST;

	for (int i = 0; i < N; i++) {
		here[i] = i;
		there[i] = 1000;
	}
	CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	border *= (MPI_Aint)sizeof(double);
	CHECK_OK(MPI_Win_attach(win, there, border));
	CHECK_OK(MPI_Win_attach(win, (char *)there + border, (MPI_Aint)sizeof(there) - border));
	MPI_Get_address(there, &at);
	MPI_Sendrecv(&at, 1, MPI_AINT, (tap_rank + tap_size - 1) % tap_size, 5, &theirs, 1,
		     MPI_AINT, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Get_accumulate(here, elements, type, before, elements, type, peer, theirs,
				    elements, type, MPI_SUM, win));
	CHECK_OK(MPI_Win_fence(0, win));
	for (int i = 0; i < N; i++)
		CHECK(before[i] == 1000 && there[i] == 1000 + i);
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Put(here, elements, type, peer, theirs, elements, type, win));
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Get(before, elements, type, peer, theirs, elements, type, win));
	CHECK_OK(MPI_Win_fence(0, win));
	for (int i = 0; i < N; i++)
		CHECK(before[i] == i && there[i] == i);
	if (!tap_tame) {
		CHECK_CLASS(MPI_Get(before, elements, type, peer,
				    theirs + (MPI_Aint)sizeof(double) * 2, elements, type, win),
			    MPI_ERR_RMA_RANGE);
	}
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Win_free(&win));
	return NULL;
}

/* ---- wrong calls ----------------------------------------------------------------------------- */

static int put_one(int rank)
{
	static int one = 1;

	return MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
}

static const char *too_large(int round)
{
	MPI_Aint bytes = (MPI_Aint)1 << (round ? 60 : 50);
	void *none;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_CLASS(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &none, &win),
		    MPI_ERR_NO_MEM);
	CHECK_CLASS(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &none, &win),
		    MPI_ERR_NO_MEM);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	return NULL;
}

/* Beyond what an int counts; of the memory only what is used is taken. */
static const char *sparse(int round)
{
	const MPI_Aint bytes = ((MPI_Aint)5 << 29) + 4096, last = bytes / 8 - 1;
	long long value = 1000 + tap_rank, got = -1, *mine;
	int next = (tap_rank + 1) % tap_size, before = (tap_rank + tap_size - 1) % tap_size;
	long resident = resident_kib();

	CHECK_OK(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
	MPI_Win_fence(0, win);
	CHECK_OK(MPI_Put(&value, 1, MPI_LONG_LONG, next, last - round, 1, MPI_LONG_LONG, win));
	MPI_Win_fence(0, win);
	CHECK_OK(MPI_Get(&got, 1, MPI_LONG_LONG, next, last - round, 1, MPI_LONG_LONG, win));
	MPI_Win_fence(0, win);
	CHECK_INT(mine[last - round], 1000 + before);
	CHECK_INT(got, value);
	CHECK_INT(mine[last / 2], 0);
	CHECK(resident_kib() < resident + 256 * 1024 + SANITIZER_KIB);
	MPI_Win_free(&win);
	return NULL;
}

static const char *epochs(int flavor)
{
	MPI_Group self;
	int flag;

	make_window(flavor);
	MPI_Comm_group(MPI_COMM_SELF, &self);
	/* none is open */
	CHECK_CLASS(put_one(0), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
	/* another one is */
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
	CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_start(self, 0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
	if (tap_size > 1) {
		CHECK_CLASS(put_one(1), MPI_ERR_RMA_SYNC);
		CHECK_CLASS(MPI_Win_unlock(1, win), MPI_ERR_RMA_SYNC);
		CHECK_CLASS(MPI_Win_flush(1, win), MPI_ERR_RMA_SYNC);
	}
	CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
	CHECK_OK(MPI_Win_unlock(0, win));
	CHECK_OK(MPI_Win_lock_all(0, win));
	CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
	CHECK_OK(MPI_Win_unlock_all(win));
	CHECK_OK(MPI_Win_post(self, 0, win));
	CHECK_CLASS(MPI_Win_post(self, 0, win), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
	CHECK_OK(MPI_Win_start(self, 0, win));
	if (tap_size > 1)
		CHECK_CLASS(put_one((tap_rank + 1) % tap_size), MPI_ERR_RMA_SYNC);
	CHECK_OK(MPI_Win_complete(win));
	CHECK_OK(MPI_Win_wait(win));
	/* operations after a fence need another one */
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
	CHECK_OK(MPI_Win_unlock(0, win));
	CHECK_OK(MPI_Win_fence(0, win));
	if (flavor != 3) {
		CHECK_OK(put_one(tap_rank));
		CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
		CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), MPI_ERR_ASSERT);
	}
	CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	CHECK_CLASS(put_one(0), MPI_ERR_RMA_SYNC);
	CHECK_CLASS(MPI_Win_lock(77, 0, 0, win), MPI_ERR_LOCKTYPE);
	CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
	CHECK_CLASS(MPI_Win_start(self, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
	CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
	MPI_Group_free(&self);
	free_window(flavor);
	return NULL;
}

static const char *ranges(int flavor)
{
	int in[2] = { 1, 2 };
	MPI_Datatype backwards, wide;
	MPI_Aint base = 0;

	make_window(flavor);
	if (flavor == 3)
		MPI_Get_address(memory, &base);
	MPI_Type_create_hvector(2, 1, -8, MPI_INT, &backwards);
	MPI_Type_vector(2, 1, INTS, MPI_INT, &wide);
	MPI_Type_commit(&backwards);
	MPI_Type_commit(&wide);
	CHECK_OK(MPI_Win_lock_all(0, win));
#define PUT(disp, count, type, code)                                                               \
	CHECK_CLASS(MPI_Put(in, 2, MPI_INT, tap_rank, disp, count, type, win), code)
	if (flavor != 3) {
		PUT(0, 2, MPI_INT, MPI_SUCCESS);
		PUT(INTS - 2, 2, MPI_INT, MPI_SUCCESS);
		PUT(2, 1, backwards, MPI_SUCCESS);
		PUT(1, 1, backwards, MPI_ERR_RMA_RANGE);
		PUT(0, 1, wide, MPI_ERR_RMA_RANGE);
		PUT(-1, 2, MPI_INT, MPI_ERR_DISP);
	}
	PUT(base + (flavor == 3 ? 4 * (INTS - 1) : INTS - 1), 2, MPI_INT, MPI_ERR_RMA_RANGE);
	PUT(base + (flavor == 3 ? 4 * INTS : INTS), 2, MPI_INT, MPI_ERR_RMA_RANGE);
	PUT(base, 1, MPI_INT, MPI_ERR_TYPE);
	CHECK_CLASS(MPI_Put(in, 0, MPI_INT, tap_rank, base, 0, MPI_INT, win), MPI_SUCCESS);
	CHECK_CLASS(MPI_Put(in, 1, MPI_INT, MPI_PROC_NULL, base, 1, MPI_INT, win), MPI_SUCCESS);
	CHECK_CLASS(MPI_Put(in, 1, MPI_INT, tap_size, base, 1, MPI_INT, win), MPI_ERR_RANK);
	CHECK_CLASS(MPI_Accumulate(in, 1, MPI_INT, tap_rank, base, 1, MPI_FLOAT, MPI_SUM, win),
		    MPI_ERR_TYPE);
	CHECK_CLASS(MPI_Accumulate(in, 1, MPI_FLOAT, tap_rank, base, 1, MPI_FLOAT, MPI_BAND, win),
		    MPI_ERR_OP);
	CHECK_CLASS(MPI_Fetch_and_op(in, in + 1, backwards, tap_rank, base, MPI_SUM, win),
		    MPI_ERR_TYPE);
	CHECK_CLASS(MPI_Compare_and_swap(in, in, in + 1, MPI_FLOAT, tap_rank, base, win),
		    MPI_ERR_TYPE);
	CHECK_OK(MPI_Win_unlock_all(win));
	MPI_Type_free(&backwards);
	MPI_Type_free(&wide);
	free_window(flavor);
	return NULL;
}

static const char *flavors(int flavor)
{
	MPI_Aint size;
	void *at;
	int unit, there;

	make_window(flavor);
	if (flavor != 3) {
		CHECK_CLASS(MPI_Win_attach(win, &there, 4), MPI_ERR_RMA_FLAVOR);
		CHECK_CLASS(MPI_Win_detach(win, &there), MPI_ERR_RMA_FLAVOR);
	} else {
		CHECK_CLASS(MPI_Win_shared_query(win, 0, &size, &unit, &at), MPI_ERR_RMA_FLAVOR);
		CHECK_CLASS(MPI_Win_attach(win, memory + 1, 4), MPI_ERR_RMA_ATTACH);
		CHECK_CLASS(MPI_Win_detach(win, memory + 1), MPI_ERR_RMA_ATTACH);
	}
	free_window(flavor);
	/* one rank's mistake is an error for all of them */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_CLASS(MPI_Win_create(&there, tap_rank == tap_size - 1 ? -1 : 4, 1, MPI_INFO_NULL,
				   MPI_COMM_WORLD, &win),
		    MPI_ERR_SIZE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	return NULL;
}

/* ---- error handlers -------------------------------------------------------------------------- */

static int handled_code, handled;
static MPI_Win handled_win;

static void on_error(MPI_Win *on, int *code, ...)
{
	handled++;
	handled_win = *on;
	handled_code = *code;
}

static const char *error_handlers(int flavor)
{
	MPI_Errhandler handler, got;

	make_window(flavor);
	handled = 0;
	CHECK_OK(MPI_Win_create_errhandler(on_error, &handler));
	CHECK_OK(MPI_Win_set_errhandler(win, handler));
	CHECK_OK(MPI_Win_get_errhandler(win, &got));
	CHECK(got == handler);
	CHECK_OK(MPI_Errhandler_free(&got));
	CHECK_OK(MPI_Errhandler_free(&handler));
	CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
	CHECK(handled == 1 && handled_win == win);
	CHECK_INT(class_of(handled_code), MPI_ERR_RMA_SYNC);
	CHECK_OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
	CHECK(handled == 2);
	CHECK_INT(handled_code, MPI_ERR_OTHER);
	free_window(flavor);
	return NULL;
}

/* The window's handler runs for an error that is found when a request is waited for. */
static const char *errors_of_requests(int round)
{
	struct {
		double value;
		int index;
	} one = { 1, 2 };
	MPI_Errhandler handler;
	MPI_Request request;
	void *memory_of_12 = malloc(12);
	int class;

	(void)round;
	/* by way of Portals the gap behind the pair would have to be in the window */
	CHECK_OK(MPI_Win_create(memory_of_12, 12, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	handled = 0;
	CHECK_OK(MPI_Win_create_errhandler(on_error, &handler));
	CHECK_OK(MPI_Win_set_errhandler(win, handler));
	CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
	CHECK_OK(MPI_Raccumulate(&one, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_REPLACE, win,
				 &request));
	class = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK(class == MPI_ERR_RMA_RANGE || (tap_size == 1 && class == MPI_SUCCESS));
	CHECK_INT(handled, class != MPI_SUCCESS);
	CHECK(!handled || handled_win == win);
	CHECK_OK(MPI_Win_unlock(0, win));
	CHECK_OK(MPI_Errhandler_free(&handler));
	CHECK_OK(MPI_Win_free(&win));
	free(memory_of_12);
	return NULL;
}

/* ---- datatypes ------------------------------------------------------------------------------- */

/* The predefined type of an accumulate's data is found in types within types: one, and no other. */
static const char *types_of_types(int flavor)
{
	static const int lengths[] = { 1, 1, 0 };
	static const MPI_Aint places[] = { 0, 4, 8 };
	struct {
		int n;
		float f;
	} in = { 1, 2 };
	MPI_Datatype inner, outer, nested[3] = { MPI_INT, MPI_FLOAT, MPI_FLOAT };
	MPI_Aint base = 0;
	int ones[2] = { 1, 1 };

	make_window(flavor);
	if (flavor == 3)
		MPI_Get_address(memory, &base);
	MPI_Type_create_struct(2, lengths, places, nested, &inner);
	nested[1] = inner;
	MPI_Type_create_struct(2, lengths, places, nested, &outer);
	MPI_Type_commit(&outer);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, tap_rank, 0, win));
	CHECK_CLASS(MPI_Accumulate(&in, 1, outer, tap_rank, base, 1, outer, MPI_SUM, win),
		    MPI_ERR_TYPE);
	MPI_Type_free(&inner);
	MPI_Type_free(&outer);
	/* what has no elements of a type is not of it; and each of them is made of the one
	 * before twice */
	nested[1] = MPI_INT;
	MPI_Type_create_struct(3, lengths, places, nested, &outer);
	for (int i = 0; i < 60; i++) {
		int two[2] = { 1, 0 };

		nested[0] = nested[1] = outer;
		MPI_Type_create_struct(2, two, places, nested, &inner);
		MPI_Type_free(&outer);
		outer = inner;
	}
	MPI_Type_commit(&outer);
	((int *)memory)[0] = ((int *)memory)[1] = 5;
	CHECK_OK(MPI_Accumulate(ones, 1, outer, tap_rank, base, 1, outer, MPI_SUM, win));
	CHECK_OK(MPI_Win_unlock(tap_rank, win));
	CHECK(((int *)memory)[0] == 6 && ((int *)memory)[1] == 6);
	MPI_Type_free(&outer);
	free_window(flavor);
	return NULL;
}

static const char *fortran_kinds(int flavor)
{
	double in = 2, out = 0, *at;
	MPI_Datatype real;
	MPI_Aint base = 0;

	make_window(flavor);
	at = (double *)(void *)memory;
	if (flavor == 3)
		MPI_Get_address(memory, &base);
	at[0] = 40;
	MPI_Type_create_f90_real(15, 307, &real);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, tap_rank, 0, win));
	CHECK_OK(MPI_Accumulate(&in, 1, real, tap_rank, base, 1, real, MPI_SUM, win));
	CHECK_OK(MPI_Fetch_and_op(&in, &out, real, tap_rank, base, MPI_PROD, win));
	CHECK_OK(MPI_Win_unlock(tap_rank, win));
	CHECK(out == 42 && at[0] == 84);
	free_window(flavor);
	return NULL;
}

/* MPI_NO_OP: nothing of the origin is looked at. */
static const char *no_origin(int flavor)
{
	MPI_Aint base = 0;
	int got[2] = { 0 };

	make_window(flavor);
	memory[0] = 70 + flavor;
	memory[1] = 80;
	if (flavor == 3)
		MPI_Get_address(memory, &base);
	CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, tap_rank, 0, win));
	CHECK_OK(MPI_Get_accumulate(NULL, -1, MPI_DATATYPE_NULL, got, 2, MPI_INT, tap_rank, base, 2,
				    MPI_INT, MPI_NO_OP, win));
	if (!tap_tame)
		CHECK_CLASS(MPI_Get_accumulate(got, -1, MPI_INT, got + 1, 1, MPI_INT, tap_rank,
					       base, 1, MPI_INT, MPI_SUM, win),
			    MPI_ERR_COUNT);
	CHECK_OK(MPI_Win_unlock(tap_rank, win));
	CHECK(got[0] == 70 + flavor && got[1] == 80);
	free_window(flavor);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, FLAVORS);
	tap_rounds_set(FLAVORS);
	tap_case("attributes", attributes);
	tap_case("names, groups, what runs when a window is freed", names_and_groups);
	tap_rounds_set(1);
	tap_case("hints", hints);
	tap_rounds_set(2);
	tap_case("shared memory", shared);
	if (!tap_tame)
		tap_case("shared memory, gaps allowed by some", shared_asked_by_some);
	tap_rounds_set(1);
	tap_case("attached memory comes and goes", attached);
	tap_case("a datatype over two pieces of attached memory", scattered);
	tap_rounds_set(2);
	tap_case("runs over the border of two pieces", over_the_border);
	if (!tap_tame)
		tap_case("windows longer than 2 GiB, of which little is used", sparse);
	tap_rounds_set(FLAVORS);
	tap_case("error handlers", error_handlers);
	tap_case("types of types", types_of_types);
	tap_case("Fortran's kinds", fortran_kinds);
	tap_case("MPI_NO_OP without an origin", no_origin);
	if (!tap_tame) {
		tap_case("errors of requests", errors_of_requests);
		tap_case("wrong epochs and assertions", epochs);
		tap_case("wrong ranges and types", ranges);
		tap_case("wrong flavours", flavors);
		tap_rounds_set(2);
		tap_case("windows that are too large", too_large);
	}
	return tap_end();
}
