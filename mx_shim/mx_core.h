/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The objects of the library: boards, endpoints, partners, requests, messages that came before
 * their receive.
 *
 * Four kinds of messages (mx_wire.h) go to one match list, the endpoint's data portal:
 *
 *   long posted receives, in order | blocks for up to 32 KiB | an entry that takes headers only
 *
 * Receives of up to 32 KiB wait in this library (mx_match.c). A message for them comes to the
 * inline handler or lies in a block. A longer receive waits in Portals, so that a long put goes
 * there while the program computes. It does so only if no older receive waits in the library.
 * Therefore Portals' list is always older than the library's, and messages match in order.
 *
 * Each partner has a share of the endpoint's event slots and block bytes (mx_credit.c). A sender
 * without a slot keeps its message. One that lacks bytes sends a long message's header only.
 *
 * One lock guards an endpoint and all that belongs to it. The process's lock is taken before it.
 * Nothing calls back into the program with either. Memory of endpoints and requests is never
 * freed, so handles are checked without a lock of their own.
 */
#ifndef MX_SHIM_CORE_H
#define MX_SHIM_CORE_H

#include <mx_extensions.h>
#include <portals3_ext.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mx_shim/mx_error.h"
#include "mx_shim/mx_seen.h"
#include "mx_shim/mx_wire.h"

enum {
	MXS_BOARDS = PTL_MAX_INTERFACES,
	MXS_SLOTS = 256,     /* endpoints of a process */
	MXS_ENDPOINTS = 256, /* ids of a board */
	MXS_PIDS = 64,       /* pids of a host that are tried outside a job */
	MXS_SMALL = 4096,    /* up to this a message is never sent as a header alone */
	MXS_PIO_MOST = 128,
	MXS_BLOCK = 65536, /* bytes of a block */
	MXS_DATA_EVENTS = 4096,
	MXS_OWN_EVENTS = 8192,
	MXS_CONTROL_EVENTS = 2048, /* of these: what partners may send unasked */
	MXS_ARMED_MOST = 400,      /* receives that wait in Portals */
	MXS_NEWCOMER_SLOTS = 2,
	MXS_NEWCOMER_BYTES = 4096,
	MXS_NEWCOMERS = 256,    /* who connect and may send without asking again */
	MXS_TICKETS = 192,      /* slots for those who ask by id: responders, and late ones */
	MXS_MANY_TICKETS = 32,  /* are exposed at once when they are free */
	MXS_TICKET_ENTRIES = 8, /* entries of records with a slot for those who ask by id */
	MXS_CLASSES = 8,        /* masks of receives that have a table */
	MXS_BUCKETS = 1024,
	MXS_CHUNK = 256, /* requests made at a time */
	MXS_CHUNKS = 16384,
};

/* Entries of the connect portal, in the order of making: the last one is looked at first. */
enum mxs_exposed {
	MXS_EXPOSED_BAD_KEY,
	MXS_EXPOSED_KEY_LATE,
	MXS_EXPOSED_KEY,
	MXS_EXPOSED_ID_LATE,
	MXS_EXPOSED_LIFE,
	MXS_ASK_ENTRIES
};

/* ---- lists ----------------------------------------------------------------------------------- */

struct mxs_link {
	struct mxs_link *next, *prev;
};

#define MXS_OF(link, type, field) ((type *)(void *)((char *)(link)-offsetof(type, field)))

static inline void mxs_list_init(struct mxs_link *list)
{
	list->next = list->prev = list;
}

static inline bool mxs_list_empty(const struct mxs_link *list)
{
	return list->next == list;
}

static inline void mxs_list_append(struct mxs_link *list, struct mxs_link *l)
{
	l->prev = list->prev;
	l->next = list;
	list->prev->next = l;
	list->prev = l;
}

/* The link may be in no list, and is in none afterwards. */
static inline void mxs_list_remove(struct mxs_link *l)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed was taken out of its lists */
	l->prev->next = l->next;
	l->next->prev = l->prev;
	mxs_list_init(l);
}

/* ---- objects --------------------------------------------------------------------------------- */

