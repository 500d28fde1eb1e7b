/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * An endpoint is opened as its provider wants it: with a table of addresses or a map, with
 * buffers that are registered or not, and with memory that belongs to the domain or to the
 * endpoint. The failed call is named. The provider is a stub.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nal/ofi/ofi.h"
#include "portals/engine/ni.h"

static enum fi_av_type no_av; /* a type that it has not */
static enum fi_av_type av_type;
static const char *fails; /* a call of libfabric's */
static bool ep_enabled, mr_enabled;
static const struct fid *mr_bound;
static const void *mr_base;
static size_t mr_len;
static unsigned int posted;
static int objects; /* open */
static bool mr_is_open;
static bool clings; /* the endpoint does not close */
static char desc;
static struct fi_domain_attr domain_attr;
static int lock_looks; /* at how much memory may be locked */

/* The provider's answer to this call. */
static int answer(const char *call)
{
	return fails && !strcmp(fails, call) ? -FI_EOTHER : 0;
}

static int open_object(const char *call)
{
	int err = answer(call);

	objects += err == 0;
	return err;
}

static int close_object(struct fid *fid)
{
	(void)fid;
	objects--;
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int mr_close(struct fid *fid)
{
	mr_is_open = false;
	return close_object(fid);
}

static int mr_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid;
	(void)flags;
	mr_bound = to;
	return answer("fi_mr_bind");
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	mr_enabled = command == FI_ENABLE && mr_bound && ep_enabled;
	return mr_enabled ? 0 : -FI_EINVAL;
}

static struct fi_ops mr_fid = {
	.size = sizeof(mr_fid),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
};
static struct fid_mr mr = { .fid.ops = &mr_fid, .mem_desc = &desc };

static int mr_reg(struct fid *fid, const void *base, size_t len, uint64_t access, uint64_t offset,
		  uint64_t key, uint64_t flags, struct fid_mr **out, void *context)
{
	int err = open_object("fi_mr_reg");

	(void)fid;
	(void)access;
	(void)offset;
	(void)key;
	(void)flags;
	(void)context;
	if (err)
		return err;
	mr_is_open = true;
	mr_base = base;
	mr_len = len;
	*out = &mr;
	return 0;
}

static struct fi_ops_mr mr_ops = { .size = sizeof(mr_ops), .reg = mr_reg };

/* ---- the endpoint ---------------------------------------------------------------------------- */

static int ep_close(struct fid *fid)
{
	return clings || (mr_is_open && mr_bound == fid) ? -FI_EBUSY : close_object(fid);
}

static int ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid;
	(void)to;
	(void)flags;
	return answer("fi_ep_bind");
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	assert_int_equal(command, FI_ENABLE);
	ep_enabled = answer("fi_enable") == 0;
	return answer("fi_enable");
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid;
	(void)level;
	(void)name;
	(void)value;
	(void)len;
	return answer("fi_setopt");
}

static int ep_getname(fid_t fid, void *to, size_t *len)
{
	(void)fid;
	memset(to, 7, 4);
	*len = 4;
	return answer("fi_getname");
}

static ssize_t ep_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const char *base = msg->msg_iov[0].iov_base;

	(void)ep;
	(void)flags;
	assert_true(ep_enabled);
	if (mr_is_open) {
		assert_ptr_equal(msg->desc[0], &desc);
		assert_true(base >= (const char *)mr_base &&
			    base + msg->msg_iov[0].iov_len <= (const char *)mr_base + mr_len);
		assert_true(!mr_bound || mr_enabled);
	} else {
		assert_null(msg->desc[0]);
	}
	posted += answer("fi_recvmsg") == 0;
	return answer("fi_recvmsg");
}

static struct fi_ops ep_fid = {
	.size = sizeof(ep_fid),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
};
static struct fi_ops_ep ep_ops = { .size = sizeof(ep_ops), .setopt = ep_setopt };
static struct fi_ops_cm ep_cm = { .size = sizeof(ep_cm), .getname = ep_getname };
static struct fi_ops_msg ep_msg = { .size = sizeof(ep_msg), .recvmsg = ep_recvmsg };
static struct fid_ep ep = { .fid.ops = &ep_fid, .ops = &ep_ops, .cm = &ep_cm, .msg = &ep_msg };

