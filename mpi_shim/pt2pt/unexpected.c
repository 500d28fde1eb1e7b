/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Messages that came before their receive: the blocks that hold short ones, and the list in
 * which a receive or a probe finds the first match, in order of arrival. A receive may leave
 * source, tag, or both open. So each message is filed under four keys, and found in constant
 * time by any of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/core/waiting.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/pt2pt/start.h"

#define KEYS         MPI_OPEN_KINDS
#define REWIND_BYTES 8192 /* bytes of a block that stay in the nearest cache */

#define SPARES_MOST 4096 /* entries kept for later messages; more are freed */

struct mpi_block {
	char *base;
	uint32_t live; /* messages in it that still wait for a receive */
	size_t used;   /* bytes from the start, by the events handled so far */
	ptl_handle_md_t md;
	struct mpi_link list;
};

struct bucket {
	struct mpi_unexpected *head, *tail;
};

static struct mpi_block block[MPI_BLOCKS];
static size_t block_size;
static struct bucket *table[KEYS];
static uint32_t buckets, filed;
static struct mpi_unexpected *spare;
static uint32_t spares;
static uint64_t keep_most; /* bytes of waiting messages beyond which credit is withheld */

/* ---- the list -------------------------------------------------------------------------------- */

static struct bucket *bucket_of_unexpected(int key, uint64_t bits)
{
	return &table[key][mpi_bits_hash(bits & ~mpi_open_bits[key]) & (buckets - 1)];
}

static void append_unexpected(struct bucket *b, int key, struct mpi_unexpected *u)
{
	u->link[key].next = NULL;
	u->link[key].prev = b->tail;
	if (b->tail)
		b->tail->link[key].next = u;
	else
		b->head = u;
	b->tail = u;
}

static void cut(struct bucket *b, int key, struct mpi_unexpected *u)
{
	struct mpi_link *l = &u->link[key];

	if (l->prev)
		l->prev->link[key].next = l->next;
	else
		b->head = l->next;
	if (l->next)
		l->next->link[key].prev = l->prev;
	else
		b->tail = l->prev;
}

/* Splits each bucket in two; the order within a bucket stays. When out of memory, the old
 * table remains in use. */
static bool grow_table(uint32_t size)
{
	struct bucket *wide[KEYS];

	for (int k = 0; k < KEYS; k++) {
		wide[k] = calloc(size, sizeof(*wide[k]));
		if (!wide[k]) {
			while (k-- > 0)
				free(wide[k]);
			return false;
		}
	}
	for (int k = 0; k < KEYS; k++) {
		struct bucket *old = table[k];
		uint32_t n = buckets;

		table[k] = wide[k];
		buckets = size;
		for (uint32_t i = 0; old && i < n; i++)
			for (struct mpi_unexpected *u = old[i].head, *next; u; u = next) {
				next = u->link[k].next;
				append_unexpected(bucket_of_unexpected(k, u->bits), k, u);
			}
		buckets = n;
		free(old);
	}
	buckets = size;
	return true;
}

static void file(struct mpi_unexpected *u)
{
	uint64_t *counts = mpi_world.counts;

	if (++filed > buckets)
		grow_table(buckets * 2);
	for (int k = 0; k < KEYS; k++)
		append_unexpected(bucket_of_unexpected(k, u->bits), k, u);
	counts[MPI_COUNT_UNEXPECTED_NOW] = filed;
	if (filed > counts[MPI_COUNT_UNEXPECTED_MOST])
		counts[MPI_COUNT_UNEXPECTED_MOST] = filed;
}

static inline struct mpi_unexpected *find_unexpected(uint64_t bits, unsigned int open)
{
	const int k = (int)open;
	struct mpi_unexpected *u;

	if (!filed)
		return NULL;
	u = bucket_of_unexpected(k, bits)->head;
	while (u && (u->bits ^ bits) & ~mpi_open_bits[k])
		u = u->link[k].next;
	return u;
}

struct mpi_unexpected *mpi_unexpected_find(uint64_t bits, unsigned int open)
{
	struct mpi_unexpected *u;

	do
		u = find_unexpected(bits, open);
	while (u && mpi_bits_long(u->bits) && mpi_cancel_drain());
	return u;
}

static void unlist_unexpected(struct mpi_unexpected *u)
{
	for (int k = 0; k < KEYS; k++)
		cut(bucket_of_unexpected(k, u->bits), k, u);
	mpi_world.counts[MPI_COUNT_UNEXPECTED_NOW] = --filed;
}

