/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Buffers of mpi_f08: descriptors of any type and rank. A buffer without gaps is passed as its
 * address. A section of an array with gaps, such as a(1:n:2) or a row of a matrix, stands for
 * its consecutive elements. It is passed in one of two forms:
 *
 *   by a copy              where the call is complete when it returns, or its request can be
 *                          waited for;
 *   by a derived datatype  where the buffer is described by one count and one datatype
 */
#include "mpifort.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool mpifort_is_simple(const CFI_cdesc_t *d)
{
	CFI_index_t next = (CFI_index_t)d->elem_len;

	if (!d->base_addr) /* not allocated: it has no dimensions */
		return true;
	for (int i = 0; i < d->rank; i++) {
		if (d->dim[i].extent <= 0) /* empty, or assumed-size */
			return true;
	}
	for (int i = 0; i < d->rank; i++) {
		if (d->dim[i].extent != 1 && d->dim[i].sm != next)
			return false;
		next *= d->dim[i].extent;
	}
	return true;
}

static size_t section_elements(const CFI_cdesc_t *d)
{
	size_t n = 1;

	for (int i = 0; i < d->rank; i++)
		n *= (size_t)d->dim[i].extent;
	return n;
}

/* Copy all elements of the section to or from memory without gaps. */
static void move(const CFI_cdesc_t *d, char *packed, bool out)
{
	CFI_index_t index[CFI_MAX_RANK] = { 0 };
	char *at = d->base_addr;
	int i = 0;

	while (i < d->rank) {
		if (out)
			memcpy(at, packed, d->elem_len);
		else
			memcpy(packed, at, d->elem_len);
		packed += d->elem_len;
		for (i = 0; i < d->rank; i++) {
			at += d->dim[i].sm;
			if (++index[i] < d->dim[i].extent)
				break;
			at -= d->dim[i].extent * d->dim[i].sm;
			index[i] = 0;
		}
	}
}

/* ---- by a copy ------------------------------------------------------------------------------- */

void mpifort_section_copy(struct mpifort_section *s, const CFI_cdesc_t *d, int *rc)
{
	s->copy = NULL;
	s->made = MPI_DATATYPE_NULL;
	s->at = mpifort_buffer(d->base_addr);
	if (*rc != MPI_SUCCESS || __builtin_expect(mpifort_is_simple(d), 1))
		return;
	s->copy = s->at = malloc(section_elements(d) * d->elem_len);
	if (!s->copy) {
		*rc = mpifort_raise(MPI_ERR_NO_MEM);
		return;
	}
	move(d, s->copy, false);
}

void mpifort_section_end(struct mpifort_section *s, const CFI_cdesc_t *d, bool written)
{
	if (__builtin_expect(!s->copy, 1))
		return;
	if (written)
		move(d, s->copy, true);
	free(s->copy);
}

struct kept_copy {
	struct mpifort_later later;
	void *copy;
	bool written;
	CFI_cdesc_t d; /* with its dimensions behind it */
};

static void give_section_back(struct mpifort_later *self)
{
	struct kept_copy *k = (struct kept_copy *)self;

	if (k->written)
		move(&k->d, k->copy, true);
	free(k->copy);
	free(k);
}

void mpifort_sections_give(int request)
{
	int flag = 0;

	if (PMPI_Request_get_status(mpifort_request(request), &flag, MPI_STATUS_IGNORE) ==
		    MPI_SUCCESS &&
	    flag)
		mpifort_later_end_some(request, give_section_back);
}

