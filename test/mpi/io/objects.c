/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Files as objects: hints, error handlers, what a view and its pointers are, split collectives that
 * do not fit, requests that outlive their file. Usage: [SEED [ROUNDS]].
 */
#include "test/mpi/io/file_check.h"

#include <unistd.h>

enum { MODE = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE };

static MPI_File file;

/* ---- hints ----------------------------------------------------------------------------------- */

static const char *hint_is(MPI_Info info, const char *key, const char *want)
{
	char value[MPI_MAX_INFO_VAL + 1];
	int length = sizeof(value), flag = 0;

	MPI_Info_get_string(info, key, &length, value, &flag);
	if (!flag || strcmp(value, want) != 0)
		return tap_wrong("the hint %s is %s, not %s", key, flag ? value : "missing", want);
	return NULL;
}

static const char *hints(int round)
{
	static const char *const given[][2] = { { "cb_nodes", "1" },
						{ "cb_buffer_size", "65536" },
						{ "romio_cb_write", "disable" },
						{ "romio_cb_read", "enable" },
						{ "romio_ds_read", "enable" },
						{ "romio_ds_write", "disable" },
						{ "striping_factor", "4" },
						{ "striping_unit", "1048576" },
						{ "access_style", "write_mostly" } };
	const char *wrong = NULL;
	MPI_Info info, used;
	int flag = 0, length = 0;

	(void)round;
	MPI_Info_create(&info);
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		MPI_Info_set(info, given[i][0], given[i][1]);
	MPI_Info_set(info, "no_such_hint", "7");
	CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path_of("hints"), MODE, info, &file));
	CHECK_OK(MPI_File_get_info(file, &used));
	for (size_t i = 0; !wrong && i < sizeof(given) / sizeof(given[0]); i++)
		wrong = hint_is(used, given[i][0], given[i][1]);
	if (wrong)
		return wrong;
	MPI_Info_get_string(used, "no_such_hint", &length, NULL, &flag);
	CHECK(!flag);
	MPI_Info_free(&used);
	/* nonsense is ignored, and what is not given stays */
	MPI_Info_set(info, "cb_buffer_size", "-5");
	MPI_Info_set(info, "romio_cb_write", "perhaps");
	MPI_Info_set(info, "romio_ds_write", "automatic");
	CHECK_OK(MPI_File_set_info(file, info));
	CHECK_OK(MPI_File_get_info(file, &used));
	if ((wrong = hint_is(used, "cb_buffer_size", "65536")) ||
	    (wrong = hint_is(used, "romio_cb_write", "disable")) ||
	    (wrong = hint_is(used, "romio_ds_write", "automatic")))
		return wrong;
	MPI_Info_free(&used);
	MPI_Info_free(&info);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* ---- error handlers -------------------------------------------------------------------------- */

static int handled, handled_code;
static MPI_File handled_file;

static void on_error(MPI_File *of, int *code, ...)
{
	handled++;
	handled_code = *code;
	handled_file = *of;
}

