/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes, groups, communicators, topologies, info objects and windows in C++.
 */
#include "check.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace {

MPI::Intracomm &world = MPI::COMM_WORLD;

struct body {
	double x;
	char tag;
};

void datatypes()
{
	MPI::Aint lb = -1, extent = -1, at[2] = { offsetof(body, x), offsetof(body, tag) };
	MPI::Datatype types[2] = { MPI::DOUBLE, MPI::CHAR };
	int lengths[2] = { 1, 1 }, places[2] = { 0, 3 }, sizes[2] = { 4, 4 }, subsizes[2] = { 2, 2 }, starts[2] = { 1, 1 };
	MPI::Datatype made = MPI::Datatype::Create_struct(2, lengths, at, types), type = made.Create_resized(0, sizeof(body));

	type.Commit();
	type.Get_extent(lb, extent);
	check(lb == 0 && extent == (MPI::Aint)sizeof(body) && type.Get_size() == 9, "Create_struct, Create_resized");
	int integers = 0, addresses = 0, datatypes = 0, combiner = 0, values[3];
	MPI::Aint where[2];
	MPI::Datatype parts[2];
	made.Get_envelope(integers, addresses, datatypes, combiner);
	made.Get_contents(3, 2, 2, values, where, parts);
	check(combiner == MPI::COMBINER_STRUCT && integers == 3 && addresses == 2 && datatypes == 2 &&
		      parts[0] == MPI::DOUBLE && parts[1] == MPI::CHAR && where[1] == at[1],
	      "Get_envelope, Get_contents");

	check(MPI::INT.Create_contiguous(3).Get_size() == 12 && MPI::INT.Create_vector(2, 1, 5).Get_size() == 8 &&
		      MPI::INT.Create_hvector(2, 1, 40).Get_size() == 8 &&
		      MPI::INT.Create_indexed(2, lengths, places).Get_size() == 8 &&
		      MPI::INT.Create_hindexed(2, lengths, at).Get_size() == 8 &&
		      MPI::INT.Create_indexed_block(2, 1, places).Get_size() == 8 &&
		      MPI::INT.Create_subarray(2, sizes, subsizes, starts, MPI::ORDER_C).Get_size() == 16 &&
		      type.Dup().Get_size() == 9,
	      "the other constructors");
	MPI::INT.Create_vector(2, 1, 5).Get_true_extent(lb, extent);
	check(extent == 24, "Get_true_extent");
	check(MPI::Datatype::Match_size(MPI::TYPECLASS_REAL, 8).Get_size() == 8 &&
		      MPI::Datatype::Create_f90_real(15, 300).Get_size() == 8 &&
		      MPI::Datatype::Create_f90_integer(9).Get_size() == 4 &&
		      MPI::Datatype::Create_f90_complex(6, 30).Get_size() == 8,
	      "types by size and range");

	body one = { 2.5, 'z' }, two = { 0, 0 };
	std::vector<char> packed(type.Pack_size(1, world));
	int position = 0;
	type.Pack(&one, 1, &packed[0], (int)packed.size(), position, world);
	int length = position;
	position = 0;
	type.Unpack(&packed[0], length, &two, 1, position, world);
	check(two.x == 2.5 && two.tag == 'z' && position == length, "Pack, Unpack");
	MPI::Aint external = MPI::INT.Pack_external_size("external32", 1), offset = 0;
	int big = 1, back = 0;
	MPI::INT.Pack_external("external32", &big, 1, &packed[0], external, offset);
	bool last = packed[3] == 1;
	offset = 0;
	MPI::INT.Unpack_external("external32", &packed[0], external, offset, &back, 1);
	check(last && back == 1, "Pack_external, Unpack_external");
	char name[MPI::MAX_OBJECT_NAME];
	type.Set_name("body");
	type.Get_name(name, length);
	check(length == 4 && std::strcmp(name, "body") == 0, "Set_name, Get_name");
	type.Free();
	check(type == MPI::DATATYPE_NULL, "Free");
	made.Free();
}

