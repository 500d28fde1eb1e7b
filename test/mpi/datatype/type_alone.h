/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Datatypes without the rest of MPI: the tests link their sources alone, and this stands in for
 * what they call.
 */
#ifndef TYPE_ALONE_H
#define TYPE_ALONE_H

/* The text kept with the last error. */
extern char alone_text[512];
/* How often attributes were asked to be copied and deleted, and what both return. */
extern int alone_attr_copies, alone_attr_deletes, alone_attr_result;

#endif
