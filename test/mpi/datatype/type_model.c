/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The model of datatypes; see type_model.h.
 */
#include "type_model.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* clang-format off */
#define BASIC(name, type, external) { MPI_##name, #name, sizeof(type), _Alignof(type), external }
/* clang-format on */

const struct m_basic m_basics[] = {
	BASIC(INT, int, 4),
	BASIC(DOUBLE, double, 8),
	BASIC(CHAR, char, 1),
	BASIC(SHORT, short, 2),
	BASIC(LONG, long, 4),
	BASIC(FLOAT, float, 4),
	BASIC(UNSIGNED_LONG_LONG, unsigned long long, 8),
	BASIC(LONG_DOUBLE, long double, 16),
	BASIC(C_DOUBLE_COMPLEX, double complex, 16),
	BASIC(BYTE, char, 1),
	BASIC(WCHAR, wchar_t, 2),
	BASIC(UINT16_T, uint16_t, 2),
};
const int m_basic_count = sizeof(m_basics) / sizeof(m_basics[0]);

/* ---- building -------------------------------------------------------------------------------- */

void m_begin(struct m_type *m)
{
	m->n = 0;
	m->overfull = m->has_lb = m->has_ub = m->any = false;
	m->mark_lb = m->mark_ub = m->low = m->high = 0;
	m->align = 1;
	m->lb = m->ub = 0;
}

void m_mark_lb(struct m_type *m, int64_t at)
{
	if (!m->has_lb || at < m->mark_lb)
		m->mark_lb = at;
	m->has_lb = true;
}

void m_mark_ub(struct m_type *m, int64_t at)
{
	if (!m->has_ub || at > m->mark_ub)
		m->mark_ub = at;
	m->has_ub = true;
}

static void reach(struct m_type *m, int64_t low, int64_t high)
{
	if (!m->any || low < m->low)
		m->low = low;
	if (!m->any || high > m->high)
		m->high = high;
	m->any = true;
}

void m_add(struct m_type *m, const struct m_type *old, int64_t at)
{
	if (old->n > 0 && old->align > m->align)
		m->align = old->align;
	if (old->has_lb)
		m_mark_lb(m, at + old->lb);
	if (old->has_ub)
		m_mark_ub(m, at + old->ub);
	if (old->n > 0)
		reach(m, at + old->lb, at + old->ub);
	for (size_t i = 0; i < old->n; i++) {
		if (m->n == MODEL_MOST) {
			m->overfull = true;
			return;
		}
		m->entry[m->n] = old->entry[i];
		m->entry[m->n++].at += at;
	}
}

void m_add_row(struct m_type *m, const struct m_type *old, int64_t at, int64_t length)
{
	for (int64_t i = 0; i < length; i++)
		m_add(m, old, at + i * (old->ub - old->lb));
}

void m_end(struct m_type *m, bool pad)
{
	m->lb = m->has_lb ? m->mark_lb : m->any ? m->low : 0;
	m->ub = m->has_ub ? m->mark_ub : m->any ? m->high : m->lb;
	if (m->has_ub && !m->has_lb && !m->any)
		m->lb = m->ub;
	while (pad && !m->has_ub && m->any && (m->ub - m->lb) % m->align != 0)
		m->ub++;
}

void m_of_basic(struct m_type *m, const struct m_basic *basic)
{
	m_begin(m);
	m->entry[m->n++] = (struct m_entry){ 0, basic };
	m->align = basic->align;
	reach(m, 0, basic->size);
	m_end(m, false);
}

