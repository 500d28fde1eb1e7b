/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Info objects: keys and values in the order they were set. They are short, so a search is
 * linear. MPI_INFO_NULL is the pointer NULL here.
 */
#include "mpi_shim/core/info.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"

void mpi_info_clear(struct mpi_info *info)
{
	for (int i = 0; i < info->count; i++) {
		free(info->pair[i].key);
		free(info->pair[i].value);
	}
	free(info->pair);
	info->pair = NULL;
	info->count = info->room = 0;
}

void mpi_info_destroy(void *object)
{
	mpi_info_clear(object);
}

static int index_of_key(const struct mpi_info *info, const char *key)
{
	for (int i = 0; i < info->count; i++)
		if (strcmp(info->pair[i].key, key) == 0)
			return i;
	return -1;
}

static int check_info_given(const struct mpi_info *info)
{
	return info ? MPI_SUCCESS : mpi_fail(MPI_ERR_INFO, "the info object is MPI_INFO_NULL");
}

static int check_info_writable(const struct mpi_info *info)
{
	if (info == &mpi_info_env)
		return mpi_fail(MPI_ERR_INFO, "MPI_INFO_ENV can only be read");
	return check_info_given(info);
}

static int check_info_key(const char *key)
{
	size_t n = strnlen(key, MPI_MAX_INFO_KEY);

	if (n > 0 && n < MPI_MAX_INFO_KEY)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_INFO_KEY,
			n ? "the key is longer than %d characters"
			  : "the key is empty; it has 1 to %d characters",
			MPI_MAX_INFO_KEY - 1);
}

static bool reserve_pair(struct mpi_info *info)
{
	struct mpi_info_pair *pair;
	int room = info->room ? 2 * info->room : 8;

	if (info->count < info->room)
		return true;
	pair = realloc(info->pair, (size_t)room * sizeof(*pair));
	if (!pair)
		return false;
	info->pair = pair;
	info->room = room;
	return true;
}

int mpi_info_put(struct mpi_info *info, const char *key, const char *value)
{
	int err = check_info_key(key), i;
	char *k, *v;

	if (err != MPI_SUCCESS)
		return err;
	if (strnlen(value, MPI_MAX_INFO_VAL) == MPI_MAX_INFO_VAL)
		return mpi_fail(MPI_ERR_INFO_VALUE,
				"the value of key \"%s\" is longer than %d characters", key,
				MPI_MAX_INFO_VAL - 1);
	v = strdup(value);
	i = index_of_key(info, key);
	if (v && i >= 0) {
		free(info->pair[i].value);
		info->pair[i].value = v;
		return MPI_SUCCESS;
	}
	k = strdup(key);
	if (!v || !k || !reserve_pair(info)) {
		free(k);
		free(v);
		return mpi_fail_memory("a pair of an info object");
	}
	info->pair[info->count].key = k;
	info->pair[info->count++].value = v;
	return MPI_SUCCESS;
}

const char *mpi_info_value(const struct mpi_info *info, const char *key)
{
	int i = info ? index_of_key(info, key) : -1;

	return i >= 0 ? info->pair[i].value : NULL;
}

/* ---- called by MPI_Info_* -------------------------------------------------------------------- */

int mpi_info_create(struct mpi_info **out)
{
	struct mpi_info *info = mpi_object_new(MPI_KIND_INFO);

	if (!info)
		return mpi_fail_memory("an info object");
	*out = info;
	return MPI_SUCCESS;
}

int mpi_info_create_env(int argc, char *argv[], struct mpi_info **out)
{
	struct mpi_info *info = NULL;
	int err = mpi_info_create(&info);

	if (err != MPI_SUCCESS)
		return err;
	err = mpi_info_env_fill(argc, argv, info);
	if (err != MPI_SUCCESS) {
		mpi_object_release(info);
		return err;
	}
	*out = info;
	return MPI_SUCCESS;
}

int mpi_info_set(struct mpi_info *info, const char *key, const char *value)
{
	int err = check_info_writable(info);

	return err == MPI_SUCCESS ? mpi_info_put(info, key, value) : err;
}

