/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The MPI tool interface, before, while and after MPI runs, in a job of one process. job_tool.c
 * has what takes several.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>
#include <string.h>

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

static int begin(void **state)
{
	int provided = -1;

	(void)state;
	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	return provided == MPI_THREAD_MULTIPLE ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	OK(MPI_T_finalize());
	return 0;
}

static void nothing_works_outside_of_init_and_finalize(void **state)
{
	int n;

	(void)state;
	assert_int_equal(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	assert_int_equal(MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	assert_int_equal(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
	begin(state);
	begin(state);
	OK(MPI_T_finalize());
	OK(MPI_T_cvar_get_num(&n));
	OK(MPI_T_finalize());
	assert_int_equal(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
}

/* ---- control variables ----------------------------------------------------------------------- */

static void every_control_variable_can_be_found_and_read(void **state)
{
	int n = 0;

	(void)state;
	OK(MPI_T_cvar_get_num(&n));
	assert_true(n > 10);
	for (int i = 0; i < n; i++) {
		char name[64], desc[512], value[4096];
		int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, bind, scope;
		int index = -1, count = 0;
		MPI_Datatype type;
		MPI_T_enum choices;
		MPI_T_cvar_handle handle;

		OK(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &choices, desc,
				       &desc_len, &bind, &scope));
		assert_int_equal(name_len, strlen(name) + 1);
		assert_true(desc_len > 1);
		assert_int_equal(bind, MPI_T_BIND_NO_OBJECT);
		assert_int_equal(scope, MPI_T_SCOPE_CONSTANT);
		OK(MPI_T_cvar_get_index(name, &index));
		assert_int_equal(index, i);
		OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
		assert_true(count > 0 && count < (int)sizeof(value));
		OK(MPI_T_cvar_read(handle, value));
		assert_int_equal(MPI_T_cvar_write(handle, value), MPI_T_ERR_CVAR_SET_NEVER);
		OK(MPI_T_cvar_handle_free(&handle));
		assert_null(handle);
	}
}

/* The environment of this test sets PTL_MPI_SHORT and PTL_SHM_CMA. */
static void values_are_those_of_the_environment(void **state)
{
	MPI_T_cvar_handle handle;
	MPI_T_enum choices;
	MPI_Datatype type;
	long number = -1;
	int index, count, choice = -1, value = -1, items = 0, len = 8;
	char text[8];

	(void)state;
	OK(MPI_T_cvar_get_index("PTL_MPI_SHORT", &index));
	OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
	OK(MPI_T_cvar_read(handle, &number));
	assert_int_equal(number, 4321);
	OK(MPI_T_cvar_handle_free(&handle));

	OK(MPI_T_cvar_get_index("PTL_SHM_CMA", &index));
	OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, &type, &choices, NULL, NULL, NULL, NULL));
	assert_ptr_equal(type, MPI_INT);
	OK(MPI_T_enum_get_info(choices, &items, NULL, NULL));
	assert_int_equal(items, 3);
	OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
	OK(MPI_T_cvar_read(handle, &choice));
	OK(MPI_T_enum_get_item(choices, choice, &value, text, &len));
	assert_int_equal(value, choice);
	assert_string_equal(text, "off");
	assert_int_equal(len, 4);
	assert_int_equal(MPI_T_enum_get_item(choices, 3, &value, text, &len),
			 MPI_T_ERR_INVALID_INDEX);
	OK(MPI_T_cvar_handle_free(&handle));
}

static void strings_tell_their_length_and_are_cut(void **state)
{
	char name[4];
	int index, len = 0;

	(void)state;
	OK(MPI_T_cvar_get_index("PTL_NAL", &index));
	OK(MPI_T_cvar_get_info(index, NULL, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	assert_int_equal(len, 8);
	len = sizeof(name);
	OK(MPI_T_cvar_get_info(index, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	assert_string_equal(name, "PTL");
	assert_int_equal(len, 4);
}

/* ---- performance variables ------------------------------------------------------------------- */

static void every_performance_variable_can_be_found_and_read(void **state)
{
	MPI_T_pvar_session session;
	int old, n = 0;

	(void)state;
	OK(MPI_T_pvar_get_num(&n));
	assert_true(n > 20);
	OK(MPI_T_pvar_session_create(&session));
	for (int i = 0; i < n; i++) {
		char name[64], desc[512];
		int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, class, bind;
		int readonly, continuous, atomic, index = -1, count = 0;
		unsigned long value = 1;
		MPI_Datatype type;
		MPI_T_enum choices;
		MPI_T_pvar_handle handle;

		OK(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &choices,
				       desc, &desc_len, &bind, &readonly, &continuous, &atomic));
		assert_ptr_equal(type, MPI_UNSIGNED_LONG);
		assert_int_equal(continuous, 1);
		assert_int_equal(readonly, class != MPI_T_PVAR_CLASS_COUNTER);
		OK(MPI_T_pvar_get_index(name, class, &index));
		assert_int_equal(index, i);
		if (bind != MPI_T_BIND_NO_OBJECT) {
			assert_int_equal(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count),
					 MPI_T_ERR_INVALID);
			continue;
		}
		OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
		assert_int_equal(count, 1);
		OK(MPI_T_pvar_read(session, handle, &value));
		assert_int_equal(MPI_T_pvar_start(session, handle), MPI_T_ERR_PVAR_NO_STARTSTOP);
		assert_int_equal(MPI_T_pvar_stop(session, handle), MPI_T_ERR_PVAR_NO_STARTSTOP);
		assert_int_equal(MPI_T_pvar_reset(session, handle),
				 readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
		OK(MPI_T_pvar_handle_free(session, &handle));
		assert_null(handle);
	}
	OK(MPI_T_pvar_get_index("mpi_coll_bcast_shm", MPI_T_PVAR_CLASS_COUNTER, &n));
	OK(MPI_T_pvar_get_index("mpi_coll_bcast_hub", MPI_T_PVAR_CLASS_COUNTER, &old));
	assert_int_equal(old, n); /* the last release's name */
	assert_int_equal(
		MPI_T_pvar_get_index("mpi_coll_bcast_ring_hub", MPI_T_PVAR_CLASS_COUNTER, &old),
		MPI_T_ERR_INVALID_NAME);
	OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
	OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
	OK(MPI_T_pvar_session_free(&session));
	assert_null(session);
}

static MPI_T_pvar_handle handle_of(MPI_T_pvar_session session, const char *name)
{
	MPI_T_pvar_handle handle;
	int index = -1, count;

	OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
	OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
	return handle;
}

static unsigned long read_of(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	unsigned long value = 0;

	OK(MPI_T_pvar_read(session, handle, &value));
	return value;
}

static void send_to_self(int n)
{
	for (int i = 0; i < n; i++) {
		int out = i, in = -1;

		OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
				MPI_STATUS_IGNORE));
		assert_int_equal(in, i);
	}
}

static void messages_are_counted_for_each_handle_from_its_reset(void **state)
{
	MPI_T_pvar_session session;
	MPI_T_pvar_handle all, since;
	unsigned long before, value = 0;

	(void)state;
	OK(MPI_T_pvar_session_create(&session));
	all = handle_of(session, "mpi_sent_short");
	since = handle_of(session, "mpi_sent_short");
	before = read_of(session, all);
	send_to_self(3);
	OK(MPI_T_pvar_reset(session, since));
	send_to_self(4);
	assert_int_equal(read_of(session, all), before + 7);
	assert_int_equal(read_of(session, since), 4);
	OK(MPI_T_pvar_readreset(session, since, &value));
	assert_int_equal(value, 4);
	assert_int_equal(read_of(session, since), 0);
	value = 100;
	OK(MPI_T_pvar_write(session, since, &value));
	send_to_self(1);
	assert_int_equal(read_of(session, since), 101);
	OK(MPI_T_pvar_session_free(&session));
}

static void portals_counts_too(void **state)
{
	MPI_T_pvar_session session;
	MPI_T_pvar_handle sends;
	unsigned long before;

	(void)state;
	OK(MPI_T_pvar_session_create(&session));
	sends = handle_of(session, "ptl_send_count");
	before = read_of(session, sends);
	send_to_self(5);
	assert_true(read_of(session, sends) >= before + 5);
	OK(MPI_T_pvar_session_free(&session));
}

static void handles_and_sessions_that_do_not_exist_are_refused(void **state)
{
	MPI_T_pvar_session session, gone;
	MPI_T_pvar_handle handle, freed;
	unsigned long value;
	int count;

	(void)state;
	OK(MPI_T_pvar_session_create(&session));
	handle = freed = handle_of(session, "mpi_sent_short");
	OK(MPI_T_pvar_handle_free(session, &handle));
	assert_int_equal(MPI_T_pvar_read(session, freed, &value), MPI_T_ERR_INVALID_HANDLE);
	gone = session;
	OK(MPI_T_pvar_session_free(&session));
	assert_int_equal(MPI_T_pvar_read(gone, freed, &value), MPI_T_ERR_INVALID_SESSION);
	assert_int_equal(MPI_T_pvar_session_free(&gone), MPI_T_ERR_INVALID_SESSION);
	assert_int_equal(MPI_T_pvar_handle_alloc(NULL, 0, NULL, &handle, &count),
			 MPI_T_ERR_INVALID_SESSION);
	assert_int_equal(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &value), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_cvar_handle_alloc(-1, NULL, NULL, &count), MPI_T_ERR_INVALID_INDEX);
	assert_int_equal(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &count, NULL, NULL),
			 MPI_T_ERR_INVALID_HANDLE);
}

