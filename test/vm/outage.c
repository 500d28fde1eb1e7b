/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Two ranks that go on talking whatever the network does: rank 0 puts to rank 1, with an
 * acknowledgement, and gets, all the time, and prints "talks" or "fails" when that changes. The
 * bytes that come back are compared. It ends well when the file FILE is there and they talk.
 * verbs.sh cuts the connection meanwhile; outside a job it kills the one who serves, and starts
 * another in its place, which says when it "hears". Usage: mpiexec -n 2 outage FILE; outage serve
 * PID; outage talk PID FILE
 */
#include <cnos_mpi_os.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	BYTES = 200000,
	INDEX = 5,
	TALK = 1,
	OVER = 2,
	ANSWER_MS = 100000,
	LOOK_MS = 500,
	DROPPED_MS = 5000,
	LIMIT_S = 90
};

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static unsigned char ours[BYTES], theirs[BYTES];

static void check(int code, const char *what)
{
	if (code == PTL_OK)
		return;
	printf("not ok: %s: %s\n", what, PtlErrorStr((unsigned)code));
	exit(1);
}

static void fill(unsigned char *bytes, unsigned int seed)
{
	for (int i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)(seed + (unsigned int)i * 7);
}

enum fate { ENDED, FAILED, DROPPED };

static bool anew; /* who serves may be killed, and another take its place */

/*
 * The next event of the descriptor, or of any where it is PTL_HANDLE_INVALID. A new server can be
 * reached before its entries are there: it drops what comes then, of which Portals does not tell.
 * So where nothing is heard for much longer than a death takes to be noticed, and nothing is under
 * way, that is what has happened: false.
 */
static bool next(ptl_handle_md_t md, ptl_event_t *ev)
{
	int which, code;

	for (int waited = 0; waited < ANSWER_MS;) {
		code = PtlEQPoll(&eq, 1, LOOK_MS, ev, &which);
		if (code != PTL_EQ_EMPTY) {
			check(code, "PtlEQPoll");
			if (md == PTL_HANDLE_INVALID || md == ev->md_handle)
				return true;
			continue;
		}
		waited += LOOK_MS;
		if (anew && waited > DROPPED_MS && md != PTL_HANDLE_INVALID &&
		    PtlMDUnlink(md) == PTL_OK)
			return false;
	}
	puts("not ok: an operation neither ends nor fails");
	exit(1);
}

/* The fate of the operation of a descriptor, that ends with such an event. */
static enum fate ended(ptl_handle_md_t md, ptl_event_kind_t kind)
{
	ptl_event_t ev;

	do {
		if (!next(md, &ev))
			return DROPPED;
		if (ev.ni_fail_type != PTL_NI_OK)
			return FAILED;
	} while (ev.type != kind);
	return ENDED;
}

/* One put and one get; each with a descriptor of its own, so that no late event is of another. */
static enum fate round_trip(ptl_process_id_t peer, unsigned int turn)
{
	ptl_md_t md = {
		.start = ours, .length = BYTES, .threshold = PTL_MD_THRESH_INF, .eq_handle = eq
	};
	ptl_handle_md_t put, get;
	enum fate fate;

	fill(ours, turn);
	check(PtlMDBind(ni, md, PTL_UNLINK, &put), "PtlMDBind");
	check(PtlPut(put, PTL_ACK_REQ, peer, INDEX, 0, TALK, 0, 0), "PtlPut");
	fate = ended(put, PTL_EVENT_ACK);
	PtlMDUnlink(put);
	if (fate != ENDED)
		return fate;
	memset(theirs, 0, BYTES);
	md.start = theirs;
	check(PtlMDBind(ni, md, PTL_UNLINK, &get), "PtlMDBind");
	check(PtlGet(get, peer, INDEX, 0, TALK, 0), "PtlGet");
	fate = ended(get, PTL_EVENT_REPLY_END);
	PtlMDUnlink(get);
	if (fate == ENDED && memcmp(ours, theirs, BYTES) != 0) {
		puts("not ok: other bytes came back than went there");
		exit(1);
	}
	return fate;
}

