/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Another name of p3rt/p3rt.h.
 */
#include <p3rt/p3rt.h>
