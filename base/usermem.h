/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Copies to and from memory of the application. When it may look at that memory again it learns
 * from messages, some of which have been to another process and back. ThreadSanitizer sees one
 * process, so it cannot know the order and would report every such copy; it is told to look away
 * here, and only here.
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
/* of its runtime library */
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
