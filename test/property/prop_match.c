/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Property: the library takes every request with the same entry, offset and length, with the same
 * consequences, as a linear walk over the match list would. Random operations (entries, MDs,
 * updates, puts, gets and swaps to oneself) are done with the library and with the model in
 * model.c, and every event is compared. A failing run is cut down to its shortest replay.
 */
#include "model.h"
#include "ptest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT = 20000000, EPISODE = 1000, PATIENCE_MS = 5000, SHRINK_SECONDS = 60, STALE = 16 };

/* The report that a worker process leaves for the parent. */
struct report {
	uint64_t seed;  /* of the episode under way */
	uint64_t count; /* of its operations that were done */
	uint64_t total;
	bool failed;
	char message[512];
};

static struct report *report;
static bool verbose;
static ptl_process_id_t self;
static ptl_handle_eq_t target_eq, here_eq;
static ptl_handle_md_t out_md, in_md;
static unsigned char out[MODEL_LONGEST * 2], in[MODEL_LONGEST * 2];
static ptl_handle_any_t stale_md[STALE], stale_me[STALE];
static uint64_t stale_count;
static uint64_t drops;

static void __attribute__((format(printf, 1, 2), noreturn)) mismatch(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(report->message, sizeof(report->message), fmt, ap);
	va_end(ap);
	report->failed = true;
	if (verbose)
		printf("#     => %s\n", report->message);
	fflush(stdout);
	_exit(1);
}

#define SAY(...) (verbose ? (void)printf("#   " __VA_ARGS__) : (void)0)

static void want(int rc, int code, const char *what)
{
	if (rc != code)
		mismatch("%s gave %s instead of %s", what, pt_code_name(rc), pt_code_name(code));
}

/* ---- what a request led to ------------------------------------------------------------------- */

/* The next event of the queue, within PATIENCE_MS. */
static ptl_event_t next_event(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	int which, rc = PtlEQPoll(&eq, 1, PATIENCE_MS, &ev, &which);

	if (rc != PTL_OK)
		mismatch("no %s: PtlEQPoll gave %s", pt_kind_name(kind), pt_code_name(rc));
	if (ev.type != kind)
		mismatch("%s (md %#x, mlength %" PRIu64 ", offset %" PRIu64 ") instead of %s",
			 pt_kind_name(ev.type), ev.md_handle, ev.mlength, ev.offset,
			 pt_kind_name(kind));
	return ev;
}

#define SAME(field, value)                                                                         \
	do {                                                                                       \
		if ((uint64_t)(ev->field) != (uint64_t)(value))                                    \
			mismatch("%s has " #field " %" PRId64 " instead of %" PRId64,              \
				 pt_kind_name(ev->type), (int64_t)ev->field, (int64_t)(value));    \
	} while (0)

static void check_event(const ptl_event_t *ev, const struct request *r, const struct verdict *v)
{
	SAME(md_handle, v->md->handle);
	SAME(match_bits, r->bits);
	SAME(pt_index, r->portal);
	SAME(rlength, r->length);
	SAME(mlength, v->mlength);
	SAME(offset, v->offset);
	SAME(md.threshold, v->threshold);
	SAME(hdr_data, r->kind == REQUEST_GET ? 0 : r->hdr);
	SAME(ni_fail_type, PTL_NI_OK);
	SAME(initiator.pid, self.pid);
	if (ev->md.user_ptr != v->md)
		mismatch("%s has another user_ptr", pt_kind_name(ev->type));
}

static ptl_event_kind_t start_kind(const struct request *r)
{
	switch (r->kind) {
	case REQUEST_PUT:
		return PTL_EVENT_PUT_START;
	case REQUEST_GET:
		return PTL_EVENT_GET_START;
	default:
		return PTL_EVENT_GETPUT_START;
	}
}

static void expect_target_events(const struct request *r, const struct verdict *v)
{
	ptl_event_t ev, end;

	if (!(v->md->options & PTL_MD_EVENT_START_DISABLE)) {
		ev = next_event(target_eq, start_kind(r));
		check_event(&ev, r, v);
	}
	end = next_event(target_eq, start_kind(r) + 1);
	check_event(&end, r, v);
	if (!(v->md->options & PTL_MD_EVENT_START_DISABLE) && ev.link != end.link)
		mismatch("START has link %u and END %u", ev.link, end.link);
	if (v->unlinks) {
		ev = next_event(target_eq, PTL_EVENT_UNLINK);
		if (ev.md_handle != v->md->handle)
			mismatch("UNLINK of another MD");
	}
}

