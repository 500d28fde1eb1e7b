/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Files: the inside that the sources of this folder share.
 *
 * A view maps data bytes to bytes of the file. Data byte 0 is the first of the view's filetype, at
 * its displacement; data bytes count without the gaps. Positions count etypes. An access goes from
 * an MPI call to the file in these steps, which take what is below them as it is:
 *
 *   file pointers     pointer.c, shared.c    which position
 *   the call          calls.c, nonblocking.c one function for each form
 *   an access         transfer.c              checks, data representation, status
 *   together, alone   collective.c, alone.c  which bytes this process moves
 *   by an image       twophase.c             short extents of many ranks in large transfers
 *   bytes             disk.c, atomic.c       system calls, short transfers, errors; locks
 *
 * An access moves bytes as they are in the file, in memory that a datatype describes. Data
 * representations are converted before and after, in memory of the library's (datarep.c).
 *
 * Functions return an MPI error class, with the text kept by mpi_fail(), and are called with the
 * library's lock held. disk.c releases it around system calls, unless the file is atomic.
 */
#ifndef MPI_SHIM_IO_H
#define MPI_SHIM_IO_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi_shim/core/events.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/datatype/type.h"

struct mpi_win;

/* ---- views (view.c) -------------------------------------------------------------------------- */

struct mpi_datarep; /* datarep.c */

struct mpi_view {
	MPI_Offset disp;
	struct mpi_type *etype, *filetype; /* as the program gave them; referenced */
	/* The filetype with the sizes that its data have in the file. The filetype itself, unless
	 * the representation has other sizes. Referenced. */
	struct mpi_type *laid;
	const struct mpi_datarep *rep;
	MPI_Count etype_bytes; /* data bytes of an etype in the file */
	/* Later data bytes lie further behind in the file. Else copies of the filetype lie within
	 * each other, as its extent is shorter than its data; or its runs overlap. */
	bool sorted;
};

/* A run of bytes, in the file or in memory. */
struct mpi_extent {
	int64_t at;
	uint64_t bytes;
};

#define MPI_EXTENTS 128

/* A walk over the runs of data bytes, of a view or of a typed buffer, in their order. */
struct mpi_extents {
	const struct mpi_type *type;
	int64_t base;      /* added to the type's offsets: the displacement, or an address */
	uint64_t next, to; /* data bytes that are not in `extent` yet */
	int i, n;          /* extent[i] is the first that is left, of n */
	struct mpi_extent extent[MPI_EXTENTS];
};

/* Begin a walk over data bytes [from, to) of any number of elements of `type` from `base` on. */
void mpi_extents_begin(struct mpi_extents *x, const struct mpi_type *type, int64_t base,
		       uint64_t from, uint64_t to);
/* The next run; NULL: there is none. It stays the next until mpi_extents_skip has gone over it. */
const struct mpi_extent *mpi_extents_peek(struct mpi_extents *x);
/* Go over the first `bytes` bytes of the next run. */
void mpi_extents_skip(struct mpi_extents *x, uint64_t bytes);

/* Begin a walk over the extents in the file of data bytes [from, to) of a view. */
static inline void mpi_view_extents(struct mpi_extents *x, const struct mpi_view *v, uint64_t from,
				    uint64_t to)
{
	mpi_extents_begin(x, v->laid, v->disp, from, to);
}

/* The byte of the file where data byte `at` of the view is. */
int64_t mpi_view_place(const struct mpi_view *v, uint64_t at);
/* The number of data bytes of the view before byte `place` of the file. */
uint64_t mpi_view_data_before(const struct mpi_view *v, int64_t place);
/* The first etype whose data begin at or behind byte `end` of the file. */
MPI_Offset mpi_view_etypes_to(const struct mpi_view *v, int64_t end);
/* MPI_SUCCESS if data bytes [from, from + bytes) lie below byte 2^63 of the file. */
int mpi_view_reaches(const struct mpi_view *v, uint64_t from, uint64_t bytes);

/* The view of a file that was just opened: bytes, from the first on. */
void mpi_view_default(struct mpi_view *v);
/* Make a view, after checks of its types. */
int mpi_view_make(struct mpi_view *v, MPI_Offset disp, struct mpi_type *etype,
		  struct mpi_type *filetype, const struct mpi_datarep *rep, bool writable);