static const char *handlers(int round)
{
	MPI_Errhandler mine, got;
	MPI_Request request;
	char byte = 0;
	int class;

	(void)round;
	CHECK_OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
	CHECK(got == MPI_ERRORS_RETURN);
	CHECK_OK(MPI_File_create_errhandler(on_error, &mine));
	CHECK_OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
	/* opening fails: the handler of no file runs */
	handled = 0;
	CHECK_CLASS(open_file(MPI_COMM_SELF, path_of("no"), MPI_MODE_RDONLY, &file),
		    MPI_ERR_NO_SUCH_FILE);
	CHECK(handled == 1 && handled_file == MPI_FILE_NULL);
	CHECK_OK(open_file(MPI_COMM_SELF, path_of(tap_wrong("handler%d", tap_rank)), MODE, &file));
	CHECK_OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
	/* the file has the handler that was that of new files */
	CHECK_OK(MPI_File_get_errhandler(file, &got));
	CHECK(got == mine);
	MPI_Errhandler_free(&got);
	MPI_Errhandler_free(&mine);
	handled = 0;
	CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
	CHECK(handled == 1 && handled_file == file);
	MPI_Error_class(handled_code, &class);
	CHECK_INT(class, MPI_ERR_ARG);
	CHECK_OK(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
	CHECK(handled == 2 && handled_code == MPI_ERR_OTHER);
	/* of a request, when it is waited for */
	CHECK_OK(MPI_File_iread_at(file, INT64_MAX / 2, &byte, 1, MPI_BYTE, &request));
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK_CLASS(MPI_File_set_errhandler(file, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
	CHECK_OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
	handled = 0;
	CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
	CHECK_OK(MPI_File_close(&file));
	CHECK_CLASS(MPI_File_close(&file), MPI_ERR_FILE);
	CHECK_CLASS(MPI_File_sync((MPI_File)MPI_COMM_WORLD), MPI_ERR_FILE);
	CHECK_INT(handled, 0);
	return NULL;
}

/* The file's own handler serves the error of its end. */
static const char *closing_fails(int round)
{
	const char *path = path_of(tap_wrong("closing%d", tap_rank));
	MPI_Errhandler mine;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	CHECK_OK(MPI_File_create_errhandler(on_error, &mine));
	CHECK_OK(MPI_File_set_errhandler(file, mine));
	MPI_Errhandler_free(&mine);
	CHECK(unlink(path) == 0);
	handled = 0;
	CHECK_CLASS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE);
	CHECK_INT(handled, 1);
	CHECK_CLASS(open_file(MPI_COMM_SELF, path_of("no"), MPI_MODE_RDONLY, &file),
		    MPI_ERR_NO_SUCH_FILE);
	CHECK_INT(handled, 1);
	return NULL;
}

/* ---- views ----------------------------------------------------------------------------------- */

static const char *views(int round)
{
	MPI_Datatype type, etype, filetype, backwards, overlapping;
	char name[MPI_MAX_DATAREP_STRING] = "";
	int at[] = { 3, 1 }, same[] = { 0, 0 }, n, integers, addresses, types, combiner;
	MPI_Offset disp = -1, position = -1;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("view"), MODE, &file));
	CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
	CHECK(disp == 0 && etype == MPI_BYTE && filetype == MPI_BYTE && !strcmp(name, "native"));
	MPI_Type_vector(2, 1, 3, MPI_INT, &type);
	CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL),
		    MPI_ERR_TYPE); /* not committed */
	MPI_Type_commit(&type);
	CHECK_OK(MPI_File_seek(file, 5, MPI_SEEK_SET));
	CHECK_OK(MPI_File_set_view(file, 8, MPI_INT, type, "internal", MPI_INFO_NULL));
	MPI_Type_free(&type);
	CHECK_OK(MPI_File_get_position(file, &position));
	CHECK_INT(position, 0);
	CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
	CHECK(disp == 8 && etype == MPI_INT && !strcmp(name, "internal"));
	MPI_Type_size(filetype, &n);
	CHECK_INT(n, 8);
	MPI_Type_get_envelope(filetype, &integers, &addresses, &types, &combiner);
	CHECK(combiner == MPI_COMBINER_VECTOR || combiner == MPI_COMBINER_DUP);
	MPI_Type_free(&filetype);
	/* what is no filetype */
	MPI_Type_create_indexed_block(2, 1, at, MPI_INT, &backwards);
	MPI_Type_create_indexed_block(2, 1, same, MPI_INT, &overlapping);
	MPI_Type_commit(&backwards);
	MPI_Type_commit(&overlapping);
	CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL),
		    MPI_ERR_TYPE);
	CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL),
		    MPI_ERR_TYPE);
	CHECK_CLASS(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL),
		    MPI_ERR_TYPE);
	CHECK_CLASS(MPI_File_set_view(file, -7, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
		    MPI_ERR_DISP);
	CHECK_CLASS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
				      MPI_INFO_NULL),
		    MPI_ERR_DISP);
	/* the view that failed changed nothing */
	CHECK_OK(MPI_File_get_byte_offset(file, 1, &position));
	CHECK_INT(position, 8 + 12);
	CHECK_CLASS(MPI_File_write_at(file, 0, at, 3, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
	MPI_Type_free(&backwards);
	MPI_Type_free(&overlapping);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* A file that is only read may be seen twice in a view. */
static const char *overlapping_view(int round)
{
	const char *path = path_of("twice");
	int same[] = { 0, 0, 1 }, back[3] = { 0, 0, 0 }, data[2] = { 5, 6 };
	MPI_Datatype type;

	(void)round;
	if (tap_rank == 0)
		CHECK(file_make(path, data, sizeof(data)));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(
		open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, &file));
	MPI_Type_create_indexed_block(3, 1, same, MPI_INT, &type);
	MPI_Type_commit(&type);
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
	CHECK_OK(MPI_File_read_all(file, back, 3, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(back[0] == 5 && back[1] == 5 && back[2] == 6);
	MPI_Type_free(&type);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* Columns of a matrix one after the other: the filetype's copies lie within each other. */
static const char *interleaved_view(int round)
{
	enum { ROWS = 5, COLUMNS = 4 };
	const char *path = path_of(tap_wrong("columns%d", tap_rank));
	int matrix[ROWS * COLUMNS], column[ROWS];
	MPI_Datatype vector, type;
	size_t bytes;
	char *have;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_SELF, path, MODE, &file));
	MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &vector);
	MPI_Type_create_resized(vector, 0, sizeof(int), &type);
	MPI_Type_commit(&type);
	CHECK_OK(MPI_File_set_atomicity(file, 1));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
	for (int c = 0; c < COLUMNS; c++) {
		for (int r = 0; r < ROWS; r++)
			column[r] = 10 * r + c;
		CHECK_OK(MPI_File_write(file, column, ROWS, MPI_INT, MPI_STATUS_IGNORE));
	}
	have = bytes_of(path, &bytes);
	CHECK_INT((int)bytes, (int)sizeof(matrix));
	memcpy(matrix, have, sizeof(matrix));
	free(have);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		CHECK_INT(matrix[i], 10 * (i / COLUMNS) + i % COLUMNS);
	CHECK_OK(MPI_File_read_at(file, 2 * ROWS, column, ROWS, MPI_INT, MPI_STATUS_IGNORE));
	for (int r = 0; r < ROWS; r++)
		CHECK_INT(column[r], 10 * r + 2);
	MPI_Type_free(&vector);
	MPI_Type_free(&type);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* A rank without any place in the file takes part with nothing. */
static const char *empty_view(int round)
{
	MPI_Datatype none;
	MPI_Status status;
	int n = tap_rank, count = -1;

	(void)round;
	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("empty"), MODE, &file));
	CHECK_OK(MPI_File_set_view(file, 4 * tap_rank, MPI_INT, tap_rank == 0 ? none : MPI_INT,
				   "native", MPI_INFO_NULL));
	CHECK_OK(MPI_File_write_all(file, &n, tap_rank != 0, MPI_INT, &status));
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK_INT(count, tap_rank != 0);
	MPI_Type_free(&none);
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* ---- split collectives ----------------------------------------------------------------------- */

static const char *split(int round)
{
	int data = tap_rank, other = 0;
	MPI_Status status;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("split"), MODE, &file));
	CHECK_CLASS(MPI_File_write_all_end(file, &data, &status), MPI_ERR_OTHER);
	CHECK_OK(MPI_File_write_at_all_begin(file, 4 * tap_rank, &data, 1, MPI_INT));
	CHECK_CLASS(MPI_File_write_all_begin(file, &other, 1, MPI_INT), MPI_ERR_OTHER);
	CHECK_CLASS(MPI_File_write_at_all(file, 0, &other, 1, MPI_INT, &status), MPI_ERR_OTHER);
	CHECK_CLASS(MPI_File_read_at_all_end(file, &data, &status), MPI_ERR_OTHER);
	CHECK_CLASS(MPI_File_write_at_all_end(file, &other, &status), MPI_ERR_BUFFER);
	CHECK_CLASS(MPI_File_close(&file), MPI_ERR_OTHER);
	CHECK_OK(MPI_File_write_at_all_end(file, &data, &status));
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Many at a time, in another order on each rank between other collectives, ended all together. */
static const char *requests(int round)
{
	enum { MANY = 20 };
	MPI_Request request[MANY];
	MPI_Status status[MANY];
	int data[MANY], back[MANY], n, flag = 0;

	(void)round;
	CHECK_OK(open_file(MPI_COMM_WORLD, path_of("requests"), MODE, &file));
	for (int i = 0; i < MANY; i++) {
		int k = tap_rank % 2 ? MANY - 1 - i : i;

		data[k] = 1000 * tap_rank + k;
		CHECK_OK(MPI_File_iwrite_at_all(file, 4 * (tap_rank * MANY + k), &data[k], 1,
						MPI_INT, &request[k]));
		if (i == MANY / 2)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	CHECK_OK(MPI_Waitall(MANY, request, status));
	CHECK_OK(MPI_File_sync(file));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < MANY; i++)
		CHECK_OK(MPI_File_iread_at(file, 4 * (tap_rank * MANY + i), &back[i], 1, MPI_INT,
					   &request[i]));
	while (!flag)
		CHECK_OK(MPI_Testall(MANY, request, &flag, status));
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(back[i], data[i]);
		MPI_Get_count(&status[i], MPI_INT, &n);
		CHECK_INT(n, 1);
	}
	/* one that nobody waits for */
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_File_iwrite(file, data, 1, MPI_INT, &request[0]));
	CHECK_OK(MPI_Request_free(&request[0]));
	CHECK_OK(MPI_File_close(&file));
	return NULL;
}

