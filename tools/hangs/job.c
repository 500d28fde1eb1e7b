/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Finds the processes of a job. Each rank has a file of its own (record.h), with the number of
 * its job in it. A child that a rank has forked has the same file: the rank is the process that
 * calls itself so in the file.
 */
#include "tools/hangs/job.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

enum { PIDS_MOST = 1 << 22, STALE_MS = 6 * BASE_WAITS_BEAT_MS };

/* A process, and the one that started it. */
struct process {
	pid_t pid, parent;
	bool wanted;
};

struct processes {
	struct process *all;
	size_t n, room;
};

/* The fields of /proc/PID/stat behind the name, which may hold anything. */
static bool read_stat(pid_t pid, char *state, int *parent)
{
	char path[40], text[1024], *end;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %c %d", state, parent) == 2;
}

char process_state(pid_t pid)
{
	int parent;
	char state;

	return read_stat(pid, &state, &parent) ? state : '?';
}

static bool add_process(struct processes *p, pid_t pid)
{
	struct process *more;
	char state;
	int parent = 0;

	if (!read_stat(pid, &state, &parent))
		return true; /* it has just ended */
	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 256;
		more = realloc(p->all, p->room * sizeof(*more));
		if (!more)
			return false;
		p->all = more;
	}
	p->all[p->n++] = (struct process){ .pid = pid, .parent = (pid_t)parent };
	return true;
}

static bool list_processes(struct processes *p)
{
	const struct dirent *entry;
	DIR *d = opendir("/proc");
	bool ok = d != NULL;

	while (ok && (entry = readdir(d)))
		if (isdigit((unsigned char)entry->d_name[0]) && p->n < PIDS_MOST)
			ok = add_process(p, (pid_t)strtol(entry->d_name, NULL, 10));
	if (d)
		closedir(d);
	return ok;
}

static int compare_pids(const void *a, const void *b)
{
	const struct process *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

/* Marks the process and all that descend from it. */
static void mark_family(struct processes *p, pid_t root)
{
	bool more = true;

	if (p->n)
		qsort(p->all, p->n, sizeof(*p->all), compare_pids);
	for (size_t i = 0; i < p->n; i++)
		p->all[i].wanted = p->all[i].pid == root;
	while (more) {
		more = false;
		for (size_t i = 0; i < p->n; i++) {
			const struct process key = { .pid = p->all[i].parent };
			const struct process *parent =
				bsearch(&key, p->all, p->n, sizeof(key), compare_pids);

			if (!p->all[i].wanted && parent && parent->wanted)
				more = p->all[i].wanted = true;
		}
	}
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void name_program(struct job_seen *job, pid_t pid)
{
	char path[40];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(job->program, sizeof(job->program), f))
		job->program[0] = '\0';
	fclose(f);
	for (char *c = job->program; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = *c == '\n' ? '\0' : '?';
}

static bool read_record(pid_t pid, struct record *record)
{
	struct record_file file;

	return record_find(pid, &file) && record_read(&file, record);
}

/* Takes the record in, if it is of the job. Of two processes with one file that is kept which
 * has the pid in it. */
static bool take_rank(struct job_seen *job, pid_t pid, const struct record *record,
		      const struct record *first)
{
	struct rank_seen *r;

	if (!job->ranks) {
		job->size = record->size;
		job->ranks = calloc((size_t)record->size, sizeof(*job->ranks));
		if (!job->ranks)
			return false;
		name_program(job, pid);
	}
	if (record->job != first->job || record->size != job->size)
		return true;
	r = &job->ranks[record->rank];
	if (r->pid && record->pid != (int32_t)pid)
		return true;
	job->here += !r->pid;
	r->pid = pid;
	r->record = *record;
	return true;
}

/* Searches these processes, or all of them, for ranks of the job of the first that is found. */
static bool take_ranks(struct job_seen *job, const struct processes *p, bool family,
		       struct record *first)
{
	static struct record record;

	for (size_t i = 0; i < p->n; i++) {
		if (p->all[i].wanted != family || !read_record(p->all[i].pid, &record))
			continue;
		if (!job->ranks)
			*first = record;
		if (!take_rank(job, p->all[i].pid, &record, first))
			return false;
	}
	return true;
}

bool job_read(pid_t pid, bool family, struct job_seen *job)
{
	static struct record first;
	struct processes p = { .n = 0 };
	bool ok;

	*job = (struct job_seen){ .now_ms = (int64_t)base_now_ms() };
	ok = list_processes(&p);
	if (ok) {
		mark_family(&p, pid);
		/* the pid may be one rank of several, whose launcher is not known */
		ok = take_ranks(job, &p, true, &first) &&
		     (!job->ranks || family || job->here == job->size ||
		      take_ranks(job, &p, false, &first));
	}
	free(p.all);
	errno = ok ? ESRCH : ENOMEM;
	if (ok && job->ranks)
		return true;
	job_free(job);
	return false;
}

void job_free(struct job_seen *job)
{
	free(job->ranks);
	job->ranks = NULL;
}

bool rank_waits(const struct job_seen *job, const struct rank_seen *r)
{
	return r->pid && r->record.ever && r->record.body.waits &&
	       job->now_ms - r->record.body.beat_ms < STALE_MS;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The library names its threads: postern-shm, postern-net. */
static bool is_of_library(pid_t pid, const char *task)
{
	char path[320], name[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, task);
	f = fopen(path, "re");
	if (!f)
		return true; /* it has ended */
	if (!fgets(name, sizeof(name), f))
		name[0] = '\0';
	fclose(f);
	return !strncmp(name, "postern-", 8);
}

static int program_threads(pid_t pid)
{
	const struct dirent *entry;
	char path[40];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (entry = readdir(d)))
		n += isdigit((unsigned char)entry->d_name[0]) && !is_of_library(pid, entry->d_name);
	if (d)
		closedir(d);
	return n;
}

/* ---- which jobs are stuck -------------------------------------------------------------------- */

/* Whether the rank waits for other ranks of its world, in all threads of the program. */
static bool only_waits(const struct job_seen *job, const struct rank_seen *r)
{
	const struct base_waits_body *b = &r->record.body;

	if (!r->record.ever || !b->waits || b->moving)
		return false;
	for (uint32_t i = 0; i < b->ops && i < BASE_WAITS_OPS; i++)
		if (b->op[i].peer >= job->size)
			return false;
	return !r->record.threaded || program_threads(r->pid) == (int)b->waits;
}

bool job_is_stuck(const struct job_seen *job, int64_t ms)
{
	int64_t since = INT64_MIN;
	bool any = false;

	for (int i = 0; i < job->size; i++)
		if (job->ranks[i].pid && job->ranks[i].record.body.since_ms > since)
			since = job->ranks[i].record.body.since_ms;
	for (int i = 0; i < job->size; i++) {
		const struct rank_seen *r = &job->ranks[i];

		if (!r->pid)
			continue;
		any = true;
		/* a record may hold any number */
		if (since > job->now_ms || r->record.body.beat_ms > job->now_ms + 1000 ||
		    job->now_ms - since < ms || r->record.body.beat_ms - ms < since ||
		    !only_waits(job, r))
			return false;
	}
	return any;
}
