/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The shared-memory NAL, inside. Each process has in its own region one channel per peer, which
 * the peer writes to. A message is put in the ring of the target's channel; then, if the target
 * is not inside the library (its region's lock is free), the sender takes that lock and works
 * its own ring off on the target's behalf: matches, copies by cross-memory attach, posts events,
 * and writes the answers where the target would, into its own inbox. See doc/design/shm-lock.md.
 *
 *   shm.c       the operations table, opening and closing, progress
 *   shm_ring.c  the rings: where they are; shm_ring.h: putting messages in and finding them
 *   shm_send.c  putting messages on their way
 *   shm_run.c   taking them out: the same code for the owner and for a peer on its behalf
 *   shm_leave.c leaving the library: what is to be done first, and after
 *   shm_copy.c  moving bytes between two processes
 *   shm_long.c  long messages: who moves which chunk
 *   shm_splice.c ... both ways at once, by pipes of the kernel
 *   shm_path.c   ... and which way, by what was faster lately
 *   shm_stopped.c processes that job control has stopped
 *   shm_wait.c  spinning and sleeping
 *   shm_peer.c  the table of peers
 *   shm_connect.c how two processes connect
 *   shm_helper.c the helper thread: connections, deaths, doorbells, work left behind
 *   shm_wire.c  decoders
 */
#ifndef SHM_H
#define SHM_H

#include <pthread.h>
#include <string.h>

#include "base/copy.h"
#include "base/tuner.h"
#include "nal/nal.h"
#include "nal/shm/shm_ring.h"
#include "portals/engine/ni.h"

#define SHM_CHANNELS PTL_FLOWS
#define SHM_TOGETHER 8 /* moves in one call of the kernel */
#define SHM_SELF     0 /* the channel to ourselves */

/* ---- in the region --------------------------------------------------------------------------- */

/* Head of the NAL's part of a region. Per channel there is a block of ring, bitmap of lines that
 * held payload, pipe, which is mapped when the channel is used (ptl_region_segment). */
struct shm_area {
	struct shm_sizes {
		uint32_t ring_bytes, pipe_bytes; /* of each channel; powers of two */
		uint32_t channels;               /* of which there is memory */
	} sizes;
	uint64_t scratch;    /* a peer tries its rights here */
	uint64_t cpus[16];   /* processors the owner may run on */
	uint32_t calls_only; /* PTL_PROGRESS=poll: the owner's helper thread moves no data */
	_Atomic uint32_t
		closed; /* the owner has closed its interface: it is gone, but has not died */
	struct shm_channel channel[SHM_CHANNELS];
	struct ptl_stat_peer peer[SHM_CHANNELS];
};

/* ---- in this process ------------------------------------------------------------------------- */

struct shm_deferred {
	struct shm_deferred *next;
	struct shm_msg m;
	char payload[];
};

/* What was observed of a peer's long messages of one class: see shm_path.c. */
struct shm_path {
	struct base_tuner of; /* a trial is of claims, or of splicing; counts groups of messages */
	bool claims, unspliced;
	bool of_splice;     /* the last trial was of splicing, not of claims */
	uint32_t left;      /* messages to the end of the group */
	uint64_t ns, bytes; /* in this group */
};

enum shm_peer_state { SHM_CONNECTING, SHM_LIVE, SHM_GONE };

/* Guarded by our region's lock, but for what `users` protects. */
struct shm_peer {
	uint32_t index; /* of its channel in our region */
	uint32_t there; /* of ours in its region */
	ptl_process_id_t id;
	uint32_t uid, jid;
	pid_t pid; /* -1: it is in another pid namespace */
	int sock; /* hangs up when the process is dead or closed its interface; carries doorbells */
	enum shm_peer_state state;
	uint64_t called;  /* when we first tried to connect */
	uint64_t crossed; /* when we heard that it calls us, 0: it does not */
	bool cma;         /* we may read and write its memory */
	bool looked_at;   /* on the list of channels to look at */
	bool run_wanted;  /* on the list of peers to run after leaving */
	bool unsure;    /* on the list of peers that may have left before they saw what we pushed */
	uint32_t eager; /* bytes its ring takes in one message */
	uint32_t run_for; /* messages of ours we delivered for it, not yet counted */
	/* ... and there its memory could not be touched: cma is no more, from settle() on */
	bool refused;
	uint32_t users; /* threads that use `view` without our lock */
	struct ptl_view view;
	_Atomic bool following; /* a thread brings `view` up to date */
	_Atomic bool given_up;  /* ... which could not be done */
	struct shm_ring in;     /* its messages, in our region */
	struct shm_ring out;    /* our messages, in its region */
	struct shm_deferred *deferred, **deferred_end;
	size_t deferred_bytes;
	uint64_t sent;
	uint64_t came;      /* lines of its messages that had been taken when we last sent it one */
	uint64_t sent_then; /* what `sent` was when it last sent what a call was to wait for */
	int give_fd, take_fd;       /* of the kernel's pipes to it and from it; -1: none */
	bool no_give, no_take;      /* ... and there will be none */
	bool decides;               /* we do, for both, whether what goes both ways is spliced */
	uint32_t exchanges;         /* long messages until a lull both ways is their end */
	uint64_t away_since;        /* when it was first seen outside while there was work for it */
	uint32_t fill_at, drain_at; /* slots of the pipes to it and from it: where to look first */
	uint64_t pipe_since;        /* when a pipe between us that we drain ran dry */
	struct shm_path path[SHM_LENGTH_CLASSES];
	uint32_t timed; /* of them */
	/* when its first landing began or one ended; 0: there is none, or it is not timed */
	uint64_t busy_since;
	struct shm_peer *next_run, *next_gone, *next_unsure;
};

/* What the helper thread knows of the application's leaves from a biased lock, each of which it
 * owes a look at our rings some time after (portals/engine/lock.h). */
enum shm_left {
	SHM_LEFT_ASLEEP, /* it looks at nothing: to be woken */
	SHM_LEFT_LOOKED, /* it has looked since the last one it knows of */
	SHM_LEFT_UNSEEN, /* there was one since it looked */
};

struct shm {
	struct ptl_ni *ni;
	struct shm_area *area;
	struct shm_sizes sizes; /* the area's, which peers could change */
	struct shm_peer *peer[SHM_CHANNELS];
	struct shm_ring in
		[SHM_CHANNELS]; /* the rings in our region: mapped when first used, then for good */
	/* of peers: see shm_peer_ended(); for who waits for the lock, so not in them */
	_Atomic int life[SHM_CHANNELS];
	_Atomic bool by_socket
		[SHM_CHANNELS]; /* life is not a pidfd, but another descriptor of the socket */
	_Atomic pid_t pid[SHM_CHANNELS];
	_Atomic uint32_t live[SHM_CHANNELS]; /* channels to look at */
	_Atomic uint32_t nlive;
	uint32_t slots[2 * SHM_CHANNELS]; /* open hash of peers by id: index + 1 */
	struct shm_peer *last;            /* the one talked to last */
	struct shm_peer *run;             /* to be run when we leave */
	struct shm_peer *unsure;          /* to be looked at again in a while */
	struct shm_peer *gone;            /* to be freed when nobody uses them */
	_Atomic uint32_t left;            /* enum shm_left */
	struct shm_helper *helper;
	struct shm_wait {
		uint64_t since;   /* when the wait in progress found nothing to do; 0: it has not */
		uint64_t spin_ns; /* what spinning is worth, by what it was lately */
		uint32_t waits;   /* until the next look at how often we lose the core */
		uintptr_t thread; /* that looked, */
		uint64_t waited_ns; /* for how long others had run in its stead then, */
		uint64_t seen_at;   /* and the time */
		uint64_t oversubscribed_until, oversubscribed_ns;
		/* turns given away in the wait in progress, and how many of them came late;
		 * waits not to try it in, now and after the next one in vain */
		uint32_t turns, late, no_turns, no_turns_next;
		uint32_t outside; /* turns still to be given away without the lock */
		bool last_look;   /* before a sleep: nothing is left to others that we can do */
	} wait;
	/* Where an answer to what a call has just got would begin, to be asked for when the call
	 * leaves; NULL: none is expected. The line may be gone by then: to ask for it is no
	 * access. */
	const void *answer;
	uint32_t eager;
	struct base_tuner
		in_turns[SHM_LENGTH_CLASSES]; /* where processors are short: copies, or the pipe */
};

static inline struct shm *shm_of(const struct ptl_ni *ni)
{
	return ni->nal_state;
}

/* Is the owner of this region inside the library? */
static inline bool shm_attends(const struct ptl_view *v)
{
	return ptl_lock_attended(v->r);
}

/* ---- shm_ring.c ------------------------------------------------------------------------------ */

size_t shm_area_bytes(void);
/* nal_ops.far_bytes */
uint64_t shm_channel_bytes(uint64_t most);
void shm_area_init(struct shm_area *a, const struct ptl_view *v);
/* Is there an area in this region, which was checked, and which sizes does it say? 0 or -EPROTO. */
int shm_area_check(const struct ptl_view *v, struct shm_sizes *sizes);
/* Maps a channel of a region whose file is `fd`. 0, or -errno. */
int shm_ring_init(struct shm_ring *r, const struct ptl_view *v, int fd, uint32_t channel,
		  const struct shm_sizes *sizes);
void shm_ring_unmap(struct shm_ring *r);
/* Empties a channel for its next peer and gives its memory back, unless the file's room
 * is bounded. */
void shm_ring_reset(struct shm_ring *r, bool bounded);

/* ---- shm_copy.c ------------------------------------------------------------------------------ */

/* A stretch of an MD in some process. */
struct shm_span {
	const struct ptl_view *v;
	pid_t pid; /* 0: ours */
	uint32_t md;
	uint64_t offset;
};

/* Where `len` bytes of a span are, if they are ours and in one piece and can be copied like
 * that. */
static inline char *shm_span_short(const struct shm_span *s, uint64_t len)
{
	const struct ptl_md *md = &s->v->slot[s->md].md;

	if (!base_are_few(len) || s->pid || md->options & PTL_MD_IOVEC || s->offset > md->length ||
	    len > md->length - s->offset)
		return NULL;
	return (char *)(uintptr_t)md->start + s->offset;
}

ptl_ni_fail_t shm_copy_in_any(const struct shm_span *to, const void *from, uint64_t len);
ptl_ni_fail_t shm_copy_out_any(void *to, const struct shm_span *from, uint64_t len);

/* Each moves `len` bytes; PTL_NI_OK or why not. A span must lie within its MD. */
static inline ptl_ni_fail_t shm_copy_in(const struct shm_span *to, const void *from, uint64_t len)
{
	char *at = shm_span_short(to, len);

	if (!at)
		return shm_copy_in_any(to, from, len);
	base_copy_few(at, from, len);
	return PTL_NI_OK;
}

static inline ptl_ni_fail_t shm_copy_out(void *to, const struct shm_span *from, uint64_t len)
{
	const char *at = shm_span_short(from, len);

	if (!at)
		return shm_copy_out_any(to, from, len);
	base_copy_few(to, at, len);
	return PTL_NI_OK;
}

/* Between a buffer of ours and runs of a span, which lie in it; to them (`in`), or from them. */
ptl_ni_fail_t shm_copy_runs(const struct shm_span *there, const ptl_atomic_runs_t *runs, char *here,
			    bool in);
/* Between two MDs, at least one of them ours. */
ptl_ni_fail_t shm_copy(const struct shm_span *to, const struct shm_span *from, uint64_t len);
/* The same for some at a time, in one call of the kernel. False: each has to be moved by itself. */
struct shm_move {
	struct shm_span to, from;
	uint64_t len;
};
bool shm_copy_together(const struct shm_move *moves, unsigned int n);
/* May we read and write the memory of `pid`? Tries, at `remote` in its memory, 8 bytes equal to
 * `expect`. */
bool shm_copy_allowed(pid_t pid, uint64_t remote, uint64_t expect, uint64_t scratch);

/* Gives the pages of `len` bytes at the span's place, at most, to a pipe; returns of how many,
 * or -1. */
ssize_t shm_copy_to_pipe(int fd, const struct shm_span *from, uint64_t len);
/* Reads `len` bytes that are in a pipe. */
ptl_ni_fail_t shm_copy_from_pipe(const struct shm_span *to, int fd, uint64_t len);

/* ---- shm_splice.c ---------------------------------------------------------------------------- */

#define SHM_SPLICE_BYTES                                                                           \
	(256 * 1024) /* in a pipe: what else there is to do waits while they are read */
/* Source: is there a pipe to p? Offers it one. */
bool shm_splice_agreed(struct shm_peer *p);
/* Destination: is there one from p? Takes what is offered. */
bool shm_splice_accept(struct shm_peer *p);
/* Gives back whatever is in it. */
void shm_splice_empty(int fd);
void shm_splice_close(struct shm_peer *p);

/* ---- shm_send.c ------------------------------------------------------------------------------ */

/* nal_ops.knows, .connect and .send */
bool shm_knows(struct ptl_ni *ni, ptl_process_id_t target);
bool shm_connect(struct ptl_ni *ni, ptl_process_id_t target);
const char *shm_failed_over(struct ptl_ni *ni, ptl_process_id_t id);
int shm_start(struct ptl_ni *ni, const struct ptl_start *s);
/* nal_ops.piece */
uint64_t shm_segment(struct ptl_ni *ni, ptl_process_id_t target);
/* The payload of *m, from an MD or from bytes. */
void shm_fill_payload(char *to, const struct shm_msg *m, const struct shm_span *payload,
		      const void *bytes);
/* May peers, and may we, work off the rings of its region? */
static inline bool shm_may_run(const struct shm_peer *p)
{
	return p->cma && !atomic_load_explicit(&p->view.r->no_run, memory_order_relaxed);
}
/* A message to a peer is filled where shm_send_begin says, which is its place in the ring or, if
 * it must be deferred, *spare, and goes out with shm_send_end; a payload comes from an MD or
 * from bytes. Locked. */
struct shm_msg *shm_send_begin(struct shm_peer *p, uint32_t size, struct shm_msg *spare);
void shm_send_end(struct shm *s, struct shm_peer *p, struct shm_msg *m, const struct shm_msg *spare,
		  const struct shm_span *payload, const void *bytes);
bool shm_flush_deferred(struct shm *s, struct shm_peer *p);
/* After a push: somebody must see to it. Locked. */
void shm_after_push(struct shm *s, struct shm_peer *p);
/* Looks again at the peers that seemed to attend when we pushed, a few microseconds ago or more.
 * Locked. */
void shm_settle_unsure(struct shm *s);
/* Wakes p if it sleeps in a wait, else its helper thread. */
void shm_notify(struct shm *s, struct shm_peer *p);
/* Wakes our own sleeping waiters of a region. */
void shm_wake(struct ptl_region *r);

/* ---- shm_run.c ------------------------------------------------------------------------------- */

/* Takes in messages of all peers; up to `most` from each. Locked. */
bool shm_take_all(struct shm *s, unsigned int most);
/* Not locked: looks only at rings in our own region, which stay. After the barrier of the
 * unlock: partner of the producer's between its want and its last look for room. */
static inline bool shm_rings_pending(const struct shm *s)
{
	uint32_t n = atomic_load_explicit(&s->nlive, memory_order_relaxed);

	if (atomic_load_explicit(&s->ni->view.r->space, memory_order_relaxed))
		return true;
	for (uint32_t k = 0; k < n; k++) {
		const struct shm_ring *r =
			&s->in[atomic_load_explicit(&s->live[k], memory_order_relaxed)];

		if (shm_ring_any(r) || shm_ring_space_due(r))
			return true;
	}
	return false;
}
/* Works our ring in p's region off. Not locked; p->users holds the region. */
void shm_deliver_for(struct shm *s, struct shm_peer *p);

/* ---- shm_leave.c ----------------------------------------------------------------------------- */

void shm_leave(struct ptl_ni *ni, bool lazily);

/* ---- shm_long.c ------------------------------------------------------------------------------ */

/* Claims or a slot for each of the oldest long messages in flight with each peer: of our own
 * halves, else of the others'. Locked. True if any byte moved, or soon will by a peer that is
 * looked for again at once. */
bool shm_long_step(struct shm *s);
/* The same for those alone whose other side is not inside the library. */
bool shm_long_alone(struct shm *s);
static inline bool shm_long_any(const struct shm *s)
{
	return s->ni->view.r->flowing;
}
/* Chunks of a landing whose data come by the pipe of a ring. */
void shm_long_chunks(struct ptl_delivery *l, const struct shm_ring *r);

/* ---- shm_path.c ------------------------------------------------------------------------------ */

/* Which of SHM_LENGTH_CLASSES a long message is: by powers of 4, and not between lengths that
 * are powers of 2. */
static inline unsigned int shm_path_of(uint64_t length)
{
	unsigned int k = 0;

	while (k < SHM_LENGTH_CLASSES - 1 && length >= 24576ull << 2 * k)
		k++;
	return k;
}
void shm_path_init(struct shm_peer *p);
/* Tells the peer, if it does not know, which way we want what comes from it. */
void shm_path_tell(const struct shm *s, struct shm_peer *p, uint64_t length);
/* Where processors are short: data of messages of this length are copied to where they belong,
 * `piped` out of a pipe. What shm_path_moving() says goes to shm_path_moved(). */
uint64_t shm_path_moving(const struct shm *s, uint64_t length);
void shm_path_moved(struct shm *s, uint64_t length, uint64_t since, uint64_t bytes, bool piped);
/* A landing of a message from p begins and ends; by the owner of the region, locked. */
void shm_path_began(const struct shm *s, struct shm_peer *p);
void shm_path_ended(struct shm *s, struct shm_peer *p, uint64_t length);

/* ---- shm_wait.c ------------------------------------------------------------------------------ */

/* nal_ops.idle */
bool shm_idle(struct ptl_ni *ni, unsigned int idle, uint64_t deadline);
/* Something came: the wait was worth its spinning. */
void shm_wait_over(struct shm *s);

/* ---- shm_stopped.c --------------------------------------------------------------------------- */

/* Lets a process that is stopped run, for a tenth of a second at most, while *word & mask is
 * `value`; it is stopped again after that unless somebody continued it. False: it still is;
 * perhaps we may not trace it, or somebody else does. */
bool shm_let_run(pid_t pid, _Atomic uint32_t *word, uint32_t mask, uint32_t value);

/* ---- shm_peer.c ------------------------------------------------------------------------------ */

struct shm_peer *shm_peer_find(struct shm *s, ptl_process_id_t id);
/* NULL: no channel or memory left. */
struct shm_peer *shm_peer_add(struct shm *s, ptl_process_id_t id);
/* The peer's region is `view` and p->out is in it: from now on messages flow. */
void shm_peer_live(struct shm *s, struct shm_peer *p, const struct ptl_view *view);
/* From now on its ring is looked at: a peer's from its first day, our own from its first
 * message. Locked. */
void shm_peer_look_at(struct shm *s, struct shm_peer *p);
/* Its owner has extended the region: maps that, too. False: it cannot be, and the peer will be
 * given up. With our lock, or the peer's. */
bool shm_peer_follow_any(struct shm *s, struct shm_peer *p);
static inline bool shm_peer_follow(struct shm *s, struct shm_peer *p)
{
	return __builtin_expect(ptl_region_followed(&p->view), 1) || shm_peer_follow_any(s, p);
}
/* Decides anew whether a wait may spin. */
void shm_peer_count_cores(struct shm *s);
/* It is dead or cannot be reached, `why`: everything in flight fails. */
void shm_peer_lost(struct shm *s, struct shm_peer *p, ptl_ni_fail_t fail, const char *why);
/* Has the process of this channel ended? Its pidfd says so, or its socket, which hangs up, where
 * the system refuses pidfds or it is in another pid namespace. Not locked. */
bool shm_peer_ended(const struct shm *s, uint32_t channel);
/* Frees those lost that nobody uses any more. */
void shm_peer_reap(struct shm *s, bool all);

/* ---- shm_connect.c --------------------------------------------------------------------------- */

/* Has p, just added, connected; waits a bounded time for it with the lock released. p may be
 * gone then. */
void shm_connect_now(struct shm *s, struct shm_peer *p);

/* ---- shm_helper.c ---------------------------------------------------------------------------- */

int shm_helper_open(struct shm *s, ptl_pid_t want);
void shm_helper_close(struct shm *s);
/* Wakes the helper thread of a peer, or our own. */
void shm_helper_doorbell(struct shm_peer *p);
void shm_helper_kick(struct shm *s);
/* The application left a biased lock and the helper thread does not know it. */
void shm_helper_left(struct shm *s);
/* nal_ops.forked */
void shm_helper_forked(struct ptl_ni *ni);

#endif
