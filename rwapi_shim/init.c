/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Start and end. rwapi_init() returns when all ranks can receive. rwapi_finalize() has two stages,
 * at each of which all living ranks meet. Before the first, all that this process sent has been
 * matched, so targets know what they refused. Between the two they say so.
 */
#include "rwapi_shim/impl.h"

#include <p3rt/p3rt.h>
#include <pthread.h>
#include <string.h>

/* ---- start ----------------------------------------------------------------------------------- */

static const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };

/* An entry that takes messages of no bytes, and of longer ones none. */
static int attach_rwapi_entry(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore,
			      unsigned int options, ptl_handle_eq_t eq)
{
	const ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | options,
		.eq_handle = eq,
	};
	int err = PtlMEMDAttach(rw.ni, pt, anybody, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, md,
				PTL_RETAIN, &rw.entry[rw.entries], NULL);

	if (err == PTL_OK)
		rw.entries++;
	return err;
}

static int attach_entries(void)
{
	const ptl_handle_eq_t *q = rw.queue;
	int err = attach_rwapi_entry(RW_PT_SMALL, 0, ~(uint64_t)0, PTL_MD_ACK_DISABLE,
				     q[RW_QUEUE_MAIN]);

	/* all writes that no block takes, with their length cut to 0 */
	if (err == PTL_OK)
		err = attach_rwapi_entry(RW_PT_WRITE, 0, ~(uint64_t)0, PTL_MD_TRUNCATE,
					 q[RW_QUEUE_REFUSED]);
	if (err == PTL_OK)
		err = attach_rwapi_entry(RW_PT_CONTROL, rw_control_bits(RW_CREDIT, 0), 0,
					 PTL_MD_ACK_DISABLE, q[RW_QUEUE_MAIN]);
	if (err == PTL_OK)
		err = attach_rwapi_entry(RW_PT_CONTROL, rw_control_bits(RW_DONE, 0), 0,
					 PTL_MD_ACK_DISABLE, q[RW_QUEUE_MAIN]);
	if (err == PTL_OK)
		err = attach_rwapi_entry(RW_PT_CONTROL, rw_control_bits(RW_REFUSED, 0), 0,
					 PTL_MD_ACK_DISABLE, q[RW_QUEUE_REFUSED]);
	if (err == PTL_OK)
		err = attach_rwapi_entry(RW_PT_CONTROL, rw_control_bits(RW_PING, 0), RW_IGNORE_REST,
					 0, PTL_EQ_NONE);
	return err;
}

/* Each process may have a share of short messages under way to this one, and beside them some
 * control messages that are not taken in yet. */
static int make_rwapi_queues(void)
{
	enum { CONTROL = 8 };
	uint64_t size = (uint64_t)rw.size, slots[RW_QUEUES];

	rw.share = RW_SLOTS / size;
	if (rw.share > RW_SHARE_MOST)
		rw.share = RW_SHARE_MOST;
	if (rw.share < RW_SHARE_LEAST)
		rw.share = RW_SHARE_LEAST;
	slots[RW_QUEUE_MAIN] = (rw.share + CONTROL) * size;
	slots[RW_QUEUE_ENDS] = 4 * (uint64_t)RW_RECORDS;
	slots[RW_QUEUE_REFUSED] = RW_REPORTS;
	for (int i = 0; i < RW_QUEUES; i++) {
		int err = PtlEQAlloc(rw.ni, slots[i], PTL_EQ_HANDLER_NONE, &rw.queue[i]);

		if (err != PTL_OK)
			return err;
		rw.queues++;
	}
	return PTL_OK;
}

static int find_ranks(void)
{
	unsigned int rank, size;
	int err = PtlGetRank(rw.ni, &rank, &size);

	if (err != PTL_OK)
		return RWAPI_ENET;
	rw.peer = calloc(size, sizeof(*rw.peer));
	if (!rw.peer)
		return RWAPI_ENOMEM;
	for (unsigned int i = 0; i < size; i++)
		if (PtlGetRankId(rw.ni, i, &rw.peer[i].id) != PTL_OK)
			return RWAPI_ENET;
	rw.rank = (int)rank;
	rw.size = (int)size;
	return rw_ranks_init() ? RWAPI_OK : RWAPI_ENOMEM;
}

/* Open the interface. Portals may be open already, for MPI or the program itself. */
static int open_rwapi_interface(void)
{
	ptl_process_id_t id;
	int n;

	rw.owns_portals = PtlGetId(PTL_INVALID_HANDLE, &id) == PTL_NO_INIT;
	rw.ni = PTL_INVALID_HANDLE;
	if (PtlInit(&n) != PTL_OK)
		return RWAPI_ENET;
	n = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &rw.ni);
	return n == PTL_OK || n == PTL_IFACE_DUP ? RWAPI_OK : RWAPI_ENET;
}

/* The interface may be open for others, too: leave nothing there that needs memory of RWAPI. */
static void leave_interface(void)
{
	if (rw.closed)
		return;
	for (int i = 0; i < rw.entries; i++)
		while (PtlMEUnlink(rw.entry[i]) == PTL_ME_IN_USE)
			PtlProgress(rw.ni, 1);
	rw_blocks_detach();
	for (int i = 0; i < rw.queues; i++)
		PtlEQFree(rw.queue[i]);
}