void mpi_view_end(struct mpi_view *v);

/* ---- files (file.c) -------------------------------------------------------------------------- */

/* Hints with a meaning for the library, as numbers. hints.c has their names. */
enum mpi_hint_choice { MPI_HINT_AUTOMATIC, MPI_HINT_ENABLE, MPI_HINT_DISABLE };

struct mpi_hints {
	int cb_nodes; /* aggregators of a collective access */
	int64_t cb_buffer_size;
	int64_t striping_unit;                  /* 0: not given */
	enum mpi_hint_choice cb_read, cb_write; /* two-phase collective access */
	enum mpi_hint_choice ds_read;           /* data sieving */
	int64_t ind_rd_buffer_size;
};

/* Split collectives: begun and not ended. */
enum mpi_split_kind {
	MPI_SPLIT_NONE,
	MPI_SPLIT_READ,
	MPI_SPLIT_READ_AT,
	MPI_SPLIT_READ_ORDERED,
	MPI_SPLIT_WRITE,
	MPI_SPLIT_WRITE_AT,
	MPI_SPLIT_WRITE_ORDERED
};

struct mpi_split {
	enum mpi_split_kind kind;
	const void *buf;
	struct mpi_request *request; /* the access */
};

struct mpi_file {
	struct mpi_obj obj;
	struct mpi_comm *comm; /* its own */
	int fd;
	int amode;
	bool atomic;
	char *name; /* as the program gave it */
	char *path; /* absolute, to delete it by */
	struct mpi_view view;
	MPI_Offset position; /* the individual file pointer, in etypes */
	/* The shared file pointer, in etypes: a word in the window of rank 0, and what this process
	 * has of the window. NULL: this is the only rank, which uses `own_shared`. */
	struct mpi_win *shared;
	MPI_Offset own_shared;
	struct mpi_hints hints;
	struct mpi_info *info; /* the hints in force, as text */
	struct mpi_errhandler *handler;
	struct mpi_split split;
	void *parts;             /* collective.c: the exchange before an access */
	struct mpi_image *image; /* twophase.c; NULL: not made */
	unsigned int flights;    /* accesses that the kernel carries out (uring.c) */
};

/* The file of `handle`; NULL: not a file. */
static inline struct mpi_file *mpi_file_of(MPI_File handle)
{
	return mpi_object_of(handle, MPI_KIND_FILE);
}

static inline bool mpi_file_writable(const struct mpi_file *file)
{
	return (file->amode & MPI_MODE_RDONLY) == 0;
}

/* Close what the program left open: all files, when nothing of MPI is open any more; or those that
 * belong to no session, in MPI_Finalize. */
void mpi_files_fini(bool all);

/* Agree on the outcome of a collective call: all ranks return an error if one has it (`err`), their
 * own first. `same` of all ranks must be equal, else the error says that `what` differs. */
int mpi_file_agree(struct mpi_comm *comm, int err, int64_t same, const char *what);
/* Whether all ranks are on this node. */
bool mpi_file_on_one_node(const struct mpi_comm *comm);
/* MPI_SUCCESS if no mode forbids to change the size. */
int mpi_file_resizable(const struct mpi_file *file);

/* Bytes of mpi_file.parts. */
size_t mpi_transfer_parts(const struct mpi_comm *comm);

/* ---- hints.c --------------------------------------------------------------------------------- */

/* Take the hints of `info`, which may be NULL, and set those that the file has not yet. */
int mpi_hints_take(struct mpi_file *file, const struct mpi_info *info);
/* The permissions of a new file: of the hint "file_perm", or all, less what umask takes. */
unsigned int mpi_hints_permissions(const struct mpi_info *info);

/* ---- handler.c ------------------------------------------------------------------------------- */

/* As mpi_raise (error.h), for a file and its error handler. NULL: the handler of MPI_FILE_NULL. */
int mpi_raise_file(struct mpi_file *file, const char *function, int code) __attribute__((cold));
/* The error handler of files that are opened; referenced for the caller. */
struct mpi_errhandler *mpi_file_new_handler(void);
/* The error of closing `file` is raised next, by its own handler. */
void mpi_file_closed_badly(struct mpi_file *file);
void mpi_file_handler_fini(void);