int mpi_info_delete(struct mpi_info *info, const char *key)
{
	int err = check_info_writable(info), i;

	if (err == MPI_SUCCESS)
		err = check_info_key(key);
	if (err != MPI_SUCCESS)
		return err;
	i = index_of_key(info, key);
	if (i < 0)
		return mpi_fail(MPI_ERR_INFO_NOKEY, "there is no key \"%s\"", key);
	free(info->pair[i].key);
	free(info->pair[i].value);
	info->count--;
	memmove(&info->pair[i], &info->pair[i + 1],
		(size_t)(info->count - i) * sizeof(info->pair[i]));
	return MPI_SUCCESS;
}

/* Copies at most n characters of the value, and a terminator. */
static void copy_value_out(char *out, const char *value, size_t n)
{
	size_t length = strnlen(value, n);

	memcpy(out, value, length);
	out[length] = '\0';
}

int mpi_info_get(struct mpi_info *info, const char *key, int length, char *value, int *flag)
{
	int err = check_info_given(info), i;

	if (err == MPI_SUCCESS)
		err = check_info_key(key);
	if (err == MPI_SUCCESS && length < 0)
		err = mpi_fail(MPI_ERR_ARG, "the length of the value, %d, is negative", length);
	if (err != MPI_SUCCESS)
		return err;
	i = index_of_key(info, key);
	*flag = i >= 0;
	if (i >= 0)
		copy_value_out(value, info->pair[i].value, (size_t)length);
	return MPI_SUCCESS;
}

/* *length counts the terminator; 0 asks for the length alone (MPI-4 §10). */
int mpi_info_get_string(struct mpi_info *info, const char *key, int *length, char *value, int *flag)
{
	int err = check_info_given(info), i;

	if (err == MPI_SUCCESS)
		err = check_info_key(key);
	if (err == MPI_SUCCESS && *length < 0)
		err = mpi_fail(MPI_ERR_ARG, "the length of the value, %d, is negative", *length);
	if (err != MPI_SUCCESS)
		return err;
	i = index_of_key(info, key);
	*flag = i >= 0;
	if (i < 0)
		return MPI_SUCCESS;
	if (*length > 0 && !value)
		return mpi_fail(MPI_ERR_ARG, "the place for the value is NULL");
	if (*length > 0)
		copy_value_out(value, info->pair[i].value, (size_t)*length - 1);
	*length = (int)strlen(info->pair[i].value) + 1;
	return MPI_SUCCESS;
}

int mpi_info_get_valuelen(struct mpi_info *info, const char *key, int *length, int *flag)
{
	int err = check_info_given(info), i;

	if (err == MPI_SUCCESS)
		err = check_info_key(key);
	if (err != MPI_SUCCESS)
		return err;
	i = index_of_key(info, key);
	*flag = i >= 0;
	if (i >= 0)
		*length = (int)strlen(info->pair[i].value);
	return MPI_SUCCESS;
}

int mpi_info_get_nkeys(struct mpi_info *info, int *n)
{
	int err = check_info_given(info);

	if (err == MPI_SUCCESS)
		*n = info->count;
	return err;
}

int mpi_info_get_nthkey(struct mpi_info *info, int n, char *key)
{
	int err = check_info_given(info);

	if (err != MPI_SUCCESS)
		return err;
	if (n < 0 || n >= info->count)
		return mpi_fail(MPI_ERR_ARG, "there is no key number %d; the info object has %d", n,
				info->count);
	copy_value_out(key, info->pair[n].key, MPI_MAX_INFO_KEY - 1);
	return MPI_SUCCESS;
}

int mpi_info_dup(struct mpi_info *info, struct mpi_info **out)
{
	struct mpi_info *copy = NULL;
	int err = check_info_given(info);

	if (err == MPI_SUCCESS)
		err = mpi_info_create(&copy);
	if (err != MPI_SUCCESS)
		return err;
	for (int i = 0; i < info->count && err == MPI_SUCCESS; i++)
		err = mpi_info_put(copy, info->pair[i].key, info->pair[i].value);
	if (err != MPI_SUCCESS) {
		mpi_object_release(copy);
		return err;
	}
	*out = copy;
	return MPI_SUCCESS;
}

int mpi_info_free(struct mpi_info **info)
{
	int err = check_info_writable(*info);

	if (err != MPI_SUCCESS)
		return err;
	mpi_object_release(*info);
	*info = NULL;
	return MPI_SUCCESS;
}