void groups()
{
	int size = world.Get_size(), rank = world.Get_rank(), zero[1] = { 0 }, there[1] = { -5 };
	const int range[1][3] = { { 0, size - 1, 1 } };
	MPI::Group all = world.Get_group(), first = all.Incl(1, zero), others = all.Excl(1, zero);

	check(all.Get_size() == size && all.Get_rank() == rank && first.Get_size() == 1 && others.Get_size() == size - 1,
	      "Incl, Excl");
	check(MPI::Group::Compare(all, all.Range_incl(1, range)) == MPI::IDENT &&
		      all.Range_excl(1, range).Get_size() == 0 &&
		      MPI::Group::Union(first, others).Get_size() == size &&
		      MPI::Group::Intersect(first, others).Get_size() == 0 &&
		      MPI::Group::Compare(MPI::Group::Difference(all, others), first) == MPI::IDENT,
	      "Union, Intersect, Difference, ranges");
	MPI::Group::Translate_ranks(first, 1, zero, others, there);
	check(there[0] == MPI::UNDEFINED, "Translate_ranks");
	MPI::Intracomm alone = world.Create(first);
	check((alone != MPI::COMM_NULL) == (rank == 0), "Create");
	if (alone != MPI::COMM_NULL)
		alone.Free();
	check(alone == MPI::COMM_NULL, "a communicator that is freed is COMM_NULL");
	first.Free();
}

void communicators()
{
	int size = world.Get_size(), rank = world.Get_rank(), length;
	MPI::Intracomm copy = world.Dup(), half = world.Split(rank % 2, rank), none = MPI::COMM_NULL;
	MPI::Comm &clone = world.Clone();
	char name[MPI::MAX_OBJECT_NAME];

	check(MPI::Comm::Compare(world, copy) == MPI::CONGRUENT && MPI::Comm::Compare(clone, copy) == MPI::CONGRUENT &&
		      none == MPI::COMM_NULL && !world.Is_inter(),
	      "Dup, Clone, Compare");
	check(half.Get_size() == (rank % 2 ? size / 2 : (size + 1) / 2), "Split");
	copy.Set_name("copy");
	copy.Get_name(name, length);
	check(length == 4 && std::strcmp(name, "copy") == 0, "the name of a communicator");
	if (size > 1) {
		MPI::Intercomm inter = half.Create_intercomm(0, world, rank % 2 ? 0 : 1, 5);
		MPI::Intracomm merged = inter.Merge(rank % 2 != 0);
		MPI::Intercomm dup = inter.Dup();

		check(inter.Is_inter() && inter.Get_remote_size() == size - half.Get_size() &&
			      inter.Get_remote_group().Get_size() == inter.Get_remote_size() &&
			      merged.Get_size() == size && merged.Get_rank() == (rank % 2 ? (size + 1) / 2 : 0) + rank / 2 &&
			      MPI::Comm::Compare(inter, dup) == MPI::CONGRUENT,
		      "Create_intercomm, Merge");
		dup.Disconnect();
		merged.Free();
		inter.Free();
	}
	check(MPI::Comm::Get_parent() == MPI::COMM_NULL, "Get_parent");
	clone.Free();
	delete &clone;
	copy.Free();
	half.Free();
}

void topologies()
{
	int size = world.Get_size(), rank = world.Get_rank(), dims[2] = { size, 1 }, got[2], coords[2], source, dest;
	bool periods[2] = { true, false }, wraps[2] = { false, true }, remain[2] = { true, false };
	MPI::Cartcomm grid = world.Create_cart(2, dims, periods, false);

	grid.Get_topo(2, got, wraps, coords);
	grid.Shift(0, 1, source, dest);
	check(grid.Get_dim() == 2 && got[0] == size && wraps[0] && !wraps[1] && coords[0] == rank &&
		      grid.Get_topology() == MPI::CART && grid.Get_cart_rank(coords) == rank &&
		      source == (rank + size - 1) % size && dest == (rank + 1) % size,
	      "Create_cart, Get_topo, Shift");
	grid.Get_coords(size - 1, 2, coords);
	MPI::Cartcomm line = grid.Sub(remain);
	MPI::Cartcomm copy = grid.Dup();
	check(coords[0] == size - 1 && line.Get_dim() == 1 && line.Get_size() == size && copy.Get_dim() == 2 &&
		      world.Create_cart(2, dims, periods, false).Map(2, dims, periods) != MPI::PROC_NULL,
	      "Sub, Get_coords, Map");
	copy.Free();
	line.Free();
	grid.Free();

	/* a ring */
	std::vector<int> index(size), edges(2 * size);
	int nodes = 0, links = 0, neighbors[2] = { -1, -1 };
	for (int i = 0; i < size; i++) {
		index[i] = 2 * (i + 1);
		edges[2 * i] = (i + size - 1) % size;
		edges[2 * i + 1] = (i + 1) % size;
	}
	MPI::Graphcomm graph = world.Create_graph(size, &index[0], &edges[0], false);
	graph.Get_dims(&nodes, &links);
	graph.Get_neighbors(rank, 2, neighbors);
	std::vector<int> its_index(size), its_edges(2 * size);
	graph.Get_topo(size, 2 * size, &its_index[0], &its_edges[0]);
	check(nodes == size && links == 2 * size && graph.Get_neighbors_count(rank) == 2 &&
		      neighbors[1] == (rank + 1) % size && its_index == index && its_edges == edges &&
		      graph.Map(size, &index[0], &edges[0]) != MPI::PROC_NULL,
	      "Create_graph");
	graph.Free();

	int from[1] = { (rank + size - 1) % size }, to[1] = { (rank + 1) % size }, in, out, degrees[1] = { 1 };
	bool weighted = true;
	MPI::Distgraphcomm ring = world.Dist_graph_create_adjacent(1, from, 1, to, MPI::INFO_NULL, false);
	int sources[1], destinations[1], weight[1] = { 3 }, weights[2];
	ring.Get_dist_neighbors_count(in, out, weighted);
	ring.Get_dist_neighbors(1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED);
	check(in == 1 && out == 1 && !weighted && sources[0] == from[0] && destinations[0] == to[0],
	      "Dist_graph_create_adjacent");
	ring.Free();
	int self[1] = { rank };
	ring = world.Dist_graph_create(1, self, degrees, to, weight, MPI::INFO_NULL, false);
	ring.Get_dist_neighbors_count(in, out, weighted);
	ring.Get_dist_neighbors(1, sources, weights, 1, destinations, weights + 1);
	check(in == 1 && out == 1 && weighted && sources[0] == from[0] && weights[0] == 3, "Dist_graph_create");
	ring.Free();
}