/* ---- categories and events ------------------------------------------------------------------- */

static void every_variable_is_in_one_category(void **state)
{
	int cats = 0, cvars = 0, pvars = 0, want_cvars = 0, want_pvars = 0, then = -1, now = -2;
	int all_events = 0, want_events = 0;

	(void)state;
	OK(MPI_T_category_changed(&then));
	OK(MPI_T_category_get_num(&cats));
	for (int i = 0; i < cats; i++) {
		char name[64];
		int len = sizeof(name), nc = -1, np = -1, sub = -1, index = -1, events = -1;
		int indices[256];

		OK(MPI_T_category_get_info(i, name, &len, NULL, NULL, &nc, &np, &sub));
		OK(MPI_T_category_get_index(name, &index));
		assert_int_equal(index, i);
		assert_int_equal(sub, 0);
		OK(MPI_T_category_get_num_events(i, &events));
		memset(indices, -1, sizeof(indices));
		OK(MPI_T_category_get_events(i, 256, indices));
		for (int k = 0; k < events; k++)
			assert_true(indices[k] >= 0);
		assert_int_equal(indices[events], -1);
		all_events += events;
		indices[0] = -1;
		OK(MPI_T_category_get_categories(i, 256, indices));
		assert_int_equal(indices[0], -1);
		memset(indices, -1, sizeof(indices));
		OK(MPI_T_category_get_cvars(i, 256, indices));
		for (int k = 0; k < nc; k++)
			assert_true(indices[k] >= 0);
		assert_int_equal(indices[nc], -1);
		memset(indices, -1, sizeof(indices));
		OK(MPI_T_category_get_pvars(i, 256, indices));
		for (int k = 0; k < np; k++)
			assert_true(indices[k] >= 0);
		assert_int_equal(indices[np], -1);
		cvars += nc;
		pvars += np;
	}
	OK(MPI_T_cvar_get_num(&want_cvars));
	OK(MPI_T_pvar_get_num(&want_pvars));
	assert_int_equal(cvars, want_cvars);
	assert_int_equal(pvars, want_pvars);
	OK(MPI_T_event_get_num(&want_events));
	assert_int_equal(all_events, want_events);
	OK(MPI_T_category_changed(&now));
	assert_int_equal(now, then);
	assert_int_equal(MPI_T_category_get_index("no such", &cats), MPI_T_ERR_INVALID_NAME);
	assert_int_equal(MPI_T_category_get_cvars(99, 0, NULL), MPI_T_ERR_INVALID_INDEX);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void every_event_type_is_described(void **state)
{
	int n = 0;

	(void)state;
	OK(MPI_T_event_get_num(&n));
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		char name[64], desc[256], element[64];
		int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, bind, items;
		int elements = 16, few = 1, index = -1, keys = -1;
		MPI_Datatype types[16];
		MPI_Aint at[16];
		MPI_T_enum names;
		MPI_Info info;

		OK(MPI_T_event_get_info(i, name, &name_len, &verbosity, types, at, &elements,
					&names, &info, desc, &desc_len, &bind));
		assert_int_equal(bind, MPI_T_BIND_NO_OBJECT);
		assert_true(elements > 0 && elements < 16);
		assert_int_equal(at[0], 0);
		OK(MPI_T_enum_get_info(names, &items, NULL, NULL));
		assert_int_equal(items, elements);
		for (int k = 0; k < elements; k++) {
			int value = -1, len = sizeof(element);

			assert_true(types[k] == MPI_INT || types[k] == MPI_COUNT);
			assert_true(k == 0 || at[k] > at[k - 1]);
			OK(MPI_T_enum_get_item(names, k, &value, element, &len));
			assert_int_equal(value, k);
			assert_true(len > 1);
		}
		assert_int_equal(MPI_T_enum_get_item(names, elements, &items, NULL, NULL),
				 MPI_T_ERR_INVALID_INDEX);
		OK(MPI_Info_get_nkeys(info, &keys));
		assert_int_equal(keys, 0);
		OK(MPI_Info_free(&info));
		at[1] = -7;
		OK(MPI_T_event_get_info(i, NULL, NULL, NULL, NULL, at, &few, NULL, NULL, NULL, NULL,
					NULL));
		assert_int_equal(few, elements);
		assert_int_equal(at[1], -7);
		OK(MPI_T_event_get_index(name, &index));
		assert_int_equal(index, i);
	}
	assert_int_equal(MPI_T_event_get_index("no such", &n), MPI_T_ERR_INVALID_NAME);
	assert_int_equal(MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
					      NULL, NULL, NULL),
			 MPI_T_ERR_INVALID_INDEX);
}

