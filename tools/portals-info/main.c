/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * portals-info: what Postern would do on this machine. It prints transports and why some cannot
 * be used, the launcher, ids, limits, which thread makes progress, and the configuration with
 * the source of each value.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "nal/nal.h"
#include "runtime/rt.h"

static void print_usage(FILE *to)
{
	fputs("usage: portals-info [--config | --launcher | --limits | --transports]\n"
	      "\n"
	      "Without an option, everything but the variables that are at their defaults.\n"
	      "  -c, --config      every configuration variable, its value and where it came from\n"
	      "  -j, --launcher    the job that this process is in, and which launchers can be "
	      "seen\n"
	      "  -l, --limits      ids and limits of the default interface\n"
	      "  -t, --transports  transports, and for those that cannot be used here, why; who "
	      "moves\n"
	      "                    data while a process computes\n"
	      "  -V, --version     version\n"
	      "  -h, --help        this text\n"
	      "\n"
	      "portals-info(1) explains the output; portals-stat(1) shows a running process.\n",
	      to);
}

/* List transports that were not built because something was missing. */
static void left_out(void)
{
	for (int i = 0; nal_left_out[i]; i++)
		printf("  %-8s not built: its libraries or their headers were not there (the build "
		       "option "
		       "%s)\n",
		       nal_left_out[i], nal_left_out[i]);
}

static void print_choice(const char *text)
{
	printf("           %s\n", text);
}

static void transports(void)
{
	char text[160];

	puts("transports");
	for (int i = 0; nal_registry[i]; i++) {
		const struct nal_ops *n = nal_registry[i];
		const char *why = n->unusable();

		if (!why)
			n->describe(text, sizeof(text));
		printf("  %-8s %s: %s\n", n->name, why ? "not usable" : "usable", why ? why : text);
		if (n->list)
			n->list(print_choice);
	}
	left_out();
}

/* Print who moves data while a process computes, and why (the rules of shm_peer.c and
 * net_thread.c). */
static void progress(void)
{
	const struct base_config *c = base_config();
	cpu_set_t usable;
	int cores = sched_getaffinity(0, sizeof(usable), &usable) ? 1 : CPU_COUNT(&usable);

	puts("progress while a process computes");
	if (c->ptl_progress == BASE_PROGRESS_POLL)
		puts("  node     nobody: only its own calls move data, for PTL_PROGRESS=poll");
	else if (c->ptl_shm_cma == BASE_CMA_OFF)
		puts("  node     helper threads, for PTL_SHM_CMA=off");
	else
		puts("  node     its peers, by cross-memory attach; helper threads where that is "
		     "forbidden");
	if (c->ptl_progress == BASE_PROGRESS_POLL)
		puts("  network  nobody: only its own calls move data, for PTL_PROGRESS=poll");
	else if (c->ptl_progress == BASE_PROGRESS_THREAD)
		puts("  network  a helper thread, for PTL_PROGRESS=thread");
	else if (c->ptl_spin_us == 0)
		puts("  network  nobody: only its own calls move data, for PTL_SPIN_US=0 says that "
		     "cores "
		     "are short");
	else
		printf("  network  a helper thread while cores are to spare (%d usable here), else "
		       "nobody: its own calls\n",
		       cores);
}

static void print_launcher(const char *name, const char *state, const char *why)
{
	printf("  %-8s %s%s%s\n", name, state, *why ? ": " : "", why);
}

/* Join the job as a program would, and print how. */
static int launcher(void)
{
	static const char *const kinds[] = {
		[RT_ALONE] = "alone",
		[RT_ENV] = "of a job that PTL_MY_RID and its maps describe",
		[RT_LAUNCHER] = "of a launcher's job",
	};
	const struct rt_job *job;
	int rank, size, err = rt_init(&job);

	puts("launcher");
	rt_list(print_launcher);
	if (err) {
		printf("  rank     none: %s\n", strerror(-err));
		return 1;
	}
	printf("  rank     %d of %d, %s", job->rank, job->size, kinds[job->kind]);
	if (job->kind == RT_LAUNCHER && rt_local(&rank, &size) == 0)
		printf("; on this host %d of %d", rank, size);
	puts("");
	return 0;
}

static int limits(void)
{
	ptl_ni_limits_t l;
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	struct in_addr a;
	int n, err;

	err = PtlInit(&n);
	if (err == PTL_OK)
		err = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &l, &ni);
	if (err == PTL_OK)
		err = PtlGetId(ni, &id);
	if (err != PTL_OK) {
		fprintf(stderr, "portals-info: cannot open the default interface: %s\n",
			PtlErrorStr((unsigned int)err));
		return 1;
	}
	a.s_addr = htonl(id.nid);
	printf("default interface\n"
	       "  nid      0x%08x (%s)\n"
	       "  pid      %u for this process; any other can be asked for\n"
	       "  others   up to %d interfaces in a process\n"
	       "limits\n"
	       "  portals %d, access control entries %d, match entries %d (%d on one portal)\n"
	       "  memory descriptors %d, of at most %d pieces; event queues %d; getput %d bytes\n",
	       id.nid, id.nid >> 28 == 0xf ? "made of an address that is not IPv4" : inet_ntoa(a),
	       id.pid, n, l.max_pt_index + 1, l.max_ac_index + 1, l.max_mes, l.max_me_list,
	       l.max_mds, l.max_md_iovecs, l.max_eqs, l.max_getput_md);
	PtlFini();
	return 0;
}

static void config(bool all)
{
	const struct base_config_var *v;
	char value[512], def[512];
	bool any = false;

	puts("configuration");
	for (size_t i = 0; (v = base_config_var(i)); i++) {
		bool set = base_config_is_set(v->name);

		if (!set && !all)
			continue;
		any = true;
		base_config_value_text(v, value, sizeof(value));
		base_config_default_text(v, def, sizeof(def));
		printf("  %-18s = %-12s %s", v->name, *value ? value : "(unset)",
		       set ? "from the environment" : "default");
		if (set)
			printf(", default %s", *def ? def : "unset");
		putchar('\n');
		if (all)
			printf("      %s%s%s%s\n", v->help, *v->choices ? " [" : "", v->choices,
			       *v->choices ? "]" : "");
	}
	if (!any)
		puts("  all variables at their defaults; --config lists them");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", no_argument, NULL, 'c' },
		{ "launcher", no_argument, NULL, 'j' },
		{ "limits", no_argument, NULL, 'l' },
		{ "transports", no_argument, NULL, 't' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c = getopt_long(argc, argv, "cjltVh", options, NULL), err;

	if (argc > 2 || (c == -1 && argc > 1)) {
		print_usage(stderr);
		return 2;
	}
	switch (c) {
	case 'c':
		config(true);
		return 0;
	case 'j':
		return launcher();
	case 'l':
		return limits();
	case 't':
		transports();
		progress();
		return 0;
	case 'V':
		puts("portals-info (Postern) " POSTERN_VERSION);
		return 0;
	case 'h':
		print_usage(stdout);
		return 0;
	case -1:
		break;
	default:
		print_usage(stderr);
		return 2;
	}
	puts("Postern " POSTERN_VERSION ", Portals 3.3");
	transports();
	progress();
	err = launcher();
	if (!err)
		err = limits();
	config(false);
	return err;
}
