/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Random views beside a model: each rank has a filetype of its own, writes through it by any form,
 * and reads through it again. The model of datatypes says for every basic element where it is, in
 * the file and in memory. All ranks know what all have written, and look at every byte of the file.
 * Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/datatype/type_model.h"
#include "test/mpi/io/file_check.h"

enum { RANKS_MOST = 8, REGION = 1 << 15, MEMORY = 1 << 15, STEPS = 4 };

struct typed {
	struct m_type m;
	MPI_Datatype t;
};

/* One round's etype, and the filetypes of all ranks. */
static struct typed basic, etype, filetype[RANKS_MOST], memtype;
static MPI_Offset disp[RANKS_MOST];
static unsigned char image[RANKS_MOST * REGION];
static size_t image_bytes;

/* ---- types ----------------------------------------------------------------------------------- */

static void free_type(struct typed *t)
{
	int integers, addresses, types, combiner;

	MPI_Type_get_envelope(t->t, &integers, &addresses, &types, &combiner);
	if (combiner != MPI_COMBINER_NAMED)
		MPI_Type_free(&t->t);
}

static int64_t extent_of(const struct typed *t)
{
	return t->m.ub - t->m.lb;
}

static void make_vector(const struct typed *old, struct typed *out)
{
	int n = 1 + draw_below(4), length = 1 + draw_below(3), stride = length + draw_below(3);

	for (int i = 0; i < n; i++)
		m_add_row(&out->m, &old->m, i * stride * extent_of(old), length);
	MPI_Type_vector(n, length, stride, old->t, &out->t);
}

static void make_indexed(const struct typed *old, struct typed *out, bool shuffled)
{
	int n = 1 + draw_below(5), length[5], at[5], next = draw_below(3);

	for (int i = 0; i < n; i++) {
		length[i] = draw_below(4);
		at[i] = next;
		next += length[i] + draw_below(3);
	}
	if (shuffled && n > 1) {
		int a = at[0], l = length[0];

		at[0] = at[n - 1];
		length[0] = length[n - 1];
		at[n - 1] = a;
		length[n - 1] = l;
	}
	for (int i = 0; i < n; i++)
		m_add_row(&out->m, &old->m, at[i] * extent_of(old), length[i]);
	MPI_Type_indexed(n, length, at, old->t, &out->t);
}

static void make_hindexed(const struct typed *old, struct typed *out)
{
	int n = 1 + draw_below(4), length[4];
	MPI_Aint at[4], next = draw_below(9);

	for (int i = 0; i < n; i++) {
		length[i] = 1 + draw_below(3);
		at[i] = next;
		next += length[i] * extent_of(old) + draw_below(11);
		m_add_row(&out->m, &old->m, at[i], length[i]);
	}
	MPI_Type_create_hindexed(n, length, at, old->t, &out->t);
}

static void make_subarray(const struct typed *old, struct typed *out)
{
	struct m_array a = { .ndims = 1 + draw_below(3),
			     .order = draw_below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN };
	int size[3], part[3], start[3];

	for (int d = 0; d < a.ndims; d++) {
		a.size[d] = size[d] = 1 + draw_below(4);
		a.part[d] = part[d] = 1 + draw_below(size[d]);
		a.start[d] = start[d] = draw_below(size[d] - part[d] + 1);
	}
	m_subarray(&out->m, &old->m, &a);
	MPI_Type_create_subarray(a.ndims, size, part, start, a.order, old->t, &out->t);
}

