/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The common parts of the Fortran bindings of MPI. They use only the public functions of the
 * standard binary interface, so that they work with any library that has it. Arguments come by
 * reference, strings without an end and with their lengths behind all other arguments, handles
 * as INTEGERs.
 *
 * Each binding is compiled twice: as mpi_xxx_, weak, which calls MPI_Xxx, and as pmpi_xxx_,
 * which calls PMPI_Xxx. So a profiling library may replace the Fortran or the C function, or
 * both.
 */
#ifndef POSTERN_MPIFORT_H
#define POSTERN_MPIFORT_H

#include <ISO_Fortran_binding.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef MPIFORT_PMPI
#define MPIFORT_NAME(name) p##name
#define MPIFORT_CALL(name) PMPI_##name
#define MPIFORT_ENTRY      __attribute__((visibility("default")))
#else
#define MPIFORT_NAME(name) name
#define MPIFORT_CALL(name) MPI_##name
#define MPIFORT_ENTRY      __attribute__((visibility("default"), weak))
#endif

/* The same procedure under another name, where the interfaces do not differ. */
#define MPIFORT_SAME(other, name) MPIFORT_SAME_AS(MPIFORT_NAME(other), MPIFORT_NAME(name))
#define MPIFORT_SAME_AS(other, name)                                                               \
	extern __typeof(name) other __attribute__((alias(MPIFORT_TEXT(name)))) MPIFORT_ENTRY
#define MPIFORT_TEXT(name) #name

/* ---- addresses with a special meaning -------------------------------------------------------- */

/*
 * Two COMMON blocks, as mpif.h and the modules declare them. The program has them, too, and its
 * own are the ones in use: so they are reached through the symbol only.
 */
struct mpifort_numbers {
	int bottom[1];
	int in_place[1];
	int buffer_automatic[1];
	int unweighted[1];
	int weights_empty[1];
	int errcodes_ignore[1];
	int status_ignore[MPI_F_STATUS_SIZE];
	int statuses_ignore[MPI_F_STATUS_SIZE];
};
struct mpifort_strings {
	char argv_null[1];
	char argvs_null[1];
};
extern struct mpifort_numbers mpifort_numbers_ __attribute__((visibility("default")));
extern struct mpifort_strings mpifort_strings_ __attribute__((visibility("default")));

/* The C address for an address inside the first block. */
void *mpifort_sentinel(void *address);
/* ... and the Fortran address for an address that C gave. */
void mpifort_give_address(void *address, void *to);

static inline bool mpifort_is_sentinel(const void *address)
{
	return (uintptr_t)address - (uintptr_t)&mpifort_numbers_ < sizeof(mpifort_numbers_);
}

static inline void *mpifort_buffer(void *address)
{
	return __builtin_expect(mpifort_is_sentinel(address), 0) ? mpifort_sentinel(address)
								 : address;
}

static inline MPI_Status *mpifort_status(int *status)
{
	return mpifort_is_sentinel(status) ? MPI_STATUS_IGNORE : (MPI_Status *)status;
}

/* ---- handles: those below 0x1000 are predefined and the same number everywhere --------------- */

#define MPIFORT_HANDLE(type, name, function)                                                       \
	static inline type mpifort_##name(int handle)                                              \
	{                                                                                          \
		return (unsigned)handle < 0x1000 ? (type)(intptr_t)handle                          \
						 : PMPI_##function##_fromint(handle);              \
	}                                                                                          \
	static inline int mpifort_of_##name(type handle)                                           \
	{                                                                                          \
		return (uintptr_t)handle < 0x1000 ? (int)(intptr_t)handle                          \
						  : PMPI_##function##_toint(handle);               \
	}
MPIFORT_HANDLE(MPI_Comm, comm, Comm)
MPIFORT_HANDLE(MPI_Datatype, datatype, Type)
MPIFORT_HANDLE(MPI_Errhandler, errhandler, Errhandler)
MPIFORT_HANDLE(MPI_File, file, File)
MPIFORT_HANDLE(MPI_Group, group, Group)
MPIFORT_HANDLE(MPI_Info, info, Info)
MPIFORT_HANDLE(MPI_Message, message, Message)
MPIFORT_HANDLE(MPI_Op, op, Op)
MPIFORT_HANDLE(MPI_Request, request, Request)
MPIFORT_HANDLE(MPI_Session, session, Session)
MPIFORT_HANDLE(MPI_Win, win, Win)

