/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Intercommunicators: made of two groups in many ways, duplicated, split, used for collectives,
 * merged.
 */
#include "test/mpi/job_check.h"

/* The job in two parts by a colour of 0 or 1, joined by leaders of choice. `side` is this rank's
 * part. */
static MPI_Comm join(int colour, int leader, int remote, int tag, MPI_Comm *side)
{
	MPI_Comm inter;
	int size, *is;

	MPI_Comm_split(MPI_COMM_WORLD, colour, 0, side);
	MPI_Comm_size(*side, &size);
	is = job_members(*side);
	/* peer_comm and remote_leader count in the leader only */
	if (is[leader % size] == job_rank)
		MPI_Intercomm_create(*side, leader % size, MPI_COMM_WORLD, remote, tag, &inter);
	else
		MPI_Intercomm_create(*side, leader % size, MPI_COMM_NULL, -77, tag, &inter);
	free(is);
	return inter;
}

static int lower_half(void)
{
	return job_rank < job_size / 2 ? 0 : 1;
}

/* Lower against upper half, rank 0 of each the leader. */
static MPI_Comm halves(MPI_Comm *side)
{
	return join(lower_half(), 0, lower_half() ? 0 : job_size / 2, 11, side);
}

static void check_groups(MPI_Comm inter, const int *here, int n, const int *there, int m)
{
	MPI_Group group, all;
	int size, rank, flag;

	MPI_Comm_test_inter(inter, &flag);
	CHECK(flag);
	MPI_Comm_size(inter, &size);
	CHECK_EQUAL(size, n);
	MPI_Comm_remote_size(inter, &size);
	CHECK_EQUAL(size, m);
	MPI_Comm_rank(inter, &rank);
	CHECK_EQUAL(here[rank], job_rank);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Comm_remote_group(inter, &group);
	MPI_Group_size(group, &size);
	CHECK_EQUAL(size, m);
	for (int i = 0; i < m && size == m; i++) {
		int world;

		MPI_Group_translate_ranks(group, 1, &i, all, &world);
		CHECK_EQUAL(world, there[i]);
	}
	MPI_Group_free(&group);
	MPI_Group_free(&all);
}

/* World ranks with this colour among the given ones. */
static int having(const int *colour, int mine, int *rank)
{
	int n = 0;

	for (int i = 0; i < job_size; i++)
		if (colour[i] == mine)
			rank[n++] = i;
	return n;
}

/* Everybody sends to everybody on the other side. */
static void exchange(MPI_Comm inter)
{
	int n, rank, got = -1;
	MPI_Request *request;

	MPI_Comm_remote_size(inter, &n);
	MPI_Comm_rank(inter, &rank);
	request = malloc(sizeof(*request) * (size_t)n);
	for (int i = 0; i < n; i++)
		MPI_Isend(&rank, 1, MPI_INT, i, 3, inter, &request[i]);
	for (int i = 0; i < n; i++) {
		MPI_Recv(&got, 1, MPI_INT, i, 3, inter, MPI_STATUS_IGNORE);
		CHECK_EQUAL(got, i);
	}
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	free(request);
}

static void any_two_groups_are_joined_by_any_leaders(void)
{
	int *colour = malloc(sizeof(int) * (size_t)job_size);
	int *rank[2] = { malloc(sizeof(int) * (size_t)job_size),
			 malloc(sizeof(int) * (size_t)job_size) };

	for (int round = 0; round < 30; round++) {
		MPI_Comm inter, side;
		int n[2], leader[2], me, other;

		for (int i = 0; i < job_size; i++)
			colour[i] = (int)(job_draw() % 2);
		colour[0] = 0;
		colour[job_size - 1] = 1;
		n[0] = having(colour, 0, rank[0]);
		n[1] = having(colour, 1, rank[1]);
		leader[0] = (int)(job_draw() % (unsigned)n[0]);
		leader[1] = (int)(job_draw() % (unsigned)n[1]);
		me = colour[job_rank];
		other = !me;
		inter = join(me, leader[me], rank[other][leader[other]], round, &side);
		check_groups(inter, rank[me], n[me], rank[other], n[other]);
		exchange(inter);
		job_try(inter);
		MPI_Comm_free(&inter);
		job_try(side);
		MPI_Comm_free(&side);
	}
	free(colour);
	free(rank[0]);
	free(rank[1]);
}

