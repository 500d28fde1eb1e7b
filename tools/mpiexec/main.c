/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * mpiexec: starts the ranks of a job on this machine and speaks PMI-1 with them, or hands the job
 * to an engine that knows other machines.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/mpiexec/handover.h"
#include "tools/mpiexec/job.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/placement.h"

/* Files opened later must not end up as standard input or output. */
static int fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct options opt;
	char *engine = NULL;
	int status;

	if (fill_standard_files()) {
		fprintf(stderr, "mpiexec: cannot open /dev/null: %m; mount or make a /dev (mknod "
				"/dev/null c 1 3)\n");
		return 1;
	}
	if (!options_parse(&opt, argc, argv, &status))
		return status;
	if (placement_resolve(&opt, &engine, &status))
		status = engine ? handover(&opt, engine) : job_run(&opt);
	free(engine);
	options_fini(&opt);
	return status;
}
