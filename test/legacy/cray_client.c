/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A client as they were written for the Cray XT: its header names and interface, ranks and ids from
 * the cnos calls, PTL_NOACK_REQ, and receives posted with PtlMEMDPost in front of an entry for
 * unexpected messages. A token with growing load goes round the ranks several times, and every rank
 * sends to every other at any time. It must build and run without edits.
 */
#include <portals/portals3.h>
#include <catamount/cnos_mpi_os.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PTL_NO_ACK_REQ
#define PTL_NO_ACK_REQ PTL_NOACK_REQ
#endif
#ifndef PTL_EQ_HANDLER_NONE
#define PTL_EQ_HANDLER_NONE NULL
#endif

#define RECV_PT   37
#define MAX_LOAD  8192
#define LAPS      20
#define BLOCK     (1024 * 1024)
#define TOKEN     0x1000000000000000ULL
#define NOISE     0x2000000000000000ULL
#define KIND_MASK 0xf000000000000000ULL

static ptl_handle_ni_t ni_handle;
static ptl_handle_eq_t unex_eq, recv_eq, send_eq;
static ptl_handle_me_t unex_me;
static char *unex_block;
static cnos_nidpid_map_t *map;
static int rank, size;
static int noise_seen;
static const ptl_process_id_t any_id = { PTL_NID_ANY, PTL_PID_ANY };

static void check(int rc, const char *what)
{
	if (rc == PTL_OK || rc == PTL_IFACE_DUP)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, PtlErrorStr((unsigned)rc));
	exit(1);
}

static void set_up(void)
{
	ptl_process_id_t id;
	ptl_handle_md_t md_h;
	ptl_md_t md;
	int n, rc;

	check(PtlInit(&n), "PtlInit");
	rc = PtlNIInit(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS), PTL_PID_ANY, NULL,
		       NULL, &ni_handle);
	check(rc, "PtlNIInit");
	check(PtlGetId(ni_handle, &id), "PtlGetId");
	cnos_barrier_init(ni_handle);
	cnos_register_ptlid(id);
	rank = cnos_get_rank();
	size = cnos_get_size();
	if (cnos_get_nidpid_map(&map) != size) {
		fprintf(stderr, "rank %d: the id map has not %d entries\n", rank, size);
		exit(1);
	}
	if (map[rank].nid != id.nid || map[rank].pid != id.pid) {
		fprintf(stderr, "rank %d: the id map has another id for this rank\n", rank);
		exit(1);
	}
	check(PtlEQAlloc(ni_handle, 1024, PTL_EQ_HANDLER_NONE, &unex_eq), "PtlEQAlloc");
	check(PtlEQAlloc(ni_handle, 64, PTL_EQ_HANDLER_NONE, &recv_eq), "PtlEQAlloc");
	check(PtlEQAlloc(ni_handle, 64, PTL_EQ_HANDLER_NONE, &send_eq), "PtlEQAlloc");

	unex_block = malloc(BLOCK);
	memset(&md, 0, sizeof(md));
	md.start = unex_block;
	md.length = BLOCK;
	md.threshold = PTL_MD_THRESH_INF;
	md.max_size = MAX_LOAD;
	md.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE;
	md.eq_handle = unex_eq;
	check(PtlMEMDAttach(ni_handle, RECV_PT, any_id, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
			    PTL_INS_AFTER, md, PTL_UNLINK, &unex_me, &md_h),
	      "PtlMEMDAttach");
	cnos_barrier();
}

static void send(int to, ptl_match_bits_t bits, void *buf, ptl_size_t len)
{
	ptl_process_id_t id = { map[to].nid, map[to].pid };
	ptl_handle_md_t md_h;
	ptl_event_t ev;
	ptl_md_t md;

	memset(&md, 0, sizeof(md));
	md.start = buf;
	md.length = len;
	md.threshold = 1;
	md.options = PTL_MD_EVENT_START_DISABLE;
	md.eq_handle = send_eq;
	check(PtlMDBind(ni_handle, md, PTL_UNLINK, &md_h), "PtlMDBind");
	check(PtlPut(md_h, PTL_NOACK_REQ, id, RECV_PT, 0, bits, 0, len), "PtlPut");
	do
		check(PtlEQWait(send_eq, &ev), "PtlEQWait");
	while (ev.type != PTL_EVENT_UNLINK);
}

/* Looks through unexpected messages; a token among them is copied out. */
static int take_unexpected(char *buf, ptl_size_t *len)
{
	ptl_event_t ev;

	while (PtlEQGet(unex_eq, &ev) == PTL_OK) {
		if (ev.type != PTL_EVENT_PUT_END)
			continue;
		if ((ev.match_bits & KIND_MASK) == NOISE) {
			noise_seen++;
			continue;
		}
		memcpy(buf, (char *)ev.md.start + ev.offset, ev.mlength);
		*len = ev.mlength;
		return 1;
	}
	return 0;
}

/* An MPI receive: posted atomically in front of the unexpected entry if nothing unexpected came. */
static void receive_token(int from, char *buf, ptl_size_t *len)
{
	ptl_process_id_t id = { map[from].nid, map[from].pid };
	ptl_handle_me_t me_h;
	ptl_handle_md_t md_h;
	ptl_event_t ev;
	ptl_md_t md;
	int rc;

	memset(&md, 0, sizeof(md));
	md.start = buf;
	md.length = MAX_LOAD;
	md.threshold = 1;
	md.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE;
	md.eq_handle = recv_eq;
	do {
		if (take_unexpected(buf, len))
			return;
		rc = PtlMEMDPost(ni_handle, unex_me, id, TOKEN, 0, PTL_UNLINK, PTL_INS_BEFORE, md,
				 PTL_UNLINK, &me_h, &md_h, unex_eq);
	} while (rc == PTL_MD_NO_UPDATE);
	check(rc, "PtlMEMDPost");
	do {
		check(PtlEQWait(recv_eq, &ev), "PtlEQWait");
		if (ev.type == PTL_EVENT_PUT_END)
			*len = ev.mlength;
	} while (ev.type != PTL_EVENT_UNLINK);
}

static void fail(const char *what)
{
	fprintf(stderr, "rank %d: %s\n", rank, what);
	exit(1);
}

static void carry_tokens(void)
{
	static char buf[MAX_LOAD], dot = '.';
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	ptl_size_t len = 0;

	for (int lap = 0; lap < LAPS; lap++) {
		for (int i = 0; i < size; i++)
			if (i != rank)
				send(i, NOISE, &dot, 1);
		if (rank == 0)
			send(next, TOKEN, buf, len);
		receive_token(before, buf, &len);
		for (ptl_size_t i = 0; i < len; i++)
			if (buf[i] != (char)(i + 1))
				fail("the token's load was changed");
		if (len + 7 <= MAX_LOAD)
			for (int i = 0; i < 7; i++, len++)
				buf[len] = (char)(len + 1);
		if (rank != 0)
			send(next, TOKEN, buf, len);
	}
	if (rank == 0 && len != (ptl_size_t)(7 * size * LAPS))
		fail("the token did not visit everyone");
}

int main(void)
{
	static char buf[MAX_LOAD];
	ptl_size_t len;

	set_up();
	carry_tokens();
	cnos_barrier();
	while (noise_seen < LAPS * (size - 1))
		if (take_unexpected(buf, &len))
			fail("a token too many");
	cnos_barrier();
	printf("rank %d of %d: right\n", rank, size);
	fflush(stdout);
	PtlNIFini(ni_handle);
	PtlFini();
	free(unex_block);
	return 0;
}
