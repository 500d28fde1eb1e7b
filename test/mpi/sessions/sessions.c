/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Sessions before, beside and after MPI_Init: process sets, communicators from groups, error
 * handlers, buffers, threads. Plain MPI. MPI_COMM_WORLD is there in the middle only, so each case
 * has a session of its own, and all ranks say in it how the case ended.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define TIMES   20

static int cases, failed;
static int rank, size;

/* ---- cases ----------------------------------------------------------------------------------- */

static const char *wrong(const char *format, ...)
{
	static _Thread_local char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return wrong("line %d: not so: %s", __LINE__, #condition);                 \
	} while (0)

#define CHECK_CLASS(call, wanted)                                                                  \
	do {                                                                                       \
		int got_ = class_of(call);                                                         \
		if (got_ != (wanted))                                                              \
			return wrong("line %d: %s gives class %d, not %d", __LINE__, #call, got_,  \
				     wanted);                                                      \
	} while (0)

#define CHECK_OK(call) CHECK_CLASS(call, MPI_SUCCESS)

static int class_of(int error)
{
	int class;

	if (error == MPI_SUCCESS)
		return MPI_SUCCESS;
	MPI_Error_class(error, &class);
	return class;
}

static MPI_Session begin(void)
{
	MPI_Session s = MPI_SESSION_NULL;

	if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s) != MPI_SUCCESS)
		abort();
	return s;
}

static MPI_Group group_of(MPI_Session s, const char *pset)
{
	MPI_Group g = MPI_GROUP_NULL;

	MPI_Group_from_session_pset(s, pset, &g);
	return g;
}

static MPI_Comm comm_of(MPI_Session s, const char *pset, const char *tag)
{
	MPI_Group g = group_of(s, pset);
	MPI_Comm comm = MPI_COMM_NULL;

	MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
	MPI_Group_free(&g);
	return comm;
}

static void run_case(const char *name, const char *(*body)(void))
{
	MPI_Session s;
	MPI_Comm all;
	const char *what = body();
	int bad = what != NULL, any = 1;

	if (what) {
		printf("# %s: rank %d: %s\n", name, rank, what);
		fflush(stdout);
	}
	s = begin();
	all = comm_of(s, "mpi://WORLD", "result");
	MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, all);
	MPI_Comm_free(&all);
	MPI_Session_finalize(&s);
	cases++;
	failed += any;
	if (rank == 0) {
		printf("%sok %d - sessions: %s\n", any ? "not " : "", cases, name);
		fflush(stdout);
	}
}

/* ---- what needs no other process ------------------------------------------------------------- */

static int is_handled;
static MPI_Session handled;

static void handler(MPI_Session *session, int *code, ...)
{
	handled = *session;
	is_handled = class_of(*code);
}

static int queried, freed;

static int query(void *state, MPI_Status *status)
{
	(void)state;
	queried++;
	MPI_Status_set_cancelled(status, 0);
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	return MPI_SUCCESS;
}

static int nothing(void *state)
{
	(void)state;
	freed++;
	return MPI_SUCCESS;
}

static int nothing_to_cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

/* Before any communicator: nobody was met yet. */
static const char *alone(void)
{
	MPI_Session s = begin();
	MPI_Datatype type;
	MPI_Group g, one, none;
	MPI_Request r;
	MPI_Info info;
	double in[4] = { 1, 2, 3, 4 }, out[4] = { 0 };
	int flag, n, version, subversion, bytes;

	MPI_Initialized(&flag);
	CHECK(!flag);
	CHECK_OK(MPI_Get_version(&version, &subversion));
	CHECK(MPI_Wtime() > 0);
	g = group_of(s, "mpi://WORLD");
	CHECK_OK(MPI_Group_rank(g, &rank));
	CHECK_OK(MPI_Group_size(g, &size));
	CHECK_OK(MPI_Group_incl(g, 1, &rank, &one));
	CHECK_OK(MPI_Group_difference(one, one, &none));
	CHECK(none == MPI_GROUP_EMPTY);
	CHECK_OK(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &type));
	CHECK_OK(MPI_Type_commit(&type));
	CHECK_OK(MPI_Type_size(type, &bytes));
	CHECK(bytes == 16);
	CHECK_OK(MPI_Reduce_local(in, out, 4, MPI_DOUBLE, MPI_SUM));
	CHECK(out[3] == 4);
	CHECK_OK(MPI_Info_create(&info));
	CHECK_OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
	CHECK_OK(MPI_Info_free(&info));
	queried = freed = 0;
	CHECK_OK(MPI_Grequest_start(query, nothing, nothing_to_cancel, NULL, &r));
	CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Grequest_complete(r));
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK(queried == 1 && freed == 1);
	CHECK_OK(MPI_Session_iflush_buffer(s, &r));
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
	CHECK(n >= 3);
	MPI_Type_free(&type);
	MPI_Group_free(&g);
	MPI_Group_free(&one);
	MPI_Group_free(&none);
	CHECK_OK(MPI_Session_finalize(&s));
	CHECK(s == MPI_SESSION_NULL);
	return NULL;
}

