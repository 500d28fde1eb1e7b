/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processes are killed with SIGKILL at random moments while they put, get and swap to and from
 * survivors. The survivors must keep working among themselves, see every operation towards the
 * dead end within a second, see every incoming operation that started end, and be left with
 * nothing of the dead: no file, no mapping, no socket. In so many rounds some die while they
 * hold a survivor's engine lock, which portals-stat counts. Usage: kill [rounds]
 */
#include "ptest.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SURVIVORS = 3,
	VICTIMS = 3,
	PORTAL = 5,
	RING_BITS = 1, /* what survivors write to each other */
	OPEN_BITS = 2, /* what victims do with survivors, and survivors with victims */
	PLACE = 200000,
	PATIENCE = 5, /* seconds */
	LOOK_MS = 500,
	SLOTS = 6, /* operations of a survivor under way towards victims */
};

/* Written by the conductor (rank 0) and by survivors; made before any process is. */
struct stage {
	_Atomic uint64_t round;  /* victims of this round live, or soon will */
	_Atomic uint64_t buried; /* victims of this round are dead */
	_Atomic bool over;
	struct {
		_Atomic uint64_t ready; /* the round it is ready in */
		ptl_process_id_t id;
	} victims[VICTIMS];
	struct {
		ptl_process_id_t id;
		_Atomic bool open;
		_Atomic uint64_t settled; /* the last round all is accounted for in */
		_Atomic uint64_t toward, failed;
		_Atomic uint64_t takeovers; /* of its engine lock from the dead */
	} survivors[SURVIVORS];
};

static struct stage *stage;
static bool own_shm; /* /dev/shm is ours alone: what is left there is of this test */
static uint64_t rounds = 400;

static ptl_process_id_t open_here(void)
{
	ptl_process_id_t id;
	int n;

	pt_ok(PtlInit(&n));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &pt_ni));
	pt_ok(PtlGetId(pt_ni, &id));
	return id;
}

static const unsigned int everything =
	PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE;

/* ---- victims --------------------------------------------------------------------------------- */

static ptl_process_id_t someone(uint64_t *seed, uint64_t round)
{
	uint64_t r = pt_random(seed) % (SURVIVORS + 1);
	uint64_t v = pt_random(seed) % VICTIMS;

	if (r == SURVIVORS && stage->victims[v].ready == round)
		return stage->victims[v].id;
	return stage->survivors[r % SURVIVORS].id;
}

static void compute(uint64_t *seed)
{
	for (volatile uint64_t n = pt_random(seed) % 20000; n; n--)
		;
}

static void __attribute__((noreturn)) be_a_victim(int number, uint64_t round)
{
	static unsigned char place[PLACE], bytes[PLACE];
	static const size_t sizes[] = { 0, 8, 500, 2048, 3000, PLACE };
	uint64_t seed = round * VICTIMS + (uint64_t)number;
	ptl_process_id_t id = open_here(), to;
	ptl_handle_eq_t eq = pt_eq(256);
	ptl_handle_md_t md;
	ptl_event_t ev;
	uint64_t r;

	pt_post(PORTAL, OPEN_BITS, pt_md(place, PLACE, everything, PTL_EQ_NONE), PTL_RETAIN, NULL);
	md = pt_bind(bytes, PLACE, PTL_MD_EVENT_START_DISABLE, eq);
	stage->victims[number].id = id;
	stage->victims[number].ready = round;
	for (;;) {
		r = pt_random(&seed);
		to = someone(&seed, round);
		if (r % 4 == 0)
			PtlGetRegion(md, 0, sizes[(r >> 8) % 6], to, PORTAL, 0, OPEN_BITS, 0);
		else if (r % 4 == 1)
			PtlGetPutRegion(md, 0, md, 64, 8, to, PORTAL, 0, OPEN_BITS, 0, 0);
		else
			PtlPutRegion(md, 0, sizes[(r >> 8) % 6], PTL_ACK_REQ, to, PORTAL, 0,
				     OPEN_BITS, 0, 0);
		if (r >> 16 & 1)
			compute(&seed);
		while (PtlEQGet(eq, &ev) != PTL_EQ_EMPTY && r >> 17 & 3)
			;
	}
}

/* ---- survivors ------------------------------------------------------------------------------- */

