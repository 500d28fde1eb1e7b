/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The harness of the Portals tests. A test body runs in one or more forked processes, each of
 * which opens its own network interface; a failed check, a crash or a missed deadline in any of
 * them fails the test with the place it happened at. Nothing here knows which NAL carries the
 * messages.
 */
#ifndef PTEST_H
#define PTEST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <setjmp.h>
#include <sys/types.h>

#include <portals3.h>

enum {
	PT_MAX_PROCS = 64,
	PT_WORDS = 64,
	PT_CONTROL_PORTAL = 200, /* used by pt_finish when the target attends */
};

/* ---- tests and their processes --------------------------------------------------------------- */

/*
 * procs > 0: the body runs in that many processes.
 * procs = 0: the body has an initiator and a target and runs three times: as one process that is
 * both; with a target that stays outside the library while the initiator acts; and with a target
 * that sits in PtlEQWait meanwhile.
 */
struct pt_test {
	const char *name;
	void (*body)(void);
	int procs;
	int seconds; /* until the watchdog kills the processes; 0 is a minute */
};

/* clang-format off */
#define PT_CASE(fn, procs)       { #fn, fn, procs, 0 }
#define PT_LONG(fn, procs, secs) { #fn, fn, procs, secs }
#define PT_MODES(fn)             { #fn, fn, 0, 0 }
/* clang-format on */

/* Runs the tests; argv[1], when given, is a pattern of test names. Returns main's exit code. */
int pt_main(int argc, char **argv, const struct pt_test *tests, size_t count);
#define PT_MAIN(argc, argv, tests) pt_main(argc, argv, tests, sizeof(tests) / sizeof((tests)[0]))

extern int pt_rank, pt_size;
extern ptl_handle_ni_t pt_ni; /* opened by pt_open */

/* Opens the default interface, tells the others this process's id, and waits for theirs. */
void pt_open(void);
void pt_open_with(ptl_ni_limits_t *desired, ptl_ni_limits_t *actual);
/* Closes what pt_open opened, all processes together. The harness does it if the body did not. */
void pt_close(void);

ptl_process_id_t pt_id(int rank);
void pt_barrier_at(const char *file, int line);
#define pt_barrier() pt_barrier_at(__FILE__, __LINE__)
_Atomic uint64_t *pt_word(int index); /* shared by the processes of the test, zero at first */
pid_t pt_os_pid(int rank);

bool pt_is_initiator(void);
bool pt_is_target(void);
ptl_process_id_t pt_target(void);
ptl_process_id_t pt_initiator(void);
bool pt_target_is_away(void); /* the target is another process and outside the library */
/* The initiator says that it has done its part; the target waits for that in its mode's way. */
void pt_finish(void);

/* A leave for a test that cannot run here: counted as skipped, with the reason. */
void pt_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A process that must not be missed when it dies: its end by SIGKILL is no failure. */
void pt_expect_killed(int rank);

/* ---- checks; usable in every process and thread ---------------------------------------------- */

void pt_at(const char *file, int line, const char *what);
void pt_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
void pt_check_code(int got, int want, const char *what, const char *file, int line);
void pt_check_equal(uint64_t a, uint64_t b, const char *ta, const char *tb, const char *file,
		    int line);
void pt_check_memory(const void *a, const void *b, size_t len, const char *what, const char *file,
		     int line);
const char *pt_code_name(int code);

