/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The inside of the shared-memory NAL. Each process has one channel per peer in its own
 * region; the peer writes to it. A sender puts a message into the ring of the target's
 * channel. If the target is not inside the library, its region's lock is free or biased. The
 * sender then takes that lock and processes its own ring on behalf of the target. It matches,
 * copies by CMA (cross-memory attach), posts events, and writes the answers to the place where
 * the target would: its own inbox. See doc/design/shm-lock.md.
 *
 * A lock without a name below is the lock of our own region. "Locked" means that the caller
 * holds it.
 *
 *   shm.c         the operations table, opening and closing, progress
 *   shm_ring.c    where the rings are; shm_ring.h: putting messages in and finding them
 *   shm_send.c    sending messages
 *   shm_run.c     processing messages: the same code for the owner and for a peer on its behalf
 *   shm_leave.c   leaving the library: the work before and after
 *   shm_copy.c    moving bytes between two processes
 *   shm_long.c    long messages: which side moves which chunk
 *   shm_path.c    long messages: the path that was faster lately
 *   shm_stopped.c processes that job control has stopped
 *   shm_wait.c    spinning and sleeping
 *   shm_peer.c    the table of peers
 *   shm_connect.c how two processes connect
 *   shm_helper.c  the helper thread: connections, deaths, doorbells, unfinished work
 *   shm_wire.c    decoders
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
#define SHM_TOGETHER 8 /* moves in one system call */
#define SHM_SELF     0 /* the channel to ourselves */

/* ---- in the region --------------------------------------------------------------------------- */

/* Head of the NAL's part of a region. Each channel has a block: the ring, a bitmap of the
 * lines that held payload, and the pipe. The block is mapped when the channel is first used
 * (ptl_region_segment). */
struct shm_area {
	struct shm_sizes {
		uint32_t ring_bytes, pipe_bytes; /* of each channel; powers of two */
		uint32_t channels;               /* that have memory */
	} sizes;
	uint64_t scratch;        /* a peer tests its access rights here */
	uint64_t cpus[16];       /* processors the owner may run on */
	uint32_t calls_only;     /* PTL_PROGRESS=poll: the owner's helper thread moves no data */
	_Atomic uint32_t closed; /* the owner has closed its interface; it has not died */
	struct shm_channel channel[SHM_CHANNELS];
	struct ptl_stat_peer peer[SHM_CHANNELS];
};

/* ---- in this process ------------------------------------------------------------------------- */

struct shm_deferred {
	struct shm_deferred *next;
	struct shm_msg m;
	char payload[];
};

/* The observations of a peer's long messages of one class: see shm_path.c. */
struct shm_path {
	struct base_tuner of; /* 0: the pipe, 1: claims; counts groups of messages */
	uint32_t left;        /* messages until the group ends */
	uint64_t ns, bytes;   /* in this group */
};

enum shm_peer_state { SHM_CONNECTING, SHM_LIVE, SHM_GONE };

/* Guarded by our region's lock, except for what `users` protects. */
struct shm_peer {
	uint32_t index; /* of its channel in our region */
	uint32_t there; /* of our channel in its region */
	ptl_process_id_t id;
	uint32_t uid, jid;
	pid_t pid; /* -1: it is in another pid namespace */
	int sock;  /* hangs up when the process dies or closes its interface; carries doorbells */
	enum shm_peer_state state;
	uint64_t called;  /* when we first tried to connect */
	uint64_t crossed; /* when we heard that it calls us, too; 0: it does not */
	bool cma;         /* we may read and write its memory */
	bool dropped;     /* the program of one of us has ended the connection */
	bool polled;      /* on the list of polled channels */
	bool run_wanted;  /* on the list of peers to deliver for after leaving */
	bool unsure;      /* on the list of peers that may have left before they saw our push */
	uint32_t eager;   /* longest payload, in bytes, that its ring takes in one message */
	uint32_t run_for; /* messages of ours delivered on its behalf, not yet counted */
	/* Its memory could not be accessed during proxy delivery; settle() then clears `cma`. */
	bool refused;
	uint32_t users; /* threads that use `view` without our lock */
	struct ptl_view view;
	_Atomic bool following; /* a thread is updating `view` */
	_Atomic bool given_up;  /* updating `view` failed */
	struct shm_ring in;     /* its messages, in our region */
	struct shm_ring out;    /* our messages, in its region */
	struct shm_deferred *deferred, **deferred_end;
	size_t deferred_bytes;
	uint64_t sent;
	uint64_t came;       /* head of `in` when we last sent it something */
	uint64_t sent_then;  /* `sent` when it last sent something that ends a waiting call */
	uint64_t away_since; /* when it was first seen outside while it had work */
	uint32_t fill_at, drain_at; /* slots of the pipes to it and from it to search first */
	uint64_t pipe_since;        /* when a pipe that we drain ran empty */
	struct shm_path path[SHM_LENGTH_CLASSES];
	uint32_t timed; /* paths that are being timed now */
	/* when its first delivery began or one ended; 0: there is none, or it is not timed */
	uint64_t busy_since;
	struct shm_peer *next_run, *next_gone, *next_unsure;
};

