/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Spawning. The root opens a port, has the launcher start the programs, and tells them the port's
 * name. The new job connects to it in MPI_Init, and the two become an intercommunicator as with
 * MPI_Comm_accept and MPI_Comm_connect.
 */
#include "mpi_shim/dynamic/spawn.h"

#include <portals3_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/process.h"
#include "mpi_shim/core/handle.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/dynamic/bridge.h"
#include "mpi_shim/dynamic/port.h"
#include "mpi_shim/impl.h"

/* The message to the new processes: how many there are, then the port. */
#define MESSAGE_FORMAT "%d %s"
enum { MESSAGE_MOST = MPI_MAX_PORT_NAME + 16 };

static MPI_Comm parent; /* MPI_COMM_NULL: nobody has spawned this job */

/* ---- what to start --------------------------------------------------------------------------- */

struct programs {
	int n, processes;
	ptl_command_t *command;
};

static void free_programs(struct programs *p)
{
	free(p->command);
	*p = (struct programs){ .n = 0 };
}

static int set_program(struct programs *p, int i, const char *file, char **argv, int count,
		       const struct mpi_info *info)
{
	ptl_command_t *c = &p->command[i];

	if (!file || !*file)
		return mpi_fail(MPI_ERR_ARG, "command %d is empty", i);
	if (count < 1)
		return mpi_fail(MPI_ERR_ARG, "%d processes of command %d are too few", count, i);
	*c = (ptl_command_t){
		.file = file,
		.argv = argv,
		.count = count,
		.wdir = mpi_info_value(info, "wdir"),
		.path = mpi_info_value(info, "path"),
		.host = mpi_info_value(info, "host"),
		.soft = mpi_info_value(info, "soft"),
	};
	if (count > MPI_PROCESSES_MOST - p->processes)
		return mpi_fail(MPI_ERR_SPAWN, "more than %d processes cannot be spawned",
				MPI_PROCESSES_MOST);
	p->processes += count;
	return MPI_SUCCESS;
}

static int make_programs(struct programs *p, int n)
{
	*p = (struct programs){ .n = n, .command = calloc((size_t)n, sizeof(*p->command)) };
	return p->command ? MPI_SUCCESS : mpi_fail_memory("the programs to spawn");
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Has the launcher start the programs, and waits for their root. */
static int start_programs(const struct programs *p, struct mpi_channel *c)
{
	char port[MPI_MAX_PORT_NAME], message[MESSAGE_MOST], why[MPI_MAX_ERROR_STRING / 2];
	int err = mpi_port_open(port), rc;

	if (err != MPI_SUCCESS)
		return err;
	snprintf(message, sizeof(message), MESSAGE_FORMAT, p->processes, port);
	mpi_unlock();
	rc = PtlJobSpawn(p->command, p->n, message, why, sizeof(why));
	mpi_lock();
	if (rc == PTL_OK)
		err = mpi_port_accept(port, -1, c);
	else /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one command at least */
		err = mpi_fail(MPI_ERR_SPAWN, "%s cannot be spawned: %s", p->command[0].file, why);
	mpi_port_close(port);
	return err;
}

/* All processes are there, or none. */
static void set_codes(int *codes, int n, int err)
{
	for (int i = 0; codes != MPI_ERRCODES_IGNORE && i < n; i++)
		codes[i] = err == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

/* `err`: an error of the root's arguments. */
static int spawn(const struct programs *p, int err, int root, struct mpi_comm *comm,
		 struct mpi_comm **out, int *codes)
{
	struct mpi_channel c = { .fd = -1 };
	int n = p->processes, rc = mpi_coll_bcast_bytes(&n, sizeof(n), root, comm);

	if (err == MPI_SUCCESS)
		err = rc;
	if (comm->rank == root && err == MPI_SUCCESS)
		err = start_programs(p, &c);
	err = mpi_bridge_make(comm, root, err, &c, out);
	set_codes(codes, n, err);
	return err;
}

int mpi_comm_spawn(const char *command, char **argv, int maxprocs, struct mpi_info *info, int root,
		   struct mpi_comm *comm, struct mpi_comm **intercomm, int *array_of_errcodes)
{
	struct programs p = { .n = 0 };
	int err = mpi_bridge_check(comm, root);

	if (err != MPI_SUCCESS)
		return err;
	if (comm->rank == root) {
		err = make_programs(&p, 1);
		if (err == MPI_SUCCESS)
			err = set_program(&p, 0, command, argv, maxprocs, info);
	}
	err = spawn(&p, err, root, comm, intercomm, array_of_errcodes);
	free_programs(&p);
	return err;
}

static int read_commands(struct programs *p, int count, char **commands, char ***argv,
			 const int *maxprocs, const MPI_Info *infos)
{
	int err;

	if (count < 1 || !commands || !maxprocs || !infos)
		return mpi_fail(MPI_ERR_ARG, "there are no commands, numbers or hints");
	err = make_programs(p, count);
	for (int i = 0; i < count && err == MPI_SUCCESS; i++) {
		const struct mpi_info *info = NULL;

		if (infos[i] != MPI_INFO_NULL) {
			info = mpi_object_of(infos[i], MPI_KIND_INFO);
			if (!info)
				return mpi_fail(MPI_ERR_INFO, "the hints of command %d are invalid",
						i);
		}
		err = set_program(p, i, commands[i], argv ? argv[i] : NULL, maxprocs[i], info);
	}
	return err;
}

int mpi_comm_spawn_multiple(int count, char **array_of_commands, char ***array_of_argv,
			    const int *array_of_maxprocs, const MPI_Info *array_of_info, int root,
			    struct mpi_comm *comm, struct mpi_comm **intercomm,
			    int *array_of_errcodes)
{
	struct programs p = { .n = 0 };
	int err = mpi_bridge_check(comm, root);

	if (err != MPI_SUCCESS)
		return err;
	if (comm->rank == root)
		err = read_commands(&p, count, array_of_commands, array_of_argv, array_of_maxprocs,
				    array_of_info);
	err = spawn(&p, err, root, comm, intercomm, array_of_errcodes);
	free_programs(&p);
	return err;
}

/* ---- in the new processes -------------------------------------------------------------------- */

int mpi_spawn_meet_parent(void)
{
	struct mpi_channel c = { .fd = -1 };
	struct mpi_comm *comm = NULL;
	char message[MESSAGE_MOST];
	const char *port;
	int err = MPI_SUCCESS;

	if (PtlJobMessage(message, sizeof(message)) != PTL_OK)
		return MPI_SUCCESS;
	port = strchr(message, ' ');
	if (mpi_world.rank == 0)
		err = port ? mpi_port_call(port + 1, &c)
			   : mpi_fail(MPI_ERR_PORT, "the parent has told no port");
	err = mpi_bridge_make(&mpi_comm_world, 0, err, &c, &comm);
	if (err != MPI_SUCCESS)
		return err;
	mpi_comm_set_name(comm, "MPI_COMM_PARENT");
	parent = mpi_handle_of(comm);
	return MPI_SUCCESS;
}

int mpi_comm_get_parent(struct mpi_comm **out)
{
	/* the program may have freed it: then the handle is none any more */
	*out = parent == MPI_COMM_NULL ? NULL : mpi_object_of(parent, MPI_KIND_COMM);
	return MPI_SUCCESS;
}
