/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The stream socket to a PMI launcher, of either version: whole messages out, lines or blocks
 * with a length in front in, with a bound on each wait.
 */
#ifndef RUNTIME_RT_LINK_H
#define RUNTIME_RT_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	RT_LINK_MAX = 65536,     /* longest message in either direction */
	RT_LINK_INIT_MS = 60000, /* something other than a launcher may be behind the socket */
	RT_LINK_FINI_MS = 10000
};

struct rt_link {
	int fd;
	bool debug;         /* print every message */
	_Atomic bool hides; /* prints no value: that of the request under way is secret */
	bool knows_exit;    /* the launcher is ours: it takes "at_exit" in "finalize" */

	/*
	 * call is held over one request and its answer, and guards the members below. write is
	 * held over one message, so that an abort can be sent while another thread waits for an
	 * answer. Order: call, write.
	 */
	pthread_mutex_t call, write;
	int timeout_ms; /* wait for room, and for an answer; -1: no limit */
	int error;      /* why the connection cannot be used any more, a negative errno; else 0 */
	char *in;       /* RT_LINK_MAX bytes: received data, from the start of a message */
	size_t in_len;  /* bytes in it */
	size_t used;    /* length of the message last returned */
	char *out;      /* RT_LINK_MAX bytes: the request */
};

/* The text of `doing` while a process joins: a launcher that closes then has its own reason. */
extern const char rt_link_joining[];

/* Prepare to use this socket, which the caller keeps. 0 or -ENOMEM. */
int rt_link_open(struct rt_link *link, int fd, bool debug);
/* Free what rt_link_open made. */
void rt_link_release(struct rt_link *link);

/*
 * Lock `call`, for the last request. False if another thread has held it for a second: it waits
 * in a fence that cannot end now, because this process exits. The launcher sees the connection's
 * end then.
 */
bool rt_link_lock_to_end(struct rt_link *link);

/* Send one message, within that time (-1: no limit), after which a part may have been sent. May
 * run while another thread waits for an answer. 0 or -errno. */
int rt_link_send(struct rt_link *link, const char *bytes, size_t len, int timeout_ms);

/*
 * Receive the next line, with its newline, or the next block of PMI-2, without its length. It is
 * valid until the next call. call is held. 0 or -errno, -EPROTO for a length that is none.
 */
int rt_link_line(struct rt_link *link, const char **line, size_t *len);
int rt_link_block(struct rt_link *link, const char **block, size_t *len);

/* Stop using the connection and warn why, unless err is -EPROTO. err is a negative errno. Returns
 * err. */
int rt_link_broken(struct rt_link *link, const char *doing, int err);

/* Likewise, for an answer that is not of this protocol. Returns -EPROTO. */
int rt_link_bad_answer(struct rt_link *link, const char *protocol, const char *doing,
		       const char *text, size_t len);

#endif
