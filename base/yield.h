/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Giving the processor away in a wait, beside processes that compute.
 *
 * A yield gives up what is left of the time slice. Beside many busy processes the turn comes back
 * after a slice of each of them, which may be a tenth of a second. A sleeper that is woken gets
 * the processor earlier. So a yield that came back that late is the last one for a while.
 */
#ifndef BASE_YIELD_H
#define BASE_YIELD_H

#include <stdbool.h>
#include <stdint.h>

/* False: yields are too expensive now; do not wait by them, sleep. */
bool base_yield_helps(void);

/* Yield once, if that helps. Returns what base_yield_helps() said before. */
bool base_yield(void);

#endif
