/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Memory that processes share: files without a name, made here and nowhere else. A memfd where the
 * system has them; else a file that was deleted as soon as it was made, where there is room for it.
 * Such a file has no more memory than its file system has left, so it is reserved before it is
 * used: a page that cannot be had ends a process, an error does not.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest file that `ulimit -f` lets this process make; a longer one would end it. */
uint64_t base_shared_most(void);

struct base_shared_span {
	uint64_t at, bytes;
};

/*
 * A file of `bytes` zeros, of which the `n` spans will be used at once: they are reserved. It never
 * shrinks if the system can promise that. The descriptor, or -errno with `why` set to what could
 * not be done and what helps.
 */
int base_shared_make(const char *name, uint64_t bytes, const struct base_shared_span *soon,
		     unsigned int n, char *why, size_t len);

/* May its file system run out of room? Then what is used of it is to be reserved first. */
bool base_shared_bounded(int fd);
/* The bytes at `at`, which nobody has used yet, can be used. 0, or -errno. */
int base_shared_reserve(int fd, uint64_t at, uint64_t bytes);

/* A file that another process of this user made here: may `bytes` of it be mapped? What is mapped
 * does not go away. */
bool base_shared_sound(int fd, uint64_t bytes);

/* Maps a part of one. NULL: errno says why. Not in core files, see below. */
void *base_shared_map(int fd, uint64_t at, size_t bytes);
/* Leaves memory out of core files, unless PTL_DUMP_SHARED says otherwise. */
void base_shared_hide(void *at, size_t bytes);
/* The user's own data in it: in core files. */
void base_shared_show(void *at, size_t bytes);

/* Zeros again. What can be given back is. */
void base_shared_clear(void *at, size_t bytes, bool bounded);

#endif