void infos()
{
	MPI::Info info = MPI::Info::Create();
	char value[MPI::MAX_INFO_VAL + 1], key[MPI::MAX_INFO_KEY + 1];
	int length = 0;

	info.Set("colour", "green");
	MPI::Info copy = info.Dup();
	info.Delete("colour");
	check(copy.Get("colour", MPI::MAX_INFO_VAL, value) && std::strcmp(value, "green") == 0 &&
		      copy.Get_valuelen("colour", length) && length == 5 && copy.Get_nkeys() == 1 &&
		      info.Get_nkeys() == 0 && !info.Get("colour", MPI::MAX_INFO_VAL, value),
	      "an info object");
	copy.Get_nthkey(0, key);
	check(std::strcmp(key, "colour") == 0, "Get_nthkey");
	info.Free();
	copy.Free();
	check(info == MPI::INFO_NULL, "an info object that is freed is INFO_NULL");
}

void windows()
{
	int size = world.Get_size(), rank = world.Get_rank(), right = (rank + 1) % size, left = (rank + size - 1) % size;
	int memory[3] = { -1, rank * 7, 0 }, got = -1, one = 1, zero[1];
	MPI::Win win = MPI::Win::Create(memory, sizeof memory, sizeof(int), MPI::INFO_NULL, world);
	char name[MPI::MAX_OBJECT_NAME];
	int length;

	win.Fence(0);
	win.Put(&rank, 1, MPI::INT, right, 0, 1, MPI::INT);
	win.Get(&got, 1, MPI::INT, right, 1, 1, MPI::INT);
	win.Accumulate(&one, 1, MPI::INT, 0, 2, 1, MPI::INT, MPI::SUM);
	win.Fence(MPI::MODE_NOSUCCEED);
	check(memory[0] == left && got == right * 7 && (rank != 0 || memory[2] == size), "Put, Get, Accumulate");
	zero[0] = right;
	MPI::Group to = world.Get_group().Incl(1, zero);
	zero[0] = left;
	MPI::Group from = world.Get_group().Incl(1, zero);
	int sent = rank + 1000;
	win.Post(from, 0);
	win.Start(to, 0);
	win.Put(&sent, 1, MPI::INT, right, 0, 1, MPI::INT);
	win.Complete();
	win.Wait();
	check(memory[0] == left + 1000 && win.Get_group().Get_size() == size, "Post, Start, Complete, Wait");
	world.Barrier();
	win.Lock(MPI::LOCK_SHARED, 0, 0);
	win.Get(&got, 1, MPI::INT, 0, 2, 1, MPI::INT);
	win.Unlock(0);
	check(got == size, "Lock, Unlock");
	win.Set_name("memory");
	win.Get_name(name, length);
	int *base = NULL;
	check(std::strcmp(name, "memory") == 0 && win.Get_attr(MPI::WIN_BASE, &base) && base == memory,
	      "the name and the attributes of a window");
	win.Free();
	check(win == MPI::WIN_NULL, "a window that is freed is WIN_NULL");
}

} // namespace

void check_objects()
{
	datatypes();
	groups();
	communicators();
	topologies();
	infos();
	windows();
}