void mpifort_section_keep(struct mpifort_section *s, const CFI_cdesc_t *d, bool written,
			  int request)
{
	size_t size = offsetof(CFI_cdesc_t, dim) + (size_t)d->rank * sizeof(d->dim[0]);
	struct kept_copy *k;

	if (__builtin_expect(!s->copy, 1))
		return;
	if (request == mpifort_of_request(MPI_REQUEST_NULL)) { /* the call failed */
		free(s->copy);
		return;
	}
	k = malloc(offsetof(struct kept_copy, d) + size);
	if (!k) { /* the operation has begun and must end before this returns */
		MPI_Request wait = mpifort_request(request);
		int flag = 0;

		while (PMPI_Request_get_status(wait, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
		       !flag)
			continue;
		mpifort_section_end(s, d, written);
		return;
	}
	k->later.end = give_section_back;
	k->copy = s->copy;
	k->written = written;
	memcpy(&k->d, d, size);
	mpifort_later(&k->later, request);
}

void mpifort_section_only_simple(struct mpifort_section *s, const CFI_cdesc_t *d, int *rc)
{
	s->copy = NULL;
	s->made = MPI_DATATYPE_NULL;
	s->at = mpifort_buffer(d->base_addr);
	if (*rc == MPI_SUCCESS && !mpifort_is_simple(d))
		*rc = mpifort_raise(MPI_ERR_BUFFER);
}

/* ---- by a derived datatype ------------------------------------------------------------------- */

/* Make a datatype of `count` of the type, one in each element of the section. */
static int spread(const CFI_cdesc_t *d, int rank, MPI_Count count, MPI_Datatype type,
		  MPI_Datatype *made)
{
	MPI_Datatype parts[2] = { MPI_DATATYPE_NULL, MPI_DATATYPE_NULL };
	MPI_Count lengths[2] = { 1, 1 }, at[2] = { 0, 0 }, below = 1, full, rest;
	MPI_Datatype inner = type;
	int rc = MPI_SUCCESS, n = 0;

	if (rank <= 1) /* a scalar has one element */
		return PMPI_Type_create_hvector_c(count, 1, rank ? d->dim[0].sm : 0, type, made);
	for (int i = 0; i < rank - 1; i++)
		below *= d->dim[i].extent;
	full = count / below;
	rest = count % below;
	if (full > 0) {
		rc = spread(d, rank - 1, below, type, &inner);
		if (rc == MPI_SUCCESS) {
			rc = PMPI_Type_create_hvector_c(full, 1, d->dim[rank - 1].sm, inner,
							&parts[n]);
			PMPI_Type_free(&inner);
		}
		n += rc == MPI_SUCCESS;
	}
	if (rc == MPI_SUCCESS && (rest > 0 || n == 0)) {
		at[n] = full * d->dim[rank - 1].sm;
		rc = spread(d, rank - 1, rest, type, &parts[n]);
		n += rc == MPI_SUCCESS;
	}
	if (rc == MPI_SUCCESS)
		rc = PMPI_Type_create_struct_c(n, lengths, at, parts, made);
	for (int i = 0; i < n; i++)
		PMPI_Type_free(&parts[i]);
	return rc;
}

/* Replace a datatype without gaps by bytes, as a multiple of elements: MPI_DOUBLE on COMPLEX,
 * or a pair on INTEGERs. */
static int in_bytes(const CFI_cdesc_t *d, MPI_Count *count, MPI_Datatype *element)
{
	*count /= (MPI_Count)d->elem_len;
	return PMPI_Type_contiguous_c((MPI_Count)d->elem_len, MPI_BYTE, element);
}

static int typed(struct mpifort_section *s, const CFI_cdesc_t *d)
{
	MPI_Count lb, extent, true_lb, true_extent, size, bytes;
	MPI_Datatype element = MPI_DATATYPE_NULL;
	int rc = PMPI_Type_get_extent_c(s->type, &lb, &extent);

	if (rc == MPI_SUCCESS)
		rc = PMPI_Type_get_true_extent_c(s->type, &true_lb, &true_extent);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Type_size_c(s->type, &size);
	if (rc != MPI_SUCCESS)
		return rc;
	if (extent == (MPI_Count)d->elem_len && true_lb >= 0 && true_lb + true_extent <= extent) {
		if (s->count > (MPI_Count)section_elements(d))
			return mpifort_raise(MPI_ERR_COUNT);
		rc = spread(d, d->rank, s->count, s->type, &s->made);
	} else {
		bytes = s->count * size;
		if (size != extent || lb != 0 || bytes % (MPI_Count)d->elem_len ||
		    bytes > (MPI_Count)(section_elements(d) * d->elem_len))
			return mpifort_raise(MPI_ERR_BUFFER);
		rc = in_bytes(d, &bytes, &element);
		if (rc == MPI_SUCCESS) {
			rc = spread(d, d->rank, bytes, element, &s->made);
			PMPI_Type_free(&element);
		}
	}
	if (rc == MPI_SUCCESS)
		rc = PMPI_Type_commit(&s->made);
	return rc;
}

void mpifort_section_typed(struct mpifort_section *s, const CFI_cdesc_t *d, MPI_Count count,
			   MPI_Datatype type, int *rc)
{
	s->copy = NULL;
	s->at = mpifort_buffer(d->base_addr);
	s->count = count;
	s->type = type;
	s->made = MPI_DATATYPE_NULL;
	if (*rc != MPI_SUCCESS || __builtin_expect(mpifort_is_simple(d), 1) || count <= 0)
		return;
	*rc = typed(s, d);
	if (*rc == MPI_SUCCESS) {
		s->count = 1;
		s->type = s->made;
	}
}

void mpifort_section_typed_end(struct mpifort_section *s)
{
	if (__builtin_expect(s->made != MPI_DATATYPE_NULL, 0))
		PMPI_Type_free(&s->made);
}
