/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Credit: slots of the data queue and bytes of blocks that partners may use unasked.
 *
 *   newcomers   256 that connect: 2 messages and 4 KiB, which the record says. It is exposed
 *               that many times, so that any number may connect before one sends
 *   tickets     192 of 1 message and 4 KiB, for those who ask by id: who answer, and late ones
 *   partners    the first 8 that send: 128 messages and 128 KiB; 56 more: 16 messages, 64 KiB;
 *               64 more: 2 messages, 4 KiB; all others are late: a ticket for each message
 *
 * A ticket whose message has come is exposed again. Partners ask for one with a message in hand, so
 * no idle partner keeps any. One that is killed before it sends does: so it is known which process
 * has taken how many, and one that keeps some for long is asked whether it lives.
 *
 * Blocks for a share are attached before the partner is told. A block takes 32 KiB at least before
 * it has no room for one more message. Both counters only grow; they are told at half a share. A
 * message's slot is returned when its event was handled, its bytes then, too, unless very many
 * bytes wait for receives already.
 */
#include <stdlib.h>

#include "base/log.h"
#include "mx_shim/mx_core.h"

#define KEEP_MOST    (UINT64_C(64) << 20) /* bytes that wait without holding credit back */
#define FULL_SHARES  8u
#define FAR_PARTNERS 64u
#define SMALL_SHARES 64u  /* partners with a newcomer's share for good */
#define HOLDER_MS    500u /* how long a process keeps tickets before it is asked */

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Attaches a block behind all others, before the entry for headers. */
static bool attach_block(struct mxs_endpoint *ep, struct mxs_block *b)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = b->base,
		.length = MXS_BLOCK,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = MXS_EAGER_MOST,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE | PTL_MD_INLINE,
		.user_ptr = &ep->data_tag,
		.eq_handle = ep->eq[0],
	};

	return PtlMEMDInsert(ep->header_me, any, 0, ~UINT64_C(0), PTL_UNLINK, PTL_INS_BEFORE, md,
			     PTL_UNLINK, &b->me, &b->md) == PTL_OK;
}

bool mxs_blocks_add(struct mxs_endpoint *ep, uint32_t count)
{
	struct mxs_block *more =
		realloc(ep->block, (ep->blocks + count) * sizeof(struct mxs_block));

	if (!more)
		return false;
	ep->block = more;
	for (; count; count--) {
		struct mxs_block *b = &ep->block[ep->blocks];

		b->base = malloc(MXS_BLOCK);
		if (!b->base)
			return false;
		if (!attach_block(ep, b)) {
			free(b->base);
			return false;
		}
		ep->blocks++;
	}
	return true;
}

void mxs_block_unlinked(struct mxs_endpoint *ep, ptl_handle_md_t md)
{
	/* all events of its messages came before this one, and are handled */
	for (uint32_t i = 0; i < ep->blocks; i++) {
		if (ep->block[i].md != md)
			continue;
		if (!attach_block(ep, &ep->block[i]))
			base_warn("MX: endpoint %u has lost a block for unexpected messages",
				  ep->eid);
		return;
	}
}

/* ---- shares ---------------------------------------------------------------------------------- */

static void learn_credit(struct mxs_partner *p)
{
	if (mxs_list_empty(&p->due))
		mxs_list_append(&p->ep->credit_due, &p->due);
}

/* ---- who holds tickets ----------------------------------------------------------------------- */

static struct mxs_holder *find_holder(struct mxs_endpoint *ep, ptl_process_id_t id)
{
	for (uint32_t i = 0; i < ep->holders; i++)
		if (ep->holder[i].id.nid == id.nid && ep->holder[i].id.pid == id.pid)
			return &ep->holder[i];
	return NULL;
}

static void forget_holder(struct mxs_endpoint *ep, struct mxs_holder *h)
{
	*h = ep->holder[--ep->holders];
}

void mxs_ticket_taken(struct mxs_endpoint *ep, ptl_process_id_t by)
{
	struct mxs_holder *h = find_holder(ep, by);

	if (!h && ep->holders == ep->holders_room) {
		uint32_t room = ep->holders_room ? 2 * ep->holders_room : 16;
		struct mxs_holder *more = realloc(ep->holder, room * sizeof(*more));

		if (!more) /* its ticket is lost if it is killed */
			return;
		ep->holder = more;
		ep->holders_room = room;
	}
	if (!h) {
		h = &ep->holder[ep->holders++];
		*h = (struct mxs_holder){ .id = by };
	}
	h->count++;
	h->checked_ms = mxs_now_ms();
}

/* A message has come that a ticket, or a newcomer's slot, was for. */
static void ticket_used(struct mxs_endpoint *ep, ptl_process_id_t by)
{
	struct mxs_holder *h = find_holder(ep, by);

	if (h && !--h->count)
		forget_holder(ep, h);
}

void mxs_holder_answered(struct mxs_endpoint *ep, ptl_process_id_t id, bool lives)
{
	struct mxs_holder *h = find_holder(ep, id);

	if (!h)
		return;
	h->asked = false;
	h->checked_ms = mxs_now_ms();
	if (lives)
		return;
	ep->tickets += h->count;
	forget_holder(ep, h);
}

void mxs_holders_tick(struct mxs_endpoint *ep, uint64_t now)
{
	for (uint32_t i = 0; i < ep->holders; i++) {
		struct mxs_holder *h = &ep->holder[i];

		/* no endpoint has to have the id: any answer is one of the process */
		if (!h->asked && now - h->checked_ms >= HOLDER_MS)
			h->asked = mxs_ask(ep, NULL, h->id, mxs_ask_bits(MXS_ASK_LIFE, 0, 0), NULL);
	}
}

