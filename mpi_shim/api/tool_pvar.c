/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Performance variables of the tool interface: first the shim's counters (world.h), then
 * collectives by algorithm (coll/algorithms.h), then the status registers of its Portals
 * interface, then those that are bound to a communicator or window. All count always, so none
 * can be started or stopped. Counters can be reset, but only for one handle, which remembers
 * where it counts from.
 *
 * A handle keeps the number of its object's handle, not the object. When the object has been
 * freed the handle is invalid.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/api/tool.h"
#include "mpi_shim/coll/algorithms.h"
#include "mpi_shim/core/object.h"
#include "mpi_shim/core/request.h"
#include "mpi_shim/core/world.h"
#include "mpi_shim/pt2pt/protocol.h"
#include "mpi_shim/rma/win.h"
#include "mpi_shim/api/weak.h"

/* Names are those of the tables in lower case: mpi_sent_short, mpi_coll_bcast_ring,
 * ptl_recv_count. */
#define NAME_MAX_ 64

static const struct shim_count {
	const char *name, *text;
} shim_count[] = {
#define ROW_(name, text) { "MPI_" #name, text },
	MPI_COUNT_TABLE(ROW_)
#undef ROW_
};
#define SHIM ((int)(sizeof(shim_count) / sizeof(shim_count[0])))

static const struct {
	ptl_sr_index_t reg;
	const char *name, *text;
} ptl_count[] = {
	{ PTL_SR_DROP_COUNT, "PTL_DROP_COUNT", "requests, acks and replies discarded" },
	{ PTL_SR_DROP_LENGTH, "PTL_DROP_LENGTH", "requested bytes of discarded requests" },
	{ PTL_SR_RECV_COUNT, "PTL_RECV_COUNT", "messages accepted" },
	{ PTL_SR_RECV_LENGTH, "PTL_RECV_LENGTH", "bytes accepted" },
	{ PTL_SR_SEND_COUNT, "PTL_SEND_COUNT", "requests initiated" },
	{ PTL_SR_SEND_LENGTH, "PTL_SEND_LENGTH", "bytes sent by put and getput" },
	{ PTL_SR_MSGS_ALLOC, "PTL_MSGS_ALLOC", "operations that needed a record" },
	{ PTL_SR_MSGS_CUR, "PTL_MSGS_NOW", "operations under way that have a record" },
	{ PTL_SR_MSGS_MAX, "PTL_MSGS_MOST", "most operations ever under way with a record" },
	{ PTL_SR_MES_CUR, "PTL_MES_NOW", "match entries" },
	{ PTL_SR_MES_MAX, "PTL_MES_MOST", "most match entries ever" },
	{ PTL_SR_MDS_CUR, "PTL_MDS_NOW", "memory descriptors" },
	{ PTL_SR_MDS_MAX, "PTL_MDS_MOST", "most memory descriptors ever" },
	{ PTL_SR_EQS_CUR, "PTL_EQS_NOW", "event queues" },
	{ PTL_SR_EQS_MAX, "PTL_EQS_MOST", "most event queues ever" },
};
#define PTL ((int)(sizeof(ptl_count) / sizeof(ptl_count[0])))

/* Index of the first status register. */
#define OWN (SHIM + MPI_COLL_COUNT_)

/* ---- variables of an object ------------------------------------------------------------------ */

static uint64_t requests_of(const struct mpi_comm *comm, enum mpi_request_kind kind)
{
	const struct mpi_request *r;
	uint64_t n = 0;

	for (uint32_t i = 0; (r = mpi_pool_at(MPI_KIND_REQUEST, i)); i++)
		n += r->obj.handle && r->kind == kind && !r->done && r->comm == comm;
	return n;
}

static uint64_t receives_of(const void *comm)
{
	return requests_of(comm, MPI_REQ_RECV);
}

static uint64_t sends_of(const void *comm)
{
	return requests_of(comm, MPI_REQ_SEND);
}

static uint64_t unexpected_of(const void *comm)
{
	return mpi_unexpected_count(((const struct mpi_comm *)comm)->context).messages;
}

static uint64_t unexpected_bytes_of(const void *comm)
{
	return mpi_unexpected_count(((const struct mpi_comm *)comm)->context).bytes;
}

static uint64_t collectives_of(const void *comm)
{
	return ((const struct mpi_comm *)comm)->calls.number;
}

static uint64_t pending_of(const void *win)
{
	return ((const struct mpi_win *)win)->pending;
}

