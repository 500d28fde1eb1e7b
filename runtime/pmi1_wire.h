/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The lines of PMI-1, the protocol between a launcher and the processes it started. MPICH's
 * Hydra, Slurm's srun and our mpiexec speak it. A line is "cmd=NAME field=value field=value\n"
 * in ASCII, over a stream socket whose number is in PMI_FD. Decoder and encoder are pure
 * functions on memory; both ends use them.
 *
 *   process -> launcher                  launcher -> process
 *   init pmi_version pmi_subversion      response_to_init pmi_version pmi_subversion rc
 *   get_maxes                            maxes kvsname_max keylen_max vallen_max
 *   get_appnum                           appnum appnum
 *   get_universe_size                    universe_size size
 *   get_my_kvsname                       my_kvsname kvsname
 *   put kvsname key value                put_result rc msg
 *   get kvsname key                      get_result rc msg value
 *   barrier_in                           barrier_out, once every process has sent barrier_in
 *   abort exitcode                       (none)
 *   publish_name service port            publish_result rc msg
 *   unpublish_name service               unpublish_result rc msg
 *   lookup_name service                  lookup_result rc msg port
 *   mcmd=spawn, see below                spawn_result rc msg
 *   finalize                             finalize_ack
 *
 * A spawn command is "mcmd=spawn", lines "field=value" whose values may have blanks, and "endcmd":
 * nprocs execname totspawns spawnssofar argN... argcnt preput_num preput_key_N preput_val_N
 * info_num info_key_N info_val_N. The answer comes after the last of `totspawns` such commands.
 * The new processes find the pairs of preput in their store.
 *
 * `at_exit`, in finalize, is ours: the process ends without having left the job by itself, so
 * that its exit status counts. Our launcher has `at_exit` in response_to_init, too, to say that
 * it knows of it.
 */
#ifndef RUNTIME_PMI1_WIRE_H
#define RUNTIME_PMI1_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { PMI1_LINE_MAX = 65536 }; /* longest line either end accepts, with its newline */

/* X(NAME, word): a field and its spelling. */
#define PMI1_NUM_TABLE(X)                                                                          \
	X(RC, "rc")                                                                                \
	X(VERSION, "pmi_version")                                                                  \
	X(SUBVERSION, "pmi_subversion")                                                            \
	X(KVSNAME_MAX, "kvsname_max")                                                              \
	X(KEYLEN_MAX, "keylen_max")                                                                \
	X(VALLEN_MAX, "vallen_max")                                                                \
	X(APPNUM, "appnum")                                                                        \
	X(SIZE, "size")                                                                            \
	X(EXITCODE, "exitcode")                                                                    \
	X(AT_EXIT, "at_exit")
#define PMI1_TEXT_TABLE(X)                                                                         \
	X(KVSNAME, "kvsname")                                                                      \
	X(KEY, "key")                                                                              \
	X(MSG, "msg")                                                                              \
	X(SERVICE, "service")                                                                      \
	X(PORT, "port")                                                                            \
	X(VALUE, "value")

#define PMI1_FIELD_ENUM(name, word) PMI1_##name,
enum pmi1_field {
	PMI1_NUM_TABLE(PMI1_FIELD_ENUM) PMI1_N_NUMS,
	PMI1_LAST_NUM = PMI1_N_NUMS - 1, /* the texts follow */
	PMI1_TEXT_TABLE(PMI1_FIELD_ENUM) PMI1_N_FIELDS
};
#undef PMI1_FIELD_ENUM
#define PMI1_HAS(field) (1u << (field))

