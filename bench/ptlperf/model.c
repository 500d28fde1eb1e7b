/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The cost model of Directed Point (Wang, Tam, Cheung, Zhu, Lee: Directed Point: A Communication
 * Subsystem for Commodity Supercomputing with Gigabit Ethernet). A message goes through three
 * phases; for a packet of m bytes:
 *   Os  send: the processor initiates the transfer, until the call returns
 *   L   transfer: from there to the other side, calculated as what is left of the one-way time
 *   Or  asynchronous receive: the work that the arrival itself causes, whether the user looks or
 *       not
 *   Ur  user receive: picking up a message that stands there
 * and packets that follow each other are gs apart where they are sent and gr apart where they
 * arrive. The model says what a message of M bytes takes: with k = M / b packets of b bytes each
 * and g = max(gs, gr)
 *   Os + (k - 1) g + L + Or + Ur    where the network is the slowest, and
 *   Os + L + k (Or + Ur)            where the receiving host is.
 * Or cannot be seen at a target that waits in the library, where it passes into Ur, so it is
 * measured with messages to oneself, which are sent and delivered when PtlPut returns: it is
 * what PtlPut takes longer for these. A target that computes is spared Or in shared memory,
 * because the initiator does this work; what PtlPut takes then is shown beside the model. As in
 * the paper, times are averages of the middle 80 % of the samples.
 */
#include <stdio.h>

#include "lat.h"
#include "link.h"
#include "probe.h"

/* The parameters for packets of one size, ns. */
struct packet {
	size_t size;
	double os, async, ur, latency, gs, gr, one_way, away;
};

enum { MOST_PACKETS = 8 };

struct model {
	struct packet at[MOST_PACKETS]; /* by size; the last is the largest packet */
	int count;
};

static double above_zero(double ns)
{
	return ns > 0 ? ns : 0;
}

/* The time of one call: a sample without what reading the timer takes. */
static double one_call(const struct perf_result *r)
{
	return above_zero(r->sample.middle - perf_clock_cost());
}

static struct packet measure_packet(struct perf *p, size_t size)
{
	struct packet k = { .size = size };
	struct perf_probe b;
	struct perf_result r;
	struct perf_point pt = perf_one_way(p, size, &r);

	k.one_way = r.sample.middle * pt.scale;
	perf_probe_open(p, &b, size, k.one_way);
	perf_probe_put(p, &b, &r);
	k.os = one_call(&r);
	perf_probe_put_self(p, &b, &r);
	k.async = above_zero(one_call(&r) - k.os);
	perf_probe_take(p, &b, &r);
	k.ur = one_call(&r);
	perf_probe_put_away(p, &b, &r);
	k.away = one_call(&r);
	perf_probe_send_burst(p, &b, &r);
	k.gs = r.sample.middle / b.burst;
	perf_probe_take_burst(p, &b, &r);
	k.gr = r.sample.middle / (b.burst - 1);
	perf_probe_close(p, &b);
	k.latency = above_zero(k.one_way - k.os - k.async - k.ur);
	return k;
}