struct mxs_board {
	bool open;
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_handle_me_t closed_me; /* answers for what is not open here */
	ptl_handle_me_t lost_me;   /* answers reads of memory that was taken back, with no bytes */
	unsigned char closed_record[MXS_RECORD_BYTES];
	bool in_job; /* pids are the job's, not slots */
};

/* One life of an endpoint that this one exchanges messages with. */
struct mxs_partner {
	struct mxs_endpoint *ep;
	struct mxs_partner *next; /* of its bucket */
	bool entered;             /* in the table of addresses, and so for ever */
	uint32_t index;           /* there */
	uint32_t check;           /* of addresses */
	ptl_process_id_t id;
	uint32_t eid, tag;
	uint32_t session; /* 0: known by its tag only, from a message */
	uint32_t life;    /* as its messages tell it; UINT32_MAX: none has */
	uint32_t portal;
	bool known;            /* its record is here */
	bool asked;            /* its record has been asked for */
	bool replaced;         /* another life took its place in the table */
	mx_status_code_t dead; /* how requests end that need it; SUCCESS: it lives */
	void *context;
	/* what it lets us send, what was sent: counters that only grow */
	uint32_t may_slots, may_bytes, sent_slots, sent_bytes;
	/* what it may send more than was consumed; consumed; told */
	uint32_t share_slots, share_bytes, got_slots, got_bytes, said_slots, said_bytes;
	bool met;               /* it has sent something */
	bool shared;            /* and was given a share, if there was one */
	bool informed;          /* how much it lets us send, by itself */
	bool late;              /* it lets us send one message at a time, which we ask for */
	uint64_t asked_ms;      /* when we did */
	struct mxs_link due;    /* in the list of those that are told more */
	struct mxs_link queue;  /* sends that wait for credit, room or the record */
	struct mxs_link ops;    /* requests that wait for its answer */
	uint64_t checked_ms;    /* when it was known to live, while something is pending */
	struct mxs_link active; /* in the list of partners with pending requests */
};

enum mxs_type { MXS_FREE, MXS_SEND, MXS_RECV, MXS_CONNECT, MXS_PROBE };

enum mxs_state {
	MXS_QUEUED,  /* send: in its partner's queue */
	MXS_ON_WIRE, /* send, probe: begun */
	MXS_POSTED,  /* receive: waits in the library */
	MXS_ARMED,   /* receive: waits in Portals */
	MXS_GETTING, /* receive: matched, the bytes are on their way; connect: asks */
	MXS_DONE,
};

struct mxs_request {
	struct mxs_link link; /* bucket of receives, a partner's queue or ops, or completed ones */
	struct mxs_link all;  /* all that are pending */
	struct mxs_endpoint *ep;
	uint32_t index, gen;
	enum mxs_type type;
	enum mxs_state state;
	enum mxs_wire_kind kind;
	bool forgotten;
	bool hidden; /* a call of its own waits for it: it is not among the completed ones */
	bool sync;
	bool copy; /* of a short send that is over for the program, until the partner reads it */
	bool send_ended, answered; /* of a put that is acknowledged */
	mx_status_code_t doomed;   /* ends so as soon as Portals lets its memory go */
	mx_status_t status;
	uint64_t mask, age; /* of receives; age: of the message, too */
	uint32_t class;     /* MXS_CLASSES: in the overflow list */
	mx_segment_t one, *segs;
	uint32_t nsegs, length;
	struct mxs_partner *partner;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	uint32_t number;      /* MXS_NUMBERS: none */
	uint32_t peer_number; /* receive: of the send whose bytes are read */
	uint32_t room;        /* events reserved */
	uint64_t deadline_ms; /* 0: none */
	/* connects and probes */
	struct mxs_request *owner; /* probe: its connect */
	uint32_t owner_gen;
	ptl_process_id_t to;
	uint64_t nic_id;
	uint32_t eid, key, probes, stage, closed;
	uint64_t begun_ms;
	unsigned char record[MXS_RECORD_BYTES];
};

/* A message that no receive has matched. */
struct mxs_unexp {
	struct mxs_link all, bucket;
	struct mxs_partner *partner;
	uint64_t match;
	struct mxs_header h;
	uint32_t kept; /* bytes whose credit is withheld */
	unsigned char data[];
};

