/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * PTL_SIM: the properties of the simulated network. portals-sim(7) describes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "nal/sim/sim_link.h"

enum unit {
	MICROSECONDS,
	MBITS,       /* per second, kept as picoseconds per byte */
	BYTES,       /* of a packet */
	THOUSANDTHS, /* given as a probability */
	NUMBER,
};

static const struct word {
	const char *name;
	enum unit unit;
	size_t at;
	bool wide; /* uint64_t, else uint32_t */
} words[] = {
#define WORD(name, unit, member, wide)                                                             \
	{                                                                                          \
		name, unit, offsetof(struct sim_rules, member), wide                               \
	}
	WORD("latency", MICROSECONDS, net.L_ns, true),
	WORD("gap", MICROSECONDS, net.g_ns, true),
	WORD("rate", MBITS, net.G_ps, true),
	WORD("last", MBITS, net.last_G_ps, true),
	WORD("queue", MICROSECONDS, net.queue_ns, true),
	WORD("mtu", BYTES, mtu, false),
	WORD("path", BYTES, net.path_mtu, false),
	WORD("jitter", THOUSANDTHS, net.jitter, false),
	WORD("drop", THOUSANDTHS, net.faults.loss, false),
	WORD("dup", THOUSANDTHS, net.faults.duplicate, false),
	WORD("reorder", THOUSANDTHS, net.faults.reorder, false),
	WORD("delay", THOUSANDTHS, net.faults.delay, false),
	WORD("corrupt", THOUSANDTHS, net.faults.corrupt, false),
	WORD("truncate", THOUSANDTHS, net.faults.truncate, false),
	WORD("seed", NUMBER, seed, true),
#undef WORD
};

/* Convert `text` to the unit that is kept. False: not a valid value. */
static bool value_of(enum unit unit, const char *text, char **end, uint64_t *value)
{
	double v = base_decimal(text, end);

	if (*end == text || !(v >= 0) || v > 1e12)
		return false;
	*value = (uint64_t)v;
	switch (unit) {
	case MICROSECONDS: /* up to ten seconds: a peer that is further away is taken for dead */
		*value = (uint64_t)(v * 1e3 + 0.5);
		return v <= 1e7;
	case MBITS: /* none: 0 */
		if (v < 0.1 || v > 8e6)
			return v == 0;
		*value = (uint64_t)(8e6 / v + 0.5);
		return true;
	case BYTES: /* likewise */
		return v == (double)*value &&
		       (!*value || (v >= DGRAM_MTU_MIN && v <= SIM_MTU_MOST));
	case THOUSANDTHS:
		*value = (uint64_t)(v * 1e3 + 0.5);
		return v <= 1;
	case NUMBER:
		return v == (double)*value;
	}
	return false;
}

static bool take_word(struct sim_rules *r, const char *name, const char *text)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct word *w = &words[i];
		uint64_t value;
		char *end;

		if (strcmp(name, w->name) != 0)
			continue;
		if (!value_of(w->unit, text, &end, &value))
			return false;
		if (w->wide)
			memcpy((char *)r + w->at, &value, sizeof(value));
		else
			memcpy((char *)r + w->at, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
		if (*end == ':' && !strcmp(name, "delay"))
			return value_of(MICROSECONDS, end + 1, &end, &r->net.faults.delay_ns) &&
			       !*end;
		return !*end;
	}
	return false;
}

const char *sim_rules_take(struct sim_rules *r, const char *text)
{
	static _Thread_local char why[160];
	char *copy, *save, *word, *value;

	/* Ethernet of 1 Gbit/s through a switch */
	*r = (struct sim_rules){ .net = { .L_ns = 20000, .G_ps = 8000 },
				 .seed = 1,
				 .mtu = SIM_MTU_USUAL };
	r->net.faults.delay_ns = 1000000;
	copy = strdup(text ? text : "");
	if (!copy)
		return "out of memory";
	for (word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (value && take_word(r, word, value))
			continue;
		snprintf(why, sizeof(why),
			 "\"%.40s%s%.40s\" in PTL_SIM is not understood; portals-sim(7) describes "
			 "it",
			 word, value ? "=" : "", value ? value : "");
		free(copy);
		return why;
	}
	free(copy);
	if (!r->mtu)
		r->mtu = SIM_MTU_USUAL;
	return NULL;
}

void sim_rules_describe(const struct sim_rules *r, char *text, size_t len)
{
	const struct sim_faults *f = &r->net.faults;
	const bool faults =
		f->loss || f->duplicate || f->reorder || f->delay || f->corrupt || f->truncate;

	snprintf(text, len, "latency %g us, %s%.0f%s, packets of %u bytes, %s",
		 (double)r->net.L_ns / 1e3, r->net.G_ps ? "" : "any rate (",
		 r->net.G_ps ? 8e6 / (double)r->net.G_ps : 0, r->net.G_ps ? " Mbit/s" : ")", r->mtu,
		 faults ? "with faults" : "no faults");
}
