/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Queue pairs that fail: to be loaded ahead of libibverbs with LD_PRELOAD. At SIGUSR1 all connected
 * ones of this process go to the state of error. A device puts them there when it cannot carry out
 * a request, and reports it; soft RoCE does not by itself. Operations under way on them end with an
 * error, and the other ends are left waiting. How many there were is printed, and of how many that
 * had not been destroyed yet. At SIGUSR2 the device says that it has failed as a whole (though it
 * works as ever).
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_qp *connected[MOST];
static int alive;
static int events[2] = { -1, -1 }, kernels = -1;
static struct ibv_pd *(*real_pd)(struct ibv_context *context);
static struct ibv_cq *(*real_cq)(struct ibv_context *context, int cqe, void *user,
				 struct ibv_comp_channel *channel, int vector);
static struct ibv_srq *(*real_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
static struct ibv_qp *(*real_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
static int (*real_modify)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
static int (*real_destroy)(struct ibv_qp *qp);

/* A thread that waits for the device's events waits for ours, of the one device that is used; */
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	if (kernels < 0 && pipe2(events, O_CLOEXEC) == 0) {
		kernels = context->async_fd;
		context->async_fd = events[0];
	}
	return real_pd(context);
}

/* the kernel wants its own for whatever is made. */
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *user,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq;

	context->async_fd = kernels;
	cq = real_cq(context, cqe, user, channel, vector);
	context->async_fd = events[0];
	return cq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq;

	pd->context->async_fd = kernels;
	srq = real_srq(pd, attr);
	pd->context->async_fd = events[0];
	return srq;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;

	pd->context->async_fd = kernels;
	qp = real_qp(pd, attr);
	pd->context->async_fd = events[0];
	pthread_mutex_lock(&lock);
	alive += qp != NULL;
	pthread_mutex_unlock(&lock);
	return qp;
}

/* Those of ours the kernel knows nothing of: it must not be told that they were seen. */
void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static void forget(const struct ibv_qp *qp)
{
	for (int i = 0; i < MOST; i++)
		if (connected[i] == qp)
			connected[i] = NULL;
}

static void remember(struct ibv_qp *qp)
{
	int i = 0;

	forget(qp);
	while (i < MOST && connected[i])
		i++;
	if (i < MOST)
		connected[i] = qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err;

	pthread_mutex_lock(&lock);
	err = real_modify(qp, attr, mask);
	if (err == 0 && mask & IBV_QP_STATE) {
		if (attr->qp_state == IBV_QPS_RTS)
			remember(qp);
		else
			forget(qp);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int err;

	pthread_mutex_lock(&lock);
	forget(qp);
	err = real_destroy(qp);
	alive -= err == 0;
	pthread_mutex_unlock(&lock);
	return err;
}

static void tell(enum ibv_event_type what, const struct ibv_qp *qp)
{
	struct ib_uverbs_async_event_desc event = { .element = (uintptr_t)qp, .event_type = what };

	if (write(events[1], &event, sizeof(event)) != sizeof(event))
		puts("not ok: an event cannot be told");
}

static void fail_all(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	int n = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++) {
		if (!connected[i] || real_modify(connected[i], &error, IBV_QP_STATE) != 0)
			continue;
		n++;
		tell(IBV_EVENT_QP_FATAL, connected[i]);
		connected[i] = NULL;
	}
	printf("queue pairs in error: %d of %d\n", n, alive);
	pthread_mutex_unlock(&lock);
}

static void *wait_for_signals(void *set)
{
	int number;

	while (sigwait(set, &number) == 0)
		if (number == SIGUSR1)
			fail_all();
		else
			tell(IBV_EVENT_DEVICE_FATAL, NULL);
	return NULL;
}

__attribute__((constructor)) static void start(void)
{
	static sigset_t set;
	pthread_t thread;

	real_pd = dlsym(RTLD_NEXT, "ibv_alloc_pd");
	real_cq = dlsym(RTLD_NEXT, "ibv_create_cq");
	real_srq = dlsym(RTLD_NEXT, "ibv_create_srq");
	real_qp = dlsym(RTLD_NEXT, "ibv_create_qp");
	real_modify = dlsym(RTLD_NEXT, "ibv_modify_qp");
	real_destroy = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (!real_pd || !real_cq || !real_srq || !real_qp || !real_modify || !real_destroy ||
	    pthread_create(&thread, NULL, wait_for_signals, &set) != 0)
		puts("not ok: no queue pair will fail");
}
