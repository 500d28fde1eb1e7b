/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events of the tool interface. There are no event sources and no event types. So every index,
 * name, registration and instance is an invalid one.
 */
#include "mpi_shim/api/tool.h"
#include "mpi_shim/api/weak.h"

static int no_event(int rc)
{
	int entered = mpi_tool_enter();

	return entered == MPI_SUCCESS ? mpi_tool_leave(rc) : entered;
}

static int no_number(int *number)
{
	if (!number)
		return no_event(MPI_T_ERR_INVALID);
	*number = 0;
	return no_event(MPI_SUCCESS);
}

/* NOLINTBEGIN(misc-unused-parameters) */
#pragma GCC diagnostic ignored "-Wunused-parameter"

MPI_WEAK(MPI_T_source_get_num);
int PMPI_T_source_get_num(int *num_sources)
{
	return no_number(num_sources);
}

MPI_WEAK(MPI_T_source_get_info);
int PMPI_T_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
			   MPI_T_source_order *ordering, MPI_Count *ticks_per_second,
			   MPI_Count *max_ticks, MPI_Info *info)
{
	return no_event(MPI_T_ERR_INVALID_INDEX);
}

MPI_WEAK(MPI_T_source_get_timestamp);
int PMPI_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
	return no_event(MPI_T_ERR_INVALID_INDEX);
}

MPI_WEAK(MPI_T_event_get_num);
int PMPI_T_event_get_num(int *num_events)
{
	return no_number(num_events);
}

MPI_WEAK(MPI_T_event_get_info);
int PMPI_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
			  MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
			  int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
			  int *desc_len, int *bind)
{
	return no_event(MPI_T_ERR_INVALID_INDEX);
}

MPI_WEAK(MPI_T_event_get_index);
int PMPI_T_event_get_index(const char *name, int *event_index)
{
	return no_event(MPI_T_ERR_INVALID_NAME);
}

MPI_WEAK(MPI_T_event_handle_alloc);
int PMPI_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
			      MPI_T_event_registration *event_registration)
{
	return no_event(MPI_T_ERR_INVALID_INDEX);
}

MPI_WEAK(MPI_T_event_handle_free);
int PMPI_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
			     MPI_T_event_free_cb_function free_cb_function)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_handle_set_info);
int PMPI_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_handle_get_info);
int PMPI_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_register_callback);
int PMPI_T_event_register_callback(MPI_T_event_registration event_registration,
				   MPI_T_cb_safety cb_safety, MPI_Info info, void *user_data,
				   MPI_T_event_cb_function event_cb_function)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_callback_set_info);
int PMPI_T_event_callback_set_info(MPI_T_event_registration event_registration,
				   MPI_T_cb_safety cb_safety, MPI_Info info)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_callback_get_info);
int PMPI_T_event_callback_get_info(MPI_T_event_registration event_registration,
				   MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_set_dropped_handler);
int PMPI_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
				     MPI_T_event_dropped_cb_function dropped_cb_function)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_read);
int PMPI_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_copy);
int PMPI_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_get_timestamp);
int PMPI_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}

MPI_WEAK(MPI_T_event_get_source);
int PMPI_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
	return no_event(MPI_T_ERR_INVALID_HANDLE);
}
/* NOLINTEND(misc-unused-parameters) */
