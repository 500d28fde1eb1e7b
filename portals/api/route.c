/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See route.h.
 */
#include "portals/api/route.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "portals/engine/debug.h"
#include "portals/job/job.h"

#define PID_TRIES 16
/* rounds of progress that a busy host gets before the networks get one */
#define NET_BEHIND 16

/* ---- choosing -------------------------------------------------------------------------------- */

static bool automatic(void)
{
	return !strcmp(base_config()->ptl_nal, "auto");
}

/* The next name of a list. Returns its length and moves *list behind it; 0: the end. Text
 * after a colon is for the NAL. */
static size_t next_name(const char **list, const char **name)
{
	size_t len, whole;

	*list += strspn(*list, ", ");
	*name = *list;
	whole = strcspn(*list, ", ");
	len = strcspn(*list, ", :");
	*list += whole;
	return len;
}

static const struct nal_ops *by_name(const char *name, size_t len)
{
	for (int i = 0; nal_registry[i]; i++)
		if (strlen(nal_registry[i]->name) == len &&
		    !strncmp(nal_registry[i]->name, name, len))
			return nal_registry[i];
	return NULL;
}

static const char *unusable(const struct nal_ops *n)
{
	const char *why = n->unusable();

	if (!why && n->needs_secret && !ptl_job_has_secret())
		why = "outside a job it needs a secret that the processes share: name a file with "
		      "it in PTL_KEY_FILE";
	return why;
}

/* Use a NAL for new peers, if it can be used. NULL, or the reason why not. */
static const char *add_nal(struct ptl_ni *ni, const struct nal_ops *n)
{
	const char *why = unusable(n);
	uint32_t k = 0;

	if (why)
		return why;
	while (ni->order[k] && ni->order[k] != n)
		k++;
	if (ni->order[k] || k >= PTL_NETS)
		return NULL;
	ni->order[k] = n;
	if (n->idle)
		return NULL;
	ni->net[ni->nnets++].nal = n;
	return NULL;
}

static void leave_nal_out(struct ptl_ni *ni, const struct nal_ops *n, const char *why)
{
	struct ptl_left_out *l = &ni->left_out[ni->nleft_out];

	if (ni->nleft_out >= sizeof(ni->left_out) / sizeof(ni->left_out[0]))
		return;
	l->nal = n;
	snprintf(l->why, sizeof(l->why), "%s", why);
	ni->nleft_out++;
}

static void drop_net(struct ptl_ni *ni, uint32_t net)
{
	const struct nal_ops *n = ni->net[net].nal;
	uint32_t to = 0;

	for (uint32_t k = 0; ni->order[k]; k++)
		if (ni->order[k] != n)
			ni->order[to++] = ni->order[k];
	ni->order[to] = NULL;
	for (uint32_t k = net + 1; k < ni->nnets; k++)
		ni->net[k - 1] = ni->net[k];
	memset(&ni->net[--ni->nnets], 0, sizeof(ni->net[0]));
}

/* Add the NALs of the list, in its order. Returns the last one that cannot be used, with the
 * reason. */
static const struct nal_ops *add_listed(struct ptl_ni *ni, const char **why)
{
	const char *list = base_config()->ptl_nal, *name;
	const struct nal_ops *failed = NULL, *n;
	size_t len;

	while ((len = next_name(&list, &name))) {
		const char *reason;

		n = by_name(name, len);
		if (!n) {
			base_warn("PTL_NAL=%s: there is no transport %.*s in this build; "
				  "portals-info lists them",
				  base_config()->ptl_nal, (int)len, name);
			continue;
		}
		reason = add_nal(ni, n);
		if (reason) {
			leave_nal_out(ni, n, reason);
			failed = n;
			*why = reason;
		}
	}
	return failed;
}

