/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A file that replaces the command line (MPI-4 §11.5). Each line holds what may stand between
 * two colons.
 */
#ifndef MPIEXEC_CONFIGFILE_H
#define MPIEXEC_CONFIGFILE_H

struct configfile {
	char *text;   /* the words, one after the other */
	char **words; /* ends with NULL; with ":" between lines */
};

/* Returns 0 or -errno; -EINVAL: a quotation does not end. */
int configfile_read(struct configfile *file, const char *path);
void configfile_free(struct configfile *file);

#endif
