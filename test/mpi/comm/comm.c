/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Intracommunicators: made in every way, compared with what the standard says who is in them and
 * in which order, used, and freed, many times.
 */
#include "test/mpi/job_check.h"

static int compare(MPI_Comm a, MPI_Comm b)
{
	int result;

	MPI_Comm_compare(a, b, &result);
	return result;
}

static void null_handles_have_names(void)
{
	char name[MPI_MAX_OBJECT_NAME];
	int length;

	MPI_Comm_get_name(MPI_COMM_NULL, name, &length);
	CHECK(strcmp(name, "MPI_COMM_NULL") == 0 && length == 13);
	MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length);
	CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0 && length == 17);
	MPI_Win_get_name(MPI_WIN_NULL, name, &length);
	CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && length == 12);
}

static void a_duplicate_is_congruent_and_apart(void)
{
	MPI_Comm copy, again;
	char name[MPI_MAX_OBJECT_NAME];
	int length, flag, mine = job_rank, got = -1;

	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	CHECK_EQUAL(compare(copy, MPI_COMM_WORLD), MPI_CONGRUENT);
	CHECK_EQUAL(compare(copy, copy), MPI_IDENT);
	MPI_Comm_get_name(copy, name, &length);
	CHECK_EQUAL(length, 0);
	MPI_Comm_set_name(copy, "copy");
	MPI_Comm_get_name(copy, name, &length);
	CHECK_EQUAL(length, 4);
	CHECK(strcmp(name, "copy") == 0);
	MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
	CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
	MPI_Comm_test_inter(copy, &flag);
	CHECK(!flag);
	/* a message to the one is not received from the other */
	MPI_Comm_dup(copy, &again);
	if (job_size > 1) {
		MPI_Request request;
		int other = -1, to = (job_rank + 1) % job_size;
		int from = (job_rank + job_size - 1) % job_size;

		MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, again, &request);
		MPI_Sendrecv(&mine, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, copy,
			     MPI_STATUS_IGNORE);
		CHECK_EQUAL(got, from);
		CHECK_EQUAL(other, -1);
		MPI_Barrier(copy);
		mine = 1000 + job_rank;
		MPI_Send(&mine, 1, MPI_INT, to, 2, again);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		CHECK_EQUAL(other, 1000 + from);
	}
	MPI_Comm_free(&again);
	MPI_Comm_free(&copy);
	CHECK(copy == MPI_COMM_NULL);
}

/* The members of my part, in the order of the standard: key, then rank. */
static int part_of(const int *colour, const int *key, int mine, int *want)
{
	int n = 0;

	for (int i = 0; i < job_size; i++) {
		int at;

		if (colour[i] != mine)
			continue;
		for (at = n++; at > 0 && key[want[at - 1]] > key[i]; at--)
			want[at] = want[at - 1];
		want[at] = i;
	}
	return n;
}

static void splits_have_the_members_and_order_of_the_standard(void)
{
	int *colour = malloc(sizeof(int) * (size_t)job_size);
	int *key = malloc(sizeof(int) * (size_t)job_size);
	int *want = malloc(sizeof(int) * (size_t)job_size);

	for (int round = 0; round < 100; round++) {
		MPI_Comm part;
		int n, size, *is;

		for (int i = 0; i < job_size; i++) {
			colour[i] = (int)(job_draw() % 4);
			colour[i] = colour[i] == 3 ? MPI_UNDEFINED : colour[i] * 1000000007;
			key[i] = (int)(job_draw() % 3) - 1;
			if (colour[i] < 0)
				colour[i] = MPI_UNDEFINED;
		}
		MPI_Comm_split(MPI_COMM_WORLD, colour[job_rank], key[job_rank], &part);
		CHECK((part == MPI_COMM_NULL) == (colour[job_rank] == MPI_UNDEFINED));
		if (part == MPI_COMM_NULL)
			continue;
		n = part_of(colour, key, colour[job_rank], want);
		MPI_Comm_size(part, &size);
		CHECK_EQUAL(size, n);
		is = job_members(part);
		for (int i = 0; i < n && size == n; i++)
			CHECK_EQUAL(is[i], want[i]);
		free(is);
		job_try(part);
		MPI_Comm_free(&part);
	}
	free(colour);
	free(key);
	free(want);
}