/* Receives with one mask. */
struct mxs_class {
	uint64_t mask;
	uint32_t count;
	struct mxs_link *bucket; /* MXS_BUCKETS, or NULL */
};

struct mxs_block {
	char *base;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
};

/* A process that has been given tickets and has not used them yet. */
struct mxs_holder {
	ptl_process_id_t id;
	uint32_t count;
	uint64_t checked_ms; /* when it took the last one, or was known to live */
	bool asked;          /* whether it lives */
};

struct mxs_endpoint {
	pthread_mutex_t lock;
	uint32_t slot;
	_Atomic uint32_t gen; /* odd: open */
	bool closing;
	struct mxs_board *board;
	uint32_t board_number, eid, key, session, tag;
	mx_error_handler_t handler; /* NULL: the process's */
	uint32_t ctx_bits, ctx_shift;
	int registry[2];
	struct mx_seen *seen;
	uint32_t eager_most;

	/* Portals */
	ptl_pt_index_t portal;
	ptl_handle_eq_t eq[3]; /* data, own, of the thread that sleeps in Portals */
	ptl_handle_me_t anchor, header_me, control_me, wake_me, ask_me[MXS_ASK_ENTRIES];
	struct {
		ptl_handle_me_t me;
		ptl_handle_md_t md;
	} ticket[MXS_TICKET_ENTRIES];
	struct mxs_block *block;
	uint32_t blocks;
	unsigned char record[MXS_RECORD_BYTES], ticket_record[MXS_RECORD_BYTES];
	unsigned char no_slots[MXS_RECORD_BYTES], bad_key[MXS_RECORD_BYTES];
	uint32_t tickets; /* slots that those who ask by id may have in addition */
	struct mxs_holder *holder;
	uint32_t holders, holders_room;
	char data_tag, control_tag; /* their addresses are user_ptr of descriptors */
	uint32_t room;              /* events of eq[1] that are not reserved */

	/* requests */
	struct mxs_request **chunk;
	uint32_t chunks;
	struct mxs_link free_requests, pending, done;
	struct mxs_request *by_number[MXS_NUMBERS];
	uint32_t next_number, numbers;
	uint32_t copies;             /* pending copies of short sends, less those to itself */
	uint32_t timeout_ms;         /* default of requests */
	uint32_t timed;              /* pending requests with a deadline, or doomed ones */
	struct mxs_link to_get;      /* receives that wait for room to read */
	struct mxs_link to_ask;      /* connects */
	struct mxs_link ended_badly; /* forgotten requests for the error handler */

	/* receives and messages */
	struct mxs_class class[MXS_CLASSES];
	struct mxs_link other_masks;
	uint32_t posted, armed, classes;
	uint64_t age; /* of the last receive or message */
	struct mxs_link unexpected, *unexp_bucket;
	uint32_t unexps;
	struct mxs_link arrived; /* messages that the unexpected handler is yet to see */
	uint64_t kept_bytes;
	mx_unexp_handler_t unexp_handler;
	mx_matching_callback_t unexp_callback;
	void *unexp_context;
	bool in_handler, progression_off;
	pthread_t handler_thread;
	pthread_cond_t handler_left;

	/* partners */
	struct mxs_partner *self;
	struct mxs_partner **partner_bucket;
	uint32_t partners, newcomers, shares;
	struct mxs_link credit_due, active;
	struct mxs_done_answer *answers; /* answers to senders that are to be given */
	uint32_t nanswers, answers_room;
	bool queues_due; /* something has made queued sends possible */

	/* waiting */
	pthread_cond_t cond;
	uint32_t waiters, sleepers; /* threads in waits; of them on the condition */
	bool polling, kicked;       /* one sleeps in Portals; and is being woken */
	uint32_t wakeups;
	uint64_t completions, announced; /* the latter: of which waiting threads know */
	uint64_t ticked_ms;
	uint32_t rounds;
	bool yield_due;
	char *gather; /* MXS_EAGER_MOST bytes */
};

/* A DONE that is to be sent when Portals can be called. */
struct mxs_done_answer {
	ptl_process_id_t to;
	uint32_t eid, tag, number, bytes;
};

