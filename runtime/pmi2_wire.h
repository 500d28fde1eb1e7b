/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The messages of PMI-2, which Slurm's mpi/pmi2 and MPICH's Hydra speak over the socket of
 * PMI_FD. It begins with a line of PMI-1, "cmd=init pmi_version=2 pmi_subversion=0\n", and its
 * answer. Then each message is a length in six characters, decimal with blanks around it, and
 * "cmd=NAME;field=value;field=value;". A ";" in a value is doubled. Decoder and encoder are pure
 * functions on memory.
 *
 *   process -> launcher                  launcher -> process
 *   fullinit pmijobid pmirank threaded   fullinit-response rank size appnum rc
 *   job-getid                            job-getid-response jobid rc
 *   kvs-put key value                    kvs-put-response rc
 *   kvs-get jobid srcid key              kvs-get-response found value rc
 *   kvs-fence                            kvs-fence-response rc errmsg, once all have asked
 *   info-getjobattr key                  info-getjobattr-response found value rc
 *   abort isworld msg exitcode           (none)
 *   finalize                             finalize-response rc
 */
#ifndef RUNTIME_PMI2_WIRE_H
#define RUNTIME_PMI2_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/pmi1_wire.h"

enum {
	PMI2_HEAD = 6,            /* characters of a length */
	PMI2_MESSAGE_MAX = 65536, /* longest message, with its length */
	PMI2_KEY_MAX = 63,        /* fixed by the protocol, without a terminator */
	PMI2_VALUE_MAX = 1023
};

/* X(NAME, word): a field and its spelling. */
#define PMI2_NUM_TABLE(X)                                                                          \
	X(RC, "rc")                                                                                \
	X(RANK, "rank")                                                                            \
	X(SIZE, "size")                                                                            \
	X(APPNUM, "appnum")                                                                        \
	X(PMIRANK, "pmirank")                                                                      \
	X(SRCID, "srcid")                                                                          \
	X(EXITCODE, "exitcode")
#define PMI2_TEXT_TABLE(X)                                                                         \
	X(PMIJOBID, "pmijobid")                                                                    \
	X(THREADED, "threaded")                                                                    \
	X(JOBID, "jobid")                                                                          \
	X(KEY, "key")                                                                              \
	X(VALUE, "value")                                                                          \
	X(FOUND, "found")                                                                          \
	X(ISWORLD, "isworld")                                                                      \
	X(MSG, "msg")                                                                              \
	X(ERRMSG, "errmsg")

#define PMI2_FIELD_ENUM(name, word) PMI2_##name,
enum pmi2_field {
	PMI2_NUM_TABLE(PMI2_FIELD_ENUM) PMI2_N_NUMS,
	PMI2_LAST_NUM = PMI2_N_NUMS - 1, /* the texts follow */
	PMI2_TEXT_TABLE(PMI2_FIELD_ENUM) PMI2_N_FIELDS
};
#undef PMI2_FIELD_ENUM
#define PMI2_HAS(field) (1u << (field))

/* X(NAME, word, required fields) */
#define PMI2_CMD_TABLE(X)                                                                          \
	X(FULLINIT, "fullinit", PMI2_HAS(PMI2_PMIRANK))                                            \
	X(GOT_FULLINIT, "fullinit-response", PMI2_HAS(PMI2_RANK) | PMI2_HAS(PMI2_SIZE))            \
	X(GETID, "job-getid", 0)                                                                   \
	X(GOT_ID, "job-getid-response", PMI2_HAS(PMI2_JOBID))                                      \
	X(PUT, "kvs-put", PMI2_HAS(PMI2_KEY) | PMI2_HAS(PMI2_VALUE))                               \
	X(PUT_DONE, "kvs-put-response", PMI2_HAS(PMI2_RC))                                         \
	X(GET, "kvs-get", PMI2_HAS(PMI2_KEY))                                                      \
	X(GOT, "kvs-get-response", PMI2_HAS(PMI2_FOUND))                                           \
	X(FENCE, "kvs-fence", 0)                                                                   \
	X(FENCE_DONE, "kvs-fence-response", PMI2_HAS(PMI2_RC))                                     \
	X(GETJOBATTR, "info-getjobattr", PMI2_HAS(PMI2_KEY))                                       \
	X(GOT_JOBATTR, "info-getjobattr-response", PMI2_HAS(PMI2_FOUND))                           \
	X(ABORT, "abort", PMI2_HAS(PMI2_ISWORLD))                                                  \
	X(FINALIZE, "finalize", 0)                                                                 \
	X(FINALIZED, "finalize-response", 0)

#define PMI2_CMD_ENUM(name, word, required) PMI2_CMD_##name,
enum pmi2_cmd {
	PMI2_CMD_TABLE(PMI2_CMD_ENUM) PMI2_CMD_UNKNOWN /* well-formed, but not in the table */
};
#undef PMI2_CMD_ENUM

struct pmi2_msg {
	enum pmi2_cmd cmd;
	unsigned present; /* PMI2_HAS() bits */
	int num[PMI2_N_NUMS];
	/* by field; those of the numbers stay unused; a ";" in a text is still doubled */
	struct pmi1_text text[PMI2_N_FIELDS];
};

/* The length of the message behind these PMI2_HEAD characters, or -EPROTO. */
int pmi2_length(const char *head);

/*
 * Decode one message, without its length. Unknown fields are skipped. Refused are: a known field
 * twice, a malformed number, an empty key, a byte that is not printable, or a missing required
 * field. Returns 0 or -EPROTO; *msg is then valid as a whole or unchanged.
 */
int pmi2_decode(const char *body, size_t len, struct pmi2_msg *msg);

/* Make msg an empty message of this command; the setters add fields. Texts are not copied. */
void pmi2_begin(struct pmi2_msg *msg, enum pmi2_cmd cmd);
void pmi2_set_num(struct pmi2_msg *msg, enum pmi2_field field, int num);
void pmi2_set_text(struct pmi2_msg *msg, enum pmi2_field field, const char *text);

/*
 * Write msg with its length in front, without terminating it. Returns the length of all, -EINVAL
 * if a text has a ";" or a byte that is not printable or a required field is missing, or
 * -EMSGSIZE if buf is too small.
 */
int pmi2_encode(const struct pmi2_msg *msg, char *buf, size_t size);

static inline bool pmi2_has(const struct pmi2_msg *msg, enum pmi2_field field)
{
	return msg->present & PMI2_HAS(field);
}

#endif
