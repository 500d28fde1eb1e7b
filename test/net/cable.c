/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A cable between two network namespaces, for kernels without netem and tbf. There is a TAP
 * interface in each. This process carries frames from one to the other at a rate, after a delay,
 * through a queue that can be full. It loses some of them by chance from a seed. A frame takes as
 * long as on Ethernet, with preamble, checksum and gap. Runs until it is killed; tells what it did
 * then, or at SIGUSR1. `cable --help` lists its options.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MOST  (9000u + 18u) /* with a VLAN's tag */
#define FRAME_LEAST 60u
#define OVERHEAD    24u /* preamble 8, checksum 4, gap 12 */
#define SECOND      1000000000ull
#define NAP_NS      20000u  /* a wake-up costs more than what it could do sooner is worth */
#define SLICE_NS    100000u /* the shortest turn that Linux gives */
#define READ_MOST   512     /* frames of one direction before it is the other one's turn */

/* A frame on its way. */
struct frame {
	struct frame *next;
	uint64_t at; /* arrives then */
	uint32_t len;
	uint8_t bytes[FRAME_MOST];
};

struct way {
	int from, to;  /* TAP devices */
	uint64_t busy; /* the wire carries what it was given until then */
	uint64_t random;
	struct frame *first, **end;
	uint64_t carried, bytes, full, lost;
};

static struct {
	double rate; /* bits per second, 0: no limit */
	uint64_t delay_ns;
	uint64_t burst_ns; /* how far the wire catches up after it was idle */
	uint64_t queue;    /* bytes */
	double loss;
	uint64_t seed;
	uint32_t mtu;
	const char *name[2];
} opt = { .queue = 256 << 10, .seed = 1, .mtu = 1500, .name = { "eth0", "eth0" } };

static struct frame *spare;
static uint64_t late_ns; /* so long ago there was something to do, and we did not run */
static volatile sig_atomic_t tell, stop;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "cable: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* splitmix64 */
static double chance(struct way *w)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) / (double)(1ull << 53);
}

static uint64_t wire_ns(uint32_t len)
{
	uint32_t on_wire = (len < FRAME_LEAST ? FRAME_LEAST : len) + OVERHEAD;

	return opt.rate > 0 ? (uint64_t)(8e9 * on_wire / opt.rate) : 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static struct frame *get_frame(void)
{
	struct frame *f = spare;

	if (f)
		spare = f->next;
	else
		f = malloc(sizeof(*f));
	if (!f)
		die("no memory for frames");
	f->next = NULL;
	return f;
}

static void put_frame(struct frame *f)
{
	f->next = spare;
	spare = f;
}

/* Decides what becomes of a frame that came at `now`. True: it is on its way. */
static bool admit(struct way *w, struct frame *f, uint64_t now)
{
	uint64_t start = w->busy;

	/* what a wire would have carried while we waited for a processor */
	if (start + opt.burst_ns + late_ns < now)
		start = now - opt.burst_ns - late_ns;
	/* what the wire has not carried yet is what is in the queue */
	if (opt.rate > 0 && start > now &&
	    (double)(start - now) * opt.rate / 8e9 + f->len > (double)opt.queue) {
		w->full++;
		return false;
	}
	w->busy = start + wire_ns(f->len);
	if (opt.loss > 0 && chance(w) < opt.loss) {
		w->lost++;
		return false;
	}
	f->at = (w->busy > now ? w->busy : now) + opt.delay_ns;
	return true;
}

/* Takes what the sender has written. */
static void take(struct way *w)
{
	for (int i = 0; i < READ_MOST; i++) {
		struct frame *f = get_frame();
		ssize_t len = read(w->from, f->bytes, sizeof(f->bytes));

		if (len > 0)
			f->len = (uint32_t)len;
		if (len <= 0 || !admit(w, f, now_ns())) {
			put_frame(f);
			if (len <= 0)
				return;
			continue;
		}
		*w->end = f;
		w->end = &f->next;
	}
}

static void give(struct way *w, uint64_t now)
{
	struct frame *f;

	while ((f = w->first) && f->at <= now) {
		w->first = f->next;
		if (!w->first)
			w->end = &w->first;
		if (write(w->to, f->bytes, f->len) == (ssize_t)f->len) {
			w->carried++;
			w->bytes += f->len;
		}
		put_frame(f);
	}
}

/* ---- interfaces ------------------------------------------------------------------------------ */

static void set_up(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, name, strlen(name));
	ifr.ifr_mtu = (int)opt.mtu;
	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &ifr) < 0)
		die("setting the MTU");
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		die("asking for the interface's flags");
	ifr.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		die("bringing the interface up");
	close(fd);
}

/* A TAP interface in the namespace of a process; how to go back is `home`. */
static int make_tap(const char *pid, const char *name, int home)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	char path[64];
	int ns, tap;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
		die(path);
	tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap < 0)
		die("/dev/net/tun");
	memcpy(ifr.ifr_name, name, strlen(name));
	if (ioctl(tap, TUNSETIFF, &ifr) < 0)
		die("making a TAP interface");
	set_up(name);
	if (setns(home, CLONE_NEWNET) < 0)
		die("going back to our own namespace");
	close(ns);
	return tap;
}

/* ---- what the user says ---------------------------------------------------------------------- */

static void usage(FILE *to)
{
	fputs("usage: cable [OPTION...] PID PID\n"
	      "A cable between the network namespaces of two processes, until killed.\n\n"
	      "  --rate BITS    bits per second in each direction; no limit if not said. 1e9, "
	      "100e6\n"
	      "  --delay US     microseconds from end to end\n"
	      "  --queue BYTES  what waits for the wire at most, 262144 if not said\n"
	      "  --burst BYTES  what the wire may carry at once after it was idle, 16384 if not "
	      "said\n"
	      "  --loss SHARE   of frames lost by chance, such as 0.01\n"
	      "  --seed N       of that chance\n"
	      "  --mtu BYTES    of the interfaces, 1500 if not said\n"
	      "  --name A[,B]   of the interfaces, eth0 if not said\n"
	      "  --help         this text\n",
	      to);
}