int ptl_nets_choose(struct ptl_ni *ni)
{
	const struct nal_ops *failed = NULL;
	const char *why = NULL, *reason;

	for (int i = 0; nal_registry[i]; i++) {
		const struct nal_ops *n = nal_registry[i];

		if (n->idle)
			ni->nal = n;
		reason = automatic() && !n->by_name ? add_nal(ni, n) : NULL;
		if (reason)
			leave_nal_out(ni, n, reason);
		if (reason && n->idle) {
			failed = n;
			why = reason;
		}
	}
	if (!automatic())
		failed = add_listed(ni, &why);
	if (ni->order[0] && ni->nal)
		return PTL_OK;
	if (failed)
		base_warn("PTL_NAL=%s: %s cannot be used here: %s", base_config()->ptl_nal,
			  failed->name, why);
	else
		base_warn("PTL_NAL=%s names no transport of this build; portals-info lists them",
			  base_config()->ptl_nal);
	return PTL_IFACE_INVALID;
}

/* ---- opening and closing --------------------------------------------------------------------- */

size_t ptl_nets_bytes(struct ptl_ni *ni)
{
	size_t bytes = ni->nal->region_bytes();

	for (uint32_t k = 0; k < ni->nnets; k++) {
		bytes = (bytes + 4095) & ~(size_t)4095;
		ni->net[k].region = bytes;
		bytes += ni->net[k].nal->region_bytes();
	}
	return bytes;
}

/* Open the network NALs, then the host, with the same pid. PTL_PID_INVALID: one of them cannot
 * have the pid wanted, or the host the pid that they chose. */
static int open_all(struct ptl_ni *ni, ptl_pid_t want)
{
	uint32_t k = 0;
	int err = PTL_OK;

	ni->id.pid = want;
	while (k < ni->nnets) {
		ni->unopened = NULL;
		err = ni->net[k].nal->open(ni, ni->id.pid);
		if (err != PTL_OK && !automatic())
			break;
		if (err == PTL_OK) {
			k++;
		} else {
			leave_nal_out(ni, ni->net[k].nal,
				      ni->unopened ? ni->unopened : "it could not be opened");
			drop_net(ni, k);
		}
		err = PTL_OK;
	}
	if (err == PTL_OK)
		err = ni->nal->open(ni, ni->id.pid);
	if (err == PTL_OK)
		return PTL_OK;
	while (k--)
		ni->net[k].nal->close(ni);
	return err;
}

int ptl_nets_open(struct ptl_ni *ni, ptl_pid_t want)
{
	int err, tries = 0;

	do {
		err = open_all(ni, want);
	} while (err == PTL_PID_INVALID && want == PTL_PID_ANY && ++tries < PID_TRIES);
	return err;
}

static const char not_needed[] = "all ranks are on this node";

/* Is the job on this node only, where shared memory reaches all ranks, and does PTL_NAL ask
 * for no more? */
static bool alone_on_node(const struct ptl_ni *ni, const struct nal_job *job)
{
	for (unsigned int i = 0; i < job->size; i++)
		if (job->ids[i].nid != ni->id.nid)
			return false;
	return job->size && !ni->napart && automatic();
}

/* ---- who is where ---------------------------------------------------------------------------- */

#define PLACE      "host" /* the part of a card that names the place */
#define PLACE_MOST 64

static unsigned long long number_in_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Describe the place of this process. Its network namespace decides which socket names it
 * sees, and its user which shared memory. */
static void describe_place(char *text, size_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint64_t network = 0;
	socklen_t size = sizeof(network);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &network, &size) < 0)
		network = number_in_file("/proc/self/ns/net");
	if (fd >= 0)
		close(fd);
	/* Different numbers for the same user would do no harm. The text is short, because the
	 * card has little room. */
	snprintf(text, len, "%llx.%x", (unsigned long long)network,
		 (unsigned int)number_in_file("/proc/self/ns/user") * 31u +
			 (unsigned int)geteuid());
}

/* Does a card say that its rank is elsewhere? *network: in another network namespace. */
static bool card_elsewhere(const char *card, const char *own, bool *network)
{
	size_t len, first = strcspn(own, ".") + 1;
	const char *theirs = ptl_net_card(card, PLACE, &len);

	*network = theirs && (len < first || strncmp(theirs, own, first) != 0);
	return theirs && (len != strlen(own) || strncmp(theirs, own, len) != 0);
}

