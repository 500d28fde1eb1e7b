/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Counting: bytes of packed data in types and in basic elements, and back. Only structs need
 * to be searched; every other type repeats one type.
 */
#include "mpi_shim/datatype/body.h"

const struct mpi_type *mpi_type_member(const struct mpi_type *t, size_t i, MPI_Count *times)
{
	const struct mpi_type_body *b = t->body;
	const struct mpi_type *m = b->types[i];

	if (b->combiner == MPI_COMBINER_STRUCT)
		*times = b->args[1 + i];
	else if (b->n_types > 1) /* a pair */
		*times = 1;
	else
		*times = m->size > 0 ? t->size / m->size : 0;
	return m;
}

MPI_Count mpi_type_elements(const struct mpi_type *t, MPI_Count bytes)
{
	const struct mpi_type_body *b = t->body;
	MPI_Count elements, rest;

	if (bytes == 0)
		return 0;
	if (t->size <= 0)
		return -1;
	if (b->unit > 0)
		return bytes % b->unit == 0 ? bytes / b->unit : -1;
	elements = bytes / t->size * b->elements;
	bytes %= t->size;
	for (size_t i = 0; bytes > 0 && i < b->n_types; i++) {
		MPI_Count times;
		const struct mpi_type *m = mpi_type_member(t, i, &times);

		if (m->size == 0)
			continue;
		if (bytes / m->size >= times) {
			elements += times * m->body->elements;
			bytes -= times * m->size;
			continue;
		}
		rest = mpi_type_elements(m, bytes);
		return rest < 0 ? -1 : elements + rest;
	}
	return elements;
}

MPI_Count mpi_type_element_bytes(const struct mpi_type *t, MPI_Count elements)
{
	const struct mpi_type_body *b = t->body;
	MPI_Count bytes, rest;

	if (elements == 0)
		return 0;
	if (t->size <= 0)
		return -1;
	if (__builtin_mul_overflow(elements / b->elements, t->size, &bytes))
		return -1;
	elements %= b->elements;
	for (size_t i = 0; elements > 0 && i < b->n_types; i++) {
		MPI_Count times;
		const struct mpi_type *m = mpi_type_member(t, i, &times);

		if (m->size == 0)
			continue;
		if (elements / m->body->elements >= times) {
			elements -= times * m->body->elements;
			if (__builtin_add_overflow(bytes, times * m->size, &bytes))
				return -1;
			continue;
		}
		rest = mpi_type_element_bytes(m, elements);
		return rest < 0 || __builtin_add_overflow(bytes, rest, &bytes) ? -1 : bytes;
	}
	return bytes;
}

bool mpi_type_pair(const struct mpi_type *t, const struct mpi_type **value,
		   const struct mpi_type **index, MPI_Aint *offset)
{
	const struct mpi_type_body *b = t->body;
	MPI_Aint align;

	if (b->n_types != 2 ||
	    (b->combiner != MPI_COMBINER_NAMED && b->combiner != MPI_COMBINER_VALUE_INDEX))
		return false;
	*value = b->types[0];
	*index = b->types[1];
	align = (*index)->body->align;
	*offset = ((*value)->extent + align - 1) / align * align;
	return true;
}

const struct mpi_type *mpi_type_basic(const struct mpi_type *t)
{
	return t->body->only;
}
