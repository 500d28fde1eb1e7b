/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * libfabric, loaded when it is first wanted. It brings a dozen libraries. Programs that do not
 * need it should not have to install them, or wait for them. Functions that are not here are in
 * the operation tables of libfabric's objects.
 */
#define _GNU_SOURCE /* environ */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nal/ofi/ofi.h"

static struct ofi_lib lib;
static const char *failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find_symbol(void *handle, const char *name, void *to)
{
	void *sym = dlsym(handle, name);

	if (sym)
		*(void **)to = sym;
	else
		failed = "its libfabric.so.1 lacks functions that it ought to have";
	return sym;
}

static bool is_set(const char *setting)
{
	size_t name = strcspn(setting, "=") + 1;

	for (char **at = environ; at && *at; at++)
		if (strncmp(*at, setting, name) == 0)
			return true;
	return false;
}

/* A copy of a setting that the user has not made. NULL: it is made, or out of memory. */
static char *to_set(const char *setting)
{
	return is_set(setting) ? NULL : strdup(setting);
}

/*
 * Give settings that the user has not made to libfabric, which takes them only from the
 * environment. setenv(3) could free the array while another thread reads it. So a new array
 * takes its place, and the old one does not change. Nothing is freed: the program may use it
 * after this library is unloaded.
 */
static void set(const char *first, const char *second)
{
	static char **more; /* leak checkers find it, whatever the program does with environ */
	char *one = to_set(first), *two = to_set(second);
	size_t n = 0;

	if (!one && !two)
		return;
	while (environ && environ[n])
		n++;
	more = calloc(n + 3, sizeof(*more));
	if (!more) {
		free(one);
		free(two);
		return;
	}
	for (size_t i = 0; i < n; i++)
		more[i] = environ[i];
	if (one)
		more[n++] = one;
	if (two)
		more[n] = two;
	/* release: a thread that reads it finds it complete */
	__atomic_store_n(&environ, more, __ATOMIC_RELEASE);
}

static void load(void)
{
	static char why[256];
	void *handle;

	/* Reliable unconnected endpoints over connections, as over verbs, have two megabytes of
	 * receive buffers for each peer. libfabric may also give a buffer back to a connection
	 * that its peer has just closed, which ends the process (libfabric's issue 11828). So
	 * use one queue for all peers, of 512 buffers instead of 4096, unless the user sets it
	 * otherwise. */
	set("FI_OFI_RXM_USE_SRX=1", "FI_OFI_RXM_MSG_RX_SIZE=512");
	handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(why, sizeof(why), "%s; install libfabric (Debian: libfabric1)", dlerror());
		failed = why;
		return;
	}
	if (!find_symbol(handle, "fi_version", &lib.version) ||
	    !find_symbol(handle, "fi_getinfo", &lib.getinfo) ||
	    !find_symbol(handle, "fi_freeinfo", &lib.freeinfo) ||
	    !find_symbol(handle, "fi_dupinfo", &lib.dupinfo) ||
	    !find_symbol(handle, "fi_fabric", &lib.fabric) ||
	    !find_symbol(handle, "fi_strerror", &lib.strerror))
		return;
	if (FI_VERSION_LT(lib.version(), OFI_VERSION)) {
		snprintf(why, sizeof(why), "libfabric %u.%u is older than 1.11",
			 FI_MAJOR(lib.version()), FI_MINOR(lib.version()));
		failed = why;
	}
}

const struct ofi_lib *ofi_lib(const char **why)
{
	pthread_once(&once, load);
	if (failed && why)
		*why = failed;
	return failed ? NULL : &lib;
}
