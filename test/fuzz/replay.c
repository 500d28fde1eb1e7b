/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Stands in for libFuzzer in ordinary builds: gives a fuzzer every file of its corpus, and each
 * file again cut short at every length, so that what was found once stays found. One TAP case per
 * file; a crash ends the program before its plan, which counts as a failure.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads a whole file; NULL if that fails. The caller frees. */
static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t room = 0;

	*size = 0;
	if (!file)
		return NULL;
	do {
		uint8_t *more;

		room += 4096;
		more = realloc(data, room);
		if (!more)
			break;
		data = more;
		*size += fread(data + *size, 1, room - *size, file);
	} while (*size == room);
	fclose(file);
	return data;
}

/* An exact copy on the heap, so that a sanitizer sees a read past the end. */
static void give(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static int replay(const char *path)
{
	size_t size;
	uint8_t *data = read_file(path, &size);

	if (!data)
		return -1;
	for (size_t len = 0; len <= size; len++)
		give(data, len);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int cases = 0, failed = 0;
	struct dirent *entry;
	DIR *dir;

	dir = argc == 2 ? opendir(argv[1]) : NULL;
	if (!dir) {
		fprintf(stderr, "usage: %s CORPUS_DIR\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		char path[4096];
		int bad;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		bad = replay(path);
		failed += !!bad;
		printf("%sok %d - %s\n", bad ? "not " : "", ++cases, entry->d_name);
		fflush(stdout);
	}
	closedir(dir);
	printf("1..%d\n", cases);
	return cases && !failed ? 0 : 1;
}
