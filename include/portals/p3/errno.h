/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A name old clients include; everything is in portals3.h.
 */
#include <portals3.h>
