/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Makes every call of a collective in the file that includes this one a blocking, a non-blocking
 * or a persistent one, as `way` says, which ways_draw() draws: the same on all ranks.
 */
#ifndef TEST_MPI_COLL_PATHS_H
#define TEST_MPI_COLL_PATHS_H

#include "test/mpi/coll_check.h"

enum { WAY_BLOCKING, WAY_NON_BLOCKING, WAY_PERSISTENT, WAYS };
static int way;
static MPI_Request way_request;

static inline void ways_draw(void)
{
	way = draw_below(MPI_VERSION >= 4 ? WAYS : WAY_PERSISTENT);
}

/* It is complete when this returns, in one of two ways. */
static inline int way_wait(int err)
{
	int done = 0;

	if (err)
		return err;
	if (draw_below(2))
		return MPI_Wait(&way_request, MPI_STATUS_IGNORE);
	while (!done && !err)
		err = MPI_Test(&way_request, &done, MPI_STATUS_IGNORE);
	return err;
}

static inline int way_start(int err)
{
	if (!err)
		err = MPI_Start(&way_request);
	err = way_wait(err);
	return err ? err : MPI_Request_free(&way_request);
}

#if MPI_VERSION >= 4
#define WAYS_OF_(name, iname, ...)                                                                 \
	(way == WAY_BLOCKING ? name(__VA_ARGS__)                                                   \
	 : way == WAY_NON_BLOCKING                                                                 \
		 ? way_wait(iname(__VA_ARGS__, &way_request))                                      \
		 : way_start(name##_init(__VA_ARGS__, MPI_INFO_NULL, &way_request)))
#else
#define WAYS_OF_(name, iname, ...)                                                                 \
	(way == WAY_BLOCKING ? name(__VA_ARGS__) : way_wait(iname(__VA_ARGS__, &way_request)))
#endif

#define MPI_Barrier(...)        WAYS_OF_(MPI_Barrier, MPI_Ibarrier, __VA_ARGS__)
#define MPI_Bcast(...)          WAYS_OF_(MPI_Bcast, MPI_Ibcast, __VA_ARGS__)
#define MPI_Gather(...)         WAYS_OF_(MPI_Gather, MPI_Igather, __VA_ARGS__)
#define MPI_Gatherv(...)        WAYS_OF_(MPI_Gatherv, MPI_Igatherv, __VA_ARGS__)
#define MPI_Scatter(...)        WAYS_OF_(MPI_Scatter, MPI_Iscatter, __VA_ARGS__)
#define MPI_Scatterv(...)       WAYS_OF_(MPI_Scatterv, MPI_Iscatterv, __VA_ARGS__)
#define MPI_Allgather(...)      WAYS_OF_(MPI_Allgather, MPI_Iallgather, __VA_ARGS__)
#define MPI_Allgatherv(...)     WAYS_OF_(MPI_Allgatherv, MPI_Iallgatherv, __VA_ARGS__)
#define MPI_Alltoall(...)       WAYS_OF_(MPI_Alltoall, MPI_Ialltoall, __VA_ARGS__)
#define MPI_Alltoallv(...)      WAYS_OF_(MPI_Alltoallv, MPI_Ialltoallv, __VA_ARGS__)
#define MPI_Alltoallw(...)      WAYS_OF_(MPI_Alltoallw, MPI_Ialltoallw, __VA_ARGS__)
#define MPI_Reduce(...)         WAYS_OF_(MPI_Reduce, MPI_Ireduce, __VA_ARGS__)
#define MPI_Allreduce(...)      WAYS_OF_(MPI_Allreduce, MPI_Iallreduce, __VA_ARGS__)
#define MPI_Reduce_scatter(...) WAYS_OF_(MPI_Reduce_scatter, MPI_Ireduce_scatter, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...)                                                              \
	WAYS_OF_(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, __VA_ARGS__)
#define MPI_Scan(...)   WAYS_OF_(MPI_Scan, MPI_Iscan, __VA_ARGS__)
#define MPI_Exscan(...) WAYS_OF_(MPI_Exscan, MPI_Iexscan, __VA_ARGS__)
#define MPI_Neighbor_allgather(...)                                                                \
	WAYS_OF_(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, __VA_ARGS__)
#define MPI_Neighbor_allgatherv(...)                                                               \
	WAYS_OF_(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, __VA_ARGS__)
#define MPI_Neighbor_alltoall(...)                                                                 \
	WAYS_OF_(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, __VA_ARGS__)
#define MPI_Neighbor_alltoallv(...)                                                                \
	WAYS_OF_(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, __VA_ARGS__)
#define MPI_Neighbor_alltoallw(...)                                                                \
	WAYS_OF_(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, __VA_ARGS__)

#endif
