/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A token goes round all ranks, each adding its rank, for some laps. Each rank has one word that
 * its left neighbour puts the token into, and one it puts to its right neighbour. Run it with:
 * mpiexec -n 5 ring 100
 */
#include <cnos_mpi_os.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#include <stdio.h>
#include <stdlib.h>

enum { INDEX = 6, TOKEN = 1 };

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static ptl_handle_md_t out_md;
static ptl_process_id_t left, right;
static uint64_t in, out;

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	fprintf(stderr, "ring: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

/* With START events disabled, and no events at all for what is sent, only PUT_END is left. */
static uint64_t receive(void)
{
	ptl_event_t ev;

	check(PtlEQWait(eq, &ev), "PtlEQWait");
	if (ev.type != PTL_EVENT_PUT_END || ev.ni_fail_type != PTL_NI_OK) {
		fprintf(stderr, "ring: %s: %s\n", PtlEventKindStr(ev.type),
			PtlNIFailStr(ni, ev.ni_fail_type));
		exit(1);
	}
	return in;
}

/* `out` is free again when the token comes back: then it has arrived at the right long ago. */
static void send(uint64_t token)
{
	out = token;
	check(PtlPut(out_md, PTL_NO_ACK_REQ, right, INDEX, 0, TOKEN, 0, 0), "PtlPut");
}

static void open_ring(unsigned rank, unsigned size)
{
	ptl_md_t md = { .start = &in,
			.length = sizeof(in),
			.threshold = PTL_MD_THRESH_INF,
			.options =
				PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE };
	ptl_handle_me_t me;

	check(PtlGetRankId(ni, (rank + size - 1) % size, &left), "PtlGetRankId");
	check(PtlGetRankId(ni, (rank + 1) % size, &right), "PtlGetRankId");
	check(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	md.eq_handle = eq;
	check(PtlMEAttach(ni, INDEX, left, TOKEN, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	md.start = &out;
	md.options = 0;
	md.eq_handle = PTL_EQ_NONE;
	check(PtlMDBind(ni, md, PTL_RETAIN, &out_md), "PtlMDBind");
	cnos_barrier_init(ni);
	cnos_barrier(); /* everybody's entry is posted */
}

int main(int argc, char **argv)
{
	unsigned long laps = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	uint64_t token = 0, expected;
	unsigned rank, size;
	int interfaces, bad = 0;

	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlGetRank(ni, &rank, &size), "PtlGetRank; start with mpiexec -n 5 ring");
	open_ring(rank, size);
	for (unsigned long lap = 0; lap < laps; lap++) {
		if (rank) {
			send(receive() + rank);
		} else {
			send(token);
			token = receive();
		}
	}
	if (!rank) {
		expected = (uint64_t)laps * size * (size - 1) / 2;
		printf("%lu laps of %u ranks: the token says %llu\n", laps, size,
		       (unsigned long long)token);
		bad = token != expected;
	}
	cnos_barrier();
	check(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
	return bad;
}
