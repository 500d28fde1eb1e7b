/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The two system calls of a short message, in line. Behind a call of the kernel a processor may
 * have forgotten where calls return to: what it remembers are places in the kernel, above all
 * where that defends itself against speculation. Then every return from a function that was
 * entered before is predicted wrong, and what was begun at such a place is long in being given
 * up. So it was on an AMD EPYC with the kernel's Safe RET: a ping-pong of bare sockets took a
 * fifth less without it. On other processors, and with other defences, it has not been measured.
 */
#ifndef UDP_CALL_H
#define UDP_CALL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__ILP32__) && !(defined(__CET__) && __CET__ & 2)
#define FORGET   "call 1f\n\tint3\n1:\t"
#define FORGET_4 FORGET FORGET FORGET FORGET

/*
 * Puts places of ours into the processor's memory of where calls return to, one for each
 * function that may return before it knows better. They are as wrong, but at once given up.
 * Below the stack pointer are bytes that the function around may use (System V ABI, section
 * 3.2.2). Nothing returns from these calls, so it cannot be done with a shadow stack.
 *
 * Unwind tables are not told that the stack pointer moves: the directive that is right where a
 * frame is found by it would be wrong where it is found by a frame pointer, and we cannot know
 * which. What unwinds the stack from a signal that comes meanwhile, within 18 instructions, such
 * as a profiler, may see callers that are none.
 */
static inline void udp_call_forget(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t" FORGET_4 FORGET_4 FORGET_4 FORGET_4
			 "lea 128 + 16 * 8(%%rsp), %%rsp"
			 :
			 :
			 : "memory");
}

#undef FORGET_4
#undef FORGET
#else
static inline void udp_call_forget(void)
{
}
#endif

/* The kernel's result: what it is, or a negative errno. */
static inline long udp_call(long number, int fd, const void *bytes, size_t len, int flags,
			    const void *addr, uintptr_t addr_len)
{
#if defined(__x86_64__) && !defined(__ILP32__)
	register long r10 __asm__("r10") = flags;
	register const void *r8 __asm__("r8") = addr;
	register uintptr_t r9 __asm__("r9") = addr_len;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"((long)fd), "S"(bytes), "d"(len), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	udp_call_forget();
	return result;
#else
	long result = syscall(number, fd, bytes, len, flags, addr, addr_len);

	return result < 0 ? -errno : result;
#endif
}

/* What a container's filter answers to a call that it refuses. Of one packet that is filtered the
 * plain call says the same. */
static inline bool udp_call_refused(int err)
{
	return err == ENOSYS || err == EPERM;
}

/* As sendmmsg, without waiting. */
static inline int udp_call_send_many(int fd, struct mmsghdr *m, unsigned int n)
{
	int k = sendmmsg(fd, m, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (k >= 0 || !udp_call_refused(errno))
		return k;
	return sendmsg(fd, &m->msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1;
}

/* Without waiting. */
static inline long udp_call_send(int fd, const void *bytes, size_t len, const void *to,
				 socklen_t to_len)
{
	return udp_call(SYS_sendto, fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, to_len);
}

static inline long udp_call_recv(int fd, void *bytes, size_t len, void *from, socklen_t *from_len)
{
	return udp_call(SYS_recvfrom, fd, bytes, len, MSG_DONTWAIT, from, (uintptr_t)from_len);
}

#endif
