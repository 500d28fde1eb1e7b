/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Jobs that find each other by a port, or by a socket that two of their processes have.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/random.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/dynamic/bridge.h"
#include "mpi_shim/dynamic/port.h"
#include "mpi_shim/impl.h"

int mpi_open_port(struct mpi_info *info, char *port_name)
{
	(void)info; /* no key is reserved, and none is needed */
	return mpi_port_open(port_name);
}

int mpi_close_port(const char *port_name)
{
	return mpi_port_close(port_name);
}

int mpi_comm_accept(const char *port_name, struct mpi_info *info, int root, struct mpi_comm *comm,
		    struct mpi_comm **newcomm)
{
	struct mpi_channel c = { .fd = -1 };
	int err = mpi_bridge_check(comm, root);

	(void)info;
	if (err != MPI_SUCCESS)
		return err;
	if (comm->rank == root)
		err = port_name ? mpi_port_accept(port_name, -1, &c)
				: mpi_fail(MPI_ERR_PORT, "the port's name is a null pointer");
	return mpi_bridge_make(comm, root, err, &c, newcomm);
}

int mpi_comm_connect(const char *port_name, struct mpi_info *info, int root, struct mpi_comm *comm,
		     struct mpi_comm **newcomm)
{
	struct mpi_channel c = { .fd = -1 };
	int err = mpi_bridge_check(comm, root);

	(void)info;
	if (err != MPI_SUCCESS)
		return err;
	if (comm->rank == root)
		err = port_name ? mpi_port_call(port_name, &c)
				: mpi_fail(MPI_ERR_PORT, "the port's name is a null pointer");
	return mpi_bridge_make(comm, root, err, &c, newcomm);
}

/* ---- join ------------------------------------------------------------------------------------ */

/* The two processes exchange this over the program's socket. */
struct invitation {
	char magic[16];
	unsigned char lot[16]; /* the greater one calls */
	char port[MPI_MAX_PORT_NAME];
};

#define JOIN_MS 250 /* between two checks that the other process is there */

static const char magic[16] = "postern-join:1";

static int check_socket(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ARG, "descriptor %d is not a stream socket", fd);
}

static int invite(int fd, struct invitation *mine, struct invitation *theirs)
{
	int err;

	memcpy(mine->magic, magic, sizeof(magic));
	if (!base_random(mine->lot, sizeof(mine->lot)))
		return mpi_fail(MPI_ERR_OTHER, "the system gives no random numbers");
	err = mpi_channel_swap(fd, mine, theirs, sizeof(*mine));
	if (err != MPI_SUCCESS)
		return err;
	if (memcmp(theirs->magic, magic, sizeof(magic)) != 0 ||
	    !memchr(theirs->port, '\0', sizeof(theirs->port)) ||
	    memcmp(theirs->lot, mine->lot, sizeof(mine->lot)) == 0)
		return mpi_fail(MPI_ERR_OTHER,
				"the other end of descriptor %d does not call "
				"MPI_Comm_join of this library",
				fd);
	return MPI_SUCCESS;
}

static bool has_hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLRDHUP | POLLERR);
}

/* Waits for the call of the process at the other end of the socket, as long as it is there. */
static int await_joining(int fd, const char *port, struct mpi_channel *c)
{
	int err;

	while ((err = mpi_port_accept(port, JOIN_MS, c)) == MPI_ERR_PENDING)
		if (has_hung_up(fd))
			return mpi_fail(MPI_ERR_PROC_ABORTED,
					"the other end has closed the socket");
	return err;
}

int mpi_comm_join(int fd, struct mpi_comm **intercomm)
{
	struct invitation mine = { .port = "" }, theirs;
	struct mpi_channel c = { .fd = -1 };
	int err = check_socket(fd);

	if (err == MPI_SUCCESS)
		err = mpi_port_open(mine.port);
	if (err != MPI_SUCCESS)
		return err;
	err = invite(fd, &mine, &theirs);
	if (err == MPI_SUCCESS)
		err = memcmp(mine.lot, theirs.lot, sizeof(mine.lot)) > 0
			      ? mpi_port_call(theirs.port, &c)
			      : await_joining(fd, mine.port, &c);
	mpi_port_close(mine.port);
	return mpi_bridge_make(&mpi_comm_self, 0, err, &c, intercomm);
}