void m_of_pair(struct m_type *m, const struct m_basic *value, const struct m_basic *index)
{
	int64_t at = value->size;

	while (at % index->align != 0)
		at++;
	m_begin(m);
	m->entry[m->n++] = (struct m_entry){ 0, value };
	m->entry[m->n++] = (struct m_entry){ at, index };
	m->align = value->align > index->align ? value->align : index->align;
	reach(m, 0, at + index->size);
	m_end(m, true);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The owner of element i of dimension d. */
static int owner(const struct m_array *a, int d, MPI_Count i)
{
	MPI_Count block = a->darg[d];

	switch (a->distrib[d]) {
	case MPI_DISTRIBUTE_BLOCK:
		if (block == MPI_DISTRIBUTE_DFLT_DARG)
			block = (a->size[d] + a->psize[d] - 1) / a->psize[d];
		return (int)(i / block);
	case MPI_DISTRIBUTE_CYCLIC:
		if (block == MPI_DISTRIBUTE_DFLT_DARG)
			block = 1;
		return (int)(i / block % a->psize[d]);
	default:
		return 0;
	}
}

/* All elements of the whole array in the order they lie in memory; those that `mine` says are
 * taken. */
static void whole(struct m_type *m, const struct m_type *old, const struct m_array *a,
		  bool (*mine)(const struct m_array *a, const MPI_Count *i))
{
	int64_t extent = old->ub - old->lb, elements = 1;

	m_begin(m);
	for (int d = 0; d < a->ndims; d++)
		elements *= a->size[d];
	for (int64_t k = 0; k < elements; k++) {
		MPI_Count i[MODEL_DIMS];
		int64_t rest = k;

		for (int d = 0; d < a->ndims; d++) {
			int which = a->order == MPI_ORDER_C ? a->ndims - 1 - d : d;

			i[which] = rest % a->size[which];
			rest /= a->size[which];
		}
		if (mine(a, i))
			m_add(m, old, k * extent);
	}
	m->has_lb = m->has_ub = true;
	m->mark_lb = 0;
	m->mark_ub = elements * extent;
	m_end(m, false);
}

static bool in_part(const struct m_array *a, const MPI_Count *i)
{
	for (int d = 0; d < a->ndims; d++) {
		if (i[d] < a->start[d] || i[d] >= a->start[d] + a->part[d])
			return false;
	}
	return true;
}

void m_subarray(struct m_type *m, const struct m_type *old, const struct m_array *a)
{
	whole(m, old, a, in_part);
}

static bool in_share(const struct m_array *a, const MPI_Count *i)
{
	int rank = 0;

	for (int d = 0; d < a->ndims; d++)
		rank = rank * a->psize[d] + owner(a, d, i[d]);
	return rank == a->rank;
}

void m_darray(struct m_type *m, const struct m_type *old, const struct m_array *a)
{
	whole(m, old, a, in_share);
}

/* ---- using ----------------------------------------------------------------------------------- */

int64_t m_size(const struct m_type *m)
{
	int64_t size = 0;

	for (size_t i = 0; i < m->n; i++)
		size += m->entry[i].basic->size;
	return size;
}

int64_t m_external_size(const struct m_type *m)
{
	int64_t size = 0;

	for (size_t i = 0; i < m->n; i++)
		size += m->entry[i].basic->external;
	return size;
}

int64_t m_true_lb(const struct m_type *m)
{
	int64_t low = m->n > 0 ? m->entry[0].at : 0;

	for (size_t i = 0; i < m->n; i++)
		low = m->entry[i].at < low ? m->entry[i].at : low;
	return low;
}

int64_t m_true_ub(const struct m_type *m)
{
	int64_t high = m->n > 0 ? INT64_MIN : 0;

	for (size_t i = 0; i < m->n; i++) {
		int64_t end = m->entry[i].at + m->entry[i].basic->size;

		high = end > high ? end : high;
	}
	return high;
}

static int by_address(const void *a, const void *b)
{
	const struct m_entry *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

bool m_overlaps(const struct m_type *m, int count)
{
	size_t n = m->n * (size_t)count;
	struct m_entry *all = malloc((n + 1) * sizeof(*all));
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		all[i] = m->entry[i % m->n];
		all[i].at += (int64_t)(i / m->n) * (m->ub - m->lb);
	}
	qsort(all, n, sizeof(*all), by_address);
	for (size_t i = 1; i < n && !found; i++)
		found = all[i - 1].at + all[i - 1].basic->size > all[i].at;
	free(all);
	return found;
}

void m_pack(const struct m_type *m, const char *buf, int count, char *out)
{
	for (int k = 0; k < count; k++) {
		for (size_t i = 0; i < m->n; i++) {
			int size = m->entry[i].basic->size;

			memcpy(out, buf + k * (m->ub - m->lb) + m->entry[i].at, (size_t)size);
			out += size;
		}
	}
}

void m_unpack(const struct m_type *m, char *buf, int count, const char *in)
{
	for (int k = 0; k < count; k++) {
		for (size_t i = 0; i < m->n; i++) {
			int size = m->entry[i].basic->size;

			memcpy(buf + k * (m->ub - m->lb) + m->entry[i].at, in, (size_t)size);
			in += size;
		}
	}
}

int64_t m_elements(const struct m_type *m, int64_t bytes)
{
	int64_t n = 0;

	if (bytes > 0 && m->n == 0)
		return -1;
	while (bytes > 0) {
		bytes -= m->entry[(size_t)n % m->n].basic->size;
		n++;
	}
	return bytes == 0 ? n : -1;
}