static int no_claim(int err)
{
	return mpi_fail(MPI_ERR_NO_MEM, "no room to claim one more message: %s",
			PtlErrorStr((unsigned int)err));
}

int mpi_unexpected_take(struct mpi_unexpected **u)
{
	int err = mpi_bits_long((*u)->bits) ? mpi_cancel_claim(*u) : PTL_OK;

	if (err == PTL_MD_NO_UPDATE) {
		mpi_cancel_drain();
		*u = NULL;
		return MPI_SUCCESS;
	}
	if (err != PTL_OK)
		return no_claim(err);
	unlist_unexpected(*u);
	return MPI_SUCCESS;
}

bool mpi_unexpected_cancel(uint64_t bits, uint64_t hdr, ptl_process_id_t from)
{
	struct mpi_unexpected *u = mpi_bits_long(bits) ? find_unexpected(bits, 0) : NULL;

	while (u && (u->bits != bits || u->hdr != hdr || u->from.nid != from.nid ||
		     u->from.pid != from.pid))
		u = u->link[0].next;
	if (!u)
		return false;
	unlist_unexpected(u);
	mpi_unexpected_free(u);
	return true;
}

struct mpi_unexpected_sum mpi_unexpected_count(uint32_t context)
{
	const uint64_t bits = mpi_bits(0, context, 0, 0);
	struct mpi_unexpected_sum sum = { 0, 0 };

	for (uint32_t i = 0; i < buckets; i++)
		for (const struct mpi_unexpected *u = table[0][i].head; u; u = u->link[0].next) {
			if ((u->bits ^ bits) & MPI_BITS_CTX)
				continue;
			sum.messages++;
			sum.bytes += (uint64_t)u->bytes;
		}
	return sum;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static ptl_md_t block_md(struct mpi_block *b)
{
	return (ptl_md_t){
		.start = b->base,
		.length = block_size,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = mpi_proto.short_most,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE | PTL_MD_INLINE,
		.user_ptr = b,
		.eq_handle = mpi_proto.unexpected,
	};
}

static void link_block(struct mpi_block *b)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_handle_me_t me;
	int err = PtlMEMDAttach(mpi_world.ni, MPI_PT_RECV, any, mpi_bits(MPI_PROTO_SHORT, 0, 0, 0),
				~MPI_BITS_PROTO | MPI_BITS_NO_MEMORY, PTL_UNLINK, PTL_INS_AFTER,
				block_md(b), PTL_UNLINK, &me, &b->md);

	b->used = 0;
	if (err != PTL_OK)
		mpi_abort_job(MPI_ERR_NO_MEM, "MPI: cannot link a block for unexpected messages");
}

/* Restarts each block whose messages have all been taken at its beginning, which the cache
 * still holds. No event may be in hand or in the queue (PtlMDUpdate checks that), so that
 * nothing refers to the block's bytes. */
static void rewind_blocks(void)
{
	for (int i = 0; i < MPI_BLOCKS; i++) {
		struct mpi_block *b = &block[i];
		ptl_md_t md;

		if (b->used < REWIND_BYTES || b->live)
			continue;
		md = block_md(b);
		if (PtlMDUpdate(b->md, NULL, &md, mpi_proto.unexpected) == PTL_OK)
			b->used = 0;
	}
}

static void *own_memory(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p)
		mpi_abort_job(MPI_ERR_NO_MEM, "MPI: no memory to keep unexpected messages; receive "
					      "them earlier, or set PTL_MPI_KEEP_KIB lower");
	return p;
}

/* Moves a message out of its block; a few bytes go into the entry itself. */
static void move_out(struct mpi_unexpected *u)
{
	const size_t bytes = (size_t)u->bytes;
	void *to = bytes <= sizeof(u->few) ? u->few : own_memory(bytes);

	memcpy(to, u->data, bytes);
	u->data = to;
	u->block = NULL;
}

/* Links a full block again, which has left the match list. First its messages move out. */
static void relink(struct mpi_block *b)
{
	for (struct mpi_unexpected *u = b->list.next, *next; u; u = next) {
		next = u->of_block.next;
		move_out(u);
		mpi_world.counts[MPI_COUNT_MESSAGES_MOVED]++;
	}
	b->list = (struct mpi_link){ NULL, NULL };
	b->live = 0;
	mpi_world.counts[MPI_COUNT_BLOCKS_RELINKED]++;
	link_block(b);
}

/* Files a message in its block. A few bytes do not stay there, so that the block may
 * restart at its beginning. */