static const struct {
	const char *name, *text;
	uint64_t (*now)(const void *object); /* needs the library's lock */
	int bind;
	enum mpi_kind kind;
} bound_count[] = {
	{ "MPI_COMM_RECEIVES_NOW", "receives that are posted", receives_of, MPI_T_BIND_MPI_COMM,
	  MPI_KIND_COMM },
	{ "MPI_COMM_SENDS_NOW", "sends that are not complete", sends_of, MPI_T_BIND_MPI_COMM,
	  MPI_KIND_COMM },
	{ "MPI_COMM_UNEXPECTED_NOW", "messages that wait for their receive", unexpected_of,
	  MPI_T_BIND_MPI_COMM, MPI_KIND_COMM },
	{ "MPI_COMM_UNEXPECTED_BYTES", "bytes of the messages that wait for their receive",
	  unexpected_bytes_of, MPI_T_BIND_MPI_COMM, MPI_KIND_COMM },
	{ "MPI_COMM_COLLECTIVES", "collectives that were called", collectives_of,
	  MPI_T_BIND_MPI_COMM, MPI_KIND_COMM },
	{ "MPI_WIN_OPERATIONS_NOW", "one-sided operations that are not complete", pending_of,
	  MPI_T_BIND_MPI_WIN, MPI_KIND_WIN },
};
#define BOUND ((int)(sizeof(bound_count) / sizeof(bound_count[0])))

/* Index of the first of them. */
#define FIRST_BOUND (OWN + PTL)

int mpi_tool_pvar_bound_count(void)
{
	return BOUND;
}

/* ---- all ------------------------------------------------------------------------------------- */

int mpi_tool_pvar_count(void)
{
	return FIRST_BOUND + BOUND;
}

int mpi_tool_pvar_shim_count(void)
{
	return OWN;
}

static void name_of_pvar(int index, char name[NAME_MAX_])
{
	if (index < SHIM)
		snprintf(name, NAME_MAX_, "%s", shim_count[index].name);
	else if (index < OWN)
		snprintf(name, NAME_MAX_, "mpi_coll_%s",
			 mpi_algorithm_word((size_t)(index - SHIM)));
	else
		snprintf(name, NAME_MAX_, "%s",
			 index < FIRST_BOUND ? ptl_count[index - OWN].name
					     : bound_count[index - FIRST_BOUND].name);
	for (; *name; name++)
		*name = *name == '=' ? '_' : (char)tolower((unsigned char)*name);
}

static const char *text_of(int index)
{
	if (index < SHIM)
		return shim_count[index].text;
	if (index < OWN)
		return mpi_algorithm_text((size_t)(index - SHIM));
	return index < FIRST_BOUND ? ptl_count[index - OWN].text
				   : bound_count[index - FIRST_BOUND].text;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* The class follows from the end of the name. */
static int class_of_pvar(int index)
{
	char name[NAME_MAX_];

	name_of_pvar(index, name);
	if (ends_with(name, "_most"))
		return MPI_T_PVAR_CLASS_HIGHWATERMARK;
	if (ends_with(name, "_now") || ends_with(name, "unexpected_bytes") ||
	    ends_with(name, "unexpected_memory"))
		return MPI_T_PVAR_CLASS_LEVEL;
	return MPI_T_PVAR_CLASS_COUNTER;
}

static bool is_counter(int index)
{
	return class_of_pvar(index) == MPI_T_PVAR_CLASS_COUNTER;
}

struct MPI_T_pvar_handle_t {
	struct MPI_T_pvar_handle_t *next;
	int index;
	void *object;  /* handle of the object that it is bound to */
	uint64_t from; /* value of the variable at the last reset */
};

static bool is_running(void)
{
	return atomic_load(&mpi_world.phase) == MPI_PHASE_RUNNING;
}

static bool is_of_object(int index)
{
	return index >= FIRST_BOUND;
}

/* The object of a bound variable. NULL: there is none of this handle, or none any more. */
static void *bound_object(int index, const void *handle)
{
	return is_running() ? mpi_object_of(handle, bound_count[index - FIRST_BOUND].kind) : NULL;
}

/* The current value. Portals' registers are 0 outside of MPI_Init and MPI_Finalize. */
static uint64_t pvar_now(const struct MPI_T_pvar_handle_t *handle)
{
	const int index = handle->index;
	ptl_sr_value_t value = 0;

	if (index < SHIM)
		return mpi_world.counts[index];
	if (index < OWN)
		return mpi_coll_counts[index - SHIM];
	if (is_of_object(index))
		return bound_count[index - FIRST_BOUND].now(bound_object(index, handle->object));
	if (!is_running() ||
	    PtlNIStatus(mpi_world.ni, ptl_count[index - OWN].reg, &value) != PTL_OK)
		return 0;
	return value;
}

/* ---- sessions and handles -------------------------------------------------------------------- */

struct MPI_T_pvar_session_t {
	struct MPI_T_pvar_session_t *next;
	struct MPI_T_pvar_handle_t *handles;
};
static struct MPI_T_pvar_session_t *sessions;

static struct MPI_T_pvar_session_t **find_session(MPI_T_pvar_session session)
{
	struct MPI_T_pvar_session_t **at = &sessions;

	while (*at && *at != session)
		at = &(*at)->next;
	return at;
}

static struct MPI_T_pvar_handle_t **find_handle(struct MPI_T_pvar_session_t *session,
						MPI_T_pvar_handle handle)
{
	struct MPI_T_pvar_handle_t **at = &session->handles;

	while (*at && *at != handle)
		at = &(*at)->next;
	return at;
}

static void end_first_session(struct MPI_T_pvar_session_t **at)
{
	struct MPI_T_pvar_session_t *session = *at;

	*at = session->next;
	while (session->handles) {
		struct MPI_T_pvar_handle_t *next = session->handles->next;

		free(session->handles);
		session->handles = next;
	}
	free(session);
}

void mpi_tool_pvars_fini(void)
{
	while (sessions)
		end_first_session(&sessions);
}

/* Take the lock if session and handle exist; MPI_T_PVAR_ALL_HANDLES is accepted. */
static int enter_pvar(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!*find_session(session))
		return mpi_tool_leave(MPI_T_ERR_INVALID_SESSION);
	if (handle != MPI_T_PVAR_ALL_HANDLES && !*find_handle(session, handle))
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	return MPI_SUCCESS;
}

