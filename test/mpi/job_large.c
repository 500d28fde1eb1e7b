/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The large-count form of every call for messages and windows: with a few ints, which have to
 * arrive, and with more elements than an int can count, of a type that has no size.
 */
#include "job_check.h"

#include <sys/mman.h>

enum { N = 3, TAG = 5, ROOM = 8192 };
#define MANY (((MPI_Count)1 << 31) + 1) /* below zero as an int */
#define FAR  ((MPI_Aint)1 << 32)        /* zero as an int */

/* The data of the calls: n elements of this type. */
static MPI_Count n;
static MPI_Datatype type;

static int next, before;
static int in[N], out[N];
static MPI_Status status;
static MPI_Request request;

static int number(int rank, int i)
{
	return 100 * rank + i;
}

static void fill(void)
{
	for (int i = 0; i < N; i++) {
		in[i] = number(job_rank, i);
		out[i] = -1;
	}
	memset(&status, -1, sizeof(status));
}

/* `has` is what `rank` has sent, or what was there if that has no size. */
static void check_ints(const int *has, int rank)
{
	for (int i = 0; i < N; i++)
		CHECK_EQUAL(has[i], type == MPI_INT ? number(rank, i) : -1);
}

static void check_received(void)
{
	MPI_Count count = -2;

	check_ints(out, before);
	CHECK_EQUAL(status.MPI_SOURCE, before);
	CHECK_EQUAL(status.MPI_TAG, TAG);
	CHECK_EQUAL(MPI_Get_count_c(&status, type, &count), MPI_SUCCESS);
	CHECK_EQUAL(count, type == MPI_INT ? N : 0);
}

#define OK(call) CHECK_EQUAL(call, MPI_SUCCESS)

/* ---- messages -------------------------------------------------------------------------------- */

