/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * portals-stat: what a running, or hung, process is doing. It maps the process's regions
 * read-only through /proc and prints their statistics page and the tables it points to. The
 * process is not stopped, asked or disturbed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "portals/engine/region.h"
#include "tools/hangs/report.h"

#define TEXT(name, text) text,

static const char *const drop_text[] = { PTL_DROP_TABLE(TEXT) };
static const char *const count_text[] = { PTL_COUNT_TABLE(TEXT) };

#define PAGE 4096ull

struct region {
	const struct ptl_stat *s; /* the beginning of r */
	const struct ptl_region *r;
	int fd;
	uint64_t size; /* of the file */
	/* another part of the file, mapped */
	void *table;
	size_t table_bytes;
};

static void print_stat_usage(FILE *to)
{
	fputs("usage: portals-stat [--watch[=SECONDS]] [--job] PID\n"
	      "\n"
	      "Shows the Portals interfaces of a running process: peers, posted entries, queue "
	      "depths,\n"
	      "what was dropped and why, and the oldest unfinished operation. The process is not "
	      "disturbed.\n"
	      "  -j, --job              what the ranks of an MPI job on this node wait for; PID "
	      "is one of\n"
	      "                         them or their launcher\n"
	      "  -w, --watch[=SECONDS]  again every SECONDS (default 1), until interrupted\n"
	      "  -V, --version          version\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "portals-stat(1) explains the output.\n",
	      to);
}

static uint64_t stat_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Map a table of the region. NULL if it would not lie within the region or cannot be mapped. It
 * stays mapped until the next call. */
