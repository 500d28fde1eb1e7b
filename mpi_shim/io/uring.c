/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Non-blocking access by io_uring, so that the kernel moves the data while the program computes.
 * The access must be one run of bytes in the file, without conversion; memory with gaps is packed.
 * Others are carried out in the call that starts them. So are all where there is no liburing.so.2,
 * and where the kernel refuses io_uring (a sysctl, or seccomp in containers).
 *
 * The library is loaded with the first access. The ring has one entry for each access under way; a
 * hook of progress looks for those that are over. A transfer that moved less than it was to goes on
 * with the rest.
 */
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/hooks.h"
#include "mpi_shim/core/progress.h"
#include "mpi_shim/io/calls.h"
#include "mpi_shim/io/io.h"

#ifdef HAVE_LIBURING

#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

enum { ENTRIES = 64, CALL_MOST = 1 << 30, BYTES_LEAST = 64 << 10 };

/* An access under way. */
struct flight {
	struct mpi_transfer a;
	struct mpi_request *r;
	char *data;   /* its bytes; of the program, or `packed` */
	char *packed; /* malloc'd, or NULL */
	int64_t at;
};

static struct {
	struct io_uring ring;
	bool tried, open, works;
	unsigned int under_way;
	int (*init)(unsigned int entries, struct io_uring *ring, unsigned int flags);
	int (*submit)(struct io_uring *ring);
	void (*exit)(struct io_uring *ring);
} uring;

static bool find_functions(void *lib)
{
	*(void **)&uring.init = dlsym(lib, "io_uring_queue_init");
	*(void **)&uring.submit = dlsym(lib, "io_uring_submit");
	*(void **)&uring.exit = dlsym(lib, "io_uring_queue_exit");
	return uring.init && uring.submit && uring.exit;
}

static bool ring_works(void)
{
	void *lib;

	if (uring.tried)
		return uring.works;
	uring.tried = true;
	lib = dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);
	uring.open = lib && find_functions(lib) && uring.init(ENTRIES, &uring.ring, 0) == 0;
	uring.works = uring.open;
	return uring.works;
}

/* Hand the rest of an access to the kernel. False: it does not take it. The entry that is left in
 * the ring does nothing then, and no other follows it, as the ring does not work from then on. */
static bool submit_rest(struct flight *f)
{
	struct io_uring_sqe *sqe = uring.works ? io_uring_get_sqe(&uring.ring) : NULL;
	uint64_t left = f->a.bytes - f->a.moved, at = (uint64_t)f->at + f->a.moved;
	unsigned int bytes = left < CALL_MOST ? (unsigned int)left : CALL_MOST;
	int rc;

	if (!sqe)
		return false;
	if (f->a.writes)
		io_uring_prep_write(sqe, f->a.file->fd, f->data + f->a.moved, bytes, at);
	else
		io_uring_prep_read(sqe, f->a.file->fd, f->data + f->a.moved, bytes, at);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
	io_uring_sqe_set_data(sqe, f);
	do
		rc = uring.submit(&uring.ring);
	while (rc == -EINTR);
	if (rc == 1)
		return true;
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data(sqe, NULL);
	uring.works = false;
	return false;
}

/* ---- the end of an access -------------------------------------------------------------------- */

static void end_flight(struct flight *f, int err)
{
	struct mpi_file *file = f->a.file;

	if (f->packed && !f->a.writes)
		mpi_type_unpack_bytes(f->a.type, f->a.buf, f->a.count, 0, f->packed,
				      (size_t)f->a.moved);
	mpi_events_hold(); /* inside of a round of progress */
	err = mpi_transfer_end(&f->a, err);
	mpi_events_let_go();
	if (mpi_events_watched)
		mpi_events_flush();
	mpi_io_complete(f->r, err, f->a.user_bytes);
	free(f->packed);
	free(f);
	file->flights--;
	mpi_object_release(file);
	uring.under_way--;
	mpi_polled--;
}

