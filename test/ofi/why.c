/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The target of a long get is killed while it is read, and the reads end by errors of the
 * provider's completion queue: the initiator's event says that the process has died, and its
 * debug output which provider says so, in which words.
 */
#include "ptest.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PORTAL = 21,
	/* many reads, of which some are under way when bytes of the first are seen */
	BYTES = 256 << 20,
	LAST_ERROR = 511, /* of the system's and libfabric's */
};

static char said[16384];

/* The output up to now has that text, which may be in the middle of a line. */
static const char *says(int file, const char *text)
{
	ssize_t n = pread(file, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = '\0';
	return strstr(said, text);
}

/* Does libfabric call an error so? */
static bool is_error(const char *text, size_t len)
{
	static const char *(*strerror_of)(int);
	void *lib = strerror_of ? NULL : dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);

	if (lib)
		*(void **)&strerror_of = dlsym(lib, "fi_strerror");
	pt_true(strerror_of != NULL);
	for (int i = 1; i <= LAST_ERROR; i++)
		if (len && strncmp(strerror_of(i), text, len) == 0 && !strerror_of(i)[len])
			return true;
	return false;
}

/* "provider NAME: what libfabric calls the error (what the provider says)" */
static void check_why(int file)
{
	const char *why, *open, *end;
	size_t name;

	pt_until(says(file, "\n") && says(file, ": the peer is silent"), 20);
	why = strstr(said, ": provider tcp");
	pt_truef(why, "no provider in: %s", said);
	why += strlen(": provider ");
	name = strcspn(why, ":\n");
	end = why + strcspn(why, "\n");
	open = memchr(why, '(', (size_t)(end - why));
	pt_truef(why[name] == ':' && open && end[-1] == ')', "not both texts in: %s", said);
	why += name + strlen(": ");
	pt_truef(is_error(why, (size_t)(open - 1 - why)), "not libfabric's text: %s", said);
	pt_truef(is_error(open + 1, (size_t)(end - 1 - open - 1)), "not the provider's text: %s",
		 said);
}

static void get_until_it_dies(ptl_handle_eq_t eq, void *to)
{
	ptl_process_id_t from = { (ptl_nid_t)*pt_word(0), (ptl_pid_t)*pt_word(1) };
	const volatile unsigned char *first = to;
	int file = memfd_create("said", MFD_CLOEXEC);
	ptl_event_t ev;

	pt_true(file >= 0);
	p3_out = fdopen(file, "w");
	pt_true(p3_out && setvbuf(p3_out, NULL, _IOLBF, 0) == 0);
	PtlNIDebug(pt_ni, PTL_DBG_SETUP);
	pt_ok(PtlGet(pt_bind(to, BYTES, PTL_MD_EVENT_START_DISABLE, eq), from, PORTAL, 0, 1, 0));
	while (!*first)
		pt_code(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	kill(pt_os_pid(1), SIGKILL);
	pt_ok(PtlEQWait(eq, &ev));
	pt_is(ev.type, PTL_EVENT_REPLY_END);
	pt_is(ev.ni_fail_type, PTL_NI_PEER_DEAD);
	check_why(file);
	PtlNIDebug(pt_ni, PTL_DBG_NONE);
	fclose(p3_out);
	p3_out = stderr;
}

static void the_provider_says_why_a_get_failed(void)
{
	void *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ptl_process_id_t id;
	ptl_handle_eq_t eq;
	ptl_event_t ev;
	int n;

	pt_true(bytes != MAP_FAILED);
	pt_expect_killed(1);
	pt_ok(PtlInit(&n));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &pt_ni));
	eq = pt_eq(16);
	if (pt_rank == 1) {
		memset(bytes, 1, BYTES);
		pt_post(PORTAL, 1, pt_md(bytes, BYTES, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq),
			PTL_RETAIN, NULL);
		pt_ok(PtlGetId(pt_ni, &id));
		*pt_word(0) = id.nid;
		*pt_word(1) = id.pid;
	}
	pt_barrier();
	if (pt_rank == 1)
		for (;;)
			pt_ok(PtlEQWait(eq, &ev));
	get_until_it_dies(eq, bytes);
	pt_ok(PtlNIFini(pt_ni));
	PtlFini();
}

static const struct pt_test tests[] = {
	PT_CASE(the_provider_says_why_a_get_failed, 2),
};

int main(int argc, char **argv)
{
	return PT_MAIN(argc, argv, tests);
}
