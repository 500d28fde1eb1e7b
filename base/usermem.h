/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies to and from memory of the application. Messages tell the application when it may use
 * that memory again, and some of them have been to another process and back. ThreadSanitizer
 * sees only one process, so it cannot know the order and would report every such copy. It is
 * switched off here, and only here.
 */
#ifndef BASE_USERMEM_H
#define BASE_USERMEM_H

#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BASE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(BASE_TSAN)
/* functions of ThreadSanitizer's runtime library */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static inline void base_copy_user(void *to, const void *from, size_t len)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	memcpy(to, from, len);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static inline void base_copy_user(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif

#endif
