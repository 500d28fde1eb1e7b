/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 */
#include "mpi_shim/core/cma.h"

#include <errno.h>
#include <sys/uio.h>

bool mpi_cma_copy(pid_t pid, uint64_t there, void *here, size_t bytes, bool write)
{
	char *at = here;

	while (bytes > 0) {
		struct iovec mine = { at, bytes }, other = { (void *)(uintptr_t)there, bytes };
		ssize_t n = write ? process_vm_writev(pid, &mine, 1, &other, 1, 0)
				  : process_vm_readv(pid, &mine, 1, &other, 1, 0);

		if (n < 0)
			return false;
		if (n == 0) {
			errno = EFAULT;
			return false;
		}
		there += (size_t)n;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}
