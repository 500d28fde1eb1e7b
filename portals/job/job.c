/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The process's part in the job. The job is known from the launcher or from the environment,
 * else it is "rank 0 of 1". Every interface has a group made of that and of the values the
 * client set.
 *
 * The ids are exchanged once. Each rank puts its own. Where a get is a request to the launcher,
 * rank 0 then puts the table of all, so that the launcher answers a few requests for each rank,
 * and not one for each pair.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/random.h"
#include "nal/nal.h"
#include "portals/engine/ni.h"
#include "portals/job/job.h"
#include "portals/job/job_group.h"
#include "runtime/rt.h"
#include "runtime/rt_env.h"

#define ID_FORMAT "%08x%08x%x" /* nid, pid, interface */
enum { ID_LEN = 17, SECRET_LEN = 32, SECRET_LEAST = 16 };

struct slot {
	bool up;
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	struct ptl_group group;
};

/* wiring is held during the exchange of ids, which waits for peers. lock guards everything
 * below it, and is never held while waiting. Order: wiring, lock. */
static pthread_mutex_t wiring = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct rt_job *job;            /* NULL before the first ptl_job_setup */
static struct rt_env *env;                  /* NULL: the environment describes no job */
static const char *env_missing, *env_found; /* it has one of these and lacks the other */
static ptl_process_id_t *table;             /* from the launcher's exchange, job->size entries */
/* likewise: a line with the job's secret and one for each rank; NULL: there are none */
static char *cards;
static unsigned char file_secret[256]; /* of PTL_KEY_FILE */
static size_t file_secret_len;
static bool tried_file;
static int ids_iface = -1;    /* the interface that table, or env, belongs to */
static struct ptl_group next; /* Set calls with PTL_INVALID_HANDLE */
static struct slot slots[PTL_MAX_INTERFACES];
static ptl_jid_t jid = PTL_JID_ANY;

/* Read the environment as it is now. Locked. -ENOENT: it describes no job. */
static int read_env(void)
{
	struct rt_env *fresh;
	int err = rt_env_read(&fresh, &env_missing, &env_found);

	if (err && err != -ENOENT)
		return err;
	rt_env_destroy(env);
	env = err ? NULL : fresh;
	return err;
}

int ptl_job_setup(void)
{
	const struct rt_job *found;
	int err = rt_init(&found); /* may wait for the launcher */

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	if (!job)
		job = found; /* the same at every call; readers need no lock after the first */
	err = job->kind == RT_LAUNCHER ? 0 : read_env();
	pthread_mutex_unlock(&lock);
	return err == -ENOENT ? 0 : err;
}

/*
 * Once the ids are exchanged the launcher is not needed any more. Leaving it keeps this
 * process's exit code from ending the job. Before the exchange a later PtlInit may still need
 * it.
 */
int ptl_job_part(void)
{
	bool wired;

	pthread_mutex_lock(&lock);
	wired = table;
	pthread_mutex_unlock(&lock);
	if (wired)
		rt_fini();
	return wired ? 0 : -ENOTCONN;
}

void ptl_job_fini(void)
{
	pthread_mutex_lock(&lock);
	ptl_group_fini(&next);
	pthread_mutex_unlock(&lock);
	ptl_job_part();
}

void ptl_job_own_rank(unsigned int *rank, unsigned int *size)
{
	bool alone = job->kind != RT_LAUNCHER && !env;

	*rank = alone ? 0 : (unsigned int)(env ? env->rank : job->rank);
	*size = alone ? 1 : (unsigned int)(env ? env->size : job->size);
}

int ptl_job_rank(unsigned int *rank, unsigned int *size)
{
	bool known;
	int err = 0;

	pthread_mutex_lock(&lock);
	known = job;
	pthread_mutex_unlock(&lock);
	if (!known)
		err = ptl_job_setup();
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	ptl_job_own_rank(rank, size);
	pthread_mutex_unlock(&lock);
	return 0;
}

int ptl_job_fence(void)
{
	unsigned int rank, size;
	int err = ptl_job_rank(&rank, &size);

	if (err)
		return err;
	if (job->kind == RT_LAUNCHER)
		return rt_fence();
	return size == 1 ? 0 : -EOPNOTSUPP;
}