static void comm_create_takes_a_group_or_disjoint_ones(void)
{
	MPI_Group all, mine;
	MPI_Comm part;
	int range[1][3] = { { 0, (job_size - 1) / 2, 1 } }, *is, rank;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	/* all name the lower half */
	MPI_Group_range_incl(all, 1, range, &mine);
	MPI_Comm_create(MPI_COMM_WORLD, mine, &part);
	CHECK((part != MPI_COMM_NULL) == (job_rank <= (job_size - 1) / 2));
	if (part != MPI_COMM_NULL) {
		job_try(part);
		MPI_Comm_free(&part);
	}
	MPI_Group_free(&mine);
	/* odd and even ranks name their own, backwards */
	range[0][0] = job_size - 1 - (job_size - 1 - job_rank) % 2;
	range[0][1] = 0;
	range[0][2] = -2;
	MPI_Group_range_incl(all, 1, range, &mine);
	MPI_Comm_create(MPI_COMM_WORLD, mine, &part);
	CHECK(part != MPI_COMM_NULL);
	is = job_members(part);
	MPI_Comm_rank(part, &rank);
	CHECK_EQUAL(is[rank], job_rank);
	CHECK_EQUAL(is[0], range[0][0]);
	free(is);
	job_try(part);
	MPI_Comm_free(&part);
	MPI_Group_free(&mine);
	/* nobody */
	MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &part);
	CHECK(part == MPI_COMM_NULL);
	MPI_Group_free(&all);
}

static void create_group_is_called_by_members_only(void)
{
	MPI_Group all, mine;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	for (int round = 0; round < 50; round++) {
		int step = 1 + (int)(job_draw() % 3), first = job_rank % step;
		int range[1][3] = { { first, job_size - 1, step } };
		MPI_Comm part;

		/* each residue class at its own time, some not at all */
		if (first == (int)(job_draw() % 3))
			continue;
		MPI_Group_range_incl(all, 1, range, &mine);
		MPI_Comm_create_group(MPI_COMM_WORLD, mine, round, &part);
		CHECK(part != MPI_COMM_NULL);
		job_try(part);
		MPI_Comm_free(&part);
		MPI_Group_free(&mine);
	}
	MPI_Group_free(&all);
}

/* Those before some rank, and those from it on, apart and together; test_group.c has the rest. */
static void groups_of_groups_have_the_members_of_both(void)
{
	int first = job_size / 2, range[1][3] = { { 0, first, 1 } }, size = -1, result = -1;
	MPI_Group all, low, high, got;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_range_incl(all, 1, range, &low);
	MPI_Group_range_excl(all, 1, range, &high);
	MPI_Group_size(high, &size);
	CHECK_EQUAL(size, job_size - first - 1);
	MPI_Group_union(low, high, &got);
	MPI_Group_compare(got, all, &result);
	CHECK_EQUAL(result, MPI_IDENT);
	MPI_Group_free(&got);
	MPI_Group_intersection(low, all, &got);
	MPI_Group_compare(got, low, &result);
	CHECK_EQUAL(result, MPI_IDENT);
	MPI_Group_free(&got);
	MPI_Group_difference(all, low, &got);
	MPI_Group_compare(got, high, &result);
	CHECK_EQUAL(result, MPI_IDENT);
	MPI_Group_free(&got);
	MPI_Group_free(&low);
	MPI_Group_free(&high);
	MPI_Group_free(&all);
}

static void shared_memory_is_one_node_here(void)
{
	MPI_Comm node, none;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -job_rank, MPI_INFO_NULL, &node);
	CHECK_EQUAL(compare(node, MPI_COMM_WORLD), job_size > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
	job_try(node);
	MPI_Comm_free(&node);
	MPI_Comm_split_type(MPI_COMM_WORLD, job_rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0,
			    MPI_INFO_NULL, &none);
	CHECK((none == MPI_COMM_NULL) == (job_rank % 2 == 1));
	if (none != MPI_COMM_NULL)
		MPI_Comm_free(&none);
}