/* ---- disk.c ---------------------------------------------------------------------------------- */

/* Returns the error for a system call that failed with `number` on the file `name`. `doing` are
 * the words for it, as "opening". */
int mpi_disk_error(const char *name, const char *doing, int number) __attribute__((cold));

/* The same for a transfer of data. */
int mpi_disk_failed(const struct mpi_file *file, bool writes, int64_t at, uint64_t bytes,
		    int number) __attribute__((cold));

/*
 * Move `bytes` bytes between the place `at` of the file and the buffers of `memory`, from where
 * that walk is. Adds what was moved to *moved, and goes over it in the walk. Reading stops at the
 * end of the file: then *moved has grown by less, and the result is MPI_SUCCESS.
 */
int mpi_disk_move(struct mpi_file *file, bool writes, int64_t at, uint64_t bytes,
		  struct mpi_extents *memory, uint64_t *moved);
/* The same for one buffer. */
int mpi_disk_read(struct mpi_file *file, int64_t at, void *to, size_t bytes, uint64_t *moved);
int mpi_disk_write(struct mpi_file *file, int64_t at, const void *from, size_t bytes,
		   uint64_t *moved);
/* Bytes of the file now. */
int mpi_disk_size(const struct mpi_file *file, int64_t *bytes);

/* ---- atomic.c -------------------------------------------------------------------------------- */

/* Lock bytes [from, to) of an atomic file against other processes, or unlock them. Waits. */
int mpi_disk_lock(struct mpi_file *file, bool writes, int64_t from, int64_t to);
void mpi_disk_unlock(struct mpi_file *file, int64_t from, int64_t to);

/* ---- mounts.c -------------------------------------------------------------------------------- */

/* Whether a line of mountinfo is that of the device, and of an NFS whose locks hold on each node
 * alone. */
bool mpi_locks_stay_here(const char *mount, unsigned int major, unsigned int minor);

/* ---- transfer.c ------------------------------------------------------------------------------ */

/* An access: `bytes` data bytes of the view from `from` on, and the memory. */
struct mpi_transfer {
	struct mpi_file *file;
	bool writes;
	bool collective; /* the call is */
	uint64_t from, bytes;
	/* memory with the bytes as they are in the file */
	void *buf;
	MPI_Count count;
	struct mpi_type *type; /* referenced */
	uint64_t moved;        /* so far, from the first byte on */
	/* the program's memory, if its data are converted; else like the above */
	void *user_buf;
	MPI_Count user_count;
	struct mpi_type *user_type; /* referenced */
	MPI_Count user_bytes;       /* bytes of the program's data that were moved, at the end */
};

/* Check and prepare an access at a position of the view, in etypes. Data to be written are
 * converted. After success mpi_transfer_end is due. */
int mpi_transfer_begin(struct mpi_transfer *a, struct mpi_file *file, MPI_Offset position,
		       void *buf, MPI_Count count, struct mpi_type *type, bool writes);
/* End it: convert what was read, count it in user_bytes, and release. `err`: the access's own. */
int mpi_transfer_end(struct mpi_transfer *a, int err);
/* The etypes that `count` elements of `type` are in this file; MPI_ERR_... if it is no whole
 * number. */
int mpi_transfer_etypes(const struct mpi_file *file, MPI_Count count, const struct mpi_type *type,
			MPI_Offset *etypes);
/* ---- notes.c --------------------------------------------------------------------------------- */

/* Raise MPI_EVENT_FILE_BEGIN or _END (core/events.h) for an operation of all ranks, or for an
 * access. `file` NULL: there is none yet. */
void mpi_file_raise(enum mpi_event kind, const struct mpi_file *file,
		    enum mpi_file_operation operation, int err);
void mpi_transfer_raise(enum mpi_event kind, const struct mpi_transfer *a, int err);

/* Whether the file's mode allows it. */
int mpi_transfer_allowed(const struct mpi_file *file, bool writes, bool by_shared_pointer);

