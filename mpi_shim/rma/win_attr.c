/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Properties of a window: attributes, hints, name, group and error handler.
 */
#include <stdio.h>
#include <string.h>

#include "mpi_shim/core/attr.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/rma/win.h"

/* ---- attributes ------------------------------------------------------------------------------ */

static bool is_predefined(int number)
{
	return number >= MPI_WIN_BASE && number <= MPI_WIN_MODEL;
}

static void *predefined_win_attr(struct mpi_win *win, int number)
{
	switch (number) {
	case MPI_WIN_SIZE:
		return &win->bytes;
	case MPI_WIN_DISP_UNIT:
		return &win->unit;
	case MPI_WIN_CREATE_FLAVOR:
		return &win->flavor;
	case MPI_WIN_MODEL:
		return &win->model;
	default:
		return win->base;
	}
}

static int check_win_key_writable(int number)
{
	if (!is_predefined(number))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_KEYVAL, "key %d is predefined; its value can only be read", number);
}

int mpi_win_set_attr(struct mpi_win *win, int win_keyval, void *attribute_val)
{
	int err = check_win_key_writable(win_keyval);

	if (err)
		return err;
	return mpi_attr_store(win, MPI_ATTR_ON_WIN, &win->attrs, win_keyval, attribute_val);
}

int mpi_win_get_attr(struct mpi_win *win, int win_keyval, void *attribute_val, int *flag)
{
	void *there;

	if (!is_predefined(win_keyval))
		return mpi_attr_load(MPI_ATTR_ON_WIN, win->attrs, win_keyval, attribute_val, flag);
	there = predefined_win_attr(win, win_keyval);
	*flag = 1;
	memcpy(attribute_val, &there, sizeof(there));
	return MPI_SUCCESS;
}

int mpi_win_delete_attr(struct mpi_win *win, int win_keyval)
{
	int err = check_win_key_writable(win_keyval);

	if (err)
		return err;
	return mpi_attr_remove(win, MPI_ATTR_ON_WIN, &win->attrs, win_keyval);
}

/* ---- hints ----------------------------------------------------------------------------------- */

/* The hints of MPI-4 §12.2, with their defaults. They make promises that the library does not
 * need. */
static const struct {
	const char *key, *value;
	bool truth; /* true or false */
} hints[] = {
	{ "no_locks", "false", true },
	{ "accumulate_ordering", "rar,raw,war,waw", false },
	{ "accumulate_ops", "same_op_no_op", false },
	{ "mpi_accumulate_granularity", "0", false },
	{ "same_size", "false", true },
	{ "same_disp_unit", "false", true },
	{ "alloc_shared_noncontig", "false", true },
};

int mpi_win_set_info(struct mpi_win *win, struct mpi_info *info)
{
	int err = win->info ? MPI_SUCCESS : mpi_info_create(&win->info);

	for (size_t i = 0; !err && i < sizeof(hints) / sizeof(hints[0]); i++) {
		const char *value = mpi_info_value(info, hints[i].key);

		if (value && hints[i].truth && strcmp(value, "true") != 0 &&
		    strcmp(value, "false") != 0)
			value = NULL; /* an invalid value is ignored */
		if (!value && mpi_info_value(win->info, hints[i].key))
			continue;
		err = mpi_info_put(win->info, hints[i].key, value ? value : hints[i].value);
	}
	return err;
}

int mpi_win_get_info(struct mpi_win *win, struct mpi_info **info_used)
{
	return mpi_info_dup(win->info, info_used);
}

/* ---- name and group -------------------------------------------------------------------------- */

int mpi_win_set_name(struct mpi_win *win, const char *win_name)
{
	size_t n = strnlen(win_name, sizeof(win->name) - 1);

	memcpy(win->name, win_name, n);
	win->name[n] = '\0';
	return MPI_SUCCESS;
}

int mpi_win_get_name(struct mpi_win *win, char *win_name, int *resultlen)
{
	const char *of = win ? win->name : "MPI_WIN_NULL";

	*resultlen = (int)strlen(of);
	memcpy(win_name, of, (size_t)*resultlen + 1);
	return MPI_SUCCESS;
}

int mpi_win_get_group(struct mpi_win *win, struct mpi_group **group)
{
	return mpi_group_export(win->comm->local, group);
}

/* ---- error handler --------------------------------------------------------------------------- */

int mpi_win_set_errhandler(struct mpi_win *win, struct mpi_errhandler *errhandler)
{
	if (errhandler->serves != MPI_SERVES_ANY && errhandler->serves != MPI_SERVES_WIN)
		return mpi_fail(MPI_ERR_ARG, "the error handler was not created by "
					     "MPI_Win_create_errhandler");
	mpi_object_keep(errhandler);
	mpi_object_release(win->handler);
	win->handler = errhandler;
	return MPI_SUCCESS;
}

int mpi_win_get_errhandler(struct mpi_win *win, struct mpi_errhandler **errhandler)
{
	*errhandler = mpi_object_keep(win->handler);
	win->handler->handles++;
	return MPI_SUCCESS;
}

static void name_of_win(const struct mpi_win *win, char *out, size_t size)
{
	if (win->name[0])
		snprintf(out, size, " on %s", win->name);
	else
		snprintf(out, size, " on a window of %d ranks", win->size);
}

static void raise_locked(struct mpi_win *win, const char *function, int code)
{
	struct mpi_errhandler *handler = win->handler;
	MPI_Win handle = mpi_handle_of(win);
	char where[MPI_WHERE];

	if (handler == &mpi_errors_return)
		return;
	if (!handler->fn.win) {
		name_of_win(win, where, sizeof(where));
		mpi_raise_fatal(where, function, code);
	}
	mpi_object_keep(handler);
	mpi_unlock_for_callback();
	handler->fn.win(&handle, &code, function);
	mpi_lock_after_callback();
	mpi_object_release(handler);
}

int mpi_raise_win(struct mpi_win *win, const char *function, int code)
{
	raise_locked(win, function, code);
	return mpi_raised(code);
}

int mpi_win_call_errhandler(struct mpi_win *win, int errorcode)
{
	raise_locked(win, "MPI_Win_call_errhandler", errorcode);
	return MPI_SUCCESS;
}
