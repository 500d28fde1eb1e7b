/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Libfabric's text of an error reaches the machine of nal/net/rdma, with the provider and the call.
 * So does a word that goes beside a packet. The provider and the machine are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "nal/ofi/ofi.h"
#include "portals/engine/debug.h"

static ssize_t answer; /* of calls that start something */
static ssize_t
	looked;    /* of a look for completions, if it is not that there is none, or one in error */
static int posted; /* whether buffers are taken */
static struct fi_cq_err_entry error;
static enum rdma_end ended; /* how what was under way did */
static char said[128];
static uint64_t beside;               /* the word that went with a packet, or came; 0: none did */
static struct fi_cq_data_entry *came; /* what a look finds */

/* ---- the provider ---------------------------------------------------------------------------- */

static ssize_t ep_inject(struct fid_ep *ep, const void *bytes, size_t len, fi_addr_t to)
{
	(void)ep;
	(void)bytes;
	(void)len;
	(void)to;
	return answer;
}

static ssize_t ep_send(struct fid_ep *ep, const void *bytes, size_t len, void *desc, fi_addr_t to,
		       void *context)
{
	(void)ep;
	(void)bytes;
	(void)len;
	(void)desc;
	(void)to;
	error.op_context = context;
	return answer;
}

static ssize_t ep_injectdata(struct fid_ep *ep, const void *bytes, size_t len, uint64_t data,
			     fi_addr_t to)
{
	beside = data;
	return ep_inject(ep, bytes, len, to);
}

static ssize_t ep_senddata(struct fid_ep *ep, const void *bytes, size_t len, void *desc,
			   uint64_t data, fi_addr_t to, void *context)
{
	beside = data;
	return ep_send(ep, bytes, len, desc, to, context);
}

static ssize_t ep_read(struct fid_ep *ep, void *bytes, size_t len, void *desc, fi_addr_t from,
		       uint64_t address, uint64_t key, void *context)
{
	(void)ep;
	(void)bytes;
	(void)len;
	(void)desc;
	(void)from;
	(void)address;
	(void)key;
	error.op_context = context;
	return answer;
}

static struct fi_ops_msg msg = { .size = sizeof(msg),
				 .inject = ep_inject,
				 .send = ep_send,
				 .injectdata = ep_injectdata,
				 .senddata = ep_senddata };
static struct fi_ops_rma rma = { .size = sizeof(rma), .read = ep_read };
static struct fid_ep ep = { .msg = &msg, .rma = &rma };

static ssize_t cq_read(struct fid_cq *cq, void *entry, size_t count)
{
	(void)cq;
	(void)count;
	if (came) {
		memcpy(entry, came, sizeof(*came));
		came = NULL;
		return 1;
	}
	if (looked)
		return looked;
	return error.err ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *e, uint64_t flags)
{
	(void)cq;
	(void)flags;
	*e = error;
	error.err = 0;
	return 1;
}

static const char *cq_strerror(struct fid_cq *cq, int prov_errno, const void *data, char *text,
			       size_t len)
{
	(void)cq;
	(void)data;
	snprintf(text, len, "its number %d", prov_errno);
	return text;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops), .read = cq_read, .readerr = cq_readerr, .strerror = cq_strerror
};
static struct fid_cq cq = { .ops = &cq_ops };

static const char *text_of(int err)
{
	return err == FI_EOTHER ? "something of libfabric's own" : "something else";
}

/* ---- the machine, and the rest of the link --------------------------------------------------- */

void rdma_arrived(struct rdma *d, void *way, const void *bytes, size_t len)
{
	(void)d;
	(void)way;
	(void)bytes;
	(void)len;
}

void rdma_arrived_headerless(struct rdma *d, void *way, uint64_t word, const void *bytes,
			     size_t len)
{
	(void)d;
	assert_null(way);
	beside = word;
	snprintf(said, sizeof(said), "%.*s", (int)len, (const char *)bytes);
}

static void over(enum rdma_end end, const char *why)
{
	ended = end;
	snprintf(said, sizeof(said), "%s", why);
}

void rdma_sent(struct rdma *d, struct rdma_packet *p, enum rdma_end end, const char *why)
{
	(void)d;
	(void)p;
	over(end, why);
}

void rdma_moved(struct rdma *d, struct rdma_read *r, enum rdma_end end, const char *why)
{
	(void)d;
	(void)r;
	over(end, why);
}

void *ofi_reach(void *link, net_id_t id, const void *address, size_t len)
{
	(void)link;
	(void)id;
	(void)address;
	(void)len;
	return NULL;
}