/* Many times, and many at once, without any communicator. */
static const char *many(void)
{
	MPI_Session s[TIMES];

	for (int i = 0; i < TIMES; i++) {
		s[i] = begin();
		for (int k = 0; k < i; k++)
			CHECK(s[i] != s[k]);
		CHECK(MPI_Session_fromint(MPI_Session_toint(s[i])) == s[i]);
	}
	for (int i = 0; i < TIMES; i++)
		CHECK_OK(MPI_Session_finalize(&s[(i + 7) % TIMES]));
	for (int i = 0; i < 100 * TIMES; i++) {
		s[0] = begin();
		CHECK_OK(MPI_Session_finalize(&s[0]));
	}
	return NULL;
}

static const char *levels(void)
{
	static const char *const level[] = { "MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
					     "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE" };

	for (int i = 0; i < 4; i++) {
		MPI_Info info, used;
		MPI_Session s;
		char value[64];
		int flag, length = sizeof(value);

		MPI_Info_create(&info);
		MPI_Info_set(info, "thread_level", level[i]);
		CHECK_OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &s));
		MPI_Info_free(&info);
		CHECK_OK(MPI_Session_get_info(s, &used));
		CHECK_OK(MPI_Info_get_string(used, "thread_level", &length, value, &flag));
		CHECK(flag && strcmp(value, level[i]) == 0);
		MPI_Info_free(&used);
		CHECK_OK(MPI_Session_finalize(&s));
	}
	return NULL;
}

static const char *psets(void)
{
	MPI_Session s = begin();
	int n, seen = 0;

	CHECK_OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
	for (int i = 0; i < n; i++) {
		int length = 0, room, members, flag, chars;
		char name[100], value[20], little[4];
		MPI_Info info;
		MPI_Group g;

		CHECK_OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, NULL));
		CHECK(length > 1 && length <= 100);
		room = sizeof(little);
		CHECK_OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &room, little));
		CHECK(room == length && strlen(little) == 3);
		room = sizeof(name);
		CHECK_OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &room, name));
		CHECK(room == length && (int)strlen(name) == length - 1);
		CHECK_OK(MPI_Session_get_pset_info(s, name, &info));
		chars = sizeof(value);
		CHECK_OK(MPI_Info_get_string(info, "mpi_size", &chars, value, &flag));
		CHECK(flag);
		g = group_of(s, name);
		CHECK_OK(MPI_Group_size(g, &members));
		CHECK(members == atoi(value));
		if (strcmp(name, "mpi://WORLD") == 0)
			seen += members == size;
		if (strcmp(name, "mpi://SELF") == 0)
			seen += members == 1;
		if (strcmp(name, "mpi://SHARED") == 0)
			seen += members >= 1 && members <= size;
		CHECK_OK(MPI_Group_rank(g, &members));
		CHECK(members != MPI_UNDEFINED);
		MPI_Info_free(&info);
		MPI_Group_free(&g);
	}
	CHECK(seen == 3);
	CHECK_OK(MPI_Session_finalize(&s));
	return NULL;
}