/* The environment's ids as one array, for the caller to free. Locked. */
static ptl_process_id_t *env_ids(void)
{
	ptl_process_id_t *ids = malloc((size_t)env->size * sizeof(*ids));

	for (int i = 0; ids && i < env->size; i++)
		ids[i] = (ptl_process_id_t){ .nid = env->nids[i], .pid = env->pids[i] };
	return ids;
}

/* Is this interface the one whose ids the job knows, or may it become that? Locked. */
static bool is_ids_iface(ptl_interface_t iface)
{
	return ids_iface < 0 || ids_iface == (int)iface;
}

/* Are these the rank and size of the job, without a map of the client's? Locked. */
static bool is_jobs_group(const struct ptl_group *group)
{
	unsigned int rank, size;

	ptl_job_own_rank(&rank, &size);
	return group->rank == rank && group->size == size && !group->nids_set && !group->pids_set;
}

ptl_pid_t ptl_job_pid(ptl_interface_t iface)
{
	ptl_pid_t pid = PTL_PID_ANY;

	pthread_mutex_lock(&lock);
	if (next.pids_set)
		pid = next.ids[next.rank].pid;
	else if (!next.nids_set && (!next.rank_set || is_jobs_group(&next)) &&
		 is_ids_iface(iface)) {
		if (env)
			pid = env->pids[env->rank];
		else if (table)
			pid = table[job->rank].pid;
	}
	pthread_mutex_unlock(&lock);
	return pid;
}

static uint32_t hash_bytes(const void *data, size_t len, uint32_t hash)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 16777619;
	return hash;
}

/* A number that every rank of the job computes from the same data, not a reserved one. Locked. */
static ptl_jid_t job_hash(void)
{
	uint32_t hash = 2166136261;

	if (env) {
		size_t bytes = (size_t)env->size * sizeof(*env->nids);

		hash = hash_bytes(env->pids, bytes, hash_bytes(env->nids, bytes, hash));
	} else {
		hash = hash_bytes(job->id, strlen(job->id), hash);
	}
	return hash % PTL_JID_NONE;
}

ptl_jid_t ptl_job_jid(void)
{
	long configured = base_config()->ptl_my_jid;
	ptl_jid_t found = PTL_JID_ANY;

	pthread_mutex_lock(&lock);
	if (jid != PTL_JID_ANY)
		found = jid;
	else if (configured >= 0)
		found = (ptl_jid_t)configured;
	else if (job && (job->kind == RT_LAUNCHER || env))
		found = job_hash();
	pthread_mutex_unlock(&lock);
	return found;
}

void ptl_job_set_jid(ptl_jid_t wanted)
{
	pthread_mutex_lock(&lock);
	jid = wanted;
	pthread_mutex_unlock(&lock);
}

/* ---- the exchange of ids --------------------------------------------------------------------- */

/* Collect one text of all ranks' ids, and one of their cards. A rank that put nothing leaves
 * blanks. */
static int gather_lines(char *all, char *lines, int size)
{
	for (int rank = 0; rank < size; rank++) {
		char *at = all + (size_t)rank * ID_LEN;
		char key[RT_KEY_MAX + 1];
		char one[ID_LEN + PTL_CARD_MAX + 1] = "";
		size_t len;
		int err;

		snprintf(key, sizeof(key), "ptl.id.%d", rank);
		err = rt_get(rank, key, one, sizeof(one));
		if (err && err != -ENOENT && err != -ERANGE)
			return err;
		len = strlen(one);
		memset(at, ' ', ID_LEN);
		memcpy(at, one, len < ID_LEN ? len : ID_LEN);
		lines += sprintf(lines, "%s\n", len > ID_LEN ? one + ID_LEN : "");
	}
	all[(size_t)size * ID_LEN] = '\0';
	return 0;
}

/* Write a line with a new secret. */
static int make_secret(char *line)
{
	unsigned char secret[SECRET_LEN];

	if (!base_random(secret, sizeof(secret)))
		return -EIO;
	for (int i = 0; i < SECRET_LEN; i++)
		line += sprintf(line, "%02x", secret[i]);
	strcpy(line, "\n");
	return 0;
}

