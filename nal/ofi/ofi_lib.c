/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * libfabric, loaded when it is first wanted: it brings a dozen libraries with it, which programs that do not need it
 * should not have to have, nor wait for. What is not here is in the structures of functions that its objects have.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "nal/ofi/ofi.h"

static struct ofi_lib lib;
static const char *failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find(void *handle, const char *name, void *to)
{
	void *sym = dlsym(handle, name);

	if (sym)
		*(void **)to = sym;
	else
		failed = "its libfabric.so.1 lacks functions that it ought to have";
	return sym;
}

static void load(void)
{
	static char why[256];
	void *handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		snprintf(why, sizeof(why), "%s; install libfabric (Debian: libfabric1)", dlerror());
		failed = why;
		return;
	}
	if (!find(handle, "fi_version", &lib.version) ||
	    !find(handle, "fi_getinfo", &lib.getinfo) ||
	    !find(handle, "fi_freeinfo", &lib.freeinfo) ||
	    !find(handle, "fi_dupinfo", &lib.dupinfo) || !find(handle, "fi_fabric", &lib.fabric) ||
	    !find(handle, "fi_strerror", &lib.strerror))
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
