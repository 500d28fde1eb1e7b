/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line of comb. Each list is measured in all combinations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comb.h"

const char comb_usage[] =
	"usage: mpiexec -n 2 comb [OPTION...] [METHOD...]\n"
	"\n"
	"How much of the processor an MPI leaves to a program while messages are under way: rank "
	"0\n"
	"works and is measured, rank 1 exchanges messages with it. Lists are separated by commas.\n"
	"\n"
	"methods (default: both)\n"
	"  pww        post-work-wait: messages are posted, work is done, then they are waited for\n"
	"  polling    messages go to and fro while work is done, and are looked at after each "
	"piece\n"
	"             of it\n"
	"\n"
	"  --side LIST       what rank 0 does with the messages: receive, send, both (receive)\n"
	"  --size LIST       bytes, or with K or M behind them (10K,100K,1M,4M)\n"
	"  --batch N         messages in a cycle, or under way when polling, 1 to 64 (10)\n"
	"  --tests LIST      calls of MPI_Test in the middle of the work phase: 0, 1 (0,1)\n"
	"  --work LIST       compute (does not touch memory), memory (sweeps an array) (compute)\n"
	"  --array SIZE      how long that array is (4M)\n"
	"  --interval LIST   us of work in a cycle, or between two polls (chosen by size and "
	"batch)\n"
	"  --time MS         spent on each point, about (200)\n"
	"  --json FILE       write the figures there; - is standard output, the tables then go to\n"
	"                    standard error\n"
	"  --help            this text\n";

struct word {
	const char *name;
	int value;
};

static const struct word methods[] = { { "pww", COMB_PWW }, { "polling", COMB_POLLING }, { 0 } };
static const struct word sides[] = {
	{ "receive", COMB_RECEIVE }, { "send", COMB_SEND }, { "both", COMB_BOTH }, { 0 }
};
static const struct word works[] = { { "compute", COMB_COMPUTE },
				     { "memory", COMB_MEMORY },
				     { 0 } };
static const struct word tests[] = { { "0", 0 }, { "1", 1 }, { 0 } };

/* The values of an option: words, or numbers of which `scale` is the unit. */
struct rule {
	const char *option;
	const struct word *words;
	int bytes; /* K and M may stand behind them */
	int whole;
	double least, most;
};

static int is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && !strncmp(text, word, length);
}

static int parse_word(const struct rule *rule, const char *text, size_t length, double *out,
		      char error[COMB_ERROR])
{
	int at;

	for (const struct word *w = rule->words; w->name; w++) {
		if (is_word(text, length, w->name)) {
			*out = w->value;
			return 0;
		}
	}
	at = snprintf(error, COMB_ERROR, "%s: there is no '%.*s'; there are", rule->option,
		      (int)(length < 40 ? length : 40), text);
	for (const struct word *w = rule->words; w->name; w++)
		at += snprintf(error + at, COMB_ERROR - (size_t)at, " %s", w->name);
	return -1;
}

static int parse_number(const struct rule *rule, const char *text, size_t length, double *out,
			char error[COMB_ERROR])
{
	const char *stop = text + length;
	char *end;
	double value = strtod(text, &end);

	if (end > text && end < stop && rule->bytes && strchr("KkMm", *end))
		value *= *end == 'K' || *end == 'k' ? 1024 : 1 << 20, end++;
	if (end == text || end != stop || !(value >= rule->least && value <= rule->most) ||
	    (rule->whole && value != (double)(long)value)) {
		snprintf(error, COMB_ERROR, "%s: '%.*s' is not a %snumber from %.10g to %.10g",
			 rule->option, (int)(length < 40 ? length : 40), text,
			 rule->whole ? "whole " : "", rule->least, rule->most);
		return -1;
	}
	*out = value;
	return 0;
}

