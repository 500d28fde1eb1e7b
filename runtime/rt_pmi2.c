/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's end of a PMI-2 connection: one request, one answer, in blocks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/pmi2_wire.h"
#include "runtime/pmi_map_wire.h"
#include "runtime/rt_backend.h"
#include "runtime/rt_parts.h"
#include "runtime/rt_pmi.h"
#include "runtime/rt_pmi2.h"

/* Receive the answer of this kind. Others are refused. */
static int block_for(struct rt_pmi2 *pmi, const char *doing, enum pmi2_cmd kind,
		     struct pmi2_msg *answer)
{
	const char *block = "";
	size_t len = 0;
	int err = rt_link_block(&pmi->link, &block, &len);

	if (err && err != -EPROTO)
		return rt_link_broken(&pmi->link, doing, err);
	if (err)
		return rt_link_bad_answer(&pmi->link, "PMI-2", doing, pmi->link.in, PMI2_HEAD);
	if (pmi2_decode(block, len, answer) || answer->cmd != kind)
		return rt_link_bad_answer(&pmi->link, "PMI-2", doing, block, len);
	return 0;
}

/* Send ask and wait for the answer of this kind. call is held. */
static int pmi2_request(struct rt_pmi2 *pmi, const char *doing, const struct pmi2_msg *ask,
			enum pmi2_cmd kind, struct pmi2_msg *answer)
{
	int n, err;

	*answer = (struct pmi2_msg){ .present = 0 };
	if (pmi->link.error)
		return pmi->link.error;
	n = pmi2_encode(ask, pmi->link.out, PMI2_MESSAGE_MAX);
	err = n < 0 ? n : rt_link_send(&pmi->link, pmi->link.out, (size_t)n, pmi->link.timeout_ms);
	if (err)
		return rt_link_broken(&pmi->link, doing, err);
	err = block_for(pmi, doing, kind, answer);
	if (err || !pmi2_has(answer, PMI2_RC) || !answer->num[PMI2_RC])
		return err;
	base_warn("the launcher (PMI_FD=%d) refused this process while it was %s, with code %d: "
		  "%.*s",
		  pmi->link.fd, doing, answer->num[PMI2_RC], (int)answer->text[PMI2_ERRMSG].len,
		  answer->text[PMI2_ERRMSG].len ? answer->text[PMI2_ERRMSG].ptr : "");
	return -EIO;
}

static int join_as(struct rt_pmi2 *pmi, int rank, const char *job_text)
{
	struct pmi2_msg ask, answer;
	int err;

	pmi2_begin(&ask, PMI2_CMD_FULLINIT);
	if (job_text)
		pmi2_set_text(&ask, PMI2_PMIJOBID, job_text);
	pmi2_set_num(&ask, PMI2_PMIRANK, rank);
	pmi2_set_text(&ask, PMI2_THREADED, "FALSE");
	err = pmi2_request(pmi, rt_link_joining, &ask, PMI2_CMD_GOT_FULLINIT, &answer);
	if (err)
		return err;
	pmi->rank = answer.num[PMI2_RANK];
	pmi->size = answer.num[PMI2_SIZE];
	if (answer.num[PMI2_APPNUM] > 0) /* Slurm's has none, and says -1 */
		pmi->program = answer.num[PMI2_APPNUM];
	if (pmi->size > 0 && pmi->rank >= 0 && pmi->rank < pmi->size)
		return 0;
	base_warn("the launcher (PMI_FD=%d) says that this is rank %d of %d, which is none",
		  pmi->link.fd, pmi->rank, pmi->size);
	return -EPROTO;
}

static int ask_jobid(struct rt_pmi2 *pmi)
{
	struct pmi2_msg ask, answer;
	struct pmi1_text id;
	int err;

	pmi2_begin(&ask, PMI2_CMD_GETID);
	err = pmi2_request(pmi, "asking for the job's name", &ask, PMI2_CMD_GOT_ID, &answer);
	if (err)
		return err;
	id = answer.text[PMI2_JOBID];
	if (id.len > RT_PMI2_JOBID_MAX)
		return rt_link_bad_answer(&pmi->link, "PMI-2", "asking for the job's name", id.ptr,
					  id.len);
	if (id.len)
		memcpy(pmi->jobid, id.ptr, id.len);
	pmi->jobid[id.len] = '\0';
	return 0;
}

