/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * How two processes connect: once, over a socket in the abstract namespace, named by
 * interface, nid and pid. The name is in no file system and vanishes with the process. Each
 * side passes the memfd of its region and the number of the channel that the other writes to.
 * Both check that the other runs as the same user. If both call at once, the connection called
 * by the smaller id is kept. The socket stays open: its end tells of the peer's end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/log.h"
#include "nal/shm/shm_helper.h"

#define CONNECT_WAIT_NS 20000000ull   /* how long a first send waits for its connection, */
#define APART_WAIT_NS   2000000000ull /* and if shared memory may not lead there */
#define HELLO_WAIT_NS   5000000000ull
#define AWAIT_NS        10000000000ull /* for a rank that its launcher started later */
#define CROSSED_WAIT_NS 1000000000ull
#define DROP_WAIT_NS    2000000000ull /* for what was sent before a connection is ended */

/* ---- addresses ------------------------------------------------------------------------------- */

static socklen_t socket_address(struct sockaddr_un *a, uint32_t interface, ptl_process_id_t id)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
					    "postern-%u-%08x-%u", interface, id.nid, id.pid));
}

static int try_bind(int fd, uint32_t interface, ptl_process_id_t id)
{
	struct sockaddr_un a;
	socklen_t len = socket_address(&a, interface, id);

	return bind(fd, (struct sockaddr *)&a, len) == 0 ? 0 : -errno;
}

int shm_claim_pid(int fd, struct ptl_ni *ni, ptl_pid_t want)
{
	ptl_process_id_t id = ni->id;
	int err = -EADDRINUSE;

	if (want != PTL_PID_ANY) {
		id.pid = want;
		err = try_bind(fd, ni->index, id);
	} else {
		id.pid = ni->first_pid;
		for (int tries = 0; tries < 65536 && err == -EADDRINUSE; tries++, id.pid++)
			err = try_bind(fd, ni->index, id);
		id.pid--;
	}
	if (err < 0 && err != -EADDRINUSE) {
		base_warn("shared memory: the address of pid %u of interface %u cannot be taken: "
			  "bind: "
			  "%s; is it refused here (a container's profile)?",
			  id.pid, ni->index, strerror(-err));
		return PTL_NO_SPACE;
	}
	if (err < 0)
		return PTL_PID_INVALID;
	ni->id = id;
	return PTL_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool send_hello(struct shm_helper *l, int fd, enum shm_hello_kind kind, ptl_process_id_t to,
		       uint32_t channel)
{
	struct ptl_ni *ni = l->s->ni;
	struct shm_hello h = {
		.magic = SHM_HELLO_MAGIC,
		.version = SHM_HELLO_VERSION,
		.kind = (uint16_t)kind,
		.from = ni->id,
		.to = to,
		.interface = ni->index,
		.jid = ni->jid,
		.channel = channel,
		.region = (uintptr_t)ni->view.r,
	};
	struct iovec iov = { &h, sizeof(h) };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (kind == SHM_HELLO_CONNECT || kind == SHM_HELLO_ACCEPT) {
		struct cmsghdr *cm;

		m.msg_control = c.space;
		m.msg_controllen = sizeof(c.space);
		cm = CMSG_FIRSTHDR(&m);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &ni->memfd, sizeof(int));
		h.unseen = l->s->pid[channel] < 0;
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(h);
}

/* 1: a hello, and *memfd if one came with it (else -1). 0: nothing yet. -1: end of the
 * connection. */
static int recv_hello(int fd, struct shm_hello *h, int *memfd)
{
	char bytes[sizeof(*h) + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} c;
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.space,
		.msg_controllen = sizeof(c.space),
	};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*memfd = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(&m); cm; cm = CMSG_NXTHDR(&m, cm)) {
		size_t fds = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < fds; i++) {
			int got;

			memcpy(&got, CMSG_DATA(cm) + i * sizeof(int), sizeof(int));
			if (*memfd < 0)
				*memfd = got;
			else
				close(got);
		}
	}
	if (n == 1) /* a doorbell: the other side is connected already and its answer comes next */
		return 0;
	return n > 0 && shm_hello_decode(bytes, (size_t)n, h) == 0 ? 1 : -1;
}

