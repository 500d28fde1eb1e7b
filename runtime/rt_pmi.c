/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Discovery of a PMI launcher by its variables, and what the two versions of PMI have in common.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/pmi1_wire.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_link.h"
#include "runtime/rt_others.h"
#include "runtime/rt_pmi.h"

#define REMEDY "to run this process alone, set PTL_LAUNCHER=none"

bool rt_pmi_visible(char *text, size_t size)
{
	static const char *const names[] = { "PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (base_config_env(names[i])) {
			snprintf(text, size, "%s is set", names[i]);
			return true;
		}
	snprintf(text, size, "PMI_FD is not set");
	return false;
}

static bool is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

static bool has_numbers(const struct base_config *cfg)
{
	return base_config_is_set("PMI_RANK") && base_config_is_set("PMI_SIZE") &&
	       cfg->pmi_rank >= 0 && cfg->pmi_size > 0 && cfg->pmi_rank < cfg->pmi_size;
}

bool rt_pmi_connected(void)
{
	const struct base_config *cfg = base_config();

	return base_config_is_set("PMI_FD") && cfg->pmi_fd >= 0 && has_numbers(cfg) &&
	       is_socket((int)cfg->pmi_fd);
}

bool rt_pmi_is_taken(void)
{
	const struct base_config *cfg = base_config();

	return base_config_is_set("PMI_FD") && cfg->pmi_fd >= 0 && rt_is_taken((int)cfg->pmi_fd);
}

/* Is fd usable as the connection to a launcher? */
static int check_fd(long fd)
{
	if (fcntl((int)fd, F_GETFD) < 0) {
		base_warn(
			"PMI_FD=%ld is no open file (%m): whatever started this process closed the "
			"connection to the launcher, as sudo does. Start it directly under the "
			"launcher; " REMEDY,
			fd);
		return -EBADF;
	}
	if (!is_socket((int)fd)) {
		base_warn("PMI_FD=%ld is no socket, so no launcher is behind it; " REMEDY, fd);
		return -ENOTSOCK;
	}
	return 0;
}

/* Warn about launcher variables without a usable PMI_FD: which one was seen, and why it cannot
 * be used. */
static int no_connection(void)
{
	const char *fd = base_config_env("PMI_FD");
	const char *port = base_config_env("PMI_PORT");

	if (fd)
		base_warn("PMI_FD=\"%.32s\" is no file number; " REMEDY, fd);
	else if (port)
		base_warn("the launcher waits for connections (PMI_PORT=%.64s), which is not "
			  "supported; start the job without -pmi-port, or with Postern's mpiexec",
			  port);
	else
		base_warn("PMI_RANK or PMI_SIZE is set but PMI_FD is not: the connection to the "
			  "launcher got lost on the way. Start the process directly under the "
			  "launcher; " REMEDY);
	return -ENOTCONN;
}

static int check_numbers(const struct base_config *cfg)
{
	if (has_numbers(cfg))
		return 0;
	base_warn(
		"PMI_FD is set, but PMI_RANK=%ld and PMI_SIZE=%ld name no rank of a job; start the "
		"process directly under the launcher, or " REMEDY,
		cfg->pmi_rank, cfg->pmi_size);
	return -EINVAL;
}

static int find_socket(const struct base_config *cfg)
{
	int err;

	if (!base_config_is_set("PMI_FD") || cfg->pmi_fd < 0)
		return no_connection();
	/* a rank has started this program, with its own variables but without its connection */
	if (rt_is_taken((int)cfg->pmi_fd))
		return RT_NOT_A_RANK;
	err = check_numbers(cfg);
	return err ? err : check_fd(cfg->pmi_fd);
}

/* Under the lock of rt_init. */
static bool checked;
static int found; /* the result for both versions */

void rt_pmi_give_up(int err)
{
	found = err;
}

int rt_pmi_socket(struct rt_job *job, int *fd)
{
	const struct base_config *cfg = base_config();

	if (!checked)
		found = find_socket(cfg);
	checked = true;
	if (found)
		return found;
	*fd = (int)cfg->pmi_fd;
	/* processes that this one starts must not speak to the launcher in its name */
	fcntl(*fd, F_SETFD, FD_CLOEXEC);
	job->rank = (int)cfg->pmi_rank;
	job->size = (int)cfg->pmi_size;
	return 0;
}

/* Receive the answer to "cmd=init". */
static int read_answer(struct rt_link *link, struct pmi1_msg *answer)
{
	const char *line;
	size_t len;
	int err;

	do {
		err = rt_link_line(link, &line, &len);
		if (err)
			return rt_link_broken(link, rt_link_joining, err);
		/* the previous program of this rank did not wait for the answer to "finalize" */
	} while (!pmi1_decode(line, len, answer) && answer->cmd == PMI1_CMD_FINALIZE_ACK);
	if (pmi1_decode(line, len, answer) || answer->cmd != PMI1_CMD_RESPONSE_TO_INIT)
		return rt_link_bad_answer(link, "PMI", rt_link_joining, line, len);
	return 0;
}

int rt_pmi_ask_version(struct rt_link *link, int version)
{
	struct pmi1_msg ask, answer = { .present = 0 };
	int n, err;

	pmi1_begin(&ask, PMI1_CMD_INIT);
	pmi1_set_num(&ask, PMI1_VERSION, version);
	pmi1_set_num(&ask, PMI1_SUBVERSION, version == 1);
	n = pmi1_encode(&ask, link->out, PMI1_LINE_MAX);
	err = n < 0 ? n : rt_link_send(link, link->out, (size_t)n, link->timeout_ms);
	if (err)
		return rt_link_broken(link, rt_link_joining, err);
	err = read_answer(link, &answer);
	if (err)
		return err;
	if (pmi1_has(&answer, PMI1_VERSION) && answer.num[PMI1_VERSION] != version)
		return -EPROTONOSUPPORT;
	link->knows_exit = pmi1_has(&answer, PMI1_AT_EXIT);
	if (!answer.num[PMI1_RC])
		return 0;
	base_warn("the launcher (PMI_FD=%d) refused this process: %.*s. One process of each rank "
		  "can be in the job at a time, and one that has crashed has not left it; start "
		  "this program when the other one has ended well, or by a launcher of its own",
		  link->fd, (int)answer.text[PMI1_MSG].len, answer.text[PMI1_MSG].ptr);
	return -ECONNREFUSED;
}
