/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which endpoint a descriptor leads to. A number is looked up in a table of pages without a
 * lock. A copy made by dup(2) or fcntl(2) has the same inode as the original, by which it is
 * found once; then its number is in the table, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "dp_shim/core.h"

static _Atomic(struct dp_ep *) *page_of_table(int fd)
{
	_Atomic(struct dp_ep *) *page =
		atomic_load_explicit(&dp_lib.table[fd / DP_PAGE_FDS], memory_order_relaxed);

	if (page)
		return page;
	page = calloc(DP_PAGE_FDS, sizeof(*page));
	if (page) /* release: pairs with dp_table_get() */
		atomic_store_explicit(&dp_lib.table[fd / DP_PAGE_FDS], page, memory_order_release);
	return page;
}

bool dp_table_set(int fd, struct dp_ep *ep)
{
	_Atomic(struct dp_ep *) *page;

	if (fd < 0 || fd >= DP_PAGES * DP_PAGE_FDS)
		return false;
	page = page_of_table(fd);
	if (!page)
		return false;
	/* release: pairs with dp_table_get() */
	atomic_store_explicit(&page[fd % DP_PAGE_FDS], ep, memory_order_release);
	return true;
}

void dp_table_forget(const struct dp_ep *ep)
{
	for (int p = 0; p < DP_PAGES; p++) {
		_Atomic(struct dp_ep *) *page =
			atomic_load_explicit(&dp_lib.table[p], memory_order_relaxed);

		for (int i = 0; page && i < DP_PAGE_FDS; i++)
			if (atomic_load_explicit(&page[i], memory_order_relaxed) == ep)
				atomic_store_explicit(&page[i], NULL, memory_order_release);
	}
}

struct dp_ep *dp_find_copy(int fd)
{
	struct dp_ep *ep = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return NULL;
	pthread_mutex_lock(&dp_lib.lock);
	for (ep = dp_lib.open; ep && ep->inode != st.st_ino; ep = ep->next)
		;
	if (ep && !dp_table_set(fd, ep))
		ep = NULL;
	pthread_mutex_unlock(&dp_lib.lock);
	return ep;
}

static struct dp_ep *endpoint_of(int fd)
{
	struct dp_ep *ep = dp_table_get(fd);

	if (__builtin_expect(!ep, 0) && atomic_load_explicit(&dp_lib.started, memory_order_acquire))
		ep = dp_find_copy(fd);
	return ep;
}

struct dp_ep *dp_enter_rx(int fd)
{
	struct dp_ep *ep = endpoint_of(fd);

	if (ep) {
		pthread_mutex_lock(&ep->rx);
		if (__builtin_expect(dp_is_still(ep, fd), 1))
			return ep;
		pthread_mutex_unlock(&ep->rx);
	}
	errno = EBADF;
	return NULL;
}

struct dp_ep *dp_enter_tx(int fd)
{
	struct dp_ep *ep = endpoint_of(fd);

	if (ep) {
		pthread_mutex_lock(&ep->tx);
		if (__builtin_expect(dp_is_still(ep, fd), 1))
			return ep;
		pthread_mutex_unlock(&ep->tx);
	}
	errno = EBADF;
	return NULL;
}
