/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Lists and files of hosts for mpiexec, and the numbers of an allocation: any text is refused with
 * a reason, or gives names that no remote shell takes for an option, each with a number in range.
 * Hosts that are dealt out to ranks have as many slots as there are ranks.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mpiexec/hosts.h"
#include "tools/mpiexec/slurm.h"

enum { RANKS = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_host(const struct host *host)
{
	size_t len = strlen(host->name);

	check(len && len <= HOST_NAME_MOST && host->name[0] != '-');
	check(!strpbrk(host->name, " \t\r\n,;'\"`$&|<>()[]#=/\\"));
	check(host->slots >= 0 && host->slots <= HOST_SLOTS_MOST);
}

static void check_dealt(const struct hosts *hosts)
{
	struct hosts dealt = { .n = 0 };

	check(!hosts_deal(hosts, RANKS, &dealt));
	check(hosts_slots(&dealt) == (hosts->n ? RANKS : 0));
	hosts_clear(&dealt);
}

static void check_result(struct hosts *hosts, int err, const struct hosts_error *why)
{
	check(!err || err == -EINVAL);
	if (err)
		check(memchr(why->text, '\0', sizeof(why->text)) && *why->text);
	for (int i = 0; i < hosts->n; i++)
		check_host(&hosts->all[i]);
	check(hosts_slots(hosts) >= hosts->n);
	check_dealt(hosts);
	hosts_clear(hosts);
	check(!hosts->n && !hosts->all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hosts hosts = { .n = 0 };
	struct hosts_error why = { "" };
	char *text;
	int sum;

	check_result(&hosts, hosts_add_list(&hosts, (const char *)data, size, &why), &why);
	why = (struct hosts_error){ "" };
	check_result(&hosts, hosts_add_file(&hosts, (const char *)data, size, &why), &why);
	text = malloc(size + 1);
	check(text);
	memcpy(text, data, size);
	text[size] = '\0';
	sum = slurm_sum(text);
	check(sum > 0 || sum == -EINVAL);
	free(text);
	return 0;
}
