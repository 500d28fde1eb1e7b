/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The seed "region" of fuzz_shm_hello: the header of a region as the library makes it. Writes it to
 * standard output; with the name of a file it checks whether that still is one, for another layout
 * or version would keep the fuzzer from all that is behind the check of the version.
 *
 *	seed_shm_hello >test/fuzz/corpus/fuzz_shm_hello/region
 */
#include <stdio.h>
#include <string.h>

#include "portals/engine/region.h"

static int write_seed(void)
{
	const ptl_ni_limits_t limits = { 8, 8, 8, 8, 8, 8, 8, 8 };
	struct ptl_view v;
	const char *bytes;
	char why[320];
	size_t size;
	int fd;

	if (ptl_region_create(&v, &limits, 4096, 65536, &fd, why, sizeof(why)) < 0) {
		fprintf(stderr, "seed_shm_hello: %s\n", why);
		return 1;
	}
	bytes = (const char *)v.r;
	/* the fuzzer takes what is missing for zeros */
	for (size = sizeof(*v.r); size && !bytes[size - 1];)
		size--;
	return fwrite(bytes, 1, size, stdout) != size;
}

static int check_seed(const char *path)
{
	static struct ptl_region r;
	FILE *file = fopen(path, "rb");
	struct ptl_view v;
	bool good;

	good = file && fread(&r, 1, sizeof(r), file) && r.stat.version == PTL_STAT_VERSION &&
	       ptl_region_check(&v, &r, r.stat.region_size) == 0;
	printf("1..1\n%s 1 - the seed of a region is of the present layout\n",
	       good ? "ok" : "not ok");
	if (!good)
		printf("# %s: make it anew, see seed_shm_hello.c\n", path);
	return !good;
}

int main(int argc, char **argv)
{
	return argc > 1 ? check_seed(argv[1]) : write_seed();
}