static int parse_id(const char *text, int rank, ptl_interface_t iface, ptl_process_id_t *id)
{
	unsigned int nid, pid, their;
	char one[ID_LEN + 1];

	memcpy(one, text, ID_LEN);
	one[ID_LEN] = '\0';
	if (sscanf(one, "%8x%8x%1x", &nid, &pid, &their) != 3) {
		base_warn("rank %d of the job did not publish a Portals id; all ranks must be "
			  "programs of this library and version",
			  rank);
		return -EPROTO;
	}
	if (their != iface) {
		base_warn(
			"this process opened interface %u first and rank %d interface %u; open the "
			"same one first on all ranks",
			iface, rank, their);
		return -EPROTO;
	}
	*id = (ptl_process_id_t){ .nid = nid, .pid = pid };
	return 0;
}

static int compare_members(const void *a, const void *b)
{
	const ptl_process_id_t *x = a, *y = b;

	if (x->nid != y->nid)
		return x->nid < y->nid ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Check that the ids are distinct. Namespaces or hosts with the same address cannot see each
 * other's. */
static int check_distinct(const ptl_process_id_t *ids, size_t size)
{
	ptl_process_id_t *sorted = malloc(size * sizeof(*sorted));
	int err = sorted ? 0 : -ENOMEM;

	if (sorted) {
		memcpy(sorted, ids, size * sizeof(*sorted));
		qsort(sorted, size, sizeof(*sorted), compare_members);
	}
	for (size_t i = 1; i < size && !err; i++)
		if (compare_members(&sorted[i - 1], &sorted[i]) == 0) {
			base_warn("two ranks of the job have the same address, nid 0x%08x pid %u: "
				  "they are in "
				  "network namespaces or on hosts that do not see each other; give "
				  "each an "
				  "address of its own, and choose it by PTL_IFACE",
				  sorted[i].nid, sorted[i].pid);
			err = -EPROTO;
		}
	free(sorted);
	return err;
}

static int put_own(ptl_interface_t iface, ptl_process_id_t id, const char *card)
{
	char key[RT_KEY_MAX + 1];
	char value[ID_LEN + PTL_CARD_MAX + 1];

	snprintf(key, sizeof(key), "ptl.id.%d", job->rank);
	snprintf(value, sizeof(value), ID_FORMAT "%.*s", id.nid, id.pid, iface, PTL_CARD_MAX, card);
	return rt_put(key, value);
}

/* Rank 0, between the fences: put the tables of all ranks. */
static int put_tables(char *all, char *lines, const char *card)
{
	int err = make_secret(lines);

	if (!err)
		err = gather_lines(all, lines + strlen(lines), job->size);
	if (!err)
		err = rt_put("ptl.ids", all);
	/* a rank without a card asks for none */
	return err || !*card ? err : rt_put(RT_SECRET_KEY, lines);
}

/* Meet the others, also after an error of our own, which is the result then: they must not wait
 * for us. */
static int fence_with(int own)
{
	int err = rt_fence();

	return own ? own : err;
}

/* A get is a request to the launcher: rank 0 makes the tables, and each rank gets these two. */
static int exchange_tables(int err, char *all, char *lines, size_t lines_len, const char *card)
{
	err = fence_with(err);
	if (job->rank == 0 && !err)
		err = put_tables(all, lines, card);
	err = fence_with(err);
	if (!err)
		err = rt_get(0, "ptl.ids", all, (size_t)job->size * ID_LEN + 1);
	if (!err && (!*card || rt_get(0, RT_SECRET_KEY, lines, lines_len)))
		*lines = '\0';
	return err;
}

/* A get is no request: each rank makes the tables after one fence. */
static int exchange_all(int err, char *all, char *lines, const char *card)
{
	char secret[2 * SECRET_LEN + 2];

	if (job->rank == 0 && !err) {
		err = make_secret(secret);
		if (!err)
			err = rt_put(RT_SECRET_KEY, secret);
	}
	err = fence_with(err);
	if (!err)
		err = rt_get(0, RT_SECRET_KEY, lines, sizeof(secret));
	if (!err)
		err = gather_lines(all, lines + strlen(lines), job->size);
	if (!err && !*card)
		*lines = '\0';
	return err;
}

/* `all` has room for the text of the table, and so has `lines`. */
static int exchange_text(char *all, char *lines, size_t lines_len, ptl_interface_t iface,
			 ptl_process_id_t id, const char *card)
{
	int err = put_own(iface, id, card);

	return job->gets_are_local ? exchange_all(err, all, lines, card)
				   : exchange_tables(err, all, lines, lines_len, card);
}

/* Tell the others our id, and learn theirs: an array and a text, for the caller to free. */
static int exchange(ptl_interface_t iface, ptl_process_id_t id, const char *card,
		    ptl_process_id_t **out, char **out_lines)
{
	size_t size = (size_t)job->size, lines_len = (size + 1) * (PTL_CARD_MAX + 1);
	char *all, *lines;
	ptl_process_id_t *ids;
	int err;

	if (size > RT_VALUE_MAX / ID_LEN) {
		base_warn("a job of %zu ranks is larger than the %d possible", size,
			  RT_VALUE_MAX / ID_LEN);
		return PTL_FAIL;
	}
	all = malloc(size * ID_LEN + 1);
	lines = malloc(lines_len);
	ids = malloc(size * sizeof(*ids));
	err = all && ids && lines ? exchange_text(all, lines, lines_len, iface, id, card) : -ENOMEM;
	if (!err && strlen(all) != size * ID_LEN)
		err = -EPROTO;
	if (err && err != -ENOMEM)
		base_warn("the ranks of job %s could not learn each other's ids: %s", job->id,
			  strerror(-err));
	for (size_t i = 0; i < size && !err; i++)
		err = parse_id(all + i * ID_LEN, (int)i, iface, &ids[i]);
	if (!err)
		err = check_distinct(ids, size);
	free(all);
	if (err || !*lines) {
		free(lines);
		lines = NULL;
	}
	if (err) {
		free(ids);
		return err == -ENOMEM ? PTL_NO_SPACE : PTL_FAIL;
	}
	*out = ids;
	*out_lines = lines;
	return PTL_OK;
}

/* ---- an interface comes and goes ------------------------------------------------------------- */

static void warn_mismatch(int code, const struct ptl_group *group, ptl_process_id_t own)
{
	ptl_process_id_t said = group->ids[group->rank];
	struct in_addr a = { htonl(said.nid) };
	struct in_addr b = { htonl(own.nid) };
	char map_nid[INET_ADDRSTRLEN], own_nid[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &a, map_nid, sizeof(map_nid));
	inet_ntop(AF_INET, &b, own_nid, sizeof(own_nid));
	if (code == PTL_PID_INVALID)
		base_warn("rank %u has the pid %u in the job's map (PTL_PIDMAP, PtlSetPIDMap, or "
			  "what it "
			  "told the job before), but now %u; ask PtlNIInit for that pid or for "
			  "PTL_PID_ANY",
			  group->rank, said.pid, own.pid);
	else
		base_warn(
			"rank %u has the nid %u (%s) in the job's map (PTL_NIDMAP, PtlSetNIDMap, "
			"or "
			"what it told the job before), but this interface has %u (%s); choose the "
			"one with that address by PTL_IFACE, or correct the map",
			group->rank, said.nid, map_nid, own.nid, own_nid);
}

static int take_checked(struct ptl_group *group, const ptl_process_id_t *ids, ptl_process_id_t own)
{
	int err = ptl_group_take(group, group->rank, group->size, ids);

	if (!err)
		err = ptl_group_check(group, own);
	if (err && err != PTL_NO_SPACE)
		warn_mismatch(err, group, own);
	return err;
}

static int take_env(struct ptl_group *group, ptl_process_id_t own)
{
	ptl_process_id_t *ids = env_ids();
	int err = ids ? take_checked(group, ids, own) : PTL_NO_SPACE;

	free(ids);
	return err;
}

static void warn_partial_env(void)
{
	if (env_found && env_missing)
		base_warn("%s is set but %s is not: this process takes itself for the only one of "
			  "its "
			  "job. Set PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP, or none of them",
			  env_found, env_missing);
}

/*
 * Fill in the ids of a group that is the job's. Locked; it may release the lock to wait for
 * peers. wiring is held.
 */
static int learn_group_ids(struct ptl_group *group, ptl_interface_t iface, ptl_process_id_t id,
			   const char *card)
{
	int err;

	if (job->kind != RT_LAUNCHER && !env) {
		if (!group->rank_set)
			warn_partial_env();
		return ptl_group_take(group, 0, 1, &id);
	}
	if (!is_ids_iface(iface)) /* only our own id is known there */
		return group->size == 1 ? ptl_group_take(group, 0, 1, &id) : PTL_OK;
	if (job->kind == RT_LAUNCHER && !table) {
		ptl_process_id_t *ids;
		char *lines;

		pthread_mutex_unlock(&lock);
		err = exchange(iface, id, card, &ids, &lines);
		pthread_mutex_lock(&lock);
		if (err)
			return err;
		table = ids;
		cards = lines;
	}
	err = env ? take_env(group, id) : take_checked(group, table, id);
	if (!err)
		ids_iface = (int)iface;
	return err;
}

/* Make the group of a new interface. Locked; it may release the lock meanwhile. */
static int make_group(struct ptl_group *group, ptl_interface_t iface, ptl_process_id_t id,
		      const char *card)
{
	unsigned int rank, size;
	int err = PTL_OK;

	if (!group->size) {
		ptl_job_own_rank(&rank, &size);
		err = ptl_group_take(group, rank, size, NULL);
	}
	if (!err && is_jobs_group(group))
		return learn_group_ids(group, iface, id, card);
	if (!err)
		err = ptl_group_check(group, id);
	if (err && err != PTL_NO_SPACE)
		warn_mismatch(err, group, id);
	return err;
}

int ptl_job_publish(ptl_handle_ni_t ni, ptl_interface_t iface, ptl_process_id_t id,
		    const char *card)
{
	struct ptl_group group;
	int err;

	pthread_mutex_lock(&wiring);
	pthread_mutex_lock(&lock);
	group = next;
	next = (struct ptl_group){ .size = 0 };
	err = make_group(&group, iface, id, card);
	if (err)
		ptl_group_fini(&group);
	else
		slots[iface] = (struct slot){ .up = true, .ni = ni, .id = id, .group = group };
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&wiring);
	return err;
}

