/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * See check.h.
 */
#include "test/mpi/pt2pt/check.h"

#include <time.h>

int class_of(int error)
{
	int class = error;

	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	return class;
}

static unsigned char byte_of(int number, size_t i)
{
	return (unsigned char)((unsigned int)number * 37 + i * 7 + (i >> 8) * 13);
}

void fill_bytes(void *at, size_t n, int number)
{
	unsigned char *b = at;

	for (size_t i = 0; i < n; i++)
		b[i] = byte_of(number, i);
}

long wrong_byte(const void *at, size_t n, int number)
{
	const unsigned char *b = at;

	for (size_t i = 0; i < n; i++)
		if (b[i] != byte_of(number, i))
			return (long)i;
	return -1;
}

double time_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int count_of(const MPI_Status *status)
{
	int n;

	MPI_Get_count(status, MPI_BYTE, &n);
	return n;
}

/* The variable of this name, of whatever class. */
static int find_variable(const char *name)
{
	int n, class;

	MPI_T_pvar_get_num(&n);
	for (int i = 0; i < n; i++) {
		char text[128];
		int len = sizeof(text), verbosity, bind, readonly, continuous, atomic;
		MPI_Datatype type;
		MPI_T_enum en;

		MPI_T_pvar_get_info(i, text, &len, &verbosity, &class, &type, &en, NULL, NULL,
				    &bind, &readonly, &continuous, &atomic);
		if (strcmp(text, name) == 0)
			return i;
	}
	return -1;
}

long long counter(const char *name)
{
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	unsigned long long value = 0;
	int provided, n, i;

	if (tap_tame)
		return -1; /* MPICH 4.0 crashes in MPI_T_pvar_get_num */
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	i = find_variable(name);
	if (i >= 0) {
		MPI_T_pvar_session_create(&session);
		MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &n);
		MPI_T_pvar_read(session, handle, &value);
		MPI_T_pvar_handle_free(session, &handle);
		MPI_T_pvar_session_free(&session);
	}
	MPI_T_finalize();
	return i < 0 ? -1 : (long long)value;
}

static long status_kib(const char *name)
{
	char line[256];
	size_t n = strlen(name);
	long kib = -1;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, n) == 0 && sscanf(line + n, ": %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

long resident_kib(void)
{
	return status_kib("VmRSS");
}

long allocated_kib(void)
{
	return status_kib("RssAnon");
}