static void the_source_has_a_clock(void **state)
{
	MPI_T_source_order order;
	MPI_Count ticks = 0, most = 0, before = 0, after = 0;
	char name[16];
	int n = 0, len = sizeof(name);
	MPI_Info info;

	(void)state;
	OK(MPI_T_source_get_num(&n));
	assert_int_equal(n, 1);
	OK(MPI_T_source_get_info(0, name, &len, NULL, NULL, &order, &ticks, &most, &info));
	OK(MPI_Info_free(&info));
	assert_int_equal(order, MPI_T_SOURCE_UNORDERED);
	assert_true(ticks > 0 && most > ticks);
	OK(MPI_T_source_get_timestamp(0, &before));
	OK(MPI_T_source_get_timestamp(0, &after));
	assert_true(after >= before && before > 0);
	assert_int_equal(MPI_T_source_get_timestamp(1, &after), MPI_T_ERR_INVALID_INDEX);
	assert_int_equal(MPI_T_source_get_info(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
			 MPI_T_ERR_INVALID_INDEX);
}

static void what_is_no_handle_of_an_event_is_refused(void **state)
{
	MPI_T_event_registration none = NULL;
	MPI_T_event_instance nothing = NULL;
	MPI_T_event_registration registration;
	MPI_Count stamp;
	MPI_Info info;
	int n = -1;

	(void)state;
	assert_int_equal(MPI_T_event_handle_alloc(99, NULL, MPI_INFO_NULL, &registration),
			 MPI_T_ERR_INVALID_INDEX);
	assert_int_equal(MPI_T_event_handle_get_info(none, &info), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_handle_set_info(none, MPI_INFO_NULL),
			 MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_handle_free(none, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_register_callback(none, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
						       NULL, NULL),
			 MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_callback_get_info(none, MPI_T_CB_REQUIRE_NONE, &info),
			 MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_callback_set_info(none, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL),
			 MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_set_dropped_handler(none, NULL), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_read(nothing, 0, &n), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_copy(nothing, &n), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_get_timestamp(nothing, &stamp), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_event_get_source(nothing, &n), MPI_T_ERR_INVALID_HANDLE);
}

/* The events of one handle, as its callback has seen them. */
struct seen {
	int events, lost, ended, tag, bytes, waited;
	MPI_T_cb_safety safety;
	MPI_T_event_instance instance;
	MPI_T_event_registration free_me;
};

static void see(MPI_T_event_instance instance, MPI_T_event_registration registration,
		MPI_T_cb_safety safety, void *user_data)
{
	struct seen *s = user_data;
	struct {
		MPI_Count bytes;
		int comm, source, tag, collective, waited;
	} all;
	MPI_Count bytes = -1, stamp = 0, now = 0;
	int tag = -1, source = -1;

	OK(MPI_T_event_copy(instance, &all));
	OK(MPI_T_event_read(instance, 0, &bytes));
	OK(MPI_T_event_read(instance, 3, &tag));
	assert_int_equal(all.bytes, bytes);
	assert_int_equal(all.tag, tag);
	assert_int_equal(MPI_T_event_read(instance, 6, &tag), MPI_T_ERR_INVALID_INDEX);
	OK(MPI_T_event_get_timestamp(instance, &stamp));
	OK(MPI_T_source_get_timestamp(0, &now));
	assert_true(stamp > 0 && stamp <= now);
	OK(MPI_T_event_get_source(instance, &source));
	assert_int_equal(source, 0);
	s->tag = tag;
	s->bytes = (int)bytes;
	s->waited = all.waited;
	s->safety = safety;
	s->instance = instance;
	s->events++;
	if (s->free_me) {
		assert_ptr_equal(s->free_me, registration);
		OK(MPI_T_event_handle_free(registration, NULL, NULL));
	}
}

static void count_lost(MPI_Count count, MPI_T_event_registration registration, int source,
		       MPI_T_cb_safety safety, void *user_data)
{
	struct seen *s = user_data;

	(void)registration;
	(void)safety;
	assert_int_equal(source, 0);
	s->lost += (int)count;
}

static void count_end(MPI_T_event_registration registration, MPI_T_cb_safety safety,
		      void *user_data)
{
	struct seen *s = user_data;

	(void)registration;
	(void)safety;
	s->ended++;
}

static MPI_T_event_registration watch_event(const char *name, MPI_T_cb_safety safety,
					    struct seen *s)
{
	MPI_T_event_registration r = NULL;
	int index = -1;

	OK(MPI_T_event_get_index(name, &index));
	OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r));
	OK(MPI_T_event_register_callback(r, safety, MPI_INFO_NULL, s, see));
	return r;
}