/* The receive is there first, for ready sends. */
static void expect_message(void)
{
	fill();
	OK(MPI_Irecv_c(out, n, type, before, TAG, MPI_COMM_WORLD, &request));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void message_comes(void)
{
	OK(MPI_Wait(&request, &status));
	check_received();
}

static void all_sends(void)
{
	int (*const blocking[])(const void *, MPI_Count, MPI_Datatype, int, int,
				MPI_Comm) = { MPI_Send_c, MPI_Bsend_c, MPI_Ssend_c, MPI_Rsend_c };
	int (*const others[])(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm,
			      MPI_Request *) = { MPI_Isend_c,      MPI_Ibsend_c,
						 MPI_Issend_c,     MPI_Irsend_c,
						 MPI_Send_init_c,  MPI_Bsend_init_c,
						 MPI_Ssend_init_c, MPI_Rsend_init_c };
	MPI_Request sent;

	for (int i = 0; i < 4; i++) {
		expect_message();
		OK(blocking[i](in, n, type, next, TAG, MPI_COMM_WORLD));
		message_comes();
	}
	for (int i = 0; i < 8; i++) {
		expect_message();
		OK(others[i](in, n, type, next, TAG, MPI_COMM_WORLD, &sent));
		if (i >= 4)
			OK(MPI_Start(&sent));
		OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
		message_comes();
		if (i >= 4)
			OK(MPI_Request_free(&sent));
	}
}

static void message_to(int rank, MPI_Request *sent)
{
	fill();
	OK(MPI_Isend_c(in, n, type, rank, TAG, MPI_COMM_WORLD, sent));
}

static void all_receives(void)
{
	MPI_Request sent;
	MPI_Message message;

	message_to(next, &sent);
	OK(MPI_Recv_c(out, n, type, before, TAG, MPI_COMM_WORLD, &status));
	check_received();
	OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));

	message_to(next, &sent);
	OK(MPI_Recv_init_c(out, n, type, before, TAG, MPI_COMM_WORLD, &request));
	OK(MPI_Start(&request));
	message_comes();
	OK(MPI_Request_free(&request));
	OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));

	message_to(next, &sent);
	OK(MPI_Mprobe(before, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
	OK(MPI_Mrecv_c(out, n, type, &message, &status));
	check_received();
	OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));

	message_to(next, &sent);
	OK(MPI_Mprobe(before, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
	OK(MPI_Imrecv_c(out, n, type, &message, &request));
	message_comes();
	OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
}

static void both_at_once(void)
{
	fill();
	OK(MPI_Sendrecv_c(in, n, type, next, TAG, out, n, type, before, TAG, MPI_COMM_WORLD,
			  &status));
	check_received();
	fill();
	OK(MPI_Isendrecv_c(in, n, type, next, TAG, out, n, type, before, TAG, MPI_COMM_WORLD,
			   &request));
	message_comes();

	fill();
	memcpy(out, type == MPI_INT ? in : out, sizeof(out));
	OK(MPI_Sendrecv_replace_c(out, n, type, next, TAG, before, TAG, MPI_COMM_WORLD, &status));
	check_received();
	fill();
	memcpy(out, type == MPI_INT ? in : out, sizeof(out));
	OK(MPI_Isendrecv_replace_c(out, n, type, next, TAG, before, TAG, MPI_COMM_WORLD, &request));
	message_comes();
}

static void messages(void)
{
	static char buffer[ROOM];
	void *had = NULL;
	MPI_Count size = 0;

	OK(MPI_Buffer_attach_c(buffer, sizeof(buffer)));
	all_sends();
	all_receives();
	both_at_once();
	OK(MPI_Buffer_detach_c(&had, &size));
	CHECK(had == buffer);
	CHECK_EQUAL(size, sizeof(buffer));
}

/* It is not written beyond its beginning. */
static void a_buffer_may_be_longer_than_an_int_can_say(void)
{
	static char buffer[ROOM];
	void *had = NULL;
	MPI_Count size = 0;

	OK(MPI_Buffer_attach_c(buffer, MANY));
	OK(MPI_Buffer_detach_c(&had, &size));
	CHECK(had == buffer && size == MANY);
	OK(MPI_Comm_attach_buffer_c(MPI_COMM_WORLD, buffer, MANY));
	OK(MPI_Comm_detach_buffer_c(MPI_COMM_WORLD, &had, &size));
	CHECK(had == buffer && size == MANY);
}

static void a_communicator_has_its_own_buffer(void)
{
	static char buffer[ROOM];
	MPI_Request flushed = MPI_REQUEST_NULL;
	void *had = NULL;
	MPI_Count size = 0;
	MPI_Comm comm;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	OK(MPI_Comm_attach_buffer_c(comm, buffer, sizeof(buffer)));
	fill();
	OK(MPI_Bsend_c(in, N, MPI_INT, next, TAG, comm));
	OK(MPI_Comm_iflush_buffer(comm, &flushed));
	OK(MPI_Recv_c(out, N, MPI_INT, before, TAG, comm, &status));
	check_received();
	OK(MPI_Wait(&flushed, MPI_STATUS_IGNORE));
	CHECK(flushed == MPI_REQUEST_NULL);
	OK(MPI_Comm_detach_buffer_c(comm, &had, &size));
	CHECK(had == buffer);
	CHECK_EQUAL(size, sizeof(buffer));
	MPI_Comm_free(&comm);
}

/* ---- windows --------------------------------------------------------------------------------- */

static int *memory;
static MPI_Win win;

/* Between two calls of it, everybody's memory may be written by others. */
static void fence(void)
{
	OK(MPI_Win_fence(0, win));
}

static void clear(void)
{
	fence();
	fill();
	for (int i = 0; i < N; i++)
		memory[i] = -1;
	fence();
}

/* In memory is what its owner put there, `times` over. */
static void check_sums(const int *has, int rank, int times)
{
	for (int i = 0; i < N; i++)
		CHECK_EQUAL(has[i], type == MPI_INT ? -1 + times * number(rank, i) : -1);
}

static void puts_and_gets(void)
{
	clear();
	OK(MPI_Put_c(in, n, type, next, 0, n, type, win));
	fence();
	check_ints(memory, before);
	fence();
	OK(MPI_Get_c(out, n, type, before, 0, n, type, win));
	fence();
	check_ints(out, (before + job_size - 1) % job_size);

	clear();
	OK(MPI_Accumulate_c(in, n, type, next, 0, n, type, MPI_SUM, win));
	fence();
	check_sums(memory, before, 1);
	fence();
	OK(MPI_Get_accumulate_c(in, n, type, out, n, type, next, 0, n, type, MPI_SUM, win));
	fence();
	check_sums(memory, before, 2);
	check_sums(out, job_rank, 1);
}

static void with_requests(void)
{
	clear();
	OK(MPI_Win_lock_all(0, win));
	OK(MPI_Rput_c(in, n, type, next, 0, n, type, win, &request));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	OK(MPI_Win_flush(next, win));
	OK(MPI_Rget_c(out, n, type, next, 0, n, type, win, &request));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	check_ints(out, job_rank);
	OK(MPI_Win_unlock_all(win));

	clear();
	OK(MPI_Win_lock_all(0, win));
	OK(MPI_Raccumulate_c(in, n, type, next, 0, n, type, MPI_SUM, win, &request));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	OK(MPI_Rget_accumulate_c(in, n, type, out, n, type, next, 0, n, type, MPI_SUM, win,
				 &request));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	check_sums(out, job_rank, 1);
	OK(MPI_Win_unlock_all(win));
	fence();
	check_sums(memory, before, 2);
}

static void try_window(void)
{
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	puts_and_gets();
	with_requests();
	fence();
	OK(MPI_Win_free(&win));
}

/* A unit an int cannot hold: the memory begins at displacement 0, and nothing else can be named. */
static void windows(void)
{
	int ints[N] = { 0 };
	int *unit = NULL, flag = 0;

	memory = ints;
	OK(MPI_Win_create_c(ints, sizeof(ints), FAR, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, (void *)&unit, &flag));
	CHECK(flag && *unit == MPI_UNDEFINED);
	try_window();
	OK(MPI_Win_allocate_c(sizeof(ints), FAR, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
	try_window();
}

/* Of which two pages are ever there. */
static void a_window_longer_than_an_int_can_say(void)
{
	MPI_Aint *bytes = NULL;
	char *base = mmap(NULL, 2 * FAR, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int flag = 0, everywhere = base != MAP_FAILED;

	MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!everywhere) /* so much address space is not to be had here */
		return;
	OK(MPI_Win_create_c(base, 2 * FAR, FAR, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, (void *)&bytes, &flag));
	CHECK(flag && *bytes == 2 * FAR);
	fill();
	fence();
	OK(MPI_Put_c(in, N, MPI_INT, next, 1, N, MPI_INT, win));
	fence();
	CHECK_EQUAL(((int *)(void *)base)[0], 0);
	check_ints((int *)(void *)(base + FAR), before);
	OK(MPI_Win_free(&win));
	munmap(base, 2 * FAR);
}

static void shared_windows(void)
{
	MPI_Aint size = 0, unit = 0;
	int *base = NULL, small = 0;

	OK(MPI_Win_allocate_shared_c(sizeof(int[N]), FAR + job_rank, MPI_INFO_NULL, MPI_COMM_WORLD,
				     &memory, &win));
	OK(MPI_Win_shared_query_c(win, job_rank, &size, &unit, (void *)&base));
	CHECK(base == memory);
	CHECK_EQUAL(size, sizeof(int[N]));
	CHECK_EQUAL(unit, FAR + job_rank);
	OK(MPI_Win_shared_query_c(win, next, &size, &unit, (void *)&base));
	CHECK_EQUAL(unit, FAR + next);
	OK(MPI_Win_shared_query(win, next, &size, &small, (void *)&base));
	CHECK_EQUAL(small, MPI_UNDEFINED);
	try_window();
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void of_few(void (*body)(void))
{
	n = N;
	type = MPI_INT;
	body();
}

static void of_many(void (*body)(void))
{
	n = MANY;
	MPI_Type_contiguous(0, MPI_INT, &type);
	MPI_Type_commit(&type);
	body();
	MPI_Type_free(&type);
	type = MPI_INT;
}

static void messages_of_a_few_ints(void)
{
	of_few(messages);
}

static void messages_of_more_than_an_int_can_count(void)
{
	of_many(messages);
}

static void windows_and_a_few_ints(void)
{
	of_few(windows);
	of_few(shared_windows);
}

static void windows_and_more_than_an_int_can_count(void)
{
	of_many(windows);
	of_many(shared_windows);
}

int main(int argc, char **argv)
{
	job_start(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	next = (job_rank + 1) % job_size;
	before = (job_rank + job_size - 1) % job_size;
	CASE(messages_of_a_few_ints);
	CASE(messages_of_more_than_an_int_can_count);
	CASE(a_buffer_may_be_longer_than_an_int_can_say);
	CASE(a_communicator_has_its_own_buffer);
	CASE(windows_and_a_few_ints);
	CASE(windows_and_more_than_an_int_can_count);
	CASE(a_window_longer_than_an_int_can_say);
	return job_end();
}
