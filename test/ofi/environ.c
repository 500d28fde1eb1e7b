/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Settings for libfabric in the environment do not take from other threads what they are reading
 * there.
 */
#include "ptest.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1000 };

static bool is_set(const char *name)
{
	size_t length = strlen(name);
	bool found = false;

	for (char **at = environ; *at; at++)
		found |= strncmp(*at, name, length) == 0 && (*at)[length] == '=';
	return found;
}

static void stays_readable_where_it_was(void)
{
	static char *copy[MOST];
	char **before;
	size_t n = 0;

	/* from now on the array is of memory that can be freed */
	pt_is(setenv("PT_ONE_MORE", "1", 1), 0);
	for (before = environ; before[n] && n < MOST; n++)
		copy[n] = before[n];
	pt_open();
	pt_true(is_set("FI_OFI_RXM_USE_SRX") && is_set("FI_OFI_RXM_MSG_RX_SIZE"));
	for (size_t i = 0; i < n; i++)
		pt_true(before[i] == copy[i]);
	pt_close();
	/* and it can be changed as ever */
	pt_is(setenv("PT_TWO_MORE", "1", 1), 0);
	pt_true(is_set("PT_ONE_MORE") && is_set("PT_TWO_MORE"));
}

static void is_left_alone_where_all_is_set(void)
{
	char **before;

	pt_is(setenv("FI_OFI_RXM_USE_SRX", "1", 1), 0);
	pt_is(setenv("FI_OFI_RXM_MSG_RX_SIZE", "600", 1), 0);
	before = environ;
	pt_open();
	pt_true(environ == before);
	pt_close();
	pt_true(strcmp(getenv("FI_OFI_RXM_MSG_RX_SIZE"), "600") == 0);
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(stays_readable_where_it_was, 1),
		PT_CASE(is_left_alone_where_all_is_set, 1),
	};

	return PT_MAIN(argc, argv, tests);
}
