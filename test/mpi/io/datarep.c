/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Data representations: external32 to the byte, those with functions of the program, and files that
 * end in the middle of an element. Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <math.h>
#include <stddef.h>
#include <unistd.h>

enum { MODE = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE };

static MPI_File file;

/* ---- external32 ------------------------------------------------------------------------------ */

static const char *same_bytes(const char *path, const unsigned char *want, size_t n)
{
	size_t bytes;
	char *have = bytes_of(path, &bytes);

	CHECK(have);
	CHECK_INT((long long)bytes, (long long)n);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)have[i] != want[i])
			return tap_wrong("byte %zu is %d, not %d", i, (unsigned char)have[i],
					 want[i]);
	free(have);
	return NULL;
}

/* A struct of an int, two longs and a double: 4, 2 x 4 and 8 bytes in the file, big end first. */
struct mixed {
	int i;
	long l[2];
	double d;
};

static MPI_Datatype mixed_type(void)
{
	int length[] = { 1, 2, 1 };
	MPI_Aint at[] = { offsetof(struct mixed, i), offsetof(struct mixed, l),
			  offsetof(struct mixed, d) };
	MPI_Datatype part[] = { MPI_INT, MPI_LONG, MPI_DOUBLE }, type, resized;

	MPI_Type_create_struct(3, length, at, part, &type);
	MPI_Type_create_resized(type, 0, sizeof(struct mixed), &resized);
	MPI_Type_free(&type);
	MPI_Type_commit(&resized);
	return resized;
}

static const char *bytes_in_the_file(int round)
{
	static const unsigned char want[] = { 0,   0,   0,    7,    0, 0, 0, 1, 255,  255,
					      255, 254, 0x3f, 0xf8, 0, 0, 0, 0, 0,    0,
					      1,   2,   3,    4,    0, 0, 0, 5, 0x7f, 255,
					      255, 255, 0xc0, 0,    0, 0, 0, 0, 0,    0 };
	struct mixed data[2] = { { 7, { 1, -2 }, 1.5 }, { 0x01020304, { 5, 0x7fffffff }, -2.0 } };
	struct mixed back[2];
	const char *path = path_of("external"), *wrong;
	MPI_Datatype type = mixed_type();
	MPI_Status status;
	int n = -1;

	(void)round;
	memset(back, 0, sizeof(back));
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
	CHECK_OK(MPI_File_write(file, data, 2, type, &status));
	MPI_Get_count(&status, type, &n);
	CHECK_INT(n, 2);
	if ((wrong = same_bytes(path, want, sizeof(want))))
		return wrong;
	CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
	CHECK_OK(MPI_File_read_all(file, back, 2, type, &status));
	MPI_Get_count(&status, type, &n);
	CHECK_INT(n, 2);
	for (int i = 0; i < 2; i++)
		CHECK(back[i].i == data[i].i && back[i].l[0] == data[i].l[0] &&
		      back[i].l[1] == data[i].l[1] && back[i].d == data[i].d);
	CHECK_OK(MPI_File_close(&file));
	MPI_Type_free(&type);
	return NULL;
}

/* A filetype of longs has other extents and gaps in the file than in memory. */
static const char *views_of_longs(int round)
{
	static const unsigned char want[] = { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
					      0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4 };
	const char *path = path_of("longs"), *wrong;
	long data[] = { 1, 2, 3, 4 }, back[] = { 0, 0, 0, 0 };
	MPI_Datatype every;
	MPI_Aint extent = -1;
	MPI_Count large_extent = -1;
	MPI_Offset byte = -1, position = -1;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	CHECK_OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
	CHECK_INT(extent, sizeof(long));
	MPI_Type_vector(2, 1, 2, MPI_LONG, &every);
	MPI_Type_commit(&every);
	CHECK_OK(MPI_File_set_view(file, 4, MPI_LONG, every, "external32", MPI_INFO_NULL));
	CHECK_OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
	CHECK_INT(extent, 4);
	CHECK_OK(MPI_File_get_type_extent_c(file, every, &large_extent));
	CHECK_INT(large_extent, 12);
	CHECK_OK(MPI_File_get_byte_offset(file, 3, &byte));
	CHECK_INT(byte, 4 + 12 + 8);
	CHECK_OK(MPI_File_write(file, data, 4, MPI_LONG, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_get_position(file, &position));
	CHECK_INT(position, 4);
	if ((wrong = same_bytes(path, want, sizeof(want))))
		return wrong;
	CHECK_OK(MPI_File_read_at(file, 1, back, 3, MPI_LONG, MPI_STATUS_IGNORE));
	CHECK(back[0] == 2 && back[1] == 3 && back[2] == 4 && back[3] == 0);
	CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_END));
	CHECK_OK(MPI_File_get_position(file, &position));
	CHECK_INT(position, 4);
	/* a long that is too long for the file */
	data[0] = 1L << 40;
	CHECK_CLASS(MPI_File_write_at(file, 0, data, 1, MPI_LONG, MPI_STATUS_IGNORE),
		    MPI_ERR_CONVERSION);
	if ((wrong = same_bytes(path, want, sizeof(want))))
		return wrong;
	MPI_Type_free(&every);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* Darrays, subarrays and indexed types of longs, as one writes them natively: value i is where the
 * native view would have it, in elements. */
