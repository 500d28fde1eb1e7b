/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Making windows, by all ranks of a communicator together, and freeing them. A rank that
 * cannot take part says so in an exchange that all ranks do anyway, so that no rank waits for
 * it.
 */
#include "mpi_shim/rma/win.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mpi_shim/coll/coll.h"
#include "mpi_shim/comm/comm.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/impl.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/rma.h"
#include "mpi_shim/rma/cma.h"
#include "mpi_shim/core/node_segment.h"
#include "mpi_shim/comm/creation.h"

/* Bytes to map for this rank alone: at least a page, as a base of 0 bytes must be an address
 * too. */
static size_t mapped_window_bytes(const struct mpi_win *win)
{
	return win->bytes ? (size_t)win->bytes : 1;
}

static void destroy_win(void *object)
{
	struct mpi_win *win = object;

	if (win->me != PTL_INVALID_HANDLE)
		mpi_rma_hide(win->me);
	if (win->control_me != PTL_INVALID_HANDLE)
		mpi_rma_hide(win->control_me);
	mpi_win_detach_all(win);
	if (win->flavor == MPI_WIN_FLAVOR_ALLOCATE && !win->segment && win->base)
		munmap(win->base, mapped_window_bytes(win));
	if (win->own_control)
		free(win->control);
	mpi_win_unshare(win);
	for (int i = 0; win->target && i < win->size; i++)
		free(win->target[i].regions);
	free(win->target);
	mpi_win_pscw_fini(win);
	mpi_object_release(win->handler);
	mpi_object_release(win->info);
	mpi_object_release(win->comm);
}

