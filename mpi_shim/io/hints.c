/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Hints: those of the standard (MPI-4 §14.2.8) and those that ROMIO made common. All of them are
 * kept and reported; the numbers that collective access and data sieving use are in struct
 * mpi_hints. A value that makes no sense is ignored, as if the hint were not given.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/io/io.h"

enum hint_kind {
	HINT_TEXT,   /* anything */
	HINT_NUMBER, /* from 1 on */
	HINT_CHOICE, /* enable, disable or automatic */
	HINT_TRUTH   /* true or false */
};

/* Defaults may be NULL: a hint that is reported only if it was given. */
static const struct {
	const char *key, *standard;
	enum hint_kind kind;
} hint_table[] = {
	{ "access_style", NULL, HINT_TEXT },
	{ "collective_buffering", NULL, HINT_TRUTH },
	{ "cb_block_size", NULL, HINT_NUMBER },
	{ "cb_buffer_size", "16777216", HINT_NUMBER },
	{ "cb_nodes", NULL, HINT_NUMBER },
	{ "chunked", NULL, HINT_TEXT },
	{ "chunked_item", NULL, HINT_TEXT },
	{ "chunked_size", NULL, HINT_TEXT },
	{ "filename", NULL, HINT_TEXT },
	{ "file_perm", NULL, HINT_TEXT },
	{ "io_node_list", NULL, HINT_TEXT },
	{ "nb_proc", NULL, HINT_NUMBER },
	{ "num_io_nodes", NULL, HINT_NUMBER },
	{ "striping_factor", NULL, HINT_NUMBER },
	{ "striping_unit", NULL, HINT_NUMBER },
	{ "romio_cb_read", "automatic", HINT_CHOICE },
	{ "romio_cb_write", "automatic", HINT_CHOICE },
	{ "romio_ds_read", "automatic", HINT_CHOICE },
	{ "romio_ds_write", "automatic", HINT_CHOICE },
	{ "romio_no_indep_rw", NULL, HINT_TRUTH },
	{ "ind_rd_buffer_size", "4194304", HINT_NUMBER },
	{ "ind_wr_buffer_size", "524288", HINT_NUMBER },
};

/* The value of a number from 1 on; 0: it is none. */
static int64_t positive_number(const char *text)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	return end != text && *end == '\0' && !errno && n > 0 ? n : 0;
}

static bool makes_sense(enum hint_kind kind, const char *value)
{
	switch (kind) {
	case HINT_NUMBER:
		return positive_number(value) > 0;
	case HINT_CHOICE:
		return !strcmp(value, "enable") || !strcmp(value, "disable") ||
		       !strcmp(value, "automatic");
	case HINT_TRUTH:
		return !strcmp(value, "true") || !strcmp(value, "false");
	case HINT_TEXT:
		break;
	}
	return true;
}

static enum mpi_hint_choice choice_of(const struct mpi_info *info, const char *key)
{
	const char *value = mpi_info_value(info, key);

	if (!value || !strcmp(value, "automatic"))
		return MPI_HINT_AUTOMATIC;
	return !strcmp(value, "enable") ? MPI_HINT_ENABLE : MPI_HINT_DISABLE;
}

static int64_t number_of_hint(const struct mpi_info *info, const char *key)
{
	const char *value = mpi_info_value(info, key);

	return value ? positive_number(value) : 0;
}

/* As many aggregators as ranks, if the hint does not say fewer; the hint says how many are used. */
static int use_aggregators(struct mpi_file *file)
{
	int64_t wanted = number_of_hint(file->info, "cb_nodes");
	char text[16];

	file->hints.cb_nodes = wanted && wanted < file->comm->size ? (int)wanted : file->comm->size;
	snprintf(text, sizeof(text), "%d", file->hints.cb_nodes);
	return mpi_info_put(file->info, "cb_nodes", text);
}

static int use_hints(struct mpi_file *file)
{
	const struct mpi_info *info = file->info;
	struct mpi_hints *h = &file->hints;

	h->cb_buffer_size = number_of_hint(info, "cb_buffer_size");
	h->cb_read = choice_of(info, "romio_cb_read");
	h->cb_write = choice_of(info, "romio_cb_write");
	h->ds_read = choice_of(info, "romio_ds_read");
	h->ind_rd_buffer_size = number_of_hint(info, "ind_rd_buffer_size");
	h->striping_unit = number_of_hint(info, "striping_unit");
	return use_aggregators(file);
}

int mpi_hints_take(struct mpi_file *file, const struct mpi_info *info)
{
	int err = file->info ? MPI_SUCCESS : mpi_info_create(&file->info);

	for (size_t i = 0; !err && i < sizeof(hint_table) / sizeof(hint_table[0]); i++) {
		const char *key = hint_table[i].key, *value = mpi_info_value(info, key);

		if (value && !makes_sense(hint_table[i].kind, value))
			value = NULL;
		if (!value && !mpi_info_value(file->info, key))
			value = hint_table[i].standard;
		if (value)
			err = mpi_info_put(file->info, key, value);
	}
	return err ? err : use_hints(file);
}

unsigned int mpi_hints_permissions(const struct mpi_info *info)
{
	const char *value = mpi_info_value(info, "file_perm");
	char *end;
	unsigned long mode;

	if (!value)
		return 0666;
	mode = strtoul(value, &end, 8);
	return end != value && *end == '\0' && mode <= 0777 ? (unsigned int)mode : 0666;
}

int mpi_file_set_info(struct mpi_file *fh, struct mpi_info *info)
{
	return mpi_hints_take(fh, info);
}

int mpi_file_get_info(struct mpi_file *fh, struct mpi_info **info_used)
{
	return mpi_info_dup(fh->info, info_used);
}