static const char *errors(void)
{
	MPI_Session s = begin(), other;
	MPI_Errhandler h, back;
	MPI_Group g;
	MPI_Info info;
	int room = 10;
	char name[10];

	CHECK_CLASS(MPI_Group_from_session_pset(s, "mpi://NONE", &g), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Session_get_pset_info(s, "", &info), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, -1, &room, name), MPI_ERR_ARG);
	CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 99, &room, name), MPI_ERR_ARG);
	CHECK_OK(MPI_Session_create_errhandler(handler, &h));
	CHECK_OK(MPI_Session_set_errhandler(s, h));
	is_handled = 0;
	CHECK_CLASS(MPI_Group_from_session_pset(s, "mpi://NONE", &g), MPI_ERR_ARG);
	CHECK(is_handled == MPI_ERR_ARG && handled == s);
	CHECK_OK(MPI_Session_call_errhandler(s, MPI_ERR_TAG));
	CHECK(is_handled == MPI_ERR_TAG);
	CHECK_OK(MPI_Session_get_errhandler(s, &back));
	CHECK(back == h);
	CHECK_OK(MPI_Errhandler_free(&back));
	CHECK_OK(MPI_Session_init(MPI_INFO_NULL, h, &other));
	CHECK_CLASS(MPI_Group_from_session_pset(other, "mpi://NONE", &g), MPI_ERR_ARG);
	CHECK(handled == other);
	handled = s;
	CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, h, NULL), MPI_ERR_ARG);
	CHECK(handled == MPI_SESSION_NULL);
	CHECK_OK(MPI_Session_finalize(&other));
	CHECK_OK(MPI_Errhandler_free(&h));
	CHECK_OK(MPI_Session_finalize(&s));
	return NULL;
}

/* ---- communicators --------------------------------------------------------------------------- */

/* Does what any communicator can do. */
static const char *use(MPI_Comm comm)
{
	int mine, n, sum = -1, out, in = -1, keyval, flag, *value;
	MPI_Comm copy;
	void *attribute;

	CHECK(comm != MPI_COMM_NULL);
	CHECK_OK(MPI_Comm_rank(comm, &mine));
	CHECK_OK(MPI_Comm_size(comm, &n));
	out = mine + 1;
	CHECK_OK(MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comm));
	CHECK(sum == n * (n + 1) / 2);
	CHECK_OK(MPI_Sendrecv(&out, 1, MPI_INT, (mine + 1) % n, 3, &in, 1, MPI_INT,
			      (mine + n - 1) % n, 3, comm, MPI_STATUS_IGNORE));
	CHECK(in == (mine + n - 1) % n + 1);
	CHECK_OK(MPI_Comm_get_attr(comm, MPI_TAG_UB, &attribute, &flag));
	value = attribute;
	CHECK(flag && *value >= 32767);
	CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
	CHECK_OK(MPI_Comm_set_attr(comm, keyval, &out));
	CHECK_OK(MPI_Comm_dup(comm, &copy));
	CHECK_OK(MPI_Comm_get_attr(copy, keyval, &attribute, &flag));
	CHECK(flag && attribute == &out);
	CHECK_OK(MPI_Barrier(copy));
	CHECK_OK(MPI_Comm_free(&copy));
	CHECK_OK(MPI_Comm_free_keyval(&keyval));
	return NULL;
}

static const char *from_groups(void)
{
	const char *what = NULL;

	for (int i = 0; i < TIMES && !what; i++) {
		static const char *const pset[] = { "mpi://WORLD", "mpi://SELF", "mpi://SHARED" };
		MPI_Session s = begin();
		MPI_Comm comm = comm_of(s, pset[i % 3], i % 2 ? "tag" : "");

		what = use(comm);
		CHECK_OK(MPI_Comm_free(&comm));
		CHECK_OK(MPI_Session_finalize(&s));
	}
	return what;
}

/* Groups that overlap, at the same time: of ranks 0 to i, for each i. */
static const char *parts(void)
{
	MPI_Session s = begin();
	MPI_Group all = group_of(s, "mpi://WORLD"), part;
	const char *what = NULL;
	MPI_Comm comm;

	for (int last = rank; last < size && !what; last++) {
		int range[1][3] = { { last, 0, -1 } };

		CHECK_OK(MPI_Group_range_incl(all, 1, range, &part));
		CHECK_OK(MPI_Comm_create_from_group(part, "part", MPI_INFO_NULL, MPI_ERRORS_RETURN,
						    &comm));
		what = use(comm);
		CHECK_OK(MPI_Comm_free(&comm));
		CHECK_OK(MPI_Group_free(&part));
	}
	comm = MPI_COMM_SELF;
	CHECK_OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "none", MPI_INFO_NULL,
					    MPI_ERRORS_RETURN, &comm));
	CHECK(comm == MPI_COMM_NULL);
	if (size > 1) {
		int other = (rank + 1) % size;

		CHECK_OK(MPI_Group_incl(all, 1, &other, &part));
		CHECK_CLASS(MPI_Comm_create_from_group(part, "not mine", MPI_INFO_NULL,
						       MPI_ERRORS_RETURN, &comm),
			    MPI_ERR_GROUP);
		CHECK_OK(MPI_Group_free(&part));
	}
	MPI_Group_free(&all);
	CHECK_OK(MPI_Session_finalize(&s));
	return what;
}

