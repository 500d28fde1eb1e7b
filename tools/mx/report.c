/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Common parts of the reporting tools: see report.h. Endpoints of other processes are read from the
 * file that each process with endpoints has open (mx_shim/mx_seen.h).
 */
#include "report.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *report_tool;
bool report_omx;

void report_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	report_tool = slash ? slash + 1 : argv0;
	report_omx = strncmp(report_tool, "omx_", 4) == 0;
}

void report_check(mx_return_t ret, const char *what)
{
	if (ret == MX_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: %s\n", report_tool, what, mx_strerror(ret));
	exit(1);
}

void report_start(void)
{
	mx_set_error_handler(MX_ERRORS_RETURN);
	report_check(mx_init(), "start");
}

uint32_t report_board_option(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (*text && *text != '-' && !*end && value < UINT32_MAX)
		return (uint32_t)value;
	fprintf(stderr, "%s: -b %s: not the number of a board\n", report_tool, text);
	exit(2);
}

uint32_t report_boards(void)
{
	uint32_t count;

	report_check(mx_get_info(NULL, MX_NIC_COUNT, NULL, 0, &count, sizeof(count)),
		     "number of boards");
	return count;
}

uint32_t report_endpoints(void)
{
	uint32_t count;

	report_check(mx_get_info(NULL, MX_MAX_NATIVE_ENDPOINTS, NULL, 0, &count, sizeof(count)),
		     "endpoints of a board");
	return count;
}

uint64_t report_board_name(uint32_t board, char name[MX_MAX_HOSTNAME_LEN])
{
	uint64_t nic_id;
	char what[32];

	snprintf(what, sizeof(what), "board %u", board);
	report_check(mx_board_number_to_nic_id(board, &nic_id), what);
	report_check(mx_nic_id_to_hostname(nic_id, name), what);
	return nic_id;
}

const char *report_mac(uint64_t nic_id, char text[REPORT_MAC_LEN])
{
	snprintf(text, REPORT_MAC_LEN, "%02x:%02x:%02x:%02x:%02x:%02x",
		 (unsigned int)(nic_id >> 40) & 0xff, (unsigned int)(nic_id >> 32) & 0xff,
		 (unsigned int)(nic_id >> 24) & 0xff, (unsigned int)(nic_id >> 16) & 0xff,
		 (unsigned int)(nic_id >> 8) & 0xff, (unsigned int)nic_id & 0xff);
	return text;
}

/* ---- endpoints of other processes ------------------------------------------------------------ */

enum { ENDPOINTS = 256 }; /* ids of a board */

struct seen_search {
	bool writable;
	void (*show)(const struct report_endpoint *, void *);
	void *arg;
};

/* Is this link target of a descriptor the file that shows endpoints? */
static bool is_seen_file(const char *target)
{
	const char *memfd = "/memfd:" MX_SEEN_FILE " ";
	const char *name = strrchr(target, '/');

	return strncmp(target, memfd, strlen(memfd)) == 0 ||
	       (name && strncmp(name + 1, MX_SEEN_FILE "-", sizeof(MX_SEEN_FILE)) == 0);
}

static struct mx_seen_file *map_seen_file(const char *path, uid_t owner, bool writable)
{
	int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	struct mx_seen_file *file = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	/* any process may have a file with this name */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == owner &&
	    (size_t)st.st_size >= sizeof(*file))
		file = mmap(NULL, sizeof(*file), PROT_READ | (writable ? PROT_WRITE : 0),
			    MAP_SHARED, fd, 0);
	close(fd);
	return file == MAP_FAILED ? NULL : file;
}

static void command_of_process(uint32_t pid, char *command, int len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(command, len, f))
		snprintf(command, (size_t)len, "?");
	if (f)
		fclose(f);
	command[strcspn(command, "\n")] = 0;
	for (; *command; command++)
		if (*command < ' ' || *command > '~')
			*command = '?';
}

static void show_seen_file(const struct seen_search *search, uint32_t pid, uid_t owner,
			   const char *path)
{
	struct mx_seen_file *file = map_seen_file(path, owner, search->writable);
	struct report_endpoint found = { .pid = pid };
	char command[64];

	if (!file)
		return;
	command_of_process(pid, command, sizeof(command));
	found.command = command;
	for (unsigned int i = 0; i < MX_SEEN_ENDPOINTS && file->magic == MX_SEEN_MAGIC; i++) {
		found.seen = &file->endpoint[i];
		/* pairs with the release of mx_seen_open; a child has the file of its parent */
		if (file->pid == pid &&
		    atomic_load_explicit(&found.seen->open, memory_order_acquire) &&
		    found.seen->eid < ENDPOINTS)
			search->show(&found, search->arg);
	}
	munmap(file, sizeof(*file));
}

static void search_process(const struct seen_search *search, uint32_t pid)
{
	char dir[64], path[PATH_MAX], target[256];
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%u/fd", pid);
	d = opendir(dir);
	if (!d || fstat(dirfd(d), &st)) {
		if (d)
			closedir(d);
		return; /* it has ended, or belongs to somebody else */
	}
	while ((e = readdir(d))) {
		ssize_t len;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = 0;
		if (is_seen_file(target))
			show_seen_file(search, pid, st.st_uid, path);
	}
	closedir(d);
}

void report_each_endpoint(bool writable, void (*show)(const struct report_endpoint *, void *),
			  void *arg)
{
	struct seen_search search = { writable, show, arg };
	DIR *d = opendir("/proc");
	struct dirent *e;

	if (!d) {
		fprintf(stderr, "%s: /proc: %m; processes cannot be looked at\n", report_tool);
		exit(1);
	}
	while ((e = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(e->d_name, &end, 10);

		if (pid > 0 && !*end)
			search_process(&search, (uint32_t)pid);
	}
	closedir(d);
}
