/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Service names: where a server publishes its port, and clients look it up.
 */
#include <portals3_ext.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"

static int name_failed(const char *doing, const char *name, int rc, int class)
{
	return mpi_fail(class, "\"%.100s\" cannot be %s: %s", name, doing,
			rc == PTL_ME_IN_USE        ? "it is published already"
			: rc == PTL_HANDLE_INVALID ? "it is not published"
			: rc == PTL_NO_SPACE
				? "it is too long"
				: "neither the launcher nor /tmp keeps names for this process");
}

int mpi_publish_name(const char *service_name, struct mpi_info *info, const char *port_name)
{
	int rc;

	(void)info;
	if (strnlen(port_name, MPI_MAX_PORT_NAME) == MPI_MAX_PORT_NAME)
		return mpi_fail(MPI_ERR_PORT, "the port's name is longer than any");
	rc = PtlNamePublish(service_name, port_name);
	return rc == PTL_OK ? MPI_SUCCESS
			    : name_failed("published", service_name, rc, MPI_ERR_SERVICE);
}

int mpi_unpublish_name(const char *service_name, struct mpi_info *info, const char *port_name)
{
	int rc = PtlNameUnpublish(service_name);

	(void)info;
	(void)port_name; /* a name has one port */
	return rc == PTL_OK ? MPI_SUCCESS
			    : name_failed("unpublished", service_name, rc, MPI_ERR_SERVICE);
}

int mpi_lookup_name(const char *service_name, struct mpi_info *info, char *port_name)
{
	char text[MPI_MAX_PORT_NAME];
	int rc = PtlNameLookup(service_name, text, sizeof(text));

	(void)info;
	if (rc != PTL_OK)
		return name_failed("looked up", service_name, rc, MPI_ERR_NAME);
	memcpy(port_name, text, strlen(text) + 1);
	return MPI_SUCCESS;
}