static const char *shapes_of_longs(int round)
{
	const char *path = path_of("shapes");
	int size[] = { 3, 4 }, part[] = { 2, 2 }, start[] = { 1, 1 }, length[] = { 1, 2 },
	    at[] = { 1, 4 }, psize[] = { 2, 1 },
	    distrib[] = { MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE },
	    dargs[] = { MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG };
	MPI_Datatype type;
	MPI_Offset native[6], external;
	int n = 3;

	switch (round) {
	case 0:
		MPI_Type_create_subarray(2, size, part, start, MPI_ORDER_C, MPI_LONG, &type);
		n = 4;
		break;
	case 1:
		MPI_Type_create_darray(2, 1, 2, size, distrib, dargs, psize, MPI_ORDER_C, MPI_LONG,
				       &type);
		n = 4;
		break;
	case 2:
		MPI_Type_indexed(2, length, at, MPI_LONG, &type);
		break;
	case 3:
		MPI_Type_create_indexed_block(2, 1, at, MPI_LONG, &type);
		n = 2;
		break;
	default:
		MPI_Type_contiguous(3, MPI_LONG, &type);
	}
	MPI_Type_commit(&type);
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_LONG, type, "native", MPI_INFO_NULL));
	for (int i = 0; i < n + 2; i++)
		CHECK_OK(MPI_File_get_byte_offset(file, i, &native[i]));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_LONG, type, "external32", MPI_INFO_NULL));
	for (int i = 0; i < n + 2; i++) {
		CHECK_OK(MPI_File_get_byte_offset(file, i, &external));
		CHECK_INT(external, native[i] / 2);
	}
	MPI_Type_free(&type);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* The file ends within the second element: what is whole of it counts and is stored. */