static void duplicates_are_congruent_and_apart(void)
{
	MPI_Comm side, inter = halves(&side), copy, later;
	MPI_Request request;
	int result;

	MPI_Comm_dup(inter, &copy);
	MPI_Comm_compare(inter, copy, &result);
	CHECK_EQUAL(result, MPI_CONGRUENT);
	MPI_Comm_compare(inter, side, &result);
	CHECK_EQUAL(result, MPI_UNEQUAL);
	MPI_Comm_idup(copy, &later, &request);
	job_try(copy);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&inter);
	exchange(copy);
	exchange(later);
	job_try(later);
	MPI_Comm_free(&later);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&side);
}

static void merging_puts_the_low_group_first(void)
{
	for (int turn = 0; turn < 2; turn++) {
		MPI_Comm side, inter = halves(&side), all;
		int rank, low = job_size / 2, first = lower_half() == turn;
		int want = turn == 0 ? job_rank : (job_rank - low + job_size) % job_size;

		MPI_Intercomm_merge(inter, !first, &all);
		MPI_Comm_rank(all, &rank);
		CHECK_EQUAL(rank, want);
		job_try(all);
		MPI_Comm_free(&all);
		/* if both say the same, one is first, as a whole */
		MPI_Intercomm_merge(inter, turn, &all);
		MPI_Comm_rank(all, &rank);
		CHECK(rank == job_rank || rank == (job_rank - low + job_size) % job_size);
		job_try(all);
		MPI_Comm_free(&all);
		MPI_Comm_free(&inter);
		MPI_Comm_free(&side);
	}
}

static void a_split_joins_those_of_one_colour(void)
{
	MPI_Comm side, inter = halves(&side), part;
	int *colour = malloc(sizeof(int) * (size_t)job_size);
	int *here = malloc(sizeof(int) * (size_t)job_size);
	int *there = malloc(sizeof(int) * (size_t)job_size);

	for (int round = 0; round < 20; round++) {
		int n = 0, m = 0, mine;

		for (int i = 0; i < job_size; i++) {
			colour[i] = (int)(job_draw() % 4);
			colour[i] = colour[i] == 3 ? MPI_UNDEFINED : colour[i];
		}
		mine = colour[job_rank];
		MPI_Comm_split(inter, mine, -job_rank, &part);
		for (int i = job_size - 1; i >= 0; i--) {
			if (colour[i] != mine)
				continue;
			if ((i >= job_size / 2) == lower_half())
				here[n++] = i;
			else
				there[m++] = i;
		}
		CHECK((part != MPI_COMM_NULL) == (mine != MPI_UNDEFINED && m > 0));
		if (part == MPI_COMM_NULL)
			continue;
		check_groups(part, here, n, there, m);
		job_try(part);
		MPI_Comm_free(&part);
	}
	free(colour);
	free(here);
	free(there);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
}

