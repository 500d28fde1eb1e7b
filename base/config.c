/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The only reader of the environment. It walks the environment once, checks each value against
 * the table of config.h, and warns of values it cannot use, naming the remedy.
 */
#define _GNU_SOURCE /* environ */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

#define DEFAULT_STR(def)  .def_str = (def)
#define DEFAULT_INT(def)  .def_num = (def)
#define DEFAULT_BOOL(def) .def_num = (def)
#define DEFAULT_ENUM(def) .def_num = (def)
#define VAR(name_, field, type_, def, min_, max_, choices_, help_)                                 \
	{ .name = #name_,                                                                          \
	  .type = BASE_CONFIG_##type_,                                                             \
	  .offset = offsetof(struct base_config, field),                                           \
	  DEFAULT_##type_(def),                                                                    \
	  .min = (min_),                                                                           \
	  .max = (max_),                                                                           \
	  .choices = (choices_),                                                                   \
	  .help = (help_) },

static const struct base_config_var vars[] = { BASE_CONFIG_TABLE(VAR) };
enum { N_VARS = sizeof(vars) / sizeof(vars[0]) };

/* Written once, under `once`; constant afterwards. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct base_config config;
static bool from_env[N_VARS];
static _Atomic bool hushed;

static void put_num(struct base_config *cfg, const struct base_config_var *var, long value)
{
	void *field = (char *)cfg + var->offset;

	if (var->type == BASE_CONFIG_BOOL)
		*(bool *)field = value;
	else if (var->type == BASE_CONFIG_ENUM)
		*(int *)field = (int)value;
	else
		*(long *)field = value;
}

static long get_num(const struct base_config *cfg, const struct base_config_var *var)
{
	const void *field = (const char *)cfg + var->offset;

	if (var->type == BASE_CONFIG_BOOL)
		return *(const bool *)field;
	if (var->type == BASE_CONFIG_ENUM)
		return *(const int *)field;
	return *(const long *)field;
}

static const char **str_field(struct base_config *cfg, const struct base_config_var *var)
{
	return (const char **)(void *)((char *)cfg + var->offset);
}

static void put_default(struct base_config *cfg, const struct base_config_var *var)
{
	if (var->type == BASE_CONFIG_STR)
		*str_field(cfg, var) = var->def_str;
	else
		put_num(cfg, var, var->def_num);
}

/* Find choice number `index`: its start and length, or NULL and 0 after the last. */
static const char *choice_at(const char *choices, long index, size_t *len)
{
	*len = 0;
	while (index-- > 0) {
		choices = strchr(choices, '|');
		if (!choices)
			return NULL;
		choices++;
	}
	*len = strcspn(choices, "|");
	return choices;
}

static bool parse_enum(const char *choices, const char *text, long *value)
{
	const char *word;
	size_t len;

	for (long i = 0; (word = choice_at(choices, i, &len)); i++) {
		if (strlen(text) == len && !strncasecmp(text, word, len)) {
			*value = i;
			return true;
		}
	}
	return false;
}

static bool parse_bool(const char *text, long *value)
{
	/* the index of the word, modulo two, is its meaning */
	if (!parse_enum("0|1|no|yes|off|on|false|true", text, value))
		return false;
	*value &= 1;
	return true;
}

static bool parse_int(const struct base_config_var *var, const char *text, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, !strncasecmp(text, "0x", 2) ? 16 : 10);
	return !errno && end != text && !*end && *value >= var->min && *value <= var->max;
}

static bool parse_value(const struct base_config_var *var, const char *text, long *value)
{
	switch (var->type) {
	case BASE_CONFIG_ENUM:
		return parse_enum(var->choices, text, value);
	case BASE_CONFIG_BOOL:
		return parse_bool(text, value);
	default:
		return parse_int(var, text, value);
	}
}

static bool warns(void)
{
	return !hushed && !config.ptl_quiet;
}

static void say_bad_value(const struct base_config_var *var, const char *text)
{
	char def[128];
	char allowed[192];

	base_config_default_text(var, def, sizeof(def));
	if (var->type == BASE_CONFIG_INT)
		snprintf(allowed, sizeof(allowed), "a number from %ld to %ld%s%s", var->min,
			 var->max, *var->choices ? ", " : "", var->choices);
	else
		snprintf(allowed, sizeof(allowed), "one of %s",
			 var->type == BASE_CONFIG_BOOL ? "0|1|no|yes|off|on|false|true"
						       : var->choices);
	base_say("%s=\"%.100s\" is not %s; using the default, %s", var->name, text, allowed, def);
}

/* Names of the last release: still accepted, with a hint. */
static const struct {
	const char *old, *now;
} renamed[] = { { "PTL_MPI_HUB", "PTL_MPI_SHMCOLL" } };

static const struct {
	const char *setting, *old, *now;
} renamed_values[] = { { "PTL_MPI_RMA", "attach", "cma" }, { "PTL_SHM_LONG", "splice", "auto" } };

/* The present name of a value. */
static const char *value_now(const struct base_config_var *var, const char *text)
{
	for (size_t i = 0; i < sizeof(renamed_values) / sizeof(renamed_values[0]); i++) {
		if (strcmp(var->name, renamed_values[i].setting) ||
		    strcasecmp(text, renamed_values[i].old))
			continue;
		if (warns())
			base_say("%s=%s is now %s=%s; the next release does not know the old "
				 "value",
				 var->name, text, var->name, renamed_values[i].now);
		return renamed_values[i].now;
	}
	return text;
}