static const char *ends_within(int round)
{
	struct mixed data[2] = { { 7, { 1, -2 }, 1.5 }, { 8, { 3, -4 }, 2.5 } };
	struct mixed back[2] = { { -1, { -1, -1 }, -1 }, { -1, { -1, -1 }, -1 } };
	const char *path = path_of("within");
	MPI_Datatype type = mixed_type();
	MPI_Status status;
	MPI_Count elements = -1;
	int n = -1;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
	CHECK_OK(MPI_File_write(file, data, 2, type, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_set_size(file, 20 + 4 + 4 + 2));
	CHECK_OK(MPI_File_read_at(file, 0, back, 2, type, &status));
	MPI_Get_count(&status, type, &n);
	CHECK_INT(n, MPI_UNDEFINED);
	MPI_Get_elements_c(&status, type, &elements);
	CHECK_INT(elements, 4 + 2);
	CHECK(back[0].d == 1.5 && back[0].l[1] == -2);
	CHECK(back[1].i == 8 && back[1].l[0] == 3 && back[1].l[1] == -1 && back[1].d == -1);
	CHECK_OK(MPI_File_close(&file));
	MPI_Type_free(&type);
	return NULL;
}

/* ---- representations of the program ---------------------------------------------------------- */

/* An int has 6 bytes in the file: its digits in letters. */
enum { DIGITS = 6 };

static int state_of_rep = 42, calls, fails;

static int extent_of_rep(MPI_Datatype type, MPI_Aint *extent, void *state)
{
	if (state != &state_of_rep)
		return MPI_ERR_OTHER;
	*extent = type == MPI_INT ? DIGITS : 1;
	return MPI_SUCCESS;
}

static int write_rep_c(void *user, MPI_Datatype type, MPI_Count count, void *in_file,
		       MPI_Offset position, void *state)
{
	const int *from = user;
	char *to = in_file, text[DIGITS + 2];

	(void)type;
	calls++;
	if (state != &state_of_rep || fails)
		return MPI_ERR_OTHER;
	for (MPI_Count i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%06d", from[position + i] % 1000000);
		memcpy(to + i * DIGITS, text, DIGITS);
	}
	return MPI_SUCCESS;
}

static int read_rep_c(void *user, MPI_Datatype type, MPI_Count count, void *in_file,
		      MPI_Offset position, void *state)
{
	char *from = in_file, text[DIGITS + 1] = "";
	int *to = user;

	(void)type;
	calls++;
	if (state != &state_of_rep || fails)
		return MPI_ERR_OTHER;
	for (MPI_Count i = 0; i < count; i++) {
		memcpy(text, from + i * DIGITS, DIGITS);
		to[position + i] = atoi(text);
	}
	return MPI_SUCCESS;
}

static int write_rep(void *user, MPI_Datatype type, int count, void *in_file, MPI_Offset position,
		     void *state)
{
	return write_rep_c(user, type, count, in_file, position, state);
}

static int read_rep(void *user, MPI_Datatype type, int count, void *in_file, MPI_Offset position,
		    void *state)
{
	return read_rep_c(user, type, count, in_file, position, state);
}

static const char *registering(int round)
{
	char long_name[MPI_MAX_DATAREP_STRING + 2];

	(void)round;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	CHECK_OK(MPI_Register_datarep("digits", read_rep, write_rep, extent_of_rep, &state_of_rep));
	CHECK_OK(MPI_Register_datarep_c("digits_c", read_rep_c, write_rep_c, extent_of_rep,
					&state_of_rep));
	CHECK_CLASS(
		MPI_Register_datarep("digits", read_rep, write_rep, extent_of_rep, &state_of_rep),
		MPI_ERR_DUP_DATAREP);
	CHECK_CLASS(
		MPI_Register_datarep("native", read_rep, write_rep, extent_of_rep, &state_of_rep),
		MPI_ERR_DUP_DATAREP);
	CHECK_CLASS(
		MPI_Register_datarep(long_name, read_rep, write_rep, extent_of_rep, &state_of_rep),
		MPI_ERR_ARG);
	CHECK_OK(open_file(MPI_COMM_SELF, path_of("none"), MODE, &file));
	CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nothing", MPI_INFO_NULL),
		    MPI_ERR_UNSUPPORTED_DATAREP);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

static const char *digits(int round)
{
	static const unsigned char want[] = "000012000345......000006001234";
	const char *path = path_of("digits"), *wrong;
	int data[] = { 12, 345, 6, 1234 }, back[] = { 0, 0, 0, 0 };
	unsigned char expected[sizeof(want)];
	MPI_Datatype pairs, etype, filetype, got;
	char name[MPI_MAX_DATAREP_STRING] = "";
	MPI_Offset disp;
	MPI_Status status;
	MPI_Aint extent = -1;
	int n = -1;

	MPI_Type_create_indexed_block(2, 1, (int[]){ 0, 1 }, MPI_INT, &pairs);
	MPI_Type_create_resized(pairs, 0, 18, &filetype);
	MPI_Type_commit(&filetype);
	MPI_Type_free(&pairs);
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, filetype, round ? "digits_c" : "digits",
				   MPI_INFO_NULL));
	CHECK_OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
	CHECK_INT(extent, DIGITS);
	calls = 0;
	CHECK_OK(MPI_File_write_all(file, data, 4, MPI_INT, &status));
	CHECK(calls > 0);
	MPI_Get_count(&status, MPI_INT, &n);
	CHECK_INT(n, 4);
	for (size_t i = 0; i < sizeof(want); i++)
		expected[i] = want[i] == '.' ? 0 : want[i];
	if ((wrong = same_bytes(path, expected, sizeof(want) - 1)))
		return wrong;
	CHECK_OK(MPI_File_read_at(file, 1, back, 4, MPI_INT, &status));
	MPI_Get_count(&status, MPI_INT, &n);
	CHECK_INT(n, 3); /* the file ends */
	CHECK(back[0] == 345 && back[1] == 6 && back[2] == 1234 && back[3] == 0);
	CHECK_OK(MPI_File_get_view(file, &disp, &etype, &got, name));
	CHECK(etype == MPI_INT && strcmp(name, round ? "digits_c" : "digits") == 0);
	MPI_Type_free(&got);
	MPI_Type_free(&filetype);
	fails = 1;
	CHECK_CLASS(MPI_File_write_at(file, 0, data, 1, MPI_INT, MPI_STATUS_IGNORE),
		    MPI_ERR_CONVERSION);
	CHECK_CLASS(MPI_File_read_at(file, 0, data, 1, MPI_INT, MPI_STATUS_IGNORE),
		    MPI_ERR_CONVERSION);
	fails = 0;
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* Elements have a size of their own in the file, and nothing converts them. */
static const char *sizes_without_functions(int round)
{
	int data[4] = { 1, 2, 3, 4 };

	(void)round;
	CHECK_OK(MPI_Register_datarep("blind", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL,
				      extent_of_rep, &state_of_rep));
	CHECK_OK(open_file(MPI_COMM_SELF, path_of("blind"), MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "blind", MPI_INFO_NULL));
	CHECK_CLASS(MPI_File_write_at(file, 0, data, 4, MPI_INT, MPI_STATUS_IGNORE),
		    MPI_ERR_CONVERSION);
	CHECK_CLASS(MPI_File_read_at(file, 0, data, 4, MPI_INT, MPI_STATUS_IGNORE),
		    MPI_ERR_CONVERSION);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	folder_make();
	tap_case("external32 to the byte", bytes_in_the_file);
	tap_case("views of longs in external32", views_of_longs);
	tap_rounds_set(5);
	tap_case("types that are laid out anew", shapes_of_longs);
	tap_rounds_set(1);
	tap_case("a file that ends within an element", ends_within);
	tap_case("registering representations", registering);
	tap_rounds_set(2);
	tap_case("functions of the program convert", digits);
	tap_rounds_set(1);
	tap_case("sizes without functions", sizes_without_functions);
	folder_end();
	return tap_end();
}