/* Arrays of handles. Every open must be followed by a close, also after an error. */
enum { MPIFORT_FEW = 16 };
struct mpifort_requests {
	MPI_Request *at;
	int n;
	MPI_Request few[MPIFORT_FEW];
};
struct mpifort_datatypes {
	MPI_Datatype *at;
	int n;
	MPI_Datatype few[MPIFORT_FEW];
};
void mpifort_requests_open(struct mpifort_requests *r, int n, const int *handles, int *rc);
void mpifort_requests_close(struct mpifort_requests *r, int *handles);
void mpifort_requests_seen(struct mpifort_requests *r, const int *handles); /* they stay */
void mpifort_datatypes_open(struct mpifort_datatypes *t, MPI_Count n, const int *handles, int *rc);
/* ... for a call that uses the array until its request is complete */
void mpifort_datatypes_open_kept(struct mpifort_datatypes *t, MPI_Count n, const int *handles,
				 int *rc);
void mpifort_datatypes_close(struct mpifort_datatypes *t);
/* For a result: entries that C does not write stay unchanged. */
void mpifort_datatypes_room(struct mpifort_datatypes *t, MPI_Count n, int *rc);
void mpifort_datatypes_give(struct mpifort_datatypes *t, int *handles);

/* The number of datatypes that an MPI_Alltoallw takes. */
int mpifort_peers(MPI_Comm comm);
int mpifort_sendtypes(MPI_Comm comm, const void *sendbuf);
int mpifort_neighbours(MPI_Comm comm, bool destinations);

/* ---- what lasts until a request is complete -------------------------------------------------- */

struct mpifort_later {
	struct mpifort_later *next;
	int request;
	void (*end)(struct mpifort_later *self); /* frees it, too */
};
void mpifort_later(struct mpifort_later *what, int request);
extern _Atomic int mpifort_laters;
void mpifort_later_end(int request);
/* End only the entries with this function: a complete persistent request needs its arrays again. */
void mpifort_later_end_some(int request, void (*end)(struct mpifort_later *self));

/* For a request that stays: give copies back if it is complete. */
void mpifort_sections_give(int request);
static inline void mpifort_request_seen(int request)
{
	if (__builtin_expect(mpifort_laters, 0))
		mpifort_sections_give(request);
}

/* The handle of a request after a call. `before` is its handle before the call. */
static inline int mpifort_request_now(int before, MPI_Request now)
{
	int after = mpifort_of_request(now);

	if (__builtin_expect(mpifort_laters, 0) && now == MPI_REQUEST_NULL && before != after)
		mpifort_later_end(before);
	return after;
}

/* Keep the array of a call that uses it until the request is complete. */
void mpifort_datatypes_keep(struct mpifort_datatypes *t, int request);

/* ---- values ---------------------------------------------------------------------------------- */

/* An index that C counts from 0. */
static inline int mpifort_index(int index)
{
	return index < 0 ? index : index + 1;
}
void mpifort_indices(int *indices, int n);

static inline void mpifort_done(int *ierror, int rc)
{
	if (ierror) /* OPTIONAL in mpi_f08 */
		*ierror = rc;
}

/* Report an error that the bindings found: an error handler decides, as in C. */
int mpifort_raise(int rc);

/* ---- strings --------------------------------------------------------------------------------- */

struct mpifort_string {
	char *at;
	char few[256];
};
/* Without the blanks at its end and, with `strip`, at its beginning. */
void mpifort_string_in(struct mpifort_string *s, const char *text, size_t length, bool strip,
		       int *rc);
void mpifort_string_room(struct mpifort_string *s, size_t size, int *rc);
void mpifort_string_out(struct mpifort_string *s, char *text, size_t length);
void mpifort_string_end(struct mpifort_string *s);

/* Arrays of strings: n of them, or (n < 0) up to the first blank one. Consecutive ones are
 * `step` strings apart. */
struct mpifort_argv {
	char **at;
};
void mpifort_argv_in(struct mpifort_argv *a, const char *text, size_t length, int n, int step,
		     int *rc);
void mpifort_argv_end(struct mpifort_argv *a);

/* ---- functions of the program ---------------------------------------------------------------- */

typedef void mpifort_function(void);

