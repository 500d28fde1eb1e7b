/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The configuration table: what the environment gives, what it is refused, and what is said about
 * it. base_config() reads once per process, so every case runs in a child of its own with its own
 * environment; the child's stderr and a few values come back through pipes.
 */
#define _GNU_SOURCE /* environ, clearenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

struct outcome {
	char values[1024]; /* what the child's body printed */
	char said[8192];   /* what the library said on stderr */
};

static void read_all(int fd, char *buf, size_t len)
{
	size_t have = 0;
	ssize_t n;

	while (have < len - 1 && (n = read(fd, buf + have, len - 1 - have)) > 0)
		have += (size_t)n;
	buf[have] = '\0';
	close(fd);
}

/* Runs body(out) in a child whose environment is exactly `env`, a NULL-terminated list. */
static struct outcome in_child(const char *const *env, void (*body)(FILE *out))
{
	struct outcome outcome;
	int values[2];
	int said[2];
	int status;
	pid_t child;

	assert_int_equal(pipe(values), 0);
	assert_int_equal(pipe(said), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		FILE *out = fdopen(values[1], "w");

		dup2(said[1], STDERR_FILENO);
		environ = (char **)(uintptr_t)env;
		body(out);
		fclose(out);
		_exit(0);
	}
	close(values[1]);
	close(said[1]);
	read_all(values[0], outcome.values, sizeof(outcome.values));
	read_all(said[0], outcome.said, sizeof(outcome.said));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return outcome;
}

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void print_values(FILE *out)
{
	const struct base_config *c = base_config();

	fprintf(out, "nal=%s iface=%s progress=%d spin=%ld cray=%d eager=%ld debug=%ld file=%s",
		c->ptl_nal, c->ptl_iface ? c->ptl_iface : "-", c->ptl_progress, c->ptl_spin_us,
		c->ptl_cray, c->ptl_shm_eager, c->ptl_debug, c->ptl_pid2port_file);
}

#define DEFAULTS                                                                                   \
	"nal=auto iface=- progress=0 spin=-1 cray=0 eager=32768 debug=0 file=./map_pid2port"

static void empty_environment_gives_defaults(void **state)
{
	struct outcome o = in_child(ENV("PATH=/bin"), print_values);

	(void)state;
	assert_string_equal(o.values, DEFAULTS);
	assert_string_equal(o.said, "");
}

static void good_values_are_taken(void **state)
{
	struct outcome o = in_child(ENV("PTL_NAL=shm", "PTL_IFACE=eth0", "PTL_PROGRESS=thread",
					"PTL_SPIN_US=20", "PTL_CRAY=yes", "PTL_SHM_EAGER=0",
					"PTL_DEBUG=0x7fffffff", "PTL_PID2PORT_FILE=/etc/map"),
				    print_values);

	(void)state;
	assert_string_equal(o.values, "nal=shm iface=eth0 progress=2 spin=20 cray=1 eager=0 "
				      "debug=2147483647 file=/etc/map");
	assert_string_equal(o.said, "");
}

static void empty_string_counts_as_unset(void **state)
{
	struct outcome o =
		in_child(ENV("PTL_IFACE=", "PTL_SPIN_US=", "PTL_PROGRESS="), print_values);

	(void)state;
	assert_string_equal(o.values, DEFAULTS);
	assert_string_equal(o.said, "");
}

/* A refused value: the default stays, and the line names variable, value, range and default. */
static void check_refused(const char *entry, const char *range, const char *def)
{
	struct outcome o = in_child(ENV(entry), print_values);
	size_t name_len = strcspn(entry, "=");
	char head[64];

	assert_string_equal(o.values, DEFAULTS);
	snprintf(head, sizeof(head), "%.*s=\"%s\"", (int)name_len, entry, entry + name_len + 1);
	assert_non_null(strstr(o.said, head));
	assert_non_null(strstr(o.said, range));
	assert_non_null(strstr(o.said, def));
	assert_int_equal(strcspn(o.said, "\n") + 1, strlen(o.said)); /* one line */
}

static void malformed_values_are_refused_by_name(void **state)
{
	(void)state;
	check_refused("PTL_SPIN_US=fast", "from -1 to 1000000, microseconds", "default, -1");
	check_refused("PTL_SPIN_US=10us", "from -1 to 1000000", "default, -1");
	check_refused("PTL_PROGRESS=thrd", "auto|poll|thread", "default, auto");
	check_refused("PTL_PROGRESS=auto|poll", "auto|poll|thread", "default, auto");
	check_refused("PTL_CRAY=2", "0|1|no|yes", "default, 0");
}

static void values_out_of_range_are_refused(void **state)
{
	(void)state;
	check_refused("PTL_SPIN_US=-2", "from -1 to 1000000", "default, -1");
	check_refused("PTL_SPIN_US=1000001", "from -1 to 1000000", "default, -1");
	check_refused("PTL_SHM_EAGER=99999999999999999999", "from 0 to", "default, 32768");
}