/* As enter_pvar(), with the library's lock, which values of objects need. */
static int enter_values(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	int rc;

	mpi_tool_enter_library();
	rc = enter_pvar(session, handle);
	if (rc != MPI_SUCCESS)
		mpi_tool_leave_library();
	return rc;
}

static int leave_values(int rc)
{
	mpi_tool_leave(rc);
	mpi_tool_leave_library();
	return rc;
}

/* Whether the object of a handle has been freed. */
static bool is_stale(const struct MPI_T_pvar_handle_t *h)
{
	return is_of_object(h->index) && !bound_object(h->index, h->object);
}

/* ---- queries --------------------------------------------------------------------------------- */

MPI_WEAK(MPI_T_pvar_get_num);
int PMPI_T_pvar_get_num(int *num_pvar)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!num_pvar)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*num_pvar = mpi_tool_pvar_count();
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_get_info);
int PMPI_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
			 MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len,
			 int *bind, int *readonly, int *continuous, int *atomic)
{
	char text[NAME_MAX_];
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (pvar_index < 0 || pvar_index >= mpi_tool_pvar_count())
		return mpi_tool_leave(MPI_T_ERR_INVALID_INDEX);
	name_of_pvar(pvar_index, text);
	mpi_tool_string(text, name, name_len);
	mpi_tool_string(text_of(pvar_index), desc, desc_len);
	mpi_tool_int(MPI_T_VERBOSITY_USER_BASIC, verbosity);
	mpi_tool_int(class_of_pvar(pvar_index), var_class);
	mpi_tool_int(is_of_object(pvar_index) ? bound_count[pvar_index - FIRST_BOUND].bind
					      : MPI_T_BIND_NO_OBJECT,
		     bind);
	mpi_tool_int(!is_counter(pvar_index), readonly);
	mpi_tool_int(1, continuous);
	mpi_tool_int(is_counter(pvar_index), atomic);
	if (datatype)
		*datatype = MPI_UNSIGNED_LONG;
	if (enumtype)
		*enumtype = MPI_T_ENUM_NULL;
	return mpi_tool_leave(MPI_SUCCESS);
}

/* The last release called what goes through shared memory mpi_coll_NAME_hub; good for one more. */
static bool is_old_name(const char *name, const char *text)
{
	size_t len = strlen(text);

	return len > 4 && strcmp(text + len - 4, "_shm") == 0 &&
	       strncmp(name, text, len - 3) == 0 && strcmp(name + len - 3, "hub") == 0;
}

MPI_WEAK(MPI_T_pvar_get_index);
int PMPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
	char text[NAME_MAX_];
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!name || !pvar_index)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	for (int i = 0; i < mpi_tool_pvar_count(); i++) {
		name_of_pvar(i, text);
		if ((strcmp(text, name) == 0 || is_old_name(name, text)) &&
		    class_of_pvar(i) == var_class) {
			*pvar_index = i;
			return mpi_tool_leave(MPI_SUCCESS);
		}
	}
	return mpi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- sessions and handles -------------------------------------------------------------------- */

