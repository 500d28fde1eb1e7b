/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The two system calls of a short message, inline. No function here waits. They return the
 * kernel's result or a negative errno, except udp_call_send_many(), which sets errno.
 *
 * After a system call, the processor's prediction of return addresses may hold places in the
 * kernel, above all where the kernel defends itself against speculation. Then every return
 * from a function that was entered before the call is predicted wrong. The processor takes
 * long to give up what it began at such a place. On an AMD EPYC with the kernel's Safe RET, a
 * ping-pong of bare sockets took a fifth less time without this effect. Other processors and
 * other defences have not been measured.
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
 * Fill the processor's prediction of return addresses with places of ours, one for each
 * function that may return before the prediction is right again. They are wrong, too, but are
 * given up at once. The bytes below the stack pointer may be in use by the enclosing function
 * (System V ABI, section 3.2.2). Nothing returns from these calls, so this cannot be done with
 * a shadow stack.
 *
 * Unwind tables are not told that the stack pointer moves. The directive that is right for
 * frames found by the stack pointer would be wrong for those found by a frame pointer, and we
 * cannot know which is used. A profiler that unwinds the stack from a signal within these 18
 * instructions may see false callers.
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

/* Returns the kernel's result, or a negative errno. */
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

/* Is this the errno with which a container's filter refuses a call? If the filter refuses a
 * single packet, the plain call reports the same. */
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

/* As sendto, without waiting. */
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
