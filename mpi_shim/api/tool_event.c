/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Events of the tool interface (MPI-4 §15.3.8): their types, their one source, and the handles
 * that tools have registered. core/events.h says where events come from. They lie in a ring, and
 * each handle has a cursor in it. A handle whose cursor is overtaken has lost events.
 *
 * Callbacks run in one of two contexts. MPI_T_CB_REQUIRE_MPI_RESTRICTED: inside of the library,
 * with its locks held. MPI_T_CB_REQUIRE_NONE: around a wait or a file operation, with no lock
 * held. A handle that has only a callback without restrictions gets its events at the next such
 * place. No two callbacks run at the same time.
 *
 * Locks are taken in this order: the library's, then that of the tool interface, which is
 * recursive for callbacks.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_shim/api/entry.h"
#include "mpi_shim/api/tool.h"
#include "mpi_shim/api/weak.h"
#include "mpi_shim/core/events.h"
#include "mpi_shim/impl.h"

/* ---- types ----------------------------------------------------------------------------------- */

#define ELEMENTS_MOST 6

/* The data of an event: elements with rising offsets. */
struct shape {
	size_t bytes;
	int elements;
	struct {
		const char *name;
		MPI_Aint at;
		MPI_Datatype type;
	} element[ELEMENTS_MOST];
};

#define AT(kind, field) offsetof(struct mpi_event_##kind, field)

static const struct shape message_shape = {
	sizeof(struct mpi_event_message),
	6,
	{ { "bytes", AT(message, bytes), MPI_COUNT },
	  { "comm", AT(message, comm), MPI_INT },
	  { "source", AT(message, source), MPI_INT },
	  { "tag", AT(message, tag), MPI_INT },
	  { "collective", AT(message, collective), MPI_INT },
	  { "waited", AT(message, waited), MPI_INT } },
};

static const struct shape wait_shape = {
	sizeof(struct mpi_event_wait),
	5,
	{ { "requests", AT(wait, requests), MPI_INT },
	  { "comm", AT(wait, comm), MPI_INT },
	  { "peer", AT(wait, peer), MPI_INT },
	  { "tag", AT(wait, tag), MPI_INT },
	  { "what", AT(wait, what), MPI_INT } },
};

static const struct shape done_shape = {
	sizeof(struct mpi_event_done),
	6,
	{ { "bytes", AT(done, bytes), MPI_COUNT },
	  { "comm", AT(done, comm), MPI_INT },
	  { "peer", AT(done, peer), MPI_INT },
	  { "tag", AT(done, tag), MPI_INT },
	  { "what", AT(done, what), MPI_INT },
	  { "error", AT(done, error), MPI_INT } },
};

static const struct shape file_shape = {
	sizeof(struct mpi_event_file),
	6,
	{ { "offset", AT(file, offset), MPI_COUNT },
	  { "bytes", AT(file, bytes), MPI_COUNT },
	  { "file", AT(file, file), MPI_INT },
	  { "operation", AT(file, operation), MPI_INT },
	  { "collective", AT(file, collective), MPI_INT },
	  { "error", AT(file, error), MPI_INT } },
};

#define WHAT      "what: 0 send, 1 receive, 2 generalized, 3 one-sided, 4 collective, 5 any, 6 probe"
#define OPERATION "operation: 0 open, 1 close, 2 read, 3 write, 4 sync, 5 set size, 6 other"

static const struct {
	const char *name, *text;
	const struct shape *shape;
} event_types[MPI_EVENTS] = {
	[MPI_EVENT_UNEXPECTED] = { "mpi_message_unexpected",
				   "a message has come before its receive", &message_shape },
	[MPI_EVENT_MATCHED] = { "mpi_message_matched",
				"a message has met its receive; waited: it was here before",
				&message_shape },
	[MPI_EVENT_WAIT_BEGIN] = { "mpi_wait_begin",
				   "a call begins to wait for what is not complete; " WHAT,
				   &wait_shape },
	[MPI_EVENT_WAIT_END] = { "mpi_wait_end", "the wait of a call ends; " WHAT, &wait_shape },
	[MPI_EVENT_DONE] = { "mpi_request_complete",
			     "a request is complete, whether or not a call waits for it; " WHAT,
			     &done_shape },
	[MPI_EVENT_FILE_BEGIN] = { "mpi_file_begin", "an operation on a file begins; " OPERATION,
				   &file_shape },
	[MPI_EVENT_FILE_END] = { "mpi_file_end", "an operation on a file has ended; " OPERATION,
				 &file_shape },
};

