/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Attribute keys, and the values cached under them on communicators, datatypes and windows.
 * Callbacks run with the global lock released, so each list is read anew after a callback.
 */
#include "mpi_shim/core/attr.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/world.h"

/* A key is a number: the index in the table (20 bits), and above it a count of how often this
 * index was used before. So a freed key differs from the next one. */
enum { KEY_BASE = 0x10000000, KEY_INDEX_BITS = 20, KEY_GENERATIONS = 256 };

static struct {
	struct mpi_keyval **at; /* NULL: free */
	unsigned char *generation;
	int count, room;
	int in_use;
} keys;

void mpi_keyvals_fini(void)
{
	for (int i = 0; i < keys.count; i++)
		free(keys.at[i]);
	free(keys.at);
	free(keys.generation);
	memset(&keys, 0, sizeof(keys));
}

static bool grow_keyvals(void)
{
	int room = keys.room ? 2 * keys.room : 32;
	struct mpi_keyval **at;
	unsigned char *generation;

	if (room > 1 << KEY_INDEX_BITS)
		return false;
	at = realloc(keys.at, (size_t)room * sizeof(struct mpi_keyval *));
	if (!at)
		return false;
	keys.at = at;
	generation = realloc(keys.generation, (size_t)room);
	if (!generation)
		return false;
	memset(generation + keys.room, 0, (size_t)(room - keys.room));
	keys.generation = generation;
	keys.room = room;
	return true;
}

static int find_place(void)
{
	if (keys.in_use < keys.count)
		for (int i = 0; i < keys.count; i++)
			if (!keys.at[i])
				return i;
	if (keys.count == keys.room && !grow_keyvals())
		return -1;
	keys.at[keys.count] = NULL;
	return keys.count++;
}

struct mpi_keyval *mpi_keyval_new(enum mpi_attr_on on, void *extra, int *number)
{
	int place = find_place();
	struct mpi_keyval *k = place < 0 ? NULL : calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->refs = 1;
	k->on = on;
	k->extra = extra;
	k->place = place;
	k->number = KEY_BASE + (keys.generation[place]++ << KEY_INDEX_BITS) + place;
	keys.at[place] = k;
	keys.in_use++;
	*number = k->number;
	return k;
}

static void release_keyval(struct mpi_keyval *k)
{
	if (--k->refs > 0)
		return;
	keys.at[k->place] = NULL;
	keys.in_use--;
	free(k);
}

static struct mpi_keyval *find_keyval(int number)
{
	int place = (number - KEY_BASE) & ((1 << KEY_INDEX_BITS) - 1);
	struct mpi_keyval *k;

	if (number < KEY_BASE || place >= keys.count)
		return NULL;
	k = keys.at[place];
	return k && k->number == number ? k : NULL;
}

/* Returns the key if it is one for these objects. Else NULL, and the text of MPI_ERR_KEYVAL is
 * kept. */
static struct mpi_keyval *lookup(enum mpi_attr_on on, int number)
{
	static const char *const what[] = { "communicators", "datatypes", "windows" };
	struct mpi_keyval *k = find_keyval(number);

	if (k && k->on == on)
		return k;
	if (k)
		mpi_fail(MPI_ERR_KEYVAL, "the key was created for %s, not for %s", what[k->on],
			 what[on]);
	else if (number == MPI_KEYVAL_INVALID)
		mpi_fail(MPI_ERR_KEYVAL, "the key is MPI_KEYVAL_INVALID");
	else
		mpi_fail(MPI_ERR_KEYVAL, "%d is not an attribute key", number);
	return NULL;
}