/* One node: all stay together, those that want to. */
static void a_split_by_nodes_has_both_sides(void)
{
	const bool out = job_rank % 3 == 2;
	int *here = malloc(sizeof(int) * (size_t)job_size);
	int *there = malloc(sizeof(int) * (size_t)job_size);
	MPI_Comm side, inter = halves(&side), part;
	MPI_Info info;
	int n = 0, m = 0;

	for (int i = job_size - 1; i >= 0; i--) {
		if (i % 3 == 2)
			continue;
		if ((i >= job_size / 2) == lower_half())
			here[n++] = i;
		else
			there[m++] = i;
	}
	MPI_Comm_split_type(inter, out ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, -job_rank,
			    MPI_INFO_NULL, &part);
	CHECK((part != MPI_COMM_NULL) == (!out && m > 0));
	if (part != MPI_COMM_NULL) {
		check_groups(part, here, n, there, m);
		job_try(part);
		MPI_Comm_free(&part);
	}
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
	MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part);
	CHECK(part != MPI_COMM_NULL);
	if (part != MPI_COMM_NULL)
		MPI_Comm_free(&part);
	MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part);
	CHECK(part == MPI_COMM_NULL);
	MPI_Info_free(&info);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
	free(here);
	free(there);
}

/* Of the lower half all but rank 0 of it, if there are others; of the upper half its rank 0. */
static void comm_create_takes_a_part_of_each_side(void)
{
	MPI_Comm side, inter = halves(&side), part;
	MPI_Group group, mine;
	int none = 0, size, rank, member;

	MPI_Comm_group(inter, &group);
	MPI_Group_size(group, &size);
	MPI_Group_rank(group, &rank);
	if (lower_half() == 0 && size > 1)
		MPI_Group_excl(group, 1, &none, &mine);
	else
		MPI_Group_incl(group, 1, &none, &mine);
	member = lower_half() == 0 && size > 1 ? rank != 0 : rank == 0;
	MPI_Comm_create(inter, mine, &part);
	CHECK((part != MPI_COMM_NULL) == member);
	if (part != MPI_COMM_NULL) {
		exchange(part);
		MPI_Comm_free(&part);
	}
	MPI_Group_free(&mine);
	/* one side names nobody */
	MPI_Comm_create(inter, lower_half() ? MPI_GROUP_EMPTY : group, &part);
	CHECK(part == MPI_COMM_NULL);
	MPI_Group_free(&group);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
}

/* One rank names somebody who is not there: all hear that there will be none, and that nobody
 * has died. */
static void a_wrong_group_is_told_to_the_other_side(void)
{
	MPI_Comm side, inter = halves(&side), part;
	MPI_Group group, remote, wrong;
	int none = 0, err, class, bad = job_rank == job_size - 1;

	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_group(inter, &group);
	MPI_Comm_remote_group(inter, &remote);
	MPI_Group_incl(remote, 1, &none, &wrong);
	for (int i = 0; i < 2; i++) {
		err = MPI_Comm_create(inter, bad ? wrong : group, &part);
		MPI_Error_class(err, &class);
		CHECK_EQUAL(class, bad ? MPI_ERR_GROUP : MPI_ERR_OTHER);
	}
	CHECK_EQUAL(MPI_Comm_create(inter, group, &part), MPI_SUCCESS);
	exchange(part);
	MPI_Comm_free(&part);
	MPI_Group_free(&wrong);
	MPI_Group_free(&remote);
	MPI_Group_free(&group);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
}

static void collectives_cross_over(void)
{
	MPI_Comm side, inter = halves(&side);
	int n, m, rank, word = -1, *words;

	MPI_Comm_size(inter, &n);
	MPI_Comm_remote_size(inter, &m);
	MPI_Comm_rank(inter, &rank);
	words = calloc((size_t)m, sizeof(int));
	word = 100 + rank;
	MPI_Allgather(&word, 1, MPI_INT, words, 1, MPI_INT, inter);
	for (int i = 0; i < m; i++)
		CHECK_EQUAL(words[i], 100 + i);
	word = lower_half() ? -1 : 4711;
	MPI_Bcast(&word, 1, MPI_INT,
		  lower_half() ? 0
		  : rank == 0  ? MPI_ROOT
			       : MPI_PROC_NULL,
		  inter);
	CHECK_EQUAL(word, 4711);
	MPI_Barrier(inter);
	free(words);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
}

/* A rank of the upper half has something for, or from, all of the lower one; the other arguments do
 * not count. */