/* The names of a type's elements are an enumeration; only its address is used. */
static struct MPI_T_enum_t element_enums[MPI_EVENTS];

int mpi_tool_elements(MPI_T_enum e, const char **name)
{
	for (int i = 0; e && i < MPI_EVENTS; i++) {
		if (e == &element_enums[i]) {
			*name = event_types[i].name;
			return event_types[i].shape->elements;
		}
	}
	return -1;
}

const char *mpi_tool_element(MPI_T_enum e, int i)
{
	return event_types[e - element_enums].shape->element[i].name;
}

static bool is_event(int index)
{
	return index >= 0 && index < MPI_EVENTS;
}

/* ---- handles --------------------------------------------------------------------------------- */

#define LEVELS 4

static const MPI_T_cb_safety levels[LEVELS] = {
	MPI_T_CB_REQUIRE_NONE,
	MPI_T_CB_REQUIRE_MPI_RESTRICTED,
	MPI_T_CB_REQUIRE_THREAD_SAFE,
	MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
};
enum { LEVEL_NONE, LEVEL_RESTRICTED };

struct MPI_T_event_registration_t {
	struct MPI_T_event_registration_t *next;
	enum mpi_event kind;
	struct {
		MPI_T_event_cb_function *fn; /* NULL: none of this level */
		void *user_data;
	} callback[LEVELS];
	uint64_t cursor;  /* number of the next event to be seen */
	uint64_t counted; /* events of this kind that were seen, or counted as lost */
	MPI_Count lost;   /* since the handler of lost events was last called */
	MPI_T_event_dropped_cb_function *dropped;
	bool freed; /* ends when no callback runs any more */
	MPI_T_event_free_cb_function *at_end;
	void *end_data;
};

/* Guarded by the lock of the tool interface. */
static struct MPI_T_event_registration_t *registrations;
static bool reading; /* a callback runs, or is about to */

struct MPI_T_event_instance_t {
	struct mpi_event_record record;
};

/* The callback that this thread is in. */
enum callback { OUTSIDE, IN_RESTRICTED, IN_FREE };
static _Thread_local enum callback inside;
static _Thread_local MPI_T_event_instance current;

void mpi_tool_enter_library(void)
{
	if (inside != IN_RESTRICTED)
		mpi_enter_any_time();
}

void mpi_tool_leave_library(void)
{
	if (inside != IN_RESTRICTED)
		mpi_leave_any_time();
}

bool mpi_tool_in_callback(void)
{
	return inside != OUTSIDE;
}

/* Take both locks; as mpi_tool_enter. */
static int enter_events(void)
{
	int rc;

	mpi_tool_enter_library();
	rc = mpi_tool_enter();
	if (rc != MPI_SUCCESS)
		mpi_tool_leave_library();
	return rc;
}

static int leave_events(int rc)
{
	mpi_tool_leave(rc);
	mpi_tool_leave_library();
	return rc;
}

static bool is_registration(const struct MPI_T_event_registration_t *wanted)
{
	const struct MPI_T_event_registration_t *r = registrations;

	while (r && r != wanted)
		r = r->next;
	return r && !r->freed;
}

static int enter_registration(const struct MPI_T_event_registration_t *r)
{
	int rc = enter_events();

	if (rc == MPI_SUCCESS && !is_registration(r))
		return leave_events(MPI_T_ERR_INVALID_HANDLE);
	return rc;
}

static bool has_callback(const struct MPI_T_event_registration_t *r)
{
	for (int i = 0; i < LEVELS; i++)
		if (r->callback[i].fn)
			return true;
	return false;
}