__attribute__((constructor(201))) static void set_up_wins(void)
{
	mpi_pool_setup(MPI_KIND_WIN, sizeof(struct mpi_win), destroy_win);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Arguments of the call. */
struct wanted {
	int flavor;
	void *base;
	MPI_Aint size, unit;
	bool tight; /* no gaps between the ranks' shared memory */
};

static int check_wanted(const struct wanted *w)
{
	if (w->size < 0)
		return mpi_fail(MPI_ERR_SIZE, "the size %lld is negative", (long long)w->size);
	if (w->unit <= 0)
		return mpi_fail(MPI_ERR_DISP, "the displacement unit %lld is not positive",
				(long long)w->unit);
	if (w->flavor == MPI_WIN_FLAVOR_CREATE && w->size > 0 && !w->base)
		return mpi_fail(MPI_ERR_BASE, "the base is a null pointer, the size %lld",
				(long long)w->size);
	return MPI_SUCCESS;
}

/* Make the window's own communicator, of the same group and without attributes. */
static int own_comm(struct mpi_comm *comm, struct mpi_comm **out)
{
	struct mpi_creation creation = mpi_creation_of(comm);
	uint32_t context[2] = { 0 };
	int err = mpi_creation_contexts(&creation, MPI_SUCCESS, 1, context);

	return err ? err : mpi_comm_make_agreed(context, comm->local, NULL, comm, out);
}

static struct mpi_win *win_new(struct mpi_comm *comm, const struct wanted *w)
{
	struct mpi_win *win = mpi_object_new(MPI_KIND_WIN);

	if (!win) {
		mpi_object_release(comm);
		return NULL;
	}
	win->comm = comm;
	win->rank = comm->rank;
	win->size = comm->size;
	win->flavor = w->flavor;
	win->model = MPI_WIN_UNIFIED;
	win->unit = w->unit <= INT_MAX ? (int)w->unit : MPI_UNDEFINED;
	win->base = w->flavor == MPI_WIN_FLAVOR_CREATE ? w->base : NULL;
	win->bytes = w->size;
	win->handler = &mpi_errors_are_fatal;
	win->me = win->control_me = PTL_INVALID_HANDLE;
	win->target = calloc((size_t)comm->size, sizeof(*win->target));
	if (win->target && !mpi_win_pscw_init(win))
		return win;
	mpi_object_release(win);
	return NULL;
}

/*
 * Exchange the parts. All ranks succeed, or all fail: a failed rank with its own error, the
 * others with the greatest class. The kept text says what failed on this rank.
 */
static int exchange_parts(struct mpi_win *win, struct mpi_comm *comm,
			  const struct mpi_win_part *mine)
{
	struct mpi_win_part *all = calloc((size_t)comm->size, sizeof(*all));
	struct mpi_win_part part = *mine;
	int64_t worst;
	int err;

	/* agree on memory first: a rank without it could not receive what the others say */
	if (!win || !all)
		part.error = MPI_ERR_NO_MEM;
	worst = part.error;
	err = mpi_coll_allreduce_max(&worst, 1, comm);
	if (!err && !worst)
		err = mpi_coll_allgather_bytes(&part, all, sizeof(part), comm);
	if (!err && worst && part.error)
		err = part.error == MPI_ERR_NO_MEM && (!win || !all) ? mpi_fail_memory("a window")
								     : part.error;
	else if (!err && worst)
		err = mpi_fail((int)worst,
			       "another rank could not take part in making the window: %s",
			       mpi_error_text((int)worst));
	for (int i = 0; !err && win && all && i < comm->size; i++) {
		struct mpi_win_target *t = &win->target[i];

		if (all[i].flavor != part.flavor)
			err = mpi_fail(MPI_ERR_ARG,
				       "rank %d makes a window in another way than this rank", i);
		win->tight |= all[i].tight;
		t->size = all[i].size;
		t->unit = all[i].unit;
		t->number = all[i].number;
		t->control_number = all[i].control;
		t->world = mpi_group_world(comm->local, i);
		mpi_rma_cma_hear(win, t, &all[i]);
	}
	free(all);
	return err;
}

/* Allocate this rank's own memory if there is no shared memory. It is zeroed like shared memory,
 * and no pages are used before the program touches them. */
static int alloc_memory(struct mpi_win *win, bool mapped)
{
	if (win->flavor == MPI_WIN_FLAVOR_ALLOCATE && !mapped) {
		void *memory = mmap(NULL, mapped_window_bytes(win), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return mpi_fail_memory("the window");
		win->base = memory;
	}
	if (!win->control) {
		size_t bytes = win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? sizeof(*win->control)
								     : MPI_CONTROL_BYTES;

		win->own_control = true;
		if (posix_memalign((void **)&win->control, 64, bytes) != 0) {
			win->control = NULL;
			return mpi_fail_memory("the window");
		}
		memset(win->control, 0, bytes);
	}
	return MPI_SUCCESS;
}

/* Expose the parts of the window that are reached through Portals. */
static int expose_win(struct mpi_win *win, struct mpi_win_part *part)
{
	struct mpi_win_target *self = mpi_win_self(win);
	int err = MPI_SUCCESS;

	if (!win->direct && win->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		err = mpi_rma_expose(win->base, (uint64_t)win->bytes, &part->number, &win->me);
	if (!err && !self->control)
		err = mpi_rma_expose(win->control,
				     win->flavor == MPI_WIN_FLAVOR_DYNAMIC ? sizeof(*win->control)
									   : MPI_CONTROL_BYTES,
				     &part->control, &win->control_me);
	return err;
}

/* The second half, when all sizes are known: allocate memory, and set up the paths to it. */
static int establish_window(struct mpi_win *win, const struct wanted *w, struct mpi_win_part *part)
{
	bool allocates = w->flavor == MPI_WIN_FLAVOR_ALLOCATE || w->flavor == MPI_WIN_FLAVOR_SHARED;
	struct mpi_win_target *self = mpi_win_self(win);
	bool mapped = false;
	int err = mpi_win_share(win, allocates, &mapped);

	if (err)
		return err;
	if (w->flavor == MPI_WIN_FLAVOR_SHARED) {
		for (int i = 0; i < win->size && mapped; i++)
			mapped = win->target[i].base;
		if (!mapped && mpi_win_one_node(win))
			part->error = mpi_fail(MPI_ERR_NO_MEM,
					       "no memory for a window of %lld bytes "
					       "on this rank, shared with the others': %s",
					       (long long)win->bytes,
					       *mpi_node_segment_why() ? mpi_node_segment_why()
								       : "another rank has none");
		else if (!mapped)
			part->error = mpi_fail(MPI_ERR_RMA_SHARED,
					       "the ranks of the window cannot share memory; "
					       "MPI_Comm_split_type finds those that can");
	}
	if (allocates && mapped)
		win->base = self->base;
	if (!part->error)
		part->error = alloc_memory(win, mapped);
	if (!part->error && w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		self->base = win->base;
	win->direct = self->control && w->flavor != MPI_WIN_FLAVOR_DYNAMIC &&
		      (allocates || win->size == 1);
	if (!part->error)
		part->error = expose_win(win, part);
	mpi_rma_cma_advertise(win, part);
	err = exchange_parts(win, win->comm, part);
	if (!err)
		mpi_win_pscw_connect(win);
	return err;
}

static int make_win(struct mpi_comm *comm, struct mpi_info *info, const struct wanted *w,
		    struct mpi_win **out)
{
	struct mpi_win_part part = {
		.size = w->size, .unit = w->unit, .flavor = (int16_t)w->flavor, .tight = w->tight
	};
	struct mpi_comm *own = NULL;
	struct mpi_win *win;
	int err;

	if (comm->inter)
		return mpi_fail(MPI_ERR_COMM, "the communicator is an intercommunicator");
	err = own_comm(comm, &own);
	if (err)
		return err;
	win = win_new(mpi_object_keep(own), w);
	part.error = check_wanted(w);
	if (!part.error)
		part.error = mpi_rma_init();
	err = exchange_parts(win, own, &part);
	if (!err)
		err = establish_window(win, w, &part);
	mpi_object_release(own);
	if (!err)
		err = mpi_win_set_info(win, info);
	if (err)
		mpi_object_release(win);
	else
		*out = win;
	return err;
}

int mpi_win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, struct mpi_info *info,
		   struct mpi_comm *comm, struct mpi_win **win)
{
	struct wanted w = { MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, false };

	return make_win(comm, info, &w, win);
}

static int allocate_win(int flavor, MPI_Aint size, MPI_Aint disp_unit, struct mpi_info *info,
			struct mpi_comm *comm, void *baseptr, struct mpi_win **win)
{
	const char *gaps = mpi_info_value(info, "alloc_shared_noncontig");
	struct wanted w = { flavor, NULL, size, disp_unit,
			    flavor == MPI_WIN_FLAVOR_SHARED &&
				    !(gaps && strcmp(gaps, "true") == 0) };
	int err = make_win(comm, info, &w, win);

	if (!err)
		memcpy(baseptr, &(*win)->base, sizeof((*win)->base));
	return err;
}

int mpi_win_allocate(MPI_Aint size, MPI_Aint disp_unit, struct mpi_info *info,
		     struct mpi_comm *comm, void *baseptr, struct mpi_win **win)
{
	return allocate_win(MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm, baseptr, win);
}

int mpi_win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, struct mpi_info *info,
			    struct mpi_comm *comm, void *baseptr, struct mpi_win **win)
{
	return allocate_win(MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm, baseptr, win);
}

int mpi_win_create_dynamic(struct mpi_info *info, struct mpi_comm *comm, struct mpi_win **win)
{
	struct wanted w = { MPI_WIN_FLAVOR_DYNAMIC, NULL, 0, 1, false };

	return make_win(comm, info, &w, win);
}

int mpi_win_shared_query(struct mpi_win *win, int rank, MPI_Aint *size, MPI_Aint *disp_unit,
			 void *baseptr)
{
	const struct mpi_win_target *t;

	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return mpi_fail(MPI_ERR_RMA_FLAVOR, "a dynamic window has no memory in common");
	if (rank == MPI_PROC_NULL) /* the first that has memory */
		for (rank = 0; rank < win->size - 1 && win->target[rank].size == 0;)
			rank++;
	t = &win->target[rank];
	*size = t->base ? t->size : 0;
	*disp_unit = t->unit;
	memcpy(baseptr, &t->base, sizeof(t->base));
	return MPI_SUCCESS;
}

/* ---- the end --------------------------------------------------------------------------------- */

int mpi_win_free(struct mpi_win **win)
{
	int err = mpi_win_check_idle(*win);

	if (!err)
		err = mpi_attrs_delete(*win, MPI_KIND_WIN, &(*win)->attrs);
	if (err)
		return err;
	err = mpi_rma_flush_all(*win);
	/* no rank's memory may go while others still use it */
	if (!err || err == MPI_ERR_PROC_ABORTED)
		err = mpi_coll_last_barrier((*win)->comm);
	if (err == MPI_ERR_PROC_ABORTED) /* the window is freed all the same */
		err = MPI_SUCCESS;
	mpi_object_release(*win);
	*win = NULL;
	return err;
}
