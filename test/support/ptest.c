/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Processes, deadlines and verdicts of the test harness: forks the ranks of a test, watches them
 * through pidfds, and turns what went wrong in any of them into one cmocka failure.
 */
#include "ptest.h"

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_FAILED = 99, EXIT_SKIPPED = 77, BEAT_MS = 50, LATE_MS = 250 };

enum mode { MODE_PLAIN, MODE_SELF, MODE_AWAY, MODE_ATTEND };

struct rank_state {
	_Atomic(const char *) file; /* literals: valid in the parent too */
	_Atomic int line;
	_Atomic(const char *) what;
	_Atomic int verdict_taken;
	_Atomic int verdict_order; /* 1 is the first; what follows is often its consequence */
	char verdict[2048];
	ptl_process_id_t id;
	_Atomic pid_t os_pid;
	_Atomic bool may_be_killed;
};

/* Shared by the parent and the processes of one test. */
struct shared {
	pthread_barrier_t barrier;
	struct rank_state ranks[PT_MAX_PROCS];
	double start;
	/* In ms since then: when the parent last looked at the time, and, in the lower half, how
	 * long all were held still. */
	_Atomic uint64_t beat;
	_Atomic int verdicts;
	_Atomic uint64_t words[PT_WORDS];
};

/* One cmocka test: a pt_test in one of its modes. */
struct run {
	const struct pt_test *test;
	enum mode mode;
	char name[128];
};

int pt_rank, pt_size;
ptl_handle_ni_t pt_ni = PTL_INVALID_HANDLE;
const ptl_process_id_t pt_any = { PTL_NID_ANY, PTL_PID_ANY };

static struct shared *shared;
static enum mode mode;
static bool opened;
static const char
	*rank_interfaces; /* of the ranks in turn, with commas; NULL: as the environment says */
static ptl_handle_eq_t control_eq;

static const char *fault_name;   /* PTL_FAULT, or PTL_SIM where the network itself makes faults; */
static const char *fault_rules;  /* its value as the test was given it; NULL: none */
static _Atomic uint64_t *faults; /* made by all processes of all tests; NULL: none are asked for */

/* ---- the side of a test's process ------------------------------------------------------------ */