static void learn_places(struct ptl_ni *ni, const struct nal_job *job)
{
	struct ptl_apart *apart;
	unsigned int n = 0;
	char own[PLACE_MOST];
	bool network;

	if (!job->card)
		return;
	describe_place(own, sizeof(own));
	apart = calloc(job->size, sizeof(*apart));
	for (unsigned int i = 0; apart && i < job->size; i++)
		if (job->ids[i].nid == ni->id.nid && card_elsewhere(job->card[i], own, &network))
			apart[n++] = (struct ptl_apart){ job->ids[i], network };
	ptl_lock(ni); /* helper threads run already */
	ni->apart = apart;
	ni->napart = n;
	ni->apart_known = apart;
	ptl_leave(ni);
}

void ptl_nets_card(struct ptl_ni *ni, char *text, size_t len)
{
	char place[PLACE_MOST];
	size_t used;

	*text = '\0';
	if (!ni->nnets)
		return;
	describe_place(place, sizeof(place));
	used = (size_t)snprintf(text, len, PLACE "=%s", place);
	for (uint32_t k = 0; k < ni->nnets && used < len; k++) {
		const struct nal_ops *n = ni->net[k].nal;

		used += (size_t)snprintf(text + used, len - used, ";%s=", n->name);
		if (used >= len)
			return;
		n->card(ni, text + used, len - used);
		used += strlen(text + used);
	}
}

int ptl_nets_join(struct ptl_ni *ni)
{
	struct nal_job job;

	if (!ni->nnets)
		return PTL_OK;
	ptl_job_nets(ni->index, &job);
	learn_places(ni, &job);
	/* from the front: a NAL that works already must not be moved when another one is dropped */
	for (uint32_t k = 0; k < ni->nnets;) {
		const struct nal_ops *n = ni->net[k].nal;
		const char *why = alone_on_node(ni, &job) ? not_needed : n->join(ni, &job);

		if (!why) {
			k++;
			continue;
		}
		leave_nal_out(ni, n, why);
		if (ptl_debugs(ni, PTL_DBG_SETUP))
			ptl_debug(ni, "%s is not used: %s", n->name, why);
		if (!automatic())
			base_warn("PTL_NAL=%s: %s is not used: %s", base_config()->ptl_nal, n->name,
				  why);
		n->close(ni);
		ptl_lock(ni); /* as in ptl_nets_close() */
		drop_net(ni, k);
		ptl_leave(ni);
	}
	ptl_job_nets_free(&job);
	return ni->order[0] ? PTL_OK : PTL_IFACE_INVALID;
}

void ptl_nets_close(struct ptl_ni *ni)
{
	while (ni->nnets) {
		ni->net[ni->nnets - 1].nal->close(ni);
		ptl_lock(ni); /* the helper threads of the others read the order */
		drop_net(ni, ni->nnets - 1);
		ptl_leave(ni);
	}
	ni->nal->close(ni);
}

void ptl_nets_forked(struct ptl_ni *ni)
{
	for (uint32_t k = 0; k < ni->nnets; k++)
		ni->net[k].nal->forked(ni);
	ni->nal->forked(ni);
}

void ptl_nets_names(const struct ptl_ni *ni, char *text, size_t len)
{
	size_t used = 0;

	*text = '\0';
	for (uint32_t k = 0; ni->order[k] && used < len; k++)
		used += (size_t)snprintf(text + used, len - used, "%s%s", k ? ", " : "",
					 ni->order[k]->name);
}

void ptl_drop(struct ptl_ni *ni, ptl_process_id_t id)
{
	if (id.nid == ni->id.nid && id.pid == ni->id.pid)
		return;
	if (ni->nal->drop)
		ni->nal->drop(ni, id);
	for (uint32_t k = 0; k < ni->nnets; k++)
		if (ni->net[k].nal->drop)
			ni->net[k].nal->drop(ni, id);
}

/* ---- reports --------------------------------------------------------------------------------- */

#define REPORT_PEERS 64u /* most peers reported of each NAL */

/* A table of peers that the region points to. A peer may have overwritten the region: NULL if
 * the table is not in it. */
