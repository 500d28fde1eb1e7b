/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Other processes of our user on the sockets of shared memory, who are no peers: one that calls
 * with a hello it made up, and one that has a peer's name and refuses.
 */
#include "ptest.h"

#include <portals3_ext.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "nal/shm/shm_wire.h"

enum { PORTAL = 6, PATIENCE = 10, CALLS = 20 };

static socklen_t address(struct sockaddr_un *a, ptl_process_id_t id)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
					    "postern-0-%08x-%u", id.nid, id.pid));
}

static void say_hello(int fd, struct shm_hello h, int memfd)
{
	struct iovec iov = { &h, sizeof(h) };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (memfd >= 0) {
		m.msg_control = c.space;
		m.msg_controllen = sizeof(c.space);
		cm = CMSG_FIRSTHDR(&m);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &memfd, sizeof(int));
	}
	pt_is(sendmsg(fd, &m, MSG_NOSIGNAL), sizeof(h));
}

static struct shm_hello hello(enum shm_hello_kind kind, ptl_process_id_t from, ptl_process_id_t to,
			      uint32_t channel)
{
	return (struct shm_hello){
		.magic = SHM_HELLO_MAGIC,
		.version = SHM_HELLO_VERSION,
		.kind = (uint16_t)kind,
		.from = from,
		.to = to,
		.channel = channel,
	};
}

/* Answers what was refused, and stays as it was. */
static void a_channel_that_does_not_exist_is_refused(void)
{
	const uint32_t channels[] = { 1u << 12, 1u << 31, UINT32_MAX };
	ptl_handle_eq_t eq = pt_open_target(PORTAL);
	ptl_process_id_t nobody = pt_target();
	struct sockaddr_un a;
	socklen_t len = address(&a, pt_target());
	struct shm_hello answer;
	int fd, memfd;

	if (pt_is_target()) {
		pt_is(pt_next(eq, PTL_EVENT_PUT_END).hdr_data, 1);
		return;
	}
	memfd = memfd_create("no region", MFD_CLOEXEC);
	pt_true(memfd >= 0);
	for (uint32_t i = 0; i < CALLS; i++) {
		nobody.pid = 4000000000u + i;
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		pt_is(connect(fd, (struct sockaddr *)&a, len), 0);
		say_hello(fd, hello(SHM_HELLO_CONNECT, nobody, pt_target(), channels[i % 3]),
			  memfd);
		pt_is(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
		pt_is(answer.kind, SHM_HELLO_REFUSE);
		close(fd);
	}
	close(memfd);
	pt_exchange(eq, PORTAL, 1);
}

/* Where there are no pidfds, too. */
static void who_refuses_has_not_ended(void)
{
	ptl_process_id_t other;
	struct sockaddr_un a;
	ptl_ni_fail_t fail = PTL_NI_OK;
	struct shm_hello call;
	unsigned long distance;
	char text[300], got[sizeof(call) + 1];
	int fd, caller;

	pt_open();
	other = pt_id(0);
	other.pid = 4000000000u;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pt_is(bind(fd, (struct sockaddr *)&a, address(&a, other)), 0);
	pt_is(listen(fd, 1), 0);
	(void)PtlNIDist(pt_ni, other, &distance);
	caller = accept(fd, NULL, NULL);
	pt_true(caller >= 0);
	do
		pt_true(recv(caller, got, sizeof(got), 0) > 0);
	while (*got == SHM_DOORBELL);
	/* at once, so that both are there when it looks */
	say_hello(caller, hello(SHM_HELLO_REFUSE, other, pt_id(0), SHM_REFUSED_MEMORY), -1);
	close(caller);
	close(fd);
	pt_until((pt_ok(PtlPeerReason(pt_ni, other, &fail, text, sizeof(text))), fail != PTL_NI_OK),
		 PATIENCE);
	pt_is(fail, PTL_NI_UNREACHABLE);
	pt_truef(strstr(text, "ulimit"), "it says: %s", text);
}

static const struct pt_test tests[] = {
	PT_CASE(a_channel_that_does_not_exist_is_refused, 2),
	PT_CASE(who_refuses_has_not_ended, 1),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