static void unknown_variable_gets_a_suggestion(void **state)
{
	struct outcome o = in_child(ENV("PTL_PROGRES=poll"), print_values);

	(void)state;
	assert_non_null(strstr(o.said, "PTL_PROGRES is not"));
	assert_non_null(strstr(o.said, "did you mean PTL_PROGRESS?"));
	o = in_child(ENV("PTL_QWERTZUIOP=1"), print_values);
	assert_non_null(strstr(o.said, "PTL_QWERTZUIOP is not"));
	assert_null(strstr(o.said, "did you mean"));
	o = in_child(ENV("OTHER_VARIABLE=1", "PTLX=1"), print_values);
	assert_string_equal(o.said, "");
}

static void print_and_warn(FILE *out)
{
	print_values(out);
	base_warn("a warning");
}

static void quiet_silences_every_warning(void **state)
{
	/* PTL_QUIET counts even for what stands before it */
	struct outcome o =
		in_child(ENV("PTL_SPIN_US=x", "PTL_NOSUCH=1", "PTL_QUIET=1"), print_and_warn);

	(void)state;
	assert_string_equal(o.values, DEFAULTS);
	assert_string_equal(o.said, "");
}

static void warn_with_errno(FILE *out)
{
	errno = ENOENT;
	base_warn("opening %s: %m", "file");
	fprintf(out, "%ld %d", (long)getpid(), errno == ENOENT);
}

static void warning_is_one_line_with_pid_and_errno(void **state)
{
	struct outcome o = in_child(ENV("PATH=/bin"), warn_with_errno);
	char expected[128];

	(void)state;
	snprintf(expected, sizeof(expected), "postern[%ld]: opening file: %s\n",
		 strtol(o.values, NULL, 10), strerror(ENOENT));
	assert_string_equal(o.said, expected);
	assert_string_equal(strchr(o.values, ' '), " 1"); /* errno is kept */
}

static void warn_long(FILE *out)
{
	char text[4000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	base_warn("%s", text);
	fprintf(out, "alive");
}

static void long_warning_is_printed_whole(void **state)
{
	struct outcome o = in_child(ENV("PATH=/bin"), warn_long);

	(void)state;
	assert_string_equal(o.values, "alive");
	assert_int_equal(strspn(strchr(o.said, ' ') + 1, "x"), 3999);
	assert_int_equal(o.said[strlen(o.said) - 1], '\n');
}

/* The remedy stands at the end. */
static void warn_held(FILE *out)
{
	char path[900];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	base_hold_warnings(true);
	base_warn("%s is wrong; correct it", path);
	base_warn("%s is worse; remove it", path);
	base_hold_warnings(false);
	fprintf(out, "%s", strstr(base_warnings(), "remove") ? "whole" : "cut");
}

static void held_warnings_keep_their_remedies(void **state)
{
	struct outcome o = in_child(ENV("PATH=/bin"), warn_held);

	(void)state;
	assert_string_equal(o.values, "whole");
	assert_string_equal(o.said, "");
}

static void change_environment_later(FILE *out)
{
	base_config();
	setenv("PTL_NAL", "udp", 1);
	setenv("PTL_SPIN_US", "7", 1);
	clearenv();
	print_values(out);
}

static void print_renamed(FILE *out)
{
	const struct base_config *c = base_config();

	fprintf(out, "shmcoll=%d rma=%d", c->ptl_mpi_shmcoll, c->ptl_mpi_rma == BASE_RMA_CMA);
}

static void old_names_are_good_for_a_release_more(void **state)
{
	struct outcome o = in_child(ENV("PTL_MPI_HUB=no", "PTL_MPI_RMA=attach"), print_renamed);

	(void)state;
	assert_string_equal(o.values, "shmcoll=0 rma=1");
	assert_non_null(strstr(o.said, "PTL_MPI_HUB is now PTL_MPI_SHMCOLL"));
	assert_non_null(strstr(o.said, "PTL_MPI_RMA=attach is now PTL_MPI_RMA=cma"));
	o = in_child(ENV("PTL_MPI_HUB=no", "PTL_MPI_SHMCOLL=yes", "PTL_MPI_RMA=cma"),
		     print_renamed);
	assert_string_equal(o.values, "shmcoll=1 rma=1");
	assert_string_equal(o.said, "");
	o = in_child(ENV("PTL_MPI_HUB="), print_renamed);
	assert_string_equal(o.said, "");
	o = in_child(ENV("PTL_MPI_SHMCOLL=no", "PTL_MPI_RMA=cma"), print_renamed);
	assert_string_equal(o.values, "shmcoll=0 rma=1");
	assert_string_equal(o.said, "");
	o = in_child(ENV("PTL_QUIET=1", "PTL_MPI_HUB=no", "PTL_MPI_RMA=attach"), print_renamed);
	assert_string_equal(o.values, "shmcoll=0 rma=1");
	assert_string_equal(o.said, "");
}

static void later_setenv_has_no_effect(void **state)
{
	struct outcome o = in_child(ENV("PTL_NAL=shm"), change_environment_later);

	(void)state;
	assert_non_null(strstr(o.values, "nal=shm "));
	assert_non_null(strstr(o.values, "spin=-1"));
}

static void *call_config(void *arg)
{
	pthread_barrier_wait(arg);
	return (void *)(uintptr_t)base_config()->ptl_nal;
}

static void call_from_threads(FILE *out)
{
	enum { THREADS = 8 };
	pthread_barrier_t barrier;
	pthread_t threads[THREADS];
	int same = 0;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call_config, &barrier);
	for (int i = 0; i < THREADS; i++) {
		void *nal;

		pthread_join(threads[i], &nal);
		same += nal == (const void *)base_config()->ptl_nal;
	}
	fprintf(out, "%d of %d", same, THREADS);
}

