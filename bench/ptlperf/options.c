/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line of ptlperf.
 */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SIZE ((size_t)64 << 20)
#define MOST_ENTRIES ((size_t)1 << 20)

enum {
	OPT_POLL = 256,
	OPT_NO_PIN,
	OPT_CORES,
	OPT_JSON,
	OPT_QUICK,
	OPT_ENTRIES,
	OPT_PACKET,
	OPT_DEADLINE
};

static const struct option long_options[] = {
	{ "sizes", required_argument, NULL, 's' },
	{ "window", required_argument, NULL, 'w' },
	{ "min-time", required_argument, NULL, 't' },
	{ "repeat", required_argument, NULL, 'r' },
	{ "poll", no_argument, NULL, OPT_POLL },
	{ "no-pin", no_argument, NULL, OPT_NO_PIN },
	{ "cores", required_argument, NULL, OPT_CORES },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "entries", required_argument, NULL, OPT_ENTRIES },
	{ "packet", required_argument, NULL, OPT_PACKET },
	{ "deadline", required_argument, NULL, OPT_DEADLINE },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

__attribute__((noreturn, format(printf, 1, 2))) static void usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("ptlperf: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\nTry 'ptlperf --help'.\n", stderr);
	exit(2);
}

static void help(const struct perf_test_name *names, int count)
{
	puts("usage: ptlperf [options] test ...          (starts its own two processes)\n"
	     "       mpiexec -n 2 ptlperf [options] test ...\n\ntests:");
	for (int i = 0; i < count; i++)
		printf("  %-14s %s\n", names[i].name, names[i].help);
	puts("  all            everything\n\noptions:\n"
	     "  -s, --sizes LIST    message sizes: 8,64,4K,1M or a range of powers of two 8-4M\n"
	     "  -w, --window N      messages in flight (default: by size, at most 64)\n"
	     "  -t, --min-time MS   least time of one repetition (100; quick: 15)\n"
	     "  -r, --repeat N      least repetitions of a point (5; quick: 3)\n"
	     "      --poll          spin on PtlEQGet instead of waiting in PtlEQWait\n"
	     "      --quick         few sizes, short repetitions\n"
	     "      --entries LIST  match: numbers of posted entries (1,10,...,100000)\n"
	     "      --packet BYTES  model: the largest packet (32K)\n"
	     "      --cores A,B     pin the two processes to these cores\n"
	     "      --no-pin        leave placement to the system\n"
	     "      --deadline S    fail when nothing moves for this long (30)\n"
	     "      --json FILE     also write the results to FILE; - for standard output\n"
	     "  -h, --help\n\nptlperf(1) explains what is measured and how.");
}

static size_t number(const char *text, char **end, const char *what)
{
	unsigned long long v = strtoull(text, end, 10);

	if (*end == text || *text == '-')
		usage_error("%s: '%s' is not a number", what, text);
	if (**end == 'K' || **end == 'k') {
		v <<= 10;
		++*end;
	} else if (**end == 'M' || **end == 'm') {
		v <<= 20;
		++*end;
	}
	return (size_t)v;
}

static size_t one_number(const char *text, size_t low, size_t high, const char *what)
{
	char *end;
	size_t v = number(text, &end, what);

	if (*end || v < low || v > high)
		usage_error("%s: '%s' is not a number from %zu to %zu", what, text, low, high);
	return v;
}

static void list_add(struct perf_list *l, size_t v, size_t high, const char *what)
{
	if (v > high)
		usage_error("%s: %zu is more than the largest possible, %zu", what, v, high);
	if (l->count == PERF_MAX_LIST)
		usage_error("%s: more than %d values", what, PERF_MAX_LIST);
	l->item[l->count++] = v;
}

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* "8,64,4K" and "8-4M"; a range goes up in powers of two from its first number. */
static void parse_list(struct perf_list *l, const char *text, size_t high, const char *what)
{
	char *end;

	l->count = 0;
	for (;;) {
		size_t v = number(text, &end, what), last = v;

		if (*end == '-')
			last = number(end + 1, &end, what);
		for (list_add(l, v, high, what); v < last && (v ? 2 * v : 1) <= last;)
			list_add(l, v = v ? 2 * v : 1, high, what);
		if (*end != ',')
			break;
		text = end + 1;
	}
	if (*end)
		usage_error("%s: '%s' is not understood", what, end);
	qsort(l->item, (size_t)l->count, sizeof(l->item[0]), by_size);
}