/* ---- alone.c, collective.c ------------------------------------------------------------------- */

/* Carry out an access that is prepared: by this process alone; or by all ranks of the file
 * together, each with its own. Set a->moved. No rank of a collective access has success if one has
 * an error. */
int mpi_transfer_alone(struct mpi_transfer *a);
/* `err`: what this rank met before; then it takes part without data. */
int mpi_transfer_together(struct mpi_transfer *a, int err);
/* The range of the file from the first byte of an access to the last. There are some bytes. */
void mpi_transfer_range(const struct mpi_transfer *a, int64_t *from, int64_t *to);
/* Bytes of an extent of the file on average; INT64_MAX: there is none. */
int64_t mpi_transfer_mean(const struct mpi_transfer *a);

/* ---- twophase.c ------------------------------------------------------------------------------ */

#define MPI_TWOPHASE_MOST (64 << 20) /* bytes of a round */

/* A collective access by an image, as all ranks have agreed. */
struct mpi_twophase {
	int64_t from, to; /* the range of the file that they access together */
	int aggregators;  /* ranks that read and write for all */
	int64_t buffer;   /* bytes of one of them in a round, at most */
	int64_t unit;     /* their parts begin at multiples of it; 1 to MPI_TWOPHASE_MOST */
};

/* Make the memory that the ranks share, unless it is there. Collective. False on all ranks: it
 * cannot be made here, and each has to access the file by itself. */
bool mpi_twophase_ready(struct mpi_file *file, const struct mpi_twophase *how);
/* Carry out the access. Collective; all ranks have an error if one has it. */
int mpi_twophase_run(struct mpi_transfer *a, const struct mpi_twophase *how);
void mpi_twophase_end(struct mpi_file *file);

/* ---- shared.c -------------------------------------------------------------------------------- */

/* Make the shared file pointer, with own_shared as its first value. Collective: `err` is this
 * rank's error so far, and if one rank has an error no rank gets the pointer. */
int mpi_shared_open(struct mpi_file *file, int err);
/* End it. Collective, or with `alone` at the end of the job. */
void mpi_shared_close(struct mpi_file *file, bool alone);
/* Add to the pointer and return its value before. */
int mpi_shared_add(struct mpi_file *file, MPI_Offset etypes, MPI_Offset *before);
/* Set it. Collective: all ranks give the same value, and see it afterwards. No rank may use the
 * pointer meanwhile. */
int mpi_shared_set(struct mpi_file *file, MPI_Offset position);
/* Advance it by what all ranks ask for; each gets its own part, in the order of ranks. Collective;
 * `err` is this rank's error so far. */
int mpi_shared_ordered(struct mpi_file *file, int err, MPI_Offset etypes, MPI_Offset *position);

/* ---- datarep.c ------------------------------------------------------------------------------- */

/* Find a representation by its name. */
int mpi_datarep_find(const char *name, const struct mpi_datarep **rep);
const struct mpi_datarep *mpi_datarep_native(void);
const char *mpi_datarep_name(const struct mpi_datarep *rep);
/* Whether data are other bytes in the file than in memory, when written or when read. */
bool mpi_datarep_converts(const struct mpi_datarep *rep, bool writes);
/* Data bytes of an element of `type` in the file. */
int mpi_datarep_bytes(const struct mpi_datarep *rep, const struct mpi_type *type, MPI_Count *bytes);
/* The extent of `type` in the file. */
int mpi_datarep_extent(const struct mpi_datarep *rep, const struct mpi_type *type,
		       MPI_Count *extent);
/* The type with the sizes of the file; one reference for the caller. */
int mpi_datarep_laid(const struct mpi_datarep *rep, struct mpi_type *type, struct mpi_type **laid);
/* Convert the elements of the program's memory to or from `bytes` bytes of the file at `file`. Of
 * an incomplete read the whole basic elements are converted; *converted gets their bytes in the
 * program's memory. */
int mpi_datarep_convert(const struct mpi_datarep *rep, bool writes, void *buf, MPI_Count count,
			struct mpi_type *type, void *file, uint64_t bytes, MPI_Count *converted);
void mpi_datareps_fini(void);

#endif