static void threads_see_one_parse(void **state)
{
	struct outcome o = in_child(ENV("PTL_NAL=shm", "PTL_NOSUCH=1"), call_from_threads);

	(void)state;
	assert_string_equal(o.values, "8 of 8");
	assert_int_equal(strcspn(o.said, "\n") + 1, strlen(o.said)); /* warned once */
}

static void print_origins(FILE *out)
{
	fprintf(out, "%d %d %d %d", base_config_is_set("PTL_NAL"), base_config_is_set("PTL_IFACE"),
		base_config_is_set("PTL_SPIN_US"), base_config_is_set("PTL_NO"));
}

static void is_set_tells_accepted_values_only(void **state)
{
	struct outcome o = in_child(ENV("PTL_NAL=auto", "PTL_SPIN_US=bad"), print_origins);

	(void)state;
	assert_string_equal(o.values, "1 0 0 0");
}

static void print_texts(FILE *out)
{
	const struct base_config_var *var;
	char value[64];
	char def[64];

	for (size_t i = 0; (var = base_config_var(i)); i++) {
		base_config_value_text(var, value, sizeof(value));
		base_config_default_text(var, def, sizeof(def));
		if (strcmp(value, def))
			fprintf(out, "%s %s %s;", var->name, value, def);
	}
}

static void iterator_gives_value_and_default_text(void **state)
{
	struct outcome o =
		in_child(ENV("PTL_NAL=shm", "PTL_SHM_LONG=claim", "PTL_REPORT=on", "PTL_SPIN_US=5"),
			 print_texts);

	(void)state;
	assert_string_equal(o.values, "PTL_NAL shm auto;PTL_SPIN_US 5 -1;PTL_REPORT 1 0;"
				      "PTL_SHM_LONG claim auto;");
}

/* With a hint, for one release. */
static void old_values_mean_new_ones(void **state)
{
	struct outcome o = in_child(ENV("PTL_SHM_LONG=splice", "PTL_MPI_RMA=attach"), print_texts);

	(void)state;
	assert_string_equal(o.values, "PTL_MPI_RMA cma auto;");
	assert_non_null(strstr(o.said, "PTL_SHM_LONG=splice is now PTL_SHM_LONG=auto;"));
	assert_non_null(strstr(o.said, "PTL_MPI_RMA=attach is now PTL_MPI_RMA=cma;"));
}

/* The name and the field of a row are written twice; they must be the same word. */
static void every_field_is_its_variable_in_lower_case(void **state)
{
#define PAIR(name, field, ...) { #name, #field },
	static const struct {
		const char *name, *field;
	} pairs[] = { BASE_CONFIG_TABLE(PAIR) };
#undef PAIR

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char lower[64];
		size_t len = strlen(pairs[i].name);

		assert_true(len < sizeof(lower));
		for (size_t j = 0; j <= len; j++)
			lower[j] = (char)tolower((unsigned char)pairs[i].name[j]);
		assert_string_equal(lower, pairs[i].field);
	}
}

static void every_row_is_consistent(void **state)
{
	const struct base_config_var *var;

	(void)state;
	for (size_t i = 0; (var = base_config_var(i)); i++) {
		assert_true(strlen(var->help) > 10);
		if (var->type == BASE_CONFIG_STR)
			continue;
		assert_true(var->min <= var->def_num && var->def_num <= var->max);
		if (var->type == BASE_CONFIG_ENUM) {
			long bars = 0;

			for (const char *c = var->choices; *c; c++)
				bars += *c == '|';
			assert_int_equal(var->max, bars);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_environment_gives_defaults),
		cmocka_unit_test(good_values_are_taken),
		cmocka_unit_test(empty_string_counts_as_unset),
		cmocka_unit_test(malformed_values_are_refused_by_name),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(unknown_variable_gets_a_suggestion),
		cmocka_unit_test(quiet_silences_every_warning),
		cmocka_unit_test(warning_is_one_line_with_pid_and_errno),
		cmocka_unit_test(long_warning_is_printed_whole),
		cmocka_unit_test(held_warnings_keep_their_remedies),
		cmocka_unit_test(old_names_are_good_for_a_release_more),
		cmocka_unit_test(later_setenv_has_no_effect),
		cmocka_unit_test(threads_see_one_parse),
		cmocka_unit_test(is_set_tells_accepted_values_only),
		cmocka_unit_test(iterator_gives_value_and_default_text),
		cmocka_unit_test(old_values_mean_new_ones),
		cmocka_unit_test(every_field_is_its_variable_in_lower_case),
		cmocka_unit_test(every_row_is_consistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