static void join_block(struct mpi_block *b, struct mpi_unexpected *u)
{
	if (u->bytes <= (MPI_Count)sizeof(u->few)) {
		move_out(u);
		return;
	}
	u->of_block = (struct mpi_link){ b->list.next, NULL };
	if (u->of_block.next)
		u->of_block.next->of_block.prev = u;
	b->list.next = u;
	b->live++;
	u->block = b;
}

static void leave_block(struct mpi_unexpected *u)
{
	struct mpi_link *l = &u->of_block;

	if (l->prev)
		l->prev->of_block.next = l->next;
	else
		u->block->list.next = l->next;
	if (l->next)
		l->next->of_block.prev = l->prev;
	u->block->live--;
}

static void free_own_data(struct mpi_unexpected *u)
{
	if (u->data != u->few)
		free(u->data);
}

/* ---- arrival and end of a message ------------------------------------------------------------ */

static struct mpi_unexpected *new_entry(void)
{
	struct mpi_unexpected *u = spare;

	if (u) {
		spare = u->link[0].next;
		spares--;
		return u;
	}
	u = malloc(sizeof(*u));
	if (!u)
		mpi_abort_job(MPI_ERR_NO_MEM,
			      "MPI: no memory to list unexpected messages; receive them earlier");
	return u;
}

static void note_bytes(struct mpi_unexpected *u, bool held)
{
	uint64_t *now = &mpi_world.counts[MPI_COUNT_UNEXPECTED_BYTES];
	uint64_t *most = &mpi_world.counts[MPI_COUNT_UNEXPECTED_BYTES_MOST];

	if (mpi_bits_long(u->bits))
		return;
	*now += held ? (uint64_t)u->bytes : -(uint64_t)u->bytes;
	if (*now > *most)
		*most = *now;
}

/* Memory of the waiting messages, as counted by mpi_credit_cost. */
static uint64_t *const kept = &mpi_world.counts[MPI_COUNT_UNEXPECTED_MEMORY];

/* Counts `bytes` of a rank's messages that wait from now on. Returns the bytes of credit to
 * return to the rank: all within the limit, with those withheld before; none beyond it. */
static uint32_t charge_bytes(int rank, uint32_t bytes)
{
	uint64_t *most = &mpi_world.counts[MPI_COUNT_UNEXPECTED_MEMORY_MOST];
	struct mpi_peer *p;

	*kept += bytes;
	if (*kept > *most)
		*most = *kept;
	if (rank < 0)
		return 0;
	p = &mpi_proto.peer[rank];
	bytes += p->late_bytes;
	p->late_bytes = *kept > keep_most ? bytes : 0;
	return bytes - p->late_bytes;
}

/* Counts `bytes` of a rank's messages that no longer wait. Returns withheld credit: all of it
 * within the limit, else as many bytes. */
static void discharge_bytes(int rank, uint32_t bytes)
{
	struct mpi_peer *p;

	*kept -= bytes;
	if (rank < 0)
		return;
	p = &mpi_proto.peer[rank];
	if (!p->late_bytes)
		return;
	if (*kept <= keep_most || bytes > p->late_bytes)
		bytes = p->late_bytes;
	p->late_bytes -= bytes;
	mpi_credit_consumed(rank, bytes, 0);
}

static void raise_message(enum mpi_event kind, uint64_t bits, MPI_Count bytes)
{
	mpi_event_message(kind, bits >> 48, mpi_bits_source(bits), mpi_bits_tag(bits), bytes,
			  false);
}

/* Gives a short message at `data` to the receive that waits here for it. 0: there is none.
 * `watched`: a tool wants to know. */
static inline int __attribute__((always_inline))
receive_short(int sender, uint64_t bits, uint64_t hdr, const void *data, uint64_t bytes,
	      bool watched)
{
	struct mpi_request *r = mpi_posted_take(bits);

	if (!r)
		return 0;
	if (watched)
		raise_message(MPI_EVENT_MATCHED, bits, (MPI_Count)bytes);
	mpi_world.counts[MPI_COUNT_RECV_EXPECTED]++;
	mpi_recv_short(r, bits, hdr, data, (MPI_Count)bytes);
	mpi_credit_consumed(sender, mpi_credit_cost(bytes), 1);
	/* Other posted receives are better served in the same call. */
	return r == mpi_queues.awaited && !mpi_posted_first() ? PTL_HANDLED_ENOUGH : PTL_HANDLED;
}

static int leave_alone(const ptl_arrival_t *put)
{
	(void)put;
	return 0;
}