/* Watch what the handles have callbacks for. */
static int watch_registered(void)
{
	uint32_t kinds = 0;

	for (const struct MPI_T_event_registration_t *r = registrations; r; r = r->next)
		if (!r->freed && has_callback(r))
			kinds |= 1u << r->kind;
	return mpi_events_watch(kinds) ? MPI_SUCCESS : MPI_T_ERR_MEMORY;
}

/* ---- reading the ring ------------------------------------------------------------------------ */

static void lose(struct MPI_T_event_registration_t *r, uint64_t n)
{
	if (!r->dropped)
		return;
	if (__builtin_add_overflow(r->lost, (MPI_Count)n, &r->lost))
		r->lost = INT64_MAX;
}

/* Count the events of the handle's kind that were overwritten before it saw them. */
static void find_lost(struct MPI_T_event_registration_t *r)
{
	uint64_t oldest =
		mpi_events_raised > MPI_EVENTS_KEPT ? mpi_events_raised - MPI_EVENTS_KEPT : 0;
	uint64_t here = 0, before;

	if (r->cursor >= oldest)
		return;
	for (uint64_t n = oldest; n < mpi_events_raised; n++)
		here += mpi_event_at(n)->kind == r->kind;
	before = mpi_events_raised_of[r->kind] - here;
	lose(r, before - r->counted);
	r->counted = before;
	r->cursor = oldest;
}

/* The lowest level from `least` on that the handle has a callback for; LEVELS: none. */
static int callback_level(const struct MPI_T_event_registration_t *r, int least)
{
	while (least < LEVELS && !r->callback[least].fn)
		least++;
	return least;
}

/* Find the oldest event before `limit` that a handle can see at this level. NULL: none. */
static struct MPI_T_event_registration_t *next_to_see(uint64_t limit, int least)
{
	struct MPI_T_event_registration_t *first = NULL;

	for (struct MPI_T_event_registration_t *r = registrations; r; r = r->next) {
		if (r->freed || callback_level(r, least) == LEVELS)
			continue;
		find_lost(r);
		while (r->cursor < limit && mpi_event_at(r->cursor)->kind != r->kind)
			r->cursor++;
		if (r->cursor < limit && (!first || r->cursor < first->cursor))
			first = r;
	}
	return first;
}

/* Begin and end a callback. One without restrictions runs without locks. Returns where this
 * thread was before: the callback that ends a handle may run inside of another one. */
static enum callback begin_callback(int least)
{
	const enum callback before = inside;

	inside = least == LEVEL_NONE ? IN_FREE : IN_RESTRICTED;
	if (least == LEVEL_NONE) {
		mpi_tool_leave(MPI_SUCCESS);
		mpi_unlock_for_callback();
	}
	return before;
}

static void end_callback(int least, enum callback before)
{
	if (least == LEVEL_NONE) {
		mpi_lock_after_callback();
		mpi_tool_lock();
	}
	inside = before;
}

/* Call one handler of lost events. False: there is nothing to say. */
static bool show_lost(int least)
{
	for (struct MPI_T_event_registration_t *r = registrations; r; r = r->next) {
		const MPI_Count lost = r->lost;
		const int level = callback_level(r, least);
		enum callback before;

		if (!lost || r->freed || !r->dropped || level == LEVELS)
			continue;
		r->lost = 0;
		before = begin_callback(least);
		r->dropped(lost, r, 0, levels[least], r->callback[level].user_data);
		end_callback(least, before);
		return true;
	}
	return false;
}

/* Call one callback, with lost events first. False: all events before `limit` were seen. */
static bool show_one(uint64_t limit, int least)
{
	struct MPI_T_event_registration_t *r = next_to_see(limit, least);
	struct MPI_T_event_instance_t instance;
	enum callback before;
	int level;

	if (show_lost(least))
		return true;
	if (!r)
		return false;
	level = callback_level(r, least);
	instance.record = *mpi_event_at(r->cursor++);
	r->counted++;
	current = &instance;
	before = begin_callback(least);
	r->callback[level].fn(&instance, r, levels[least], r->callback[level].user_data);
	end_callback(least, before);
	current = NULL;
	return true;
}

