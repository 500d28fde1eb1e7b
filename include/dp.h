/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Directed Point: messages between endpoints that are file descriptors (Wang, Tam, Cheung, Zhu,
 * Lee, 2002). An endpoint is named by a node id (NID) and an endpoint id (DPID). Every function
 * has a man page in section 3; doc/dp.md is a guide. Errors are -1 and errno.
 */
#ifndef DP_H
#define DP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DP_MAX_MESSAGE 65536    /* bytes */
#define DP_MAX_DPID    0xffffff /* ids are 1 to this */

/* The token buffer pool of an endpoint. */
typedef struct {
	void *base;         /* page-aligned memory of the program, or NULL; out: where it lies */
	size_t size;        /* bytes, 0: the default; out: what it is */
	size_t max_message; /* longest message it takes, 0: DP_MAX_MESSAGE; out: what it is */
	unsigned messages;  /* how many it holds at most, 0: the default; out: what it is */
	unsigned flags;     /* 0 */
} dpmmap_t;

/* ---- the calls of the paper ------------------------------------------------------------------ */

/* Make an endpoint; 0: with any free id. Returns a descriptor of the kernel. The first call
 * opens Portals, and in a job it waits until all ranks have done so. */
int dp_open(int dpid);
/* Replace the pool, if no message is in it, by one like *tbp, and tell in *tbp what it is. */
int dp_mmap(int fd, dpmmap_t *tbp);
/* Following writes go to endpoint <dpid, nid>. nid -1: to nobody. */
void dp_target(int fd, int nid, int dpid);
/* Send a message. The bytes may be changed as soon as the call returns. Returns len. */
int dp_write(int fd, const void *msg, int len);
/* Take the next message. Returns its length; *address is where it lies until it is flushed. */
int dp_read(int fd, char **address);
/* Give the n oldest messages read back to the pool. Returns how many there were. */
int dp_fsync(int fd, int n);
void dp_close(int fd);

/* ---- additions ------------------------------------------------------------------------------- */

int dp_nid(void);    /* the number of this node */
int dp_nodes(void);  /* the number of nodes, or the highest node id + 1 */
int dp_id(int fd);   /* the DPID of an endpoint */
/* Tell the sender of the message that lies at `address`. Either result may be NULL. */
int dp_from(int fd, const char *address, int *nid, int *dpid);

/* Values of `what`, with the type and direction of `value`. */
enum {
	DP_LOST = 1, /* uint64_t, out: messages sent to this endpoint that did not get in */
	DP_FLOW,     /* const int, in: 1: senders that have set it, too, wait for room */
	DP_WATCH,    /* const int, in: DP_WATCH_AUTO or one of those below */
	DP_PACKET,   /* size_t, out: longest message that the present target takes */
	DP_UNSENT    /* uint64_t, out: plain writes that failed */
};

enum {
	DP_WATCH_AUTO,   /* as the program's calls suggest */
	DP_WATCH_ALWAYS, /* the descriptor always tells of messages */
	DP_WATCH_NEVER   /* never: only dp_read finds them, at the least cost */
};

int dp_ctl(int fd, int what, void *value);

#ifdef __cplusplus
}
#endif

#endif
