/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * RWAPI, the remote-write interface of Ben Fredj and Renault: one primitive, the remote write,
 * and short messages beside it. Every function has a man page in section 3; doc/rwapi.md says
 * what the paper fixes and what this implementation chose.
 */
#ifndef RWAPI_H
#define RWAPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A network address: 24 bits name a block of rwapi_alloc(), 40 bits are the offset in it. So
 * offsets may be added to it. It has meaning together with the rank that it came from. 0 is no
 * address. */
typedef uint64_t rwapi_net_t;

/* The content of a short message. Bytes are not converted. */
typedef union {
	unsigned char byte[16];
	uint32_t word32[4];
	uint64_t word[2];
} rwapi_small_t;

/* The number of a write of this process, counted from 1. */
typedef int64_t rwapi_sid_t;

/* Success is 0 unless a function says otherwise; failures are negative. */
enum {
	RWAPI_OK = 0,
	RWAPI_EINVAL = -1,   /* bad argument, no such rank, address not of this process */
	RWAPI_ENOMEM = -2,   /* out of memory */
	RWAPI_ESTATE = -3,   /* before rwapi_init, after rwapi_finalize, or rwapi_init again */
	RWAPI_EPEER = -4,    /* the process written to has ended or cannot be reached */
	RWAPI_EADDRESS = -5, /* a write was refused by its target: no such memory there */
	RWAPI_ENET = -6      /* the transport or the launcher failed */
};

/* Join the job. Collective. argc and argv are not used yet and may be 0 and NULL. */
int rwapi_init(int argc, char **argv);
/* Leave it, when all that this process sent has arrived. Collective. RWAPI_EADDRESS or
 * RWAPI_EPEER: it is left all the same, and some write was refused, or some process has ended. */
int rwapi_finalize(void);
/* Number of processes, and which of them this is; -1 outside of init and finalize. */
int rwapi_size(void);
int rwapi_rank(void);

/* A block of `size` bytes that may be written from and to; *net becomes its network address.
 * NULL: out of memory, net is NULL, or outside of init and finalize. */
void *rwapi_alloc(size_t size, rwapi_net_t *net);
/* Free a block, when own writes from it are sent, and what is arriving has arrived. */
int rwapi_free(void *block);

/* Send 16 bytes to a process. It receives them after all data of the writes that this process
 * started earlier to it. */
int rwapi_send(int node, rwapi_small_t small);
/* The oldest short message that was not received yet: 1, and its sender and content. 0: none. */
int rwapi_receive(int *node, rwapi_small_t *small);
/* Sleep until a short message can be received (1) or the time is over (0); -1: for ever. */
int rwapi_wait(int milliseconds);

/* Write `size` bytes at `local`, in a block of this process, to `remote`, in one of `node`. The
 * value is the number of the write, or a failure: then nothing was sent. */
rwapi_sid_t rwapi_write(int node, rwapi_net_t local, rwapi_net_t remote, size_t size);
/* May the local area of a write be changed? 1: yes. 0: not yet. Failures: yes, and the write
 * was refused (RWAPI_EADDRESS), or did not arrive for another reason. */
int rwapi_issent(rwapi_sid_t sid);

/* The meaning of a failure, as a text. */
const char *rwapi_strerror(int error);

/* A network address as 8 bytes for a process of any byte order, and back. */
void rwapi_net_pack(unsigned char bytes[8], rwapi_net_t net);
rwapi_net_t rwapi_net_unpack(const unsigned char bytes[8]);

/* The names of the paper. */
#ifdef RWAPI_SHORT_NAMES
typedef rwapi_net_t net;
typedef rwapi_small_t small;
typedef rwapi_sid_t sid;
typedef int node;
typedef size_t size;
#endif

#ifdef __cplusplus
}
#endif

#endif
