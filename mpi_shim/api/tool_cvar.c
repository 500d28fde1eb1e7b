/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Control variables of the tool interface: the settings of base/config.h, read-only. They are
 * made from the environment when a program starts, so none can be written.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/api/tool.h"
#include "mpi_shim/api/weak.h"

/* ---- enumerations: the choices of a row, "auto|on|off" --------------------------------------- */

/* One per row. The index is that of the row. */
#define ROW_(...) +1
static struct MPI_T_enum_t enums[0 BASE_CONFIG_TABLE(ROW_)];
#undef ROW_

int mpi_tool_cvar_count(void)
{
	int n = 0;

	while (base_config_var((size_t)n))
		n++;
	return n;
}

static const struct base_config_var *row(int index)
{
	return index >= 0 && index < mpi_tool_cvar_count() ? base_config_var((size_t)index) : NULL;
}

MPI_T_enum mpi_tool_cvar_enum(int index)
{
	const struct base_config_var *var = row(index);

	return var && var->type == BASE_CONFIG_ENUM ? &enums[index] : MPI_T_ENUM_NULL;
}

static const struct base_config_var *enum_row(MPI_T_enum e)
{
	for (int i = 0; e != MPI_T_ENUM_NULL && i < mpi_tool_cvar_count(); i++) {
		if (mpi_tool_cvar_enum(i) == e)
			return row(i);
	}
	return NULL;
}

/* Copy the text of choice i to `out`. False: there is no such choice. */
static bool choice_text(const char *choices, int i, char *out, size_t size)
{
	size_t n;

	for (; i > 0; i--) {
		choices = strchr(choices, '|');
		if (!choices)
			return false;
		choices++;
	}
	n = strcspn(choices, "|");
	if (n >= size)
		n = size - 1;
	memcpy(out, choices, n);
	out[n] = '\0';
	return true;
}

static int choices_of(const struct base_config_var *var)
{
	char text[64];
	int n = 0;

	while (choice_text(var->choices, n, text, sizeof(text)))
		n++;
	return n;
}

/* ---- handles --------------------------------------------------------------------------------- */

struct MPI_T_cvar_handle_t {
	struct MPI_T_cvar_handle_t *next;
	const struct base_config_var *var;
};
static struct MPI_T_cvar_handle_t *handles;

static struct MPI_T_cvar_handle_t **find_cvar_handle(MPI_T_cvar_handle handle)
{
	struct MPI_T_cvar_handle_t **at = &handles;

	while (*at && *at != handle)
		at = &(*at)->next;
	return at;
}

