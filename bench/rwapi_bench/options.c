/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The command line of rwapi_bench.
 */
#include "bench.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST ((size_t)1 << 30)

const char *const bench_test_name[TESTS] = { "ping-pong", "bidirectional", "burst", "stream",
					     "look",      "many",          "blocks" };

enum { OPT_JSON = 256, OPT_QUICK, OPT_PAPER };

static const struct option long_options[] = {
	{ "sizes", required_argument, NULL, 's' }, { "runs", required_argument, NULL, 'r' },
	{ "time", required_argument, NULL, 't' },  { "json", required_argument, NULL, OPT_JSON },
	{ "quick", no_argument, NULL, OPT_QUICK }, { "paper", no_argument, NULL, OPT_PAPER },
	{ "help", no_argument, NULL, 'h' },        { NULL, 0, NULL, 0 },
};

static void help(void)
{
	puts("usage: mpiexec -n 2 rwapi_bench [options] [test ...]\n\n"
	     "tests (all but look and blocks if none is named):\n"
	     "  ping-pong      a message there, then one back\n"
	     "  bidirectional  both send, then both receive\n"
	     "  burst          one direction, waiting for room only; a notice with each write\n"
	     "  stream         the same with one notice behind all writes\n"
	     "  look           ping-pong without notice: the receiver looks at the memory\n"
	     "  many           ranks 1, 2, 4 ... send short messages to rank 0\n"
	     "  blocks         cost of rwapi_alloc and rwapi_free, and of many blocks\n\n"
	     "options:\n"
	     "  -s, --sizes A,B,...  bytes of writes, with k or m for KiB and MiB\n"
	     "  -r, --runs N         runs for each size (10)\n"
	     "  -t, --time SECONDS   length of a run (0.1)\n"
	     "      --quick          3 runs of 0.02 s\n"
	     "      --paper          10 runs of a minute, as the paper has it\n"
	     "      --json FILE      write the results there as well\n"
	     "  -h, --help           show this\n\n"
	     "Printed are t / n of n messages in t, and n s / t for messages of s bytes: the mean\n"
	     "of all runs, and half of its 90 % confidence interval.");
	exit(0);
}

__attribute__((noreturn)) static void refuse(const char *what, const char *word)
{
	fprintf(stderr, "rwapi_bench: %s: %s\nTry 'rwapi_bench --help'.\n", what, word);
	exit(2);
}

static size_t parse_size(const char *text, char **rest)
{
	unsigned long long n = strtoull(text, rest, 10);

	if (*rest == text)
		refuse("no size", text);
	if (**rest == 'k' || **rest == 'K')
		n <<= 10;
	else if (**rest == 'm' || **rest == 'M')
		n <<= 20;
	else
		return n > LONGEST ? 0 : n;
	(*rest)++;
	return n > LONGEST ? 0 : n;
}

static void parse_sizes(struct bench_options *o, const char *text)
{
	o->sizes = 0;
	for (const char *at = text;; at++) {
		char *rest;
		size_t n = parse_size(at, &rest);

		if (!n || o->sizes == BENCH_SIZES || (*rest && *rest != ','))
			refuse("sizes are 1 byte to 1 GiB, with commas in between", text);
		o->size[o->sizes++] = n;
		if (!*rest)
			return;
		at = rest;
	}
}

static double parse_number(const char *text, double least, double most)
{
	char *rest;
	double n = strtod(text, &rest);

	if (*rest || rest == text || !(n >= least && n <= most))
		refuse("bad number", text);
	return n;
}

static void parse_test(struct bench_options *o, const char *name)
{
	for (int i = 0; i < TESTS; i++)
		if (!strcmp(name, bench_test_name[i])) {
			o->test[i] = true;
			return;
		}
	refuse("no such test", name);
}

static void set_defaults(struct bench_options *o)
{
	*o = (struct bench_options){ .runs = 10, .seconds = 0.1 };
	for (size_t n = 1; n <= (size_t)4 << 20; n *= 2)
		o->size[o->sizes++] = n;
}

void bench_options(int argc, char **argv, struct bench_options *o)
{
	int c;

	set_defaults(o);
	while ((c = getopt_long(argc, argv, "s:r:t:h", long_options, NULL)) != -1)
		switch (c) {
		case 's':
			parse_sizes(o, optarg);
			break;
		case 'r':
			o->runs = (int)parse_number(optarg, 1, BENCH_RUNS);
			break;
		case 't':
			o->seconds = parse_number(optarg, 1e-4, 3600);
			break;
		case OPT_JSON:
			o->json = optarg;
			break;
		case OPT_QUICK:
			o->runs = 3;
			o->seconds = 0.02;
			break;
		case OPT_PAPER:
			o->runs = 10;
			o->seconds = 60;
			break;
		case 'h':
			help();
			break;
		default:
			fputs("Try 'rwapi_bench --help'.\n", stderr);
			exit(2);
		}
	for (int i = optind; i < argc; i++)
		parse_test(o, argv[i]);
	if (optind == argc)
		for (int i = 0; i < TESTS; i++)
			o->test[i] = i != TEST_LOOK && i != TEST_BLOCKS;
}
