/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Buffered sends: what fits into the attached buffer, which buffer is used, and that a flush
 * that is only started does not wait. Rank 0 sends to rank 1.
 */
#include "test/mpi/pt2pt/check.h"

#define BYTES 100000 /* of a message that waits for its receive */

static char space[1 << 20], space2[1 << 20], data[BYTES];
static MPI_Comm comm, other;

static bool sends(void)
{
	return tap_rank == 0;
}

static const char *receive(MPI_Comm c, int tag, int n)
{
	MPI_Status s;

	memset(data, 0, BYTES);
	MPI_Recv(data, BYTES, MPI_BYTE, 0, tag, c, &s);
	CHECK_INT(count_of(&s), n);
	CHECK_INT(wrong_byte(data, (size_t)n, tag), -1);
	return NULL;
}

/* As many as it was made for, none more; then again, because they have been received. */
static const char *as_many_as_fit(int round)
{
	enum { N = 5 };
	const int room = N * (BYTES + MPI_BSEND_OVERHEAD);
	const char *wrong = NULL;
	void *address;
	int size;

	(void)round;
	if (!sends()) {
		for (int k = 0; k < 2 && !wrong; k++) {
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 99, comm, MPI_STATUS_IGNORE);
			for (int i = N - 1; i >= 0 && !wrong; i--)
				wrong = receive(comm, i, BYTES);
		}
		return wrong;
	}
	CHECK_CLASS(MPI_Bsend(data, 1, MPI_BYTE, 1, 0, comm), MPI_ERR_BUFFER);
	if (!tap_tame) /* MPICH 4.0: no error */
		CHECK_CLASS(MPI_Buffer_detach(&address, &size), MPI_ERR_BUFFER);
	/* not aligned */
	CHECK_OK(MPI_Buffer_attach(space + 3, room));
	CHECK_CLASS(MPI_Buffer_attach(space2, room), MPI_ERR_BUFFER);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < N; i++) {
			fill_bytes(data, BYTES, i);
			CHECK_OK(MPI_Bsend(data, BYTES, MPI_BYTE, 1, i, comm));
		}
		CHECK_CLASS(MPI_Bsend(data, BYTES, MPI_BYTE, 1, N, comm), MPI_ERR_BUFFER);
		CHECK_OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 99, comm));
#ifdef MPI_ABI_VERSION
		CHECK_OK(MPI_Buffer_flush());
#else
		MPI_Buffer_detach(&address, &size);
		MPI_Buffer_attach(space + 3, room);
#endif
	}
	CHECK_OK(MPI_Buffer_detach(&address, &size));
	CHECK(address == space + 3);
	CHECK_INT(size, room);
	return NULL;
}

/* Many sizes, received out of order: room is found between what is left. */
static const char *any_sizes(int round)
{
	enum { N = 12 };
	const char *wrong = NULL;
	int bytes[N], order[N], size;
	void *address;

	for (int i = 0; i < N; i++) {
		bytes[i] = draw_below(30000);
		order[i] = i;
	}
	for (int i = N - 1; i > 0; i--) {
		int j = draw_below(i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	if (!sends()) {
		for (int i = 0; i < N && !wrong; i++) {
			wrong = receive(comm, order[i], bytes[order[i]]);
			MPI_Send(NULL, 0, MPI_BYTE, 0, 98, comm);
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 97, comm, MPI_STATUS_IGNORE);
		}
		return wrong;
	}
	MPI_Buffer_attach(space, N * (30000 + MPI_BSEND_OVERHEAD));
	for (int i = 0; i < N; i++) {
		fill_bytes(data, (size_t)bytes[i], i);
		CHECK_OK(MPI_Bsend(data, bytes[i], MPI_BYTE, 1, i, comm));
	}
	/* an own message comes and goes in the gaps */
	for (int i = 0; i < N; i++) {
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 98, comm, MPI_STATUS_IGNORE);
		fill_bytes(data, 20000, round);
		CHECK_OK(MPI_Bsend(data, round % 2 ? 20000 : 10, MPI_BYTE, 0, 5, comm));
		MPI_Recv(data, BYTES, MPI_BYTE, 0, 5, comm, MPI_STATUS_IGNORE);
		CHECK_INT(wrong_byte(data, round % 2 ? 20000 : 10, round), -1);
		MPI_Send(NULL, 0, MPI_BYTE, 1, 97, comm);
	}
	MPI_Buffer_detach(&address, &size);
	return NULL;
}