/* X(NAME, word, required fields) */
#define PMI1_CMD_TABLE(X)                                                                          \
	X(INIT, "init", PMI1_HAS(PMI1_VERSION) | PMI1_HAS(PMI1_SUBVERSION))                        \
	X(RESPONSE_TO_INIT, "response_to_init", PMI1_HAS(PMI1_RC))                                 \
	X(GET_MAXES, "get_maxes", 0)                                                               \
	X(MAXES, "maxes",                                                                          \
	  PMI1_HAS(PMI1_KVSNAME_MAX) | PMI1_HAS(PMI1_KEYLEN_MAX) | PMI1_HAS(PMI1_VALLEN_MAX))      \
	X(GET_APPNUM, "get_appnum", 0)                                                             \
	X(GOT_APPNUM, "appnum", PMI1_HAS(PMI1_APPNUM))                                             \
	X(GET_UNIVERSE_SIZE, "get_universe_size", 0)                                               \
	X(UNIVERSE_SIZE, "universe_size", PMI1_HAS(PMI1_SIZE))                                     \
	X(GET_MY_KVSNAME, "get_my_kvsname", 0)                                                     \
	X(MY_KVSNAME, "my_kvsname", PMI1_HAS(PMI1_KVSNAME))                                        \
	X(PUT, "put", PMI1_HAS(PMI1_KVSNAME) | PMI1_HAS(PMI1_KEY) | PMI1_HAS(PMI1_VALUE))          \
	X(PUT_RESULT, "put_result", PMI1_HAS(PMI1_RC))                                             \
	X(GET, "get", PMI1_HAS(PMI1_KVSNAME) | PMI1_HAS(PMI1_KEY))                                 \
	X(GET_RESULT, "get_result", PMI1_HAS(PMI1_RC))                                             \
	X(BARRIER_IN, "barrier_in", 0)                                                             \
	X(BARRIER_OUT, "barrier_out", 0)                                                           \
	X(FINALIZE, "finalize", 0)                                                                 \
	X(FINALIZE_ACK, "finalize_ack", 0)                                                         \
	X(ABORT, "abort", 0)                                                                       \
	X(PUBLISH_NAME, "publish_name", PMI1_HAS(PMI1_SERVICE) | PMI1_HAS(PMI1_PORT))              \
	X(PUBLISH_RESULT, "publish_result", PMI1_HAS(PMI1_RC))                                     \
	X(UNPUBLISH_NAME, "unpublish_name", PMI1_HAS(PMI1_SERVICE))                                \
	X(UNPUBLISH_RESULT, "unpublish_result", PMI1_HAS(PMI1_RC))                                 \
	X(LOOKUP_NAME, "lookup_name", PMI1_HAS(PMI1_SERVICE))                                      \
	X(LOOKUP_RESULT, "lookup_result", PMI1_HAS(PMI1_RC))                                       \
	X(SPAWN_RESULT, "spawn_result", PMI1_HAS(PMI1_RC))

#define PMI1_CMD_ENUM(name, word, required) PMI1_CMD_##name,
enum pmi1_cmd {
	PMI1_CMD_TABLE(PMI1_CMD_ENUM)
		PMI1_CMD_MULTI, /* "mcmd=...": lines up to "endcmd" belong to it */
	PMI1_CMD_UNKNOWN        /* well-formed, but the name is not in the table */
};
#undef PMI1_CMD_ENUM

struct pmi1_text {
	const char *ptr; /* not terminated; in the memory given to the decoder */
	size_t len;
};

struct pmi1_msg {
	enum pmi1_cmd cmd;
	struct pmi1_text name; /* of the command, as it was on the line */
	unsigned present;      /* PMI1_HAS() bits */
	int num[PMI1_N_NUMS];
	struct pmi1_text text[PMI1_N_FIELDS]; /* by field; those of the numbers stay unused */
};

/*
 * Decode one line, with or without its newline. Unknown fields are skipped. Refused are: a
 * known field twice, a malformed number, an empty key, a byte that is not printable, or a
 * missing required field. Returns 0 or -EPROTO; *msg is then valid as a whole or unchanged.
 */
int pmi1_decode(const char *line, size_t len, struct pmi1_msg *msg);

/* Make msg an empty message of this command; the setters add fields. Texts are not copied. */
void pmi1_begin(struct pmi1_msg *msg, enum pmi1_cmd cmd);
void pmi1_set_num(struct pmi1_msg *msg, enum pmi1_field field, int num);
void pmi1_set_text(struct pmi1_msg *msg, enum pmi1_field field, const char *text);

/*
 * Write msg as a line with its newline, without terminating it. Returns its length, -EINVAL if
 * a text cannot stand on a line or a required field is missing, or -EMSGSIZE if buf is too
 * small.
 */
int pmi1_encode(const struct pmi1_msg *msg, char *buf, size_t size);

/*
 * Escape values so that any text can travel: blanks, "=" and bytes that are not printable
 * become "~XX". Escaping returns the length written, or -EMSGSIZE. Unescaping returns the
 * length, -EPROTO for a broken escape, or -EMSGSIZE. Neither terminates its output.
 */
int pmi1_escape(const char *in, size_t len, char *out, size_t size);
int pmi1_unescape(const char *in, size_t len, char *out, size_t size);

/* The name of a command as it stands on a line; "?" for one without. */
const char *pmi1_cmd_word(enum pmi1_cmd cmd);

static inline bool pmi1_has(const struct pmi1_msg *msg, enum pmi1_field field)
{
	return msg->present & PMI1_HAS(field);
}

static inline bool pmi1_text_is(struct pmi1_text text, const char *word)
{
	return __builtin_strlen(word) == text.len && !__builtin_memcmp(word, text.ptr, text.len);
}

#endif
