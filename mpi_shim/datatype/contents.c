/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI_Type_get_envelope and MPI_Type_get_contents: how a type was made. Arguments are kept in
 * the order of the constructor's `_c` form. Here they are divided into integers, addresses and
 * large counts by MPI-4 §5.1.13. The division depends on the form that was called.
 */
#include "mpi_shim/datatype/body.h"

#include "mpi_shim/impl.h"
#include "mpi_shim/core/error.h"

enum { INTEGER, ADDRESS, LARGE, PLACES };

/* How many arguments, counted from the last, are addresses in the form without `_c`. */
static size_t addresses(const struct mpi_type_body *b)
{
	switch (b->combiner) {
	case MPI_COMBINER_HVECTOR:
		return 1;
	case MPI_COMBINER_RESIZED:
		return 2;
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_HINDEXED_BLOCK:
	case MPI_COMBINER_STRUCT:
		return (size_t)b->args[0];
	default:
		return 0;
	}
}

/* The array to which argument i goes. */
static int place_content(const struct mpi_type_body *b, size_t i)
{
	if (!b->large)
		return i + addresses(b) < b->n_args ? INTEGER : ADDRESS;
	if (b->combiner == MPI_COMBINER_SUBARRAY)
		return i == 0 || i + 1 == b->n_args ? INTEGER : LARGE;
	if (b->combiner == MPI_COMBINER_DARRAY)
		return i >= 3 && i < 3 + (size_t)b->args[2] ? LARGE : INTEGER;
	return LARGE;
}

static void count_places(const struct mpi_type_body *b, MPI_Count n[PLACES])
{
	n[INTEGER] = n[ADDRESS] = n[LARGE] = 0;
	for (size_t i = 0; i < b->n_args; i++)
		n[place_content(b, i)]++;
}

int mpi_type_get_envelope(struct mpi_type *datatype, MPI_Count *num_integers,
			  MPI_Count *num_addresses, MPI_Count *num_large_counts,
			  MPI_Count *num_datatypes, int *combiner)
{
	const struct mpi_type_body *b = datatype->body;
	MPI_Count n[PLACES];

	count_places(b, n);
	*num_integers = n[INTEGER];
	*num_addresses = n[ADDRESS];
	*num_large_counts = n[LARGE];
	/* the members of named pairs are not shown to the user */
	*num_datatypes = b->combiner == MPI_COMBINER_NAMED ? 0 : (MPI_Count)b->n_types;
	*combiner = b->combiner;
	return MPI_SUCCESS;
}

static int check_contents_room(const struct mpi_type_body *b, MPI_Count integers, MPI_Count addrs,
			       MPI_Count large, MPI_Count types)
{
	MPI_Count n[PLACES];

	if (b->combiner == MPI_COMBINER_NAMED)
		return mpi_fail(MPI_ERR_TYPE, "a predefined datatype has no contents");
	count_places(b, n);
	if (n[LARGE] > 0 && large == 0)
		return mpi_fail(MPI_ERR_TYPE, "the datatype was made with large counts; use "
					      "MPI_Type_get_contents_c");
	if (integers < n[INTEGER] || addrs < n[ADDRESS] || large < n[LARGE] ||
	    types < (MPI_Count)b->n_types)
		return mpi_fail(MPI_ERR_ARG,
				"the arrays are too short: %lld integers, %lld addresses, %lld "
				"large counts and %zu datatypes are needed, as "
				"MPI_Type_get_envelope tells",
				(long long)n[INTEGER], (long long)n[ADDRESS], (long long)n[LARGE],
				b->n_types);
	return MPI_SUCCESS;
}

int mpi_type_get_contents(struct mpi_type *datatype, MPI_Count max_integers,
			  MPI_Count max_addresses, MPI_Count max_large_counts,
			  MPI_Count max_datatypes, int *array_of_integers,
			  MPI_Aint *array_of_addresses, MPI_Count *array_of_large_counts,
			  MPI_Datatype *array_of_datatypes)
{
	const struct mpi_type_body *b = datatype->body;
	size_t n[PLACES] = { 0 };
	int rc = check_contents_room(b, max_integers, max_addresses, max_large_counts,
				     max_datatypes);

	if (rc != MPI_SUCCESS)
		return rc;
	for (size_t i = 0; i < b->n_args; i++) {
		int to = place_content(b, i);
		size_t k = n[to]++;

		if (to == INTEGER)
			array_of_integers[k] = (int)b->args[i];
		else if (to == ADDRESS)
			array_of_addresses[k] = b->args[i];
		else
			array_of_large_counts[k] = b->args[i];
	}
	for (size_t i = 0; i < b->n_types; i++) {
		struct mpi_type *m = b->types[i];

		/* MPI-4 §5.1.13 */
		if (!m->predefined)
			mpi_type_lend(m);
		array_of_datatypes[i] = mpi_handle_of(m);
	}
	return MPI_SUCCESS;
}