int rt_pmi2_init(struct rt_pmi2 *pmi, int fd, int rank, const char *job_text, bool debug)
{
	int err;

	*pmi = (struct rt_pmi2){ .program = 0 };
	err = rt_link_open(&pmi->link, fd, debug);
	if (err)
		return err;
	err = rt_pmi_ask_version(&pmi->link, 2);
	if (!err)
		err = join_as(pmi, rank, job_text);
	if (!err)
		err = ask_jobid(pmi);
	if (err)
		rt_link_release(&pmi->link);
	else
		pmi->link.timeout_ms = -1;
	return err;
}

void rt_pmi2_fini(struct rt_pmi2 *pmi)
{
	struct pmi2_msg ask, answer;

	if (!rt_link_lock_to_end(&pmi->link))
		return;
	if (!pmi->link.error) {
		pmi2_begin(&ask, PMI2_CMD_FINALIZE);
		pmi2_request(pmi, "leaving the job", &ask, PMI2_CMD_FINALIZED, &answer);
	}
	pmi->link.error = -ESHUTDOWN;
	rt_link_release(&pmi->link);
	pthread_mutex_unlock(&pmi->link.call);
}

static int put_block(void *link, const char *key, const char *part)
{
	struct rt_pmi2 *pmi = link;
	struct pmi2_msg ask, answer;

	pmi->link.hides = rt_is_secret(key);
	pmi2_begin(&ask, PMI2_CMD_PUT);
	pmi2_set_text(&ask, PMI2_KEY, key);
	pmi2_set_text(&ask, PMI2_VALUE, part);
	return pmi2_request(pmi, "publishing a value", &ask, PMI2_CMD_PUT_DONE, &answer);
}

/* A value of the job (kvs-get) or of the launcher (info-getjobattr). The text is in the receive
 * buffer, valid until the next request. */
static int get_value(struct rt_pmi2 *pmi, enum pmi2_cmd cmd, enum pmi2_cmd kind, const char *key,
		     struct pmi1_text *text)
{
	struct pmi2_msg ask, answer;
	int err;

	pmi->link.hides = rt_is_secret(key);
	pmi2_begin(&ask, cmd);
	if (cmd == PMI2_CMD_GET) {
		pmi2_set_text(&ask, PMI2_JOBID, pmi->jobid);
		pmi2_set_num(&ask, PMI2_SRCID, -1);
	}
	pmi2_set_text(&ask, PMI2_KEY, key);
	err = pmi2_request(pmi, "reading a value", &ask, kind, &answer);
	if (err)
		return err;
	if (!pmi1_text_is(answer.text[PMI2_FOUND], "TRUE") || !pmi2_has(&answer, PMI2_VALUE))
		return -ENOENT;
	*text = answer.text[PMI2_VALUE];
	return 0;
}

static int get_block(void *link, const char *key, struct pmi1_text *text)
{
	return get_value(link, PMI2_CMD_GET, PMI2_CMD_GOT, key, text);
}

static struct rt_parts blocks_of(struct rt_pmi2 *pmi)
{
	return (struct rt_parts){ pmi, PMI2_KEY_MAX, PMI2_VALUE_MAX, put_block, get_block };
}