void ofi_leave(void *link, void *way)
{
	(void)link;
	(void)way;
}

void ofi_path_over(struct ofi *at, struct ofi_path *w)
{
	(void)at;
	w->under_way--;
}

int ofi_reg(struct ofi *o, void *base, size_t len, uint64_t access, uint64_t key,
	    struct fid_mr **mr)
{
	(void)o;
	(void)base;
	(void)len;
	(void)access;
	(void)key;
	(void)mr;
	return 0;
}

int ofi_post(struct ofi *o)
{
	(void)o;
	return posted;
}

void ptl_debug(const struct ptl_ni *ni, const char *format, ...)
{
	va_list args;

	(void)ni;
	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

bool ofi_ep_close(struct ofi *o)
{
	(void)o;
	return true;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const struct ofi_lib lib = { .strerror = text_of };
static struct fi_fabric_attr fabric = { .prov_name = (char[]){ "stub" } };
static struct fi_info info = { .fabric_attr = &fabric };
static struct ptl_ni interface;
static struct ofi o;
static struct ofi_path way;
static struct rdma_packet packet;
static struct rdma_read rd;

static int fresh(void **state)
{
	(void)state;
	o = (struct ofi){ .lib = &lib, .ni = &interface, .info = &info, .ep = &ep, .cq = &cq };
	o.limits.copied = 64;
	packet = (struct rdma_packet){ .len = 65 };
	rd = (struct rdma_read){ .len = 65 };
	error = (struct fi_cq_err_entry){ .err = 0 };
	way = (struct ofi_path){ .refs = 1 };
	answer = looked = 0;
	posted = 0;
	beside = 0;
	*said = '\0';
	return 0;
}

static void what_was_refused_is_told_with_the_call(void **state)
{
	(void)state;
	answer = -FI_EOTHER;
	assert_int_equal(ofi_link.send(&o, &way, &packet), -FI_EOTHER);
	assert_string_equal(ofi_link.error(&o, -FI_EOTHER),
			    "fi_send of provider stub: something of libfabric's own");
	packet.len = 64;
	assert_int_equal(ofi_link.send(&o, &way, &packet), -FI_EOTHER);
	assert_string_equal(ofi_link.error(&o, -FI_EOTHER),
			    "fi_inject of provider stub: something of libfabric's own");
	assert_int_equal(ofi_link.read(&o, &way, &rd), -FI_EOTHER);
	assert_string_equal(ofi_link.error(&o, -FI_EOTHER),
			    "fi_read of provider stub: something of libfabric's own");
}

static void no_room_is_no_error(void **state)
{
	(void)state;
	answer = -FI_EAGAIN;
	assert_int_equal(ofi_link.send(&o, &way, &packet), -EAGAIN);
	assert_int_equal(ofi_link.read(&o, &way, &rd), -EAGAIN);
	assert_int_equal(way.under_way, 0);
	answer = 0;
	assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
	assert_int_equal(ofi_link.read(&o, &way, &rd), 0);
}

static void what_went_wrong_later_is_told_with_the_provider_s_words(void **state)
{
	(void)state;
	assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
	assert_int_equal(way.under_way, 1);
	error.err = FI_EOTHER;
	error.prov_errno = 42;
	assert_int_equal(ofi_link.poll(&o), 1);
	assert_int_equal(ended, RDMA_BROKEN);
	assert_string_equal(said, "provider stub: something of libfabric's own (its number 42)");
	assert_int_equal(way.under_way, 0);
	assert_int_equal(ofi_link.read(&o, &way, &rd), 0);
	assert_int_equal(way.under_way, 1);
	error.err = FI_EACCES;
	assert_int_equal(ofi_link.poll(&o), 1);
	assert_int_equal(way.under_way, 0);
	assert_int_equal(ended, RDMA_FAILED);
	assert_string_equal(said, "provider stub: something else (its number 42)");
}

static void of_what_was_injected_it_is_debug_output(void **state)
{
	(void)state;
	packet.len = 64;
	for (int on = 0; on < 2; on++) {
		interface.debug = on ? PTL_DBG_SETUP : 0;
		assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
		assert_int_equal(way.under_way, 0);
		error.err = FI_EOTHER;
		error.prov_errno = 42;
		assert_int_equal(ofi_link.poll(&o), 1);
		assert_string_equal(said,
				    on ? "a packet could not be sent: provider stub: something of "
					 "libfabric's own (its number 42)"
				       : "");
	}
	interface.debug = 0;
}

/* Of the last one it is known when libfabric does not need us any more. */
static void the_last_packet_is_not_injected_if_that_is_wanted(void **state)
{
	(void)state;
	packet.len = 64;
	packet.last = true;
	assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
	assert_int_equal(way.under_way, 0);
	o.limits.ends_last = true;
	assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
	assert_int_equal(way.under_way, 1);
	packet.last = false;
	assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
	assert_int_equal(way.under_way, 1);
}

static void a_word_goes_beside_a_bare_packet(void **state)
{
	(void)state;
	for (packet.len = 64; packet.len <= 65; packet.len++) {
		packet.headerless = false;
		packet.word = 0xfeedfacecafebeef;
		assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
		assert_int_equal(beside, 0);
		packet.headerless = true;
		assert_int_equal(ofi_link.send(&o, &way, &packet), 0);
		assert_int_equal(beside, 0xfeedfacecafebeef);
		beside = 0;
	}
	assert_int_equal(way.under_way, 2);
	answer = -FI_EOTHER;
	assert_int_equal(ofi_link.send(&o, &way, &packet), -FI_EOTHER);
	answer = -FI_EAGAIN;
	assert_int_equal(ofi_link.send(&o, &way, &packet), -EAGAIN);
}

/* Where such are sent: from others half a token would do. */
static void and_comes_with_it(void **state)
{
	char text[] = "bytes";
	struct ofi_recv r = { .bytes = (uint8_t *)text, .word[RDMA_LINK_WORDS - 1] = OFI_RECV };
	struct fi_cq_data_entry e = {
		.op_context = &r, .flags = FI_RECV, .len = 3, .buf = text, .data = 7
	};

	(void)state;
	for (int turn = 0; turn < 8; turn++) {
		const bool data = turn & 2, may = turn & 4;

		o.multi = turn & 1;
		o.limits.frame = may ? 64 : 0;
		e.flags = FI_RECV | (data ? FI_REMOTE_CQ_DATA : 0);
		r.idle = false;
		came = &e;
		beside = 0;
		assert_int_equal(ofi_link.poll(&o), 1);
		assert_int_equal(beside, data && may ? 7 : 0);
		if (data && may)
			assert_string_equal(said, "byt");
	}
}

/* The text of warnings meanwhile. */
static void warned_by_polling(char *text, size_t len)
{
	FILE *file = tmpfile();
	int kept = dup(STDERR_FILENO);

	assert_non_null(file);
	assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ofi_link.poll(&o), 0);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	rewind(file);
	text[fread(text, 1, len - 1, file)] = '\0';
	fclose(file);
}

/* As of a queue that has overrun. */
static void that_nothing_is_told_any_more_is_said_once(void **state)
{
	char text[512], *at;

	(void)state;
	warned_by_polling(text, sizeof(text));
	assert_string_equal(text, "");
	looked = -FI_EOTHER;
	warned_by_polling(text, sizeof(text));
	at = strstr(
		text,
		"provider stub does not say any more what has arrived (fi_cq_read): something of "
		"libfabric's own");
	assert_non_null(at);
	assert_null(strstr(at + 1, "provider stub"));
}

static void that_no_buffer_is_taken_is_said_once(void **state)
{
	struct ofi_recv recv = { .idle = true };
	char text[512], *at;

	(void)state;
	o.idle = &recv;
	warned_by_polling(text, sizeof(text));
	assert_string_equal(text, "");
	posted = -FI_EOTHER;
	warned_by_polling(text, sizeof(text));
	at = strstr(text, "provider stub does not take buffers for what arrives (fi_recvmsg): "
			  "something of libfabric's own");
	assert_non_null(at);
	assert_null(strstr(at + 1, "provider stub"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_refused_is_told_with_the_call, fresh),
		cmocka_unit_test_setup(no_room_is_no_error, fresh),
		cmocka_unit_test_setup(what_went_wrong_later_is_told_with_the_provider_s_words,
				       fresh),
		cmocka_unit_test_setup(of_what_was_injected_it_is_debug_output, fresh),
		cmocka_unit_test_setup(the_last_packet_is_not_injected_if_that_is_wanted, fresh),
		cmocka_unit_test_setup(a_word_goes_beside_a_bare_packet, fresh),
		cmocka_unit_test_setup(and_comes_with_it, fresh),
		cmocka_unit_test_setup(that_nothing_is_told_any_more_is_said_once, fresh),
		cmocka_unit_test_setup(that_no_buffer_is_taken_is_said_once, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