/* Take the first freed handle off the list. NULL: none. */
static struct MPI_T_event_registration_t *take_freed(void)
{
	struct MPI_T_event_registration_t **at = &registrations, *r;

	while (*at && !(*at)->freed)
		at = &(*at)->next;
	r = *at;
	if (r)
		*at = r->next;
	return r;
}

static void end_freed(int least)
{
	struct MPI_T_event_registration_t *r;

	while ((r = take_freed())) {
		if (r->at_end) {
			enum callback before = begin_callback(least);

			r->at_end(r, levels[least], r->end_data);
			end_callback(least, before);
		}
		free(r);
	}
}

/* The reader of core/events.h. Events that callbacks raise are seen the next time, so that a
 * callback that communicates cannot keep this from ending. */
static void read_events(bool free_of_locks)
{
	const int least = free_of_locks ? LEVEL_NONE : LEVEL_RESTRICTED;
	const uint64_t limit = mpi_events_raised;

	if (inside != OUTSIDE)
		return;
	mpi_tool_lock();
	if (!reading) {
		reading = true;
		while (show_one(limit, least))
			continue;
		end_freed(least);
		reading = false;
	}
	mpi_tool_leave(MPI_SUCCESS);
}

void mpi_tool_events_fini(void)
{
	for (struct MPI_T_event_registration_t *r = registrations; r; r = r->next)
		r->freed = true;
	mpi_events_watch(0);
	if (!reading)
		end_freed(LEVEL_RESTRICTED);
}

/* ---- the source ------------------------------------------------------------------------------ */

/* Make an empty info object: there are no hints. */
static int no_hints(MPI_Info *info)
{
	struct mpi_info *made = NULL;
	int rc;

	if (!info)
		return MPI_SUCCESS;
	rc = mpi_info_create(&made);
	if (rc == MPI_SUCCESS)
		*info = mpi_handle_of(made);
	return rc == MPI_SUCCESS ? MPI_SUCCESS : MPI_T_ERR_MEMORY;
}

MPI_WEAK(MPI_T_source_get_num);
int PMPI_T_source_get_num(int *num_sources)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!num_sources)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*num_sources = 1;
	return mpi_tool_leave(MPI_SUCCESS);
}

/* Callbacks without restrictions run later than others, so the order is that of no clock. */
MPI_WEAK(MPI_T_source_get_info);
int PMPI_T_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
			   MPI_T_source_order *ordering, MPI_Count *ticks_per_second,
			   MPI_Count *max_ticks, MPI_Info *info)
{
	int rc = enter_events();

	if (rc != MPI_SUCCESS)
		return rc;
	if (source_index != 0)
		return leave_events(MPI_T_ERR_INVALID_INDEX);
	mpi_tool_string("mpi", name, name_len);
	mpi_tool_string("this process's MPI library; nanoseconds of a monotonic clock", desc,
			desc_len);
	if (ordering)
		*ordering = MPI_T_SOURCE_UNORDERED;
	if (ticks_per_second)
		*ticks_per_second = 1000000000;
	if (max_ticks)
		*max_ticks = INT64_MAX;
	return leave_events(no_hints(info));
}

MPI_WEAK(MPI_T_source_get_timestamp);
int PMPI_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (source_index != 0)
		return mpi_tool_leave(MPI_T_ERR_INVALID_INDEX);
	if (!timestamp)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*timestamp = mpi_event_time();
	return mpi_tool_leave(MPI_SUCCESS);
}

/* ---- queries --------------------------------------------------------------------------------- */

MPI_WEAK(MPI_T_event_get_num);
int PMPI_T_event_get_num(int *num_events)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!num_events)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	*num_events = MPI_EVENTS;
	return mpi_tool_leave(MPI_SUCCESS);
}

/* *num is the room of both arrays, and becomes the number of elements. */
static void show_elements(const struct shape *t, MPI_Datatype *type, MPI_Aint *at, int *num)
{
	if (!num)
		return;
	for (int i = 0; i < *num && i < t->elements; i++) {
		if (type)
			type[i] = t->element[i].type;
		if (at)
			at[i] = t->element[i].at;
	}
	*num = t->elements;
}