static const char *between_groups(void)
{
	MPI_Session s = begin();
	MPI_Group all = group_of(s, "mpi://WORLD"), side[2];
	int remote, sum = -1, one = 1, ranks[2][64], n[2] = { 0 };
	MPI_Comm inter, merged;
	const char *what;

	for (int i = 0; i < size; i++)
		ranks[i % 2][n[i % 2]++] = i;
	CHECK_OK(MPI_Group_incl(all, n[0], ranks[0], &side[0]));
	CHECK_OK(MPI_Group_incl(all, n[1], ranks[1], &side[1]));
	if (size == 1) {
		CHECK_CLASS(MPI_Intercomm_create_from_groups(side[0], 0, side[1], 0, "x",
							     MPI_INFO_NULL, MPI_ERRORS_RETURN,
							     &inter),
			    MPI_ERR_RANK);
		MPI_Group_free(&side[0]);
		MPI_Group_free(&all);
		CHECK_OK(MPI_Session_finalize(&s));
		return NULL;
	}
	CHECK_CLASS(MPI_Intercomm_create_from_groups(side[rank % 2], 99, side[!(rank % 2)], 0, "x",
						     MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter),
		    MPI_ERR_RANK);
	CHECK_OK(MPI_Intercomm_create_from_groups(side[rank % 2], n[rank % 2] - 1,
						  side[!(rank % 2)], n[!(rank % 2)] - 1, "both",
						  MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
	CHECK_OK(MPI_Comm_remote_size(inter, &remote));
	CHECK(remote == n[!(rank % 2)]);
	CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
	CHECK(sum == remote);
	CHECK_OK(MPI_Intercomm_merge(inter, rank % 2, &merged));
	what = use(merged);
	CHECK_OK(MPI_Comm_free(&merged));
	CHECK_OK(MPI_Comm_free(&inter));
	MPI_Group_free(&side[0]);
	MPI_Group_free(&side[1]);
	MPI_Group_free(&all);
	CHECK_OK(MPI_Session_finalize(&s));
	return what;
}

static const char *buffers(void)
{
	MPI_Session s = begin(), bare = begin();
	MPI_Comm comm = comm_of(s, "mpi://WORLD", "buffers"), copy, other;
	static char room[4 * (1000 + MPI_BSEND_OVERHEAD)];
	char out[1000] = "buffered", in[1000] = "";
	MPI_Request r;
	MPI_Count bytes;
	void *at;
	int n;

	other = comm_of(bare, "mpi://WORLD", "bare");
	CHECK_OK(MPI_Comm_dup(comm, &copy));
	CHECK_CLASS(MPI_Bsend(out, sizeof(out), MPI_BYTE, (rank + 1) % size, 1, copy),
		    MPI_ERR_BUFFER);
	CHECK_OK(MPI_Session_attach_buffer(s, room, sizeof(room)));
	CHECK_CLASS(MPI_Bsend(out, sizeof(out), MPI_BYTE, (rank + 1) % size, 1, other),
		    MPI_ERR_BUFFER); /* of another session */
	CHECK_OK(MPI_Bsend(out, sizeof(out), MPI_BYTE, (rank + 1) % size, 1, copy));
	CHECK_OK(MPI_Session_iflush_buffer(s, &r));
	CHECK_OK(MPI_Recv(in, sizeof(in), MPI_BYTE, (rank + size - 1) % size, 1, copy,
			  MPI_STATUS_IGNORE));
	CHECK(strcmp(in, "buffered") == 0);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Session_flush_buffer(s));
	CHECK_CLASS(MPI_Session_attach_buffer(s, room, sizeof(room)), MPI_ERR_BUFFER);
	CHECK_OK(MPI_Session_detach_buffer(s, &at, &n));
	CHECK(at == room && n == (int)sizeof(room));
	CHECK_OK(MPI_Session_attach_buffer_c(s, room, sizeof(room)));
	CHECK_OK(MPI_Session_detach_buffer_c(s, &at, &bytes));
	CHECK(at == room && bytes == (MPI_Count)sizeof(room));
	CHECK_OK(MPI_Session_attach_buffer_c(s, MPI_BUFFER_AUTOMATIC, 0));
	CHECK_OK(MPI_Bsend(out, sizeof(out), MPI_BYTE, (rank + 1) % size, 2, copy));
	CHECK_OK(MPI_Recv(in, sizeof(in), MPI_BYTE, (rank + size - 1) % size, 2, copy,
			  MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Comm_free(&copy));
	CHECK_OK(MPI_Comm_free(&comm));
	CHECK_OK(MPI_Comm_free(&other));
	CHECK_OK(MPI_Session_finalize(&s));
	CHECK_OK(MPI_Session_finalize(&bare));
	return NULL;
}

/* Each thread has a session, and communicators that are made at the same time. */
static void *own_session(void *arg)
{
	const int number = *(int *)arg;
	MPI_Info info;
	char *what = NULL;

	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
	for (int i = 0; i < TIMES && !what; i++) {
		MPI_Session s;
		MPI_Comm comm;
		char tag[30];
		const char *found;

		snprintf(tag, sizeof(tag), "thread %d", number);
		MPI_Session_init(info, MPI_ERRORS_RETURN, &s);
		comm = comm_of(s, "mpi://WORLD", tag);
		found = use(comm);
		if (found)
			what = strdup(found);
		MPI_Comm_free(&comm);
		MPI_Session_finalize(&s);
	}
	MPI_Info_free(&info);
	return what;
}

static const char *threads(void)
{
	static const char *first;
	pthread_t id[THREADS];
	int number[THREADS];
	void *what;

	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&id[i], NULL, own_session, &number[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(id[i], &what);
		if (what)
			first = what;
	}
	return first;
}

/* ---- the world model ------------------------------------------------------------------------- */

static const char *world(void)
{
	int flag, result, level;
	MPI_Session s = begin();
	MPI_Comm comm = comm_of(s, "mpi://WORLD", "beside");
	const char *what;

	CHECK_OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &level));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MPI_Initialized(&flag);
	CHECK(flag);
	CHECK_OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
	CHECK(result == MPI_CONGRUENT || size == 0);
	what = use(MPI_COMM_WORLD);
	if (!what)
		what = use(comm);
	CHECK_OK(MPI_Comm_free(&comm));
	CHECK_OK(MPI_Session_finalize(&s));
	return what ? what : use(MPI_COMM_WORLD);
}