static ptl_inline_handler_t inline_handler[MPI_ARRIVALS] = { leave_alone, leave_alone };

void mpi_arrivals_go_to(enum mpi_arrival kind, ptl_inline_handler_t of)
{
	inline_handler[kind] = of;
}

static inline int __attribute__((always_inline))
arrival_inline(const ptl_arrival_t *put, bool watched)
{
	int sender;

	if (put->type != PTL_EVENT_PUT_END)
		return inline_handler[MPI_ARRIVAL_ANSWER](put);
	if (!(put->match_bits & MPI_BITS_PROTO))
		return inline_handler[MPI_ARRIVAL_FLAG](put);
	sender = mpi_hdr_sender(put->hdr_data, put->initiator);
	if (__builtin_expect(sender < 0, 0))
		return PTL_HANDLED; /* of nobody that is connected: dropped */
	return receive_short(sender, put->match_bits, put->hdr_data, put->data, put->length,
			     watched);
}

/* Inline handler. Takes a short message if a receive waits here for it. */
static int handle_arrival_inline(const ptl_arrival_t *put)
{
	return arrival_inline(put, false);
}

/* The same while a tool watches. Portals holds its lock, so tools read the events later. */
static int handle_arrival_watched(const ptl_arrival_t *put)
{
	int handled;

	mpi_events_hold();
	handled = arrival_inline(put, mpi_event_watched(MPI_EVENT_MATCHED));
	mpi_events_let_go();
	return handled;
}

static struct mpi_unexpected *entry_of(const ptl_event_t *ev)
{
	struct mpi_unexpected *u = new_entry();

	u->bits = ev->match_bits;
	u->hdr = ev->hdr_data;
	u->from = ev->initiator;
	u->bytes = (MPI_Count)ev->rlength;
	u->data = NULL;
	u->block = NULL;
	return u;
}

static void short_arrived(const ptl_event_t *ev, struct mpi_block *b)
{
	int rank = mpi_hdr_sender(ev->hdr_data, ev->initiator);
	struct mpi_unexpected *u;

	b->used = ev->offset + ev->rlength;
	if (rank < 0 || receive_short(rank, ev->match_bits, ev->hdr_data, b->base + ev->offset,
				      ev->rlength, mpi_event_watched(MPI_EVENT_MATCHED)))
		return;
	u = entry_of(ev);
	u->data = b->base + ev->offset;
	join_block(b, u);
	mpi_credit_consumed(rank, charge_bytes(rank, mpi_credit_cost(ev->rlength)), 1);
	note_bytes(u, true);
	file(u);
	mpi_world.counts[MPI_COUNT_RECV_UNEXPECTED_SHORT]++;
	if (mpi_event_watched(MPI_EVENT_UNEXPECTED))
		raise_message(MPI_EVENT_UNEXPECTED, u->bits, u->bytes);
}

/* Gives a long message to the receive that waits here for it, unless its sender has cancelled
 * it. Then the receive waits on. */
static void long_arrived(const ptl_event_t *ev)
{
	int rank = mpi_hdr_sender(ev->hdr_data, ev->initiator), err = PTL_OK;
	struct mpi_request *r = NULL;
	struct mpi_unexpected *u;
	bool gone;

	if (rank < 0)
		return;
	u = entry_of(ev);

	mpi_cancel_drain();
	while (!(gone = mpi_cancel_early(u)) && (r = mpi_posted_find(u->bits)) &&
	       (err = mpi_cancel_claim(u)) == PTL_MD_NO_UPDATE)
		mpi_cancel_drain();
	mpi_credit_consumed(rank, charge_bytes(rank, 0), 1);
	if (gone) {
		mpi_unexpected_free(u);
		return;
	}
	if (r) {
		mpi_posted_remove(r);
		mpi_world.counts[MPI_COUNT_RECV_EXPECTED]++;
	}
	if (r && err == PTL_OK) {
		if (mpi_event_watched(MPI_EVENT_MATCHED))
			raise_message(MPI_EVENT_MATCHED, u->bits, u->bytes);
		mpi_recv_take(r, u);
		return;
	}
	file(u);
	mpi_world.counts[MPI_COUNT_RECV_UNEXPECTED_LONG]++;
	if (mpi_event_watched(MPI_EVENT_UNEXPECTED))
		raise_message(MPI_EVENT_UNEXPECTED, u->bits, u->bytes);
	if (r) {
		mpi_request_fail(r, no_claim(err), "%s", mpi_fail_text());
		mpi_request_done(r);
	}
}