/* Rank 0 starts it before, the others after a message that rank 0 sends when it has started. */
static void idup_may_be_called_in_any_order(void)
{
	MPI_Comm copy[3];
	MPI_Request request[3];
	int word = 0, got = -1;

	if (job_rank == 0) {
		for (int i = 0; i < 3; i++)
			MPI_Comm_idup(MPI_COMM_WORLD, &copy[i], &request[i]);
		for (int i = 1; i < job_size; i++)
			MPI_Send(&word, 1, MPI_INT, i, 5, MPI_COMM_WORLD);
		for (int i = 1; i < job_size; i++)
			MPI_Recv(&got, 1, MPI_INT, i, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < 3; i++)
			MPI_Comm_idup(MPI_COMM_WORLD, &copy[i], &request[i]);
		MPI_Send(&word, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
	}
	MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(compare(copy[i], MPI_COMM_WORLD), MPI_CONGRUENT);
		for (int j = 0; j < i; j++)
			CHECK(copy[i] != copy[j]);
		job_try(copy[i]);
	}
	for (int i = 0; i < 3; i++)
		MPI_Comm_free(&copy[i]);
}

/* On the last rank. */
static int cannot_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	(void)key;
	(void)extra;
	(void)in;
	(void)out;
	*flag = 0;
	return job_rank == job_size - 1 ? MPI_ERR_INTERN : MPI_SUCCESS;
}

/* A rank that cannot take part tells the others, and nobody has one; then they make others as
 * ever. */
static void idup_fails_on_all_ranks(void)
{
	MPI_Comm comm, copy, again;
	MPI_Request request = MPI_REQUEST_NULL;
	int key, err, class;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_create_keyval(cannot_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(comm, key, NULL);
	for (int i = 0; i < 3; i++) {
		err = MPI_Comm_idup(comm, &copy, &request);
		if (job_rank == job_size - 1) {
			CHECK(err != MPI_SUCCESS);
			continue;
		}
		CHECK_EQUAL(err, MPI_SUCCESS);
		err = MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Error_class(err, &class);
		CHECK_EQUAL(class, MPI_ERR_OTHER);
	}
	MPI_Comm_delete_attr(comm, key);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_idup(comm, &again, &request);
	CHECK_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	job_try(again);
	MPI_Comm_free(&again);
	MPI_Comm_free(&comm);
}

static void idup_takes_hints(void)
{
	static const char hint[] = "mpi_assert_no_any_tag";
	MPI_Info info, used;
	MPI_Comm copy;
	MPI_Request request;
	char value[16] = "";
	int flag = 0;

	MPI_Info_create(&info);
	MPI_Info_set(info, hint, "true");
	MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &copy, &request);
	MPI_Info_free(&info);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK_EQUAL(compare(copy, MPI_COMM_WORLD), MPI_CONGRUENT);
	MPI_Comm_get_info(copy, &used);
	MPI_Info_get(used, hint, sizeof(value) - 1, value, &flag);
	CHECK(flag && strcmp(value, "true") == 0);
	MPI_Info_free(&used);
	job_try(copy);
	MPI_Comm_free(&copy);
}

/* While idups are under way blocking functions make communicators, on the same parent and on
 * another. */
static void idup_does_not_stop_what_blocks(void)
{
	enum { MANY = 20 };
	MPI_Comm copy[MANY], split[MANY], half;
	MPI_Request request[MANY];

	MPI_Comm_split(MPI_COMM_WORLD, job_rank % 2, 0, &half);
	for (int i = 0; i < MANY; i++) {
		MPI_Comm_idup(i % 3 ? MPI_COMM_WORLD : half, &copy[i], &request[i]);
		MPI_Comm_split(i % 2 ? MPI_COMM_WORLD : half, job_rank % 3, 0, &split[i]);
	}
	MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++) {
		job_try(copy[i]);
		job_try(split[i]);
		MPI_Comm_free(&copy[i]);
		MPI_Comm_free(&split[i]);
	}
	MPI_Comm_free(&half);
}

static void hints_are_set_and_not_inherited(void)
{
	MPI_Info info, used;
	MPI_Comm copy, plain;
	char value[16];
	int flag;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Info_set(info, "nobody_knows_this", "true");
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy);
	MPI_Comm_get_info(copy, &used);
	MPI_Info_get(used, "mpi_assert_no_any_tag", 15, value, &flag);
	CHECK(flag && strcmp(value, "true") == 0);
	MPI_Info_free(&used);
	MPI_Comm_dup(copy, &plain);
	MPI_Comm_get_info(plain, &used);
	MPI_Info_get(used, "mpi_assert_no_any_tag", 15, value, &flag);
	CHECK(!flag || strcmp(value, "false") == 0);
	MPI_Info_free(&used);
	MPI_Comm_set_info(plain, info);
	MPI_Comm_get_info(plain, &used);
	MPI_Info_get(used, "mpi_assert_no_any_tag", 15, value, &flag);
	CHECK(flag && strcmp(value, "true") == 0);
	MPI_Info_free(&used);
	MPI_Info_free(&info);
	MPI_Comm_free(&copy);
	MPI_Comm_disconnect(&plain);
	CHECK(plain == MPI_COMM_NULL);
}

