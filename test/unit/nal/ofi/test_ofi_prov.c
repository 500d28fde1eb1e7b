/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Which of libfabric's providers is taken, and what is said if none is. libfabric is a stub that
 * offers what a case says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/config.h"
#include "nal/ofi/ofi.h"

#define ALL  (FI_MSG | FI_RMA | FI_MULTI_RECV)
#define MOST 8

/* The offers of libfabric, in its order; ends without a name. */
static struct offer {
	const char *provider;
	uint64_t caps;
	bool connected; /* not with the endpoints that we want */
} offers[MOST + 1];

static int getinfo_error; /* what fi_getinfo answers instead */
static uint64_t short_of; /* a bit for each structure asked for: there is no memory for it */
static int live;          /* structures not freed */
static struct base_config config;

const struct base_config *base_config(void)
{
	return &config;
}

static struct fi_info *make_info(const struct fi_info *from)
{
	struct fi_info *i = calloc(1, sizeof(*i));

	assert_non_null(i);
	i->tx_attr = calloc(1, sizeof(*i->tx_attr));
	i->rx_attr = calloc(1, sizeof(*i->rx_attr));
	i->ep_attr = calloc(1, sizeof(*i->ep_attr));
	i->domain_attr = calloc(1, sizeof(*i->domain_attr));
	i->fabric_attr = calloc(1, sizeof(*i->fabric_attr));
	if (from) {
		i->caps = from->caps;
		i->fabric_attr->prov_name = strdup(from->fabric_attr->prov_name);
	}
	live++;
	return i;
}

static struct fi_info *dup_info(const struct fi_info *from)
{
	bool fails = short_of & 1;

	short_of >>= 1;
	return fails ? NULL : make_info(from);
}

static void free_info(struct fi_info *i)
{
	while (i) {
		struct fi_info *next = i->next;

		free(i->tx_attr);
		free(i->rx_attr);
		free(i->ep_attr);
		free(i->domain_attr);
		free(i->fabric_attr->prov_name);
		free(i->fabric_attr);
		free(i);
		live--;
		i = next;
	}
}

/* As libfabric has it, tcp is also tcp;ofi_rxm. */
static bool named(const char *hint, const char *provider)
{
	size_t len = hint ? strlen(hint) : 0;

	return !hint || (!strncmp(hint, provider, len) && strchr(";", provider[len]));
}

static int get_info(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info **end = info;

	(void)version;
	(void)node;
	(void)service;
	(void)flags;
	if (getinfo_error)
		return getinfo_error;
	*info = NULL;
	for (const struct offer *o = offers; o->provider; o++) {
		struct fi_info from = { .caps = o->caps & (hints ? hints->caps : ALL) };

		if (hints && (o->connected || (o->caps & hints->caps) != hints->caps ||
			      !named(hints->fabric_attr->prov_name, o->provider)))
			continue;
		from.fabric_attr =
			&(struct fi_fabric_attr){ .prov_name = (char *)(uintptr_t)o->provider };
		*end = make_info(&from);
		end = &(*end)->next;
	}
	return *info ? 0 : -FI_ENODATA;
}

static const char *text_of(int err)
{
	return err == FI_ENOMEM ? "no memory" : err == FI_EINVAL ? "no sense" : "no idea";
}

static const struct ofi_lib stub = {
	.getinfo = get_info,
	.freeinfo = free_info,
	.dupinfo = dup_info,
	.strerror = text_of,
};

const struct ofi_lib *ofi_lib(const char **why)
{
	(void)why;
	return &stub;
}

static int fresh(void **state)
{
	(void)state;
	memset(offers, 0, sizeof(offers));
	live = 0;
	getinfo_error = 0;
	short_of = 0;
	config = (struct base_config){ .ptl_nal = "auto" };
	return 0;
}

static int all_is_freed(void **state)
{
	(void)state;
	return live;
}

/* One more that libfabric offers. */
static void offer(const char *provider, uint64_t caps)
{
	size_t n = 0;

	while (offers[n].provider)
		n++;
	assert_true(n < MOST);
	offers[n] = (struct offer){ .provider = provider, .caps = caps };
}

/* With this PTL_NAL that provider is taken, with these abilities. */
static void takes(const char *nal, const char *provider, uint64_t caps)
{
	const char *why = NULL;
	struct fi_info *i;

	config.ptl_nal = nal;
	i = ofi_choose(NULL, NULL, &why);
	assert_non_null(i);
	assert_string_equal(i->fabric_attr->prov_name, provider);
	assert_int_equal(i->caps, caps);
	free_info(i);
}

/* With this PTL_NAL none is, and that is said. */
static void takes_none(const char *nal, const char *text)
{
	const char *why = NULL;

	config.ptl_nal = nal;
	assert_null(ofi_choose(NULL, NULL, &why));
	assert_non_null(why);
	if (!strstr(why, text))
		fail_msg("'%s' is not in '%s'", text, why);
}

static void a_fabric_that_can_do_less_is_taken_before_sockets(void **state)
{
	(void)state;
	offer("tcp;ofi_rxm", ALL);
	offer("psm3", FI_MSG | FI_MULTI_RECV);
	takes("auto", "psm3", FI_MSG | FI_MULTI_RECV);
	takes("ofi", "psm3", FI_MSG | FI_MULTI_RECV);
	offer("verbs;ofi_rxm", ALL); /* psm3 is the better kind */
	takes("auto", "psm3", FI_MSG | FI_MULTI_RECV);
	offer("efa", FI_MSG);
	takes("ofi", "efa", FI_MSG);
}