/* The helper thread's knowledge of the application's leaves from a biased lock. It must poll our
 * rings some time after each leave (portals/engine/lock.h). */
enum shm_left {
	SHM_LEFT_ASLEEP, /* it polls nothing and must be woken */
	SHM_LEFT_POLLED, /* it has polled since the last leave it knows of */
	SHM_LEFT_UNSEEN, /* a leave has happened since it last polled */
};

struct shm {
	struct ptl_ni *ni;
	struct shm_area *area;
	struct shm_sizes sizes; /* a private copy: peers could change the area's */
	struct shm_peer *peer[SHM_CHANNELS];
	/* the rings in our region: mapped at first use, then kept */
	struct shm_ring in[SHM_CHANNELS];
	/* See shm_peer_ended(). Not in shm_peer, as a thread that waits for the lock reads
	 * them. */
	_Atomic int life[SHM_CHANNELS];
	/* `life` is another descriptor of the socket, not a pidfd */
	_Atomic bool by_socket[SHM_CHANNELS];
	_Atomic pid_t pid[SHM_CHANNELS];
	_Atomic uint32_t live[SHM_CHANNELS]; /* channels to poll */
	_Atomic uint32_t nlive;
	uint32_t slots[2 * SHM_CHANNELS]; /* open hash of peers by id: index + 1 */
	struct shm_peer *last;            /* the peer that was looked up last */
	struct shm_peer *run;             /* peers to deliver for when we leave */
	struct shm_peer *unsure;          /* peers to check again in a while */
	struct shm_peer *gone;            /* peers to free when nobody uses them */
	_Atomic uint32_t left;            /* enum shm_left */
	struct shm_helper *helper;
	struct shm_wait {
		uint64_t since;     /* when the wait in progress first found nothing; 0: not yet */
		uint64_t spin_ns;   /* how long spinning pays, as learnt from recent waits */
		uint32_t waits;     /* until the next check of how often we lose the core */
		uintptr_t thread;   /* that made the check */
		uint64_t waited_ns; /* how long others had run in its place by then */
		uint64_t seen_at;   /* when the check was made */
		uint64_t oversubscribed_until, oversubscribed_ns;
		/* Yields in the wait in progress, and how many came back late. Waits to skip
		 * yielding for, now and after the next one that yields in vain. */
		uint32_t yields, late, no_yields, no_yields_next;
		uint32_t outside; /* yields left that are made without the lock */
		bool final_poll;  /* the last poll before a sleep: do all that we can do now */
	} wait;
	/* The line where an answer to the message just received would begin. It is prefetched
	 * when the call leaves; NULL: no answer is expected. The line may be unmapped by then:
	 * a prefetch is no access. */
	const void *answer;
	uint32_t eager;
	/* when oversubscribed; 0: claims, 1: the pipe */
	struct base_tuner in_turns[SHM_LENGTH_CLASSES];
};

static inline struct shm *shm_of(const struct ptl_ni *ni)
{
	return ni->nal_state;
}

/* Return whether the owner of this region is inside the library. */
static inline bool shm_attends(const struct ptl_view *v)
{
	return ptl_lock_attended(v->r);
}

/* ---- shm_ring.c ------------------------------------------------------------------------------ */

size_t shm_area_bytes(void);
/* nal_ops.far_bytes */
uint64_t shm_channel_bytes(uint64_t most);
void shm_area_init(struct shm_area *a, const struct ptl_view *v);
/* Check that a region, itself checked before, holds an area, and copy its sizes. 0 or -EPROTO. */
int shm_area_check(const struct ptl_view *v, struct shm_sizes *sizes);
/* Map a channel of a region whose file is `fd`. 0, or a negative errno. */
int shm_ring_init(struct shm_ring *r, const struct ptl_view *v, int fd, uint32_t channel,
		  const struct shm_sizes *sizes);
void shm_ring_unmap(struct shm_ring *r);
/* Empty a channel for its next peer. Give its memory back, unless the file's size is bounded. */
void shm_ring_reset(struct shm_ring *r, bool bounded);

/* ---- shm_copy.c ------------------------------------------------------------------------------ */