/* ---- what it is made of ---------------------------------------------------------------------- */

static int control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)command;
	*(int *)arg = 0;
	return 0;
}

static struct fi_ops plain = { .size = sizeof(plain), .close = close_object, .control = control };
static struct fid_av av = { .fid.ops = &plain };
static struct fid_cq cq = { .fid.ops = &plain };

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
		   void *context)
{
	int err = attr->type == no_av ? -FI_ENOSYS : open_object("fi_av_open");

	(void)domain;
	(void)context;
	if (err)
		return err;
	av_type = attr->type;
	*out = &av;
	return 0;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		   void *context)
{
	int err = open_object("fi_cq_open");

	(void)domain;
	(void)attr;
	(void)context;
	if (err == 0)
		*out = &cq;
	return err;
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		    void *context)
{
	int err = open_object("fi_endpoint");

	(void)domain;
	(void)info;
	(void)context;
	if (err == 0)
		*out = &ep;
	return err;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = av_open,
	.cq_open = cq_open,
	.endpoint = endpoint,
};
static struct fid_domain domain = { .fid.ops = &plain, .ops = &domain_ops, .mr = &mr_ops };

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	int err = open_object("fi_domain");

	(void)fabric;
	(void)info;
	(void)context;
	if (err == 0)
		*out = &domain;
	return err;
}

static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops), .domain = open_domain };
static struct fid_fabric fabric = { .fid.ops = &plain, .ops = &fabric_ops };

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	int err = open_object("fi_fabric");

	(void)attr;
	(void)context;
	if (err == 0)
		*out = &fabric;
	return err;
}

bool ofi_reads_well(const struct fi_info *i)
{
	(void)i;
	return false;
}

