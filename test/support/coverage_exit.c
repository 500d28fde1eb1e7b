/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Preloaded by test/coverage.py, which compiles it: _exit writes the counters of gcov as exit
 * does. The harness ends its processes by _exit. The destructors of all objects of the build
 * directory BUILD run, because one of them writes the counters; handlers of atexit do not run.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls the destructors of an object whose file is in the folder `under`. */
static int end_object(struct dl_phdr_info *info, size_t size, void *under)
{
	char program[4096] = "";
	const char *name = info->dlpi_name;
	const ElfW(Dyn) *dyn = NULL;
	void (**array)(void) = NULL;
	size_t n = 0;

	(void)size;
	if (!info->dlpi_name[0] && readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
		name = program;
	if (strncmp(name, under, strlen(under)))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_FINI_ARRAY)
			array = (void (**)(void))(info->dlpi_addr + dyn->d_un.d_ptr);
		if (dyn->d_tag == DT_FINI_ARRAYSZ)
			n = dyn->d_un.d_val / sizeof(*array);
	}
	while (array && n-- > 0)
		array[n]();
	return 0;
}

void _exit(int status)
{
	dl_iterate_phdr(end_object, BUILD);
	for (;;)
		syscall(SYS_exit_group, status);
}