enum mxs_counter {
	MXS_SENT_EAGER,
	MXS_SENT_SYNC,
	MXS_SENT_PULL,
	MXS_SENT_DIRECT,
	MXS_SEND_WAITED,
	MXS_RECV_EXPECTED,
	MXS_RECV_UNEXPECTED,
	MXS_RECV_DIRECT,
	MXS_RECV_READ,
	MXS_CREDITS_SENT,
	MXS_CREDITS_GOT,
	MXS_CONNECTS,
	MXS_CHECKS,
	MXS_PARTNERS_LOST,
	MXS_DROPPED,
	MXS_TRUNCATED,
	MXS_COUNTERS
};
extern const char *const mxs_counter_label[MXS_COUNTERS];

static inline void mxs_count(struct mxs_endpoint *ep, enum mxs_counter which)
{
	mx_seen_count(ep->seen, which);
}

/* ---- the process: mx_init.c, mx_names.c ------------------------------------------------------ */

struct mxs_process {
	pthread_mutex_t lock;
	_Atomic bool initialized;
	bool configured;
	struct mxs_board board[MXS_BOARDS];
	struct mxs_endpoint *_Atomic endpoint[MXS_SLOTS];
	/* settings, read by the first open */
	uint32_t rndv, ctx_bits, ctx_shift, any_endpoint, first_pid;
	int64_t spin_ns;
};
extern struct mxs_process mxs;

uint32_t mxs_boards(void);
/* Reads the settings, once. With the process's lock, as the next. */
void mxs_configure(void);
/* Opens the interface of a board, if that is not done. */
mx_return_t mxs_board_open(uint32_t number, uint32_t want_eid);
uint64_t mxs_nic_id(uint32_t board, ptl_nid_t nid);
/* False: no NIC of ours looks like this. */
bool mxs_nic_parts(uint64_t nic_id, uint32_t *board, ptl_nid_t *nid);
ptl_nid_t mxs_board_nid(uint32_t board);
uint64_t mxs_now_ms(void);

/* ---- ids on this host: mx_registry.c --------------------------------------------------------- */

/* Claims an id on this host. False: another endpoint has it. */
bool mxs_registry_claim(uint32_t board, ptl_process_id_t id, uint32_t eid, int fd[2]);
void mxs_registry_release(int fd[2]);
/* The pids, less the first of the range, that endpoints on this host have. */
uint64_t mxs_registry_pids(uint32_t board, ptl_nid_t nid);
/* The process on this host that has an id. 1: found, 0: nobody, -1: that cannot be told. */
int mxs_registry_find(uint32_t board, ptl_nid_t nid, uint32_t eid, ptl_pid_t *pid);

/* ---- endpoints: mx_endpoint.c ---------------------------------------------------------------- */

/* The open endpoint of a handle, locked, or NULL. */
struct mxs_endpoint *mxs_enter(mx_endpoint_t handle);
void mxs_leave(struct mxs_endpoint *ep);
mx_endpoint_t mxs_endpoint_handle(const struct mxs_endpoint *ep);
/* Tells the error handler of a request's end, if that is a failure. With no lock. */
mx_return_t mxs_status_failed(mx_error_handler_t handler, const char *call, mx_status_code_t code);

/* ---- requests: mx_request.c ------------------------------------------------------------------ */

struct mxs_request *mxs_request_new(struct mxs_endpoint *ep, enum mxs_type type);
void mxs_request_free(struct mxs_request *r);
mx_request_t mxs_request_handle(const struct mxs_request *r);
/* The live request of a handle; NULL: stale, foreign or invented. */
struct mxs_request *mxs_request_of(struct mxs_endpoint *ep, mx_request_t handle);
/* The endpoint, locked, of a request's handle; for calls that are not given it. */
struct mxs_endpoint *mxs_enter_by_request(mx_request_t handle);
/* Makes a request with a copy of the list. MX_SUCCESS, MX_BAD_SEG_*, MX_NO_RESOURCES. */
mx_return_t mxs_request_begin(struct mxs_endpoint *ep, enum mxs_type type, const mx_segment_t *segs,
			      uint32_t nsegs, struct mxs_request **request);
