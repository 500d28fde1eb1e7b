/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Error classes and codes and their texts: those of the standard, and those that a program
 * adds. The latter do not depend on MPI_Init and MPI_Finalize. Their numbers are never used
 * twice, so a code kept too long differs from a new one.
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"

/* X(class, text) */
#define ERROR_TABLE(X)                                                                             \
	X(MPI_SUCCESS, "no error")                                                                 \
	X(MPI_ERR_BUFFER, "invalid buffer address")                                                \
	X(MPI_ERR_COUNT, "invalid count")                                                          \
	X(MPI_ERR_TYPE, "invalid datatype")                                                        \
	X(MPI_ERR_TAG, "invalid tag")                                                              \
	X(MPI_ERR_COMM, "invalid communicator")                                                    \
	X(MPI_ERR_RANK, "invalid rank")                                                            \
	X(MPI_ERR_REQUEST, "invalid request")                                                      \
	X(MPI_ERR_ROOT, "invalid root")                                                            \
	X(MPI_ERR_GROUP, "invalid group")                                                          \
	X(MPI_ERR_OP, "invalid operation")                                                         \
	X(MPI_ERR_TOPOLOGY, "invalid topology")                                                    \
	X(MPI_ERR_DIMS, "invalid dimensions")                                                      \
	X(MPI_ERR_ARG, "invalid argument")                                                         \
	X(MPI_ERR_UNKNOWN, "unknown error")                                                        \
	X(MPI_ERR_TRUNCATE, "message longer than the receive buffer")                              \
	X(MPI_ERR_OTHER, "an error of no other class; its text says which")                        \
	X(MPI_ERR_INTERN, "internal error of the MPI library")                                     \
	X(MPI_ERR_PENDING, "request not complete yet")                                             \
	X(MPI_ERR_IN_STATUS, "the error codes are in the statuses")                                \
	X(MPI_ERR_ACCESS, "permission denied")                                                     \
	X(MPI_ERR_AMODE, "invalid access mode of a file")                                          \
	X(MPI_ERR_ASSERT, "invalid assertion")                                                     \
	X(MPI_ERR_BAD_FILE, "invalid file name")                                                   \
	X(MPI_ERR_BASE, "invalid base address")                                                    \
	X(MPI_ERR_CONVERSION, "data conversion failed")                                            \
	X(MPI_ERR_DISP, "invalid displacement")                                                    \
	X(MPI_ERR_DUP_DATAREP, "data representation defined before")                               \
	X(MPI_ERR_FILE_EXISTS, "file exists")                                                      \
	X(MPI_ERR_FILE_IN_USE, "file in use")                                                      \
	X(MPI_ERR_FILE, "invalid file handle")                                                     \
	X(MPI_ERR_INFO_KEY, "invalid info key")                                                    \
	X(MPI_ERR_INFO_NOKEY, "info key not set")                                                  \
	X(MPI_ERR_INFO_VALUE, "invalid info value")                                                \
	X(MPI_ERR_INFO, "invalid info object")                                                     \
	X(MPI_ERR_IO, "input or output failed")                                                    \
	X(MPI_ERR_KEYVAL, "invalid attribute key")                                                 \
	X(MPI_ERR_LOCKTYPE, "invalid lock type")                                                   \
	X(MPI_ERR_NAME, "service name not published")                                              \
	X(MPI_ERR_NO_MEM, "out of memory")                                                         \
	X(MPI_ERR_NOT_SAME, "ranks passed different arguments to a collective call")               \
	X(MPI_ERR_NO_SPACE, "no space on the device")                                              \
	X(MPI_ERR_NO_SUCH_FILE, "no such file")                                                    \
	X(MPI_ERR_PORT, "invalid port name")                                                       \
	X(MPI_ERR_QUOTA, "quota exceeded")                                                         \
	X(MPI_ERR_READ_ONLY, "read-only file or file system")                                      \
	X(MPI_ERR_RMA_ATTACH, "memory cannot be attached to the window")                           \
	X(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window")                                \
	X(MPI_ERR_RMA_RANGE, "target memory outside the window")                                   \
	X(MPI_ERR_RMA_SHARED, "memory cannot be shared")                                           \
	X(MPI_ERR_RMA_SYNC, "wrong synchronization of a window")                                   \
	X(MPI_ERR_SERVICE, "service name cannot be unpublished")                                   \
	X(MPI_ERR_SIZE, "invalid size")                                                            \
	X(MPI_ERR_SPAWN, "processes cannot be spawned")                                            \
	X(MPI_ERR_UNSUPPORTED_DATAREP, "data representation not supported")                        \
	X(MPI_ERR_UNSUPPORTED_OPERATION, "operation not supported")                                \
	X(MPI_ERR_WIN, "invalid window")                                                           \
	X(MPI_ERR_RMA_FLAVOR, "wrong flavor of window")                                            \
	X(MPI_ERR_PROC_ABORTED, "a process of the communication ended, or cannot be reached")      \
	X(MPI_ERR_VALUE_TOO_LARGE, "value does not fit the output argument; use the _c function")  \
	X(MPI_ERR_SESSION, "invalid session")                                                      \
	X(MPI_ERR_ERRHANDLER, "invalid error handler")                                             \
	X(MPI_ERR_ABI, "error of the binary interface")                                            \
	X(MPI_T_ERR_CANNOT_INIT, "tool interface cannot be initialized")                           \
	X(MPI_T_ERR_NOT_ACCESSIBLE, "tool interface not accessible")                               \
	X(MPI_T_ERR_NOT_INITIALIZED, "tool interface not initialized")                             \
	X(MPI_T_ERR_NOT_SUPPORTED, "not supported by the tool interface")                          \
	X(MPI_T_ERR_MEMORY, "tool interface out of memory")                                        \
	X(MPI_T_ERR_INVALID, "invalid use of the tool interface")                                  \
	X(MPI_T_ERR_INVALID_INDEX, "invalid index of a tool variable or category")                 \
	X(MPI_T_ERR_INVALID_ITEM, "item index out of range")                                       \
	X(MPI_T_ERR_INVALID_SESSION, "invalid session of performance variables")                   \
	X(MPI_T_ERR_INVALID_HANDLE, "invalid handle of a tool variable")                           \
	X(MPI_T_ERR_INVALID_NAME, "no tool variable or category of this name")                     \
	X(MPI_T_ERR_OUT_OF_HANDLES, "no more handles of tool variables")                           \
	X(MPI_T_ERR_OUT_OF_SESSIONS, "no more sessions of performance variables")                  \
	X(MPI_T_ERR_CVAR_SET_NOT_NOW, "control variable cannot be set at this moment")             \
	X(MPI_T_ERR_CVAR_SET_NEVER, "control variable cannot be set")                              \
	X(MPI_T_ERR_PVAR_NO_WRITE, "performance variable cannot be written")                       \
	X(MPI_T_ERR_PVAR_NO_STARTSTOP, "performance variable cannot be started or stopped")        \
	X(MPI_T_ERR_PVAR_NO_ATOMIC, "performance variable cannot be read and reset at once")

static const char *standard_text(int code)
{
	switch (code) {
#define ERROR_CASE_(class, text)                                                                   \
	case class:                                                                                \
		return text;
		ERROR_TABLE(ERROR_CASE_)
#undef ERROR_CASE_
	default:
		return NULL;
	}
}

/* ---- classes and codes added by programs ----------------------------------------------------- */

struct added {
	bool is_class;
	bool removed;
	int class; /* of a code: its class; of a class: its own number */
	int codes; /* of a class: number of its codes that are not removed */
	char *text;
};

static struct {
	struct added *at; /* of number MPI_ERR_LASTCODE + 1 + index */
	int count, room;
	int last; /* value of MPI_LASTUSEDCODE */
} added = { .last = MPI_ERR_LASTCODE };

int *mpi_error_last_used(void)
{
	return &added.last;
}

static struct added *added_of(int code)
{
	int64_t i = (int64_t)code - MPI_ERR_LASTCODE - 1;

	return i >= 0 && i < added.count && !added.at[i].removed ? &added.at[i] : NULL;
}

int mpi_error_class_of(int code)
{
	const struct added *a = added_of(code);

	if (a)
		return a->class;
	return standard_text(code) ? code : MPI_ERR_UNKNOWN;
}

const char *mpi_error_text(int code)
{
	const struct added *a = added_of(code);

	if (a)
		return a->text ? a->text : "";
	return standard_text(code) ? standard_text(code) : "neither an error class nor a code";
}

static int known_code(int code)
{
	if (added_of(code) || standard_text(code))
		return MPI_SUCCESS;
	return mpi_fail(MPI_ERR_ARG, "%d is neither an error class nor an error code", code);
}

int mpi_error_class(int code, int *class)
{
	int err = known_code(code);

	if (err == MPI_SUCCESS)
		*class = mpi_error_class_of(code);
	return err;
}

int mpi_error_string(int code, char *string, int *length)
{
	const char *text = mpi_fail_explained(code);
	int err = known_code(code);
	size_t n;

	if (err != MPI_SUCCESS)
		return err;
	if (!text)
		text = mpi_error_text(code);
	n = strnlen(text, MPI_MAX_ERROR_STRING - 1);
	memcpy(string, text, n);
	string[n] = '\0';
	*length = (int)n;
	return MPI_SUCCESS;
}

static struct added *add_error(int *number)
{
	if (added.count == added.room) {
		int room = added.room ? 2 * added.room : 16;
		struct added *at = realloc(added.at, (size_t)room * sizeof(*at));

		if (!at)
			return NULL;
		added.at = at;
		added.room = room;
	}
	added.at[added.count] = (struct added){ 0 };
	*number = added.last = MPI_ERR_LASTCODE + 1 + added.count;
	return &added.at[added.count++];
}

int mpi_add_error_class(int *class)
{
	struct added *a = add_error(class);

	if (!a)
		return mpi_fail_memory("another error class");
	a->is_class = true;
	a->class = *class;
	return MPI_SUCCESS;
}

int mpi_add_error_code(int class, int *code)
{
	struct added *a = added_of(class);

	if (a ? !a->is_class : !standard_text(class))
		return mpi_fail(MPI_ERR_ARG, "%d is not an error class", class);
	a = add_error(code);
	if (!a)
		return mpi_fail_memory("another error code");
	a->class = class;
	if (added_of(class))
		added_of(class)->codes++;
	return MPI_SUCCESS;
}

int mpi_add_error_string(int code, const char *string)
{
	struct added *a = added_of(code);
	char *text;

	if (!a)
		return mpi_fail(MPI_ERR_ARG,
				"%d is not an error class or code that the program added", code);
	if (strnlen(string, MPI_MAX_ERROR_STRING) == MPI_MAX_ERROR_STRING)
		return mpi_fail(MPI_ERR_ARG, "the text is longer than %d characters",
				MPI_MAX_ERROR_STRING - 1);
	text = strdup(string);
	if (!text)
		return mpi_fail_memory("the text of an error");
	free(a->text);
	a->text = text;
	return MPI_SUCCESS;
}

/* A text must be removed before its class or code, and the codes before their class (MPI-4.1
 * §9.5). */
static int remove_added(struct added *a, int code)
{
	if (a->codes > 0)
		return mpi_fail(MPI_ERR_ARG, "error class %d still has %d codes; remove them first",
				code, a->codes);
	if (a->text)
		return mpi_fail(MPI_ERR_ARG,
				"%d still has its text: call MPI_Remove_error_string first", code);
	a->removed = true;
	return MPI_SUCCESS;
}

int mpi_remove_error_class(int class)
{
	struct added *a = added_of(class);

	if (!a || !a->is_class)
		return mpi_fail(MPI_ERR_ARG, "%d is not an error class that the program added",
				class);
	return remove_added(a, class);
}

int mpi_remove_error_code(int code)
{
	struct added *a = added_of(code);
	int err;

	if (!a || a->is_class)
		return mpi_fail(MPI_ERR_ARG, "%d is not an error code that the program added",
				code);
	err = remove_added(a, code);
	if (err == MPI_SUCCESS && added_of(a->class))
		added_of(a->class)->codes--;
	return err;
}

int mpi_remove_error_string(int code)
{
	struct added *a = added_of(code);

	if (!a || !a->text)
		return mpi_fail(MPI_ERR_ARG, "%d has no text that the program added", code);
	free(a->text);
	a->text = NULL;
	return MPI_SUCCESS;
}
