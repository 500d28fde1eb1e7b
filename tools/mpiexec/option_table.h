/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every option that users of MPICH, Open MPI and Slurm type, one row each: its names, and what is
 * done here, or what to write instead. `mpiexec --help habits` and mpiexec(1) show the rows.
 */
#ifndef MPIEXEC_OPTION_TABLE_H
#define MPIEXEC_OPTION_TABLE_H

#include "tools/mpiexec/options.h"

/* The rest of the command line, and the program that it is about now. */
struct parser {
	struct options *opt;
	struct app *app;
	char **next; /* ends with NULL */
	int *status;
};

enum option_kind {
	OPTION_DOES,    /* `apply` does it */
	OPTION_NOTHING, /* it is always so, or has nothing to do with ranks of one machine */
	OPTION_IGNORED, /* with a hint, which `text` is */
	OPTION_REFUSED, /* `text` says what to write instead */
};

struct option {
	const char
		*names;   /* as they are typed, with blanks between; one dash or two are the same */
	const char *args; /* a word for each; "N" may follow the name without a blank */
	enum option_kind kind;
	const char *text;
	/* Returns false after option_fail. */
	bool (*apply)(struct parser *parser, const struct option *option, char **values);
	int choice; /* for `apply` */
};

/* Row i, NULL after the last. */
const struct option *option_row(size_t i);

/* Print "mpiexec: TEXT: WHAT" with a hint at --help, and set the exit status; without `what` only
 * the text. Returns false. */
bool option_fail(struct parser *parser, const char *text, const char *what);

#endif