static void parse_cores(struct perf_options *o, const char *text)
{
	if (sscanf(text, "%d,%d", &o->core[0], &o->core[1]) != 2 || o->core[0] < 0 ||
	    o->core[1] < 0)
		usage_error("--cores: '%s' is not two core numbers such as 0,1", text);
}

static void parse_option(struct perf_options *o, int opt, const char *arg)
{
	switch (opt) {
	case 's':
		parse_list(&o->sizes, arg, LARGEST_SIZE, "--sizes");
		o->sizes_given = true;
		break;
	case 'w':
		o->window = (unsigned)one_number(arg, 1, 4096, "--window");
		break;
	case 't':
		o->min_time_ms = (double)one_number(arg, 1, 60000, "--min-time");
		break;
	case 'r':
		o->repeat = (unsigned)one_number(arg, 1, 1000, "--repeat");
		break;
	case OPT_POLL:
		o->poll = true;
		break;
	case OPT_NO_PIN:
		o->pin = false;
		break;
	case OPT_CORES:
		parse_cores(o, arg);
		break;
	case OPT_JSON:
		o->json = arg;
		break;
	case OPT_QUICK:
		o->quick = true;
		break;
	case OPT_ENTRIES:
		parse_list(&o->entries, arg, MOST_ENTRIES, "--entries");
		if (!o->entries.item[0])
			usage_error("--entries: 0 entries match nothing");
		break;
	case OPT_PACKET:
		o->packet = one_number(arg, 16, LARGEST_SIZE, "--packet");
		break;
	case OPT_DEADLINE:
		o->deadline_s = (unsigned)one_number(arg, 5, 3600, "--deadline");
		break;
	default:
		usage_error("unknown option, or one without its argument");
	}
}

static void parse_tests(struct perf_options *o, int argc, char **argv,
			const struct perf_test_name *names, int count)
{
	for (int a = 0; a < argc; a++) {
		int i = 0;

		while (i < count && strcmp(argv[a], names[i].name) != 0 &&
		       !(names[i].alias && strcmp(argv[a], names[i].alias) == 0))
			i++;
		if (i < count)
			o->tests |= 1u << i;
		else if (!strcmp(argv[a], "all"))
			o->tests |= (1u << count) - 1;
		else
			usage_error("there is no test '%s'", argv[a]);
	}
	if (!o->tests)
		usage_error("which test?");
}

/* Set the options that depend on --quick and were not given. */
static void fill_in(struct perf_options *o)
{
	if (!o->sizes.count)
		parse_list(&o->sizes, o->quick ? "8,64,512,4K,32K,256K,1M,4M" : "0-4M",
			   LARGEST_SIZE, "--sizes");
	if (!o->entries.count)
		parse_list(&o->entries, "1,10,100,1000,10000,100000", MOST_ENTRIES, "--entries");
	if (o->min_time_ms <= 0)
		o->min_time_ms = o->quick ? 15 : 100;
	if (!o->packet) /* what long messages are moved in */
		o->packet = (size_t)32 << 10;
	if (!o->repeat)
		o->repeat = o->quick ? 3 : 5;
}

void perf_options_parse(struct perf_options *o, int argc, char **argv,
			const struct perf_test_name *names, int count)
{
	int opt;

	*o = (struct perf_options){ .pin = true, .core = { -1, -1 }, .deadline_s = 30 };
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "s:w:t:r:h", long_options, NULL)) != -1) {
		if (opt == 'h') {
			help(names, count);
			exit(0);
		}
		if (opt == '?')
			usage_error("'%s' is no option, or lacks its argument", argv[optind - 1]);
		parse_option(o, opt, optarg);
	}
	parse_tests(o, argc - optind, argv + optind, names, count);
	fill_in(o);
}
