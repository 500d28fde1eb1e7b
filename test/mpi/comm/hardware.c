/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Communicators and topologies that follow the hardware. The argument is the number of ranks on
 * each of the nodes that PTL_MPI_NODE pretends.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>

#include "test/mpi/job_check.h"

static int on_node;

/* ---- reordering ------------------------------------------------------------------------------ */

/* A communicator in which ranks go round the nodes. */
static MPI_Comm scattered(void)
{
	const int nodes = job_size / on_node;
	MPI_Comm comm;

	MPI_Comm_split(MPI_COMM_WORLD, 0, job_rank % on_node * nodes + job_rank / on_node, &comm);
	return comm;
}

/* The node of each rank of comm. */
static int *nodes_of(MPI_Comm comm)
{
	int mine = job_rank / on_node, size, *all;

	MPI_Comm_size(comm, &size);
	all = malloc(sizeof(int) * (size_t)size);
	MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
	return all;
}

static void a_reordered_grid_keeps_neighbours_on_their_node(void)
{
	const int dims[2] = { job_size / 2, 2 }, periods[2] = { 0, 0 };
	MPI_Comm comm = scattered(), cart, plain;
	int rank, old, mapped, size, *node, apart = 0, coords[2], got_dims[2], got_periods[2], back;

	MPI_Cart_create(comm, 2, dims, periods, 1, &cart);
	MPI_Cart_map(comm, 2, dims, periods, &mapped);
	MPI_Comm_rank(cart, &rank);
	MPI_Comm_rank(comm, &old);
	MPI_Comm_size(cart, &size);
	CHECK_EQUAL(size, job_size);
	CHECK(mapped >= 0 && mapped < size);
	node = nodes_of(cart);
	for (int i = 0; i < size; i++) {
		apart += i % 2 == 0 && node[i] != node[i + 1];
		apart += i + 2 < size && node[i] != node[i + 2];
	}
	/* blocks of on_node / 2 rows: two pairs at each border */
	CHECK_EQUAL(apart, 2 * (job_size / on_node - 1));
	MPI_Cart_get(cart, 2, got_dims, got_periods, coords);
	MPI_Cart_rank(cart, coords, &back);
	CHECK_EQUAL(back, rank);
	CHECK_EQUAL(got_dims[0], dims[0]);
	job_try(cart);
	free(node);

	MPI_Cart_create(comm, 2, dims, periods, 0, &plain);
	MPI_Comm_rank(plain, &rank);
	CHECK_EQUAL(rank, old);
	MPI_Comm_free(&plain);
	MPI_Comm_free(&cart);
	MPI_Comm_free(&comm);
}

static void a_reordered_graph_keeps_neighbours_on_their_node(void)
{
	int *index = malloc(sizeof(int) * (size_t)job_size), n = 0, apart = 0;
	int *edge = malloc(sizeof(int) * 2 * (size_t)job_size), *node, mapped;
	MPI_Comm comm = scattered(), graph;

	for (int i = 0; i < job_size; i++) { /* a chain */
		if (i > 0)
			edge[n++] = i - 1;
		if (i + 1 < job_size)
			edge[n++] = i + 1;
		index[i] = n;
	}
	MPI_Graph_create(comm, job_size, index, edge, 1, &graph);
	MPI_Graph_map(comm, job_size, index, edge, &mapped);
	CHECK(mapped >= 0 && mapped < job_size);
	node = nodes_of(graph);
	for (int i = 0; i + 1 < job_size; i++)
		apart += node[i] != node[i + 1];
	CHECK_EQUAL(apart, job_size / on_node - 1);
	job_try(graph);
	MPI_Comm_free(&graph);
	MPI_Comm_free(&comm);
	free(node);
	free(index);
	free(edge);
}

/* ---- splitting ------------------------------------------------------------------------------- */

static MPI_Comm split_by(int type, const char *key, const char *value)
{
	MPI_Info info = MPI_INFO_NULL;
	MPI_Comm comm = MPI_COMM_WORLD;

	MPI_Info_create(&info);
	if (key)
		MPI_Info_set(info, key, value);
	MPI_Comm_split_type(MPI_COMM_WORLD, type, -job_rank, info, &comm);
	MPI_Info_free(&info);
	return comm;
}

/* Bind to the first processor that this process may use. */
static cpu_set_t bind_to_one(void)
{
	cpu_set_t before, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(before), &before);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQUAL(sched_setaffinity(0, sizeof(one), &one), 0);
	return before;
}

/* Of every type that MPI_Get_hw_resource_info knows, a bound process is restricted to one. All
 * are bound to the same processor here, so they share it. */