void ptl_job_forget(ptl_interface_t iface)
{
	pthread_mutex_lock(&lock);
	ptl_group_fini(&slots[iface].group);
	slots[iface].up = false;
	if (env && ids_iface == (int)iface)
		ids_iface = -1;
	pthread_mutex_unlock(&lock);
}

int ptl_job_ids(ptl_process_id_t **ids, unsigned int *size, unsigned int *own)
{
	const struct ptl_group *group = NULL;
	int err = -ENOENT;

	pthread_mutex_lock(&lock);
	for (int i = PTL_MAX_INTERFACES - 1; i >= 0; i--)
		if (slots[i].up && slots[i].group.nids_known && slots[i].group.pids_known)
			group = &slots[i].group;
	if (group) {
		*ids = malloc(group->size * sizeof(**ids));
		*size = group->size;
		*own = group->rank;
		err = *ids ? 0 : -ENOMEM;
		if (*ids)
			memcpy(*ids, group->ids, group->size * sizeof(**ids));
	} else if (env) {
		*ids = env_ids();
		*size = (unsigned int)env->size;
		*own = (unsigned int)env->rank;
		err = *ids ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- for the network NALs -------------------------------------------------------------------- */

/* Read the secret from a file that others cannot read. Locked. */
static void read_secret(const char *path)
{
	struct stat st;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0) {
		base_warn("PTL_KEY_FILE=%s: %m", path);
	} else if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		base_warn("PTL_KEY_FILE=%s can be read by others; `chmod 600` it, and put a new "
			  "secret there",
			  path);
	} else {
		n = read(fd, file_secret, sizeof(file_secret));
		if (n < SECRET_LEAST)
			base_warn("PTL_KEY_FILE=%s has less than %d bytes; make one with `head -c "
				  "32 /dev/urandom`",
				  path, SECRET_LEAST);
	}
	if (fd >= 0)
		close(fd);
	if (n >= SECRET_LEAST)
		file_secret_len = (size_t)n;
}