static void receive_late(int tag, int bytes)
{
	char out[8] = "", in[8];

	OK(MPI_Send(out, bytes, MPI_CHAR, 0, tag, MPI_COMM_SELF));
	OK(MPI_Probe(0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE)); /* makes it come */
	OK(MPI_Recv(in, 8, MPI_CHAR, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE));
}

static void messages_raise_events_until_the_handle_is_freed(void **state)
{
	struct seen early = { 0 }, matched = { 0 };
	MPI_T_event_registration a, b, gone;

	(void)state;
	a = watch_event("mpi_message_unexpected", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, &early);
	b = watch_event("mpi_message_matched", MPI_T_CB_REQUIRE_MPI_RESTRICTED, &matched);
	receive_late(17, 5);
	assert_int_equal(early.events, 1);
	assert_int_equal(early.tag, 17);
	assert_int_equal(early.bytes, 5);
	assert_int_equal(early.safety, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
	assert_int_equal(matched.events, 1);
	assert_int_equal(matched.tag, 17);
	assert_int_equal(matched.waited, 1);
	send_to_self(1); /* its receive is posted */
	assert_int_equal(early.events, 1);
	assert_int_equal(matched.events, 2);
	assert_int_equal(matched.waited, 0);
	assert_int_equal(MPI_T_event_read(matched.instance, 0, &early), MPI_T_ERR_INVALID_HANDLE);
	gone = a;
	OK(MPI_T_event_handle_free(a, &early, count_end));
	assert_int_equal(early.ended, 1);
	assert_int_equal(MPI_T_event_handle_free(gone, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
	receive_late(18, 1);
	assert_int_equal(early.events, 1);
	assert_int_equal(matched.events, 3);
	OK(MPI_T_event_register_callback(b, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL,
					 NULL));
	receive_late(19, 1);
	assert_int_equal(matched.events, 3);
	OK(MPI_T_event_handle_free(b, NULL, NULL));
}

static void a_callback_may_free_its_handle(void **state)
{
	struct seen s = { 0 };

	(void)state;
	s.free_me = watch_event("mpi_message_matched", MPI_T_CB_REQUIRE_THREAD_SAFE, &s);
	receive_late(1, 1);
	receive_late(2, 1);
	assert_int_equal(s.events, 1);
	assert_int_equal(s.tag, 1);
	assert_int_equal(MPI_T_event_handle_free(s.free_me, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

/* A callback without restrictions runs around a wait only. Here it is called later than 1024
 * events, the most that are kept. */
static void events_that_are_not_seen_in_time_are_counted(void **state)
{
	enum { MESSAGES = 3000 };
	struct seen s = { 0 };
	MPI_T_event_registration r;
	MPI_Request request;
	char byte = 0;
	int flag = 0;

	(void)state;
	r = watch_event("mpi_message_matched", MPI_T_CB_REQUIRE_NONE, &s);
	OK(MPI_T_event_set_dropped_handler(r, count_lost));
	for (int i = 0; i < MESSAGES; i++) {
		OK(MPI_Send(&byte, 1, MPI_CHAR, 0, 3, MPI_COMM_SELF));
		OK(MPI_Irecv(&byte, 1, MPI_CHAR, 0, 3, MPI_COMM_SELF, &request));
		for (flag = 0; !flag;)
			OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
	}
	assert_int_equal(s.events + s.lost, 0);
	send_to_self(1); /* it waits, or not; a probe for what is not here does */
	OK(MPI_Irecv(&byte, 1, MPI_CHAR, 0, 3, MPI_COMM_SELF, &request));
	OK(MPI_Send(&byte, 1, MPI_CHAR, 0, 3, MPI_COMM_SELF));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	assert_int_equal(s.safety, MPI_T_CB_REQUIRE_NONE);
	assert_true(s.lost >= MESSAGES - 1024);
	assert_int_equal(s.events + s.lost, MESSAGES + 2);
	OK(MPI_T_event_handle_free(r, &s, count_end));
	assert_int_equal(s.ended, 1);
}

static void hints_of_events_are_none(void **state)
{
	struct seen s = { 0 };
	MPI_T_event_registration r;
	MPI_Info info = MPI_INFO_NULL;
	int keys = -1;

	(void)state;
	r = watch_event("mpi_wait_begin", MPI_T_CB_REQUIRE_NONE, &s);
	OK(MPI_T_event_handle_set_info(r, MPI_INFO_NULL));
	OK(MPI_T_event_handle_get_info(r, &info));
	OK(MPI_Info_get_nkeys(info, &keys));
	assert_int_equal(keys, 0);
	OK(MPI_Info_free(&info));
	OK(MPI_T_event_callback_set_info(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
	OK(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info));
	OK(MPI_Info_free(&info));
	assert_int_equal(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_THREAD_SAFE, &info),
			 MPI_T_ERR_INVALID);
	assert_int_equal(
		MPI_T_event_register_callback(r, (MPI_T_cb_safety)5, MPI_INFO_NULL, NULL, see),
		MPI_T_ERR_INVALID);
	/* MPI_T_finalize ends the handle */
}

/* ---- variables of an object ------------------------------------------------------------------ */

static unsigned long value_of(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
	unsigned long value = 99;

	OK(MPI_T_pvar_read(session, handle, &value));
	return value;
}

static void variables_of_a_communicator_are_its_own(void **state)
{
	MPI_T_pvar_session session;
	MPI_T_pvar_handle here, there, of_world, posted;
	MPI_Comm copy;
	MPI_Request request;
	unsigned long value;
	char byte = 0;
	int index, count, bind = -1;

	(void)state;
	OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
	OK(MPI_T_pvar_session_create(&session));
	OK(MPI_T_pvar_get_index("mpi_comm_unexpected_now", MPI_T_PVAR_CLASS_LEVEL, &index));
	OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &bind, NULL,
			       NULL, NULL));
	assert_int_equal(bind, MPI_T_BIND_MPI_COMM);
	OK(MPI_T_pvar_handle_alloc(session, index, &copy, &here, &count));
	OK(MPI_T_pvar_handle_alloc(session, index, &(MPI_Comm){ MPI_COMM_WORLD }, &of_world,
				   &count));
	OK(MPI_T_pvar_get_index("mpi_comm_receives_now", MPI_T_PVAR_CLASS_LEVEL, &index));
	OK(MPI_T_pvar_handle_alloc(session, index, &copy, &posted, &count));
	OK(MPI_T_pvar_get_index("mpi_comm_collectives", MPI_T_PVAR_CLASS_COUNTER, &index));
	OK(MPI_T_pvar_handle_alloc(session, index, &copy, &there, &count));
	assert_int_equal(MPI_T_pvar_handle_alloc(session, index, &(MPI_Comm){ MPI_COMM_NULL },
						 &there, &count),
			 MPI_T_ERR_INVALID_HANDLE);

	OK(MPI_Send(&byte, 1, MPI_CHAR, 0, 4, copy));
	OK(MPI_Probe(0, 4, copy, MPI_STATUS_IGNORE));
	assert_int_equal(value_of(session, here), 1);
	assert_int_equal(value_of(session, of_world), 0);
	OK(MPI_Recv(&byte, 1, MPI_CHAR, 0, 4, copy, MPI_STATUS_IGNORE));
	assert_int_equal(value_of(session, here), 0);
	OK(MPI_Irecv(&byte, 1, MPI_CHAR, 0, 5, copy, &request));
	assert_int_equal(value_of(session, posted), 1);
	OK(MPI_Send(&byte, 1, MPI_CHAR, 0, 5, copy));
	OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	assert_int_equal(value_of(session, posted), 0);
	OK(MPI_T_pvar_reset(session, there));
	OK(MPI_Barrier(copy));
	OK(MPI_Barrier(copy));
	assert_int_equal(value_of(session, there), 2);

	OK(MPI_Comm_free(&copy));
	assert_int_equal(MPI_T_pvar_read(session, there, &value), MPI_T_ERR_INVALID_HANDLE);
	assert_int_equal(MPI_T_pvar_reset(session, there), MPI_T_ERR_INVALID_HANDLE);
	OK(MPI_T_pvar_handle_free(session, &there));
	OK(MPI_T_pvar_session_free(&session));
}

static int start(void **state)
{
	OK(MPI_Init(NULL, NULL));
	return begin(state);
}

static int stop(void **state)
{
	OK(MPI_Finalize());
	return end(state);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_works_outside_of_init_and_finalize),
		TEST(every_control_variable_can_be_found_and_read),
		TEST(every_performance_variable_can_be_found_and_read),
		TEST(values_are_those_of_the_environment),
		TEST(strings_tell_their_length_and_are_cut),
		cmocka_unit_test_setup(messages_are_counted_for_each_handle_from_its_reset, start),
		cmocka_unit_test(portals_counts_too),
		cmocka_unit_test(handles_and_sessions_that_do_not_exist_are_refused),
		cmocka_unit_test(every_variable_is_in_one_category),
		cmocka_unit_test(every_event_type_is_described),
		cmocka_unit_test(the_source_has_a_clock),
		cmocka_unit_test(what_is_no_handle_of_an_event_is_refused),
		cmocka_unit_test(messages_raise_events_until_the_handle_is_freed),
		cmocka_unit_test(a_callback_may_free_its_handle),
		cmocka_unit_test(events_that_are_not_seen_in_time_are_counted),
		cmocka_unit_test(variables_of_a_communicator_are_its_own),
		cmocka_unit_test_teardown(hints_of_events_are_none, stop),
		cmocka_unit_test(nothing_works_outside_of_init_and_finalize),
		TEST(every_performance_variable_can_be_found_and_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
