/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Lines of /proc/self/mountinfo: of which file systems the locks do not reach other nodes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "mpi_shim/io/io.h"

#define NFS(options) "36 35 0:45 / /data rw,noatime shared:1 - nfs4 server:/data " options "\n"

static void nfs_without_locks_among_nodes(void **state)
{
	(void)state;
	assert_true(mpi_locks_stay_here(NFS("rw,vers=3,nolock,addr=10.0.0.1"), 0, 45));
	assert_true(mpi_locks_stay_here(NFS("rw,vers=3,local_lock=all"), 0, 45));
	assert_true(mpi_locks_stay_here(NFS("local_lock=posix,rw"), 0, 45));
	assert_true(mpi_locks_stay_here("1 2 8:1 / / rw - nfs s:/ rw,nolock\n", 8, 1));
}

static void others(void **state)
{
	(void)state;
	assert_false(mpi_locks_stay_here(NFS("rw,vers=4.2,local_lock=none"), 0, 45));
	assert_false(mpi_locks_stay_here(NFS("rw,nolocks,local_lock=allx"), 0, 45));
	assert_false(mpi_locks_stay_here(NFS("rw,nolock"), 0, 46));
	assert_false(mpi_locks_stay_here(NFS("rw,nolock"), 1, 45));
	assert_false(mpi_locks_stay_here("36 35 0:45 / /x rw - ext4 /dev/sda rw,nolock\n", 0, 45));
	assert_false(mpi_locks_stay_here("", 0, 45));
	assert_false(mpi_locks_stay_here("36 35 0:45", 0, 45));
	assert_false(mpi_locks_stay_here("36 35 0:45 / / rw - nfs4", 0, 45));
	assert_false(mpi_locks_stay_here("36 35 0:45 / / rw - nfs4 server:/", 0, 45));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nfs_without_locks_among_nodes),
		cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