/* A session that is open while MPI_Finalize is called. */
static const char *finalize(void)
{
	int flag;
	MPI_Session s = begin();
	MPI_Comm comm = comm_of(s, "mpi://WORLD", "outlives");
	const char *what;

	CHECK_OK(MPI_Finalize());
	MPI_Finalized(&flag);
	CHECK(flag);
	what = use(comm);
	CHECK_OK(MPI_Comm_free(&comm));
	CHECK_OK(MPI_Session_finalize(&s));
	return what;
}

static void all_communicators(const char *when)
{
	static const struct {
		const char *name;
		const char *(*body)(void);
	} each[] = {
		{ "process sets", psets },
		{ "errors", errors },
		{ "communicators from groups", from_groups },
		{ "groups that overlap", parts },
		{ "intercommunicators from groups", between_groups },
		{ "buffers", buffers },
	};
	char name[100];

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		snprintf(name, sizeof(name), "%s, %s MPI_Init", each[i].name, when);
		run_case(name, each[i].body);
	}
}

int main(void)
{
	run_case("what needs no other process", alone);
	run_case("many, without a communicator", many);
	run_case("thread levels", levels);
	all_communicators("before");
	run_case("threads with a session each", threads);
	run_case("beside MPI_Init", world);
	all_communicators("after");
	run_case("MPI_Finalize", finalize);
	all_communicators("long after");
	run_case("threads again", threads);
	if (rank == 0)
		printf("1..%d\n", cases);
	return failed != 0;
}
