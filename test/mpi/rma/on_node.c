/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Puts and gets by the kernel between two ranks of a node: which do, what becomes of those the
 * kernel does by halves or not at all, and that the choice is tried. The kernel's calls of the
 * MPI library go through this program, which counts them; Portals has calls of its own. Usage:
 * [SEED [ROUNDS [WAY]]], of which the last is that of PTL_MPI_RMA.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/mpi/pt2pt/check.h"
#include "test/mpi/put_inject.h"

enum { BYTES = 1 << 17 };

static int reads, writes, calls; /* of the kernel, and both */
static int most_calls;           /* those after which it does no more, -1: none */
static int injected;             /* puts of pieces */
static size_t most_bytes;        /* that one copies */
static bool always, never;       /* the library's way */
static char *memory, data[BYTES], back[BYTES];
static MPI_Win win;

/* Is this place in the MPI library? */
static bool is_mpi(const void *place)
{
	const char *name;
	Dl_info info;

	if (!dladdr(place, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	return strncmp(name ? name + 1 : info.dli_fname, "libmpi", 6) == 0;
}

static ssize_t call(long number, pid_t pid, const struct iovec *mine, const struct iovec *other)
{
	struct iovec less = *mine;

	if (most_calls >= 0 && calls >= most_calls) {
		errno = EPERM;
		return -1;
	}
	calls++;
	*(number == SYS_process_vm_readv ? &reads : &writes) += 1;
	if (most_bytes && less.iov_len > most_bytes)
		less.iov_len = most_bytes;
	return syscall(number, pid, &less, 1UL, other, 1UL, 0UL);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *lvec, unsigned long liovcnt,
			 const struct iovec *rvec, unsigned long riovcnt, unsigned long flags)
{
	if (is_mpi(__builtin_return_address(0)))
		return call(SYS_process_vm_readv, pid, lvec, rvec);
	return syscall(SYS_process_vm_readv, pid, lvec, liovcnt, rvec, riovcnt, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *lvec, unsigned long liovcnt,
			  const struct iovec *rvec, unsigned long riovcnt, unsigned long flags)
{
	if (is_mpi(__builtin_return_address(0)))
		return call(SYS_process_vm_writev, pid, lvec, rvec);
	return syscall(SYS_process_vm_writev, pid, lvec, liovcnt, rvec, riovcnt, flags);
}

int PtlPutInject(ptl_handle_ni_t ni, const void *buf, ptl_size_t length, ptl_inject_t when,
		 ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
		 ptl_match_bits_t bits, ptl_size_t offset, ptl_hdr_data_t hdr)
{
	injected += length > 0;
	return next_put_inject(ni, buf, length, when, target, pt, ac, bits, offset, hdr);
}

static void begin(void)
{
	most_calls = -1;
	most_bytes = 0;
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_lock_all(0, win);
	calls = reads = writes = injected = 0;
}

static void end(void)
{
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	munmap(memory, BYTES);
	most_calls = -1;
	most_bytes = 0;
}

static void fill(int bytes, int seed)
{
	for (int i = 0; i < bytes; i++)
		data[i] = (char)mix((uint64_t)i * 977 + (uint64_t)seed);
}

/* A put, and a get of it and of what is around it. */
static const char *there_and_back(int bytes, int at, int seed)
{
	MPI_Request r;

	fill(bytes, seed);
	memset(back, 3, sizeof(back));
	if (seed % 3) {
		CHECK_OK(MPI_Put(data, bytes, MPI_BYTE, 1, at, bytes, MPI_BYTE, win));
	} else {
		CHECK_OK(MPI_Rput(data, bytes, MPI_BYTE, 1, at, bytes, MPI_BYTE, win, &r));
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	}
	CHECK_OK(MPI_Win_flush(1, win));
	if (seed % 5) {
		CHECK_OK(MPI_Get(back, bytes, MPI_BYTE, 1, at, bytes, MPI_BYTE, win));
		CHECK_OK(MPI_Win_flush(1, win));
	} else {
		CHECK_OK(MPI_Rget(back, bytes, MPI_BYTE, 1, at, bytes, MPI_BYTE, win, &r));
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	}
	CHECK(memcmp(data, back, (size_t)bytes) == 0);
	CHECK_INT(back[bytes], 3);
	return NULL;
}

/* Rank 1 waits meanwhile, and looks at its memory then. */
static const char *lengths(int round)
{
	static const int of[] = {
		1, 8, 256, 257, 512, 513, 4095, 4096, 4097, 65536, 65537, 100000
	};
	const int bytes = of[round], at = round * 7;
	const char *wrong = NULL;
	int all;

	begin();
	if (tap_rank == 0) {
		wrong = there_and_back(bytes, at, round + 1);
		if (!wrong && always && calls != 2)
			wrong = tap_wrong("%d bytes: %d calls of the kernel", bytes, calls);
		if (!wrong && never && calls)
			wrong = tap_wrong("%d bytes: by the kernel", bytes);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (tap_rank == 1) {
		fill(bytes, round + 1);
		if (memcmp(memory + at, data, (size_t)bytes) != 0 || memory[at + bytes] ||
		    (at && memory[at - 1]))
			wrong = tap_wrong("%d bytes: wrong at the target", bytes);
	}
	all = wrong != NULL;
	MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	end();
	return wrong ? wrong : all ? "wrong at the other rank" : NULL;
}

static const char *by_halves(int round)
{
	const char *wrong = NULL;

	begin();
	most_bytes = 100 + (size_t)round * 333;
	for (int i = 0; i < 60 && !wrong && tap_rank == 0; i++)
		wrong = there_and_back(3000 + i, i, i);
	end();
	return wrong;
}

/* From some call on the kernel refuses: it is asked once more, and never again. */
static const char *refused(int round)
{
	const char *wrong = NULL;

	begin();
	if (tap_rank == 0) {
		most_calls = round;
		most_bytes = round % 2 ? 1000 : 0;
	}
	for (int i = 0; i < 60 && !wrong && tap_rank == 0; i++)
		wrong = there_and_back(3000 + i, i, i);
	if (!wrong && calls > round)
		wrong = tap_wrong("%d calls of the kernel, which permits %d", calls, round);
	end();
	return wrong;
}

/* Both ways have their turn within some tens, and after that the kernel if it is always taken. */
static const char *tried(int round)
{
	const char *wrong = NULL;

	(void)round;
	begin();
	for (int i = 0; i < 60 && !wrong && tap_rank == 0; i++)
		wrong = there_and_back(2000, 0, i);
	if (!wrong && tap_rank == 0 && (never ? calls != 0 : always ? calls != 120 : calls < 9))
		wrong = tap_wrong("%d calls of the kernel for 60 puts and gets", calls);
	end();
	return wrong;
}

/* The longest that have a choice have three, and stay right all the while. */
static const char *tried_long(int round)
{
	const char *wrong = NULL;

	(void)round;
	begin();
	for (int i = 0; i < (always || never ? 60 : 10000) && !wrong && tap_rank == 0; i++) {
		wrong = there_and_back(40000 + i % 25000, i % 7, i);
		if (!always && reads >= 9 && writes >= 9)
			break;
	}
	if (!wrong && tap_rank == 0 &&
	    (never    ? calls != 0
	     : always ? calls != 120
		      : reads < 9 || writes < 9))
		wrong = tap_wrong("%d and %d calls of the kernel for puts and gets", writes, reads);
	/* two ranks that share a processor have none */
	if (!wrong && tap_rank == 0 && !never && !always && !injected &&
	    sysconf(_SC_NPROCESSORS_ONLN) > 1)
		wrong = tap_wrong("no puts in pieces");
	end();
	return wrong;
}

/* Of what is put at once the longest is what it is tried for; a window that is never flushed
 * keeps no other from it. */
static const char *tried_beside(int round)
{
	static char own[BYTES];
	const char *wrong = NULL;
	MPI_Request r;
	MPI_Win other;

	(void)round;
	MPI_Win_create(own, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
	MPI_Win_lock_all(0, other);
	begin();
	for (int i = 0; i < 60 && !wrong && tap_rank == 0; i++) {
		fill(20000, i);
		CHECK_OK(MPI_Rput(data, 9000, MPI_BYTE, 1, 0, 9000, MPI_BYTE, other, &r));
		CHECK_OK(MPI_Put(data, 300, MPI_BYTE, 1, 0, 300, MPI_BYTE, win));
		CHECK_OK(MPI_Put(data + 300, 19700, MPI_BYTE, 1, 300, 19700, MPI_BYTE, win));
		CHECK_OK(MPI_Win_flush(1, win));
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Get(back, 20000, MPI_BYTE, 1, 0, 20000, MPI_BYTE, win));
		CHECK_OK(MPI_Win_flush(1, win));
		CHECK(memcmp(data, back, 20000) == 0);
	}
	/* nine of the longer put, and of the get */
	if (!wrong && tap_rank == 0 &&
	    (never    ? calls != 0
	     : always ? calls != 240
		      : reads < 9 || writes < 9))
		wrong = tap_wrong("%d calls of the kernel for 180 puts and 60 gets", calls);
	end();
	MPI_Win_unlock_all(other);
	MPI_Win_free(&other);
	return wrong;
}

/* Where processes may not reach each other's memory all goes by Portals. */
static bool may_reach(void)
{
	long mine[2] = { getpid(), (long)mine }, other[2], seen = 0;
	struct iovec here = { &seen, sizeof(seen) }, there;
	int good;

	MPI_Sendrecv(mine, 2, MPI_LONG, 1 - tap_rank, 1, other, 2, MPI_LONG, 1 - tap_rank, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	there = (struct iovec){ (void *)other[1], sizeof(seen) };
	good = process_vm_readv((pid_t)other[0], &here, 1, &there, 1, 0) == sizeof(seen);
	MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!good && tap_rank == 0)
		printf("# processes may not reach each other's memory here\n");
	return good;
}

int main(int argc, char **argv)
{
	const char *way = argc > 3 ? argv[3] : "auto";

	tap_start(argc, argv, 1);
	never = strcmp(way, "portals") == 0 || !may_reach();
	always = strcmp(way, "cma") == 0 && !never;
	tap_rounds_set(12);
	tap_case("lengths at the borders of what the kernel does", lengths);
	tap_rounds_set(1);
	tap_case("both ways are tried", tried);
	tap_case("all ways of longer ones are tried", tried_long);
	tap_case("both ways are tried beside shorter puts and another window", tried_beside);
	tap_rounds_set(8);
	tap_case("the kernel copies only a part", by_halves);
	tap_case("the kernel refuses", refused);
	return tap_end();
}