void mxs_complete(struct mxs_request *r, mx_status_code_t code);
void mxs_scatter(struct mxs_request *r, const void *data, uint32_t bytes);
void mxs_gather(const struct mxs_request *r, char *to);
ptl_md_t mxs_request_md(const struct mxs_request *r, uint32_t bytes, ptl_md_iovec_t *iov);
/* Takes events of eq[1] for a request. False: not that many are left. */
bool mxs_reserve(struct mxs_request *r, uint32_t events);
bool mxs_number(struct mxs_request *r);
/* Lets go of the request's Portals objects. False: one is in use now. */
bool mxs_release(struct mxs_request *r);
/* Ends a request early, now or as soon as Portals lets its memory go. */
void mxs_doom(struct mxs_request *r, mx_status_code_t code);
/* Takes a receive out of Portals' list. False: a message has matched it. */
bool mxs_disarm(struct mxs_request *r);
/* Ends requests whose time is over, and doomed ones that can be let go of. */
void mxs_requests_tick(struct mxs_endpoint *ep, uint64_t now);
void mxs_set_deadline(struct mxs_request *r, uint32_t ms);

/* ---- partners: mx_partner.c ------------------------------------------------------------------ */

mx_endpoint_addr_t mxs_addr(const struct mxs_partner *p);
/* The partner that an address names, if `ep` (NULL: any endpoint) has it; else NULL. */
struct mxs_partner *mxs_partner_of(const struct mxs_endpoint *ep, mx_endpoint_addr_t addr);
/* The partner with this tag, made if need be. NULL: out of memory. */
struct mxs_partner *mxs_partner_get(struct mxs_endpoint *ep, ptl_process_id_t id, uint32_t eid,
				    uint32_t tag);
/* The partner that has exposed this record; one of another life with its tag is replaced. */
struct mxs_partner *mxs_partner_of_record(struct mxs_endpoint *ep, ptl_process_id_t id,
					  const struct mxs_record *record);
/* The partner that has sent a message, made if need be. NULL: out of memory. */
struct mxs_partner *mxs_partner_of_message(struct mxs_endpoint *ep, ptl_process_id_t id,
					   const struct mxs_header *h);
/* Is this its session, as far as is known? */
bool mxs_partner_has_session(const struct mxs_partner *p, uint32_t session);
void mxs_partner_learn(struct mxs_partner *p, const struct mxs_record *record);
void mxs_partner_fail(struct mxs_partner *p, mx_status_code_t code);
/* Its record has come again, for one who asked for a slot. */
void mxs_partner_granted(struct mxs_partner *p, const struct mxs_record *record);
/* A request begins to wait for the partner. */
void mxs_partner_wait(struct mxs_partner *p, struct mxs_link *list, struct mxs_request *r);
/* The partner with this tag, if it is known and lives; makes and changes nothing. */
struct mxs_partner *mxs_partner_find(struct mxs_endpoint *ep, ptl_process_id_t id, uint32_t eid,
				     uint32_t tag);
void mxs_partners_tick(struct mxs_endpoint *ep, uint64_t now);
void mxs_partners_free(struct mxs_endpoint *ep);

/* ---- credit: mx_credit.c --------------------------------------------------------------------- */

bool mxs_blocks_add(struct mxs_endpoint *ep, uint32_t count);
void mxs_block_unlinked(struct mxs_endpoint *ep, ptl_handle_md_t md);
/* A message of a partner has been taken out of the event queue. */
void mxs_credit_message(struct mxs_partner *p);
/* Bytes that a partner may send again. */
void mxs_credit_bytes(struct mxs_partner *p, uint32_t bytes);
void mxs_credits_send(struct mxs_endpoint *ep);
bool mxs_credit_withheld(const struct mxs_endpoint *ep, uint32_t bytes);
/* Makes the records that are exposed. */
void mxs_records_make(struct mxs_endpoint *ep);
/* Exposes slots that have become free to those who ask by id. */
void mxs_tickets_give(struct mxs_endpoint *ep);
/* A process takes a ticket. */
void mxs_ticket_taken(struct mxs_endpoint *ep, ptl_process_id_t by);
/* A process that holds tickets has been asked whether it lives. */
void mxs_holder_answered(struct mxs_endpoint *ep, ptl_process_id_t id, bool lives);
void mxs_holders_tick(struct mxs_endpoint *ep, uint64_t now);

