/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A peer that writes whatever it likes into its ring: the bytes become messages in a real
 * interface's inbox, with entries to match and operations to answer, and are taken in by the
 * ordinary code. Every 64 bytes are one line, whose sequence number is made right so that the
 * rest is looked at. With one byte more an inline handler gets what can be handled inline, and
 * handles every other one.
 */
#include <stdlib.h>
#include <string.h>

#include <portals3_ext.h>

#include "nal/shm/shm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ptl_ni *ni;
static ptl_handle_ni_t nih;
static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static char memory[8192];
static volatile unsigned char seen;

static void open_interface(void)
{
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t m = {
		.start = memory,
		.length = sizeof(memory),
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_INLINE,
	};
	ptl_handle_me_t me;
	int n;

	if (PtlInit(&n) != PTL_OK ||
	    PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &nih) != PTL_OK ||
	    PtlEQAlloc(nih, 64, PTL_EQ_HANDLER_NONE, &eq) != PTL_OK)
		abort();
	m.eq_handle = eq;
	for (ptl_pt_index_t pt = 0; pt < 4; pt++)
		if (PtlMEAttach(nih, pt, any, pt, pt == 3 ? ~0ull : 0, PTL_RETAIN, PTL_INS_AFTER,
				&me) != PTL_OK ||
		    PtlMDAttach(me, m, PTL_RETAIN, NULL) != PTL_OK)
			abort();
	if (PtlMDBind(nih, m, PTL_RETAIN, &md) != PTL_OK)
		abort();
	ni = ptl_ni_of(nih, PTL_KIND_NI);
}

/* Operations that answers may be meant for: to a portal that nobody serves. */
static void start_operations(void)
{
	ptl_process_id_t self = ni->id;

	PtlPutRegion(md, 0, 64, PTL_ACK_REQ, self, 9, 0, 0, 0, 0);
	PtlGetRegion(md, 0, 4096, self, 9, 0, 0, 0);
}

static int take_every_other(const ptl_arrival_t *a)
{
	static bool turn;

	for (ptl_size_t i = 0; a->data && i < a->length; i++)
		seen += ((const unsigned char *)a->data)[i];
	turn = !turn;
	return turn;
}

static void offer(void)
{
	ptl_event_t ev[16];
	int count, err;

	do {
		err = PtlEQPollMany(&eq, 1, 0, take_every_other, ev, 16, &count);
	} while (err != PTL_EQ_EMPTY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shm_ring *r;
	ptl_event_t ev;

	if (!ni)
		open_interface();
	r = &shm_of(ni)->in[SHM_SELF];
	start_operations();
	ptl_lock(ni);
	for (size_t at = 0; at + SHM_LINE <= size && at < 64 * SHM_LINE; at += SHM_LINE) {
		struct shm_msg *line = (struct shm_msg *)(uintptr_t)shm_ring_line(r, r->ch->tail);

		if (!shm_ring_room(r, 0))
			break;
		memcpy(line, data + at, sizeof(*line));
		line->seq = (uint32_t)r->ch->tail + 1;
		r->ch->tail++;
	}
	if (size % SHM_LINE == 1) {
		ptl_unlock(ni); /* what leaves takes the rest in itself, without offering it */
		offer();
	} else {
		ptl_leave(ni);
	}
	/* a message that claims more lines than were written takes them; the producer goes on
	 * there */
	ptl_lock(ni);
	if (r->ch->tail < r->ch->head)
		r->ch->tail = r->ch->head;
	ptl_leave(ni);
	for (int i = 0; i < 1000 && PtlProgress(nih, 0) == PTL_OK && ni->view.r->flowing; i++)
		;
	while (PtlEQGet(eq, &ev) != PTL_EQ_EMPTY)
		;
	return 0;
}