static const struct ptl_stat_peer *peers_at(const struct ptl_ni *ni, uint64_t off, uint32_t high)
{
	const uint64_t bytes = sizeof(struct ptl_stat_peer) *
			       (uint64_t)(high < REPORT_PEERS ? high : REPORT_PEERS);

	if (!off || off % _Alignof(struct ptl_stat_peer) || off > ni->view.size ||
	    bytes > ni->view.size - off)
		return NULL;
	return (const void *)((const char *)ni->view.r + off);
}

static void report_peers(const struct ptl_ni *ni, const char *name, uint64_t off, uint32_t high)
{
	const struct ptl_stat_peer *p = peers_at(ni, off, high);

	for (uint32_t i = 0; p && i < high && i < REPORT_PEERS; i++)
		if (p[i].state)
			base_say("  peer nid 0x%08x pid %u by %s%s: %llu messages to it, %llu "
				 "from it",
				 p[i].id.nid, p[i].id.pid, name,
				 p[i].state == 1 ? "" : ", not connected any more",
				 (unsigned long long)p[i].sent, (unsigned long long)p[i].received);
	if (p && high > REPORT_PEERS)
		base_say("  and %u more by %s", high - REPORT_PEERS, name);
}

/* Messages within the node are not counted by peer, because that would slow each of them down. */
static void report_neighbours(const struct ptl_ni *ni, uint64_t off, uint32_t high)
{
	const struct ptl_stat_peer *p = peers_at(ni, off, high);

	for (uint32_t i = 0; p && i < high && i < REPORT_PEERS; i++)
		if (p[i].state)
			base_say("  peer nid 0x%08x pid %u by %s%s", p[i].id.nid, p[i].id.pid,
				 ni->nal->name,
				 p[i].os_pid == ni->view.r->stat.os_pid ? ", itself"
				 : p[i].flags & PTL_PEER_CMA ? " with cross-memory attach"
							     : "");
	if (p && high > REPORT_PEERS)
		base_say("  and %u more by %s", high - REPORT_PEERS, ni->nal->name);
}

static bool is_used(const struct ptl_ni *ni, const struct nal_ops *n)
{
	for (uint32_t k = 0; ni->order[k]; k++)
		if (ni->order[k] == n)
			return true;
	return false;
}

static void report_unused(const struct ptl_ni *ni, const struct nal_ops *n)
{
	const char *why =
		automatic() ? "it is used only if PTL_NAL names it" : "PTL_NAL does not name it";

	for (uint32_t k = 0; k < ni->nleft_out; k++)
		if (ni->left_out[k].nal == n)
			why = ni->left_out[k].why;
	base_say("  %s is not used: %s", n->name, why);
}

/* A reason why a NAL does not lead to some peers: the first of them, and their number. */
struct astray {
	const struct nal_ops *nal;
	char why[96];
	ptl_process_id_t id;
	uint32_t count;
};

#define ASTRAY 16u /* most reasons reported */

/* Why the NAL is not the one that a peer of a later NAL has; NULL: not known. */
static const char *why_not(struct ptl_ni *ni, const struct nal_ops *n, const struct nal_job *job,
			   ptl_process_id_t id)
{
	const char *why = n->failed_over ? n->failed_over(ni, id) : NULL;
	size_t len;

	for (unsigned int i = 0; !why && job->card && i < job->size; i++)
		if (job->ids[i].nid == id.nid && job->ids[i].pid == id.pid)
			return ptl_net_card(job->card[i], n->name, &len)
				       ? "its address is of no use here"
				       : "it does not offer that";
	return why;
}

static void count_astray(struct astray *a, const struct nal_ops *n, const char *why,
			 ptl_process_id_t id)
{
	uint32_t k = 0;

	while (k < ASTRAY && a[k].count && (a[k].nal != n || strcmp(a[k].why, why) != 0))
		k++;
	if (k < ASTRAY && !a[k].count++) {
		a[k].nal = n;
		a[k].id = id;
		snprintf(a[k].why, sizeof(a[k].why), "%s", why);
	}
}