static const void *table_at(struct region *r, uint64_t off, uint64_t n, size_t size)
{
	uint64_t page = off & ~(PAGE - 1);

	if (r->table)
		munmap(r->table, r->table_bytes);
	r->table = NULL;
	n = n ? n : 1; /* an empty table is valid, too */
	if (off > r->size || n > (r->size - off) / size)
		return NULL;
	r->table_bytes = n * size + (off - page);
	r->table = mmap(NULL, r->table_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, r->fd,
			(off_t)page);
	if (r->table == MAP_FAILED)
		r->table = NULL;
	return r->table ? (const char *)r->table + (off - page) : NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static const char *address_text(uint32_t nid)
{
	struct in_addr a = { htonl(nid) };

	return inet_ntoa(a);
}

static void show_peers(struct region *r)
{
	const struct ptl_stat_peer *p = table_at(r, r->s->peer_off, r->s->peer_high, sizeof(*p));

	if (!p)
		return;
	for (uint32_t i = 0; i < r->s->peer_high; i++)
		if (p[i].state)
			printf("  peer      nid %s pid %u, process %u, by %.8s%s\n",
			       address_text(p[i].id.nid), p[i].id.pid, p[i].os_pid, p[i].nal,
			       p[i].os_pid == r->s->os_pid ? " (itself)"
			       : p[i].flags & PTL_PEER_CMA ? " with cross-memory attach"
							   : " through shared memory");
}

static void show_net_peers(struct region *r, int net)
{
	const struct ptl_stat_peer *p =
		table_at(r, r->s->net_peer_off[net], r->s->net_peer_high[net], sizeof(*p));

	if (!p || !r->s->net_peer_off[net])
		return;
	for (uint32_t i = 0; i < r->s->net_peer_high[net]; i++)
		if (p[i].state)
			printf("  peer      nid %s pid %u, by %.8s: %" PRIu64
			       " messages to it, %" PRIu64 " from it%s\n",
			       address_text(p[i].id.nid), p[i].id.pid, p[i].nal, p[i].sent,
			       p[i].received, p[i].state == 1 ? "" : ", not connected");
}

/* Show a block for unexpected messages: locally managed, and full below its high-water mark. */
static void show_block(const struct ptl_slot *slot, uint32_t i, uint32_t mes)
{
	const struct ptl_md *md = &slot[i].md;
	uint64_t used = md->local_offset;

	if (!(md->state & PTL_OBJ_LIVE) || !(md->options & PTL_MD_MAX_SIZE) ||
	    md->options & PTL_MD_MANAGE_REMOTE || md->me >= mes)
		return;
	printf("  block     portal %u: %" PRIu64 " of %" PRIu64
	       " bytes used, %s with less than %" PRIu64 " left\n",
	       slot[md->me].me.pt_index, used, md->length,
	       md->state & PTL_OBJ_INACTIVE ? "FULL" : "full", md->max_size);
}

static void show_blocks(struct region *r)
{
	const struct ptl_region *rg = r->r;
	/* as many as there is room for at the moment */
	uint32_t n = (uint32_t)(rg->part_now[PTL_PART_SLOT] / sizeof(struct ptl_slot));
	uint32_t mds = n, mes = n;
	const struct ptl_slot *slot = table_at(r, rg->part_off[PTL_PART_SLOT], n, sizeof(*slot));

	if (!slot)
		return;
	/* the ones between were never used, and reading them would allocate memory */
	for (uint32_t i = 0; i < rg->md_high && i < mds; i++)
		show_block(slot, i, mes);
	for (uint32_t i = rg->md_low > rg->md_high ? rg->md_low : rg->md_high; i < mds; i++)
		show_block(slot, i, mes);
}

static void show_queues(struct region *r)
{
	const struct ptl_eq *q = table_at(r, r->s->eq_off, r->s->eq_high, sizeof(*q));

	if (!q)
		return;
	for (uint32_t i = 0; i < r->s->eq_high; i++)
		if (q[i].state & 1)
			printf("  queue %-3u %" PRIu64
			       " of %u events waiting, %u owed by operations in progress, "
			       "%" PRIu64 " posted\n",
			       i, q[i].tail - q[i].head, q[i].mask + 1, q[i].owed, q[i].tail);
}

static const char *kind_text(unsigned int kind)
{
	static const char *const text[] = { "?", "put", "get", "getput" };

	return kind < 4 ? text[kind] : "?";
}

static void show_operations(struct region *r)
{
	const struct ptl_op *op = table_at(r, r->s->op_off, r->s->op_high, sizeof(*op));
	const struct ptl_op *oldest = NULL;
	uint32_t n = 0;

	if (!op)
		return;
	for (uint32_t i = 0; i < r->s->op_high; i++) {
		if (!(op[i].gen & 1))
			continue;
		n++;
		if (!oldest || op[i].started_ms < oldest->started_ms)
			oldest = &op[i];
	}
	printf("  waiting for peers: %u operations", n);
	if (oldest)
		printf("; the oldest, for %.1f s: %s of %" PRIu64
		       " bytes to nid %s pid %u, portal %u, "
		       "match bits 0x%" PRIx64,
		       (double)(stat_now_ms() - oldest->started_ms) / 1000, kind_text(oldest->kind),
		       oldest->length, address_text(oldest->target.nid), oldest->target.pid,
		       oldest->pt_index, oldest->match_bits);
	putchar('\n');
}

static void show_counts(const struct ptl_stat *s)
{
	for (int i = 0; i < PTL_COUNT_COUNT_; i++)
		if (s->counts[i])
			printf("  %14" PRIu64 " %s\n", s->counts[i], count_text[i]);
	for (int i = 0; i < PTL_DROP_COUNT_; i++)
		if (s->drops[i])
			printf("  %14" PRIu64 " dropped: %s\n", s->drops[i], drop_text[i]);
}

static void show_region(struct region *r)
{
	const struct ptl_stat *s = r->s;

	printf("%.32s, process %u: interface %u, nid %s pid %u, uid %u, jid %u, up %.1f s%s\n",
	       s->program, s->os_pid, s->interface, address_text(s->id.nid), s->id.pid, s->uid,
	       s->jid, (double)(stat_now_ms() - s->started_ms) / 1000, s->closed ? ", CLOSED" : "");
	printf("  transports %.32s; data moved by %.64s\n", s->nals, s->progress);
	printf("  %u threads asleep in a wait\n", s->waiters);
	printf("  messages  %" PRIu64 " started (%" PRIu64 " bytes), %" PRIu64 " accepted (%" PRIu64
	       " bytes), %" PRIu64 " dropped\n",
	       s->sr[PTL_SR_SEND_COUNT], s->sr[PTL_SR_SEND_LENGTH], s->sr[PTL_SR_RECV_COUNT],
	       s->sr[PTL_SR_RECV_LENGTH], s->sr[PTL_SR_DROP_COUNT]);
	printf("  posted    %" PRIu64 " match entries on %" PRIu64 " portals, %" PRIu64
	       " memory descriptors, %" PRIu64 " event queues\n",
	       s->sr[PTL_SR_MES_CUR], s->sr[PTL_SR_PTLS_CUR], s->sr[PTL_SR_MDS_CUR],
	       s->sr[PTL_SR_EQS_CUR]);
	show_peers(r);
	for (int i = 0; i < PTL_STAT_NETS; i++)
		show_net_peers(r, i);
	show_queues(r);
	show_blocks(r);
	show_operations(r);
	show_counts(s);
}

/* ---- finding the regions --------------------------------------------------------------------- */

static void unmap_region(struct region *r)
{
	if (r->table)
		munmap(r->table, r->table_bytes);
	munmap((void *)(uintptr_t)r->r, sizeof(*r->r));
	close(r->fd);
}

static bool map_region_file(const char *path, struct region *r)
{
	struct stat st;
	void *at = MAP_FAILED;

	*r = (struct region){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (r->fd < 0)
		return false;
	if (fstat(r->fd, &st) == 0 && (size_t)st.st_size >= sizeof(*r->r))
		at = mmap(NULL, sizeof(*r->r), PROT_READ, MAP_SHARED | MAP_NORESERVE, r->fd, 0);
	if (at == MAP_FAILED) {
		close(r->fd);
		return false;
	}
	r->r = at;
	r->s = &r->r->stat;
	r->size = (uint64_t)st.st_size;
	if (r->s->magic == PTL_STAT_MAGIC && r->s->version == PTL_STAT_VERSION)
		return true;
	if (r->s->magic == PTL_STAT_MAGIC)
		fprintf(stderr, "portals-stat: %s is of another version of Postern\n", path);
	unmap_region(r);
	return false;
}

/* Is this link target of a descriptor in /proc a region? It is a memfd, or a deleted file
 * (base/shared.h). */
static bool is_region(const char *target)
{
	const char *memfd = "/memfd:" PTL_STAT_MEMFD;
	const char *name = strrchr(target, '/');

	return strncmp(target, memfd, strlen(memfd)) == 0 ||
	       (name && strncmp(name + 1, PTL_STAT_MEMFD "-", sizeof(PTL_STAT_MEMFD)) == 0);
}

/* Show every interface of the process. Returns their number, or -1 after an error message. */
static int show_process(long pid)
{
	char dir[64], path[400], target[256];
	struct dirent *e;
	struct region r;
	int n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%ld/fd", pid);
	d = opendir(dir);
	if (!d) {
		int err = errno;

		fprintf(stderr, "portals-stat: process %ld: %s%s\n", pid, strerror(err),
			access("/proc/self", F_OK) < 0 ? "; /proc is not mounted"
			: err == EACCES                ? "; it belongs to another user"
			: err == ENOENT                ? " (no such process)"
						       : "");
		return -1;
	}
	while ((e = readdir(d))) {
		ssize_t len;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = 0;
		if (!is_region(target) || !map_region_file(path, &r))
			continue;
		show_region(&r);
		unmap_region(&r);
		n++;
	}
	closedir(d);
	if (n == 0)
		fprintf(stderr, "portals-stat: process %ld has no Portals interface open\n", pid);
	return n;
}

/* Shows the ranks of a job. Returns 1, or -1 after an error message. */
static int show_job(long pid)
{
	struct job_seen job;

	if (!job_read((pid_t)pid, false, &job)) {
		if (errno == ENOMEM)
			fprintf(stderr, "portals-stat: out of memory\n");
		else
			fprintf(stderr,
				"portals-stat: process %ld is no rank of an MPI job that is within "
				"reach, and has started none\n",
				pid);
		return -1;
	}
	report_job(stdout, &job);
	job_free(&job);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "job", no_argument, NULL, 'j' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	double every = 0;
	bool job = false;
	char *end;
	long pid;
	int c;

	while ((c = getopt_long(argc, argv, "jw::Vh", options, NULL)) != -1)
		switch (c) {
		case 'j':
			job = true;
			break;
		case 'w':
			every = optarg ? strtod(optarg, &end) : 1;
			if ((optarg && *end) || !(every > 0 && every < 86400)) {
				fprintf(stderr,
					"portals-stat: --watch=%s: not a number of seconds\n",
					optarg);
				return 2;
			}
			break;
		case 'V':
			puts("portals-stat (Postern) " POSTERN_VERSION);
			return 0;
		case 'h':
			print_stat_usage(stdout);
			return 0;
		default:
			print_stat_usage(stderr);
			return 2;
		}
	if (optind + 1 != argc) {
		print_stat_usage(stderr);
		return 2;
	}
	errno = 0;
	pid = strtol(argv[optind], &end, 10);
	if (errno || *end || pid <= 0) {
		fprintf(stderr, "portals-stat: %s: not a process id\n", argv[optind]);
		return 2;
	}
	for (;;) {
		int n = job ? show_job(pid) : show_process(pid);

		fflush(stdout);
		if (!every || n <= 0)
			return n > 0 ? 0 : 1;
		struct timespec t = { (time_t)every,
				      (long)((every - (double)(time_t)every) * 1e9) };
		nanosleep(&t, NULL);
		putchar('\n');
	}
}
