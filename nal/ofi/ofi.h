/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The link over libfabric (nal/net/rdma/rdma_link.h): one reliable unconnected endpoint for
 * each interface, of any suitable provider. A provider is asked what it can do; nothing is
 * assumed. libfabric is loaded only when it is wanted, so that a system without it has
 * everything else.
 *
 *   ofi.c       the operations of the NAL: opening, cards, joining, closing
 *   ofi_lib.c   libfabric, loaded
 *   ofi_prov.c  choosing a provider
 *   ofi_addr.c  addresses: of cards, of ids, and paths to peers
 *   ofi_ep.c    the endpoint and what belongs to it
 *   ofi_link.c  packets, reads, memory, completions
 *   ofi_wire.c  decoder of cards
 */
#ifndef OFI_H
#define OFI_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "nal/net/rdma/rdma.h"
#include "nal/ofi/ofi_wire.h"

#define OFI_VERSION FI_VERSION(1, 11)

/* ---- ofi_lib.c ------------------------------------------------------------------------------- */

struct ofi_lib {
	uint32_t (*version)(void);
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int err);
};

/* NULL if it is not installed or too old; `why`, if not NULL, then gets the reason. */
const struct ofi_lib *ofi_lib(const char **why);

/* ---- ofi_prov.c ------------------------------------------------------------------------------ */

/* The text of PTL_NAL after the first "ofi:", "" if none. Valid until the next call. */
const char *ofi_wanted(void);
/* Does PTL_NAL leave the choice to us? Then only fabrics are used. */
bool ofi_is_unasked(void);
/* Does this machine have a device that libfabric is for? Reads some directories. */
bool ofi_has_fabric(void);
/* The best offer of the wanted provider, or of all; with `node` and `service`, the best one at
 * this address of ours. Free it with freeinfo. NULL: *why says the reason. */
struct fi_info *ofi_choose(const char *node, const char *service, const char **why);
/* Does it reach only processes of the same user on this host? */
static inline bool ofi_is_in_host(const struct fi_info *i)
{
	const char *name = i->fabric_attr->prov_name;

	return !strcmp(name, "shm") || !strcmp(name, "sm2");
}
/* Does it name its endpoints by text, within the host? */
static inline bool ofi_is_local(const struct fi_info *i)
{
	return i->addr_format == FI_ADDR_STR;
}
/* Does it use addresses of IP? */
static inline bool ofi_is_ip(const struct fi_info *i)
{
	return i->addr_format == FI_SOCKADDR_IN || i->addr_format == FI_SOCKADDR_IN6;
}
/* Does it read a peer's memory well? If not, long messages go in segments. */
bool ofi_reads_well(const struct fi_info *i);
static inline const char *ofi_long_by(bool reads)
{
	return reads ? "long messages read from the sender's memory" : "long messages in pieces";
}
/* List libfabric's usable providers in the order of preference, and why others are not used:
 * one line each. */
void ofi_list(void (*line)(const char *text));

/* ---- the link -------------------------------------------------------------------------------- */

/* The kind of operation that a context belongs to. It is in the context's last word, which
 * providers do not touch, together with the path of a packet or read. */
enum ofi_kind { OFI_PACKET = 1, OFI_READ, OFI_RECV };
#define OFI_KINDS 4u

struct ofi_recv {
	uint64_t word[RDMA_LINK_WORDS];
	uint8_t *bytes;
	struct ofi_recv *next;
	bool idle; /* not posted */
};

struct ofi_path {
	struct ofi_path *next;
	fi_addr_t addr;
	uint32_t refs;
	uint32_t under_way; /* packets and reads that libfabric has */
	bool removed;       /* the address is invalid, and will not be found */
	struct ofi_addr raw;
};

static_assert(_Alignof(struct ofi_path) >= OFI_KINDS, "a kind goes into the low bits of its place");

struct ofi {
	struct rdma rdma; /* first */
	const struct ofi_lib *lib;
	struct ptl_ni *ni;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int fd;           /* -1: this provider has none to wait on */
	uint64_t poll_ns; /* poll interval where there is no fd */
	int name_fd;      /* holds our name within the host; -1: there is none */
	bool started;
	struct rdma_limits limits;
	struct ofi_addr own;

	uint8_t *recv_bytes;
	struct fid_mr *recv_mr;
	struct ofi_recv *recv, *idle; /* all; those to be posted */
	uint32_t recvs;
	size_t recv_size;
	bool multi; /* a buffer takes many packets */
	bool reads; /* one was begun since the last poll */
	bool vain;  /* the last poll found nothing, and was cheap */

	struct ofi_rank {
		ptl_process_id_t id;
		struct ofi_addr addr;
	} * rank; /* of the job, sorted by id */
	unsigned int ranks;
	bool by_id; /* others are where their ids say */
	struct ofi_path *paths[64];

	uint64_t key; /* the next one, where we choose them */
	bool said_memlock, said_error, said_blind;
	char refused[160]; /* the last call that was refused, and why */
};

/* ---- ofi_ep.c -------------------------------------------------------------------------------- */

/* Open everything for o->info. Returns 0, or -errno with the failed call in *what. */
int ofi_ep_open(struct ofi *o, const char **what);
/* Close what sends and receives. False: the endpoint has memory of its own, and some of it is
 * still registered. */
bool ofi_ep_close(struct ofi *o);
/* Close the rest, after memory was unregistered. Objects that cannot be closed stay, with the
 * buffers for packets. */
void ofi_domain_close(struct ofi *o);
/* Register memory, for our endpoint where endpoints have memory of their own. Returns 0 or
 * -errno. */
int ofi_reg(struct ofi *o, void *base, size_t len, uint64_t access, uint64_t key,
	    struct fid_mr **mr);
/* Post the idle buffers, as far as there is room. Returns 0, or -errno: none was posted. */
int ofi_post(struct ofi *o);

/* ---- ofi_addr.c ------------------------------------------------------------------------------ */

/* The arguments of fi_getinfo for our address or that of a process: an interface's address or a
 * nid, and a port or a name within the host. */
struct ofi_name {
	char node[64], service[32];
};
/* Find where a process is by its id alone. False: not possible with this provider. */
bool ofi_name_of(const struct ofi *o, const struct fi_info *i, ptl_process_id_t id,
		 struct ofi_name *name);
/* Keep the addresses of the job's ranks that use our provider. False: out of memory. */
bool ofi_take_cards(struct ofi *o, const struct nal_job *job);
/* Of struct rdma_link. */
void *ofi_reach(void *link, net_id_t id, const void *address, size_t len);
void ofi_leave(void *link, void *path);
/* A packet or read on this path is over. */
void ofi_path_over(struct ofi *o, struct ofi_path *w);
/* Free the records of all paths, at the end. */
void ofi_paths_free(struct ofi *o);

/* ---- ofi_link.c ------------------------------------------------------------------------------ */

extern const struct rdma_link ofi_link;

/* The remedy and "; ", if memory could not be had and the limit of locked memory may be the
 * reason; else "". */
const char *ofi_remedy(int err);

#endif