int pt_entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	pt_true(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

int pt_stat_lines(pid_t pid, const char *what, uint64_t *sum)
{
	char text[512];
	uint64_t found;
	int lines = 0;
	FILE *stat;

	if (sum)
		*sum = 0;
	snprintf(text, sizeof(text), "'%s' %d", PORTALS_STAT, (int)pid);
	stat = popen(text, "r");
	pt_true(stat != NULL);
	while (fgets(text, sizeof(text), stat)) {
		if (!strstr(text, what))
			continue;
		lines++;
		if (sum && sscanf(text, "%" SCNu64, &found) == 1)
			*sum += found;
	}
	pt_is(pclose(stat), 0);
	return lines;
}

uint64_t pt_stat(pid_t pid, const char *what)
{
	uint64_t sum;

	pt_stat_lines(pid, what, &sum);
	return sum;
}

double pt_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint32_t since_start(void)
{
	return (uint32_t)((pt_now() - shared->start) * 1e3);
}

/* The parent looks at the time every BEAT_MS. Time that passed after LATE_MS without a reading is
 * none of the test's. */
static uint32_t late_by(uint32_t now, uint64_t beat)
{
	uint32_t last = (uint32_t)(beat >> 32);

	return now > last + LATE_MS ? now - last - LATE_MS : 0;
}

static void beat(void)
{
	uint32_t now = since_start();
	uint64_t last = shared->beat;

	shared->beat = (uint64_t)now << 32 | ((uint32_t)last + late_by(now, last));
}

/* A child that goes on before the parent does knows by this, too, that it was held still. */
double pt_lived(void)
{
	uint64_t last = shared->beat;
	uint32_t now = since_start();

	return (now - (uint32_t)last - late_by(now, last)) * 1e-3;
}

double pt_slow(void)
{
#if defined(__SANITIZE_THREAD__)
	return 10;
#elif defined(__SANITIZE_ADDRESS__)
	return 4;
#else
	return 1;
#endif
}

uint64_t pt_rounds(uint64_t usual)
{
	return usual / (uint64_t)pt_slow();
}

/* Where more wants to run than there are cores for, everything takes as much longer. */
double pt_patience(double seconds)
{
	double load = 0, cores = (double)sysconf(_SC_NPROCESSORS_ONLN);

	getloadavg(&load, 1);
	return seconds * pt_slow() * (load > 2 * cores ? load / cores : 1);
}

void pt_pause(void)
{
	sched_yield();
}

void pt_at(const char *file, int line, const char *what)
{
	struct rank_state *me = &shared->ranks[pt_rank];

	atomic_store_explicit(&me->file, file, memory_order_relaxed);
	atomic_store_explicit(&me->line, line, memory_order_relaxed);
	atomic_store_explicit(&me->what, what, memory_order_relaxed);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void __attribute__((noreturn)) leave(int status, const char *text)
{
	struct rank_state *me = &shared->ranks[pt_rank];

	if (!atomic_exchange(&me->verdict_taken, 1)) {
		me->verdict_order = atomic_fetch_add(&shared->verdicts, 1) + 1;
		snprintf(me->verdict, sizeof(me->verdict), "%s", text);
	}
	_exit(status);
}

void pt_fail(const char *file, int line, const char *fmt, ...)
{
	char text[1800], where[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(where, sizeof(where), "%s:%d: %s", base_name(file), line, text);
	leave(EXIT_FAILED, where);
}

void pt_skip(const char *fmt, ...)
{
	char text[1800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	leave(EXIT_SKIPPED, text);
}

void pt_barrier_at(const char *file, int line)
{
	pt_at(file, line, "barrier");
	pthread_barrier_wait(&shared->barrier);
}

_Atomic uint64_t *pt_word(int index)
{
	return &shared->words[index];
}

ptl_process_id_t pt_id(int rank)
{
	return shared->ranks[rank].id;
}

pid_t pt_os_pid(int rank)
{
	return shared->ranks[rank].os_pid;
}

void pt_expect_killed(int rank)
{
	shared->ranks[rank].may_be_killed = true;
}

bool pt_is_initiator(void)
{
	return pt_rank == 0;
}

bool pt_is_target(void)
{
	return pt_rank == pt_size - 1;
}

ptl_process_id_t pt_target(void)
{
	return pt_id(pt_size - 1);
}

ptl_process_id_t pt_initiator(void)
{
	return pt_id(0);
}

bool pt_target_is_away(void)
{
	return mode == MODE_AWAY;
}

void pt_open_with(ptl_ni_limits_t *desired, ptl_ni_limits_t *actual)
{
	int interfaces;
	ptl_md_t md;

	pt_ok(PtlInit(&interfaces));
	pt_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, desired, actual, &pt_ni));
	pt_ok(PtlGetId(pt_ni, &shared->ranks[pt_rank].id));
	opened = true;
	if (mode == MODE_ATTEND && pt_is_target()) {
		control_eq = pt_eq(4);
		md = pt_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, control_eq);
		pt_post(PT_CONTROL_PORTAL, 0, md, PTL_RETAIN, NULL);
	}
	pt_barrier();
}

void pt_open(void)
{
	pt_open_with(NULL, NULL);
}

static bool counted; /* the faults of this process */

static void add_faults(void)
{
	if (faults)
		*faults += pt_stat(getpid(), PT_FAULTS);
	counted = true;
}

void pt_close(void)
{
	if (!opened)
		return;
	pt_barrier();
	add_faults();
	opened = false;
	pt_ok(PtlNIFini(pt_ni));
	PtlFini();
}

void pt_finish(void)
{
	ptl_handle_md_t md;

	if (mode == MODE_ATTEND && pt_is_initiator()) {
		md = pt_bind(NULL, 0, 0, PTL_EQ_NONE);
		pt_ok(PtlPut(md, PTL_NO_ACK_REQ, pt_target(), PT_CONTROL_PORTAL, 0, 0, 0, 0));
	} else if (mode == MODE_ATTEND) {
		pt_next(control_eq, PTL_EVENT_PUT_END);
	}
	pt_barrier();
}

/* cmocka catches these; in a process of a test a crash must stay one. */
static const int crashes[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS };
enum { CRASHES = sizeof(crashes) / sizeof(crashes[0]) };
static struct sigaction before_cmocka[CRASHES];

static void save_crash_handlers(void)
{
	for (int i = 0; i < CRASHES; i++)
		sigaction(crashes[i], NULL, &before_cmocka[i]);
}

static void restore_crash_handlers(void)
{
	for (int i = 0; i < CRASHES; i++)
		sigaction(crashes[i], &before_cmocka[i], NULL);
}

/*
 * Operations may still be under way when a body returns, and land in variables of its frame. The
 * room keeps that frame clear of what is called afterwards.
 */
static void __attribute__((noinline)) run_body(void (*body)(void))
{
	volatile char room[256 * 1024];

	room[0] = 0;
	body();
	room[sizeof(room) - 1] = 0;
}

/* Each rank has its own network interface, as on hosts of its own. */
static void choose_interface(void)
{
	char copy[256], *save, *name, *chosen = NULL;
	int n = 0;

	if (!rank_interfaces || strlen(rank_interfaces) >= sizeof(copy))
		return;
	for (strcpy(copy, rank_interfaces), name = strtok_r(copy, ",", &save); name;
	     name = strtok_r(NULL, ",", &save))
		n++;
	strcpy(copy, rank_interfaces);
	name = strtok_r(copy, ",", &save);
	for (int i = 0; name; i++, name = strtok_r(NULL, ",", &save))
		if (i == pt_rank % n)
			chosen = name;
	if (chosen)
		setenv("PTL_IFACE", chosen, 1);
}

ptl_handle_eq_t pt_open_target(ptl_pt_index_t portal)
{
	static char place[64];
	ptl_handle_eq_t eq;

	pt_open();
	eq = pt_eq(1024);
	if (pt_is_target())
		pt_post(portal, 0,
			pt_md(place, sizeof(place),
			      PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			      eq),
			PTL_RETAIN, NULL);
	pt_barrier();
	return eq;
}

void pt_exchange(ptl_handle_eq_t eq, ptl_pt_index_t portal, ptl_hdr_data_t value)
{
	static char c;
	ptl_handle_md_t md = pt_bind(&c, 1, PTL_MD_EVENT_START_DISABLE, eq);

	pt_ok(PtlPut(md, PTL_ACK_REQ, pt_target(), portal, 0, 0, 0, value));
	pt_await(eq, PT_BIT(PTL_EVENT_SEND_END) | PT_BIT(PTL_EVENT_ACK), NULL);
	pt_ok(PtlMDUnlink(md));
}

/* With rules for faults that name no seed each process has its own, the same each time: a test
 * of few packets would see the same faults as all others, or none. */
static void choose_seed(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
	char seeded[256];

	if (!fault_rules || strstr(fault_rules, "seed="))
		return;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
	snprintf(seeded, sizeof(seeded), "%s%sseed=%u", fault_rules,
		 strcmp(fault_name, "PTL_SIM") ? ";" : ",",
		 (unsigned int)(hash >> 40) * PT_MAX_PROCS + (unsigned int)pt_rank);
	setenv(fault_name, seeded, 1);
}

static void __attribute__((noreturn)) child(const struct run *run, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	restore_crash_handlers();
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	shared->ranks[pt_rank].os_pid = getpid();
	choose_interface();
	choose_seed(run->name);
	pthread_barrier_wait(&shared->barrier);
	run_body(run->test->body);
	if (!opened && !counted) /* it is not pt_open but a library that has opened Portals */
		add_faults();
	pt_close();
	_exit(0);
}

/* ---- the side of the parent ------------------------------------------------------------------ */

struct family {
	int count;
	pid_t pids[PT_MAX_PROCS];
	int fds[PT_MAX_PROCS];   /* pidfds; -1: they are refused here, or it was reaped */
	bool over[PT_MAX_PROCS]; /* reaped */
	int status[PT_MAX_PROCS];
	bool failed, skipped, late;
};

static void judge(struct family *f, int rank)
{
	int st = f->status[rank];

	if (WIFEXITED(st) && WEXITSTATUS(st) == EXIT_SKIPPED)
		f->skipped = true;
	else if (WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL && shared->ranks[rank].may_be_killed)
		return;
	else if (!WIFEXITED(st) || WEXITSTATUS(st) != 0)
		f->failed = true;
}

static void reap(struct family *f, int rank, bool after_verdict)
{
	waitpid(f->pids[rank], &f->status[rank], 0);
	if (f->fds[rank] >= 0)
		close(f->fds[rank]);
	f->fds[rank] = -1;
	f->over[rank] = true;
	if (!after_verdict)
		judge(f, rank);
}

static void end_all(struct family *f)
{
	for (int i = 0; i < f->count; i++) {
		if (f->over[i])
			continue;
		kill(f->pids[i], SIGKILL);
		reap(f, i, true);
	}
}

static bool has_ended(const struct family *f, int rank)
{
	siginfo_t info = { .si_pid = 0 };

	waitid(P_PID, (id_t)f->pids[rank], &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid;
}

/* Waits for all, or until one failed or the deadline passed. */
static void watch(struct family *f, double deadline)
{
	struct pollfd p[PT_MAX_PROCS];
	int alive = f->count;

	while (alive && !f->failed && !f->skipped) {
		for (int i = 0; i < f->count; i++)
			p[i] = (struct pollfd){ .fd = f->fds[i], .events = POLLIN };
		beat();
		if (pt_lived() > deadline) {
			f->late = true;
			return;
		}
		poll(p, (nfds_t)f->count, BEAT_MS);
		for (int i = 0; i < f->count; i++) {
			if (f->over[i] || !has_ended(f, i))
				continue;
			reap(f, i, false);
			alive--;
		}
	}
}

static void describe(const struct family *f, int rank, bool was_alive, char *text, size_t len)
{
	struct rank_state *r = &shared->ranks[rank];
	const char *file = r->file ? base_name(r->file) : "start";
	int st = f->status[rank];

	if (r->verdict_taken)
		snprintf(text, len, "%srank %d: %s", r->verdict_order == 1 ? "FIRST " : "", rank,
			 r->verdict);
	else if (was_alive && f->late)
		snprintf(text, len, "rank %d: still at %s:%d: %s", rank, file, r->line,
			 r->what ? r->what : "");
	else if (was_alive)
		*text = 0;
	else if (WIFSIGNALED(st))
		snprintf(text, len, "rank %d: %s, last seen at %s:%d: %s", rank,
			 strsignal(WTERMSIG(st)), file, r->line, r->what ? r->what : "");
	else if (WEXITSTATUS(st) != 0)
		snprintf(text, len, "rank %d: exit status %d, last seen at %s:%d: %s", rank,
			 WEXITSTATUS(st), file, r->line, r->what ? r->what : "");
	else
		*text = 0;
}

static void conclude(struct family *f, const char *name, int seconds)
{
	char text[16384] = "", one[2304];
	bool was_alive[PT_MAX_PROCS];
	size_t used = 0;

	for (int i = 0; i < f->count; i++)
		was_alive[i] = !f->over[i];
	end_all(f);
	if (!f->failed && !f->late && !f->skipped)
		return;
	for (int i = 0; i < f->count; i++) {
		describe(f, i, was_alive[i], one, sizeof(one));
		if (*one && used + strlen(one) + 8 < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? "; " : "", one);
	}
	if (f->late)
		fail_msg("%s hung: not done within %d s; %s", name, seconds, text);
	if (f->failed)
		fail_msg("%s: %s", name, text);
	fprintf(stderr, "# %s skipped: %s\n", name, text);
	skip();
}

static void share(int procs)
{
	pthread_barrierattr_t attr;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		fail_msg("mmap of %zu shared bytes: %s", sizeof(*shared), strerror(errno));
	shared->start = pt_now();
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attr, (unsigned)procs);
}

static int procs_of(const struct run *run)
{
	if (run->test->procs)
		return run->test->procs;
	return run->mode == MODE_SELF ? 1 : 2;
}

/* Ends before meson loses its patience, so that it is told which test it was. Where ten and more
 * want each core, meson is given the patience, too. */
static int deadline_of(const struct pt_test *test)
{
	int wanted = test->seconds ? test->seconds : 60;
	double patient = pt_patience(wanted);
	int usual = patient > 10 * wanted ? 2400 : 240;
	int most = wanted > usual ? wanted : usual;

	return patient < most ? (int)patient : most;
}

static void run_one(void **state)
{
	const struct run *run = *state;
	struct family f = { .count = procs_of(run) };
	int seconds = deadline_of(run->test);
	pid_t parent = getpid();

	share(f.count);
	mode = run->mode;
	pt_size = f.count;
	fflush(NULL);
	for (pt_rank = 0; pt_rank < f.count; pt_rank++) {
		f.pids[pt_rank] = fork();
		if (f.pids[pt_rank] == 0)
			child(run, parent);
		f.fds[pt_rank] = (int)syscall(SYS_pidfd_open, f.pids[pt_rank], 0);
	}
	watch(&f, seconds);
	conclude(&f, run->name, seconds);
	munmap(shared, sizeof(*shared));
}

/* With rules for faults in the environment: one that never applied would be a test of nothing. */
static void faults_were_made(void **state)
{
	(void)state;
	if (!*faults)
		fail_msg("%s=%s made none", fault_name, fault_rules);
}

static void count_faults(void)
{
	faults = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (faults == MAP_FAILED)
		faults = NULL;
}

static size_t expand(const struct pt_test *test, struct run *runs)
{
	static const char *const names[] = { "", ".self", ".away", ".attending" };
	size_t n = 0;

	for (enum mode m = MODE_PLAIN; m <= MODE_ATTEND; m++) {
		if ((test->procs != 0) != (m == MODE_PLAIN))
			continue;
		runs[n] = (struct run){ .test = test, .mode = m };
		snprintf(runs[n].name, sizeof(runs[n].name), "%s%s", test->name, names[m]);
		n++;
	}
	return n;
}

int pt_main(int argc, char **argv, const struct pt_test *tests, size_t count)
{
	struct run *runs = calloc(count * 3, sizeof(*runs));
	struct CMUnitTest *units = calloc(count * 3 + 1, sizeof(*units));
	size_t n = 0;
	int rc;

	if (!runs || !units)
		return 1;
	for (size_t i = 0; i < count; i++)
		n += expand(&tests[i], runs + n);
	for (size_t i = 0; i < n; i++)
		units[i] = (struct CMUnitTest){ .name = runs[i].name,
						.test_func = run_one,
						.initial_state = &runs[i] };
	fault_name = strstr(getenv("PTL_SIM") ? getenv("PTL_SIM") : "", "drop=") ? "PTL_SIM"
										 : "PTL_FAULT";
	fault_rules = getenv(fault_name);
	if (fault_rules)
		count_faults();
	if (faults)
		units[n++] = (struct CMUnitTest){ .name = "faults_were_made",
						  .test_func = faults_were_made };
	save_crash_handlers();
	if (argc > 2 && !strcmp(argv[1], "--interfaces")) {
		rank_interfaces = argv[2];
		argc -= 2;
		argv[2] = argv[0];
		argv += 2;
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	rc = _cmocka_run_group_tests(base_name(argv[0]), units, n, NULL, NULL);
	free(runs);
	free(units);
	return rc;
}