static void handle_arrival(const ptl_event_t *ev)
{
	if (ev->pt_index == MPI_PT_CREDIT)
		mpi_credit_event(ev);
	else if (ev->pt_index == MPI_PT_FLAG)
		return; /* it has only ended a wait */
	else if (ev->type == PTL_EVENT_UNLINK)
		relink(ev->md.user_ptr);
	else if (ev->ni_fail_type != PTL_NI_OK)
		return; /* the sender died during the transfer */
	else if (ev->md.user_ptr)
		short_arrived(ev, ev->md.user_ptr);
	else
		long_arrived(ev);
}

void mpi_unexpected_free(struct mpi_unexpected *u)
{
	note_bytes(u, false);
	if (u->block)
		leave_block(u);
	else
		free_own_data(u);
	if (!mpi_bits_long(u->bits))
		discharge_bytes(mpi_hdr_sender(u->hdr, u->from),
				mpi_credit_cost((uint64_t)u->bytes));
	mpi_credit_return();
	if (spares == SPARES_MOST) {
		free(u);
		return;
	}
	u->link[0].next = spare;
	spare = u;
	spares++;
}

/* ---- for reports ----------------------------------------------------------------------------- */

/* Lists the user's messages that wait; those of collectives have odd contexts. */
static void describe_messages(struct base_waits_body *body)
{
	for (uint32_t i = 0; i < buckets; i++) {
		for (const struct mpi_unexpected *u = table[0][i].head; u; u = u->link[0].next) {
			const uint32_t context = (uint32_t)(u->bits >> 48) & 0x1fff;

			if (context & 1)
				continue;
			if (body->messages++ < BASE_WAITS_MESSAGES)
				body->message[body->messages - 1] = (struct base_wait_message){
					.context = context,
					.source = mpi_hdr_rank(u->hdr),
					.tag = mpi_bits_tag(u->bits),
					.bytes = u->bytes,
				};
		}
	}
}

/* ---- start and end --------------------------------------------------------------------------- */

static void handled(bool any)
{
	if (any)
		rewind_blocks();
	mpi_credit_return();
}

static void handled_watched(bool any)
{
	handled(any);
	mpi_events_flush();
}

const struct mpi_progress_hooks mpi_message_hooks = {
	.inline_handler = handle_arrival_inline,
	.handled = handled,
	.check = mpi_peers_check,
};

static const struct mpi_progress_hooks watched_hooks = {
	.inline_handler = handle_arrival_watched,
	.handled = handled_watched,
	.check = mpi_peers_check,
};

void mpi_messages_watched(void)
{
	mpi_progress_rehook(mpi_events_watched ? &watched_hooks : &mpi_message_hooks);
	mpi_proto.at_once_most =
		mpi_event_watched(MPI_EVENT_DONE) ? -1 : (MPI_Count)mpi_proto.short_most;
}

int mpi_unexpected_init(void)
{
	const size_t size = mpi_pool_bytes() / MPI_BLOCKS;

	buckets = 0;
	filed = 0;
	keep_most = (uint64_t)base_config()->ptl_mpi_keep_kib * 1024;
	if (!grow_table(64))
		return mpi_fail(MPI_ERR_NO_MEM, "no memory for the list of unexpected messages");
	mpi_progress_add_queue(mpi_proto.unexpected, handle_arrival);
	mpi_waiting_describe_also(describe_messages);
	block_size = size;
	for (int i = 0; i < MPI_BLOCKS; i++) {
		block[i] = (struct mpi_block){ .base = malloc(size) };
		if (!block[i].base)
			return mpi_fail(MPI_ERR_NO_MEM,
					"no memory for unexpected messages: %zu bytes; set "
					"PTL_MPI_POOL_KIB lower",
					size);
		link_block(&block[i]);
	}
	return MPI_SUCCESS;
}

void mpi_unexpected_fini(void)
{
	struct mpi_unexpected *u, *next;

	/* messages that were never received */
	for (uint32_t i = 0; i < buckets; i++)
		for (u = table[0][i].head; u; u = next) {
			next = u->link[0].next;
			if (!u->block)
				free_own_data(u);
			free(u);
		}
	for (u = spare; u; u = next) {
		next = u->link[0].next;
		free(u);
	}
	spare = NULL;
	spares = 0;
	filed = buckets = 0;
	for (int k = 0; k < KEYS; k++) {
		free(table[k]);
		table[k] = NULL;
	}
	for (int i = 0; i < MPI_BLOCKS; i++)
		free(block[i].base);
}