static int talk(ptl_process_id_t peer, const char *file)
{
	time_t end = time(NULL) + LIMIT_S;
	bool talks = false, fails = false;

	for (unsigned int turn = 1; time(NULL) < end; turn++) {
		enum fate fate = round_trip(peer, turn);

		if (fate == DROPPED)
			continue;
		if (fate == ENDED && !talks)
			puts("talks");
		if (fate == FAILED && !fails)
			puts("fails");
		talks = fate == ENDED;
		fails = fate == FAILED;
		if (talks && access(file, F_OK) == 0)
			return 0;
	}
	printf("not ok: for %d s, and %s in the end\n", LIMIT_S, talks ? "talks" : "fails");
	return 1;
}

/* The part of rank 1; over with a message to the second entry. */
static void serve(void)
{
	ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = theirs,
			.length = BYTES,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
				   PTL_MD_EVENT_START_DISABLE,
			.eq_handle = eq };
	ptl_handle_me_t me;

	check(PtlMEAttach(ni, INDEX, anybody, TALK, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	md.start = NULL;
	md.length = 0;
	md.options = PTL_MD_OP_PUT;
	check(PtlMEAttach(ni, INDEX, anybody, OVER, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
	      "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static int say_over(ptl_process_id_t peer)
{
	ptl_md_t md = { .threshold = PTL_MD_THRESH_INF, .eq_handle = eq };
	ptl_handle_md_t over;

	check(PtlMDBind(ni, md, PTL_RETAIN, &over), "PtlMDBind");
	check(PtlPut(over, PTL_ACK_REQ, peer, INDEX, 0, OVER, 0, 0), "PtlPut");
	return ended(over, PTL_EVENT_ACK) != ENDED;
}

static void open_ni(ptl_pid_t pid)
{
	int interfaces;

	setvbuf(stdout, NULL, _IOLBF, 0);
	check(PtlInit(&interfaces), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &ni), "PtlNIInit");
	check(PtlEQAlloc(ni, 1024, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
}

static int wait_until_over(void)
{
	ptl_event_t ev;
	bool hears = false;

	for (;;) {
		next(PTL_HANDLE_INVALID, &ev);
		if (ev.ni_fail_type != PTL_NI_OK)
			continue;
		if (ev.match_bits == OVER)
			return 0;
		if (!hears)
			puts("hears");
		hears = true;
	}
}

static int in_job(const char *file)
{
	unsigned int rank, size;
	ptl_process_id_t peer;

	open_ni(PTL_PID_ANY);
	check(PtlGetRank(ni, &rank, &size), "PtlGetRank");
	check(PtlGetRankId(ni, 1 - rank, &peer), "PtlGetRankId");
	if (rank == 1)
		serve();
	cnos_barrier_init(ni);
	cnos_barrier();
	return rank == 0 ? talk(peer, file) || say_over(peer) : wait_until_over();
}

static int alone(const char *part, const char *pid, const char *file)
{
	ptl_process_id_t peer = { .pid = (ptl_pid_t)strtoul(pid, NULL, 10) }, own;

	if (!file && !strcmp(part, "serve")) {
		open_ni(peer.pid);
		serve();
		return wait_until_over();
	}
	if (!file || strcmp(part, "talk") != 0)
		return 2;
	anew = true;
	open_ni(PTL_PID_ANY);
	check(PtlGetId(ni, &own), "PtlGetId");
	peer.nid = own.nid;
	return talk(peer, file) || say_over(peer);
}

int main(int argc, char **argv)
{
	int bad;

	if (argc < 2 || argc > 4)
		return 2;
	bad = argc == 2 ? in_job(argv[1]) : alone(argv[1], argv[2], argv[3]);
	if (bad != 2) {
		check(PtlNIFini(ni), "PtlNIFini");
		PtlFini();
	}
	return bad;
}
