/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Cartesian topologies: rank = row-major index of the coordinates.
 */
#include <limits.h>
#include <string.h>

#include "mpi_shim/comm/comm.h"
#include "mpi_shim/comm/placement.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/core/topology.h"

/* Compute the number of processes in the grid. Refuse an invalid grid, or one that does not fit
 * into comm. */
static int grid_size(const struct mpi_comm *comm, int ndims, const int *dims, int *size)
{
	int64_t n = 1;

	if (ndims < 0)
		return mpi_fail(MPI_ERR_DIMS, "the number of dimensions, %d, is negative", ndims);
	for (int i = 0; i < ndims; i++) {
		if (dims[i] <= 0)
			return mpi_fail(MPI_ERR_DIMS, "dims[%d] = %d is not positive", i, dims[i]);
		n *= dims[i];
		if (n > comm->size)
			return mpi_fail(MPI_ERR_DIMS,
					"the grid has more places than the communicator has ranks, "
					"%d",
					comm->size);
	}
	*size = (int)n;
	return MPI_SUCCESS;
}

static int check_cart_intra(const struct mpi_comm *comm)
{
	if (!comm->inter)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
}

static void coords_of(const struct mpi_topology *t, int rank, int *coords, int n)
{
	for (int i = t->cart.ndims - 1; i >= 0; i--) {
		if (i < n)
			coords[i] = rank % t->cart.dims[i];
		rank /= t->cart.dims[i];
	}
}

static struct mpi_topology *cart_new(int ndims)
{
	struct mpi_topology *t = mpi_topology_new(MPI_CART, 3 * (int64_t)ndims);

	if (!t)
		return NULL;
	t->cart.ndims = ndims;
	t->cart.dims = t->memory;
	t->cart.periods = t->memory + ndims;
	t->cart.coords = t->memory + 2 * (size_t)ndims;
	return t;
}

/* The topology as the process with this rank of the grid sees it. NULL: out of memory. */
static struct mpi_topology *cart_of(int ndims, const int *dims, const int *periods, int rank,
				    int size)
{
	struct mpi_topology *t = cart_new(ndims);

	if (!t)
		return NULL;
	for (int i = 0; i < ndims; i++) {
		t->cart.dims[i] = dims[i];
		t->cart.periods[i] = periods[i] != 0;
	}
	if (rank < size)
		coords_of(t, rank, t->cart.coords, ndims);
	return t;
}

static int create_in_order(struct mpi_comm *comm, int ndims, const int *dims, const int *periods,
			   int size, struct mpi_comm **out)
{
	struct mpi_placement p;
	struct mpi_topology *t = NULL;
	int err = mpi_placement_agree(&p, comm, size);

	if (err != MPI_SUCCESS)
		return err;
	if (mpi_placement_grid(&p, ndims, dims, periods) == MPI_SUCCESS)
		t = cart_of(ndims, dims, periods,
			    comm->rank < size ? p.rank[comm->rank] : comm->rank, size);
	err = mpi_topology_attach(comm, size, p.order, t, out);
	mpi_placement_end(&p);
	return err;
}

int mpi_cart_create(struct mpi_comm *comm, int ndims, const int *dims, const int *periods,
		    int reorder, struct mpi_comm **out)
{
	int size = 0, err = check_cart_intra(comm);

	if (err == MPI_SUCCESS)
		err = grid_size(comm, ndims, dims, &size);
	if (err != MPI_SUCCESS)
		return err;
	if (reorder)
		return create_in_order(comm, ndims, dims, periods, size, out);
	return mpi_topology_attach(comm, size, NULL,
				   cart_of(ndims, dims, periods, comm->rank, size), out);
}

/* This process's rank in the order of nodes. MPI_Cart_create with reorder asks all ranks for their
 * caches, too; this call is local. */
int mpi_cart_map(struct mpi_comm *comm, int ndims, const int *dims, const int *periods, int *rank)
{
	struct mpi_placement p = { 0 };
	int size = 0, err = check_cart_intra(comm);

	if (err == MPI_SUCCESS)
		err = grid_size(comm, ndims, dims, &size);
	if (err == MPI_SUCCESS)
		err = mpi_placement_local(&p, comm, size);
	if (err == MPI_SUCCESS)
		err = mpi_placement_grid(&p, ndims, dims, periods);
	if (err == MPI_SUCCESS)
		*rank = comm->rank < size ? p.rank[comm->rank] : MPI_UNDEFINED;
	mpi_placement_end(&p);
	return err;
}

int mpi_cartdim_get(struct mpi_comm *comm, int *ndims)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_CART);

	if (!t)
		return MPI_ERR_TOPOLOGY;
	*ndims = t->cart.ndims;
	return MPI_SUCCESS;
}