MPI_WEAK(MPI_T_event_get_info);
int PMPI_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
			  MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
			  int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
			  int *desc_len, int *bind)
{
	int rc = enter_events();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_event(event_index))
		return leave_events(MPI_T_ERR_INVALID_INDEX);
	mpi_tool_string(event_types[event_index].name, name, name_len);
	mpi_tool_string(event_types[event_index].text, desc, desc_len);
	mpi_tool_int(MPI_T_VERBOSITY_USER_DETAIL, verbosity);
	mpi_tool_int(MPI_T_BIND_NO_OBJECT, bind);
	show_elements(event_types[event_index].shape, array_of_datatypes, array_of_displacements,
		      num_elements);
	if (enumtype)
		*enumtype = &element_enums[event_index];
	return leave_events(no_hints(info));
}

MPI_WEAK(MPI_T_event_get_index);
int PMPI_T_event_get_index(const char *name, int *event_index)
{
	int rc = mpi_tool_enter();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!name || !event_index)
		return mpi_tool_leave(MPI_T_ERR_INVALID);
	for (int i = 0; i < MPI_EVENTS; i++) {
		if (strcmp(name, event_types[i].name) == 0) {
			*event_index = i;
			return mpi_tool_leave(MPI_SUCCESS);
		}
	}
	return mpi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- handles of tools ------------------------------------------------------------------------ */

MPI_WEAK(MPI_T_event_handle_alloc);
int PMPI_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
			      MPI_T_event_registration *event_registration)
{
	struct MPI_T_event_registration_t *r;
	int rc = enter_events();

	(void)obj_handle; /* no type is bound to an object */
	(void)info;       /* there are no hints */
	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_event(event_index))
		return leave_events(MPI_T_ERR_INVALID_INDEX);
	if (!event_registration)
		return leave_events(MPI_T_ERR_INVALID);
	r = calloc(1, sizeof(*r));
	if (!r)
		return leave_events(MPI_T_ERR_MEMORY);
	mpi_events_reader = read_events;
	r->kind = (enum mpi_event)event_index;
	r->next = registrations;
	registrations = r;
	*event_registration = r;
	return leave_events(MPI_SUCCESS);
}

/* The handle ends at once, or after the callback that runs. */
MPI_WEAK(MPI_T_event_handle_free);
int PMPI_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
			     MPI_T_event_free_cb_function free_cb_function)
{
	int rc = enter_registration(event_registration);

	if (rc != MPI_SUCCESS)
		return rc;
	event_registration->freed = true;
	event_registration->at_end = free_cb_function;
	event_registration->end_data = user_data;
	watch_registered();
	if (!reading)
		end_freed(LEVEL_RESTRICTED);
	return leave_events(MPI_SUCCESS);
}

MPI_WEAK(MPI_T_event_handle_set_info);
int PMPI_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
	int rc = enter_registration(event_registration);

	(void)info; /* there are no hints */
	return rc == MPI_SUCCESS ? leave_events(MPI_SUCCESS) : rc;
}

MPI_WEAK(MPI_T_event_handle_get_info);
int PMPI_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
	int rc = enter_registration(event_registration);

	if (rc != MPI_SUCCESS)
		return rc;
	return leave_events(info_used ? no_hints(info_used) : MPI_T_ERR_INVALID);
}

/* LEVELS: no such level. */
static int level_of(MPI_T_cb_safety safety)
{
	int i = 0;

	while (i < LEVELS && levels[i] != safety)
		i++;
	return i;
}