/* ---- peers ----------------------------------------------------------------------------------- */

void shm_watch(struct shm_helper *l, int fd, uint32_t what, uint32_t index)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = (uint64_t)what << 32 | index };

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		base_warn("epoll_ctl: %s; raise `ulimit -n`", strerror(errno));
}

static void unwatch(struct shm_helper *l, int fd)
{
	if (fd >= 0)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static bool hung_up(const struct shm_peer *p)
{
	struct pollfd f = { .fd = p->sock, .events = POLLRDHUP };

	return p->sock < 0 || (poll(&f, 1, 0) == 1 && f.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

static const char hung_up_text[] = "it has hung up";
static const char dropped_text[] = "it has ended the connection";
static const char no_region[] = "what it sent is not a region of this version of the library";
static const char no_fds[] = "there are no descriptors left; raise `ulimit -n`";
static const char no_room[] = "no address space or memory to share its memory; raise `ulimit -v`, "
			      "or PTL_NAL=udp does without";

/* Stop watching a peer and fail everything in flight. Locked. */
static void forget_peer(struct shm_helper *l, struct shm_peer *p, ptl_ni_fail_t fail,
			const char *why)
{
	if (!l->s->by_socket[p->index])
		unwatch(l, l->s->life[p->index]);
	unwatch(l, p->sock);
	shm_peer_failed(l->s, p, fail, why);
}

void shm_connection_failed(struct shm_helper *l, struct shm_peer *p, const char *why)
{
	bool was_live = p->state == SHM_LIVE;

	if (was_live && atomic_load(&p->given_up))
		forget_peer(l, p, PTL_NI_UNREACHABLE, no_room);
	else if (was_live && atomic_load(&((const struct shm_area *)p->view.nal)->closed))
		forget_peer(l, p, PTL_NI_UNREACHABLE, "it has closed its interface");
	/* The kernel closes the socket of a process that ends; the pidfd tells a moment later.
	 * The socket of a call that was not accepted is closed by a live process. */
	else if ((was_live && why == hung_up_text) ||
		 ((was_live || !l->s->by_socket[p->index]) && shm_peer_ended(l->s, p->index)))
		forget_peer(l, p, PTL_NI_PEER_DEAD, "its process has ended");
	else
		forget_peer(l, p, PTL_NI_UNREACHABLE, why);
}

static const char other_user[] =
	"it runs as another user, with whom no memory is shared; start all ranks as one user";

/* Identify the process at the other end. False, and *why, if we cannot share memory with it. */
static bool same_user(int fd, struct ucred *who, const char **why)
{
	socklen_t len = sizeof(*who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &len) < 0)
		*why = "the system does not say who it is (SO_PEERCRED)";
	else if (who->uid != geteuid())
		*why = other_user;
	else
		return true;
	return false;
}

/* Map the region of a file that came with a hello, and our ring in it. NULL, or the reason of
 * the failure. */
static const char *map_peer_region(int memfd, const struct shm_hello *h, struct ptl_view *view,
				   struct shm_ring *out)
{
	struct shm_sizes sizes;
	int err;

	if (memfd < 0)
		return no_fds;
	if (h->channel >= SHM_CHANNELS)
		return no_region;
	err = ptl_region_map(view, memfd);
	if (!err && (shm_area_check(view, &sizes) < 0 || view->r->stat.interface != h->interface))
		err = -EPROTO;
	if (!err)
		err = shm_ring_init(out, view, memfd, h->channel, &sizes);
	if (!err)
		return NULL;
	ptl_region_unmap(view);
	return err == -ENOMEM || err == -EAGAIN ? no_room : no_region;
}

static bool may_attach(struct shm_helper *l, const struct shm_peer *p, const struct shm_hello *h,
		       const struct ptl_view *view)
{
	uint64_t scratch = h->region + (uint64_t)(view->nal - (char *)view->r) +
			   offsetof(struct shm_area, scratch);

	if (base_config()->ptl_shm_cma == BASE_CMA_OFF)
		return false;
	/* One of us has no pid in the namespace of the other. A process that cannot be seen
	 * must not take a lock: nobody would notice that it died with the lock held. */
	if (p->pid < 0 || h->unseen) {
		snprintf(l->s->ni->view.r->stat.progress, sizeof(l->s->ni->view.r->stat.progress),
			 "helper threads; no attach: a peer is in another pid namespace");
		return false;
	}
	if (shm_copy_allowed(p->pid, h->region, PTL_STAT_MAGIC, scratch))
		return true;
	if (errno == ESRCH) /* it died just now; that says nothing about other peers */
		return false;
	snprintf(l->s->ni->view.r->stat.progress, sizeof(l->s->ni->view.r->stat.progress),
		 "helper threads; no attach: %s", strerror(errno));
	if (base_config()->ptl_shm_cma == BASE_CMA_ON)
		base_warn("cross-memory attach to process %d: %s; allow it with "
			  "`sysctl kernel.yama.ptrace_scope=0` or CAP_SYS_PTRACE, or set "
			  "PTL_SHM_CMA=auto "
			  "to copy through shared memory",
			  (int)p->pid, strerror(errno));
	return false;
}

/* Watch for the death of the process at the other end of fd, before it can take our lock.
 * NULL, or the reason of the failure. */
static const char *know_process(struct shm_helper *l, struct shm_peer *p, int fd,
				const struct ucred *who)
{
	int old = l->s->life[p->index], life = -1;

	if (old >= 0 && !l->s->by_socket[p->index]) {
		if (p->pid == who->pid)
			return NULL;
		unwatch(l, old);
	}
	p->pid = who->pid > 0 ? who->pid : -1;
	p->uid = who->uid;
	if (p->pid > 0) {
		life = (int)syscall(SYS_pidfd_open, p->pid, 0);
		if (life < 0 && errno == ESRCH)
			return "its process has ended";
	}
	/* A container's filter refuses pidfd_open, the system is older than Linux 5.3, or
	 * there is no pid. A thread that waits for the lock must never see a `life` and a
	 * `by_socket` that do not match. */
	atomic_store(&l->s->life[p->index], -1);
	l->s->by_socket[p->index] = life < 0;
	if (life < 0)
		life = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	l->s->pid[p->index] = p->pid;
	l->s->life[p->index] = life;
	if (old >= 0)
		close(old);
	if (life < 0)
		return no_fds;
	if (!l->s->by_socket[p->index])
		shm_watch(l, life, ON_DEATH, p->index);
	return NULL;
}

/* The other side's half of the handshake has arrived. NULL, or the reason why it fails.
 * Locked. */
static const char *make_live(struct shm_helper *l, struct shm_peer *p, int fd,
			     const struct ucred *who, const struct shm_hello *h, int memfd)
{
	struct ptl_view view;
	const char *why = map_peer_region(memfd, h, &view, &p->out);

	if (why)
		return why;
	why = know_process(l, p, fd, who);
	if (why) {
		shm_ring_unmap(&p->out);
		ptl_region_unmap(&view);
		return why;
	}
	p->jid = h->jid;
	p->there = h->channel;
	p->sock = fd;
	p->cma = may_attach(l, p, h, &view);
	shm_peer_live(l->s, p, &view);
	return NULL;
}

/* ---- calling --------------------------------------------------------------------------------- */

/* Return whether this is a rank of a job whose ranks were started one by one, and may still
 * come up. */
static bool hello_awaited(const struct shm_helper *l, const struct shm_peer *p)
{
	const struct ptl_ni *ni = l->s->ni;

	for (unsigned int i = 0; i < ni->nawaited; i++)
		if (ni->awaited[i].nid == p->id.nid && ni->awaited[i].pid == p->id.pid)
			return base_now_ns() - p->called < AWAIT_NS;
	return false;
}

/* Return whether it is in another network namespace, so that names seen here are not its own. */
static bool in_other_network(const struct shm_helper *l, ptl_process_id_t id)
{
	const struct ptl_apart *apart = ptl_apart(l->s->ni, id);

	return apart && apart->network;
}

/* The message for a name that nobody has. */
static const char *nobody(const struct shm_helper *l, const struct shm_peer *p)
{
	if (in_other_network(l, p->id))
		return "it is in another network namespace (container), where it is not found; "
		       "PTL_NAL=udp "
		       "leads there if there is a network between the two";
	return l->s->ni->apart_known
		       ? "nobody is at its address any more: it has closed its interface or ended"
		       : "nobody is at its address: it has ended, or is in another network "
			 "namespace (container)";
}

/* The message for a failed system call; used by the helper thread. */
static const char *connect_failed(const char *call)
{
	static _Thread_local char why[80];

	snprintf(why, sizeof(why), "%s: %m%s", call,
		 errno == EPERM || errno == ENOSYS ? ": is it refused here (a container's profile)?"
						   : "");
	return why;
}

/* Call a peer. NULL, or the reason of the failure; *again: a retry soon may succeed. Locked. */
static const char *call_at(struct shm_helper *l, struct shm_peer *p, const struct sockaddr_un *a,
			   socklen_t len, bool *again)
{
	const char *why;
	struct ucred who;

	*again = false;
	/* a process with its name here is another one */
	if (in_other_network(l, p->id))
		return nobody(l, p);
	if (connect(p->sock, (const struct sockaddr *)a, len) < 0) {
		/* its queue is full, or it has not come up yet */
		*again = errno == EAGAIN || (errno == ECONNREFUSED && hello_awaited(l, p));
		return errno == ECONNREFUSED ? nobody(l, p) : connect_failed("connect");
	}
	if (!same_user(p->sock, &who, &why))
		return why;
	why = know_process(l, p, p->sock, &who);
	if (!why && !send_hello(l, p->sock, SHM_HELLO_CONNECT, p->id, p->index)) {
		*again = errno == EAGAIN;
		return connect_failed("sendmsg");
	}
	return why;
}

/* Start the connection of a new peer. Locked. */
static void call(struct shm_helper *l, struct shm_peer *p)
{
	struct sockaddr_un a;
	socklen_t len = socket_address(&a, l->s->ni->index, p->id);
	const char *why;
	bool again;

	if (!p->called)
		p->called = base_now_ns();
	p->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	why = p->sock < 0 ? no_fds : call_at(l, p, &a, len, &again);
	if (!why) {
		shm_watch(l, p->sock, ON_PEER, p->index);
	} else if (p->sock >= 0 && again) {
		close(p->sock);
		p->sock = -1;
	} else {
		shm_connection_failed(l, p, why);
	}
}

bool shm_call_all(struct shm_helper *l)
{
	bool later = false;

	for (uint32_t i = 0; i < SHM_CHANNELS; i++) {
		struct shm_peer *p = l->s->peer[i];

		if (!p || p->state != SHM_CONNECTING || p->sock >= 0)
			continue;
		/* its call should have arrived by now; otherwise call again */
		if (p->crossed && base_now_ns() - p->crossed < CROSSED_WAIT_NS) {
			later = true;
			continue;
		}
		p->crossed = 0;
		call(l, p);
		p = l->s->peer[i];
		later |= p && p->sock < 0;
	}
	return later;
}

static const char no_room_there[] =
	"it has no address space, memory or descriptors left to share ours; raise its `ulimit -v` "
	"and `ulimit -n`, or PTL_NAL=udp does without";

/* The reason of a refusal. */
static const char *refusal(const struct shm_hello *h)
{
	switch (h->channel) {
	case SHM_REFUSED_USER:
		return other_user;
	case SHM_REFUSED_MEMORY:
		return no_room_there;
	default:
		return "another process than the one meant is at its address";
	}
}

/* Handle what arrived on the socket of a peer. Locked. */
void shm_hear(struct shm_helper *l, struct shm_peer *p)
{
	struct shm_hello h;
	struct ucred who;
	const char *why;
	int memfd, got;

	if (p->state == SHM_LIVE) {
		char doorbell[16];
		ssize_t n = recv(p->sock, doorbell, sizeof(doorbell), MSG_DONTWAIT);

		p->dropped = n > 0 && memchr(doorbell, SHM_DOORBELL_DROPPED, (size_t)n);
		if (n == 1 && *doorbell == SHM_DOORBELL_GIVEN_UP)
			forget_peer(l, p, PTL_NI_UNREACHABLE, no_room_there);
		else if (p->dropped)
			forget_peer(l, p, PTL_NI_UNREACHABLE, dropped_text);
		else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			shm_connection_failed(l, p, hung_up_text);
		return;
	}
	got = recv_hello(p->sock, &h, &memfd);
	if (got == 0)
		return;
	why = got < 0 ? hung_up_text : refusal(&h);
	if (got > 0 && h.kind == SHM_HELLO_CROSSED) {
		unwatch(l, p->sock);
		close(p->sock);
		p->sock = -1;
		p->crossed = base_now_ns();
	} else if (got < 0 || h.kind != SHM_HELLO_ACCEPT || !same_user(p->sock, &who, &why) ||
		   (why = make_live(l, p, p->sock, &who, &h, memfd))) {
		shm_connection_failed(l, p, why);
	}
	if (memfd >= 0)
		close(memfd);
}

/* ---- being called ---------------------------------------------------------------------------- */

static bool smaller_id(ptl_process_id_t a, ptl_process_id_t b)
{
	return a.nid != b.nid ? a.nid < b.nid : a.pid < b.pid;
}

/* Find or add the peer record of a caller. NULL: answer with *no. Locked. */
static struct shm_peer *peer_for(struct shm_helper *l, const struct shm_hello *h,
				 enum shm_hello_kind *no)
{
	struct ptl_ni *ni = l->s->ni;
	struct shm_peer *p;

	*no = SHM_HELLO_REFUSE;
	if (h->kind != SHM_HELLO_CONNECT || h->interface != ni->index || h->to.nid != ni->id.nid ||
	    h->to.pid != ni->id.pid || (h->from.nid == ni->id.nid && h->from.pid == ni->id.pid) ||
	    in_other_network(l, h->from))
		return NULL;
	p = shm_peer_find(l->s, h->from);
	if (p && p->state == SHM_LIVE) {
		*no = SHM_HELLO_CROSSED;
		if (!shm_peer_ended(l->s, p->index) && !hung_up(p))
			return NULL; /* a late call that crossed ours */
		shm_connection_failed(l, p, hung_up_text);
		p = NULL;
	}
	if (p && !p->crossed && p->sock >= 0 && smaller_id(ni->id, h->from)) {
		*no = SHM_HELLO_CROSSED;
		return NULL;
	}
	if (p && p->sock >= 0) {
		unwatch(l, p->sock);
		close(p->sock);
		p->sock = -1;
	}
	return p ? p : shm_peer_add(l->s, h->from);
}

/* True: the socket is now the peer's. Locked. */
static bool admit(struct shm_helper *l, int fd, const struct shm_hello *h, int memfd)
{
	enum shm_hello_kind no;
	struct shm_peer *p;
	struct ucred who;
	const char *why;

	if (!same_user(fd, &who, &why)) {
		ptl_count_drop(&l->s->ni->engine, PTL_DROP_REFUSED_PEER, 0);
		send_hello(l, fd, SHM_HELLO_REFUSE, h->from, SHM_REFUSED_USER);
		return false;
	}
	p = peer_for(l, h, &no);
	if (!p) {
		if (no == SHM_HELLO_REFUSE)
			ptl_count_drop(&l->s->ni->engine, PTL_DROP_REFUSED_PEER, 0);
		send_hello(l, fd, no, h->from, SHM_REFUSED_STRANGER);
		return false;
	}
	why = make_live(l, p, fd, &who, h, memfd);
	if (why) {
		send_hello(l, fd, SHM_HELLO_REFUSE, h->from,
			   why == no_room || why == no_fds ? SHM_REFUSED_MEMORY
							   : SHM_REFUSED_STRANGER);
		shm_connection_failed(l, p, why);
		return false;
	}
	if (!send_hello(l, fd, SHM_HELLO_ACCEPT, h->from, p->index)) {
		p->sock = -1; /* the caller closes it */
		shm_connection_failed(l, p, hung_up_text);
		return false;
	}
	return true;
}

void shm_accept_caller(struct shm_helper *l)
{
	int fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const char *why;
	struct ucred who;
	uint32_t i = 0;

	if (fd < 0)
		return;
	while (i < MAX_CALLERS && l->caller[i].fd >= 0)
		i++;
	/* Strangers get no entry, so they cannot use up all entries. */
	if (i == MAX_CALLERS || !same_user(fd, &who, &why)) {
		ptl_count_drop(&l->s->ni->engine, PTL_DROP_REFUSED_PEER, 0);
		close(fd);
		return;
	}
	l->caller[i].fd = fd;
	l->caller[i].since = base_now_ns();
	shm_watch(l, fd, ON_CALLER, i);
}

void shm_hear_caller(struct shm_helper *l, uint32_t i)
{
	int fd = l->caller[i].fd, memfd, got;
	struct shm_hello h;

	got = recv_hello(fd, &h, &memfd);
	if (got == 0)
		return;
	unwatch(l, fd);
	l->caller[i].fd = -1;
	if (got > 0 && admit(l, fd, &h, memfd)) {
		struct shm_peer *p = shm_peer_find(l->s, h.from);

		shm_watch(l, fd, ON_PEER, p->index);
	} else {
		close(fd);
	}
	if (memfd >= 0)
		close(memfd);
}

void shm_hang_up_on_silent(struct shm_helper *l, uint64_t asleep_at)
{
	const uint64_t now = base_now_ns();
	/* Longer than requested: the machine stood still, and so may have the callers. */
	const bool stopped = now - asleep_at > 2 * CALLERS_WAIT_MS * 1000000ull;

	for (uint32_t i = 0; i < MAX_CALLERS; i++) {
		if (stopped)
			l->caller[i].since = now;
		if (l->caller[i].fd >= 0 && now - l->caller[i].since > HELLO_WAIT_NS) {
			unwatch(l, l->caller[i].fd);
			close(l->caller[i].fd);
			l->caller[i].fd = -1;
		}
	}
}

/* ---- for the others -------------------------------------------------------------------------- */

void shm_connect_now(struct shm *s, struct shm_peer *p)
{
	struct shm_helper *l = s->helper;
	/* If the connection may well be in vain, the message should go to another NAL. */
	uint64_t end = base_now_ns() + (ptl_apart(s->ni, p->id) ? APART_WAIT_NS : CONNECT_WAIT_NS);
	struct timespec until;
	uint32_t seen;

	p->users++;
	base_wake_call(&l->event);
	while (p->state == SHM_CONNECTING && base_now_ns() < end) {
		seen = atomic_load(&l->changes);
		shm_leave(s->ni, false);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 5000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_mutex_lock(&l->mutex);
		while (atomic_load(&l->changes) == seen)
			if (pthread_cond_timedwait(&l->cond, &l->mutex, &until))
				break;
		pthread_mutex_unlock(&l->mutex);
		ptl_lock(s->ni);
	}
	p->users--;
	if (s->gone)
		shm_peer_reap(s, false);
}

/* Wait a bounded time until what was sent to a peer is in its ring. The peer may have answered a
 * message through our ring before its connection stands here. NULL: it is gone. */
static struct shm_peer *send_deferred_out(struct shm *s, ptl_process_id_t id)
{
	const uint64_t end = base_now_ns() + DROP_WAIT_NS;
	struct shm_peer *p;

	while ((p = shm_peer_find(s, id)) && p->deferred && base_now_ns() < end) {
		shm_flush_deferred(s, p);
		if (p->state == SHM_CONNECTING) {
			shm_connect_now(s, p);
			continue;
		}
		shm_leave(s->ni, false);
		sched_yield();
		ptl_lock(s->ni);
	}
	return p;
}

void shm_drop(struct ptl_ni *ni, ptl_process_id_t id)
{
	struct shm *s = shm_of(ni);
	struct shm_peer *p = send_deferred_out(s, id);

	if (!p || p->index == SHM_SELF)
		return;
	p->dropped = true;
	if (p->sock >= 0)
		send(p->sock, &(const char){ SHM_DOORBELL_DROPPED }, 1,
		     MSG_DONTWAIT | MSG_NOSIGNAL);
	forget_peer(s->helper, p, PTL_NI_UNREACHABLE, dropped_text);
}