static double number(const char *text, double least, double most)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= least && v <= most)) {
		fprintf(stderr, "cable: %s is not a number from %g to %g\n", text, least, most);
		exit(2);
	}
	return v;
}

static void name_ends(char *text)
{
	char *comma = strchr(text, ',');

	if (comma)
		*comma++ = '\0';
	opt.name[0] = text;
	opt.name[1] = comma ? comma : text;
	for (int i = 0; i < 2; i++)
		if (!*opt.name[i] || strlen(opt.name[i]) >= IFNAMSIZ) {
			fprintf(stderr, "cable: %s cannot name an interface\n", opt.name[i]);
			exit(2);
		}
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "rate", required_argument, NULL, 'r' },
		{ "delay", required_argument, NULL, 'd' },
		{ "queue", required_argument, NULL, 'q' },
		{ "burst", required_argument, NULL, 'b' },
		{ "loss", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 's' },
		{ "mtu", required_argument, NULL, 'm' },
		{ "name", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	double burst = 16384;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (c) {
		case 'r':
			opt.rate = number(optarg, 1e3, 1e12);
			break;
		case 'd':
			opt.delay_ns = (uint64_t)(1000 * number(optarg, 0, 1e7));
			break;
		case 'q':
			opt.queue = (uint64_t)number(optarg, FRAME_MOST, 1e9);
			break;
		case 'b':
			burst = number(optarg, 0, 1e9);
			break;
		case 'l':
			opt.loss = number(optarg, 0, 1);
			break;
		case 's':
			opt.seed = (uint64_t)number(optarg, 0, 1e15);
			break;
		case 'm':
			opt.mtu = (uint32_t)number(optarg, 68, 9000);
			break;
		case 'n':
			name_ends(optarg);
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	if (argc - optind != 2) {
		usage(stderr);
		exit(2);
	}
	if (opt.rate > 0)
		opt.burst_ns = (uint64_t)(8e9 * burst / opt.rate);
}

/* ---- its life -------------------------------------------------------------------------------- */

static void on_signal(int number)
{
	if (number == SIGUSR1)
		tell = 1;
	else
		stop = 1;
}

static void report(const struct way *w)
{
	for (int i = 0; i < 2; i++)
		fprintf(stderr,
			"cable: way %d: %llu frames, %llu bytes carried; %llu lost by chance, %llu "
			"for "
			"want of room\n",
			i + 1, (unsigned long long)w[i].carried, (unsigned long long)w[i].bytes,
			(unsigned long long)w[i].lost, (unsigned long long)w[i].full);
}

/* As linux/sched/types.h has it, which does not go with sched.h. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * A wire does not wait for a processor; where we may, nor do we. Where we may not, we are a
 * session of our own, which most kernels give as much of a processor as all of another
 * (sched_autogroup), and ask for turns as short as there are: who asks for less at a time has it
 * sooner (Linux 6.12).
 */
static void hurry(void)
{
	struct sched_param first = { .sched_priority = 1 };
	struct attr brief = { .size = sizeof(brief), .policy = SCHED_OTHER, .runtime = SLICE_NS };

	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0) {
		(void)setsid();
		(void)syscall(SYS_sched_setattr, 0, &brief, 0);
		(void)setpriority(PRIO_PROCESS, 0, -20);
	}
	(void)prctl(PR_SET_TIMERSLACK, 1000ul);
}

static void nap(const struct way *w, const sigset_t *mask)
{
	struct pollfd f[2] = { { .fd = w[0].from, .events = POLLIN },
			       { .fd = w[1].from, .events = POLLIN } };
	uint64_t at = UINT64_MAX, now = now_ns(), wait = 0;
	struct timespec t = { 0 };
	bool some;

	for (int i = 0; i < 2; i++)
		if (w[i].first && w[i].first->at < at)
			at = w[i].first->at;
	some = at != UINT64_MAX;
	if (some) {
		wait = at > now + NAP_NS ? at - now : NAP_NS;
		t = (struct timespec){ (time_t)(wait / SECOND), (long)(wait % SECOND) };
	}
	/* what comes while something waits for its time is looked at then, or a busy link would
	 * be nothing but wake-ups */
	ppoll(f, some && at <= now + 2 * NAP_NS ? 0 : 2, some ? &t : NULL, mask);
	if (some)
		at = now + wait;
	now = now_ns();
	late_ns = at < now ? now - at : 0;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct way way[2] = { 0 };
	sigset_t mine, old;
	int home, tap[2];

	parse(argc, argv);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGUSR1);
	sigprocmask(SIG_BLOCK, &mine, &old);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGUSR1, &act, NULL);
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		die("/proc/self/ns/net");
	for (int i = 0; i < 2; i++)
		tap[i] = make_tap(argv[optind + i], opt.name[i], home);
	for (int i = 0; i < 2; i++) {
		way[i].from = tap[i];
		way[i].to = tap[1 - i];
		way[i].random = opt.seed + (uint64_t)i * 0x9e3779b97f4a7c15u / 2;
		way[i].end = &way[i].first;
	}
	hurry();
	while (!stop) {
		for (int i = 0; i < 2; i++) {
			take(&way[i]);
			give(&way[i], now_ns());
		}
		if (tell)
			report(way);
		tell = 0;
		nap(way, &old);
	}
	report(way);
	return 0;
}
