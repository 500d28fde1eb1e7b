/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Lists of machines, as users of MPICH and of Open MPI write them: "a,b:2" on the command line, and
 * lines of "a:2" or "a slots=2" in a file, with comments. The text is anybody's: names that a
 * remote shell would take for an option are refused.
 */
#ifndef MPIEXEC_HOSTS_H
#define MPIEXEC_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	HOST_NAME_MOST = 255, /* bytes */
	HOST_SLOTS_MOST = 16384,
	HOSTS_MOST = 65536,
};

struct host {
	char *name;
	int slots; /* how many ranks it is for; 0: the text does not say */
};

/* Empty when zeroed. */
struct hosts {
	struct host *all;
	int n;
};

/* The words of a text that is refused, and why. */
struct hosts_error {
	char text[HOST_NAME_MOST + 200];
};

/*
 * Add the hosts of a list, or of the text of a file. Neither needs to end with a zero. Returns 0,
 * -EINVAL with the reason in *why, or -ENOMEM; what was added before it stays.
 */
int hosts_add_list(struct hosts *hosts, const char *text, size_t len, struct hosts_error *why);
int hosts_add_file(struct hosts *hosts, const char *text, size_t len, struct hosts_error *why);

/* Add one host. Returns 0, -E2BIG when there are too many, or -ENOMEM. */
int hosts_add(struct hosts *hosts, const char *name, size_t len, int slots);

/* How many ranks there is room for: one on a host that does not say. */
int hosts_slots(const struct hosts *hosts);

/* The first `ranks` slots, host by host, and from the first host on again where they are too few;
 * each entry has its slots. Returns 0, -E2BIG or -ENOMEM. */
int hosts_deal(const struct hosts *hosts, int ranks, struct hosts *dealt);

void hosts_clear(struct hosts *hosts);

#endif
