/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Another name of p3api/debug.h.
 */
#include <p3api/debug.h>
