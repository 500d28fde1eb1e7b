/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Answers the ranks' requests as they come in. A rank may be a script that runs one program
 * after the other: a process may join when the previous one has left. The first programs of all
 * ranks make one world, with a key-value space and a fence of its own, the second ones the
 * next, and so on. One rank may be further than another.
 *
 * The fence is a count of the ranks that have entered. As soon as one rank waits in it and
 * another can no longer enter, it can never end, and that is an event of the job. The decoder
 * (runtime/pmi1_wire.h) has checked everything that a rank sends. Lines that are not PMI-1 cost
 * the rank its connection.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/pmi1_wire.h"
#include "runtime/rt_names.h"
#include "tools/mpiexec/kvs.h"
#include "tools/mpiexec/loop.h"
#include "tools/mpiexec/output.h"
#include "tools/mpiexec/pmi_server.h"

/* The limits that ranks are told; they count a terminator. These are Hydra's, which every
 * client can live with. */
enum { KVSNAME_MAX = 256, KEY_MAX = 64, VALUE_MAX = 1024 };

enum {
	IN_FIRST = 4096,    /* first size of the receive buffer, which grows to PMI1_LINE_MAX */
	OUT_HIGH = 1 << 16, /* waiting answers; the rank's requests are then not read */
	REPLY_MAX = 2048
};

struct world {
	struct world *next;
	int number;     /* from 0 */
	int n_in_fence; /* ranks */
	int n_behind;   /* ranks that are in a later world */
	char name[256];
	struct kvs kvs;
};

struct conn {
	struct watch watch;
	int rank, appnum;
	int world;              /* the number of the world it is in, or was last in */
	bool joined, finalized; /* init and finalize were seen, in this world */
	bool at_exit;           /* finalize came because the process exits */
	bool gone;              /* will enter no fence any more */
	bool in_fence;
	bool multi; /* inside a command of several lines */
	char *in;
	size_t in_len, in_size;
	char *out; /* answers the socket has not taken yet */
	size_t out_len;
};

static struct conn *conns;
static struct world *worlds;
static int n_ranks;
static const struct pmi_events *events;
static const char *job_name, *pairs;
static bool reported_stuck, any_joined;

static void conn_ready(struct watch *watch, uint32_t flags);

static void conn_close(struct conn *conn)
{
	loop_close(&conn->watch);
	free(conn->in);
	free(conn->out);
	conn->in = conn->out = NULL;
	conn->in_len = conn->in_size = conn->out_len = 0;
}

/* MPICH asks the launcher which ranks share a node: all do. */
static int put_mapping(struct kvs *kvs)
{
	static const char key[] = "PMI_process_mapping";
	char value[64];
	int n = snprintf(value, sizeof(value), "(vector,(0,1,%d))", n_ranks);

	return kvs_put(kvs, key, sizeof(key) - 1, value, (size_t)n);
}

/* The pairs that ranks of a spawned job are told. */
static int put_pairs(struct kvs *kvs)
{
	const char *at = pairs, *equals, *end;
	int err = 0;

	for (; at && (end = strchr(at, '\n')) && !err; at = end + 1) {
		equals = memchr(at, '=', (size_t)(end - at));
		if (equals && equals > at)
			err = kvs_put(kvs, at, (size_t)(equals - at), equals + 1,
				      (size_t)(end - equals) - 1);
		/* each of several commands has the same pairs */
		if (err == -EEXIST)
			err = 0;
	}
	return err;
}

static struct world *world_create(int number)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world || put_mapping(&world->kvs) || put_pairs(&world->kvs)) {
		free(world);
		return NULL;
	}
	world->number = number;
	if (number)
		snprintf(world->name, sizeof(world->name), "%.200s_%d", job_name, number);
	else
		snprintf(world->name, sizeof(world->name), "%.200s", job_name);
	world->next = worlds;
	worlds = world;
	return world;
}

/* The world of a rank. NULL: out of memory. */
static struct world *world_of(const struct conn *conn)
{
	struct world *world = worlds;

	while (world && world->number != conn->world)
		world = world->next;
	return world ? world : world_create(conn->world);
}