struct slot {
	ptl_handle_md_t md;
	unsigned int awaited; /* PT_BITs of END events */
};

struct survivor {
	int number;
	uint64_t seed, turn;
	ptl_process_id_t next;
	ptl_handle_eq_t ring_eq, slot_eq, open_eq;
	ptl_handle_md_t out_md, in_md;
	struct slot slots[SLOTS];
	uint64_t starts, ends; /* of what others do to us */
	unsigned char *out, *in, *ring_place, *open_place, *slot_bytes;
};

static void ring_wait(struct survivor *s, unsigned int kinds)
{
	ptl_event_t ev;
	int which;

	while (kinds) {
		double end = pt_lived() + pt_patience(PATIENCE);
		int rc;

		do
			rc = PtlEQPoll(&s->ring_eq, 1, LOOK_MS, &ev, &which);
		while (rc == PTL_EQ_EMPTY && pt_lived() < end);
		pt_truef(rc == PTL_OK,
			 "round %llu: survivors stalled: %s while waiting for set %#x",
			 (unsigned long long)stage->round, pt_code_name(rc), kinds);
		pt_truef(ev.ni_fail_type == PTL_NI_OK,
			 "round %llu: %s of a survivor failed with %u",
			 (unsigned long long)stage->round, pt_kind_name(ev.type), ev.ni_fail_type);
		kinds &= ~PT_BIT(ev.type);
	}
}

/* The duty of survivors to each other: data goes out and comes back unchanged, in time. */
static void ring_step(struct survivor *s)
{
	static const size_t sizes[] = { 8, 64, 2048, 100, 60000, 8, PLACE, 1000 };
	size_t n = sizes[s->turn % 8];

	pt_fill(s->out, n, s->turn, 0);
	pt_ok(PtlPutRegion(s->out_md, 0, n, PTL_ACK_REQ, s->next, PORTAL, 0, RING_BITS, 0, 0));
	ring_wait(s, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK));
	pt_ok(PtlGetRegion(s->in_md, 0, n, s->next, PORTAL, 0, RING_BITS, 0));
	ring_wait(s, PT_BIT(PTL_EVENT_REPLY_END));
	pt_holds(s->in, n, s->turn, 0);
	s->turn++;
}

static void drain(struct survivor *s)
{
	ptl_event_t ev;
	int rc;

	while (PtlEQGet(s->slot_eq, &ev) == PTL_OK) {
		struct slot *slot = ev.md.user_ptr;

		slot->awaited &= ~PT_BIT(ev.type);
		if (ev.ni_fail_type != PTL_NI_OK)
			stage->survivors[s->number].failed++;
	}
	while ((rc = PtlEQGet(s->open_eq, &ev)) != PTL_EQ_EMPTY) {
		pt_is(rc, PTL_OK);
		if (ev.type == PTL_EVENT_PUT_START || ev.type == PTL_EVENT_GET_START ||
		    ev.type == PTL_EVENT_GETPUT_START)
			s->starts++;
		else
			s->ends++;
	}
}

/* A refusal is as good an answer as a failure event. */
static void act_on(struct survivor *s, ptl_process_id_t to)
{
	static const size_t sizes[] = { 8, 2048, 5000, PLACE };
	uint64_t r = pt_random(&s->seed);
	struct slot *slot = &s->slots[r % SLOTS];
	size_t n = sizes[(r >> 8) % 4];
	int rc;

	if (slot->awaited)
		return;
	switch ((r >> 16) % 3) {
	case 0:
		rc = PtlGetRegion(slot->md, 0, n, to, PORTAL, 0, OPEN_BITS, 0);
		slot->awaited = PT_BIT(PTL_EVENT_REPLY_END);
		break;
	case 1:
		rc = PtlGetPutRegion(slot->md, 0, slot->md, 8, 8, to, PORTAL, 0, OPEN_BITS, 0, 0);
		slot->awaited = PT_BIT(PTL_EVENT_REPLY_END) | PT_BIT(PTL_EVENT_SEND_END);
		break;
	default:
		rc = PtlPutRegion(slot->md, 0, n, PTL_NO_ACK_REQ, to, PORTAL, 0, OPEN_BITS, 0, 0);
		slot->awaited = PT_BIT(PTL_EVENT_SEND_END);
	}
	if (rc != PTL_OK) {
		pt_is(rc, PTL_PROCESS_INVALID);
		slot->awaited = 0;
	}
	stage->survivors[s->number].toward++;
}