/* expr is a Portals call and returns want (pt_ok: PTL_OK) */
#define pt_code(expr, want)                                                                        \
	(pt_at(__FILE__, __LINE__, #expr), pt_check_code((expr), (want), #expr, __FILE__, __LINE__))
#define pt_ok(expr) pt_code(expr, PTL_OK)
/* a and b are equal integers */
#define pt_is(a, b)          pt_check_equal((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
#define pt_true(cond)        ((cond) ? (void)0 : pt_fail(__FILE__, __LINE__, "expected: %s", #cond))
#define pt_truef(cond, ...)  ((cond) ? (void)0 : pt_fail(__FILE__, __LINE__, __VA_ARGS__))
#define pt_memory(a, b, len) pt_check_memory(a, b, len, #a " against " #b, __FILE__, __LINE__)

double pt_now(void); /* seconds, monotonic */
/* The same, for deadlines, without the time in which all processes of the test were held still,
 * as by the machine. */
double pt_lived(void);
int pt_entries(const char *dir); /* in a directory: /proc/self/fd says what is open */
/* Opens both sides; the target takes puts of up to 64 bytes at that portal. The event queue of
 * either. */
ptl_handle_eq_t pt_open_target(ptl_pt_index_t portal);
/* Initiator: one put there, and its acknowledgement back. */
void pt_exchange(ptl_handle_eq_t eq, ptl_pt_index_t portal, ptl_hdr_data_t value);
/* The output of portals-stat for a process: in how many lines `what` is, and in *sum, if there is
 * one, the sum of the numbers they begin with. */
int pt_stat_lines(pid_t pid, const char *what, uint64_t *sum);
/* That sum; 0 also if no line says it, as portals-stat leaves out what never happened. */
uint64_t pt_stat(pid_t pid, const char *what);
#define PT_FAULTS "faults made on request"
double pt_slow(void);               /* how much longer things take in this build (sanitizers) */
uint64_t pt_rounds(uint64_t usual); /* as many as take as long in this build */
void pt_pause(void);                /* one round of polling: gives the core away */
/* That many seconds here and now: in this build, on a machine as busy as this one. */
double pt_patience(double seconds);
/* Waits, outside the library, until cond holds; fails after secs seconds. */
#define pt_until(cond, secs)                                                                       \
	do {                                                                                       \
		double pt_end_ = pt_lived() + pt_patience(secs);                                   \
		pt_at(__FILE__, __LINE__, #cond);                                                  \
		while (!(cond)) {                                                                  \
			pt_truef(pt_lived() < pt_end_, "not within %g s: %s", (double)(secs),      \
				 #cond);                                                           \
			pt_pause();                                                                \
		}                                                                                  \
	} while (0)

/* ---- Portals objects ------------------------------------------------------------------------- */

extern const ptl_process_id_t pt_any;

ptl_handle_eq_t pt_eq(ptl_size_t count);
ptl_md_t pt_md(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq);
/* A free-floating MD, retained, without threshold. */
ptl_handle_md_t pt_bind(void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq);
/* An ME at the tail of the portal's list that any process may match, and its MD. */
ptl_handle_me_t pt_post(ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_md_t md,
			ptl_unlink_t unlink, ptl_handle_md_t *md_handle);
ptl_md_t pt_query(ptl_handle_md_t md);
uint64_t pt_status(ptl_sr_index_t reg);
/* Waits until that many requests were dropped on this NI, and fails if more were. */
void pt_wait_drops(uint64_t count);

ptl_event_t pt_next_at(ptl_handle_eq_t eq, ptl_event_kind_t kind, const char *file, int line);
void pt_quiet_at(ptl_handle_eq_t eq, const char *file, int line);
/* The next event, which must be of that kind; and: there is no event. */
#define pt_next(eq, kind) pt_next_at(eq, kind, __FILE__, __LINE__)
#define pt_quiet(eq)      pt_quiet_at(eq, __FILE__, __LINE__)
/*
 * The next events are those whose kinds have their PT_BIT in `kinds`, each once and successful, in
 * any order except START before its END. They are stored by kind, unless ev is NULL.
 */
void pt_await_at(ptl_handle_eq_t eq, unsigned int kinds, ptl_event_t *ev, const char *file,
		 int line);
#define pt_await(eq, kinds, ev) pt_await_at(eq, kinds, ev, __FILE__, __LINE__)
#define PT_BIT(kind)            (1u << (kind))
#define PT_SENT                 (PT_BIT(PTL_EVENT_SEND_START) | PT_BIT(PTL_EVENT_SEND_END))
#define PT_ACKED                (PT_SENT | PT_BIT(PTL_EVENT_ACK))
#define PT_REPLIED              (PT_BIT(PTL_EVENT_REPLY_START) | PT_BIT(PTL_EVENT_REPLY_END))
#define PT_PUT                  (PT_BIT(PTL_EVENT_PUT_START) | PT_BIT(PTL_EVENT_PUT_END))
#define PT_GOT                  (PT_BIT(PTL_EVENT_GET_START) | PT_BIT(PTL_EVENT_GET_END))
#define PT_SWAPPED              (PT_BIT(PTL_EVENT_GETPUT_START) | PT_BIT(PTL_EVENT_GETPUT_END))
const char *pt_kind_name(ptl_event_kind_t kind);

/* ---- who takes what: numbered one-purpose puts ("shots") and entries with a letter ----------- */

/* Target: an entry that accepts what opt says, `length` bytes of a scratch buffer, with that
 * tag. */
ptl_md_t pt_tagged(char tag, ptl_size_t length, unsigned int options);
ptl_handle_md_t pt_entry(ptl_handle_me_t me, char tag);
/* Initiator: the next shot, of `length` bytes; and one with more to choose. */
void pt_shoot(ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_size_t length);
void pt_shoot_at(ptl_process_id_t target, ptl_pt_index_t portal, ptl_ac_index_t ac,
		 ptl_match_bits_t bits, ptl_size_t offset, ptl_size_t length);
/*
 * Target: the shots since the last call were taken by the entries with these tags, one letter per
 * shot, '-' for one that was dropped. Tagged MDs log PUT_END and UNLINK events to pt_shots_eq();
 * UNLINK events are skipped here.
 */
void pt_taken_at(const char *tags, const char *file, int line);
#define pt_taken(tags) pt_taken_at(tags, __FILE__, __LINE__)
ptl_handle_eq_t pt_shots_eq(void);

/* ---- bursts: long puts and gets, hundreds at the same time ----------------------------------- */

/* Every rank, after pt_open: entries for `most` puts and gets of each rank at the same time. */
void pt_burst_open(int most);
/* Starts `count` puts to a rank and as many gets from it, in turn, with some more that nobody
 * takes, and looks at no event. */
void pt_burst_start(int rank, int count);
/* Waits until `count` of each have ended, and checks that each did once and what the gets got.
 * Of a rank that may be dead only the ends count. Returns how many failed. */
int pt_burst_ended(int rank, int count, bool may_fail);
/* Waits until `count` puts and gets of that rank have ended here, and checks what the puts left. */
void pt_burst_served(int rank, int count);
/* Waits until all that a dead rank started here and was begun has ended. Returns how many
 * failed. */
int pt_burst_cut_off(int rank);

/* ---- patterned memory, contiguous or scattered ----------------------------------------------- */

struct pt_buf {
	size_t length;       /* bytes of the logical region */
	ptl_md_iovec_t *iov; /* NULL when contiguous */
	size_t pieces;
	unsigned char *block; /* the memory with the guard bytes */
	size_t block_length;
};

unsigned char pt_pattern(uint64_t seed, size_t i);
void pt_pattern_block(unsigned char *to, size_t len, uint64_t seed, size_t from);
void pt_fill(void *p, size_t len, uint64_t seed, size_t from);
void pt_check_pattern(const void *p, size_t len, uint64_t seed, size_t from, const char *file,
		      int line);
#define pt_holds(p, len, seed, from) pt_check_pattern(p, len, seed, from, __FILE__, __LINE__)

/* pieces 0: contiguous. Else an iovec of that many entries of uneven sizes, some empty. */
struct pt_buf pt_buf_new(size_t length, size_t pieces);
void pt_buf_free(struct pt_buf *buf);
void pt_buf_fill(struct pt_buf *buf, uint64_t seed);
/* Logical bytes [off, off + len) hold the pattern of seed from its byte `from` on. */
void pt_buf_check(const struct pt_buf *buf, size_t off, size_t len, uint64_t seed, size_t from,
		  const char *file, int line);
#define pt_buf_holds(buf, off, len, seed, from)                                                    \
	pt_buf_check(buf, off, len, seed, from, __FILE__, __LINE__)
/* Nothing was written between and around the segments. */
void pt_buf_guarded_at(const struct pt_buf *buf, const char *file, int line);
#define pt_buf_guarded(buf) pt_buf_guarded_at(buf, __FILE__, __LINE__)
ptl_md_t pt_buf_md(const struct pt_buf *buf, unsigned int options, ptl_handle_eq_t eq);

/* Sizes around every boundary where a transport may change its ways. */
extern const size_t pt_sizes[];
extern const size_t pt_size_count;

uint64_t pt_random(uint64_t *state);

#endif
