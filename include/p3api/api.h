/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A header name that old clients include. Everything is in portals3.h.
 */
#include <portals3.h>