static unsigned int awaited(const struct survivor *s)
{
	unsigned int all = 0;

	for (int i = 0; i < SLOTS; i++)
		all |= s->slots[i].awaited;
	return all;
}

/* The victims are dead: whatever involved them must end within a second. */
static void settle(struct survivor *s, uint64_t round)
{
	double start = pt_lived(), limit = pt_patience(1), took = 0;

	for (int i = 0; i < VICTIMS; i++)
		if (stage->victims[i].ready == round)
			act_on(s, stage->victims[i].id);
	drain(s);
	while ((awaited(s) || s->starts != s->ends) && took < limit + 10) {
		PtlProgress(pt_ni, 0);
		drain(s);
		pt_pause();
		took = pt_lived() - start;
	}
	pt_truef(took < limit,
		 "round %llu: %.2f s after the deaths instead of %.2f s operations %s (waiting for "
		 "event set %#x; %lld incoming without END)",
		 (unsigned long long)round, took, limit,
		 took < limit + 10 ? "had ended" : "still had not ended", awaited(s),
		 (long long)(s->starts - s->ends));
}

static void set_out(struct survivor *s)
{
	ptl_md_t md;

	s->out = calloc(5, PLACE);
	s->in = s->out + PLACE;
	s->ring_place = s->out + 2 * PLACE;
	s->open_place = s->out + 3 * PLACE;
	s->slot_bytes = s->out + 4 * PLACE;
	stage->survivors[s->number].id = open_here();
	s->ring_eq = pt_eq(64);
	s->slot_eq = pt_eq(256);
	s->open_eq = pt_eq(1 << 16);
	s->out_md = pt_bind(s->out, PLACE, PTL_MD_EVENT_START_DISABLE, s->ring_eq);
	s->in_md = pt_bind(s->in, PLACE, PTL_MD_EVENT_START_DISABLE, s->ring_eq);
	pt_post(PORTAL, RING_BITS, pt_md(s->ring_place, PLACE, everything, PTL_EQ_NONE), PTL_RETAIN,
		NULL);
	pt_post(PORTAL, OPEN_BITS, pt_md(s->open_place, PLACE, everything, s->open_eq), PTL_RETAIN,
		NULL);
	for (int i = 0; i < SLOTS; i++) {
		md = pt_md(s->slot_bytes, PLACE, PTL_MD_EVENT_START_DISABLE, s->slot_eq);
		md.user_ptr = &s->slots[i];
		pt_ok(PtlMDBind(pt_ni, md, PTL_RETAIN, &s->slots[i].md));
	}
	stage->survivors[s->number].open = true;
}

static int count_lines(const char *file, const char *with)
{
	char line[512];
	FILE *f = fopen(file, "r");
	int n = 0;

	pt_true(f != NULL);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, with) != NULL;
	fclose(f);
	return n;
}

static uint64_t takeovers(void)
{
	return pt_stat(getpid(), "times the engine lock was taken over from a dead process");
}

static void be_a_survivor(int number)
{
	struct survivor s = { .number = number, .seed = (uint64_t)number };
	int files = 0, maps = 0;

	set_out(&s);
	for (int i = 0; i < SURVIVORS; i++)
		pt_until(stage->survivors[i].open, 20);
	s.next = stage->survivors[(number + 1) % SURVIVORS].id;
	pt_barrier();
	for (uint64_t round = 1; round <= rounds; round++) {
		while (stage->buried < round) {
			ring_step(&s);
			drain(&s);
			for (int i = 0; i < VICTIMS; i++)
				if (stage->victims[i].ready == round)
					act_on(&s, stage->victims[i].id);
		}
		settle(&s, round);
		stage->survivors[number].settled = round;
		if (round == 1) {
			files = pt_entries("/proc/self/fd");
			maps = count_lines("/proc/self/maps", "memfd");
		}
		while (stage->round == round && !stage->over)
			ring_step(&s);
	}
	/* what one round leaves until the next is fine; what every round leaves is not */
	pt_truef(pt_entries("/proc/self/fd") <= files + 3 * VICTIMS,
		 "%d open files after a round, %d after %llu", files, pt_entries("/proc/self/fd"),
		 (unsigned long long)rounds);
	/* a region is mapped in parts */
	pt_truef(count_lines("/proc/self/maps", "memfd") <= maps + 3 * 9 * VICTIMS,
		 "%d mapped memfds after a round, %d after %llu", maps,
		 count_lines("/proc/self/maps", "memfd"), (unsigned long long)rounds);
	stage->survivors[number].takeovers = takeovers();
	pt_barrier();
	PtlFini();
}