/* Locked. */
static bool has_file_secret(void)
{
	const char *path = base_config()->ptl_key_file;

	if (!tried_file && path)
		read_secret(path);
	tried_file = true;
	return file_secret_len;
}

bool ptl_job_has_secret(void)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = job->kind == RT_LAUNCHER || has_file_secret();
	pthread_mutex_unlock(&lock);
	return has;
}

bool ptl_job_has_cards(ptl_interface_t iface)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = job->kind == RT_LAUNCHER && !table && is_ids_iface(iface);
	pthread_mutex_unlock(&lock);
	return has;
}

static size_t parse_secret(const char *line, unsigned char *secret)
{
	unsigned int byte;

	for (int i = 0; i < SECRET_LEN; i++) {
		if (sscanf(line + 2 * (size_t)i, "%2x", &byte) != 1)
			return 0;
		secret[i] = (unsigned char)byte;
	}
	return SECRET_LEN;
}

/* Split the text of the cards into lines. Locked. */
static const char **split_cards(unsigned int size)
{
	const char **card = calloc(1, size * sizeof(*card) + strlen(cards) + 1);
	char *text = card ? (char *)(card + size) : NULL;
	char *line = text;

	if (!card)
		return NULL;
	strcpy(text, cards);
	for (unsigned int i = 0; line && i < size; i++) {
		line = strchr(line, '\n');
		if (line)
			*line++ = '\0';
		card[i] = line && *line != '\n' ? line : NULL;
	}
	if (line)
		line[strcspn(line, "\n")] = '\0';
	return card;
}