static void a_freed_communicator_finishes_what_is_under_way(void)
{
	enum { LONG = 300000 };
	static char out[LONG], in[LONG];
	MPI_Request request[2];
	MPI_Comm copy;
	int to = (job_rank + 1) % job_size, from = (job_rank + job_size - 1) % job_size;

	memset(out, job_rank + 1, sizeof(out));
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	MPI_Irecv(in, LONG, MPI_CHAR, from, 3, copy, &request[0]);
	MPI_Isend(out, LONG, MPI_CHAR, to, 3, copy, &request[1]);
	MPI_Comm_free(&copy);
	/* a new one must not get the number of the one that is still in use */
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	job_try(copy);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	CHECK(in[0] == (char)(from + 1) && in[LONG - 1] == (char)(from + 1));
	MPI_Comm_free(&copy);
}

static void ten_thousand_are_made_and_freed(void)
{
	MPI_Comm comm, part;

	for (int i = 0; i < 5000; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_split(comm, job_rank % 2, i % 7, &part);
		if (i % 1000 == 0)
			job_try(part);
		MPI_Comm_free(&comm);
		MPI_Comm_free(&part);
	}
}

static void two_thousand_live_at_the_same_time(void)
{
	enum { MANY = 2000 };
	static MPI_Comm comm[MANY];

	for (int i = 0; i < MANY; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int i = 0; i < MANY; i += 97)
		job_try(comm[i]);
	for (int i = 0; i < MANY; i++)
		MPI_Comm_free(&comm[i]);
}

/* Made until there are no more, on all ranks alike; then one is given back. */
static void when_there_are_no_more_all_ranks_are_told(void)
{
	enum { MANY = 5000 };
	static MPI_Comm comm[MANY];
	char text[MPI_MAX_ERROR_STRING];
	int n = 0, err = MPI_SUCCESS, class, length, most, least;
	MPI_Comm again, half;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm[n]);
	MPI_Comm_set_errhandler(comm[n++], MPI_ERRORS_RETURN);
	while (n < MANY && (err = MPI_Comm_dup(comm[0], &comm[n])) == MPI_SUCCESS)
		n++;
	CHECK(err != MPI_SUCCESS);
	CHECK(n >= 2000);
	MPI_Error_class(err, &class);
	CHECK_EQUAL(class, MPI_ERR_OTHER);
	MPI_Error_string(err, text, &length);
	CHECK(length > 0);
	MPI_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, comm[0]);
	MPI_Allreduce(&n, &least, 1, MPI_INT, MPI_MIN, comm[0]);
	CHECK_EQUAL(most, least);
	MPI_Comm_free(&comm[--n]);
	CHECK_EQUAL(MPI_Comm_split(comm[0], job_rank % 2, 0, &half), MPI_SUCCESS);
	CHECK(MPI_Comm_dup(comm[0], &again) != MPI_SUCCESS);
	job_try(half);
	MPI_Comm_free(&half);
	while (n > 0)
		MPI_Comm_free(&comm[--n]);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	CASE(null_handles_have_names);
	CASE(a_duplicate_is_congruent_and_apart);
	CASE(splits_have_the_members_and_order_of_the_standard);
	CASE(comm_create_takes_a_group_or_disjoint_ones);
	CASE(create_group_is_called_by_members_only);
	CASE(groups_of_groups_have_the_members_of_both);
	CASE(shared_memory_is_one_node_here);
	CASE(idup_may_be_called_in_any_order);
	CASE(idup_fails_on_all_ranks);
	CASE(idup_takes_hints);
	CASE(idup_does_not_stop_what_blocks);
	CASE(hints_are_set_and_not_inherited);
	CASE(a_freed_communicator_finishes_what_is_under_way);
	CASE(ten_thousand_are_made_and_freed);
	CASE(two_thousand_live_at_the_same_time);
	CASE(when_there_are_no_more_all_ranks_are_told);
	return job_end();
}
