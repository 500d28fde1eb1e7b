/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The parser of PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP. The texts may come from anybody. Every
 * error message names the variable and the entry.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/config.h"
#include "base/log.h"
#include "runtime/pmi1_wire.h"
#include "runtime/rt_env.h"

/* The text found, for messages: shortened, and with nothing in it that disturbs a terminal. */
static const char *show_text(const char *text, size_t len, char *buf, size_t size)
{
	size_t most = (size - 1) / 3; /* an escaped byte takes three */
	int n = pmi1_escape(text, len < most ? len : most, buf, size - 1);

	buf[n < 0 ? 0 : n] = '\0';
	return buf;
}

static bool parse_number(const char *text, size_t len, uint32_t *number)
{
	unsigned base = 10;
	uint64_t value = 0;

	if (len > 2 && !strncasecmp(text, "0x", 2)) {
		base = 16;
		text += 2;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++) {
		const char *digit = memchr("0123456789abcdefABCDEF", text[i], base == 16 ? 22 : 10);
		unsigned d;

		if (!digit)
			return false;
		d = (unsigned)(text[i] <= '9' ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10);
		value = value * base + d;
		if (value > UINT32_MAX)
			return false;
	}
	*number = (uint32_t)value;
	return len > 0;
}

static bool parse_dotted(const char *text, size_t len, uint32_t *number)
{
	char copy[INET_ADDRSTRLEN];
	struct in_addr addr;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, &addr) != 1)
		return false;
	*number = ntohl(addr.s_addr);
	return true;
}

static int count_entries(const char *name, const char *map, int *size)
{
	size_t len = strlen(map);
	size_t n = 1;

	if (len && map[len - 1] == ':')
		len--;
	for (size_t i = 0; i < len; i++)
		n += map[i] == ':';
	if (n > RT_ENV_MAX) {
		base_warn("%s has %zu entries, more than the %d possible; shorten it", name, n,
			  RT_ENV_MAX);
		return -EINVAL;
	}
	*size = (int)n;
	return 0;
}

/* Fill ids[0..size) from a map whose entries were counted. */
static int parse_map(const char *name, const char *map, bool dotted, int size, uint32_t *ids)
{
	char shown[64];

	for (int i = 0; i < size; i++) {
		size_t len = strcspn(map, ":");

		if ((!parse_number(map, len, &ids[i]) &&
		     !(dotted && parse_dotted(map, len, &ids[i]))) ||
		    ids[i] == UINT32_MAX) {
			base_warn("%s: entry %d, \"%s\", is no number from 0 to 4294967294%s; the "
				  "form is number:number:..., one entry for each rank",
				  name, i, show_text(map, len, shown, sizeof(shown)),
				  dotted ? " and no IPv4 address" : "");
			return -EINVAL;
		}
		map += len + 1;
	}
	return 0;
}

static int parse_rank(const char *rid, int size, int *rank)
{
	char shown[64];
	uint32_t value;

	if (!parse_number(rid, strlen(rid), &value) || value >= (uint32_t)size) {
		base_warn("PTL_MY_RID=\"%s\" is no rank of the job: PTL_NIDMAP has entries 0 to %d",
			  show_text(rid, strlen(rid), shown, sizeof(shown)), size - 1);
		return -EINVAL;
	}
	*rank = (int)value;
	return 0;
}

static struct rt_env *env_create(int size)
{
	struct rt_env *env = calloc(1, sizeof(*env));

	if (!env)
		return NULL;
	env->size = size;
	env->nids = calloc((size_t)size, sizeof(*env->nids));
	env->pids = calloc((size_t)size, sizeof(*env->pids));
	if (!env->nids || !env->pids) {
		rt_env_destroy(env);
		return NULL;
	}
	return env;
}

void rt_env_destroy(struct rt_env *env)
{
	if (!env)
		return;
	free(env->nids);
	free(env->pids);
	free(env);
}

int rt_env_parse(const char *rid, const char *nidmap, const char *pidmap, struct rt_env **out)
{
	struct rt_env *env;
	int n_nids, n_pids, rc;

	rc = count_entries("PTL_NIDMAP", nidmap, &n_nids);
	if (!rc)
		rc = count_entries("PTL_PIDMAP", pidmap, &n_pids);
	if (rc)
		return rc;
	if (n_nids != n_pids) {
		base_warn(
			"PTL_NIDMAP has %d entries and PTL_PIDMAP %d; both need one for each rank",
			n_nids, n_pids);
		return -EINVAL;
	}
	env = env_create(n_nids);
	if (!env)
		return -ENOMEM;
	rc = parse_map("PTL_NIDMAP", nidmap, true, n_nids, env->nids);
	if (!rc)
		rc = parse_map("PTL_PIDMAP", pidmap, false, n_pids, env->pids);
	if (!rc)
		rc = parse_rank(rid, n_nids, &env->rank);
	if (rc)
		rt_env_destroy(env);
	else
		*out = env;
	return rc;
}

int rt_env_read(struct rt_env **env, const char **missing, const char **found)
{
	static const char *const names[] = { "PTL_MY_RID", "PTL_NIDMAP", "PTL_PIDMAP" };
	bool alone = base_config()->ptl_launcher == BASE_LAUNCHER_NONE;
	const char *texts[3];

	*missing = NULL;
	*found = NULL;
	for (int i = 0; i < 3; i++) {
		texts[i] = alone ? NULL : base_config_env(names[i]);
		if (texts[i])
			*found = names[i];
		else
			*missing = names[i];
	}
	return *missing ? -ENOENT : rt_env_parse(texts[0], texts[1], texts[2], env);
}
