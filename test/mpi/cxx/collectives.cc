/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collective operations in C++, each with its result checked, with predefined operations and one in C++.
 */
#include "check.h"

#include <complex>
#include <vector>

namespace {

const MPI::Intracomm &world = MPI::COMM_WORLD;

/* b after a: not commutative */
void last_but_one(const void *invec, void *inoutvec, int len, const MPI::Datatype &type)
{
	const int *in = static_cast<const int *>(invec);
	int *inout = static_cast<int *>(inoutvec);

	for (int i = 0; i < len && type == MPI::INT; i++)
		inout[i] = in[i] * 3 + inout[i];
}

void moves()
{
	int rank = world.Get_rank(), size = world.Get_size(), n = rank == 0 ? 42 : 0, mine = 10 + rank, got = -1;
	std::vector<int> all(size), counts(size, 1), displs(size), parts(size), types_at(size);
	bool good = true;

	world.Bcast(&n, 1, MPI::INT, 0);
	check(n == 42, "Bcast");
	for (int i = 0; i < size; i++) {
		displs[i] = size - 1 - i;
		types_at[i] = (int)sizeof(int) * i;
		parts[i] = 100 * rank + i;
	}
	world.Gather(&mine, 1, MPI::INT, &all[0], 1, MPI::INT, 0);
	world.Scatter(&all[0], 1, MPI::INT, &got, 1, MPI::INT, 0);
	check(got == mine, "Gather, Scatter");
	world.Gatherv(&mine, 1, MPI::INT, &all[0], &counts[0], &displs[0], MPI::INT, 0);
	good = rank != 0 || all[0] == 10 + size - 1;
	got = -1;
	world.Scatterv(&all[0], &counts[0], &displs[0], MPI::INT, &got, 1, MPI::INT, 0);
	check(good && got == mine, "Gatherv, Scatterv");
	world.Allgather(&mine, 1, MPI::INT, &all[0], 1, MPI::INT);
	good = all[size - 1] == 10 + size - 1;
	world.Allgatherv(&mine, 1, MPI::INT, &all[0], &counts[0], &displs[0], MPI::INT);
	check(good && all[0] == 10 + size - 1, "Allgather, Allgatherv");
	world.Alltoall(&parts[0], 1, MPI::INT, &all[0], 1, MPI::INT);
	good = all[size - 1] == 100 * (size - 1) + rank;
	world.Alltoallv(&parts[0], &counts[0], &displs[0], MPI::INT, &all[0], &counts[0], &displs[0], MPI::INT);
	check(good && all[displs[0]] == size - 1 - rank, "Alltoall, Alltoallv");
	std::vector<MPI::Datatype> types(size, MPI::INT);
	world.Alltoallw(&parts[0], &counts[0], &types_at[0], &types[0], &all[0], &counts[0], &types_at[0], &types[0]);
	check(all[size - 1] == 100 * (size - 1) + rank, "Alltoallw");
}

void sums()
{
	int rank = world.Get_rank(), size = world.Get_size(), mine = rank + 1, got = 0, want = 0, before = 0;
	std::vector<int> counts(size, 1), ones(size, 1);

	world.Allreduce(&mine, &got, 1, MPI::INT, MPI::SUM);
	check(got == size * (size + 1) / 2, "Allreduce");
	world.Scan(&mine, &got, 1, MPI::INT, MPI::SUM);
	check(got == (rank + 1) * (rank + 2) / 2, "Scan");
	world.Exscan(&mine, &before, 1, MPI::INT, MPI::SUM);
	check(rank == 0 || before == got - mine, "Exscan");
	world.Reduce_scatter(&ones[0], &got, &counts[0], MPI::INT, MPI::SUM);
	check(got == size, "Reduce_scatter");
	world.Reduce_scatter_block(&ones[0], &got, 1, MPI::INT, MPI::MAX);
	check(got == 1, "Reduce_scatter_block");

	std::complex<double> z(rank, 1), sum;
	world.Allreduce(&z, &sum, 1, MPI::DOUBLE_COMPLEX, MPI::SUM);
	check(sum == std::complex<double>(size * (size - 1) / 2, size), "std::complex");
	bool here = rank == size - 1, anywhere = false;
	world.Allreduce(&here, &anywhere, 1, MPI::BOOL, MPI::LOR);
	check(anywhere, "bool");
	struct {
		double value;
		int where;
	} found = { -rank * 1.0, rank }, least;
	world.Allreduce(&found, &least, 1, MPI::DOUBLE_INT, MPI::MINLOC);
	check(least.where == size - 1, "MINLOC");

	MPI::Op op, same;
	op.Init(last_but_one, false);
	same.Init(last_but_one, true);
	for (int i = 1; i <= size; i++)
		want = i == 1 ? 1 : want * 3 + i;
	got = -1;
	world.Reduce(&mine, &got, 1, MPI::INT, op, 0);
	check((rank != 0 || got == want) && !op.Is_commutative() && same.Is_commutative(), "an operation in C++");
	int a[2] = { 1, 2 }, b[2] = { 10, 20 };
	op.Reduce_local(a, b, 2, MPI::INT);
	op.Free();
	same.Free();
	check(b[0] == 13 && b[1] == 26 && op == MPI::OP_NULL, "Reduce_local");
	world.Allreduce(MPI::IN_PLACE, &mine, 1, MPI::INT, MPI::MAX);
	check(mine == size, "IN_PLACE");
}

} // namespace

void check_collectives()
{
	moves();
	sums();
}