static void record_packet(struct perf *p, const struct packet *k)
{
	const struct {
		const char *name;
		double ns;
	} row[] = { { "Os", k->os },           { "Or", k->async },
		    { "Ur", k->ur },           { "L", k->latency },
		    { "gs", k->gs },           { "gr", k->gr },
		    { "one way", k->one_way }, { "PtlPut, target computes", k->away } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		perf_record_plain(p, "model parameter", row[i].name, k->size, "ns", row[i].ns);
}

static void measure_packets(struct perf *p, struct model *m)
{
	size_t largest = p->opt.packet;
	char text[PERF_SIZE_TEXT];

	perf_say(p, "%9s %9s %9s %9s %9s %9s %9s %10s %12s", "packet", "Os", "Or", "Ur", "L", "gs",
		 "gr", "one way", "Os computing");
	for (size_t size = 8;; size *= size < 512 ? 8 : 4) {
		struct packet *k = &m->at[m->count++];

		size = size > largest || m->count == MOST_PACKETS ? largest : size;
		*k = measure_packet(p, size);
		record_packet(p, k);
		perf_say(p, "%9s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %10.1f %12.1f",
			 perf_size_text(text, size), k->os, k->async, k->ur, k->latency, k->gs,
			 k->gr, k->one_way, k->away);
		if (size == largest)
			break;
	}
}

static double between(double from, double to, double share)
{
	return from + (to - from) * share;
}

/* The parameters of a packet that was not measured. L is known for the shortest and the longest
 * only, so that the model is not its own witness. */
static struct packet packet_of(const struct model *m, size_t size)
{
	const struct packet *first = &m->at[0], *last = &m->at[m->count - 1], *a = first,
			    *b = first;
	double share;
	struct packet k = { .size = size };

	while (b < last && b->size < size)
		a = b++;
	share = b->size > a->size && size > a->size
			? (double)(size - a->size) / (double)(b->size - a->size)
			: 0;
	share = share > 1 ? 1 : share;
	k.os = between(a->os, b->os, share);
	k.async = between(a->async, b->async, share);
	k.ur = between(a->ur, b->ur, share);
	k.gs = between(a->gs, b->gs, share);
	k.gr = between(a->gr, b->gr, share);
	share = size > first->size && last->size > first->size
			? (double)(size - first->size) / (double)(last->size - first->size)
			: 0;
	k.latency = between(first->latency, last->latency, share > 1 ? 1 : share);
	return k;
}

static bool host_is_slowest(const struct packet *k)
{
	return k->async + k->ur > k->gs && k->async + k->ur > k->gr;
}

static double predict(const struct model *m, size_t size, double *packets)
{
	size_t largest = m->at[m->count - 1].size;
	struct packet k = packet_of(m, size < largest ? size : largest);
	double gap = k.gs > k.gr ? k.gs : k.gr;

	*packets = size > largest ? (double)size / (double)largest : 1;
	if (host_is_slowest(&k))
		gap = k.async + k.ur;
	return k.os + (*packets - 1) * gap + k.latency + k.async + k.ur;
}

static void compare(struct perf *p, const struct model *m)
{
	const struct perf_list *sizes = &p->opt.sizes;
	char text[PERF_SIZE_TEXT];

	perf_say(p, "\n%9s %9s %12s %12s %12s", "bytes", "packets", "model", "measured",
		 "model / meas.");
	for (int i = 0; i < sizes->count; i++) {
		size_t size = sizes->item[i];
		double packets, should = predict(m, size, &packets), is;
		struct perf_result r;
		struct perf_point pt = perf_one_way(p, size, &r);

		pt.test = "model";
		pt.variant = "measured";
		pt.floor = "prediction";
		is = r.sample.middle * pt.scale;
		pt.ratio = should > 0 ? is / should : 0;
		perf_record(p, &pt, &r);
		perf_record_plain(p, "model", "predicted", size, "ns", should);
		perf_say(p, "%9s %9.1f %12.1f %12.1f %12.2f%s", perf_size_text(text, size), packets,
			 should, is, is > 0 ? should / is : 0, perf_mark(p, &r));
	}
}

void perf_model(struct perf *p)
{
	const struct perf_list *sizes = &p->opt.sizes;
	size_t largest = sizes->item[sizes->count - 1];
	struct model m = { 0 };
	const struct packet *last;

	perf_buffers(p, (largest > p->opt.packet ? largest : p->opt.packet) + 1);
	perf_title(p, "model", "Directed Point's parameters of a packet, and its prediction, ns");
	measure_packets(p, &m);
	last = &m.at[m.count - 1];
	perf_say(p,
		 "   Os: PtlPut; Or: delivery; Ur: taking the event; L: what is left of one way;\n"
		 "   gs, gr: between packets of a burst, where sent and where received; Os "
		 "computing:\n   PtlPut when the target computes and the initiator delivers");
	compare(p, &m);
	if (host_is_slowest(last))
		perf_say(p, "   model: Os + L + k (Or + Ur); Or + Ur of a packet is more than gs "
			    "and gr");
	else
		perf_say(p, "   model: Os + (k - 1) max(gs, gr) + L + Or + Ur");
}