/* A range of an MD in some process. */
struct shm_span {
	const struct ptl_view *v;
	pid_t pid; /* 0: this process */
	uint32_t md;
	uint64_t offset;
};

/* Return the address of `len` bytes of a span, or NULL unless they are ours, contiguous and
 * few enough to be copied inline. */
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

/* Each moves `len` bytes. Returns PTL_NI_OK or the failure; the span must lie within its MD. */
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

/* Copy between a buffer of ours and runs of a span, which must lie in it. `in`: into the runs;
 * else out of them. */
ptl_ni_fail_t shm_copy_runs(const struct shm_span *there, const ptl_atomic_runs_t *runs, char *here,
			    bool in);
/* Copy between two MDs, at least one of them ours. */
ptl_ni_fail_t shm_copy(const struct shm_span *to, const struct shm_span *from, uint64_t len);
/* Move several ranges in one system call. False: each must be moved by itself. */
struct shm_move {
	struct shm_span to, from;
	uint64_t len;
};
bool shm_copy_together(const struct shm_move *moves, unsigned int n);
/* Return whether we may read and write the memory of `pid`. Reads 8 bytes at `remote` there,
 * which must equal `expect`, and writes 8 bytes at `scratch`. False: errno may say why. */
bool shm_copy_allowed(pid_t pid, uint64_t remote, uint64_t expect, uint64_t scratch);

/* ---- shm_send.c ------------------------------------------------------------------------------ */

/* nal_ops.knows, .connect, .failed_over and .send */
bool shm_knows(struct ptl_ni *ni, ptl_process_id_t target);
bool shm_connect(struct ptl_ni *ni, ptl_process_id_t target);
const char *shm_failed_over(struct ptl_ni *ni, ptl_process_id_t id);
int shm_start(struct ptl_ni *ni, const struct ptl_start *s);
/* nal_ops.segment */
uint64_t shm_segment(struct ptl_ni *ni, ptl_process_id_t target);
/* Write the payload of *m, from an MD or from `bytes`. */
void shm_fill_payload(char *to, const struct shm_msg *m, const struct shm_span *payload,
		      const void *bytes);
/* Return whether peers, including us, may deliver on behalf of its owner. */
static inline bool shm_may_run(const struct shm_peer *p)
{
	return p->cma && !atomic_load_explicit(&p->view.r->no_run, memory_order_relaxed);
}
/* Send one message. Fill in what shm_send_begin returns: its place in the ring or, if it must
 * be deferred, *spare. shm_send_end then sends it, with a payload from an MD or from `bytes`.
 * Locked. */
struct shm_msg *shm_send_begin(struct shm_peer *p, uint32_t size, struct shm_msg *spare);
void shm_send_end(struct shm *s, struct shm_peer *p, struct shm_msg *m, const struct shm_msg *spare,
		  const struct shm_span *payload, const void *bytes);
bool shm_flush_deferred(struct shm *s, struct shm_peer *p);
/* Call after a push: ensure that somebody delivers the message. Locked. */
void shm_after_push(struct shm *s, struct shm_peer *p);
/* Check again the peers that seemed to be inside when we pushed. Call a few microseconds after
 * the push or later. Locked. */
void shm_settle_unsure(struct shm *s);
/* Wake p if it sleeps in a wait, else its helper thread, unless p delivers in calls only. */
void shm_notify(struct shm *s, struct shm_peer *p);

/* ---- shm_run.c ------------------------------------------------------------------------------- */

/* Process up to `most` messages from each peer. True if there was something. Locked. */
bool shm_take_all(struct shm *s, unsigned int most);
/* Return whether messages, or room to be announced, are there. Not locked: it polls only rings
 * in our own region, which stay mapped. Runs after the barrier of the unlock, which pairs with
 * the producer's barrier between setting want_space and its last check for room. */
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
/* Process our ring in p's region on p's behalf. Not locked; p->users keeps the region mapped. */
void shm_deliver_for(struct shm *s, struct shm_peer *p);

/* ---- shm_leave.c ----------------------------------------------------------------------------- */

void shm_leave(struct ptl_ni *ni, bool lazily);

/* ---- shm_long.c ------------------------------------------------------------------------------ */

/* Claim chunks, or fill or drain a slot, for each of the oldest long messages in flight with
 * each peer. Our own halves come first, then the other side's. Locked. True if any byte moved,
 * or if a peer that just left should be polled again at once. */
bool shm_long_step(struct shm *s);
/* The same, only for messages whose other side is not inside the library. */
bool shm_long_alone(struct shm *s);
static inline bool shm_long_any(const struct shm *s)
{
	return s->ni->view.r->flowing;
}
/* Set the chunk fields of a delivery whose data may come through the pipe of *r. */
void shm_long_chunks(struct ptl_delivery *l, const struct shm_ring *r);

