/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The file in which an MPI process writes what it waits for. It has no name (base/shared.h);
 * portals-stat and mpiexec find it in /proc/PID/fd and map it read-only. The process writes it
 * only while a wait is long, again and again until that ends. So a process whose last entry is
 * old does not wait. Any change of layout changes BASE_WAITS_VERSION.
 */
#ifndef BASE_WAITS_H
#define BASE_WAITS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define BASE_WAITS_MEMFD   "postern-waits"
#define BASE_WAITS_MAGIC   0x7374696177506f33ull
#define BASE_WAITS_VERSION 1u

enum {
	BASE_WAITS_FRAMES = 32,
	BASE_WAITS_MOST = 4,
	BASE_WAITS_OPS = 16,
	BASE_WAITS_MESSAGES = 16,
	BASE_WAITS_COMMS = 16,
	BASE_WAITS_NAME = 40,
	BASE_WAITS_BEAT_MS = 250 /* a process that waits writes about as often */
};

#define BASE_WAITS_ANY  (-1) /* a peer or a tag: any */
#define BASE_WAITS_NONE UINT32_MAX

enum base_wait_kind {
	BASE_WAIT_REQUEST = 1, /* for the operation `op` */
	BASE_WAIT_ANY,         /* for any of several operations */
	BASE_WAIT_PROBE,       /* for a message */
	BASE_WAIT_COLLECTIVE,  /* for the other ranks of a communicator */
	BASE_WAIT_LOCK,        /* for the lock of a rank's window */
	BASE_WAIT_EPOCH,       /* for a rank's post or complete of a window */
	BASE_WAIT_KINDS
};

/* One thread that waits. Peers are ranks in MPI_COMM_WORLD. */
struct base_wait {
	uint32_t kind;
	uint32_t op;      /* index in `ops`, or BASE_WAITS_NONE */
	uint32_t context; /* of the communicator, or of that of the window */
	int32_t peer, tag;
	uint32_t frames;
	int64_t since_ms;
	uint64_t frame[BASE_WAITS_FRAMES]; /* return addresses, the innermost first */
};

enum base_wait_op_kind {
	BASE_WAIT_OP_SEND = 1,
	BASE_WAIT_OP_RECV,
	BASE_WAIT_OP_COLLECTIVE,
	BASE_WAIT_OP_OTHER,
	BASE_WAIT_OP_LOCKED, /* not an operation: the process holds this lock */
	BASE_WAIT_OP_KINDS
};

#define BASE_WAIT_OP_AWAITED 1u /* some thread waits for it */
#define BASE_WAIT_OP_MOVES   2u /* it ends without anything that a rank must still do */
#define BASE_WAIT_OP_SYNC    4u /* a send that ends when it is received */

/* An operation in progress. */
struct base_wait_op {
	uint32_t kind, flags;
	uint32_t context; /* odd: a message of a collective */
	uint32_t handle;
	int32_t peer, tag;
	int64_t bytes; /* a receive: room */
	int64_t since_ms;
};

/* A message that has come before its receive. */
struct base_wait_message {
	uint32_t context;
	int32_t source; /* rank in MPI_COMM_WORLD */
	int32_t tag;
	uint32_t pad_;
	int64_t bytes;
};

struct base_wait_comm {
	uint32_t context;
	int32_t size, rank;
	uint32_t members; /* a hash: communicators without common members may have equal contexts */
	uint64_t calls;   /* collectives called so far */
	char name[BASE_WAITS_NAME];
};

/* The part that is written anew with each beat. The counts may be larger than the arrays. */
struct base_waits_body {
	int64_t beat_ms;  /* CLOCK_MONOTONIC */
	int64_t since_ms; /* since then nothing has changed */
	uint32_t waits, ops, messages, comms;
	uint32_t moving; /* operations with BASE_WAIT_OP_MOVES, listed or not */
	uint32_t pad_;
	struct base_wait wait[BASE_WAITS_MOST];
	struct base_wait_op op[BASE_WAITS_OPS];
	struct base_wait_message message[BASE_WAITS_MESSAGES];
	struct base_wait_comm comm[BASE_WAITS_COMMS];
};

struct base_waits {
	uint64_t magic;
	uint32_t version;
	int32_t pid; /* as the process itself sees it */
	int32_t rank, size;
	uint32_t threaded; /* MPI_THREAD_MULTIPLE */
	uint32_t pad_;
	uint64_t job; /* the same for all ranks of a job */
	/* Odd while the body is written. A release; pairs with the acquire of the reader. */
	_Atomic uint32_t sequence;
	uint32_t pad2_;
	struct base_waits_body body;
};
static_assert(sizeof(struct base_waits) <= 4096, "one page");

#endif
