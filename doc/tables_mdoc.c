/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Writes the tables of portals(7) from the tables of the code, so that the page cannot say anything
 * else: copies a template and puts a list where a line `.\" @NAME@` stands. Run by the build.
 */
#include <stdio.h>
#include <string.h>

#include <portals3.h>

#include "mpi_shim/coll/algorithms.h"
#include "base/config.h"

/* Text as roff takes it: no backslash, and no control character at the start of a line. */
static void put_text(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
	}
	fputc('\n', out);
}

static void put_range(FILE *out, const struct base_config_var *var)
{
	char def[256];

	base_config_default_text(var, def, sizeof(def));
	if (var->type == BASE_CONFIG_ENUM)
		fprintf(out, "One of\n.Li %s .\n", var->choices);
	else if (var->type == BASE_CONFIG_BOOL)
		fputs("0 or 1.\n", out);
	else if (var->type == BASE_CONFIG_INT)
		fprintf(out, "From %ld to %ld%s%s.\n", var->min, var->max,
			*var->choices ? ", " : "", var->choices);
	else if (*var->choices)
		fprintf(out, "Written as\n.Ar %s .\n", var->choices);
	if (*def)
		fprintf(out, "The default is\n.Li %s .\n", def);
	else
		fputs("There is no default.\n", out);
}

static void put_environment(FILE *out)
{
	const struct base_config_var *var;

	fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; (var = base_config_var(i)); i++) {
		fprintf(out, ".It Ev %s\n", var->name);
		put_text(out, var->help);
		put_range(out, var);
	}
	fputs(".El\n", out);
}

static void put_return_codes(FILE *out)
{
#define ROW(name, text) { #name, text },
	static const struct {
		const char *name, *text;
	} codes[] = { PTL_ERR_TABLE(ROW) };
#undef ROW

	fputs(".Bl -tag -width PTL_ME_LIST_TOO_LONG -compact\n", out);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		fprintf(out, ".It Dv %s\n", codes[i].name);
		put_text(out, codes[i].text);
	}
	fputs(".El\n", out);
}

static void put_collectives(FILE *out)
{
	fputs(".Bl -tag -width Ds -compact\n", out);
	for (size_t i = 0; mpi_algorithm_word(i); i++) {
		fprintf(out, ".It Li %s\n", mpi_algorithm_word(i));
		put_text(out, mpi_algorithm_text(i));
	}
	fputs(".El\n", out);
}

static void fill(FILE *template, FILE *out)
{
	char line[1024];

	while (fgets(line, sizeof(line), template)) {
		if (!strcmp(line, ".\\\" @ENVIRONMENT@\n"))
			put_environment(out);
		else if (!strcmp(line, ".\\\" @RETURN_CODES@\n"))
			put_return_codes(out);
		else if (!strcmp(line, ".\\\" @COLLECTIVES@\n"))
			put_collectives(out);
		else
			fputs(line, out);
	}
}

int main(int argc, char **argv)
{
	FILE *template;
	FILE *out;
	int failed;

	if (argc != 3) {
		fprintf(stderr, "usage: %s TEMPLATE OUTPUT\n", argv[0]);
		return 2;
	}
	template = fopen(argv[1], "r");
	if (!template) {
		perror(argv[1]);
		return 1;
	}
	out = fopen(argv[2], "w");
	if (!out) {
		perror(argv[2]);
		fclose(template);
		return 1;
	}
	fill(template, out);
	failed = ferror(template) || ferror(out);
	fclose(template);
	if (fclose(out) || failed) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