static int check_dims_room(const struct mpi_topology *t, int room)
{
	if (room >= t->cart.ndims)
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ARG, "maxdims is %d, but there are %d dimensions", room,
			t->cart.ndims);
}

int mpi_cart_get(struct mpi_comm *comm, int room, int *dims, int *periods, int *coords)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_CART);
	size_t bytes;
	int err = t ? check_dims_room(t, room) : MPI_ERR_TOPOLOGY;

	if (err != MPI_SUCCESS || t->cart.ndims == 0)
		return err;
	bytes = (size_t)t->cart.ndims * sizeof(int);
	memcpy(dims, t->cart.dims, bytes);
	memcpy(periods, t->cart.periods, bytes);
	memcpy(coords, t->cart.coords, bytes);
	return MPI_SUCCESS;
}

static int wrap_coord(int64_t coord, int dim)
{
	return (int)((coord % dim + dim) % dim);
}

int mpi_cart_rank(struct mpi_comm *comm, const int *coords, int *rank)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_CART);
	int r = 0;

	if (!t)
		return MPI_ERR_TOPOLOGY;
	for (int i = 0; i < t->cart.ndims; i++) {
		int dim = t->cart.dims[i];

		if (!t->cart.periods[i] && (coords[i] < 0 || coords[i] >= dim))
			return mpi_fail(MPI_ERR_ARG,
					"coords[%d] = %d is outside of a dimension of %d, which is "
					"not periodic",
					i, coords[i], dim);
		r = r * dim + wrap_coord(coords[i], dim);
	}
	*rank = r;
	return MPI_SUCCESS;
}

int mpi_cart_coords(struct mpi_comm *comm, int rank, int room, int *coords)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_CART);
	int err = t ? check_dims_room(t, room) : MPI_ERR_TOPOLOGY;

	if (err != MPI_SUCCESS)
		return err;
	if (rank < 0 || rank >= comm->size)
		return mpi_fail(MPI_ERR_RANK, "rank %d is not in the communicator, which has %d",
				rank, comm->size);
	coords_of(t, rank, coords, t->cart.ndims);
	return MPI_SUCCESS;
}

/* The rank at a distance along one dimension; MPI_PROC_NULL beyond an end. */
static int at_distance(const struct mpi_topology *t, int self, int direction, int64_t distance)
{
	int64_t coord = t->cart.coords[direction] + distance;
	int dim = t->cart.dims[direction], step = 1;

	if (!t->cart.periods[direction] && (coord < 0 || coord >= dim))
		return MPI_PROC_NULL;
	for (int i = direction + 1; i < t->cart.ndims; i++)
		step *= t->cart.dims[i];
	return self + (wrap_coord(coord, dim) - t->cart.coords[direction]) * step;
}

int mpi_cart_shift(struct mpi_comm *comm, int direction, int disp, int *source, int *dest)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_CART);

	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (direction < 0 || direction >= t->cart.ndims)
		return mpi_fail(MPI_ERR_DIMS, "direction %d: there are %d dimensions", direction,
				t->cart.ndims);
	*source = at_distance(t, comm->rank, direction, -(int64_t)disp);
	*dest = at_distance(t, comm->rank, direction, disp);
	return MPI_SUCCESS;
}

/* ---- sub-grids ------------------------------------------------------------------------------- */

static struct mpi_topology *cart_part(const struct mpi_topology *from, const int *remain)
{
	struct mpi_topology *t;
	int n = 0;

	for (int i = 0; i < from->cart.ndims; i++)
		n += remain[i] != 0;
	t = cart_new(n);
	if (!t)
		return NULL;
	n = 0;
	for (int i = 0; i < from->cart.ndims; i++) {
		if (!remain[i])
			continue;
		t->cart.dims[n] = from->cart.dims[i];
		t->cart.periods[n] = from->cart.periods[i];
		t->cart.coords[n++] = from->cart.coords[i];
	}
	return t;
}

/* Join the processes with equal coordinates in the dropped dimensions. They are in row-major
 * order already. */
int mpi_cart_sub(struct mpi_comm *comm, const int *remain, struct mpi_comm **out)
{
	const struct mpi_topology *t = mpi_topology_of(comm, MPI_CART);
	struct mpi_topology *part;
	struct mpi_comm *sub = NULL;
	int colour = 0, err;

	if (!t)
		return MPI_ERR_TOPOLOGY;
	part = cart_part(t, remain);
	if (!part)
		return mpi_fail_memory("a topology");
	for (int i = 0; i < t->cart.ndims; i++)
		if (!remain[i])
			colour = colour * t->cart.dims[i] + t->cart.coords[i];
	err = mpi_comm_split(comm, colour, 0, &sub);
	if (err != MPI_SUCCESS) {
		mpi_topology_release(part);
		return err;
	}
	sub->topology = part;
	*out = sub;
	return MPI_SUCCESS;
}