MPI_WEAK(MPI_T_event_register_callback);
int PMPI_T_event_register_callback(MPI_T_event_registration event_registration,
				   MPI_T_cb_safety cb_safety, MPI_Info info, void *user_data,
				   MPI_T_event_cb_function event_cb_function)
{
	struct MPI_T_event_registration_t *r = event_registration;
	const int level = level_of(cb_safety);
	int rc = enter_registration(r);

	(void)info; /* there are no hints */
	if (rc != MPI_SUCCESS)
		return rc;
	if (level == LEVELS)
		return leave_events(MPI_T_ERR_INVALID);
	if (!has_callback(r)) {
		r->cursor = mpi_events_raised;
		r->counted = mpi_events_raised_of[r->kind];
	}
	r->callback[level].fn = event_cb_function;
	r->callback[level].user_data = user_data;
	rc = watch_registered();
	if (rc != MPI_SUCCESS)
		r->callback[level].fn = NULL;
	return leave_events(rc);
}

static int enter_callback(const struct MPI_T_event_registration_t *r, MPI_T_cb_safety safety)
{
	const int level = level_of(safety);
	int rc = enter_registration(r);

	if (rc == MPI_SUCCESS && (level == LEVELS || !r->callback[level].fn))
		return leave_events(MPI_T_ERR_INVALID);
	return rc;
}

MPI_WEAK(MPI_T_event_callback_set_info);
int PMPI_T_event_callback_set_info(MPI_T_event_registration event_registration,
				   MPI_T_cb_safety cb_safety, MPI_Info info)
{
	int rc = enter_callback(event_registration, cb_safety);

	(void)info; /* there are no hints */
	return rc == MPI_SUCCESS ? leave_events(MPI_SUCCESS) : rc;
}

MPI_WEAK(MPI_T_event_callback_get_info);
int PMPI_T_event_callback_get_info(MPI_T_event_registration event_registration,
				   MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
	int rc = enter_callback(event_registration, cb_safety);

	if (rc != MPI_SUCCESS)
		return rc;
	return leave_events(info_used ? no_hints(info_used) : MPI_T_ERR_INVALID);
}

MPI_WEAK(MPI_T_event_set_dropped_handler);
int PMPI_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
				     MPI_T_event_dropped_cb_function dropped_cb_function)
{
	struct MPI_T_event_registration_t *r = event_registration;
	int rc = enter_registration(r);

	if (rc != MPI_SUCCESS)
		return rc;
	find_lost(r); /* before there was a handler */
	r->lost = r->dropped ? r->lost : 0;
	r->dropped = dropped_cb_function;
	return leave_events(MPI_SUCCESS);
}

/* ---- the data of an event -------------------------------------------------------------------- */

/* An event exists for its callback only, which runs on this thread. */
static bool is_current(MPI_T_event_instance instance)
{
	return instance && instance == current;
}

static const char *data_of(MPI_T_event_instance instance)
{
	return (const char *)&instance->record.message;
}

MPI_WEAK(MPI_T_event_read);
int PMPI_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
	const struct shape *t;

	if (!is_current(event_instance))
		return MPI_T_ERR_INVALID_HANDLE;
	t = event_types[event_instance->record.kind].shape;
	if (element_index < 0 || element_index >= t->elements)
		return MPI_T_ERR_INVALID_INDEX;
	if (!buffer)
		return MPI_T_ERR_INVALID;
	memcpy(buffer, data_of(event_instance) + t->element[element_index].at,
	       t->element[element_index].type == MPI_COUNT ? sizeof(MPI_Count) : sizeof(int));
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_T_event_copy);
int PMPI_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
	if (!is_current(event_instance))
		return MPI_T_ERR_INVALID_HANDLE;
	if (!buffer)
		return MPI_T_ERR_INVALID;
	memcpy(buffer, data_of(event_instance),
	       event_types[event_instance->record.kind].shape->bytes);
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_T_event_get_timestamp);
int PMPI_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
	if (!is_current(event_instance))
		return MPI_T_ERR_INVALID_HANDLE;
	if (!event_timestamp)
		return MPI_T_ERR_INVALID;
	*event_timestamp = event_instance->record.ns;
	return MPI_SUCCESS;
}

MPI_WEAK(MPI_T_event_get_source);
int PMPI_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
	if (!is_current(event_instance))
		return MPI_T_ERR_INVALID_HANDLE;
	if (!source_index)
		return MPI_T_ERR_INVALID;
	*source_index = 0;
	return MPI_SUCCESS;
}
