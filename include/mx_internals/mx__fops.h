/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Internal names of MX that programs link to: boards, and the cache of registrations.
 */
#ifndef MX__FOPS_H
#define MX__FOPS_H

#include <stddef.h>

#include "../mx_io.h"

#ifdef __cplusplus
extern "C" {
#endif

mx_return_t mx_open_board(int board_number, mx_endpt_handle_t *handle);
/* Returns 0: there is no registration to forget. */
int mx__regcache_clean(void *ptr, size_t length);

#ifdef __cplusplus
}
#endif

#endif