/* Only the bytes that are touched have to lie before byte 2^63. */
static const char *huge_extent(int round)
{
	const MPI_Aint extent = (MPI_Aint)1 << 62;
	MPI_Datatype ints, sparse;
	int data[4] = { 1, 2, 3, 4 }, back[4] = { 0 };

	(void)round;
	MPI_Type_contiguous(4, MPI_INT, &ints);
	MPI_Type_create_resized(ints, 0, extent, &sparse);
	MPI_Type_commit(&sparse);
	CHECK_OK(open_file(MPI_COMM_SELF, path_of(tap_wrong("huge%d", tap_rank)),
			   MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, &file));
	CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, sparse, "native", MPI_INFO_NULL));
	CHECK_OK(MPI_File_write_at(file, 0, data, 4, MPI_INT, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_File_read_at(file, 0, back, 4, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(memcmp(data, back, sizeof(data)) == 0);
	CHECK_CLASS(MPI_File_read_at(file, 8, back, 4, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
	CHECK_OK(MPI_File_close(&file));
	MPI_Type_free(&sparse);
	MPI_Type_free(&ints);
	return NULL;
}

int main(int argc, char **argv)
{
	tap_start(argc, argv, 1);
	folder_make();
	tap_case("hints are taken and reported", hints);
	tap_case("error handlers", handlers);
	tap_case("an error at the end of a file", closing_fails);
	tap_case("views and what is none", views);
	tap_case("a view that has bytes twice", overlapping_view);
	tap_case("a view whose copies lie within each other", interleaved_view);
	tap_case("a view without data", empty_view);
	tap_case("a view whose copies are far apart", huge_extent);
	tap_case("split collectives that do not fit", split);
	tap_case("requests, many at a time", requests);
	folder_end();
	return tap_end();
}