/* Report the NALs that would have come before those that lead to our peers. */
static void report_astray(struct ptl_ni *ni)
{
	const struct ptl_stat *s = &ni->view.r->stat;
	struct astray a[ASTRAY] = { { .count = 0 } };
	struct nal_job job;

	ptl_job_nets(ni->index, &job);
	ptl_lock(ni);
	for (uint32_t k = 0; k < ni->nnets; k++) {
		const uint32_t high = s->net_peer_high[k];
		const struct ptl_stat_peer *p = peers_at(ni, s->net_peer_off[k], high);

		for (uint32_t i = 0; p && i < high && i < REPORT_PEERS; i++)
			for (uint32_t j = 0; p[i].state && ni->order[j] != ni->net[k].nal; j++) {
				const struct nal_ops *n = ni->order[j];
				const char *why = why_not(ni, n, &job, p[i].id);

				if (why)
					count_astray(a, n, why, p[i].id);
			}
	}
	ptl_leave(ni);
	ptl_job_nets_free(&job);
	for (uint32_t k = 0; k < ASTRAY && a[k].count; k++)
		base_say("  %s does not lead to nid 0x%08x pid %u%s: %s", a[k].nal->name,
			 a[k].id.nid, a[k].id.pid, a[k].count > 1 ? ", and others" : "", a[k].why);
}

void ptl_nets_report(struct ptl_ni *ni)
{
	const struct ptl_stat *s = &ni->view.r->stat;
	char text[160];

	report_neighbours(ni, s->peer_off, s->peer_high);
	for (uint32_t k = 0; k < ni->nnets; k++) {
		const struct nal_ops *n = ni->net[k].nal;

		if (n->working) {
			n->working(ni, text, sizeof(text));
			base_say("  %s works by %s", n->name, text);
		}
		report_peers(ni, n->name, s->net_peer_off[k], s->net_peer_high[k]);
	}
	report_astray(ni);
	for (int i = 0; nal_registry[i]; i++)
		if (!is_used(ni, nal_registry[i]))
			report_unused(ni, nal_registry[i]);
}

/* ---- what became of peers -------------------------------------------------------------------- */

/* Could this NAL have reached the process, but is not in use? */
static bool nal_unused(const struct ptl_ni *ni, const struct nal_ops *n)
{
	for (uint32_t k = 0; k < ni->nleft_out; k++)
		if (ni->left_out[k].nal == n && !strcmp(ni->left_out[k].why, not_needed))
			return true;
	return false;
}

/* Is `a` more to the point than `b`? The end of a process is, whatever came of later calls to
 * it. */
static bool later(const struct ptl_failed_peer *a, const struct ptl_failed_peer *b)
{
	bool ended = a->fail == PTL_NI_PEER_DEAD;

	return ended != (b->fail == PTL_NI_PEER_DEAD) ? ended : a->number > b->number;
}

/* Does this NAL lead there, or is it still trying? */
static bool leads(struct ptl_ni *ni, const struct nal_ops *n, ptl_process_id_t id)
{
	return n->knows(ni, id) && !ptl_peer_failed_why(ni, n, id);
}

/* Does any NAL lead there? Another one may, if the first could not. */
static bool any_leads(struct ptl_ni *ni, ptl_process_id_t id)
{
	for (uint32_t k = 0; k < ni->nnets; k++)
		if (leads(ni, ni->net[k].nal, id))
			return true;
	return leads(ni, ni->nal, id);
}

ptl_ni_fail_t ptl_peer_failed_text(struct ptl_ni *ni, ptl_process_id_t id, char *text, size_t len)
{
	const struct ptl_failed_peer *last = NULL;
	size_t used = 0;

	*text = '\0';
	for (uint32_t i = 0; i < PTL_FAILED_PEERS; i++)
		if (ni->failed_peer[i].nal && ptl_same_id(ni->failed_peer[i].id, id) &&
		    (!last || later(&ni->failed_peer[i], last)))
			last = &ni->failed_peer[i];
	if (!last)
		return PTL_NI_OK;
	if (last->fail == PTL_NI_PEER_DEAD) {
		snprintf(text, len, "%s: %s", last->nal->name, last->why);
		return PTL_NI_PEER_DEAD;
	}
	if (any_leads(ni, id))
		return PTL_NI_OK;
	for (int i = 0; nal_registry[i] && used < len; i++) {
		const struct nal_ops *n = nal_registry[i];
		const char *why = ptl_peer_failed_why(ni, n, id);

		if (why)
			used += (size_t)snprintf(text + used, len - used, "%s%s: %s",
						 used ? "; " : "", n->name, why);
		else if (nal_unused(ni, n))
			used += (size_t)snprintf(text + used, len - used,
						 "%s%s is not used: %s, PTL_NAL=shm,%s takes it in",
						 used ? "; " : "", n->name, not_needed, n->name);
	}
	return last->fail;
}