MPI_WEAK(MPI_T_pvar_session_create);
int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
	struct MPI_T_pvar_session_t *s;
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!session)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	s = calloc(1, sizeof(*s));
	if (!s)
		return mpi_tool_leave(MPI_T_ERR_MEMORY);
	s->next = sessions;
	sessions = s;
	*session = s;
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_session_free);
int PMPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
	struct MPI_T_pvar_session_t **at;
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!session || !*(at = find_session(*session)))
		return mpi_tool_leave(MPI_T_ERR_INVALID_SESSION);
	end_first_session(at);
	*session = MPI_T_PVAR_SESSION_NULL;
	return mpi_tool_leave(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_handle_alloc);
int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
			     MPI_T_pvar_handle *handle, int *count)
{
	struct MPI_T_pvar_handle_t *h;
	int rc = enter_values(session, MPI_T_PVAR_ALL_HANDLES);

	if (rc != MPI_SUCCESS)
		return rc;
	if (pvar_index < 0 || pvar_index >= mpi_tool_pvar_count())
		return leave_values(MPI_T_ERR_INVALID_INDEX);
	if (!handle || !count || (is_of_object(pvar_index) && !obj_handle))
		return leave_values(MPI_T_ERR_INVALID);
	if (is_of_object(pvar_index) && !bound_object(pvar_index, *(void **)obj_handle))
		return leave_values(MPI_T_ERR_INVALID_HANDLE);
	h = calloc(1, sizeof(*h));
	if (!h)
		return leave_values(MPI_T_ERR_MEMORY);
	h->index = pvar_index;
	h->object = is_of_object(pvar_index) ? *(void **)obj_handle : NULL;
	h->next = session->handles;
	session->handles = h;
	*handle = h;
	*count = 1;
	return leave_values(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_handle_free);
int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
	struct MPI_T_pvar_handle_t **at, *h;
	int rc = enter_pvar(session, MPI_T_PVAR_ALL_HANDLES);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!handle || !*(at = find_handle(session, *handle)))
		return mpi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
	h = *at;
	*at = h->next;
	free(h);
	*handle = MPI_T_PVAR_HANDLE_NULL;
	return mpi_tool_leave(MPI_SUCCESS);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Variables that always count cannot be started or stopped; with all handles they are skipped. */
MPI_WEAK(MPI_T_pvar_start);
int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	int rc = enter_pvar(session, handle);

	if (rc != MPI_SUCCESS)
		return rc;
	return mpi_tool_leave(handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS
							       : MPI_T_ERR_PVAR_NO_STARTSTOP);
}

MPI_WEAK(MPI_T_pvar_stop);
int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	return PMPI_T_pvar_start(session, handle);
}

/* As enter_values(), for one handle and a value. */
static int enter_value(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
	int rc = enter_values(session, handle);

	if (rc == MPI_SUCCESS && (handle == MPI_T_PVAR_ALL_HANDLES || is_stale(handle)))
		return leave_values(MPI_T_ERR_INVALID_HANDLE);
	if (rc == MPI_SUCCESS && !buf)
		return leave_values(MPI_T_ERR_INVALID);
	return rc;
}

MPI_WEAK(MPI_T_pvar_read);
int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
	int rc = enter_value(session, handle, buf);

	if (rc != MPI_SUCCESS)
		return rc;
	*(uint64_t *)buf = pvar_now(handle) - handle->from;
	return leave_values(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_write);
int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
	int rc = enter_value(session, handle, buf);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_counter(handle->index))
		return leave_values(MPI_T_ERR_PVAR_NO_WRITE);
	handle->from = pvar_now(handle) - *(const uint64_t *)buf;
	return leave_values(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_reset);
int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	struct MPI_T_pvar_handle_t *h;
	int rc = enter_values(session, handle);

	if (rc != MPI_SUCCESS)
		return rc;
	if (handle != MPI_T_PVAR_ALL_HANDLES && is_stale(handle))
		return leave_values(MPI_T_ERR_INVALID_HANDLE);
	if (handle != MPI_T_PVAR_ALL_HANDLES && !is_counter(handle->index))
		return leave_values(MPI_T_ERR_PVAR_NO_WRITE);
	for (h = session->handles; h; h = h->next) {
		if ((handle == MPI_T_PVAR_ALL_HANDLES || h == handle) && is_counter(h->index) &&
		    !is_stale(h))
			h->from = pvar_now(h);
	}
	return leave_values(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_pvar_readreset);
int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
	uint64_t value;
	int rc = enter_value(session, handle, buf);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_counter(handle->index))
		return leave_values(MPI_T_ERR_PVAR_NO_ATOMIC);
	value = pvar_now(handle);
	*(uint64_t *)buf = value - handle->from;
	handle->from = value;
	return leave_values(MPI_SUCCESS);
}