static void make_darray(const struct typed *old, struct typed *out)
{
	struct m_array a = { .ndims = 1 + draw_below(2), .order = MPI_ORDER_C, .processes = 1 };
	int size[2];

	for (int d = 0; d < a.ndims; d++) {
		a.size[d] = size[d] = 2 + draw_below(6);
		a.distrib[d] = draw_below(2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
		a.darg[d] = MPI_DISTRIBUTE_DFLT_DARG;
		a.psize[d] = 1 + draw_below(2);
		a.processes *= a.psize[d];
	}
	a.rank = draw_below(a.processes);
	m_darray(&out->m, &old->m, &a);
	MPI_Type_create_darray(a.processes, a.rank, a.ndims, size, a.distrib, a.darg, a.psize,
			       a.order, old->t, &out->t);
}

/* A longer extent, with a gap in front of the data as well: the model moves the marks. */
static void make_resized(const struct typed *old, struct typed *out)
{
	MPI_Aint extent = old->m.ub + draw_below(20);

	m_add(&out->m, &old->m, 0);
	m_mark_lb(&out->m, 0);
	m_mark_ub(&out->m, extent);
	MPI_Type_create_resized(old->t, 0, extent, &out->t);
}

/* Of files displacements must increase; of memory they need not. */
static void make_derived(const struct typed *old, struct typed *out, bool memory)
{
	m_begin(&out->m);
	switch (draw_below(7)) {
	case 0:
		m_add(&out->m, &old->m, 0);
		MPI_Type_dup(old->t, &out->t);
		break;
	case 1:
		make_vector(old, out);
		break;
	case 2:
		make_indexed(old, out, memory);
		break;
	case 3:
		make_hindexed(old, out);
		break;
	case 4:
		make_subarray(old, out);
		break;
	case 5:
		make_darray(old, out);
		break;
	default:
		make_resized(old, out);
	}
	m_end(&out->m, false);
}

/* One constructor on another, with some data. */
static void make_type(const struct typed *old, struct typed *out, bool memory)
{
	struct typed inner;

	do {
		make_derived(old, &inner, memory);
		make_derived(&inner, out, memory);
		free_type(&inner);
		if (out->m.n == 0 || out->m.overfull || out->m.n > 300)
			free_type(out);
	} while (out->m.n == 0 || out->m.overfull || out->m.n > 300);
	MPI_Type_commit(&out->t);
}

static void make_etype(void)
{
	const struct m_basic *b = &m_basics[draw_below(m_basic_count)];

	m_of_basic(&basic.m, b);
	basic.t = b->handle;
	do {
		make_derived(&basic, &etype, false);
		if (etype.m.n == 0)
			free_type(&etype);
	} while (etype.m.n == 0);
	MPI_Type_commit(&etype.t);
}

/* ---- the model of a view --------------------------------------------------------------------- */

static int64_t place_in(const struct typed *t, int64_t k)
{
	int64_t n = (int64_t)t->m.n;

	return k / n * extent_of(t) + t->m.entry[k % n].at;
}

/* The byte behind the last one of `n` basic elements from `k` on. */
static int64_t end_in(const struct typed *t, int64_t k, int64_t n)
{
	int64_t end = 0;

	for (int64_t i = k; i < k + n; i++) {
		int64_t to = place_in(t, i) + basic.m.entry[0].basic->size;

		end = to > end ? to : end;
	}
	return end;
}

/* An access of a rank in a step: at which etype, how many elements of the memory's type. */
struct step {
	int64_t at;
	int count;
};

static struct step draw_step(int rank)
{
	struct step s = { draw_below(20), 1 + draw_below(5) };
	int64_t each = (int64_t)etype.m.n, n;

	while (s.count > 0) {
		n = s.count * (int64_t)memtype.m.n;
		if (disp[rank] - (int64_t)rank * REGION + end_in(&filetype[rank], s.at * each, n) <=
			    REGION &&
		    end_in(&memtype, 0, n) <= MEMORY)
			break;
		s.count--;
	}
	return s;
}

static void fill_memory(unsigned char *memory, int rank, int step)
{
	for (int i = 0; i < MEMORY; i++)
		memory[i] = (unsigned char)(mix((uint64_t)rank << 40 ^ (uint64_t)step << 20 ^
						(uint64_t)i) |
					    1);
}

/* Move data between memory and the image, up to `limit` bytes of the file. Returns how many. */
static int64_t model_step(int rank, struct step s, unsigned char *memory, bool writes, size_t limit)
{
	int64_t n = s.count * (int64_t)memtype.m.n, first = s.at * (int64_t)etype.m.n, moved = 0;
	int size = basic.m.entry[0].basic->size;

	for (int64_t i = 0; i < n; i++) {
		int64_t in_file = disp[rank] + place_in(&filetype[rank], first + i);
		unsigned char *at = memory + place_in(&memtype, i);

		for (int b = 0; b < size; b++, moved++) {
			if (!writes && (size_t)(in_file + b) >= limit)
				return moved;
			if (writes)
				image[in_file + b] = at[b];
			else
				at[b] = image[in_file + b];
		}
		if (writes && (size_t)(in_file + size) > image_bytes)
			image_bytes = (size_t)(in_file + size);
	}
	return moved;
}

/* ---- the test -------------------------------------------------------------------------------- */

static MPI_File file;

/* A form with a position of this rank's own. */
static const struct form *draw_form(void)
{
	const struct form *f;

	do
		f = &forms[draw_below(form_count)];
	while (f->place != FORM_AT && f->place != FORM_POINTER);
	return f;
}

static const char *go_to(const struct form *f, struct step s)
{
	if (f->place == FORM_POINTER)
		CHECK_OK(MPI_File_seek(file, s.at, MPI_SEEK_SET));
	return NULL;
}

static const char *check_pointer(const struct form *f, struct step s)
{
	MPI_Offset position = -1;

	if (f->place != FORM_POINTER)
		return NULL;
	CHECK_OK(MPI_File_get_position(file, &position));
	CHECK_INT(position, s.at + s.count * (int64_t)(memtype.m.n / etype.m.n));
	return NULL;
}

static const char *write_step(int step)
{
	static unsigned char memory[MEMORY];
	const struct form *f = draw_form();
	const char *wrong;
	MPI_Status status;
	int count;

	make_type(&etype, &memtype, true);
	for (int rank = 0; rank < tap_size; rank++) {
		struct step s = draw_step(rank);

		fill_memory(memory, rank, step);
		model_step(rank, s, memory, true, 0);
		if (rank != tap_rank)
			continue;
		if ((wrong = go_to(f, s)))
			return wrong;
		CHECK_OK(f->write(file, s.at, memory, s.count, memtype.t, &status));
		CHECK_OK(MPI_Get_count(&status, memtype.t, &count));
		CHECK_INT(count, s.count);
		if ((wrong = check_pointer(f, s)))
			return wrong;
	}
	free_type(&memtype);
	return NULL;
}

static const char *read_step(int step)
{
	static unsigned char memory[MEMORY], want[MEMORY];
	const struct form *f = draw_form();
	const char *wrong;
	MPI_Status status;
	int64_t moved;
	int bytes;

	make_type(&etype, &memtype, true);
	for (int rank = 0; rank < tap_size; rank++) {
		struct step s = draw_step(rank);

		if (rank != tap_rank)
			continue;
		fill_memory(memory, rank, step);
		memcpy(want, memory, sizeof(want));
		moved = model_step(rank, s, want, false, image_bytes);
		if ((wrong = go_to(f, s)))
			return wrong;
		CHECK_OK(f->read(file, s.at, memory, s.count, memtype.t, &status));
		CHECK_OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
		CHECK_INT(bytes, moved);
		for (int i = 0; i < MEMORY; i++)
			if (memory[i] != want[i])
				return tap_wrong("%s: byte %d of memory is %d, not %d", f->name, i,
						 memory[i], want[i]);
		if ((wrong = check_pointer(f, s)))
			return wrong;
	}
	free_type(&memtype);
	return NULL;
}

static const char *look_at_file(const char *path)
{
	size_t bytes, i;
	char *have = bytes_of(path, &bytes);

	CHECK(have);
	CHECK_INT(bytes, image_bytes);
	for (i = 0; i < bytes && (unsigned char)have[i] == image[i];)
		i++;
	free(have);
	if (i < bytes)
		return tap_wrong("byte %zu of the file is not %d", i, image[i]);
	return NULL;
}

/* Where the library says that a position is. */
static const char *check_offsets(void)
{
	for (int i = 0; i < 5; i++) {
		int64_t at = draw_below(50);
		MPI_Offset byte = -1;

		CHECK_OK(MPI_File_get_byte_offset(file, at, &byte));
		CHECK_INT(byte,
			  disp[tap_rank] + place_in(&filetype[tap_rank], at * (int64_t)etype.m.n));
	}
	return NULL;
}

static const char *round_of(int round)
{
	const char *path = path_of("views"), *wrong;
	int err;

	make_etype();
	memset(image, 0, sizeof(image));
	image_bytes = 0;
	for (int rank = 0; rank < tap_size; rank++) {
		make_type(&etype, &filetype[rank], false);
		disp[rank] = (MPI_Offset)rank * REGION + draw_below(100);
	}
	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_set_atomicity(file, round % 4 == 3));
	err = MPI_File_set_view(file, disp[tap_rank], etype.t, filetype[tap_rank].t,
				round % 2 ? "native" : "internal", MPI_INFO_NULL);
	CHECK_OK(err);
	if ((wrong = check_offsets()))
		return wrong;
	for (int step = 0; step < STEPS; step++)
		if ((wrong = write_step(step)))
			return wrong;
	CHECK_OK(MPI_File_sync(file));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int step = 0; step < STEPS; step++)
		if ((wrong = read_step(step + STEPS)))
			return wrong;
	if ((wrong = look_at_file(path)))
		return wrong;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_close(&file));
	CHECK(file == MPI_FILE_NULL);
	for (int rank = 0; rank < tap_size; rank++)
		free_type(&filetype[rank]);
	free_type(&etype);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 60);
	folder_make();
	tap_case("random views and forms beside a model", round_of);
	folder_end();
	return tap_end();
}