/* C functions that call a Fortran one. NULL after an error was raised: there are too many. */
MPI_User_function *mpifort_op_of(mpifort_function *function);
enum mpifort_kind { MPIFORT_COMM, MPIFORT_WIN, MPIFORT_FILE, MPIFORT_SESSION };
MPI_Comm_errhandler_function *mpifort_errhandler_of(mpifort_function *function,
						    enum mpifort_kind kind);

/* Generated thunks (thunks.c) call these with their number. */
void mpifort_call_op(int number, void *invec, void *inoutvec, void *len, MPI_Datatype *datatype);
void mpifort_call_errhandler(int number, void *handle, int *error_code);
enum { MPIFORT_OPS = 256, MPIFORT_ERRHANDLERS = 128 };
extern MPI_User_function *const mpifort_op_thunks[MPIFORT_OPS];
extern MPI_Comm_errhandler_function *const mpifort_errhandler_thunks[MPIFORT_ERRHANDLERS];

/*
 * C's extra state of objects made in Fortran. Fortran's own extra state goes by reference: what
 * a callback changes, the next one finds. MPI does not say whose variable this is. A keyval has
 * its own, as with Open MPI, because its maker's may be gone by then. A generalized request and
 * a data representation have the program's, as with MPICH and Open MPI: programs look at it
 * themselves.
 */
struct mpifort_keyval {
	mpifort_function *copy, *delete;
	union {
		MPI_Aint wide;
		int narrow;
	} extra;
	bool old; /* attributes and extra state are INTEGERs of default kind */
};
struct mpifort_grequest {
	mpifort_function *query, *free, *cancel;
	MPI_Aint *extra;
};
struct mpifort_datarep {
	mpifort_function *read, *write, *extent;
	MPI_Aint *extra;
};
int mpifort_comm_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag);
int mpifort_comm_delete(MPI_Comm comm, int keyval, void *value, void *extra);
int mpifort_type_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag);
int mpifort_type_delete(MPI_Datatype type, int keyval, void *value, void *extra);
int mpifort_win_copy(MPI_Win win, int keyval, void *extra, void *in, void *out, int *flag);
int mpifort_win_delete(MPI_Win win, int keyval, void *value, void *extra);
int mpifort_query(void *extra, MPI_Status *status);
int mpifort_free(void *extra);
int mpifort_cancel(void *extra, int complete);
int mpifort_extent(MPI_Datatype datatype, MPI_Aint *extent, void *extra);
int mpifort_read(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position,
		 void *extra);
int mpifort_write(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position,
		  void *extra);
int mpifort_read_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file,
		   MPI_Offset position, void *extra);
int mpifort_write_c(void *user, MPI_Datatype datatype, MPI_Count count, void *file,
		    MPI_Offset position, void *extra);
bool mpifort_is_null_conversion(mpifort_function *function);

/* ---- attributes: what C finds is the address of what Fortran set ----------------------------- */

struct mpifort_value;
struct mpifort_value *mpifort_value_new(MPI_Aint value, bool old);
void mpifort_value_free(void *maybe); /* does nothing if it is not one */
/* The value of an attribute that C has: one that Fortran set, one of the library, or an address
 * that the program's C part set. */
MPI_Aint mpifort_value_of(int keyval, void *attribute);

/* ---- buffers of mpi_f08 ---------------------------------------------------------------------- */

struct mpifort_section {
	void *at;
	void *copy;
	MPI_Count count; /* of a typed section */
	MPI_Datatype type, made;
};

/* Is there no gap between its elements? */
bool mpifort_is_simple(const CFI_cdesc_t *d);

/* For a call that is complete when it returns: a copy, given back at the end if it was written. */
void mpifort_section_copy(struct mpifort_section *s, const CFI_cdesc_t *d, int *rc);
void mpifort_section_end(struct mpifort_section *s, const CFI_cdesc_t *d, bool written);

/* For a call that is complete with its request: the copy is given back then. */
void mpifort_section_keep(struct mpifort_section *s, const CFI_cdesc_t *d, bool written,
			  int request);

/* For other calls: a datatype that has the gaps. */
void mpifort_section_typed(struct mpifort_section *s, const CFI_cdesc_t *d, MPI_Count count,
			   MPI_Datatype type, int *rc);
void mpifort_section_typed_end(struct mpifort_section *s);

/* For calls that allow neither: a section with gaps is an error. */
void mpifort_section_only_simple(struct mpifort_section *s, const CFI_cdesc_t *d, int *rc);

#endif
