/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A program that has loaded the library and unloaded it again can read its environment, and
 * change it.
 *
 * Usage: unload LIBPORTALS
 */
#define _GNU_SOURCE /* dladdr, environ */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <portals3.h>

static const char *failed;

static void *find(void *library, const char *name)
{
	void *at = dlsym(library, name);

	if (!at)
		failed = name;
	return at;
}

/* Opens an interface, and closes it. */
static bool use(void *library)
{
	int (*init)(int *) = find(library, "PtlInit");
	int (*ni_init)(ptl_interface_t, ptl_pid_t, ptl_ni_limits_t *, ptl_ni_limits_t *,
		       ptl_handle_ni_t *) = find(library, "PtlNIInit");
	int (*ni_fini)(ptl_handle_ni_t) = find(library, "PtlNIFini");
	void (*fini)(void) = find(library, "PtlFini");
	ptl_handle_ni_t ni;
	int versions;

	if (failed)
		return false;
	if (init(&versions) != PTL_OK ||
	    ni_init(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) {
		failed = "opening an interface";
		return false;
	}
	ni_fini(ni);
	fini();
	return true;
}

static bool unload(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	Dl_info info;
	void *inside;

	if (!library) {
		failed = dlerror();
		return false;
	}
	inside = find(library, "PtlInit");
	if (!use(library))
		return false;
	dlclose(library);
	if (dladdr(inside, &info))
		failed = "it is still loaded";
	return !failed;
}

static bool is(const char *name, const char *value)
{
	const char *at = getenv(name);

	return at && strcmp(at, value) == 0;
}

int main(int argc, char **argv)
{
	bool unloaded;

	if (argc < 2)
		return 2;
	puts("1..2");
	unsetenv("FI_OFI_RXM_USE_SRX");
	unsetenv("FI_OFI_RXM_MSG_RX_SIZE");
	unloaded = unload(argv[1]);
	printf("%sok 1 - the library can be unloaded\n", unloaded ? "" : "not ");
	if (failed)
		printf("# %s\n", failed);
	fflush(stdout);
	printf("%sok 2 - the environment stays\n",
	       unloaded && is("FI_OFI_RXM_USE_SRX", "1") && is("FI_OFI_RXM_MSG_RX_SIZE", "512") &&
			       setenv("PT_ONE_MORE", "1", 1) == 0 && is("PT_ONE_MORE", "1")
		       ? ""
		       : "not ");
	return 0;
}