int rt_pmi2_put(struct rt_pmi2 *pmi, const char *key, const char *value)
{
	const struct rt_parts parts = blocks_of(pmi);
	int err;

	pthread_mutex_lock(&pmi->link.call);
	err = rt_parts_put(&parts, key, value);
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

int rt_pmi2_get(struct rt_pmi2 *pmi, const char *key, char *value, size_t size)
{
	const struct rt_parts parts = blocks_of(pmi);
	int err;

	pthread_mutex_lock(&pmi->link.call);
	err = rt_parts_get(&parts, key, value, size);
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

int rt_pmi2_fence(struct rt_pmi2 *pmi)
{
	struct pmi2_msg ask, answer;
	int err;

	pmi2_begin(&ask, PMI2_CMD_FENCE);
	pthread_mutex_lock(&pmi->link.call);
	err = pmi2_request(pmi, "waiting in a fence", &ask, PMI2_CMD_FENCE_DONE, &answer);
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

int rt_pmi2_local(struct rt_pmi2 *pmi, int *rank, int *size)
{
	struct pmi1_text mapping;
	int err;

	pthread_mutex_lock(&pmi->link.call);
	err = get_value(pmi, PMI2_CMD_GETJOBATTR, PMI2_CMD_GOT_JOBATTR, PMI_MAP_KEY, &mapping);
	if (!err)
		err = pmi_map_local(mapping.ptr, mapping.len, pmi->rank, pmi->size, rank, size);
	pthread_mutex_unlock(&pmi->link.call);
	return err;
}

/* The text as it can travel: shortened, and blanks for what the protocol does not take. */
static void plain_text(const char *text, char *out, size_t size)
{
	size_t i = 0;

	for (; text[i] && i + 1 < size; i++)
		out[i] = text[i];
	out[i] = '\0';
	for (i = 0; out[i]; i++)
		if (out[i] < ' ' || out[i] > '~' || out[i] == ';')
			out[i] = ' ';
}

int rt_pmi2_abort(struct rt_pmi2 *pmi, int code, const char *message)
{
	struct pmi2_msg ask;
	char text[200], block[400];
	int n;

	plain_text(message ? message : "aborted", text, sizeof(text));
	pmi2_begin(&ask, PMI2_CMD_ABORT);
	pmi2_set_text(&ask, PMI2_ISWORLD, "TRUE");
	pmi2_set_text(&ask, PMI2_MSG, text);
	pmi2_set_num(&ask, PMI2_EXITCODE, code);
	n = pmi2_encode(&ask, block, sizeof(block));
	return n < 0 ? n : rt_link_send(&pmi->link, block, (size_t)n, RT_LINK_FINI_MS);
}

/* ---- for rt.c -------------------------------------------------------------------------------- */

static struct rt_pmi2 the_pmi;

/* Hydra's PMI-2 has no abort before MPICH 4.1, and its PMI-1 has all that is used here. */
static bool visible(char *text, size_t size)
{
	const bool hydra = base_config_env("MPI_LOCALRANKID") &&
			   base_config()->ptl_launcher == BASE_LAUNCHER_AUTO;

	if (!rt_pmi_visible(text, size))
		return false;
	if (hydra)
		snprintf(text, size, "of Hydra (MPI_LOCALRANKID is set) PMI-1 is used");
	return !hydra;
}

static int join(struct rt_job *job)
{
	int fd, err = rt_pmi_socket(job, &fd);

	if (err)
		return err;
	err = rt_pmi2_init(&the_pmi, fd, job->rank, base_config_env("PMI_JOBID"),
			   base_config()->ptl_pmi_debug);
	if (err == -EPROTONOSUPPORT)
		base_warn("the launcher (PMI_FD=%d) does not speak PMI-2; leave PTL_LAUNCHER=auto, "
			  "and PMI-1 is tried next",
			  fd);
	else if (err)
		base_warn("if it speaks PMI-1 alone, set PTL_LAUNCHER=pmi1");
	if (err && err != -EPROTONOSUPPORT)
		rt_pmi_give_up(err);
	if (err)
		return err;
	job->rank = the_pmi.rank;
	job->size = the_pmi.size;
	rt_set_id(job, the_pmi.jobid);
	return 0;
}

static int put(const char *key, const char *value)
{
	return rt_pmi2_put(&the_pmi, key, value);
}

static int fence(void)
{
	return rt_pmi2_fence(&the_pmi);
}

static int get(int rank, const char *key, char *value, size_t len)
{
	(void)rank; /* the launcher has one store */
	return rt_pmi2_get(&the_pmi, key, value, len);
}

static int program(void)
{
	return the_pmi.program;
}

static int local(int *rank, int *size)
{
	return rt_pmi2_local(&the_pmi, rank, size);
}

static int abort_by_pmi2(int code, const char *message)
{
	return rt_pmi2_abort(&the_pmi, code, message);
}

static void fini(int status)
{
	if (status <= 0)
		rt_pmi2_fini(&the_pmi);
	else /* Slurm lets the others wait, whatever the connection does */
		rt_pmi2_abort(&the_pmi, status, "a rank has failed");
}

const struct rt_backend rt_pmi2_backend = {
	.name = "pmi2",
	.visible = visible,
	.join = join,
	.put = put,
	.fence = fence,
	.get = get,
	.program = program,
	.local = local,
	.abort = abort_by_pmi2,
	.fini = fini,
};
