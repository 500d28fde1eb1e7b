/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The socket between the roots of two jobs: see channel.h.
 */
#include "mpi_shim/dynamic/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/core/world.h"

enum {
	TAG = BASE_SIPHASH_BYTES,
	FRESH = 16,
	LENGTH = 8,
	POLL_MS = 2 /* messages are looked after so often while the socket is waited for */
};

enum purpose { ANSWER = 1, CALL, SESSION, KEY_LOW, KEY_HIGH };

bool mpi_channel_wait(int fd, short events, int64_t ms)
{
	const int64_t end = mpi_now_ms() + ms;
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		if (poll(&p, 1, 0) > 0)
			return true;
		if (ms >= 0 && mpi_now_ms() >= end)
			return false;
		if (mpi_progress(false))
			continue;
		mpi_unlock();
		poll(&p, 1, POLL_MS);
		mpi_lock();
	}
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int broken(void)
{
	return mpi_fail(MPI_ERR_PROC_ABORTED,
			"the root of the other job has ended, or has given up");
}

/* Bytes under way in one direction. */
struct stream {
	char *at;
	size_t left;
};

/* Moves what can be moved now. False: the connection has ended. */
static bool move_stream(int fd, struct stream *s, bool out)
{
	ssize_t n;

	if (!s->left)
		return true;
	n = out ? send(fd, s->at, s->left, MSG_NOSIGNAL | MSG_DONTWAIT)
		: recv(fd, s->at, s->left, MSG_DONTWAIT);
	if (n > 0) {
		s->at += n;
		s->left -= (size_t)n;
		return true;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Moves all of both. MPI_ERR_PENDING, without a text: time is over. */
static int move_both(int fd, struct stream *out, struct stream *in, int64_t ms)
{
	const int64_t end = mpi_now_ms() + ms;

	while (out->left || in->left) {
		short events = (short)((out->left ? POLLOUT : 0) | (in->left ? POLLIN : 0));
		int64_t rest = ms < 0 ? -1 : end - mpi_now_ms();

		if (!mpi_channel_wait(fd, events, rest < 0 && ms >= 0 ? 0 : rest))
			return MPI_ERR_PENDING;
		/* the other end may have closed after its last bytes: take them first */
		if (!move_stream(fd, in, false) || !move_stream(fd, out, true))
			return broken();
	}
	return MPI_SUCCESS;
}

static int send_bytes(int fd, void *bytes, size_t n, int64_t ms)
{
	return move_both(fd, &(struct stream){ bytes, n }, &(struct stream){ NULL, 0 }, ms);
}

static int receive_bytes(int fd, void *bytes, size_t n, int64_t ms)
{
	return move_both(fd, &(struct stream){ NULL, 0 }, &(struct stream){ bytes, n }, ms);
}

int mpi_channel_swap(int fd, const void *mine, void *theirs, size_t n)
{
	return move_both(fd, &(struct stream){ (char *)(uintptr_t)mine, n },
			 &(struct stream){ theirs, n }, -1);
}

/* ---- the proof ------------------------------------------------------------------------------- */

static void make_proof(const unsigned char *secret, enum purpose purpose,
		       const unsigned char fresh[2 * FRESH], unsigned char *out)
{
	unsigned char text[1 + 2 * FRESH] = { (unsigned char)purpose };

	memcpy(text + 1, fresh, sizeof(text) - 1);
	base_siphash(secret, text, sizeof(text), out);
}

/* Takes as long whatever differs. */
static bool same_tag(const unsigned char *a, const unsigned char *b)
{
	unsigned char differs = 0;

	for (int i = 0; i < TAG; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

static int refuse(void)
{
	return mpi_fail(MPI_ERR_PORT, "the other end does not have the port's secret");
}

static int prove_as_caller(int fd, const unsigned char *secret, unsigned char fresh[2 * FRESH],
			   int64_t ms)
{
	unsigned char heard[FRESH + TAG], proof[TAG];
	int err = send_bytes(fd, fresh, FRESH, ms);

	if (err == MPI_SUCCESS)
		err = receive_bytes(fd, heard, sizeof(heard), ms);
	if (err != MPI_SUCCESS)
		return err;
	memcpy(fresh + FRESH, heard, FRESH);
	make_proof(secret, ANSWER, fresh, proof);
	if (!same_tag(proof, heard + FRESH))
		return refuse();
	make_proof(secret, CALL, fresh, proof);
	return send_bytes(fd, proof, TAG, ms);
}

static int prove_as_answerer(int fd, const unsigned char *secret, unsigned char fresh[2 * FRESH],
			     int64_t ms)
{
	unsigned char said[FRESH + TAG], proof[TAG], heard[TAG];
	int err = receive_bytes(fd, fresh, FRESH, ms);

	if (err != MPI_SUCCESS)
		return err;
	memcpy(said, fresh + FRESH, FRESH);
	make_proof(secret, ANSWER, fresh, said + FRESH);
	err = send_bytes(fd, said, sizeof(said), ms);
	if (err == MPI_SUCCESS)
		err = receive_bytes(fd, heard, TAG, ms);
	make_proof(secret, CALL, fresh, proof);
	return err == MPI_SUCCESS && !same_tag(proof, heard) ? refuse() : err;
}

int mpi_channel_open(struct mpi_channel *c, int fd, bool calls,
		     const unsigned char secret[BASE_SIPHASH_BYTES], int64_t ms)
{
	unsigned char fresh[2 * FRESH];
	int err = MPI_SUCCESS;

	*c = (struct mpi_channel){ .fd = fd, .calls = calls };
	if (!base_random(calls ? fresh : fresh + FRESH, FRESH))
		err = mpi_fail(MPI_ERR_OTHER, "the system gives no random numbers");
	if (err == MPI_SUCCESS)
		err = calls ? prove_as_caller(fd, secret, fresh, ms)
			    : prove_as_answerer(fd, secret, fresh, ms);
	if (err == MPI_ERR_PENDING)
		err = mpi_fail(MPI_ERR_PORT, "the other end says nothing");
	if (err == MPI_SUCCESS)
		make_proof(secret, SESSION, fresh, c->key);
	else
		mpi_channel_close(c);
	return err;
}

void mpi_channel_close(struct mpi_channel *c)
{
	if (c->fd >= 0)
		close(c->fd);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

void mpi_channel_key(const struct mpi_channel *c, unsigned char key[2 * BASE_SIPHASH_BYTES])
{
	const unsigned char low = KEY_LOW, high = KEY_HIGH;

	base_siphash(c->key, &low, 1, key);
	base_siphash(c->key, &high, 1, key + BASE_SIPHASH_BYTES);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct head {
	uint64_t length;
	unsigned char tag[TAG];
};

/* The tag of a message; it is long enough for its bytes to be hashed by themselves first. */
static void make_tag(const struct mpi_channel *c, bool by_caller, uint64_t number,
		     const void *bytes, uint64_t length, unsigned char *tag)
{
	struct {
		uint64_t by_caller, number, length;
		unsigned char sum[TAG];
	} all = { by_caller + 0x100, number, length, { 0 } };

	base_siphash(c->key, bytes, length, all.sum);
	base_siphash(c->key, &all, sizeof(all), tag);
}

int mpi_channel_exchange(void *channel, const void *mine, size_t size, void *theirs, size_t room,
			 size_t *got)
{
	struct mpi_channel *c = channel;
	struct head out = { .length = size }, in;
	unsigned char tag[TAG], few[8];
	int err;

	make_tag(c, c->calls, c->sent++, mine, size, out.tag);
	err = move_both(c->fd, &(struct stream){ (char *)&out, sizeof(out) },
			&(struct stream){ (char *)&in, sizeof(in) }, -1);
	/* a message that says that there are no data may come instead of longer ones, or of none */
	if (err == MPI_SUCCESS && in.length > room && in.length > sizeof(few))
		err = mpi_fail(MPI_ERR_OTHER, "the other job speaks otherwise");
	if (err != MPI_SUCCESS)
		return err;
	if (in.length > room)
		theirs = few;
	err = move_both(c->fd, &(struct stream){ (char *)(uintptr_t)mine, size },
			&(struct stream){ theirs, in.length }, -1);
	if (err != MPI_SUCCESS)
		return err;
	make_tag(c, !c->calls, c->received++, theirs, in.length, tag);
	if (!same_tag(tag, in.tag))
		return refuse();
	*got = in.length;
	return MPI_SUCCESS;
}