int mpi_keyval_drop(enum mpi_attr_on on, int *number)
{
	struct mpi_keyval *k = lookup(on, *number);

	if (!k)
		return MPI_ERR_KEYVAL;
	/* Attributes set under the key keep it: it can be named to delete them, and be freed
	 * again (MPI-4 §7.7.2). */
	if (!k->freed) {
		k->freed = true;
		release_keyval(k);
	}
	*number = MPI_KEYVAL_INVALID;
	return MPI_SUCCESS;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static int call_delete(void *object, const struct mpi_keyval *k, void *value)
{
	void *handle = mpi_handle_of(object);
	int err = MPI_SUCCESS, number = k->number;

	if (!k->delete.comm)
		return MPI_SUCCESS;
	mpi_unlock_for_callback();
	if (k->on == MPI_ATTR_ON_TYPE)
		err = k->delete.type(handle, number, value, k->extra);
	else if (k->on == MPI_ATTR_ON_WIN)
		err = k->delete.win(handle, number, value, k->extra);
	else
		err = k->delete.comm(handle, number, value, k->extra);
	mpi_lock_after_callback();
	if (err != MPI_SUCCESS)
		mpi_fail(err, "the delete callback of attribute key %d returned %d", number, err);
	return err;
}

/* *flag: *out is the value for the copy. */
static int call_copy(void *object, const struct mpi_keyval *k, void *value, void **out, int *flag)
{
	void *handle = mpi_handle_of(object);
	int err, number = k->number;

	*flag = 0;
	if (k->copy.comm == MPI_COMM_NULL_COPY_FN)
		return MPI_SUCCESS;
	if (k->copy.comm == MPI_COMM_DUP_FN) {
		*out = value;
		*flag = 1;
		return MPI_SUCCESS;
	}
	mpi_unlock_for_callback();
	if (k->on == MPI_ATTR_ON_TYPE)
		err = k->copy.type(handle, number, k->extra, value, out, flag);
	else if (k->on == MPI_ATTR_ON_WIN)
		err = k->copy.win(handle, number, k->extra, value, out, flag);
	else
		err = k->copy.comm(handle, number, k->extra, value, out, flag);
	mpi_lock_after_callback();
	if (err != MPI_SUCCESS)
		mpi_fail(err, "the copy callback of attribute key %d returned %d", number, err);
	return err;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static struct mpi_attr *in_list(struct mpi_attr *list, const struct mpi_keyval *k)
{
	while (list && list->keyval != k)
		list = list->next;
	return list;
}

/* Takes an attribute off the list, if it is still on it. */
static void drop_attr(struct mpi_attr **list, const struct mpi_attr *a)
{
	for (struct mpi_attr **p = list; *p; p = &(*p)->next)
		if (*p == a) {
			struct mpi_attr *gone = *p;

			*p = gone->next;
			release_keyval(gone->keyval);
			free(gone);
			return;
		}
}

/* Adds an attribute at the front of the list, as the newest. False: out of memory. */
static bool push_attr(struct mpi_attr **list, struct mpi_keyval *k, void *value)
{
	struct mpi_attr *a = malloc(sizeof(*a));

	if (!a)
		return false;
	k->refs++;
	*a = (struct mpi_attr){ *list, k, value };
	*list = a;
	return true;
}

static int delete_one(void *object, struct mpi_attr **list, struct mpi_attr *a)
{
	struct mpi_keyval *k = a->keyval;
	int err;

	k->refs++; /* the callback may free the key */
	err = call_delete(object, k, a->value);
	if (err == MPI_SUCCESS)
		drop_attr(list, a);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): one reference is ours */
	release_keyval(k);
	return err;
}

int mpi_attrs_delete(void *object, enum mpi_kind kind, struct mpi_attr **attrs)
{
	int err = MPI_SUCCESS;

	(void)kind;
	while (*attrs && err == MPI_SUCCESS)
		err = delete_one(object, attrs, *attrs);
	return err;
}

/* Removes the copies after a failure, with their delete callbacks. Errors of these are ignored:
 * they come too late. */
static void undo_copies(void *copy, struct mpi_attr **to)
{
	while (*to) {
		struct mpi_attr *a = *to;

		if (delete_one(copy, to, a) != MPI_SUCCESS)
			drop_attr(to, a);
	}
}

/* Copies oldest first, so the list is first recorded in reverse order. A callback that changes
 * the list of the original would be an error of the program. The keys and values are recorded
 * before any callback, so the rest of that list is not touched. */
int mpi_attrs_copy(void *object, enum mpi_kind kind, struct mpi_attr *from, void *copy,
		   struct mpi_attr **to)
{
	struct mpi_attr *taken = NULL, *next;
	int err = MPI_SUCCESS;

	(void)kind;
	for (const struct mpi_attr *a = from; a && err == MPI_SUCCESS; a = a->next)
		if (!push_attr(&taken, a->keyval, a->value))
			err = mpi_fail_memory("attributes");
	for (; taken; taken = next) {
		void *value = NULL;
		int flag = 0;

		next = taken->next;
		if (err == MPI_SUCCESS)
			err = call_copy(object, taken->keyval, taken->value, &value, &flag);
		if (err == MPI_SUCCESS && flag && !push_attr(to, taken->keyval, value))
			err = mpi_fail_memory("attributes");
		release_keyval(taken->keyval);
		free(taken);
	}
	if (err != MPI_SUCCESS) {
		char text[MPI_MAX_ERROR_STRING];

		/* The delete callbacks may fail too. The first failure is the one to report. */
		memcpy(text, mpi_fail_text(), sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		undo_copies(copy, to);
		mpi_fail(err, "%s", text);
	}
	return err;
}

int mpi_attr_store(void *object, enum mpi_attr_on on, struct mpi_attr **list, int number,
		   void *value)
{
	struct mpi_keyval *k = lookup(on, number);
	struct mpi_attr *a;
	int err;

	if (!k)
		return MPI_ERR_KEYVAL;
	a = in_list(*list, k);
	if (a) {
		k->refs++; /* the callback may free the key */
		err = call_delete(object, k, a->value);
		a = in_list(*list, k);
		if (err == MPI_SUCCESS && a)
			a->value = value;
		else if (err == MPI_SUCCESS && !push_attr(list, k, value))
			err = mpi_fail_memory("an attribute");
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): one reference is ours */
		release_keyval(k);
		return err;
	}
	return push_attr(list, k, value) ? MPI_SUCCESS : mpi_fail_memory("an attribute");
}

int mpi_attr_load(enum mpi_attr_on on, struct mpi_attr *list, int number, void *value, int *flag)
{
	const struct mpi_keyval *k = lookup(on, number);
	const struct mpi_attr *a;

	if (!k)
		return MPI_ERR_KEYVAL;
	a = in_list(list, k);
	*flag = a != NULL;
	if (a)
		memcpy(value, &a->value, sizeof(a->value));
	return MPI_SUCCESS;
}

int mpi_attr_remove(void *object, enum mpi_attr_on on, struct mpi_attr **list, int number)
{
	const struct mpi_keyval *k = lookup(on, number);
	struct mpi_attr *a;

	if (!k)
		return MPI_ERR_KEYVAL;
	a = in_list(*list, k);
	if (!a)
		return mpi_fail(MPI_ERR_KEYVAL, "no attribute is set under key %d", number);
	return delete_one(object, list, a);
}