/* ---- what has come --------------------------------------------------------------------------- */

void mxs_credit_message(struct mxs_partner *p)
{
	p->got_slots++;
	if (!p->met || !p->share_slots) {
		p->ep->tickets++;
		ticket_used(p->ep, p->id);
	}
	if (!p->met) {
		p->met = true;
		learn_credit(p);
	}
	if (p->share_slots &&
	    p->got_slots + p->share_slots - p->said_slots >= (p->share_slots + 1) / 2)
		learn_credit(p);
}

void mxs_credit_bytes(struct mxs_partner *p, uint32_t bytes)
{
	p->got_bytes += bytes;
	if (p->share_bytes && p->got_bytes + p->share_bytes - p->said_bytes >= p->share_bytes / 2)
		learn_credit(p);
}

/* Gives a partner that has sent for the first time its share, if there is one left. */
static void give_share(struct mxs_endpoint *ep, struct mxs_partner *p)
{
	uint32_t slots = 128, bytes = 131072;

	p->shared = true;
	if (ep->shares >= FAR_PARTNERS) {
		if (ep->newcomers >= SMALL_SHARES)
			p->share_slots = p->share_bytes = 0;
		else
			ep->newcomers++;
		return;
	}
	if (ep->shares >= FULL_SHARES) {
		slots = 16;
		bytes = 65536;
	}
	if (!mxs_blocks_add(ep, bytes / (MXS_BLOCK / 2)))
		return;
	ep->shares++;
	p->share_slots = slots;
	p->share_bytes = bytes;
}

static void make_record(const struct mxs_endpoint *ep, unsigned char *bytes, uint32_t slots,
			uint32_t may_bytes)
{
	const struct mxs_record record = {
		.answer = MXS_ANSWER_OK,
		.eid = ep->eid,
		.session = ep->session,
		.portal = ep->portal,
		.slots = slots,
		.bytes = may_bytes,
	};

	mxs_record_encode(&record, bytes);
}

void mxs_records_make(struct mxs_endpoint *ep)
{
	make_record(ep, ep->record, MXS_NEWCOMER_SLOTS, MXS_NEWCOMER_BYTES);
	make_record(ep, ep->ticket_record, 1, MXS_NEWCOMER_BYTES);
	make_record(ep, ep->no_slots, 0, 0);
}

/*
 * Take an entry away that is used up. True: its place is free. No entry unlinks itself: its handle
 * would name whatever has its number later.
 */
static bool is_freed(ptl_handle_me_t *me, ptl_handle_md_t md)
{
	ptl_md_t now = { 0 };

	if (*me == PTL_INVALID_HANDLE)
		return true;
	if (PtlMDUpdate(md, &now, NULL, PTL_EQ_NONE) != PTL_OK || now.threshold ||
	    PtlMEUnlink(*me) != PTL_OK)
		return false;
	*me = PTL_INVALID_HANDLE;
	return true;
}

void mxs_tickets_give(struct mxs_endpoint *ep)
{
	const ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = {
		.start = ep->ticket_record,
		.length = MXS_RECORD_BYTES,
		.threshold = (int)ep->tickets,
		/* the beginning of a read comes before the message that the ticket is for */
		.options = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_END_DISABLE,
		.user_ptr = &ep->data_tag,
		.eq_handle = ep->eq[0],
	};
	int i = 0;

	while (i < MXS_TICKET_ENTRIES && !is_freed(&ep->ticket[i].me, ep->ticket[i].md))
		i++;
	if (!ep->tickets || i == MXS_TICKET_ENTRIES)
		return;
	/* before the answer that promises nothing */
	if (PtlMEMDAttach(ep->board->ni, MXS_PT_CONNECT, any, mxs_ask_bits(MXS_ASK_ID, ep->eid, 0),
			  0, PTL_RETAIN, PTL_INS_BEFORE, md, PTL_RETAIN, &ep->ticket[i].me,
			  &ep->ticket[i].md) == PTL_OK)
		ep->tickets = 0;
	else
		ep->ticket[i].me = PTL_INVALID_HANDLE;
}

void mxs_credits_send(struct mxs_endpoint *ep)
{
	while (!mxs_list_empty(&ep->credit_due)) {
		struct mxs_partner *p = MXS_OF(ep->credit_due.next, struct mxs_partner, due);
		struct mxs_control c = {
			MXS_CONTROL_CREDIT, p->eid, p->tag, ep->eid, ep->tag, 0, 0
		};

		mxs_list_remove(&p->due);
		if (!p->shared)
			give_share(ep, p);
		c.a = p->got_slots + p->share_slots;
		c.b = p->got_bytes + p->share_bytes;
		p->said_slots = c.a;
		p->said_bytes = c.b;
		mxs_count(ep, MXS_CREDITS_SENT);
		PtlPutInject(ep->board->ni, NULL, 0, PTL_INJECT_LAZY, p->id, MXS_PT_CONTROL, 0,
			     mxs_control_bits(&c), 0, mxs_control_data(&c));
	}
}

/* Does a message that is to wait for its receive hold its bytes' credit back? */
bool mxs_credit_withheld(const struct mxs_endpoint *ep, uint32_t bytes)
{
	return bytes > MXS_SMALL && ep->kept_bytes > KEEP_MOST;
}