void ptl_job_nets(ptl_interface_t iface, struct nal_job *nets)
{
	ptl_process_id_t *ids;

	*nets = (struct nal_job){ .size = 0 };
	if (ptl_job_ids(&ids, &nets->size, &nets->own) == 0)
		nets->ids = ids;
	else
		nets->size = 0;
	pthread_mutex_lock(&lock);
	if (cards)
		nets->secret_len = parse_secret(cards, nets->secret);
	if (cards && ids_iface == (int)iface && nets->size == (unsigned int)job->size)
		nets->card = split_cards(nets->size);
	if (!nets->secret_len && has_file_secret()) {
		memcpy(nets->secret, file_secret, file_secret_len);
		nets->secret_len = file_secret_len;
	}
	pthread_mutex_unlock(&lock);
}

void ptl_job_nets_free(struct nal_job *nets)
{
	free((void *)(uintptr_t)nets->ids);
	free((void *)(uintptr_t)nets->card);
}

/* ---- for the calls of p3rt.c ----------------------------------------------------------------- */

/* The slot of an NI handle; NULL: no such handle. Locked. */
static struct slot *slot_of_ni(ptl_handle_ni_t ni)
{
	for (int i = 0; i < PTL_MAX_INTERFACES; i++)
		if (slots[i].up && slots[i].ni == ni)
			return &slots[i];
	return NULL;
}

int ptl_job_enter(ptl_handle_ni_t ni, struct ptl_group **group, const ptl_process_id_t **own)
{
	struct slot *slot;

	if (!ptl_is_init())
		return PTL_NO_INIT;
	pthread_mutex_lock(&lock);
	*group = &next;
	*own = NULL;
	if (ni == PTL_INVALID_HANDLE)
		return PTL_OK;
	slot = slot_of_ni(ni);
	if (!slot) {
		pthread_mutex_unlock(&lock);
		return PTL_NI_INVALID;
	}
	*group = &slot->group;
	*own = &slot->id;
	return PTL_OK;
}

void ptl_job_leave(void)
{
	pthread_mutex_unlock(&lock);
}

int ptl_job_set_rank_by_env(struct ptl_group *group, const ptl_process_id_t *own)
{
	struct ptl_group made = { .rank_set = true };
	ptl_process_id_t *ids;
	int err;

	if (job->kind == RT_LAUNCHER)
		return PTL_OK;
	err = read_env();
	if (err == -ENOENT && !env_found)
		return PTL_OK; /* alone */
	if (err == -ENOENT) {
		base_warn("PtlSetRank: %s is not set; it is needed beside %s", env_missing,
			  env_found);
		return PTL_NO_INIT;
	}
	if (err)
		return PTL_FAIL;
	if (!own)
		return group->nids_set || group->pids_set ? PTL_FAIL
							  : PTL_OK; /* PtlNIInit uses it */
	ids = env_ids();
	made.rank = (unsigned int)env->rank;
	made.size = (unsigned int)env->size;
	err = ids ? take_checked(&made, ids, *own) : PTL_NO_SPACE;
	free(ids);
	if (!err && (group->nids_set || group->pids_set))
		err = PTL_FAIL;
	if (err) {
		ptl_group_fini(&made);
	} else {
		ptl_group_fini(group);
		*group = made;
	}
	return err;
}
