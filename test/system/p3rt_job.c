/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A rank for the tests of the job calls: `p3rt_job WHAT [FIRST_PID]` finds out about its job
 * through the public headers only, as an old client would, in the order of calls that WHAT
 * names; where it chooses pids they are FIRST_PID and those after it. Exits with 0 and a line
 * "rank R of N: WHAT done" if everything fits together.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cnos_mpi_os.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#include <portals3.h>

static unsigned int rank, size, first_pid;
static ptl_handle_ni_t ni;
static ptl_process_id_t own;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "p3rt_job: rank %u: ", rank);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(99);
}

static void must_be(int rc, int expected, const char *call)
{
	if (rc != expected)
		fail("%s gave %s in place of %s", call, PtlErrorStr((unsigned int)rc),
		     PtlErrorStr((unsigned int)expected));
}

static void must(int rc, const char *call)
{
	must_be(rc, PTL_OK, call);
}

static void expect(bool truth, const char *what)
{
	if (!truth)
		fail("not so: %s", what);
}

static void init(void)
{
	int max;

	must(PtlInit(&max), "PtlInit");
}

static void open_ni(void)
{
	must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
}

static bool same_id(ptl_process_id_t a, ptl_process_id_t b)
{
	return a.nid == b.nid && a.pid == b.pid;
}

/* Every way to ask for the ids gives the same, and they are all different. */
static void check_ids(void)
{
	ptl_nid_t *nids = calloc(size, sizeof(*nids));
	ptl_pid_t *pids = calloc(size, sizeof(*pids));
	ptl_process_id_t a, b;

	must(PtlGetNIDMap(ni, nids, size), "PtlGetNIDMap");
	must(PtlGetPIDMap(ni, pids, size), "PtlGetPIDMap");
	must(PtlGetId(ni, &own), "PtlGetId");
	for (unsigned int i = 0; i < size; i++) {
		must(PtlGetRankId(ni, i, &a), "PtlGetRankId");
		expect(a.nid == nids[i] && a.pid == pids[i], "maps and PtlGetRankId agree");
		expect(same_id(a, own) == (i == rank), "own id is that of the own rank, only");
		for (unsigned int j = 0; j < i; j++) {
			must(PtlGetRankId(ni, j, &b), "PtlGetRankId");
			expect(!same_id(a, b), "ids differ");
		}
	}
	must_be(PtlGetRankId(ni, size, &a), PTL_FAIL, "PtlGetRankId past the end");
	must_be(PtlGetNIDMap(ni, nids, size + 1), PTL_FAIL, "PtlGetNIDMap of another size");
	free(nids);
	free(pids);
}

static void check_cnos(void)
{
	cnos_nidpid_map_t *map;
	ptl_process_id_t id;

	expect(cnos_get_rank() == (int)rank, "cnos_get_rank");
	expect(cnos_get_size() == (int)size, "cnos_get_size");
	expect(cnos_get_nidpid_map(&map) == (int)size, "cnos_get_nidpid_map");
	for (unsigned int i = 0; i < size; i++) {
		must(PtlGetRankId(ni, i, &id), "PtlGetRankId");
		expect(map[i].nid == id.nid && map[i].pid == id.pid,
		       "cnos map and PtlGetRankId agree");
	}
	cnos_barrier_init(ni);
	expect(cnos_register_ptlid(own) == 0, "cnos_register_ptlid");
}

static void check_job(void)
{
	must(PtlGetRank(ni, &rank, &size), "PtlGetRank");
	check_ids();
	check_cnos();
}

/* An 8-byte put to the next rank arrives at the rank its id says. */
static void check_ring(void)
{
	static unsigned int in, out;
	ptl_process_id_t any = { PTL_NID_ANY, PTL_PID_ANY };
	ptl_md_t md = { .start = &in,
			.length = sizeof(in),
			.threshold = 1,
			.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE };
	ptl_process_id_t next;
	ptl_handle_me_t me;
	ptl_handle_md_t md_handle;
	ptl_event_t event;

	must(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &md.eq_handle), "PtlEQAlloc");
	must(PtlMEAttach(ni, 4, any, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &me), "PtlMEAttach");
	must(PtlMDAttach(me, md, PTL_RETAIN, &md_handle), "PtlMDAttach");
	expect(cnos_barrier() == 0, "cnos_barrier");
	out = 1000 + rank;
	md.start = &out;
	must(PtlMDBind(ni, md, PTL_RETAIN, &md_handle), "PtlMDBind");
	must(PtlGetRankId(ni, (rank + 1) % size, &next), "PtlGetRankId");
	must(PtlPut(md_handle, PTL_NO_ACK_REQ, next, 4, 0, 1, 0, 0), "PtlPut");
	do
		must(PtlEQWait(md.eq_handle, &event), "PtlEQWait");
	while (event.type != PTL_EVENT_PUT_END);
	expect(in == 1000 + (rank + size - 1) % size, "the put came from the rank before");
	expect(cnos_barrier() == 0, "cnos_barrier");
}

/* Nothing set, nothing asked before the interface is open. */
static void plain(void)
{
	init();
	open_ni();
	check_job();
	check_ring();
}

/* As programs for the reference implementation begin. */
static void with_set_rank(void)
{
	init();
	must(PtlSetRank(PTL_INVALID_HANDLE, (unsigned int)-1, (unsigned int)-1), "PtlSetRank");
	open_ni();
	check_job();
	must(PtlSetRank(ni, (unsigned int)-1, (unsigned int)-1), "PtlSetRank of the interface");
	check_job();
	check_ring();
}

