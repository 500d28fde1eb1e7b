/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Another name of cnos_mpi_os.h.
 */
#include <cnos_mpi_os.h>
