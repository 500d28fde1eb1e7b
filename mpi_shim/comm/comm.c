/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Communicators as objects: queries, names, comparison. create.c, split.c, inter.c and idup.c
 * make them, and free.c ends them.
 */
#include "mpi_shim/comm/comm.h"

#include <string.h>

#include "mpi_shim/coll/calls.h"
#include "mpi_shim/core/context.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"

struct mpi_comm *mpi_comm_make(uint32_t context, struct mpi_group *local, struct mpi_group *remote,
			       const struct mpi_comm *parent)
{
	struct mpi_comm *comm = mpi_object_new(MPI_KIND_COMM);

	if (!comm) {
		mpi_context_release(context);
		return NULL;
	}
	mpi_calls_forget(context);
	comm->context = context;
	comm->inter = remote != NULL;
	comm->local = mpi_object_keep(local);
	comm->remote = mpi_object_keep(remote ? remote : local);
	comm->rank = local->rank;
	comm->size = local->size;
	comm->remote_size = comm->remote->size;
	comm->others = comm->local->others || comm->remote->others;
	comm->counted = comm->others;
	if (comm->others)
		mpi_others_count(comm, 1);
	comm->session = parent ? parent->session : 0;
	comm->handler = mpi_object_keep(parent ? parent->handler : mpi_comm_world.handler);
	return comm;
}

void mpi_comm_unmake(struct mpi_comm *comm)
{
	mpi_object_release(comm);
}

int mpi_comm_size(struct mpi_comm *comm, int *size)
{
	*size = comm->size;
	return MPI_SUCCESS;
}

int mpi_comm_rank(struct mpi_comm *comm, int *rank)
{
	*rank = comm->rank;
	return MPI_SUCCESS;
}

int mpi_comm_test_inter(struct mpi_comm *comm, int *flag)
{
	*flag = comm->inter;
	return MPI_SUCCESS;
}

static int check_inter(const struct mpi_comm *comm)
{
	if (comm->inter)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_COMM, "the communicator is not an intercommunicator");
}

int mpi_comm_remote_size(struct mpi_comm *comm, int *size)
{
	int err = check_inter(comm);

	if (err == MPI_SUCCESS)
		*size = comm->remote_size;
	return err;
}

static int export_group(const struct mpi_comm *comm, struct mpi_group *from, struct mpi_group **out)
{
	int err = mpi_group_export(from, out);

	if (err == MPI_SUCCESS && *out != &mpi_group_empty)
		(*out)->session = comm->session;
	return err;
}

int mpi_comm_group(struct mpi_comm *comm, struct mpi_group **group)
{
	return export_group(comm, comm->local, group);
}

int mpi_comm_remote_group(struct mpi_comm *comm, struct mpi_group **group)
{
	int err = check_inter(comm);

	return err == MPI_SUCCESS ? export_group(comm, comm->remote, group) : err;
}

int mpi_comm_compare(struct mpi_comm *a, struct mpi_comm *b, int *result)
{
	int local = MPI_UNEQUAL, remote = MPI_UNEQUAL, err;

	if (a == b) {
		*result = MPI_IDENT;
		return MPI_SUCCESS;
	}
	*result = MPI_UNEQUAL;
	if (a->inter != b->inter)
		return MPI_SUCCESS;
	err = mpi_group_compare(a->local, b->local, &local);
	if (err == MPI_SUCCESS)
		err = mpi_group_compare(a->remote, b->remote, &remote);
	if (err != MPI_SUCCESS)
		return err;
	if (local == MPI_UNEQUAL || remote == MPI_UNEQUAL)
		*result = MPI_UNEQUAL;
	else if (local == MPI_SIMILAR || remote == MPI_SIMILAR)
		*result = MPI_SIMILAR;
	else
		*result = MPI_CONGRUENT;
	return MPI_SUCCESS;
}

/* ---- name and hints -------------------------------------------------------------------------- */

int mpi_comm_set_name(struct mpi_comm *comm, const char *name)
{
	size_t n = strnlen(name, sizeof(comm->name) - 1);

	memcpy(comm->name, name, n);
	comm->name[n] = '\0';
	return MPI_SUCCESS;
}

int mpi_comm_get_name(struct mpi_comm *comm, char *name, int *length)
{
	const char *of = comm ? comm->name : "MPI_COMM_NULL";

	*length = (int)strlen(of);
	memcpy(name, of, (size_t)*length + 1);
	return MPI_SUCCESS;
}

/* The hints of MPI-4 §7.4.4 for communicators: promises of the program, "true" or "false". */
static const char *const hint_names[] = {
	"mpi_assert_no_any_tag",
	"mpi_assert_no_any_source",
	"mpi_assert_exact_length",
	"mpi_assert_allow_overtaking",
};

int mpi_comm_take_hints(struct mpi_comm *comm, const struct mpi_info *info)
{
	for (size_t i = 0; i < sizeof(hint_names) / sizeof(hint_names[0]); i++) {
		const char *value = mpi_info_value(info, hint_names[i]);
		int err;

		/* unknown or invalid hints are ignored */
		if (!value || (strcmp(value, "true") != 0 && strcmp(value, "false") != 0))
			continue;
		err = comm->info ? MPI_SUCCESS : mpi_info_create(&comm->info);
		if (err == MPI_SUCCESS)
			err = mpi_info_put(comm->info, hint_names[i], value);
		if (err != MPI_SUCCESS)
			return err;
	}
	return MPI_SUCCESS;
}

int mpi_comm_set_info(struct mpi_comm *comm, struct mpi_info *info)
{
	return mpi_comm_take_hints(comm, info);
}

int mpi_comm_get_info(struct mpi_comm *comm, struct mpi_info **info)
{
	return comm->info ? mpi_info_dup(comm->info, info) : mpi_info_create(info);
}
