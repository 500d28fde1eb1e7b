/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Collective access beside a model: the bytes of a tile belong to ranks, or to nobody, in random
 * runs. The views of all ranks repeat the tile, so that their data lie between each other's. Hints
 * force two-phase access, or forbid it, or leave it to the library, with buffers of all sizes. All
 * ranks know what all have written, and look at every byte of the file.
 * Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

enum { RANKS_MOST = 8, TILE_MOST = 4000, FILE_MOST = 1 << 19, STEPS = 3, NOBODY = -1 };

static int tile, owner[TILE_MOST];
static int owned[RANKS_MOST], place[RANKS_MOST][TILE_MOST]; /* bytes of each rank in the tile */
static MPI_Offset disp;
static unsigned char image[FILE_MOST];
static size_t image_bytes;
static MPI_File file;

/* ---- the model ------------------------------------------------------------------------------- */

static void draw_tile(void)
{
	static const int longest[] = { 1, 8, 60, 900 };
	int most = longest[draw_below(4)], holes = draw_below(3);

	tile = 1 + draw_below(TILE_MOST);
	memset(owned, 0, sizeof(owned));
	for (int at = 0; at < tile;) {
		int length = 1 + draw_below(most);
		int who = holes && draw_below(4) < holes ? NOBODY : draw_below(tap_size);

		for (; length && at < tile; length--, at++) {
			owner[at] = who;
			if (who != NOBODY)
				place[who][owned[who]++] = at;
		}
	}
}

static int64_t place_of(int rank, int64_t k)
{
	return disp + k / owned[rank] * tile + place[rank][k % owned[rank]];
}

static unsigned char byte_of(int rank, int step, int64_t k)
{
	return (unsigned char)(mix((uint64_t)rank << 40 ^ (uint64_t)step << 32 ^ (uint64_t)k) | 1);
}

/* An access of a rank: data bytes [at, at + n) of its view, which end in FILE_MOST. */
struct access {
	int64_t at;
	int n;
};

static struct access draw_access(int rank)
{
	struct access s = { draw_below(2000), draw_below(5) ? draw_below(40000) : 0 };

	if (owned[rank] == 0)
		s.n = 0;
	while (s.n && place_of(rank, s.at + s.n - 1) >= FILE_MOST)
		s.n /= 2;
	return s;
}

/* ---- this rank ------------------------------------------------------------------------------- */

static MPI_Datatype view_type(void)
{
	int n = owned[tap_rank], *ones = malloc(sizeof(int) * (size_t)(n + 1));
	MPI_Datatype bytes, type;

	for (int i = 0; i < n; i++)
		ones[i] = 1;
	MPI_Type_indexed(n, ones, place[tap_rank], MPI_BYTE, &bytes);
	MPI_Type_create_resized(bytes, 0, tile, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&bytes);
	free(ones);
	return type;
}

static void set_number(MPI_Info info, const char *key, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	MPI_Info_set(info, key, text);
}

static MPI_Info draw_hints(void)
{
	static const char *const choices[] = { "enable", "enable", "disable", "automatic" };
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "romio_cb_write", choices[draw_below(4)]);
	MPI_Info_set(info, "romio_cb_read", choices[draw_below(4)]);
	MPI_Info_set(info, "romio_ds_write", choices[draw_below(4)]);
	MPI_Info_set(info, "romio_ds_read", choices[draw_below(4)]);
	set_number(info, "cb_buffer_size", 1 + draw_below(draw_below(2) ? 5000 : 1 << 20));
	set_number(info, "cb_nodes", 1 + draw_below(tap_size + 1));
	if (draw_below(2))
		set_number(info, "striping_unit", 1 + draw_below(10000));
	set_number(info, "ind_rd_buffer_size", 1 + draw_below(100000));
	return info;
}

