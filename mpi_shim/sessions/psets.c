/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Process sets: the whole job, this process, and the processes of this node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/node.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/impl.h"

enum { WORLD, SELF, SHARED, PSETS };

static const char *const names[PSETS] = {
	[WORLD] = "mpi://WORLD",
	[SELF] = "mpi://SELF",
	[SHARED] = "mpi://SHARED",
};

int mpi_session_get_num_psets(struct mpi_session *session, struct mpi_info *info, int *npset_names)
{
	(void)session;
	(void)info;
	*npset_names = PSETS;
	return MPI_SUCCESS;
}

/* *pset_len is the room at pset_name, and becomes what the whole name needs. */
int mpi_session_get_nth_pset(struct mpi_session *session, struct mpi_info *info, int n,
			     int *pset_len, char *pset_name)
{
	const int room = *pset_len;

	(void)session;
	(void)info;
	if (n < 0 || n >= PSETS)
		return mpi_fail(MPI_ERR_ARG, "there is no process set %d: they are 0 to %d", n,
				PSETS - 1);
	if (room > 0 && !pset_name)
		return mpi_fail(MPI_ERR_ARG, "pset_name is a null pointer");
	if (room > 0)
		snprintf(pset_name, (size_t)room, "%s", names[n]);
	*pset_len = (int)strlen(names[n]) + 1;
	return MPI_SUCCESS;
}

static int number_of(const char *name, int *number)
{
	for (int i = 0; i < PSETS; i++)
		if (strcmp(name, names[i]) == 0) {
			*number = i;
			return MPI_SUCCESS;
		}
	return mpi_fail(MPI_ERR_ARG, "there is no process set \"%.64s\"", name);
}

/* Ranks of the job by their order. Where the others are is known once they can be reached. */
static int members(int pset, int **world, int *n)
{
	int err = pset == SHARED ? mpi_world.connect() : MPI_SUCCESS;
	const int most = pset == SELF ? 1 : mpi_world.size;

	if (err)
		return err;
	*world = malloc((size_t)most * sizeof(**world));
	if (!*world)
		return mpi_fail_memory("a process set");
	*n = 0;
	for (int i = 0; i < mpi_world.size; i++)
		if (pset == WORLD || (pset == SHARED && mpi_is_here(i)) || i == mpi_world.rank)
			(*world)[(*n)++] = i;
	return MPI_SUCCESS;
}

int mpi_session_get_pset_info(struct mpi_session *session, const char *pset_name,
			      struct mpi_info **info)
{
	struct mpi_info *made = NULL;
	int *world, n, pset, err = number_of(pset_name, &pset);
	char text[16];

	(void)session;
	if (!err)
		err = members(pset, &world, &n);
	if (err)
		return err;
	free(world);
	snprintf(text, sizeof(text), "%d", n);
	err = mpi_info_create(&made);
	if (!err)
		err = mpi_info_put(made, "mpi_size", text);
	if (!err)
		*info = made;
	else if (made)
		mpi_info_free(&made);
	return err;
}

int mpi_group_from_session_pset(struct mpi_session *session, const char *pset_name,
				struct mpi_group **newgroup)
{
	struct mpi_group *g;
	int *world, n, pset, err = number_of(pset_name, &pset);

	if (!err)
		err = members(pset, &world, &n);
	if (err)
		return err;
	g = mpi_group_make(n, world);
	if (!g)
		return mpi_fail_memory("a group");
	g->session = session->obj.handle;
	*newgroup = g;
	return MPI_SUCCESS;
}
