/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The launcher's value PMI_process_mapping says which ranks share a host:
 * "(vector,(FIRST,HOSTS,RANKS),...)" gives each of HOSTS hosts from number FIRST on the next
 * RANKS ranks, block after block, and from the start again until all ranks are placed.
 */
#ifndef RUNTIME_PMI_MAP_WIRE_H
#define RUNTIME_PMI_MAP_WIRE_H

#include <stddef.h>

#define PMI_MAP_KEY "PMI_process_mapping"

enum { PMI_MAP_RANKS_MAX = 1 << 24 };

/*
 * Find the place of a rank among those of its host, and their number, in a job of `size` ranks.
 * 0, or -EPROTO for a text of another form.
 */
int pmi_map_local(const char *text, size_t len, int rank, int size, int *local_rank,
		  int *local_size);

#endif