static int parse_list(const struct rule *rule, const char *text, struct comb_list *out,
		      char error[COMB_ERROR])
{
	out->count = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		double *value = &out->value[out->count];

		if (out->count++ == COMB_MOST_LIST) {
			snprintf(error, COMB_ERROR, "%s: more than %d values", rule->option,
				 COMB_MOST_LIST);
			return -1;
		}
		if (rule->words ? parse_word(rule, text, length, value, error)
				: parse_number(rule, text, length, value, error))
			return -1;
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

static int parse_one(const struct rule *rule, const char *text, double *out, char error[COMB_ERROR])
{
	return rule->words ? parse_word(rule, text, strlen(text), out, error)
			   : parse_number(rule, text, strlen(text), out, error);
}

static int parse_option(struct comb_options *o, const char *name, const char *value,
			char error[COMB_ERROR])
{
	const struct {
		struct rule rule;
		struct comb_list *list;
		double *one;
	} rules[] = {
		{ { .option = "--side", .words = sides }, &o->sides, NULL },
		{ { .option = "--tests", .words = tests }, &o->tests, NULL },
		{ { .option = "--work", .words = works }, &o->works, NULL },
		{ { "--size", NULL, 1, 1, 4, 64 << 20 }, &o->sizes, NULL },
		{ { "--interval", NULL, 0, 0, 0.1, 1e6 }, &o->intervals, NULL },
	};
	const struct rule batch = { "--batch", NULL, 0, 1, 1, COMB_MOST_BATCH };
	const struct rule array = { "--array", NULL, 1, 1, 4096, 1 << 30 };
	const struct rule time = { "--time", NULL, 0, 0, 1, 60000 };
	double number = 0;
	int failed;

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (!strcmp(name, rules[i].rule.option))
			return parse_list(&rules[i].rule, value, rules[i].list, error);
	if (!strcmp(name, "--batch")) {
		failed = parse_one(&batch, value, &number, error);
		o->batch = (int)number;
	} else if (!strcmp(name, "--array")) {
		failed = parse_one(&array, value, &number, error);
		o->array = (size_t)number;
	} else if (!strcmp(name, "--time")) {
		failed = parse_one(&time, value, &number, error);
		o->ns = number * 1e6;
	} else {
		o->json = value;
		failed = 0;
	}
	return failed;
}

static int is_option(const char *name)
{
	static const char *const names[] = { "--side",     "--size", "--batch", "--tests", "--work",
					     "--interval", "--time", "--json",  "--array" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return 1;
	return 0;
}

/* One argument, and its value with it; how many arguments that were, or -1. */
static int parse_argument(char **arg, struct comb_options *o, char error[COMB_ERROR])
{
	const struct rule method = { .option = "methods", .words = methods };
	double value;

	if (!strcmp(*arg, "--help") || !strcmp(*arg, "-h")) {
		o->help = 1;
		return 1;
	}
	if (**arg != '-') {
		if (parse_one(&method, *arg, &value, error))
			return -1;
		if (o->methods.count < COMB_MOST_LIST)
			o->methods.value[o->methods.count++] = value;
		return 1;
	}
	if (!is_option(*arg)) {
		snprintf(error, COMB_ERROR, "there is no option '%.60s'; try --help", *arg);
		return -1;
	}
	if (!arg[1]) {
		snprintf(error, COMB_ERROR, "%s: its value is missing", *arg);
		return -1;
	}
	return parse_option(o, arg[0], arg[1], error) ? -1 : 2;
}

static int check(const struct comb_options *o, char error[COMB_ERROR])
{
	const double most = 1 << 30;

	for (int i = 0; i < o->sizes.count; i++) {
		if (o->sizes.value[i] * o->batch > most) {
			snprintf(error, COMB_ERROR,
				 "%d messages of %.0f bytes are more than 1 GiB; take a smaller "
				 "--batch or --size",
				 o->batch, o->sizes.value[i]);
			return -1;
		}
	}
	return 0;
}

int comb_parse(int argc, char **argv, struct comb_options *o, char error[COMB_ERROR])
{
	*o = (struct comb_options){
		.sides = { 1, { COMB_RECEIVE } },
		.sizes = { 4, { 10 << 10, 100 << 10, 1 << 20, 4 << 20 } },
		.works = { 1, { COMB_COMPUTE } },
		.tests = { 2, { 0, 1 } },
		.batch = 10,
		.array = 4 << 20,
		.ns = 200e6,
	};
	for (int i = 1; i < argc;) {
		int took = parse_argument(argv + i, o, error);

		if (took < 0)
			return -1;
		i += took;
	}
	if (!o->methods.count)
		o->methods = (struct comb_list){ 2, { COMB_PWW, COMB_POLLING } };
	return check(o, error);
}

void comb_intervals(const struct comb_options *o, enum comb_method method, size_t size,
		    struct comb_list *out)
{
	static const struct comb_list pww = { 6, { 0.25, 0.5, 1, 2, 4, 8 } };
	static const struct comb_list polling = { 7, { 1.0 / 16, 0.25, 0.5, 1, 2, 4, 16 } };
	const double bytes_per_ns = 4;
	double unit = 1e3; /* one us */

	*out = o->intervals;
	if (!out->count && method == COMB_PWW) {
		*out = pww;
		unit = (double)size * o->batch / bytes_per_ns;
	} else if (!out->count) {
		*out = polling;
		unit = (double)size / bytes_per_ns;
	}
	for (int i = 0; i < out->count; i++)
		out->value[i] *= unit;
}