static void expect_drop(void)
{
	double end = pt_now() + PATIENCE_MS / 1000.0;
	ptl_sr_value_t count;
	ptl_event_t ev;

	for (drops++;;) {
		PtlNIStatus(pt_ni, PTL_SR_DROP_COUNT, &count);
		if (PtlEQGet(target_eq, &ev) != PTL_EQ_EMPTY)
			mismatch("%s (md %#x, mlength %" PRIu64 ", offset %" PRIu64
				 ") instead of a drop",
				 pt_kind_name(ev.type), ev.md_handle, ev.mlength, ev.offset);
		if (count == drops)
			return;
		if (count > drops || pt_now() > end)
			mismatch("drop count is %" PRIu64 " instead of %" PRIu64, count, drops);
	}
}

static void expect_bytes(const unsigned char *got, const unsigned char *wanted, size_t n,
			 const char *where)
{
	for (size_t i = 0; i < n; i++)
		if (got[i] != wanted[i])
			mismatch("%s: byte %zu is %u instead of %u", where, i, got[i], wanted[i]);
}

static void remember_stale(ptl_handle_md_t md, ptl_handle_me_t me)
{
	stale_md[stale_count % STALE] = md;
	stale_me[stale_count++ % STALE] = me;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct request random_request(uint64_t *r, struct model *m)
{
	struct request q = { 0 };
	uint64_t k = pt_random(r) % 10;

	q.kind = k < 6 ? REQUEST_PUT : k < 9 ? REQUEST_GET : REQUEST_GETPUT;
	q.portal = (ptl_pt_index_t)(pt_random(r) % MODEL_PORTALS);
	q.bits = model_random_bits(m, r);
	q.offset = pt_random(r) % 4 ? 0 : pt_random(r) % (MODEL_LONGEST + 8);
	if (pt_random(r) % 64 == 0)
		q.offset = ~(ptl_size_t)0 - pt_random(r) % 8;
	q.length = pt_random(r) % (pt_random(r) % 3 ? 16 : MODEL_LONGEST + 8);
	q.hdr = pt_random(r);
	q.ack = pt_random(r) & 1;
	return q;
}

static void send_request(const struct request *q)
{
	int rc;

	if (q->kind == REQUEST_PUT)
		rc = PtlPutRegion(out_md, 0, q->length, q->ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, self,
				  q->portal, 0, q->bits, q->offset, q->hdr);
	else if (q->kind == REQUEST_GET)
		rc = PtlGetRegion(in_md, 0, q->length, self, q->portal, 0, q->bits, q->offset);
	else
		rc = PtlGetPutRegion(in_md, 0, out_md, 0, q->length, self, q->portal, 0, q->bits,
				     q->offset, q->hdr);
	want(rc, PTL_OK, "the request");
}

static void expect_initiator_events(const struct request *q, const struct verdict *v)
{
	ptl_event_t ack;

	if (q->kind == REQUEST_PUT && q->ack && !(v->md->options & PTL_MD_ACK_DISABLE)) {
		ack = next_event(here_eq, PTL_EVENT_ACK);
		if (ack.rlength != q->length || ack.mlength != v->mlength)
			mismatch("ACK of %" PRIu64 "/%" PRIu64 " bytes instead of %zu/%zu",
				 ack.mlength, ack.rlength, v->mlength, q->length);
	}
	if (q->kind != REQUEST_PUT) {
		ack = next_event(here_eq, PTL_EVENT_REPLY_END);
		if (ack.mlength != v->mlength)
			mismatch("REPLY of %" PRIu64 " bytes instead of %zu", ack.mlength,
				 v->mlength);
	}
}

static void do_request(struct model *m, uint64_t *r)
{
	struct request q = random_request(r, m);
	unsigned char before[MODEL_LONGEST];
	struct verdict v;

	SAY("%s portal %u bits %" PRIx64 " offset %" PRIu64 " length %zu\n",
	    model_request_name(q.kind), q.portal, q.bits, q.offset, q.length);
	for (size_t i = 0; i < q.length; i++)
		out[i] = (unsigned char)(q.hdr + i * 5);
	memset(in, 0x77, q.length);
	v = model_request(m, &q);
	send_request(&q);
	if (!v.md) {
		expect_drop();
		return;
	}
	expect_target_events(&q, &v);
	expect_initiator_events(&q, &v);
	memcpy(before, v.md->shadow + v.offset, v.mlength);
	if (q.kind != REQUEST_GET)
		memcpy(v.md->shadow + v.offset, out, v.mlength);
	expect_bytes(v.md->memory, v.md->shadow, MODEL_LONGEST, "target memory");
	if (q.kind != REQUEST_PUT)
		expect_bytes(in, before, v.mlength, "fetched memory");
	for (size_t i = v.mlength; i < q.length; i++)
		if (in[i] != 0x77)
			mismatch("the reply wrote beyond its length");
	if (v.unlinks)
		remember_stale(v.md->handle, v.me_unlinks ? v.me->handle : PTL_INVALID_HANDLE);
	model_settle(m, &v);
}

/* ---- local operations ------------------------------------------------------------------------ */

static ptl_md_t random_md(struct m_md *md, uint64_t *r)
{
	static const unsigned int options[] = {
		PTL_MD_OP_PUT,
		PTL_MD_OP_PUT | PTL_MD_OP_GET,
		PTL_MD_OP_GET,
		PTL_MD_OP_PUT | PTL_MD_OP_GET,
	};
	ptl_md_t d = { .start = md->memory, .user_ptr = md, .eq_handle = target_eq };
	uint64_t w = pt_random(r);

	d.length = pt_random(r) % (MODEL_LONGEST + 1);
	d.options = options[w % 4];
	d.options |= w & 0x10 ? PTL_MD_TRUNCATE : 0;
	d.options |= (w & 0x60) == 0 ? PTL_MD_MANAGE_REMOTE : 0;
	d.options |= w & 0x80 ? PTL_MD_MAX_SIZE : 0;
	d.options |= w & 0x100 ? PTL_MD_EVENT_START_DISABLE : 0;
	d.options |= (w & 0xe00) == 0 ? PTL_MD_ACK_DISABLE : 0;
	d.max_size = pt_random(r) % 24;
	d.threshold = (int)(pt_random(r) % 8) - 1; /* -1 is without limit, 0 is inactive */
	if (d.options & PTL_MD_MAX_SIZE && d.options & PTL_MD_MANAGE_REMOTE)
		d.options &= ~PTL_MD_MAX_SIZE; /* together without a fixed meaning */
	return d;
}

static ptl_process_id_t random_source(uint64_t *r)
{
	ptl_process_id_t id = pt_any;
	uint64_t w = pt_random(r) % 16;

	if (w < 6)
		id = self;
	else if (w == 6)
		id.nid = self.nid;
	else if (w == 7)
		id.pid = self.pid;
	else if (w == 8)
		id = (ptl_process_id_t){ self.nid, self.pid + 1 };
	return id;
}

static void do_attach(struct model *m, uint64_t *r)
{
	ptl_ins_pos_t where;
	struct m_me *base = model_pick_base(m, r, &where), *me;
	struct m_me new = { .portal = (ptl_pt_index_t)(pt_random(r) % MODEL_PORTALS) };

	new.bits = model_random_bits(m, r);
	new.ignore = model_random_ignore(m, r);
	new.from = random_source(r);
	new.unlink = pt_random(r) & 1 ? PTL_UNLINK : PTL_RETAIN;
	if (base) {
		new.portal = base->portal;
		want(PtlMEInsert(base->handle, new.from, new.bits, new.ignore, new.unlink, where,
				 &new.handle),
		     PTL_OK, "PtlMEInsert");
		me = model_insert(m, &new, base, where);
	} else {
		want(PtlMEAttach(pt_ni, new.portal, new.from, new.bits, new.ignore, new.unlink,
				 where, &new.handle),
		     PTL_OK, "PtlMEAttach");
		me = model_insert(m, &new, NULL, where);
	}
	SAY("%s entry %d %s portal %u bits %" PRIx64 " ignore %" PRIx64 "\n",
	    base ? "insert" : "attach", me->id, where == PTL_INS_BEFORE ? "before" : "after",
	    me->portal, me->bits, me->ignore);
}

static void do_md_attach(struct model *m, uint64_t *r)
{
	struct m_me *me = model_pick_me(m, r);
	ptl_unlink_t unlink = pt_random(r) & 1 ? PTL_UNLINK : PTL_RETAIN;
	ptl_handle_md_t h;
	struct m_md *md;
	ptl_md_t d;

	if (!me)
		return;
	md = model_new_md(m);
	d = random_md(md, r);
	SAY("md on entry %d%s: length %" PRIu64 " threshold %d options %x max_size %" PRIu64 "\n",
	    me->id, me->md ? " (in use)" : "", d.length, d.threshold, d.options, d.max_size);
	if (me->md) {
		want(PtlMDAttach(me->handle, d, unlink, &h), PTL_ME_IN_USE, "PtlMDAttach");
		model_free_md(m, md);
		return;
	}
	want(PtlMDAttach(me->handle, d, unlink, &md->handle), PTL_OK, "PtlMDAttach");
	md->unlink = unlink;
	model_set_md(md, &d);
	me->md = md;
}

static void do_update(struct model *m, uint64_t *r)
{
	struct m_me *me = model_pick_me(m, r);
	ptl_md_t d, old;

	if (!me || !me->md)
		return;
	d = random_md(me->md, r);
	SAY("update of entry %d: length %" PRIu64 " threshold %d options %x max_size %" PRIu64 "\n",
	    me->id, d.length, d.threshold, d.options, d.max_size);
	want(PtlMDUpdate(me->md->handle, &old, &d, pt_random(r) & 1 ? target_eq : PTL_EQ_NONE),
	     PTL_OK, "PtlMDUpdate");
	if (old.threshold != me->md->threshold || old.length != me->md->length)
		mismatch("the MD of entry %d had threshold %d and length %" PRIu64
			 " instead of %d and %zu",
			 me->id, old.threshold, old.length, me->md->threshold, me->md->length);
	model_set_md(me->md, &d);
}

static void do_unlink(struct model *m, uint64_t *r)
{
	struct m_me *me = model_pick_me(m, r);

	if (!me)
		return;
	if (me->md && pt_random(r) & 1) {
		SAY("unlink md of entry %d\n", me->id);
		want(PtlMDUnlink(me->md->handle), PTL_OK, "PtlMDUnlink");
		remember_stale(me->md->handle, me->unlink ? me->handle : PTL_INVALID_HANDLE);
		model_free_md(m, me->md);
		me->md = NULL;
		if (me->unlink)
			model_remove(m, me);
		return;
	}
	SAY("unlink entry %d\n", me->id);
	want(PtlMEUnlink(me->handle), PTL_OK, "PtlMEUnlink");
	remember_stale(me->md ? me->md->handle : PTL_INVALID_HANDLE, me->handle);
	model_remove(m, me);
}

static void do_stale(uint64_t *r)
{
	uint64_t i = pt_random(r) % STALE;

	if (i >= stale_count)
		return;
	want(PtlMDUnlink(stale_md[i]), PTL_MD_INVALID, "PtlMDUnlink of a stale handle");
	want(PtlMEUnlink(stale_me[i]), PTL_ME_INVALID, "PtlMEUnlink of a stale handle");
}

/* ---- episodes -------------------------------------------------------------------------------- */

/* One operation, all of whose choices come from the word. */
static void do_operation(struct model *m, uint64_t word)
{
	uint64_t r = word, k = pt_random(&r) % 100;
	uint64_t grow = m->entries < m->aim ? 22 : 8;

	if (k < grow)
		do_attach(m, &r);
	else if (k < 38)
		do_md_attach(m, &r);
	else if (k < 44)
		do_update(m, &r);
	else if (k < 44 + (m->entries > m->aim ? 14 : 4))
		do_unlink(m, &r);
	else if (k < 59)
		do_stale(&r);
	else
		do_request(m, &r);
}

static void run_words(const uint64_t *words, uint64_t count)
{
	struct model *m = model_new(count ? words[0] : 0);

	stale_count = 0;
	for (report->count = 0; report->count < count; report->count++) {
		do_operation(m, words[report->count]);
		report->total++;
	}
	for (struct m_me *me = m->first; me; me = m->first) {
		if (me->md)
			expect_bytes(me->md->memory, me->md->shadow, MODEL_LONGEST,
				     "memory at end");
		want(PtlMEUnlink(me->handle), PTL_OK, "PtlMEUnlink");
		model_remove(m, me);
	}
	model_delete(m);
}

static void words_of(uint64_t seed, uint64_t *words)
{
	for (int i = 0; i < EPISODE; i++)
		words[i] = pt_random(&seed);
}

static void open_library(void)
{
	const unsigned int quiet = PTL_MD_EVENT_START_DISABLE;
	int n;

	want(PtlInit(&n), PTL_OK, "PtlInit");
	want(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &pt_ni), PTL_OK, "PtlNIInit");
	want(PtlGetId(pt_ni, &self), PTL_OK, "PtlGetId");
	want(PtlEQAlloc(pt_ni, 64, PTL_EQ_HANDLER_NONE, &target_eq), PTL_OK, "PtlEQAlloc");
	want(PtlEQAlloc(pt_ni, 64, PTL_EQ_HANDLER_NONE, &here_eq), PTL_OK, "PtlEQAlloc");
	want(PtlMDBind(pt_ni, pt_md(out, sizeof(out), quiet | PTL_MD_EVENT_END_DISABLE, here_eq),
		       PTL_RETAIN, &out_md),
	     PTL_OK, "PtlMDBind");
	want(PtlMDBind(pt_ni, pt_md(in, sizeof(in), quiet, here_eq), PTL_RETAIN, &in_md), PTL_OK,
	     "PtlMDBind");
}

