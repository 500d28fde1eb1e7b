/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The tool interface: start and end, and categories.
 */
#include "mpi_shim/api/tool.h"
#include "mpi_shim/api/weak.h"
#include "mpi_shim/core/events.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int inits; /* calls of MPI_T_init_thread minus those of MPI_T_finalize */

void mpi_tool_lock(void)
{
	pthread_mutex_lock(&lock);
}

int mpi_tool_enter(void)
{
	mpi_tool_lock();
	if (inits > 0)
		return MPI_SUCCESS;
	return mpi_tool_leave(MPI_T_ERR_NOT_INITIALIZED);
}

int mpi_tool_leave(int rc)
{
	pthread_mutex_unlock(&lock);
	return rc;
}

void mpi_tool_string(const char *text, char *buf, int *len)
{
	size_t need = strlen(text) + 1;

	if (!len)
		return;
	if (buf && *len > 0) {
		size_t n = need < (size_t)*len ? need : (size_t)*len;

		memcpy(buf, text, n - 1);
		buf[n - 1] = '\0';
		need = n;
	}
	*len = (int)need;
}

/* ---- categories ------------------------------------------------------------------------------ */

enum { SETTINGS, MESSAGES, PORTALS, OBJECTS, REQUESTS, FILES, CATEGORIES };

static const struct {
	const char *name, *text;
} category[CATEGORIES] = {
	[SETTINGS] = { "settings", "What environment variables set, and the launcher" },
	[MESSAGES] = { "messages", "How MPI messages travelled" },
	[PORTALS] = { "portals", "Status registers of the Portals interface" },
	[OBJECTS] = { "objects", "What is under way on one communicator or window" },
	[REQUESTS] = { "requests", "When calls wait, and when requests are complete" },
	[FILES] = { "files", "Operations on files" },
};

/* A category's variables or event types: `count` numbers from `first` on. */
struct range {
	int first, count;
};

static struct range cvars_of(int cat)
{
	return (struct range){ 0, cat == SETTINGS ? mpi_tool_cvar_count() : 0 };
}

static struct range pvars_of(int cat)
{
	int shim = mpi_tool_pvar_shim_count(), bound = mpi_tool_pvar_bound_count();
	int all = mpi_tool_pvar_count();

	if (cat == MESSAGES)
		return (struct range){ 0, shim };
	if (cat == PORTALS)
		return (struct range){ shim, all - bound - shim };
	if (cat == OBJECTS)
		return (struct range){ all - bound, bound };
	return (struct range){ 0, 0 };
}

static struct range events_of(int cat)
{
	static const struct range events[CATEGORIES] = {
		[MESSAGES] = { MPI_EVENT_UNEXPECTED, 2 }, /* and MPI_EVENT_MATCHED */
		[REQUESTS] = { MPI_EVENT_WAIT_BEGIN, 3 }, /* WAIT_END, DONE */
		[FILES] = { MPI_EVENT_FILE_BEGIN, 2 },    /* FILE_END */
	};

	return events[cat];
}

static int enter_category(int cat)
{
	int rc = mpi_tool_enter();

	if (rc == MPI_SUCCESS && (cat < 0 || cat >= CATEGORIES))
		return mpi_tool_leave(MPI_T_ERR_INVALID_INDEX);
	return rc;
}

static int list(struct range r, int len, int indices[])
{
	if (len < 0 || (len > 0 && !indices))
		return MPI_T_ERR_INVALID;
	for (int i = 0; i < len && i < r.count; i++)
		indices[i] = r.first + i;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_T_init_thread);
int PMPI_T_init_thread(int required, int *provided)
{
	(void)required; /* the lock makes all levels the same */
	mpi_tool_lock();
	inits++;
	mpi_tool_int(MPI_THREAD_MULTIPLE, provided);
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_finalize);
int PMPI_T_finalize(void)
{
	int rc;

	if (mpi_tool_in_callback())
		return MPI_T_ERR_NOT_ACCESSIBLE;
	mpi_tool_enter_library();
	rc = mpi_tool_enter();
	if (rc == MPI_SUCCESS) {
		if (--inits == 0) {
			mpi_tool_cvars_fini();
			mpi_tool_pvars_fini();
			mpi_tool_events_fini();
		}
		mpi_tool_leave(rc);
	}
	mpi_tool_leave_library();
	return rc;
}

MPI_WEAK(MPI_T_category_get_num);
int PMPI_T_category_get_num(int *num_cat)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!num_cat)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*num_cat = CATEGORIES;
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_category_get_info);
int PMPI_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len,
			     int *num_cvars, int *num_pvars, int *num_categories)
{
	int rc = enter_category(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	mpi_tool_string(category[cat_index].name, name, name_len);
	mpi_tool_string(category[cat_index].text, desc, desc_len);
	mpi_tool_int(cvars_of(cat_index).count, num_cvars);
	mpi_tool_int(pvars_of(cat_index).count, num_pvars);
	mpi_tool_int(0, num_categories);
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_category_get_index);
int PMPI_T_category_get_index(const char *name, int *cat_index)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!name || !cat_index)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	for (int i = 0; i < CATEGORIES; i++) {
		if (strcmp(name, category[i].name) == 0) {
			*cat_index = i;
			return mpi_tool_leave(MPI_SUCCESS);
		}
	}
	return mpi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

MPI_WEAK(MPI_T_category_get_cvars);
int PMPI_T_category_get_cvars(int cat_index, int len, int indices[])
{
	int rc = enter_category(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	return mpi_tool_leave(list(cvars_of(cat_index), len, indices));
}

MPI_WEAK(MPI_T_category_get_pvars);
int PMPI_T_category_get_pvars(int cat_index, int len, int indices[])
{
	int rc = enter_category(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	return mpi_tool_leave(list(pvars_of(cat_index), len, indices));
}

MPI_WEAK(MPI_T_category_get_categories);
int PMPI_T_category_get_categories(int cat_index, int len, int indices[])
{
	int rc = enter_category(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	return mpi_tool_leave(list((struct range){ 0, 0 }, len, indices));
}

MPI_WEAK(MPI_T_category_get_num_events);
int PMPI_T_category_get_num_events(int cat_index, int *num_events)
{
	int rc = enter_category(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!num_events)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*num_events = events_of(cat_index).count;
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_category_get_events);
int PMPI_T_category_get_events(int cat_index, int len, int indices[])
{
	int rc = enter_category(cat_index);

	if (rc != MPI_SUCCESS)
		return rc;
	return mpi_tool_leave(list(events_of(cat_index), len, indices));
}

/* Always the same number, as nothing is ever added. */
MPI_WEAK(MPI_T_category_changed);
int PMPI_T_category_changed(int *update_number)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!update_number)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*update_number = 1;
	return mpi_tool_leave(MPI_SUCCESS);
}