void rdma_warn_of_lock_limit(const char *who)
{
	assert_string_equal(who, "stub");
	/* the buffers that it registers are among what is locked then */
	assert_true(mr_is_open == !!(domain_attr.mr_mode & FI_MR_LOCAL));
	lock_looks++;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static struct fi_tx_attr tx = { .inject_size = 64 };
static struct fi_ep_attr ep_attr = { .max_msg_size = 1 << 20 };
static struct fi_fabric_attr fabric_attr = { .prov_name = (char[]){ "stub" } };
static struct fi_info info = {
	.caps = FI_MSG | FI_MULTI_RECV,
	.addr_format = FI_FORMAT_UNSPEC,
	.tx_attr = &tx,
	.ep_attr = &ep_attr,
	.domain_attr = &domain_attr,
	.fabric_attr = &fabric_attr,
};
static const struct ofi_lib lib = { .fabric = open_fabric };
static struct ofi o;
static const char *what;

static int fresh(void **state)
{
	(void)state;
	domain_attr = (struct fi_domain_attr){ .mr_mode = 0 };
	o = (struct ofi){ .lib = &lib, .info = &info };
	no_av = av_type = FI_AV_UNSPEC;
	fails = NULL;
	ep_enabled = mr_enabled = mr_is_open = clings = false;
	mr_bound = NULL;
	posted = 0;
	objects = 0;
	lock_looks = 0;
	return 0;
}

static void all_is_closed(void)
{
	ofi_ep_close(&o);
	ofi_domain_close(&o);
	assert_int_equal(objects, 0);
}

static void opens(void)
{
	assert_int_equal(ofi_ep_open(&o, &what), 0);
	assert_true(posted > 0);
	assert_null(o.idle);
}

static void addresses_are_in_a_table(void **state)
{
	(void)state;
	opens();
	assert_int_equal(av_type, FI_AV_TABLE);
	all_is_closed();
}

static void or_in_a_map_where_there_is_no_table(void **state)
{
	(void)state;
	no_av = FI_AV_TABLE;
	opens();
	assert_int_equal(av_type, FI_AV_MAP);
	all_is_closed();
}

static void or_where_the_provider_wants_one(void **state)
{
	(void)state;
	domain_attr.av_type = FI_AV_MAP;
	opens();
	assert_int_equal(av_type, FI_AV_MAP);
	all_is_closed();
}

static void buffers_are_registered_only_if_they_have_to_be(void **state)
{
	(void)state;
	opens();
	assert_false(mr_is_open);
	all_is_closed();
	fresh(state);
	domain_attr.mr_mode = FI_MR_LOCAL;
	opens();
	assert_true(mr_is_open);
	assert_null(mr_bound);
	all_is_closed();
}

static void who_locks_memory_is_asked_for_its_limit(void **state)
{
	(void)state;
	domain_attr.mr_mode = FI_MR_LOCAL;
	opens();
	assert_int_equal(lock_looks, 0);
	all_is_closed();
	fresh(state);
	domain_attr.mr_mode = FI_MR_ALLOCATED;
	opens();
	assert_int_equal(lock_looks, 1);
	all_is_closed();
	fresh(state);
	domain_attr.mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL;
	opens();
	assert_int_equal(lock_looks, 1);
	all_is_closed();
}

static void memory_of_an_endpoint_is_bound_to_it_before_it_is_used(void **state)
{
	(void)state;
	domain_attr.mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT;
	opens();
	assert_ptr_equal(mr_bound, &ep.fid);
	assert_true(mr_enabled);
	all_is_closed();
}

static void an_endpoint_closes_when_its_memory_is_unregistered(void **state)
{
	(void)state;
	domain_attr.mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT;
	opens();
	assert_false(ofi_ep_close(&o));
	assert_false(mr_is_open);
	assert_true(ofi_ep_close(&o));
	assert_null(o.ep);
	all_is_closed();
}

/* The provider may still write to them. */
static void one_that_does_not_close_keeps_its_buffers(void **state)
{
	(void)state;
	opens();
	clings = true;
	assert_false(ofi_ep_close(&o));
	ofi_domain_close(&o);
	assert_int_equal(objects, 5); /* it, its queue, its addresses, its domain and its fabric */
	memset(o.recv_bytes, 1, o.recvs * o.recv_size);
	clings = false;
	all_is_closed();
}

static void memory_that_cannot_be_bound_is_let_go_of(void **state)
{
	struct fid_mr *fid = NULL;

	domain_attr.mr_mode = FI_MR_ENDPOINT;
	opens();
	fails = "fi_mr_bind";
	assert_int_equal(ofi_reg(&o, &o, sizeof(o), FI_SEND, 1, &fid), -FI_EOTHER);
	assert_null(fid);
	assert_false(mr_is_open);
	all_is_closed();
	(void)state;
}

static void what_fails_is_named_and_nothing_is_left(void **state)
{
	static const char *const calls[] = { "fi_fabric",  "fi_domain",   "fi_av_open",
					     "fi_cq_open", "fi_endpoint", "fi_ep_bind",
					     "fi_setopt",  "fi_enable",   "fi_getname",
					     "fi_mr_reg",  "fi_recvmsg" };

	for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
		fresh(state);
		domain_attr.mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT;
		fails = calls[k];
		assert_int_equal(ofi_ep_open(&o, &what), -FI_EOTHER);
		assert_non_null(strstr(what, calls[k]));
		all_is_closed();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(addresses_are_in_a_table, fresh),
		cmocka_unit_test_setup(or_in_a_map_where_there_is_no_table, fresh),
		cmocka_unit_test_setup(or_where_the_provider_wants_one, fresh),
		cmocka_unit_test_setup(buffers_are_registered_only_if_they_have_to_be, fresh),
		cmocka_unit_test_setup(who_locks_memory_is_asked_for_its_limit, fresh),
		cmocka_unit_test_setup(memory_of_an_endpoint_is_bound_to_it_before_it_is_used,
				       fresh),
		cmocka_unit_test_setup(an_endpoint_closes_when_its_memory_is_unregistered, fresh),
		cmocka_unit_test_setup(one_that_does_not_close_keeps_its_buffers, fresh),
		cmocka_unit_test_setup(memory_that_cannot_be_bound_is_let_go_of, fresh),
		cmocka_unit_test_setup(what_fails_is_named_and_nothing_is_left, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