/* Runs in a process of its own; true when all went as the model says. */
static bool in_child(void (*body)(const uint64_t *, uint64_t), const uint64_t *words, uint64_t n)
{
	int status;
	pid_t pid;

	fflush(stdout);
	report->failed = false;
	pid = fork();
	if (pid == 0) {
		alarm(3600);
		open_library();
		body(words, n);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		snprintf(report->message, sizeof(report->message), "%s",
			 strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_episodes(const uint64_t *seed, uint64_t operations)
{
	uint64_t words[EPISODE], next = *seed;

	for (report->total = 0; report->total < operations;) {
		report->seed = pt_random(&next);
		words_of(report->seed, words);
		run_words(words, EPISODE);
	}
}

/* Leaves out whatever can be left out without the failure going away. */
static uint64_t shrink(uint64_t *words, uint64_t n)
{
	double end = pt_now() + SHRINK_SECONDS;
	uint64_t *fewer = malloc(n * sizeof(*fewer));

	for (uint64_t chunk = n / 2; chunk && pt_now() < end;) {
		bool shorter = false;

		for (uint64_t at = 1;
		     at + chunk <= n && pt_now() < end;) { /* word 0 sets the stage */
			memcpy(fewer, words, at * sizeof(*words));
			memcpy(fewer + at, words + at + chunk, (n - at - chunk) * sizeof(*words));
			if (in_child(run_words, fewer, n - chunk)) {
				at += chunk;
				continue;
			}
			n -= chunk;
			memcpy(words, fewer, n * sizeof(*words));
			shorter = true;
		}
		if (!shorter || chunk > n / 2)
			chunk /= 2;
	}
	free(fewer);
	return n;
}

static void explain(uint64_t seed)
{
	uint64_t words[EPISODE], n = report->count + 1;

	printf("# seed %" PRIu64 ", episode %" PRIu64 ", operation %" PRIu64 ": %s\n", seed,
	       report->seed, report->count, report->message);
	words_of(report->seed, words);
	if (n > EPISODE)
		n = EPISODE;
	if (in_child(run_words, words, n)) {
		printf("# the episode alone passes: replay it all with this seed\n");
		return;
	}
	n = shrink(words, n);
	verbose = true;
	printf("# shortest replay, %" PRIu64 " operations:\n", n);
	in_child(run_words, words, n);
	printf("# again with: prop_match replay");
	for (uint64_t i = 0; i < n; i++)
		printf(" %" PRIx64, words[i]);
	printf("\n");
}

static int replay(int argc, char **argv)
{
	uint64_t words[EPISODE];
	bool good;

	verbose = true;
	for (int i = 0; i < argc && i < EPISODE; i++)
		words[i] = strtoull(argv[i], NULL, 16);
	good = in_child(run_words, words, (uint64_t)argc);
	printf("%s\n", good ? "as the model says" : report->message);
	return !good;
}

/* usage: prop_match [operations [seed]] | prop_match replay WORD... */
int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 0) : DEFAULT / (uint64_t)pt_slow();
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	double start = pt_now();

	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED)
		return 1;
	if (argc > 1 && strcmp(argv[1], "replay") == 0)
		return replay(argc - 2, argv + 2);
	if (argc <= 2)
		seed = (uint64_t)getpid() << 32 ^ (uint64_t)(start * 1e6);
	printf("1..1\n# seed %" PRIu64 "\n", seed);
	if (in_child(run_episodes, &seed, operations)) {
		printf("ok 1 - %" PRIu64 " random operations match as the model says\n",
		       report->total);
		printf("# %.1f s\n", pt_now() - start);
		return 0;
	}
	explain(seed);
	printf("not ok 1 - random operations match as the model says\n");
	return 1;
}