/* Move the rank to the next world. A world that all ranks have left is freed. */
static void leave_world(struct conn *conn)
{
	struct world **link = &worlds;

	while (*link && (*link)->number != conn->world)
		link = &(*link)->next;
	conn->world++;
	if (*link && ++(*link)->n_behind == n_ranks) {
		struct world *world = *link;

		*link = world->next;
		kvs_clear(&world->kvs);
		free(world);
	}
}

/* Will the rank never enter the world's fence any more? */
static bool cannot_enter(const struct conn *conn, const struct world *world)
{
	if (conn->world == world->number)
		return !conn->in_fence && (conn->gone || conn->finalized);
	return conn->world > world->number || conn->gone;
}

/* Tell the job once if a rank waits in a fence that cannot end. */
static void check_stuck(void)
{
	for (const struct world *world = worlds; world && !reported_stuck; world = world->next) {
		int rank = 0;

		if (!world->n_in_fence)
			continue;
		while (rank < n_ranks && !cannot_enter(&conns[rank], world))
			rank++;
		reported_stuck = rank < n_ranks;
		if (reported_stuck)
			events->stuck(rank, world->n_in_fence);
	}
}

/* Send, or keep what the socket does not take now. A rank that is gone gets nothing. */
static void reply_bytes(struct conn *conn, const char *bytes, size_t len)
{
	char *more;

	if (conn->watch.fd < 0)
		return;
	if (!conn->out_len) {
		ssize_t n = send(conn->watch.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	if (!len)
		return;
	more = realloc(conn->out, conn->out_len + len);
	if (!more)
		return;
	memcpy(more + conn->out_len, bytes, len);
	conn->out = more;
	conn->out_len += len;
	loop_change(&conn->watch, EPOLLOUT | (conn->out_len < OUT_HIGH ? EPOLLIN : 0u));
}

static void flush(struct conn *conn)
{
	ssize_t n = send(conn->watch.fd, conn->out, conn->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0) {
		conn->out_len -= (size_t)n;
		memmove(conn->out, conn->out + n, conn->out_len);
	}
	loop_change(&conn->watch,
		    (conn->out_len ? EPOLLOUT : 0u) | (conn->out_len < OUT_HIGH ? EPOLLIN : 0u));
}

static void send_reply_line(struct conn *conn, const struct pmi1_msg *msg)
{
	char line[REPLY_MAX];
	int n = pmi1_encode(msg, line, sizeof(line));

	if (n > 0)
		reply_bytes(conn, line, (size_t)n);
}

/* An answer with a return code and a word. */
static void reply_result(struct conn *conn, enum pmi1_cmd cmd, const char *trouble)
{
	struct pmi1_msg msg;

	pmi1_begin(&msg, cmd);
	pmi1_set_num(&msg, PMI1_RC, trouble ? -1 : 0);
	pmi1_set_text(&msg, PMI1_MSG, trouble ? trouble : "success");
	send_reply_line(conn, &msg);
}

static void reply_num(struct conn *conn, enum pmi1_cmd cmd, enum pmi1_field field, int num)
{
	struct pmi1_msg msg;

	pmi1_begin(&msg, cmd);
	pmi1_set_num(&msg, field, num);
	send_reply_line(conn, &msg);
}

static void join(struct conn *conn)
{
	if (conn->finalized)
		leave_world(conn);
	conn->joined = any_joined = true;
	conn->finalized = false;
	/* ranks that wait for this rank in a world that it has left wait in vain */
	check_stuck();
}

static void do_init(struct conn *conn, const struct pmi1_msg *ask)
{
	const char *trouble = NULL;
	struct pmi1_msg msg;

	if (ask->num[PMI1_VERSION] != 1)
		trouble = "only_version_1_is_spoken_here";
	else if (conn->joined && !conn->finalized)
		trouble = "another_process_of_this_rank_is_in_the_job_or_has_ended_without_leaving_"
			  "it";
	else
		join(conn);
	pmi1_begin(&msg, PMI1_CMD_RESPONSE_TO_INIT);
	pmi1_set_num(&msg, PMI1_VERSION, 1);
	pmi1_set_num(&msg, PMI1_SUBVERSION, 1);
	pmi1_set_num(&msg, PMI1_AT_EXIT, 1);
	pmi1_set_num(&msg, PMI1_RC, trouble ? -1 : 0);
	if (trouble)
		pmi1_set_text(&msg, PMI1_MSG, trouble);
	send_reply_line(conn, &msg);
}

static void do_get_maxes(struct conn *conn)
{
	struct pmi1_msg msg;

	pmi1_begin(&msg, PMI1_CMD_MAXES);
	pmi1_set_num(&msg, PMI1_KVSNAME_MAX, KVSNAME_MAX);
	pmi1_set_num(&msg, PMI1_KEYLEN_MAX, KEY_MAX);
	pmi1_set_num(&msg, PMI1_VALLEN_MAX, VALUE_MAX);
	send_reply_line(conn, &msg);
}

static void do_get_my_kvsname(struct conn *conn)
{
	const struct world *world = world_of(conn);
	struct pmi1_msg msg;

	pmi1_begin(&msg, PMI1_CMD_MY_KVSNAME);
	pmi1_set_text(&msg, PMI1_KVSNAME, world ? world->name : job_name);
	send_reply_line(conn, &msg);
}

static void do_put(struct conn *conn, const struct pmi1_msg *ask)
{
	struct pmi1_text key = ask->text[PMI1_KEY];
	struct pmi1_text value = ask->text[PMI1_VALUE];
	struct world *world = world_of(conn);
	const char *trouble = NULL;

	if (!world || !pmi1_text_is(ask->text[PMI1_KVSNAME], world->name))
		trouble = "unknown_kvsname";
	else if (key.len >= KEY_MAX || value.len >= VALUE_MAX)
		trouble = "key_or_value_too_long";
	else if (kvs_put(&world->kvs, key.ptr, key.len, value.ptr, value.len))
		trouble = "duplicate_key_or_out_of_memory";
	reply_result(conn, PMI1_CMD_PUT_RESULT, trouble);
}

static void do_get(struct conn *conn, const struct pmi1_msg *ask)
{
	struct pmi1_text key = ask->text[PMI1_KEY];
	const struct world *world = world_of(conn);
	const char *value = NULL;
	struct pmi1_msg msg;

	if (world && pmi1_text_is(ask->text[PMI1_KVSNAME], world->name))
		value = kvs_get(&world->kvs, key.ptr, key.len);
	pmi1_begin(&msg, PMI1_CMD_GET_RESULT);
	pmi1_set_num(&msg, PMI1_RC, value ? 0 : -1);
	pmi1_set_text(&msg, PMI1_MSG, value ? "success" : "key_not_found");
	pmi1_set_text(&msg, PMI1_VALUE, value ? value : "unknown");
	send_reply_line(conn, &msg);
}

static void do_barrier_in(struct conn *conn)
{
	struct world *world = world_of(conn);
	struct pmi1_msg msg;

	if (!conn->joined || conn->finalized)
		return reply_result(conn, PMI1_CMD_BARRIER_OUT, "not_in_the_job");
	if (!world)
		return reply_result(conn, PMI1_CMD_BARRIER_OUT, "out_of_memory");
	world->n_in_fence += !conn->in_fence;
	conn->in_fence = true;
	if (world->n_in_fence < n_ranks) {
		check_stuck();
		return;
	}
	/* all ranks are in this world */
	world->n_in_fence = 0;
	pmi1_begin(&msg, PMI1_CMD_BARRIER_OUT);
	for (int rank = 0; rank < n_ranks; rank++) {
		conns[rank].in_fence = false;
		send_reply_line(&conns[rank], &msg);
	}
}

static void do_finalize(struct conn *conn, const struct pmi1_msg *ask)
{
	struct world *world = conn->in_fence ? world_of(conn) : NULL;
	struct pmi1_msg msg;

	/* a rank that leaves does not wait for the others any more */
	if (world)
		world->n_in_fence--;
	conn->in_fence = false;
	conn->finalized = true;
	conn->at_exit = pmi1_has(ask, PMI1_AT_EXIT);
	pmi1_begin(&msg, PMI1_CMD_FINALIZE_ACK);
	send_reply_line(conn, &msg);
	check_stuck();
}

/* A job may count on a process on each processor of this host, and its own. */
static int universe_size(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors > n_ranks ? (int)processors : n_ranks;
}

void pmi_server_spawned(int rank, const char *trouble)
{
	reply_result(&conns[rank], PMI1_CMD_SPAWN_RESULT, trouble);
}

/* ---- names ----------------------------------------------------------------------------------- */

enum { NAME_SIZE = 512, PORT_SIZE = VALUE_MAX };

/* Copy a text, which our library escapes and others do not. False: it is too long. */
static bool to_string(struct pmi1_text text, char *out, size_t size)
{
	int n;

	if (text.len >= size)
		return false;
	n = pmi1_unescape(text.ptr, text.len, out, size - 1);
	if (n < 0)
		memcpy(out, text.ptr, text.len);
	out[n < 0 ? text.len : (size_t)n] = '\0';
	return true;
}

static const char *trouble_of(int err)
{
	switch (err) {
	case 0:
		return NULL;
	case -EEXIST:
		return "the_name_is_published_already";
	case -ENOENT:
		return "the_name_is_not_published";
	default:
		return "the_folder_of_names_cannot_be_used";
	}
}

static void do_publish(struct conn *conn, const struct pmi1_msg *ask)
{
	char name[NAME_SIZE], port[PORT_SIZE];
	int err = -E2BIG;

	if (to_string(ask->text[PMI1_SERVICE], name, sizeof(name)) &&
	    to_string(ask->text[PMI1_PORT], port, sizeof(port)))
		err = rt_names_publish(name, port, getpid());
	reply_result(conn, PMI1_CMD_PUBLISH_RESULT, trouble_of(err));
}

static void do_unpublish(struct conn *conn, const struct pmi1_msg *ask)
{
	char name[NAME_SIZE];
	int err = -E2BIG;

	if (to_string(ask->text[PMI1_SERVICE], name, sizeof(name)))
		err = rt_names_unpublish(name);
	reply_result(conn, PMI1_CMD_UNPUBLISH_RESULT, trouble_of(err));
}

static void do_lookup(struct conn *conn, const struct pmi1_msg *ask)
{
	char name[NAME_SIZE], port[PORT_SIZE] = "", escaped[PORT_SIZE];
	struct pmi1_msg msg;
	int err = -E2BIG, n;

	if (to_string(ask->text[PMI1_SERVICE], name, sizeof(name)))
		err = rt_names_lookup(name, port, sizeof(port));
	n = pmi1_escape(port, strlen(port), escaped, sizeof(escaped) - 1);
	escaped[n < 0 ? 0 : n] = '\0';
	if (!err && n < 0)
		err = n;
	pmi1_begin(&msg, PMI1_CMD_LOOKUP_RESULT);
	pmi1_set_num(&msg, PMI1_RC, err ? -1 : 0);
	pmi1_set_text(&msg, PMI1_MSG, err ? trouble_of(err) : "success");
	if (!err)
		pmi1_set_text(&msg, PMI1_PORT, escaped);
	send_reply_line(conn, &msg);
}

/* An unknown command gets an answer, too, so that its sender does not wait for ever. */
static void do_unknown(struct conn *conn, const struct pmi1_msg *ask)
{
	char line[256];
	int len = ask->name.len < 100 ? (int)ask->name.len : 100;

	say("rank %d asked for \"%.*s\", which this launcher does not do", conn->rank, len,
	    ask->name.ptr);
	reply_bytes(conn, line,
		    (size_t)snprintf(line, sizeof(line),
				     "cmd=%.*s_result rc=-1 msg=not_supported\n", len,
				     ask->name.ptr));
}

static void do_request(struct conn *conn, const struct pmi1_msg *ask)
{
	switch (ask->cmd) {
	case PMI1_CMD_INIT:
		return do_init(conn, ask);
	case PMI1_CMD_GET_MAXES:
		return do_get_maxes(conn);
	case PMI1_CMD_GET_APPNUM:
		return reply_num(conn, PMI1_CMD_GOT_APPNUM, PMI1_APPNUM, conn->appnum);
	case PMI1_CMD_GET_UNIVERSE_SIZE:
		return reply_num(conn, PMI1_CMD_UNIVERSE_SIZE, PMI1_SIZE, universe_size());
	case PMI1_CMD_GET_MY_KVSNAME:
		return do_get_my_kvsname(conn);
	case PMI1_CMD_PUT:
		return do_put(conn, ask);
	case PMI1_CMD_GET:
		return do_get(conn, ask);
	case PMI1_CMD_BARRIER_IN:
		return do_barrier_in(conn);
	case PMI1_CMD_FINALIZE:
		return do_finalize(conn, ask);
	case PMI1_CMD_ABORT:
		return events->aborted(conn->rank,
				       pmi1_has(ask, PMI1_EXITCODE) ? ask->num[PMI1_EXITCODE] : 1);
	case PMI1_CMD_PUBLISH_NAME:
		return do_publish(conn, ask);
	case PMI1_CMD_UNPUBLISH_NAME:
		return do_unpublish(conn, ask);
	case PMI1_CMD_LOOKUP_NAME:
		return do_lookup(conn, ask);
	case PMI1_CMD_MULTI:
		conn->multi = true;
		return;
	default:
		do_unknown(conn, ask);
	}
}

/* Handle one line, with its newline. False if it is not PMI-1. */
static bool do_line(struct conn *conn, const char *line, size_t len)
{
	struct pmi1_msg ask;
	const bool good = !pmi1_decode(line, len, &ask);

	/* a program may have ended inside a command of several lines */
	if (good && ask.cmd == PMI1_CMD_INIT) {
		if (conn->multi)
			events->spawn_forget(conn->rank);
		conn->multi = false;
	}
	if (conn->multi) {
		/* the only such command is spawn */
		if (len == sizeof("endcmd") && !memcmp(line, "endcmd", len - 1)) {
			conn->multi = false;
			events->spawn_end(conn->rank);
		} else {
			events->spawn_line(conn->rank, line, len - 1);
		}
		return true;
	}
	if (good)
		do_request(conn, &ask);
	return good;
}

/* Handle the complete lines received. False if one of them is not PMI-1. */
static bool do_lines(struct conn *conn)
{
	size_t done = 0;
	char *end;

	while ((end = memchr(conn->in + done, '\n', conn->in_len - done))) {
		size_t len = (size_t)(end - conn->in) - done + 1;

		if (!do_line(conn, conn->in + done, len))
			return false;
		done += len;
	}
	conn->in_len -= done;
	memmove(conn->in, conn->in + done, conn->in_len);
	return conn->in_len < PMI1_LINE_MAX;
}

static bool make_line_room(struct conn *conn)
{
	size_t size = conn->in_size ? conn->in_size * 2 : IN_FIRST;
	char *more;

	if (conn->in_len < conn->in_size)
		return true;
	more = realloc(conn->in, size);
	if (!more)
		return false;
	conn->in = more;
	conn->in_size = size;
	return true;
}

/* Receive once. False when there is nothing now, or the connection has ended. */
static bool conn_read(struct conn *conn)
{
	ssize_t n;

	if (conn->watch.fd < 0)
		return false;
	n = make_line_room(conn) ? recv(conn->watch.fd, conn->in + conn->in_len,
					conn->in_size - conn->in_len, MSG_DONTWAIT)
				 : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0) {
		conn->in_len += (size_t)n;
		if (do_lines(conn))
			return true;
		say("rank %d sent a line that is not PMI-1 on its PMI_FD; its connection is closed",
		    conn->rank);
	}
	conn_close(conn);
	events->closed(conn->rank);
	return false;
}

static void conn_ready(struct watch *watch, uint32_t flags)
{
	struct conn *conn = watch_of(watch, struct conn, watch);

	if (flags & EPOLLOUT)
		flush(conn);
	if (flags & ~(uint32_t)EPOLLOUT)
		conn_read(conn);
}

int pmi_server_init(int ranks, const char *name, const char *given, const struct pmi_events *what)
{
	conns = calloc((size_t)ranks, sizeof(*conns));
	if (!conns)
		return -ENOMEM;
	n_ranks = ranks;
	job_name = name;
	pairs = given;
	events = what;
	for (int rank = 0; rank < ranks; rank++)
		conns[rank] = (struct conn){ .rank = rank, .watch.fd = -1 };
	return world_create(0) ? 0 : -ENOMEM;
}

int pmi_server_attach(int rank, int fd, int appnum)
{
	conns[rank].appnum = appnum;
	return loop_add(&conns[rank].watch, fd, EPOLLIN, conn_ready);
}

void pmi_server_collect(int rank)
{
	/* processes that the rank has started may hold the connection open, and may even use it */
	while (conn_read(&conns[rank]))
		;
}

void pmi_server_gone(int rank)
{
	conns[rank].gone = true;
	check_stuck();
}

bool pmi_server_joined(void)
{
	return any_joined;
}

bool pmi_server_finalized(int rank)
{
	return conns[rank].finalized && !conns[rank].at_exit;
}