static void insignificant_arguments_may_be_null(void)
{
	MPI_Comm side, inter = halves(&side);
	const int upper = lower_half();
	int rank, n, root, word, *words;

	MPI_Comm_rank(inter, &rank);
	MPI_Comm_remote_size(inter, &n);
	root = !upper ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
	words = calloc((size_t)n, sizeof(int));
	word = 7 * rank;
	if (!upper)
		MPI_Gather(&word, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	else if (root == MPI_ROOT)
		MPI_Gather(NULL, 0, MPI_DATATYPE_NULL, words, 1, MPI_INT, root, inter);
	else
		MPI_Gather(NULL, 0, MPI_DATATYPE_NULL, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	for (int i = 0; i < n && root == MPI_ROOT; i++)
		CHECK_EQUAL(words[i], 7 * i);
	word = -1;
	if (!upper)
		MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &word, 1, MPI_INT, root, inter);
	else if (root == MPI_ROOT)
		MPI_Scatter(words, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	else
		MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	CHECK_EQUAL(word, upper ? -1 : 7 * rank);
	if (root == MPI_PROC_NULL) {
		MPI_Bcast(NULL, 0, MPI_DATATYPE_NULL, root, inter);
		MPI_Reduce(NULL, NULL, 0, MPI_DATATYPE_NULL, MPI_SUM, root, inter);
	} else {
		MPI_Bcast(&word, 1, MPI_INT, root, inter);
		MPI_Reduce(&rank, &word, 1, MPI_INT, MPI_SUM, root, inter);
	}
	if (root == MPI_ROOT)
		CHECK_EQUAL(word, n * (n - 1) / 2);
	free(words);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
}

static void thousands_are_made_and_freed(void)
{
	for (int i = 0; i < 1500; i++) {
		MPI_Comm side, inter = halves(&side), all;

		MPI_Intercomm_merge(inter, lower_half(), &all);
		MPI_Comm_free(&all);
		MPI_Comm_free(&inter);
		MPI_Comm_free(&side);
	}
}

/* An error that only one rank knows is sent to all: none waits for ever. */
static void wrong_leaders_and_wishes_are_errors_on_all_ranks(void)
{
	MPI_Comm side, inter, all;
	int class, size;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_NULL, 0, 1, &inter),
			&class);
	CHECK_EQUAL(class, MPI_ERR_COMM);
	MPI_Error_class(
		MPI_Intercomm_create(MPI_COMM_WORLD, 1, MPI_COMM_WORLD, job_size, 1, &inter),
		&class);
	CHECK_EQUAL(class, MPI_ERR_RANK);
	MPI_Error_class(
		MPI_Intercomm_create(MPI_COMM_WORLD, job_size, MPI_COMM_WORLD, 0, 1, &inter),
		&class);
	CHECK_EQUAL(class, MPI_ERR_RANK);
	inter = halves(&side);
	MPI_Comm_size(inter, &size);
	if (job_size > 2) {
		int rank;

		MPI_Comm_rank(inter, &rank);
		MPI_Error_class(MPI_Intercomm_merge(inter, rank % 2, &all), &class);
		CHECK_EQUAL(class, MPI_ERR_ARG);
	}
	job_try(inter);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&side);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	CASE(any_two_groups_are_joined_by_any_leaders);
	CASE(duplicates_are_congruent_and_apart);
	CASE(merging_puts_the_low_group_first);
	CASE(a_split_joins_those_of_one_colour);
	CASE(a_split_by_nodes_has_both_sides);
	CASE(comm_create_takes_a_part_of_each_side);
	CASE(a_wrong_group_is_told_to_the_other_side);
	CASE(collectives_cross_over);
	CASE(insignificant_arguments_may_be_null);
	CASE(wrong_leaders_and_wishes_are_errors_on_all_ranks);
	CASE(thousands_are_made_and_freed);
	return job_end();
}