/* Carry out the rest of an access that the kernel does not take. */
static void end_by_calls(struct flight *f)
{
	const int64_t at = f->at + (int64_t)f->a.moved;
	const uint64_t left = f->a.bytes - f->a.moved;
	char *data = f->data + f->a.moved;
	uint64_t more = 0;
	int err = f->a.writes ? mpi_disk_write(f->a.file, at, data, left, &more)
			      : mpi_disk_read(f->a.file, at, data, left, &more);

	f->a.moved += more;
	end_flight(f, err);
}

/* `moved`: what the kernel says of an entry. It cancels those of a thread that ends. */
static void take_result(struct flight *f, int moved)
{
	bool again = moved == -EINTR || moved == -EAGAIN || moved == -ECANCELED;

	if (moved > 0)
		f->a.moved += (uint64_t)moved;
	if (f->a.moved == f->a.bytes || (moved == 0 && !f->a.writes)) {
		end_flight(f, MPI_SUCCESS);
		return;
	}
	if (moved > 0 || again) {
		if (!submit_rest(f))
			end_by_calls(f);
		return;
	}
	end_flight(f, mpi_disk_failed(f->a.file, f->a.writes, f->at + (int64_t)f->a.moved,
				      f->a.bytes - f->a.moved, moved < 0 ? -moved : EIO));
}

static bool poll_ring(struct mpi_hook *hook)
{
	struct io_uring_cqe *cqe;
	struct flight *f;
	unsigned int head;
	bool any;
	int moved = 0;

	(void)hook;
	do {
		any = false;
		f = NULL;
		io_uring_for_each_cqe(&uring.ring, head, cqe)
		{
			f = io_uring_cqe_get_data(cqe);
			moved = cqe->res;
			any = true;
			break;
		}
		if (any)
			io_uring_cq_advance(&uring.ring, 1);
		if (f)
			take_result(f, moved);
	} while (any && uring.under_way);
	return uring.under_way == 0;
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Whether the access is one long run of bytes in the file. Short ones are over sooner in a call. */
static bool is_one_run(const struct mpi_transfer *a)
{
	struct mpi_extents places;
	const struct mpi_extent *e;

	if (a->bytes < BYTES_LEAST || a->file->atomic || a->buf != a->user_buf)
		return false;
	mpi_view_extents(&places, &a->file->view, a->from, a->from + a->bytes);
	e = mpi_extents_peek(&places);
	return e && e->bytes == a->bytes;
}

/* NULL: out of memory. */
static struct flight *flight_new(const struct mpi_transfer *a, struct mpi_request *r)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->a = *a;
	f->r = r;
	f->at = mpi_view_place(&a->file->view, a->from);
	f->data = (char *)a->buf + a->type->true_lb;
	if (a->type->dense)
		return f;
	f->data = f->packed = malloc((size_t)a->bytes);
	if (!f->packed) {
		free(f);
		return NULL;
	}
	if (a->writes)
		mpi_type_pack_bytes(a->type, a->buf, a->count, 0, f->packed, (size_t)a->bytes);
	return f;
}

bool mpi_uring_start(const struct mpi_transfer *a, struct mpi_request *r)
{
	static struct mpi_hook hook = { .run = poll_ring };
	struct flight *f;

	if (!is_one_run(a) || !ring_works() || uring.under_way == ENTRIES)
		return false;
	f = flight_new(a, r);
	if (!f)
		return false;
	if (!submit_rest(f)) {
		free(f->packed);
		free(f);
		return false;
	}
	mpi_object_keep(a->file);
	a->file->flights++;
	mpi_polled++;
	if (uring.under_way++ == 0)
		mpi_hooks_start(&hook);
	return true;
}

void mpi_uring_fini(void)
{
	while (uring.under_way)
		mpi_progress(true);
	if (uring.open)
		uring.exit(&uring.ring);
	uring.open = uring.works = uring.tried = false;
}

#else

bool mpi_uring_start(const struct mpi_transfer *a, struct mpi_request *r)
{
	(void)a;
	(void)r;
	return false;
}

void mpi_uring_fini(void)
{
}

#endif