/* ---- the conductor --------------------------------------------------------------------------- */

static void random_pause(uint64_t *seed, uint64_t microseconds)
{
	struct timespec ts = { .tv_nsec = (long)(pt_random(seed) % microseconds) * 1000 };

	nanosleep(&ts, NULL);
}

static void bury(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	pt_is(waitpid(pid, &status, 0), pid);
	pt_truef(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		 "a victim died by itself: wait status %#x", status);
}

static bool all_ready(uint64_t round)
{
	for (int i = 0; i < VICTIMS; i++)
		if (stage->victims[i].ready != round)
			return false;
	return true;
}

static bool all_settled(uint64_t round)
{
	for (int i = 0; i < SURVIVORS; i++)
		if (stage->survivors[i].settled < round)
			return false;
	return true;
}

static void conduct_round(uint64_t round, uint64_t *seed)
{
	pid_t pids[VICTIMS];

	stage->round = round;
	for (int i = 0; i < VICTIMS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			be_a_victim(i, round);
	}
	if (pt_random(seed) % 4) {
		pt_until(all_ready(round), 20);
		random_pause(seed, 4000);
	} else {
		random_pause(seed, 3000); /* some die while they are being born */
	}
	for (int i = 0; i < VICTIMS; i++) {
		bury(pids[i]);
		if (i < VICTIMS - 1)
			random_pause(seed, 500);
	}
	stage->buried = round;
	pt_until(all_settled(round), 10);
}

static void have_own_shm(void)
{
	own_shm = unshare(CLONE_NEWNS) == 0 &&
		  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		  mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0;
	if (!own_shm)
		fprintf(stderr, "# /dev/shm, which others write to, is not looked at: no mount "
				"namespace\n");
}

static void expect_no_file_of_the_dead(void)
{
	DIR *d = opendir("/dev/shm");
	const struct dirent *file;

	pt_true(d);
	while ((file = readdir(d)))
		pt_true(file->d_name[0] == '.');
	closedir(d);
}

/* Sockets are named after the ids of their processes. */
static void expect_no_socket_of_the_dead(void)
{
	char name[64];

	for (int i = 0; i < VICTIMS; i++) {
		ptl_process_id_t id = stage->victims[i].id;

		snprintf(name, sizeof(name), "-%08x-%u", id.nid, id.pid);
		pt_until(count_lines("/proc/net/unix", name) == 0, 5);
	}
}

static void conduct(void)
{
	uint64_t seed = (uint64_t)time(NULL), toward = 0, failed = 0, held = 0;

	for (uint64_t round = 1; round <= rounds; round++)
		conduct_round(round, &seed);
	stage->over = true;
	pt_barrier();
	for (int i = 0; i < SURVIVORS; i++) {
		toward += stage->survivors[i].toward;
		failed += stage->survivors[i].failed;
		held += stage->survivors[i].takeovers;
	}
	fprintf(stderr,
		"# %llu rounds: %llu operations towards victims, %llu of them failed; %llu died "
		"with a "
		"survivor's lock\n",
		(unsigned long long)rounds, (unsigned long long)toward, (unsigned long long)failed,
		(unsigned long long)held);
	pt_true(failed > 0 || rounds < 50);
	pt_true(held > 0 || rounds < 400); /* about one in 20 rounds */
	if (own_shm)
		expect_no_file_of_the_dead();
	expect_no_socket_of_the_dead();
}

static void survivors_outlive_victims_killed_at_random(void)
{
	if (pt_rank > 0) {
		be_a_survivor(pt_rank - 1);
		return;
	}
	pt_barrier();
	conduct();
}

int main(int argc, char **argv)
{
	struct pt_test test = { "survivors_outlive_victims_killed_at_random",
				survivors_outlive_victims_killed_at_random, SURVIVORS + 1, 0 };

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	test.seconds = 200 + (int)(rounds / 20);
	have_own_shm();
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	return pt_main(1, argv, &test, 1);
}
