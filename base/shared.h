/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory that processes share: files without a name, made here and nowhere else. It is a memfd
 * where the system has them, else a deleted file in a directory with enough room. A deleted
 * file has only the memory that its file system has left, so reserve memory before using it. A
 * page that cannot be had kills a process; a failed reservation is only an error.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest file, in bytes, that `ulimit -f` lets this process make. A longer one would kill
 * it. */
uint64_t base_shared_most(void);

struct base_shared_span {
	uint64_t at, bytes;
};

/*
 * Make a file of `bytes` zeros. The `n` spans of `soon` will be used at once, so they are
 * reserved. The file never shrinks if the system can promise that. Returns the descriptor, or
 * -errno with `why` set to the failure and the remedy.
 */
int base_shared_make(const char *name, uint64_t bytes, const struct base_shared_span *soon,
		     unsigned int n, char *why, size_t len);

/* May its file system run out of room? Then reserve memory before using it. */
bool base_shared_bounded(int fd);
/* Reserve bytes at `at` that nobody has used yet. 0, or -errno. */
int base_shared_reserve(int fd, uint64_t at, uint64_t bytes);

/* May `bytes` of this file be mapped, which another process of this user made here? A mapped
 * page will not go away then. */
bool base_shared_sound(int fd, uint64_t bytes);

/* Map a part of such a file, left out of core files (see below). NULL: errno says why. */
void *base_shared_map(int fd, uint64_t at, size_t bytes);
/* Leave memory out of core files, unless PTL_DUMP_SHARED says otherwise. */
void base_shared_hide(void *at, size_t bytes);
/* Put memory into core files: it holds the user's own data. */
void base_shared_show(void *at, size_t bytes);

/* Set memory to zeros, and give it back to the system if possible. */
void base_shared_clear(void *at, size_t bytes, bool bounded);

#endif