/* As programs for the XT do: the map is asked for before anything else. */
static void cnos_first(void)
{
	int my_rank = cnos_get_rank(), my_size = cnos_get_size();
	cnos_nidpid_map_t *map;
	int launcher = cnos_launcher();

	expect(cnos_get_nidpid_map(&map) == my_size, "cnos_get_nidpid_map before PtlInit");
	expect(my_size == 1 || launcher == CNOS_LAUNCHER_APRUN, "cnos_launcher");
	init();
	open_ni();
	check_job();
	expect(my_rank == (int)rank, "cnos_get_rank before PtlInit");
	expect(map[rank].nid == own.nid && map[rank].pid == own.pid, "the early map stays right");
	check_ring();
	cnos_pm_barrier(1);
}

/* PtlFini, and a second life with the same ids. */
static void again(void)
{
	ptl_process_id_t first;

	init();
	PtlFini();
	init();
	open_ni();
	check_job();
	first = own;
	PtlFini();
	must_be(PtlGetRank(ni, &rank, &size), PTL_NO_INIT, "PtlGetRank after PtlFini");
	init();
	open_ni();
	check_job();
	expect(same_id(own, first), "the same id as before PtlFini");
}

/* A client with maps of its own, which name the pids to take. */
static void own_maps(void)
{
	unsigned int n = (unsigned int)cnos_get_size(), me = (unsigned int)cnos_get_rank();
	ptl_nid_t *nids = calloc(n, sizeof(*nids));
	ptl_pid_t *pids = calloc(n, sizeof(*pids));
	unsigned int nid;
	ptl_jid_t jid;

	init();
	if (p3tcp_my_nid(NULL, &nid))
		fail("p3tcp_my_nid");
	for (unsigned int i = 0; i < n; i++) {
		nids[i] = nid;
		pids[i] = first_pid + i;
	}
	must(PtlSetRank(PTL_INVALID_HANDLE, me, n), "PtlSetRank");
	must(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, n), "PtlSetNIDMap");
	must_be(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, n), PTL_FAIL, "PtlSetNIDMap again");
	must(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, n), "PtlSetPIDMap");
	must_be(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, n), PTL_PID_INVALID, "PtlSetPIDMap again");
	must(PtlSetJID(4711), "PtlSetJID");
	open_ni();
	check_job();
	expect(own.pid == first_pid + rank, "the pid is that of the map");
	must(PtlGetJid(ni, &jid), "PtlGetJid");
	expect(jid == 4711, "the jid is the one set");
	check_ring();
	free(nids);
	free(pids);
}

/* As a client that starts its own processes: the rank gets known after PtlInit. */
static void late_rank(void)
{
	unsigned int unknown = (unsigned int)-1;

	unsetenv("PTL_MY_RID");
	init();
	must_be(PtlSetRank(PTL_INVALID_HANDLE, unknown, unknown), PTL_NO_INIT,
		"PtlSetRank without PTL_MY_RID");
	setenv("PTL_MY_RID", "1", 1);
	must(PtlSetRank(PTL_INVALID_HANDLE, unknown, unknown), "PtlSetRank");
	open_ni();
	check_job();
	expect(rank == 1, "the rank of PTL_MY_RID");
}

/* All of the job have the same jid. */
static void show_jid(void)
{
	ptl_jid_t jid;

	init();
	open_ni();
	check_job();
	must(PtlGetJid(ni, &jid), "PtlGetJid");
	printf("jid %u\n", jid);
}

/* Only checks what needs no peer. */
static void quick(void)
{
	init();
	open_ni();
	check_job();
}

/* A second interface knows rank and size, but no ids of others. */
static void second(void)
{
	ptl_handle_ni_t other;
	ptl_process_id_t id;
	unsigned int r, s;
	bool opens = cnos_get_rank() == 0; /* it is not collective */

	init();
	open_ni();
	if (opens)
		must(PtlNIInit(PTL_IFACE_UTCP1, PTL_PID_ANY, NULL, NULL, &other), "PtlNIInit");
	check_job();
	if (opens) {
		must(PtlGetRank(other, &r, &s), "PtlGetRank");
		expect(r == rank && s == size, "the same rank and size");
		must_be(PtlGetRankId(other, 0, &id), size > 1 ? PTL_NO_INIT : PTL_OK,
			"PtlGetRankId");
	}
	check_ring();
}

static void refuse(void)
{
	ptl_handle_ni_t handle;
	int max;

	if (PtlInit(&max) == PTL_OK)
		must_be(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &handle), PTL_OK,
			"PtlNIInit");
}

static void nid(void)
{
	unsigned int mine;

	if (p3tcp_my_nid(NULL, &mine))
		fail("p3tcp_my_nid");
	printf("nid %u\n", mine);
}

static const struct {
	const char *name;
	void (*run)(void);
} things[] = {
	{ "plain", plain },   { "set", with_set_rank }, { "cnos", cnos_first }, { "again", again },
	{ "maps", own_maps }, { "late", late_rank },    { "jid", show_jid },    { "quick", quick },
	{ "second", second }, { "refuse", refuse },     { "nid", nid },
};

int main(int argc, char **argv)
{
	first_pid = argc == 3 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	for (size_t i = 0; (argc == 2 || argc == 3) && i < sizeof(things) / sizeof(things[0]);
	     i++) {
		if (strcmp(argv[1], things[i].name))
			continue;
		things[i].run();
		printf("rank %u of %u: %s done\n", rank, size, argv[1]);
		return 0;
	}
	fprintf(stderr, "usage: p3rt_job WHAT [FIRST_PID]; see its source\n");
	return 2;
}
