/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Point-to-point communication and requests in C++, on a ring of all ranks.
 */
#include "check.h"

#include <cstring>
#include <vector>

namespace {

typedef void (MPI::Comm::*Send)(const void *, int, const MPI::Datatype &, int, int) const;
typedef MPI::Request (MPI::Comm::*Isend)(const void *, int, const MPI::Datatype &, int, int) const;
typedef MPI::Prequest (MPI::Comm::*Send_init)(const void *, int, const MPI::Datatype &, int, int) const;

int rank, size, left, right;

/* A receive is posted before any rank sends, so that ready mode is right, too. */
void all_modes()
{
	const MPI::Intracomm &world = MPI::COMM_WORLD;
	const Send sends[] = { &MPI::Comm::Send, &MPI::Comm::Bsend, &MPI::Comm::Ssend, &MPI::Comm::Rsend };
	const Isend isends[] = { &MPI::Comm::Isend, &MPI::Comm::Ibsend, &MPI::Comm::Issend, &MPI::Comm::Irsend };
	const Send_init inits[] = { &MPI::Comm::Send_init, &MPI::Comm::Bsend_init, &MPI::Comm::Ssend_init,
				    &MPI::Comm::Rsend_init };
	std::vector<char> buffer(4096 + MPI::BSEND_OVERHEAD);
	void *detached = NULL;
	bool good = true;

	MPI::Attach_buffer(&buffer[0], (int)buffer.size());
	for (int i = 0; i < 12; i++) {
		int mine = 100 * i + rank, got = -1;
		MPI::Request receive = world.Irecv(&got, 1, MPI::INT, left, i);

		world.Barrier();
		if (i < 4) {
			(world.*sends[i])(&mine, 1, MPI::INT, right, i);
		} else if (i < 8) {
			MPI::Request request = (world.*isends[i - 4])(&mine, 1, MPI::INT, right, i);
			request.Wait();
			good = good && request == MPI::REQUEST_NULL;
		} else {
			MPI::Prequest request = (world.*inits[i - 8])(&mine, 1, MPI::INT, right, i);
			request.Start();
			request.Wait();
			good = good && request != MPI::REQUEST_NULL;
			request.Free();
		}
		MPI::Status status;
		receive.Wait(status);
		good = good && got == 100 * i + left && status.Get_source() == left && status.Get_tag() == i &&
		       status.Get_count(MPI::INT) == 1 && status.Get_elements(MPI::INT) == 1 &&
		       !status.Is_cancelled();
	}
	good = good && MPI::Detach_buffer(detached) == (int)buffer.size() && detached == &buffer[0];
	check(good, "each mode of sending, blocking, non-blocking and persistent");
}

void probes()
{
	const MPI::Intracomm &world = MPI::COMM_WORLD;
	double mine = rank + 0.5, got = 0;
	MPI::Request request = world.Isend(&mine, 1, MPI::DOUBLE, right, 7);
	MPI::Status status;

	world.Probe(left, 7, status);
	bool there = world.Iprobe(MPI::ANY_SOURCE, MPI::ANY_TAG) && world.Iprobe(left, 7, status) &&
		     !world.Iprobe(left, 8);
	world.Recv(&got, 1, MPI::DOUBLE, status.Get_source(), status.Get_tag());
	request.Wait();
	check(there && got == left + 0.5, "Probe, Iprobe");

	int pair[2] = { rank, -1 };
	world.Sendrecv(&pair[0], 1, MPI::INT, right, 1, &pair[1], 1, MPI::INT, left, 1, status);
	world.Sendrecv_replace(&pair[0], 1, MPI::INT, right, 2, left, 2);
	check(pair[0] == left && pair[1] == left, "Sendrecv, Sendrecv_replace");
	world.Send(NULL, 0, MPI::INT, MPI::PROC_NULL, 0);
}

void many_requests()
{
	enum { N = 6 };
	const MPI::Intracomm &world = MPI::COMM_WORLD;
	MPI::Request requests[N], sends[N];
	MPI::Status statuses[N];
	int mine[N], got[N], indices[N], index = -1, done = 0;

	for (int i = 0; i < N; i++) {
		mine[i] = rank * N + i;
		got[i] = -1;
		requests[i] = world.Irecv(&got[i], 1, MPI::INT, left, i);
	}
	check(!MPI::Request::Testall(N, requests) && !MPI::Request::Testany(N, requests, index) &&
		      MPI::Request::Testsome(N, requests, indices) == 0 && !requests[0].Test() &&
		      !requests[0].Get_status(),
	      "nothing is complete that nobody has sent");
	world.Barrier();
	for (int i = 0; i < N; i++)
		sends[i] = world.Isend(&mine[i], 1, MPI::INT, right, i);
	MPI::Request::Waitall(N, sends);
	index = MPI::Request::Waitany(N, requests, statuses[0]);
	done = statuses[0].Get_tag() == index && requests[index] == MPI::REQUEST_NULL;
	int some = MPI::Request::Waitsome(N, requests, indices, statuses);
	for (int i = 0; i < some; i++)
		done += statuses[i].Get_tag() == indices[i] && requests[indices[i]] == MPI::REQUEST_NULL;
	check(done == 1 + some, "Waitany, Waitsome");
	MPI::Request::Waitall(N, requests, statuses);
	done = 0;
	for (int i = 0; i < N; i++)
		done += got[i] == left * N + i && requests[i] == MPI::REQUEST_NULL;
	check(done == N && MPI::Request::Testall(N, requests, statuses) &&
		      MPI::Request::Testany(N, requests, index, statuses[0]) && index == MPI::UNDEFINED,
	      "Waitall, Testall");

	MPI::Prequest both[2];
	int out = rank, in = -1;
	both[0] = world.Recv_init(&in, 1, MPI::INT, left, 9);
	both[1] = world.Send_init(&out, 1, MPI::INT, right, 9);
	bool good = true;
	for (int round = 0; round < 3; round++) {
		out = rank + 10 * round;
		MPI::Prequest::Startall(2, both);
		both[1].Wait();
		while (!both[0].Test()) {
		}
		good = good && in == left + 10 * round;
	}
	both[0].Free();
	both[1].Free();
	check(good && both[0] == MPI::REQUEST_NULL, "Startall");

	MPI::Request never = world.Irecv(&in, 1, MPI::INT, left, 12345);
	MPI::Status status;
	never.Cancel();
	never.Wait(status);
	check(status.Is_cancelled(), "Cancel");
}

} // namespace

void check_messages()
{
	rank = MPI::COMM_WORLD.Get_rank();
	size = MPI::COMM_WORLD.Get_size();
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	all_modes();
	probes();
	many_requests();
}