/* Memory of every `gap`th byte. */
static MPI_Datatype memory_type(int n, int gap)
{
	MPI_Datatype type;

	MPI_Type_vector(n, 1, gap, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	return type;
}

static const struct form *draw_together(void)
{
	const struct form *f;

	do
		f = &forms[draw_below(form_count)];
	while (!f->collective || f->place != FORM_AT);
	return f;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const char *write_step(int step)
{
	const struct form *f = draw_together();
	int gap = 1 + draw_below(2), count = -1;
	struct access mine = { 0, 0 };
	unsigned char *memory;
	MPI_Datatype type;
	MPI_Status status;

	for (int rank = 0; rank < tap_size; rank++) {
		struct access s = draw_access(rank);

		for (int i = 0; i < s.n; i++) {
			int64_t at = place_of(rank, s.at + i);

			image[at] = byte_of(rank, step, i);
			if ((size_t)at >= image_bytes)
				image_bytes = (size_t)at + 1;
		}
		if (rank == tap_rank)
			mine = s;
	}
	memory = calloc((size_t)(mine.n + 1), (size_t)gap);
	for (int i = 0; i < mine.n; i++)
		memory[i * gap] = byte_of(tap_rank, step, i);
	type = memory_type(mine.n, gap);
	CHECK_OK(f->write(file, mine.at, memory, 1, type, &status));
	CHECK_OK(MPI_Get_count(&status, MPI_BYTE, &count));
	CHECK_INT(count, mine.n);
	MPI_Type_free(&type);
	free(memory);
	return NULL;
}

static const char *read_step(int step)
{
	const struct form *f = draw_together();
	int gap = 1 + draw_below(2), count = -1, want = 0;
	struct access mine = { 0, 0 };
	unsigned char *memory;
	MPI_Datatype type;
	MPI_Status status;

	(void)step;
	for (int rank = 0; rank < tap_size; rank++) {
		struct access s = draw_access(rank);

		if (rank == tap_rank)
			mine = s;
	}
	while (want < mine.n && (size_t)place_of(tap_rank, mine.at + want) < image_bytes)
		want++;
	memory = calloc((size_t)(mine.n + 1), (size_t)gap);
	type = memory_type(mine.n, gap);
	CHECK_OK(f->read(file, mine.at, memory, 1, type, &status));
	CHECK_OK(MPI_Get_count(&status, MPI_BYTE, &count));
	CHECK_INT(count, want);
	for (int i = 0; i < mine.n * gap; i++) {
		int k = i / gap;
		int right = i % gap || k >= want ? 0 : image[place_of(tap_rank, mine.at + k)];

		if (memory[i] != right)
			return tap_wrong("%s: byte %d of memory is %d, not %d", f->name, i,
					 memory[i], right);
	}
	MPI_Type_free(&type);
	free(memory);
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

/* Half of the files have bytes before, which must stay where nobody writes. */
static const char *begin_file(const char *path)
{
	memset(image, 0, sizeof(image));
	image_bytes = 0;
	if (draw_below(2)) {
		image_bytes = (size_t)draw_below(FILE_MOST);
		memset(image, 0xee, image_bytes);
	}
	if (tap_rank == 0)
		CHECK(file_make(path, image, image_bytes));
	MPI_Barrier(MPI_COMM_WORLD);
	return NULL;
}

static const char *round_of(int round)
{
	const char *path = path_of("together"), *wrong;
	MPI_Info info = draw_hints();
	MPI_Datatype view;

	draw_tile();
	disp = draw_below(300);
	if ((wrong = begin_file(path)))
		return wrong;
	CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info,
			       &file));
	CHECK_OK(MPI_File_set_atomicity(file, round % 8 == 7));
	view = view_type();
	CHECK_OK(MPI_File_set_view(file, disp, MPI_BYTE, view, "native", MPI_INFO_NULL));
	for (int step = 0; step < STEPS; step++)
		if ((wrong = write_step(step)))
			return wrong;
	CHECK_OK(MPI_File_sync(file));
	for (int step = 0; step < STEPS; step++)
		if ((wrong = read_step(step)))
			return wrong;
	if ((wrong = look_at_file(path)))
		return wrong;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_close(&file));
	MPI_Type_free(&view);
	MPI_Info_free(&info);
	return NULL;
}

/* ---- long non-blocking accesses -------------------------------------------------------------- */

enum { LONG_MOST = 300000, AT_ONCE = 6 };

/* Several at a time, each of a length and memory of its own; they end in any order. */
static const char *run_long(bool writes, int total, const int *length, const int *gap)
{
	int at = tap_rank * AT_ONCE * LONG_MOST, count;
	unsigned char *memory[AT_ONCE];
	MPI_Request request[AT_ONCE];
	MPI_Status status[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++, at += LONG_MOST) {
		MPI_Datatype type = memory_type(length[i], gap[i]);

		memory[i] = calloc((size_t)length[i] + 1, (size_t)gap[i]);
		for (int k = 0; writes && k < length[i]; k++)
			memory[i][k * gap[i]] = byte_of(tap_rank, i, k);
		if (writes)
			CHECK_OK(MPI_File_iwrite_at(file, at, memory[i], 1, type, &request[i]));
		else
			CHECK_OK(MPI_File_iread_at(file, at, memory[i], 1, type, &request[i]));
		MPI_Type_free(&type);
	}
	CHECK_OK(MPI_Waitall(AT_ONCE, request, status));
	at = tap_rank * AT_ONCE * LONG_MOST;
	for (int i = 0; i < AT_ONCE; i++, at += LONG_MOST) {
		int n = at + length[i] <= total ? length[i] : at < total ? total - at : 0;

		CHECK_OK(MPI_Get_count(&status[i], MPI_BYTE, &count));
		CHECK_INT(count, writes ? length[i] : n);
		for (int k = 0; !writes && k < length[i] * gap[i]; k++)
			CHECK_INT(memory[i][k], k % gap[i] || k / gap[i] >= n
							? 0
							: byte_of(tap_rank, i, k / gap[i]));
		free(memory[i]);
	}
	return NULL;
}

static const char *long_accesses(int round)
{
	int length[AT_ONCE], gap[AT_ONCE], total = tap_size * AT_ONCE * LONG_MOST;
	const char *path = path_of("long"), *wrong;

	(void)round;
	for (int i = 0; i < AT_ONCE; i++) {
		length[i] = LONG_MOST / 4 + draw_below(LONG_MOST * 3 / 4);
		gap[i] = 1 + draw_below(2);
	}
	CHECK_OK(open_file(MPI_COMM_WORLD, path,
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	if ((wrong = run_long(true, total, length, gap)))
		return wrong;
	/* the file ends in the middle of the last rank's last access but one */
	total -= LONG_MOST + LONG_MOST - length[AT_ONCE - 2] / 2;
	CHECK_OK(MPI_File_set_size(file, total));
	if ((wrong = run_long(false, total, length, gap)))
		return wrong;
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 24);
	folder_make();
	tap_case("random parts of a tile beside a model", round_of);
	tap_rounds_set(2);
	tap_case("long non-blocking accesses, several at a time", long_accesses);
	folder_end();
	return tap_end();
}
