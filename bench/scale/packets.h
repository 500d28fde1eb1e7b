/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The datagram machine's time for a packet: two of them whose packets are handed over in memory.
 */
#ifndef SCALE_PACKETS_H
#define SCALE_PACKETS_H

#include <stdbool.h>

/* Prints some lines. False: something did not arrive. */
bool packets_measure(void);

#endif