static void close_rwapi(void)
{
	ptl_process_id_t id;

	leave_interface();
	if (rw.ni != PTL_INVALID_HANDLE)
		PtlNIFini(rw.ni);
	/* unless somebody else uses it by now */
	if (rw.owns_portals && PtlGetId(rw.ni, &id) != PTL_OK)
		PtlFini();
	rw_blocks_fini();
	for (int node = 0; rw.peer && node < rw.size; node++)
		rw_drop_held(node);
	free(rw.peer);
	free(rw.rank_of);
	free(rw.arrived);
	free(rw.failed);
	rw.peer = NULL;
	rw.rank_of = NULL;
	rw.arrived = NULL;
	rw.failed = NULL;
}

static int start(void)
{
	int err = open_rwapi_interface();

	if (!err)
		err = find_ranks();
	if (!err)
		err = rw_error_of(make_rwapi_queues());
	if (!err)
		err = rw_error_of(attach_entries());
	if (!err)
		err = rw_blocks_init();
	rw_records_init();
	/* nobody sends before all can receive */
	if (!err && PtlJobFence() != PTL_OK && rw.size > 1)
		err = RWAPI_ENET;
	return err;
}

/* The child of a fork() has no part in the job. */
static void leave_in_child(void)
{
	atomic_store(&rw.phase, RW_AFTER);
	atomic_store(&rw.lock.word, 0);
}

int rwapi_init(int argc, char **argv)
{
	int phase = RW_BEFORE, err;

	(void)argc;
	(void)argv;
	if (!atomic_compare_exchange_strong(&rw.phase, &phase, RW_STARTING))
		return RWAPI_ESTATE;
	err = start();
	if (err) {
		close_rwapi();
		memset(&rw, 0, sizeof(rw)); /* RW_BEFORE: it may be tried again */
		return err;
	}
	pthread_atfork(NULL, NULL, leave_in_child);
	/* release: pairs with the acquire of rw_enter() */
	atomic_store_explicit(&rw.phase, RW_RUNNING, memory_order_release);
	return RWAPI_OK;
}

int rwapi_size(void)
{
	return atomic_load_explicit(&rw.phase, memory_order_acquire) == RW_RUNNING ? rw.size : -1;
}

int rwapi_rank(void)
{
	return atomic_load_explicit(&rw.phase, memory_order_acquire) == RW_RUNNING ? rw.rank : -1;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Has everything that this process sent been matched, and have its writes arrived? Asks for what
 * is missing. */
static bool is_flushed(void)
{
	if (rw.held || rw.writing)
		return false;
	for (int node = 0; node < rw.size; node++)
		if (rw.peer[node].quiet && !rw.peer[node].dead)
			rw_ping(node); /* matched after all that went before */
	for (int node = 0; node < rw.size; node++)
		if (!rw.peer[node].dead && (rw.peer[node].quiet || rw.peer[node].pinging))
			return false;
	return true;
}

static void flush_all(void)
{
	rw_progress(true);
	while (!is_flushed())
		rw_progress_wait();
}

/* Have all others reached the stage, if they live? Pings those that are missed. */
static bool all_reached(unsigned int stage, bool ping)
{
	bool all = true;

	for (int node = 0; node < rw.size; node++) {
		if (node == rw.rank || rw.peer[node].dead || rw.peer[node].stage >= stage)
			continue;
		all = false;
		if (ping)
			rw_ping(node);
	}
	return all;
}

/* Tell all ranks of this stage, and wait for them. */
static void meet(unsigned int stage)
{
	struct rw_checks checks;

	rw.stage = stage;
	for (int node = 0; node < rw.size; node++)
		if (node != rw.rank && !rw.peer[node].dead)
			while (rw_control(node, RW_DONE, stage, PTL_INJECT_NOW) == RWAPI_ENOMEM)
				rw_progress_wait();
	rw_progress(true);
	rw_checks_begin(&checks);
	while (!all_reached(stage, rw_checks_due(&checks)))
		rw_progress_wait();
	rw_progress(true);
}

int rwapi_finalize(void)
{
	int err;

	if (!rw_enter())
		return RWAPI_ESTATE;
	atomic_store_explicit(&rw.phase, RW_ENDING, memory_order_relaxed);
	flush_all();
	for (unsigned int stage = 1; stage <= RW_STAGES; stage++)
		meet(stage);
	rw_leave();
	rw_keeper_stop();
	close_rwapi();
	err = rw.worst;
	atomic_store_explicit(&rw.phase, RW_AFTER, memory_order_release);
	return err;
}

/* ---- texts and addresses --------------------------------------------------------------------- */

const char *rwapi_strerror(int error)
{
	static const char *const text[] = {
		[-RWAPI_OK] = "success",
		[-RWAPI_EINVAL] = "bad argument, no such rank, or no address of this process",
		[-RWAPI_ENOMEM] = "out of memory or address space; see `ulimit -v`",
		[-RWAPI_ESTATE] = "before rwapi_init, after rwapi_finalize, or rwapi_init again",
		[-RWAPI_EPEER] = "the process has ended or cannot be reached",
		[-RWAPI_EADDRESS] = "a write was refused: there is no such memory at its target",
		[-RWAPI_ENET] = "the transport or the launcher failed",
	};
	const int codes = sizeof(text) / sizeof(text[0]);

	return error <= 0 && error > -codes ? text[-error] : "unknown error";
}

void rwapi_net_pack(unsigned char bytes[8], rwapi_net_t net)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(net >> (56 - 8 * i));
}

rwapi_net_t rwapi_net_unpack(const unsigned char bytes[8])
{
	rwapi_net_t net = 0;

	for (int i = 0; i < 8; i++)
		net = net << 8 | bytes[i];
	return net;
}
