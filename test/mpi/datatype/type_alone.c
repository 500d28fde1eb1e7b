/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The functions that datatypes call of the rest of MPI; see type_alone.h.
 */
#include "type_alone.h"

#include <stdarg.h>
#include <stdio.h>

#include "mpi_shim/core/error.h"
#include "mpi_shim/core/object.h"

char alone_text[512];
int alone_attr_copies, alone_attr_deletes, alone_attr_result;

int(mpi_fail)(int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(alone_text, sizeof(alone_text), format, ap);
	va_end(ap);
	return code;
}

int mpi_attrs_copy(void *object, enum mpi_kind kind, struct mpi_attr *from, void *copy,
		   struct mpi_attr **to)
{
	(void)object, (void)kind, (void)from, (void)copy, (void)to;
	alone_attr_copies++;
	return alone_attr_result;
}

int mpi_attrs_delete(void *object, enum mpi_kind kind, struct mpi_attr **attrs)
{
	(void)object, (void)kind, (void)attrs;
	alone_attr_deletes++;
	return alone_attr_result;
}