static void bound_processes_share_every_type_of_hardware(void)
{
	cpu_set_t before = bind_to_one();
	bool cpu = false, host = false;
	MPI_Info info;
	int keys;

	MPI_Get_hw_resource_info(&info);
	MPI_Info_get_nkeys(info, &keys);
	CHECK(keys >= 2);
	for (int i = 0; i < keys; i++) {
		char key[MPI_MAX_INFO_KEY], value[8];
		int len = sizeof(value), flag = 0, size = 0;

		MPI_Info_get_nthkey(info, i, key);
		MPI_Info_get_string(info, key, &len, value, &flag);
		CHECK(flag && strcmp(value, "true") == 0);
		cpu |= strcmp(key, "linux://cpu") == 0;
		host |= strcmp(key, "linux://host") == 0;
		for (int guided = 0; guided < 2; guided++) {
			MPI_Comm comm = split_by(guided ? MPI_COMM_TYPE_HW_GUIDED
							: MPI_COMM_TYPE_RESOURCE_GUIDED,
						 "mpi_hw_resource_type", key);

			CHECK(comm != MPI_COMM_NULL);
			if (comm == MPI_COMM_NULL)
				continue;
			MPI_Comm_size(comm, &size);
			CHECK_EQUAL(size, job_size);
			MPI_Comm_free(&comm);
		}
	}
	CHECK(cpu && host);
	MPI_Info_free(&info);
	CHECK(split_by(MPI_COMM_TYPE_HW_UNGUIDED, NULL, NULL) == MPI_COMM_NULL);
	sched_setaffinity(0, sizeof(before), &before);
}

/* Rank 0 is bound to one of several processors, the others to all: the widest type that parts
 * them has rank 0 alone in it, and nobody else. */
static void an_unguided_split_says_what_it_has_split_by(void)
{
	const bool bound = job_rank == 0;
	char value[MPI_MAX_INFO_VAL] = "";
	int len = sizeof(value), flag = 0, size = 0, several;
	cpu_set_t before;
	MPI_Info info;
	MPI_Comm comm;

	sched_getaffinity(0, sizeof(before), &before);
	several = CPU_COUNT(&before) > 1;
	MPI_Allreduce(MPI_IN_PLACE, &several, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!several || job_size < 2)
		return;
	if (bound)
		bind_to_one();
	MPI_Info_create(&info);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &comm);
	CHECK((comm != MPI_COMM_NULL) == bound);
	MPI_Info_get_string(info, "mpi_hw_resource_type", &len, value, &flag);
	CHECK_EQUAL(flag, bound);
	if (comm != MPI_COMM_NULL) {
		MPI_Comm part = split_by(MPI_UNDEFINED, NULL, NULL);

		CHECK(part == MPI_COMM_NULL);
		MPI_Comm_size(comm, &size);
		CHECK_EQUAL(size, 1);
		CHECK(strstr(value, "://") != NULL);
		MPI_Comm_free(&comm);
	} else {
		MPI_Comm part =
			split_by(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "linux://cpu");

		CHECK(part == MPI_COMM_NULL);
	}
	MPI_Info_free(&info);
	if (bound)
		sched_setaffinity(0, sizeof(before), &before);
}

static void process_sets_that_every_job_has_can_be_split_by(void)
{
	static const char *const set[] = { "mpi://WORLD", "mpi://SELF", "mpi://SHARED" };
	MPI_Comm comm;

	for (int i = 0; i < 3; i++) {
		int size = 0;

		comm = split_by(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", set[i]);
		CHECK(comm != MPI_COMM_NULL);
		MPI_Comm_size(comm, &size);
		CHECK_EQUAL(size, i == 1 ? 1 : job_size);
		MPI_Comm_free(&comm);
	}
	CHECK(split_by(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "app://none") ==
	      MPI_COMM_NULL);
	CHECK(split_by(MPI_COMM_TYPE_RESOURCE_GUIDED, NULL, NULL) == MPI_COMM_NULL);
	CHECK(split_by(MPI_COMM_TYPE_HW_GUIDED, "mpi_pset_name", "mpi://WORLD") == MPI_COMM_NULL);
	CHECK(split_by(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "hwloc://Nothing") ==
	      MPI_COMM_NULL);
}

static void two_resources_at_once_are_refused_on_all_ranks(void)
{
	MPI_Comm comm = MPI_COMM_NULL;
	int class;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_pset_name", "mpi://WORLD");
	MPI_Info_set(info, "mpi_hw_resource_type", "linux://host");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Error_class(
		MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &comm),
		&class);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	CHECK_EQUAL(class, MPI_ERR_INFO);
	MPI_Info_free(&info);
}

static void a_part_keeps_the_hints_of_its_info(void)
{
	char value[8] = "";
	int len = sizeof(value), flag = 0;
	MPI_Info info;
	MPI_Comm comm;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &comm);
	MPI_Info_free(&info);
	MPI_Comm_get_info(comm, &info);
	MPI_Info_get_string(info, "mpi_assert_no_any_tag", &len, value, &flag);
	CHECK(flag && strcmp(value, "true") == 0);
	MPI_Info_free(&info);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	on_node = argc > 1 ? atoi(argv[1]) : job_size;
	CASE(a_reordered_grid_keeps_neighbours_on_their_node);
	CASE(a_reordered_graph_keeps_neighbours_on_their_node);
	CASE(bound_processes_share_every_type_of_hardware);
	CASE(an_unguided_split_says_what_it_has_split_by);
	CASE(process_sets_that_every_job_has_can_be_split_by);
	CASE(two_resources_at_once_are_refused_on_all_ranks);
	CASE(a_part_keeps_the_hints_of_its_info);
	return job_end();
}