/* ---- peers ----------------------------------------------------------------------------------- */

static const struct nal_ops *owner(struct ptl_ni *ni, ptl_process_id_t target)
{
	for (uint32_t k = 0; k < ni->nnets; k++)
		if (ni->net[k].nal->knows(ni, target))
			return ni->net[k].nal;
	return NULL;
}

void ptl_route_new(struct ptl_ni *ni, ptl_process_id_t target)
{
	if (owner(ni, target))
		return;
	for (uint32_t k = 0; ni->order[k]; k++) {
		if (ni->order[k]->connect(ni, target))
			return;
		/* it released the lock, and another thread may have had more luck */
		if (ni->nal->knows(ni, target) || owner(ni, target))
			return;
	}
}

/* There is no path: begin the operation, and fail it. */
static int start_nowhere(struct ptl_ni *ni, const struct ptl_start *s)
{
	struct ptl_answerer who = { s->target, PTL_UID_ANY, PTL_JID_ANY };
	uint32_t op;

	if (s->inject)
		return PTL_PROCESS_INVALID;
	if (s->kind == PTL_REQ_PUT) {
		ptl_engine_send(&ni->engine, s, false, PTL_NI_UNREACHABLE, PTL_NIL);
		return PTL_OK;
	}
	op = ptl_op_alloc(&ni->engine, s, PTL_NIL, 0);
	if (op == PTL_NIL)
		return PTL_NO_SPACE;
	ptl_engine_send(&ni->engine, s, false, PTL_NI_UNREACHABLE, op);
	ptl_engine_answer(&ni->engine, op, ni->view.op[op].gen, PTL_ANSWER_FAILED, 0,
			  PTL_NI_UNREACHABLE, &who);
	return PTL_OK;
}

int ptl_send_elsewhere(struct ptl_ni *ni, const struct ptl_start *s, bool routed)
{
	for (uint32_t k = 0; k < ni->nnets; k++) {
		int err = ni->net[k].nal->send(ni, s);

		if (err != NAL_ELSEWHERE)
			return err;
	}
	return routed ? start_nowhere(ni, s) : NAL_ELSEWHERE;
}

/* ---- progress -------------------------------------------------------------------------------- */

/* A poll of a network is a system call, so a host with something to do goes first for a while. */
bool ptl_nets_progress(struct ptl_ni *ni, bool any)
{
	bool found = false;

	if (any && ++ni->net_turn < NET_BEHIND)
		return true;
	ni->net_turn = 0;
	for (uint32_t k = 0; k < ni->nnets; k++)
		if (atomic_load_explicit(&ni->polled, memory_order_relaxed) & 1u << k)
			found |= ni->net[k].nal->progress(ni);
	if (found)
		ni->nal->found(ni);
	return any | found;
}

int ptl_distance(struct ptl_ni *ni, ptl_process_id_t id, unsigned long *distance)
{
	const struct nal_ops *n = NULL;

	*distance = ULONG_MAX;
	if (id.nid == PTL_NID_ANY || id.pid == PTL_PID_ANY)
		return PTL_PROCESS_INVALID;
	ptl_lock(ni);
	ptl_route(ni, id);
	n = ni->nal->knows(ni, id) ? ni->nal : owner(ni, id);
	if (n)
		*distance = n->distance(ni, id);
	ptl_leave(ni);
	return *distance != ULONG_MAX ? PTL_OK : PTL_PROCESS_INVALID;
}
