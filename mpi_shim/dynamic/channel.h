/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A channel: the socket over which the roots of two jobs meet, before their processes can
 * exchange messages. It lasts as long as the call that connects the jobs.
 *
 * Both prove first that they have the same secret, with fresh numbers of both. From then on
 * every message carries a tag, with a key that is made of the secret and these numbers. So
 * another process can at most end the channel. Nothing is encrypted.
 *
 *   caller                                answerer
 *   fresh number A              ---->
 *                               <----     fresh number B, tag of (answer, A, B)
 *   tag of (call, A, B)         ---->
 *   then messages of both: length, tag of (direction, number, length, bytes), bytes
 *
 * The global lock is held, and released while a function waits; other operations go on. Errors
 * are those of MPI, with a text kept.
 */
#ifndef MPI_SHIM_CHANNEL_H
#define MPI_SHIM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/siphash.h"

struct mpi_channel {
	int fd; /* nonblocking */
	bool calls;
	unsigned char key[BASE_SIPHASH_BYTES];
	uint64_t sent, received; /* messages */
};

/* Waits until one of `events` (poll) is there. False: `ms` milliseconds have passed; -1: wait for
 * ever. */
bool mpi_channel_wait(int fd, short events, int64_t ms);

/*
 * Makes a channel of a connected socket, which it owns from now on, also if it fails. `calls`: this
 * is the caller's end. `ms`: how long the other end may take for its part; -1: for ever.
 */
int mpi_channel_open(struct mpi_channel *c, int fd, bool calls,
		     const unsigned char secret[BASE_SIPHASH_BYTES], int64_t ms);
void mpi_channel_close(struct mpi_channel *c);

/* Exchanges n bytes over a socket of the program's, before there is a channel. */
int mpi_channel_swap(int fd, const void *mine, void *theirs, size_t n);

/* Makes a key for other uses, which both ends compute. It is of no use for the channel. */
void mpi_channel_key(const struct mpi_channel *c, unsigned char key[2 * BASE_SIPHASH_BYTES]);

/* Sends a message and receives one of at most `room` bytes. Both ends call it. As mpi_creation's
 * `exchange`. */
int mpi_channel_exchange(void *channel, const void *mine, size_t size, void *theirs, size_t room,
			 size_t *got);

#endif