static void of_one_kind_what_can_do_most_is_taken(void **state)
{
	(void)state;
	offer("verbs;ofi_rxd", FI_MSG);
	offer("verbs;dgram", FI_MSG | FI_MULTI_RECV);
	offer("verbs;ofi_rxm", FI_MSG | FI_RMA);
	takes("auto", "verbs;ofi_rxm", FI_MSG | FI_RMA);
}

static void and_else_what_libfabric_names_first(void **state)
{
	(void)state;
	offer("verbs;ofi_rxm", ALL);
	offer("verbs;ofi_rxd", ALL);
	takes("auto", "verbs;ofi_rxm", ALL);
}

static void unasked_there_is_nothing_but_fabrics(void **state)
{
	/* libfabric 1.11 wrote UDP */
	static const char *const others[] = { "tcp;ofi_rxm", "net", "sockets", "udp;ofi_rxd",
					      "UDP;ofi_rxd", "shm", "sm2" };

	(void)state;
	for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
		offers[0] = (struct offer){ .provider = others[k], .caps = ALL };
		takes_none("auto", "PTL_NAL");
		takes("shm,ofi", others[k], ALL);
	}
	offer("new;ofi_rxm", FI_MSG); /* one that came after us */
	takes("auto", "new;ofi_rxm", FI_MSG);
}

static void what_is_named_is_taken(void **state)
{
	(void)state;
	offer("psm3", ALL);
	offer("tcp;ofi_rxm", FI_MSG);
	offer("tcpish", ALL);
	takes("ofi:tcp", "tcp;ofi_rxm", FI_MSG);
	takes("shm, ofi:tcp;ofi_rxm", "tcp;ofi_rxm", FI_MSG);
	takes("ofi:tcp,udp,ofi:psm3", "tcp;ofi_rxm", FI_MSG); /* there is one endpoint */
	takes_none("ofi:cxi", "provider cxi offers no");
}

static void nothing_is_said_to_be_nothing(void **state)
{
	(void)state;
	takes_none("auto", "no provider of libfabric offers");
	takes_none("ofi", "no provider of libfabric offers");
	offer("psm3", FI_RMA); /* which is of no use without messages */
	takes_none("ofi", "no provider of libfabric offers");
}

static void what_libfabric_says_is_handed_on(void **state)
{
	(void)state;
	offer("psm3", ALL);
	getinfo_error = -FI_EINVAL;
	takes_none("ofi", "fi_getinfo): no sense");
}

static void memory_that_is_short_is_said_to_be(void **state)
{
	(void)state;
	offer("psm3", ALL);
	short_of = 0xf; /* the questions */
	takes_none("ofi:psm3", "fi_getinfo): no memory");
	short_of = 0x10; /* the answer */
	takes_none("ofi:psm3", "out of memory");
}

/* A query that fails for some abilities does not hide the results of others. */
static void one_answer_is_enough(void **state)
{
	(void)state;
	offer("psm3", ALL);
	short_of = 0xe; /* all questions but one */
	takes("ofi", "psm3", ALL);
}

static char told[1024];

static void line(const char *text)
{
	strncat(told, text, sizeof(told) - strlen(told) - 1);
	strncat(told, "\n", sizeof(told) - strlen(told) - 1);
}

/* With this PTL_NAL the list is this. */
static void lists(const char *nal, const char *text)
{
	config.ptl_nal = nal;
	*told = '\0';
	ofi_list(line);
	assert_string_equal(told, text);
}

static void the_list_has_them_in_the_order_of_taking_and_says_why_not(void **state)
{
	(void)state;
	offer("udp", FI_MSG);
	offer("tcp;ofi_rxm", ALL);
	offer("tcp;ofi_rxm", ALL); /* on another interface */
	offer("psm3", FI_MSG);
	offer("efa", ALL);
	offer("stream", ALL);
	offers[5].connected = true;
	lists("ofi", " 1. efa: long messages read from the sender's memory\n"
		     " 2. psm3: long messages in pieces\n"
		     " 3. tcp;ofi_rxm: long messages read from the sender's memory\n"
		     " 4. udp: long messages in pieces\n"
		     " -  stream: has no reliable unconnected endpoints (FI_EP_RDM) that keep "
		     "messages in order\n");
	takes("ofi", "efa", ALL);
	offers[4].connected = true;
	lists("auto", " 1. psm3: long messages in pieces\n"
		      " -  tcp;ofi_rxm: is not for a fabric, and taken only if PTL_NAL names ofi\n"
		      " -  udp: is not for a fabric, and taken only if PTL_NAL names ofi\n"
		      " -  efa: has no reliable unconnected endpoints (FI_EP_RDM) that keep "
		      "messages in order\n"
		      " -  stream: has no reliable unconnected endpoints (FI_EP_RDM) that keep "
		      "messages in order\n");
	memset(&offers[3], 0, 3 * sizeof(offers[0]));
	lists("ofi:tcp", " 1. tcp;ofi_rxm: long messages read from the sender's memory\n"
			 " -  udp: is not the one that PTL_NAL names\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, all_is_freed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_fabric_that_can_do_less_is_taken_before_sockets),
		CASE(of_one_kind_what_can_do_most_is_taken),
		CASE(and_else_what_libfabric_names_first),
		CASE(unasked_there_is_nothing_but_fabrics),
		CASE(what_is_named_is_taken),
		CASE(nothing_is_said_to_be_nothing),
		CASE(what_libfabric_says_is_handed_on),
		CASE(memory_that_is_short_is_said_to_be),
		CASE(one_answer_is_enough),
		CASE(the_list_has_them_in_the_order_of_taking_and_says_why_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