void mpi_tool_cvars_fini(void)
{
	while (handles) {
		struct MPI_T_cvar_handle_t *next = handles->next;

		free(handles);
		handles = next;
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

static MPI_Datatype type_of_cvar(const struct base_config_var *var)
{
	switch (var->type) {
	case BASE_CONFIG_STR:
		return MPI_CHAR;
	case BASE_CONFIG_INT:
		return MPI_LONG;
	default:
		return MPI_INT;
	}
}

static int cvar_elements(const struct base_config_var *var)
{
	char none[1];

	return var->type == BASE_CONFIG_STR ? base_config_value_text(var, none, sizeof(none)) + 1
					    : 1;
}

static void value(const struct base_config_var *var, void *buf)
{
	const char *at = (const char *)base_config() + var->offset;

	switch (var->type) {
	case BASE_CONFIG_STR:
		base_config_value_text(var, buf, (size_t)cvar_elements(var));
		break;
	case BASE_CONFIG_INT:
		memcpy(buf, at, sizeof(long));
		break;
	case BASE_CONFIG_BOOL:
		*(int *)buf = *(const bool *)at;
		break;
	case BASE_CONFIG_ENUM:
		memcpy(buf, at, sizeof(int));
		break;
	}
}

/* ---- public ---------------------------------------------------------------------------------- */

MPI_WEAK(MPI_T_cvar_get_num);
int PMPI_T_cvar_get_num(int *num_cvar)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!num_cvar)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*num_cvar = mpi_tool_cvar_count();
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_cvar_get_info);
int PMPI_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity,
			 MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len,
			 int *bind, int *scope)
{
	const struct base_config_var *var = row(cvar_index);
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!var)
		return mpi_tool_leave(MPI_T_ERR_INVALID_INDEX);
	mpi_tool_string(var->name, name, name_len);
	mpi_tool_string(var->help, desc, desc_len);
	mpi_tool_int(MPI_T_VERBOSITY_USER_BASIC, verbosity);
	mpi_tool_int(MPI_T_BIND_NO_OBJECT, bind);
	mpi_tool_int(MPI_T_SCOPE_CONSTANT, scope);
	if (datatype)
		*datatype = type_of_cvar(var);
	if (enumtype)
		*enumtype = mpi_tool_cvar_enum(cvar_index);
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_cvar_get_index);
int PMPI_T_cvar_get_index(const char *name, int *cvar_index)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!name || !cvar_index)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	name = base_config_name_now(name);
	for (int i = 0; row(i); i++) {
		if (strcmp(row(i)->name, name) == 0) {
			*cvar_index = i;
			return mpi_tool_leave(MPI_SUCCESS);
		}
	}
	return mpi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

MPI_WEAK(MPI_T_cvar_handle_alloc);
int PMPI_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle,
			     int *count)
{
	struct MPI_T_cvar_handle_t *h;
	int rc = mpi_tool_enter();

	(void)obj_handle; /* no variable is bound to an object */
	if (rc != MPI_SUCCESS)
		return rc;
	if (!row(cvar_index))
		return mpi_tool_leave(MPI_T_ERR_INVALID_INDEX);
	if (!handle || !count)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	h = malloc(sizeof(*h));
	if (!h)
		return mpi_tool_leave(MPI_T_ERR_MEMORY);
	h->var = row(cvar_index);
	h->next = handles;
	handles = h;
	*handle = h;
	*count = cvar_elements(h->var);
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_cvar_handle_free);
int PMPI_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
	struct MPI_T_cvar_handle_t **at, *h;
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!handle || !*(at = find_cvar_handle(*handle)))
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	h = *at;
	*at = h->next;
	free(h);
	*handle = MPI_T_CVAR_HANDLE_NULL;
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_cvar_read);
int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!*find_cvar_handle(handle))
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	if (!buf)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	value(handle->var, buf);
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_cvar_write);
int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
	int rc = mpi_tool_enter();

	(void)buf;
	if (rc != MPI_SUCCESS)
		return rc;
	if (!*find_cvar_handle(handle))
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	return mpi_tool_leave(MPI_T_ERR_CVAR_SET_NEVER);
}

MPI_WEAK(MPI_T_enum_get_info);
int PMPI_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
	const struct base_config_var *var;
	const char *of = NULL;
	int items, rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	var = enum_row(enumtype);
	items = var ? choices_of(var) : mpi_tool_elements(enumtype, &of);
	if (items < 0)
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	mpi_tool_int(items, num);
	mpi_tool_string(var ? var->name : of, name, name_len);
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_enum_get_item);
int PMPI_T_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
	const struct base_config_var *var;
	const char *of;
	char text[64];
	int items, rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	var = enum_row(enumtype);
	items = var ? choices_of(var) : mpi_tool_elements(enumtype, &of);
	if (items < 0)
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	if (indx < 0 || indx >= items)
		return mpi_tool_leave(MPI_T_ERR_INVALID_INDEX);
	if (var)
		choice_text(var->choices, indx, text, sizeof(text));
	mpi_tool_int(indx, value);
	mpi_tool_string(var ? text : mpi_tool_element(enumtype, indx), name, name_len);
	return mpi_tool_leave(MPI_SUCCESS);
}
