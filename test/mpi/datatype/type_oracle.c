/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Prints what an MPI makes of random datatypes: size, bounds, and a checksum of packed data.
 * Compiled for two MPIs it must print the same. Known differences between MPIs are left out: empty
 * types, and structs of members some of which have bounds that were set (MPICH lets the others
 * count, too) or of a single type (MPICH does not pad them).
 *
 * Usage: type_oracle [TYPES [SEED]]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 20, BASICS = 7, MEMBERS = 4, REACH = 1 << 20, DIMS = 3, COUNT = 2 };

static uint64_t state;
static MPI_Datatype pool[POOL];
static int resized[POOL], uses_resized; /* its bounds were set, perhaps far below */
static int used;
static char memory[2 * REACH], packed[2 * REACH];

static uint64_t next_random(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int between(int low, int high)
{
	return low + (int)(next_random() % (uint64_t)(high - low + 1));
}

static MPI_Datatype any(void)
{
	int i = between(0, used - 1);

	uses_resized |= resized[i];
	return pool[i];
}

static MPI_Datatype make_indexed(void)
{
	int kind = between(0, 3), n = between(1, MEMBERS), length[MEMBERS], index[MEMBERS];
	MPI_Aint bytes[MEMBERS];
	MPI_Datatype t, old = any();

	for (int i = 0; i < n; i++) {
		length[i] = between(1, 3);
		index[i] = between(-4, 20);
		bytes[i] = between(-30, 100);
	}
	if (kind == 0)
		MPI_Type_indexed(n, length, index, old, &t);
	else if (kind == 1)
		MPI_Type_create_hindexed(n, length, bytes, old, &t);
	else if (kind == 2)
		MPI_Type_create_indexed_block(n, length[0], index, old, &t);
	else
		MPI_Type_create_hindexed_block(n, length[0], bytes, old, &t);
	return t;
}

static MPI_Datatype make_struct(void)
{
	int n = between(2, MEMBERS), length[MEMBERS], k;
	MPI_Aint bytes[MEMBERS];
	MPI_Datatype t, type[MEMBERS];

	for (int i = 0; i < n; i++) {
		length[i] = between(1, 3);
		bytes[i] = between(-30, 100);
		do
			k = between(0, used - 1);
		while (resized[k] || (i == 1 && pool[k] == type[0]));
		type[i] = pool[k];
	}
	MPI_Type_create_struct(n, length, bytes, type, &t);
	return t;
}

static MPI_Datatype make_subarray(void)
{
	int n = between(1, DIMS), size[DIMS], part[DIMS], start[DIMS];
	MPI_Datatype t;

	for (int i = 0; i < n; i++) {
		size[i] = between(1, 5);
		part[i] = between(1, size[i]);
		start[i] = between(0, size[i] - part[i]);
	}
	MPI_Type_create_subarray(n, size, part, start,
				 between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, any(), &t);
	return t;
}

static MPI_Datatype make_darray(void)
{
	static const int hows[] = { MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK,
				    MPI_DISTRIBUTE_CYCLIC };
	int n = between(1, DIMS), size[DIMS], how[DIMS], arg[DIMS], processes[DIMS], all = 1;
	MPI_Datatype t;

	for (int i = 0; i < n; i++) {
		/* so many that everybody has some */
		size[i] = between(6, 12);
		how[i] = hows[between(0, 2)];
		processes[i] = how[i] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
		arg[i] = how[i] == MPI_DISTRIBUTE_CYCLIC && between(0, 1)
				 ? between(1, 2)
				 : MPI_DISTRIBUTE_DFLT_DARG;
		all *= processes[i];
	}
	MPI_Type_create_darray(all, between(0, all - 1), n, size, how, arg, processes,
			       between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, any(), &t);
	return t;
}

static MPI_Datatype make_one(void)
{
	MPI_Datatype t;

	switch (between(0, 8)) {
	case 0:
		MPI_Type_contiguous(between(1, 5), any(), &t);
		return t;
	case 1:
		MPI_Type_vector(between(1, 5), between(1, 4), between(-4, 6), any(), &t);
		return t;
	case 2:
		MPI_Type_create_hvector(between(1, 5), between(1, 4), between(-60, 90), any(), &t);
		return t;
	case 3:
		return make_indexed();
	case 4:
	case 5:
		return make_struct();
	case 6:
		uses_resized = 1;
		return make_subarray();
	case 7:
		uses_resized = 1;
		return make_darray();
	default:
		uses_resized = 1;
		MPI_Type_create_resized(any(), between(-9, 9), between(1, 80), &t);
		return t;
	}
}

static uint64_t checksum(const char *data, int n)
{
	uint64_t sum = 14695981039346656037u;

	for (int i = 0; i < n; i++)
		sum = (sum ^ (unsigned char)data[i]) * 1099511628211u;
	return sum;
}

static int small_enough(MPI_Datatype t)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	int size;

	MPI_Type_size(t, &size);
	MPI_Type_get_extent(t, &lb, &extent);
	MPI_Type_get_true_extent(t, &true_lb, &true_extent);
	return size < 100000 && true_lb > -REACH / 4 && true_lb + true_extent < REACH / 4 &&
	       extent > -REACH / 4 && extent < REACH / 4;
}

static void show(MPI_Datatype t)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	int size, position = 0, ints, addresses, types, combiner;

	MPI_Type_size(t, &size);
	MPI_Type_get_extent(t, &lb, &extent);
	MPI_Type_get_true_extent(t, &true_lb, &true_extent);
	MPI_Type_get_envelope(t, &ints, &addresses, &types, &combiner);
	MPI_Pack(memory + REACH, COUNT, t, packed, sizeof(packed), &position, MPI_COMM_SELF);
	printf("size %d lb %ld extent %ld true %ld %ld envelope %d %d %d packed %d %016llx\n", size,
	       (long)lb, (long)extent, (long)true_lb, (long)true_extent, ints, addresses, types,
	       position, (unsigned long long)checksum(packed, position));
}

int main(int argc, char **argv)
{
	const MPI_Datatype basics[BASICS] = { MPI_INT,  MPI_DOUBLE, MPI_CHAR,      MPI_SHORT,
					      MPI_LONG, MPI_FLOAT,  MPI_DOUBLE_INT };
	int types;

	MPI_Init(&argc, &argv);
	types = argc > 1 ? atoi(argv[1]) : 1000;
	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (char)next_random();
	while (types > 0) {
		memcpy(pool, basics, sizeof(basics));
		for (used = BASICS; used < POOL && types > 0;) {
			uses_resized = 0;
			pool[used] = make_one();
			resized[used] = uses_resized;
			if (!small_enough(pool[used])) {
				MPI_Type_free(&pool[used]);
				continue;
			}
			MPI_Type_commit(&pool[used]);
			show(pool[used++]);
			types--;
		}
		while (used > BASICS)
			MPI_Type_free(&pool[--used]);
	}
	MPI_Finalize();
	return 0;
}