#ifdef MPI_ABI_VERSION /* MPI 4.1 */
/* A communicator's own buffer goes before that of the process. */
static const char *of_communicator(int round)
{
	const char *wrong;
	void *address;
	int size;

	(void)round;
	if (!sends()) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 99, comm, MPI_STATUS_IGNORE);
		wrong = receive(other, 1, BYTES);
		return wrong ? wrong : receive(comm, 2, BYTES);
	}
	CHECK_CLASS(MPI_Comm_detach_buffer(other, &address, &size), MPI_ERR_BUFFER);
	CHECK_OK(MPI_Buffer_attach(space, 1000));
	CHECK_OK(MPI_Comm_attach_buffer(other, space2, sizeof(space2)));
	fill_bytes(data, BYTES, 1);
	CHECK_OK(MPI_Bsend(data, BYTES, MPI_BYTE, 1, 1, other));
	CHECK_CLASS(MPI_Bsend(data, BYTES, MPI_BYTE, 1, 1, comm), MPI_ERR_BUFFER);
	CHECK_OK(MPI_Buffer_detach(&address, &size));
	/* that malloc gives */
	CHECK_OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
	fill_bytes(data, BYTES, 2);
	CHECK_OK(MPI_Bsend(data, BYTES, MPI_BYTE, 1, 2, comm));
	CHECK_OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 99, comm));
	CHECK_OK(MPI_Comm_flush_buffer(other));
	CHECK_OK(MPI_Comm_detach_buffer(other, &address, &size));
	CHECK(address == space2 && size == sizeof(space2));
	CHECK_OK(MPI_Buffer_detach(&address, &size));
	CHECK(address == MPI_BUFFER_AUTOMATIC);
	return NULL;
}

/* The receiver wants another message first, which is sent after the flush was started. */
static const char *started_flush(int round)
{
	const char *wrong;
	void *address;
	int size, flag;
	MPI_Request r[3];

	(void)round;
	if (!sends()) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 99, comm, MPI_STATUS_IGNORE);
		wrong = receive(comm, 1, BYTES);
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 99, comm, MPI_STATUS_IGNORE);
		return wrong ? wrong : receive(comm, 2, BYTES);
	}
	MPI_Buffer_attach(space, sizeof(space));
	CHECK_OK(MPI_Buffer_iflush(&r[0]));
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	fill_bytes(data, BYTES, 1);
	CHECK_OK(MPI_Bsend(data, BYTES, MPI_BYTE, 1, 1, comm));
	CHECK_OK(MPI_Buffer_iflush(&r[0]));
	fill_bytes(data, BYTES, 2);
	CHECK_OK(MPI_Bsend(data, BYTES, MPI_BYTE, 1, 2, comm));
	CHECK_OK(MPI_Buffer_iflush(&r[1]));
	MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	CHECK_INT(flag, 0);
	MPI_Send(NULL, 0, MPI_BYTE, 1, 99, comm);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE); /* of the first message, not of the second */
	MPI_Test(&r[1], &flag, MPI_STATUS_IGNORE);
	CHECK_INT(flag, 0);
	MPI_Send(NULL, 0, MPI_BYTE, 1, 99, comm);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&address, &size);
	return NULL;
}
#endif

int main(int argc, char **argv)
{
	tap_start(argc, argv, 4);
	if (tap_size != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	tap_case("buffered: as many messages as fit, and no more", as_many_as_fit);
	tap_case("buffered: messages of any sizes, received in any order", any_sizes);
#ifdef MPI_ABI_VERSION
	tap_case("buffered: the buffer of a communicator, and one that allocates", of_communicator);
	tap_case("buffered: a flush that is started does not wait", started_flush);
#endif
	MPI_Comm_free(&comm);
	MPI_Comm_free(&other);
	return tap_end();
}