/* ---- sends: mx_send.c ------------------------------------------------------------------------ */

void mxs_queue_run(struct mxs_partner *p);
void mxs_queues_run(struct mxs_endpoint *ep);
void mxs_send_event(struct mxs_request *r, const ptl_event_t *ev);
void mxs_send_done(struct mxs_endpoint *ep, ptl_process_id_t from, const struct mxs_control *c);

/* ---- receives: mx_match.c, mx_recv.c --------------------------------------------------------- */

uint32_t mxs_hash(uint64_t bits);
void mxs_posted_add(struct mxs_endpoint *ep, struct mxs_request *r);
void mxs_posted_remove(struct mxs_request *r);
/* The oldest posted receive that matches, taken out; NULL: none. */
struct mxs_request *mxs_posted_match(struct mxs_endpoint *ep, uint64_t match);
void mxs_unexp_add(struct mxs_endpoint *ep, struct mxs_unexp *u);
struct mxs_unexp *mxs_unexp_find(struct mxs_endpoint *ep, uint64_t match, uint64_t mask);
void mxs_unexp_remove(struct mxs_endpoint *ep, struct mxs_unexp *u);
void mxs_unexp_free(struct mxs_endpoint *ep, struct mxs_unexp *u);

/* A message has come; `data` are its bytes, if they came with it. */
void mxs_arrive(struct mxs_endpoint *ep, ptl_process_id_t from, uint64_t match,
		const struct mxs_header *h, const void *data);
/* Gives a message to a receive that matches it. */
void mxs_deliver(struct mxs_request *r, struct mxs_partner *p, uint64_t match,
		 const struct mxs_header *h, const void *data);
void mxs_recv_event(struct mxs_request *r, const ptl_event_t *ev);
void mxs_gets_start(struct mxs_endpoint *ep);
void mxs_answers_send(struct mxs_endpoint *ep);
void mxs_answer_add(struct mxs_endpoint *ep, ptl_process_id_t to, const struct mxs_header *h,
		    uint32_t bytes);
/* Shows arrived messages to the unexpected handler; lets go of the lock meanwhile. */
void mxs_show_arrived(struct mxs_endpoint *ep);

/* ---- connecting: mx_connect.c ---------------------------------------------------------------- */

void mxs_connect_begin(struct mxs_request *r);
void mxs_connects_tick(struct mxs_endpoint *ep, uint64_t now);
bool mxs_ask(struct mxs_endpoint *ep, struct mxs_request *owner, ptl_process_id_t to, uint64_t bits,
	     struct mxs_partner *about);
void mxs_probe_event(struct mxs_request *probe, const ptl_event_t *ev);
/* A probe ends without an answer. */
void mxs_probe_lost(struct mxs_request *probe);

/* ---- completion: mx_test.c ------------------------------------------------------------------- */

/* MX_SUCCESS, MX_BAD_MATCH_MASK, or what is wrong with respect to context ids. A receive may leave
 * none of their bits open, `any` other call all of them as well. */
mx_return_t mxs_check_mask(const struct mxs_endpoint *ep, uint64_t match, uint64_t mask, bool any);

/* ---- progress: mx_progress.c ----------------------------------------------------------------- */

/* One round: takes in what has come, and does what follows. Lets go of the lock while the
 * unexpected handler runs. */
void mxs_progress(struct mxs_endpoint *ep);
/* A round of a caller that will sleep: what has to be looked at now and then. */
void mxs_tick(struct mxs_endpoint *ep);
/* Wakes the threads that sleep in waits. */
void mxs_kick(struct mxs_endpoint *ep);

void mxs_yield(void);

/* Tells waiting threads of what was completed. */
static inline void mxs_announce(struct mxs_endpoint *ep)
{
	ep->announced = ep->completions;
	if (ep->waiters)
		mxs_kick(ep);
}

/*
 * Waits until `done` says so, for `timeout` ms (0: for ever), or until mx_wakeup; with progress.
 * Returns what `done` said last. The endpoint is locked; it may be let go of meanwhile.
 */
bool mxs_wait(struct mxs_endpoint *ep, bool (*done)(struct mxs_endpoint *ep, void *arg), void *arg,
	      uint32_t timeout);

#endif