/* Store one value; false if it was not usable and the default stays. */
static bool take_value(struct base_config *cfg, const struct base_config_var *var, const char *text)
{
	long value;

	if (var->type == BASE_CONFIG_STR) {
		/* a copy: a later setenv may free what environ points to */
		char *copy = strdup(text);

		if (!copy)
			return false;
		*str_field(cfg, var) = copy;
		return true;
	}
	if (!parse_value(var, value_now(var, text), &value)) {
		if (warns())
			say_bad_value(var, text);
		return false;
	}
	put_num(cfg, var, value);
	return true;
}

/* Edit distance (insert, delete, replace), by rows. Names longer than the buffer count as far
 * away. */
static size_t edit_distance(const char *a, size_t a_len, const char *b)
{
	size_t row[64];
	size_t b_len = strlen(b);

	if (b_len + 1 > sizeof(row) / sizeof(row[0]))
		return a_len + b_len;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (best > row[j] + 1)
				best = row[j] + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b_len];
}

static void say_unknown(const char *name, size_t len)
{
	const struct base_config_var *nearest = NULL;
	size_t least = len / 3 + 1; /* further away is no help */

	for (size_t i = 0; i < N_VARS; i++) {
		size_t d = edit_distance(name, len, vars[i].name);

		if (d < least) {
			least = d;
			nearest = &vars[i];
		}
	}
	if (nearest)
		base_say("%.*s is not a variable Postern knows; did you mean %s?", (int)len, name,
			 nearest->name);
	else
		base_say("%.*s is not a variable Postern knows; portals-info --config lists them",
			 (int)len, name);
}

static const struct base_config_var *find_var(const char *name, size_t len)
{
	for (size_t i = 0; i < N_VARS; i++)
		if (!strncmp(vars[i].name, name, len) && !vars[i].name[len])
			return &vars[i];
	return NULL;
}

/* The name of today for an old one; NULL: it is none. */
static const char *name_now(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (!strncmp(renamed[i].old, name, len) && !renamed[i].old[len])
			return renamed[i].now;
	return NULL;
}

/* After all others: the name of today counts if both are set. */
static void read_renamed(const char *entry)
{
	size_t len = strcspn(entry, "=");
	const char *now = entry[len] ? name_now(entry, len) : NULL;
	const struct base_config_var *var = now ? find_var(now, strlen(now)) : NULL;

	if (!var || !entry[len + 1] || from_env[var - vars])
		return;
	if (warns())
		base_say("%.*s is now %s; the next release does not know the old name", (int)len,
			 entry, now);
	from_env[var - vars] = take_value(&config, var, entry + len + 1);
}

static void read_entry(const char *entry)
{
	size_t len = strcspn(entry, "=");
	const struct base_config_var *var = find_var(entry, len);

	if (!entry[len])
		return;
	if (!var) {
		if (!strncmp(entry, "PTL_", 4) && !name_now(entry, len) && warns())
			say_unknown(entry, len);
		return;
	}
	/* as for getenv(3), the first of two entries of one name counts */
	if (entry[len + 1] && !from_env[var - vars])
		from_env[var - vars] = take_value(&config, var, entry + len + 1);
}

static void read_environment(void)
{
	const char *quiet = getenv("PTL_QUIET");
	long value;

	for (size_t i = 0; i < N_VARS; i++)
		put_default(&config, &vars[i]);
	/* first, because it decides whether the errors of the others are printed */
	if (quiet && parse_bool(quiet, &value))
		config.ptl_quiet = value;
	for (char **entry = environ; entry && *entry; entry++)
		read_entry(*entry);
	for (char **entry = environ; entry && *entry; entry++)
		read_renamed(*entry);
}

const struct base_config *base_config(void)
{
	pthread_once(&once, read_environment);
	return &config;
}

void base_config_hush(void)
{
	hushed = true;
}

const struct base_config_var *base_config_var(size_t i)
{
	return i < N_VARS ? &vars[i] : NULL;
}

const char *base_config_name_now(const char *name)
{
	const char *now = name_now(name, strlen(name));

	return now ? now : name;
}

bool base_config_is_set(const char *name)
{
	const struct base_config_var *var = find_var(name, strlen(name));

	base_config();
	return var && from_env[var - vars];
}

const char *base_config_env(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static int num_text(const struct base_config_var *var, long value, char *buf, size_t buf_len)
{
	const char *word;
	size_t len;

	if (var->type != BASE_CONFIG_ENUM)
		return snprintf(buf, buf_len, "%ld", value);
	word = choice_at(var->choices, value, &len);
	return snprintf(buf, buf_len, "%.*s", (int)len, word);
}

int base_config_value_text(const struct base_config_var *var, char *buf, size_t len)
{
	const struct base_config *cfg = base_config();

	if (var->type == BASE_CONFIG_STR) {
		const char *str = *str_field(&config, var);

		return snprintf(buf, len, "%s", str ? str : "");
	}
	return num_text(var, get_num(cfg, var), buf, len);
}

int base_config_default_text(const struct base_config_var *var, char *buf, size_t len)
{
	if (var->type == BASE_CONFIG_STR)
		return snprintf(buf, len, "%s", var->def_str ? var->def_str : "");
	return num_text(var, var->def_num, buf, len);
}