/* ---- shm_path.c ------------------------------------------------------------------------------ */

/* Return the class of a long message, below SHM_LENGTH_CLASSES. Bounds are powers of 4, placed
 * away from powers of 2. */
static inline unsigned int shm_path_of(uint64_t length)
{
	unsigned int k = 0;

	while (k < SHM_LENGTH_CLASSES - 1 && length >= 24576ull << 2 * k)
		k++;
	return k;
}
void shm_path_init(struct shm_peer *p);
/* Tell the peer, if it does not know yet, which path we want for what comes from it. */
void shm_path_advertise(const struct shm *s, struct shm_peer *p, uint64_t length);
/* When oversubscribed: time a copy of message data to its destination, `piped` if out of a
 * pipe. Pass the result of shm_path_moving() to shm_path_moved() as `since`. */
uint64_t shm_path_moving(const struct shm *s, uint64_t length);
void shm_path_moved(struct shm *s, uint64_t length, uint64_t since, uint64_t bytes, bool piped);
/* A delivery of a message from p begins or ends. Called by the owner of the region, locked. */
void shm_path_began(const struct shm *s, struct shm_peer *p);
void shm_path_ended(struct shm *s, struct shm_peer *p, uint64_t length);

/* ---- shm_wait.c ------------------------------------------------------------------------------ */

/* nal_ops.idle */
bool shm_idle(struct ptl_ni *ni, unsigned int idle, uint64_t deadline);
/* Something came: the wait was worth its spinning. */
void shm_wait_over(struct shm *s);

/* ---- shm_stopped.c --------------------------------------------------------------------------- */

/* Let a stopped process run, for a tenth of a second at most, while *word & mask is `value`.
 * Afterwards it is stopped again unless somebody continued it. False: *word is unchanged;
 * perhaps we may not trace it, or another tracer does. */
bool shm_let_run(pid_t pid, _Atomic uint32_t *word, uint32_t mask, uint32_t value);

/* ---- shm_peer.c ------------------------------------------------------------------------------ */

struct shm_peer *shm_peer_find(struct shm *s, ptl_process_id_t id);
/* NULL: no channel or memory is left. */
struct shm_peer *shm_peer_add(struct shm *s, ptl_process_id_t id);
/* The peer's region is `view` and p->out is in it: messages flow from now on. */
void shm_peer_live(struct shm *s, struct shm_peer *p, const struct ptl_view *view);
/* Poll its ring from now on: a peer's when it is connected, our own from its first message.
 * Locked. */
void shm_peer_poll(struct shm *s, struct shm_peer *p);
/* Map what its owner has extended the region by. False: it cannot be mapped, and the peer will
 * be given up. Holds our lock, or the peer's. */
bool shm_peer_follow_any(struct shm *s, struct shm_peer *p);
static inline bool shm_peer_follow(struct shm *s, struct shm_peer *p)
{
	return __builtin_expect(ptl_region_followed(&p->view), 1) || shm_peer_follow_any(s, p);
}
/* Decide anew whether a wait may spin. */
void shm_peer_count_cores(struct shm *s);
/* It is dead or unreachable, `why`: fail everything in flight. */
void shm_peer_failed(struct shm *s, struct shm_peer *p, ptl_ni_fail_t fail, const char *why);
/* Return whether the process of this channel has ended. Its pidfd tells. Where pidfds are
 * refused, or in another pid namespace, its socket tells by hanging up. Not locked. */
bool shm_peer_ended(const struct shm *s, uint32_t channel);
/* Free failed peers that nobody uses any more; `all`: also those in use,
 * before the region is unmapped. */
void shm_peer_reap(struct shm *s, bool all);

/* ---- shm_connect.c --------------------------------------------------------------------------- */

/* nal_ops.drop */
void shm_drop(struct ptl_ni *ni, ptl_process_id_t id);

/* Connect p, which was just added. Waits a bounded time with the lock released; p may be gone
 * afterwards. */
void shm_connect_now(struct shm *s, struct shm_peer *p);

/* ---- shm_helper.c ---------------------------------------------------------------------------- */

int shm_helper_open(struct shm *s, ptl_pid_t want);
void shm_helper_close(struct shm *s);
/* Wake the helper thread of a peer, or our own. */
void shm_helper_doorbell(struct shm_peer *p);
void shm_helper_kick(struct shm *s);
/* The application left a biased lock and the helper thread does not know it. */
void shm_helper_left(struct shm *s);
/* nal_ops.forked */
void shm_helper_forked(struct ptl_ni *ni);

#endif
