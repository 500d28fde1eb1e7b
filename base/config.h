/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Every environment variable that Postern reads, in one table: name, type, default, range,
 * help. The table generates the struct of values, the parser, the checks, `portals-info
 * --config`, and the ENVIRONMENT section of portals(7). A new setting is one row here. No
 * other file reads the environment.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/*
 * X(NAME, field, type, default, min, max, choices-or-unit, "help")
 *   STR   const char *, NULL when unset and without default; min and max unused
 *   INT   long, decimal or 0x..., from min to max; the unit is for people
 *   BOOL  bool: 0 1 no yes off on false true
 *   ENUM  int: index into the choices; the enums below name them
 * An empty string counts as not set.
 */
#define BASE_CONFIG_TABLE(X)                                                                       \
	X(PTL_NAL, ptl_nal, STR, "auto", 0, 0, "name,name,...",                                    \
	  "Transports to use, the preferred one first: a peer is reached by the first of them "    \
	  "that can; auto: all, the fastest first; portals-info lists them; messages of a "        \
	  "process to itself always go by shared memory. libfabric's provider can be named: "      \
	  "ofi:tcp.")                                                                              \
	X(PTL_KEY_FILE, ptl_key_file, STR, NULL, 0, 0, "file",                                     \
	  "File with a secret of 16 bytes or more that processes outside a job share, so that "    \
	  "network transports can tell friend from foe; readable by its owner only; in a job "     \
	  "the launcher's exchange carries a secret made for it.")                                 \
	X(PTL_AUTH, ptl_auth, ENUM, BASE_AUTH_HEADER, 0, 1, "header|full",                         \
	  "What of a datagram the keyed tag protects: all that steers, and short messages "        \
	  "(header), or long messages' bytes, too (full); the same on all processes.")             \
	X(PTL_NET_DEAD_MS, ptl_net_dead_ms, INT, 10000, 100, 3600000, "milliseconds",              \
	  "How long a peer on the network may be silent while something is expected of it.")       \
	X(PTL_UDP_MTU, ptl_udp_mtu, INT, 0, 0, 65500, "bytes",                                     \
	  "Longest datagram; 0 takes what the network interface can carry.")                       \
	X(PTL_UDP_BUFFER_KIB, ptl_udp_buffer_kib, INT, 4096, 64, 1048576, "KiB",                   \
	  "Socket buffer for each direction, as far as net.core.rmem_max and wmem_max allow.")     \
	X(PTL_UDP_SEGMENTS, ptl_udp_segments, BOOL, 1, 0, 1, "",                                   \
	  "Let the kernel cut and join datagrams where it can (UDP_SEGMENT, UDP_GRO).")            \
	X(PTL_ETH_TYPE, ptl_eth_type, INT, 0x88b5, 0x600, 0xffff, "EtherType",                     \
	  "Type of the frames that processes exchange over Ethernet without IP; the default is "   \
	  "the first of the two for local experiments; must be the same on all processes.")        \
	X(PTL_ETH_MTU, ptl_eth_mtu, INT, 0, 0, 9000, "bytes",                                      \
	  "Longest Ethernet frame, without its header; 0 takes what the network interface can "    \
	  "carry, 9000 at most.")                                                                  \
	X(PTL_ETH_RING_KIB, ptl_eth_ring_kib, INT, 4096, 256, 262144, "KiB",                       \
	  "Memory shared with the kernel for Ethernet frames that arrive.")                        \
	X(PTL_OFI_READ, ptl_ofi_read, ENUM, BASE_READ_AUTO, 0, 2, "auto|on|off",                   \
	  "Over libfabric, whether long messages are read from the sender's memory (on), come in " \
	  "pieces (off), or as the provider does well (auto).")                                    \
	X(PTL_VERBS_DEVICE, ptl_verbs_device, STR, NULL, 0, 0, "device[:port]",                    \
	  "RDMA device that verbs uses (mlx5_0, mlx5_0:2); without it the one that has the "       \
	  "address of the network interface, else the first there is.")                            \
	X(PTL_VERBS_GID, ptl_verbs_gid, INT, -1, -1, 255, "index",                                 \
	  "Which of the port's GIDs verbs connections come from; -1 takes that of the address.")   \
	X(PTL_VERBS_MTU, ptl_verbs_mtu, INT, 0, 0, 4096, "bytes",                                  \
	  "Longest packet of verbs connections, 256 to 4096; 0 takes what the path can carry; "    \
	  "must be the same on all processes.")                                                    \
	X(PTL_VERBS_BUFFERS, ptl_verbs_buffers, INT, 512, 32, 32768, "buffers",                    \
	  "Receive buffers of 8 KiB that all verbs connections of an interface share.")            \
	X(PTL_FAULT, ptl_fault, STR, NULL, 0, 0, "rules",                                          \
	  "For tests: faults made on the packets that network transports send. portals-fault(7) "  \
	  "describes the rules.")                                                                  \
	X(PTL_SIM, ptl_sim, STR, NULL, 0, 0, "word=value,...",                                     \
	  "What the simulated network is like that the transport sim carries packets over; "       \
	  "portals-sim(7) describes it.")                                                          \
	X(PTL_PROGRESS, ptl_progress, ENUM, BASE_PROGRESS_AUTO, 0, 2, "auto|poll|thread",          \
	  "Who moves data of transports that cannot do it alone: only library calls (poll), a "    \
	  "thread of the library (thread), or whichever suits the machine (auto).")                \
	X(PTL_SPIN_US, ptl_spin_us, INT, -1, -1, 1000000, "microseconds",                          \
	  "How long a wait spins before it sleeps; -1 decides from the number of usable cores, "   \
	  "0 sleeps at once.")                                                                     \
	X(PTL_CRAY, ptl_cray, BOOL, 0, 0, 1, "",                                                   \
	  "Behave as the Cray XT did: a get logs SEND events and uses threshold for the "          \
	  "request, and event.md.threshold shows the value before the operation.")                 \
	X(PTL_DUMP_SHARED, ptl_dump_shared, BOOL, 0, 0, 1, "",                                     \
	  "Core files contain the library's shared memory and the parts of MPI windows that "      \
	  "belong to other ranks, too; without it they have the program's own memory alone.")      \
	X(PTL_REPORT, ptl_report, BOOL, 0, 0, 1, "",                                               \
	  "Print a summary of counters to stderr when an interface is shut down.")                 \
	X(PTL_DEBUG, ptl_debug, INT, 0, 0, 0xffffffff, "mask",                                     \
	  "Debug mask new interfaces start with; the PTL_DBG_ bits of PtlNIDebug(3).")             \
	X(PTL_QUIET, ptl_quiet, BOOL, 0, 0, 1, "", "Print no warnings.")                           \
	X(PTL_SHM_CMA, ptl_shm_cma, ENUM, BASE_CMA_AUTO, 0, 2, "auto|on|off",                      \
	  "Cross-memory attach between processes of one node: tried and used if it works "         \
	  "(auto), insisted on (on), or never (off).")                                             \
	X(PTL_SHM_LONG, ptl_shm_long, ENUM, BASE_LONG_AUTO, 0, 3, "auto|pipe|claim|cma",           \
	  "How long messages move in shared memory: through a small ring by both sides (pipe), "   \
	  "in chunks either side claims (claim), by one side alone (cma), or by pipe or claim, "   \
	  "whichever moved them faster lately (auto).")                                            \
	X(PTL_SHM_BIAS, ptl_shm_bias, ENUM, BASE_BIAS_AUTO, 0, 1, "auto|off",                      \
	  "Whether the thread that uses an interface enters the library without atomic "           \
	  "instructions where the kernel has membarrier(2) (auto), or never (off).")               \
	X(PTL_SHM_EAGER, ptl_shm_eager, INT, 32768, 0, 32768, "bytes",                             \
	  "Longest message that travels inside the shared-memory ring; one byte always does.")     \
	X(PTL_SHM_RING_KIB, ptl_shm_ring_kib, INT, 128, 4, 16384, "KiB",                           \
	  "Size of the ring each peer writes its messages to; at least 32 KiB, and four times "    \
	  "PTL_SHM_EAGER.")                                                                        \
	X(PTL_SHM_PIPE_KIB, ptl_shm_pipe_kib, INT, 256, 16, 65536, "KiB",                          \
	  "Size of the ring a pipelined long message is copied through.")                          \
	X(PTL_MPI_COLL, ptl_mpi_coll, STR, "auto", 0, 0,                                           \
	  "auto|messages|rounds,collective=algorithm,...",                                         \
	  "MPI: prefer collective algorithms with few messages or with few rounds (auto: few "     \
	  "messages when there are fewer processors than processes), and which algorithm a "       \
	  "collective uses wherever that can do it; portals(7) lists them; must be the same on "   \
	  "all ranks.")                                                                            \
	X(PTL_MPI_SHMCOLL, ptl_mpi_shmcoll, BOOL, 1, 0, 1, "",                                     \
	  "MPI: barriers, and reductions and broadcasts of a few bytes, by flags in memory that "  \
	  "the ranks of a node share and by puts between nodes, instead of messages; on one node " \
	  "post and complete of windows, too; must be the same on all ranks.")                     \
	X(PTL_MPI_NODE, ptl_mpi_node, INT, 0, 0, 65536, "ranks",                                   \
	  "MPI: take so many consecutive ranks for a node, to try what is done between nodes; 0 "  \
	  "takes the nodes as they are; must be the same on all ranks.")                           \
	X(PTL_IFACE, ptl_iface, STR, NULL, 0, 0, "",                                               \
	  "Network interface whose address becomes the node id and carries what goes over the "    \
	  "network: a name (eth0), an address, or a network (10.1.0.0/16).")                       \
	X(PTL_IFACE0, ptl_iface0, STR, NULL, 0, 0, "", "The same for Portals interface 0.")        \
	X(PTL_IFACE1, ptl_iface1, STR, NULL, 0, 0, "", "The same for Portals interface 1.")        \
	X(PTL_IFACE2, ptl_iface2, STR, NULL, 0, 0, "", "The same for Portals interface 2.")        \
	X(PTL_IFACE3, ptl_iface3, STR, NULL, 0, 0, "", "The same for Portals interface 3.")        \
	X(PTL_MY_RID, ptl_my_rid, INT, -1, -1, 0x7fffffff, "rank",                                 \
	  "Rank of this process in a job described by PTL_NIDMAP and PTL_PIDMAP.")                 \
	X(PTL_NIDMAP, ptl_nidmap, STR, NULL, 0, 0, "nid:nid:...",                                  \
	  "Node ids of all ranks, in rank order.")                                                 \
	X(PTL_PIDMAP, ptl_pidmap, STR, NULL, 0, 0, "pid:pid:...",                                  \
	  "Process ids of all ranks, in rank order.")                                              \
	X(PTL_MY_JID, ptl_my_jid, INT, -1, -1, 0xfffffffd, "job id",                               \
	  "Job id of this process; -1 takes the launcher's, else the process id.")                 \
	X(PTL_PID2PORT_FILE, ptl_pid2port_file, STR, "./map_pid2port", 0, 0, "file",               \
	  "File of \"pid port\" lines: network ports of well-known process ids.")                  \
	X(PTL_DEF_PORTLIST, ptl_def_portlist, STR, NULL, 0, 0, "port:port:...",                    \
	  "Network ports to choose from when the process id names none.")                          \
	X(PTL_MPI_SHORT, ptl_mpi_short, INT, 32768, 0, 65536, "bytes",                             \
	  "MPI: longest message that is sent whether its receive is posted or not, and kept in "   \
	  "the pool if it is not.")                                                                \
	X(PTL_MPI_LOCAL, ptl_mpi_local, INT, 16384, 0, 65536, "bytes",                             \
	  "MPI: longest receive that waits in the library for its message, instead of in Portals " \
	  "for it to be put in place.")                                                            \
	X(PTL_MPI_POOL_KIB, ptl_mpi_pool_kib, INT, 6144, 512, 1048576, "KiB",                      \
	  "MPI: memory for short messages that come before their receive, in three blocks; the "   \
	  "senders share it.")                                                                     \
	X(PTL_MPI_KEEP_KIB, ptl_mpi_keep_kib, INT, 32768, 0, 67108864, "KiB",                      \
	  "MPI: memory for short messages that wait for their receive beyond which senders have "  \
	  "no more than their shares of the pool in use, and then send the long way.")             \
	X(PTL_MPI_SLOTS, ptl_mpi_slots, INT, 4096, 64, 1048576, "messages",                        \
	  "MPI: messages that may come before the receiver looks at them; the senders share "      \
	  "them.")                                                                                 \
	X(PTL_MPI_RMA, ptl_mpi_rma, ENUM, BASE_RMA_AUTO, 0, 2, "auto|portals|cma",                 \
	  "MPI: reach the memory of windows allocated on this node directly where it can be "      \
	  "shared, and other memory there by the kernel or through Portals, by what was faster "   \
	  "lately (auto); always through Portals (portals); or by the kernel wherever it does so " \
	  "(cma); must be the same on all ranks.")                                                 \
	X(PTL_LAUNCHER, ptl_launcher, ENUM, BASE_LAUNCHER_AUTO, 0, 4, "auto|pmix|pmi2|pmi1|none",  \
	  "Whose job this process joins: that of the launcher that can be seen, by PMIx, else by " \
	  "PMI-2, else by PMI-1, or that of PTL_MY_RID and its maps (auto); that of a PMIx, "      \
	  "PMI-2 or PMI-1 launcher or no other (pmix, pmi2, pmi1); or none: the process is "       \
	  "alone, whatever started it (none).")                                                    \
	X(PTL_MX_BOARDS, ptl_mx_boards, INT, 1, 1, 4, "boards",                                    \
	  "MX: Portals interfaces that are shown as boards; must be the same on all processes.")   \
	X(PTL_MX_PID, ptl_mx_pid, INT, 27000, 1024, 65400, "process id",                           \
	  "MX: first of the 64 process ids that endpoints of a host have outside a job, which "    \
	  "over UDP are ports; must be the same on all processes that connect.")                   \
	X(OMX_IGNORE_MX_ENV, omx_ignore_mx_env, STR, NULL, 0, 0, "0|1",                            \
	  "MX: names that begin with MX_ are ignored.")                                            \
	X(OMX_FATAL_ERRORS, omx_fatal_errors, STR, NULL, 0, 0, "0|1",                              \
	  "MX: the default error handler ends the process (1, the default) or returns the "        \
	  "code (0).")                                                                             \
	X(MX_ERRORS_ARE_FATAL, mx_errors_are_fatal, STR, NULL, 0, 0, "0|1",                        \
	  "The same by its older name.")                                                           \
	X(OMX_ABORT_SLEEPS, omx_abort_sleeps, STR, NULL, 0, 0, "seconds",                          \
	  "MX: how long a process waits for a debugger before an error ends it.")                  \
	X(OMX_RNDV_THRESHOLD, omx_rndv_threshold, STR, NULL, 0, 0, "bytes",                        \
	  "MX: longest message that is buffered, 128 to 32768.")                                   \
	X(OMX_CTXIDS, omx_ctxids, STR, NULL, 0, 0, "bits,shift",                                   \
	  "MX: context ids of endpoints that ask for none.")                                       \
	X(OMX_ANY_ENDPOINT, omx_any_endpoint, STR, NULL, 0, 0, "id",                               \
	  "MX: the id that MX_ANY_ENDPOINT stands for.")                                           \
	X(PTL_DP_NODES, ptl_dp_nodes, STR, NULL, 0, 0, "file",                                     \
	  "DP: file of lines \"nid address\" that numbers the nodes; without it the hosts of a "   \
	  "job are numbered in the order of their lowest ranks, and outside a job there is node "  \
	  "0 alone.")                                                                              \
	X(PTL_DP_PID, ptl_dp_pid, INT, 5400, 1, 65000, "process id",                               \
	  "DP: the first of the process ids that processes outside a job have, which are UDP "     \
	  "ports between machines; the same on all nodes.")                                        \
	X(PTL_DP_PROCESSES, ptl_dp_processes, INT, 16, 1, 512, "processes",                        \
	  "DP: how many process ids there are for processes outside a job on each node; the same " \
	  "on all nodes.")                                                                         \
	X(PTL_PMI_DEBUG, ptl_pmi_debug, BOOL, 0, 0, 1, "",                                         \
	  "Print the lines exchanged with the launcher.")                                          \
	X(MPIEXEC_TIMEOUT, mpiexec_timeout, STR, NULL, 0, 0, "seconds",                            \
	  "mpiexec: end a job after that time, unless --timeout says another.")                    \
	X(SLURM_JOB_ID, slurm_job_id, STR, NULL, 0, 0, "",                                         \
	  "Set by Slurm: mpiexec starts what is allocated.")                                       \
	X(SLURM_JOB_NUM_NODES, slurm_job_num_nodes, STR, NULL, 0, 0, "nodes", "Set by Slurm.")     \
	X(SLURM_NNODES, slurm_nnodes, STR, NULL, 0, 0, "nodes", "The same by its older name.")     \
	X(SLURM_NPROCS, slurm_nprocs, STR, NULL, 0, 0, "processes",                                \
	  "SLURM_NTASKS by its older name.")                                                       \
	X(SLURM_TASKS_PER_NODE, slurm_tasks_per_node, STR, NULL, 0, 0, "processes",                \
	  "Set by Slurm.")                                                                         \
	X(TMPDIR, tmpdir, STR, NULL, 0, 0, "directory",                                            \
	  "Where shared memory is made if the system refuses memfd_create(2); unset, or without "  \
	  "room there, /dev/shm, then /tmp.")                                                      \
	X(PMI_FD, pmi_fd, INT, -1, -1, 0x7fffffff, "file descriptor",                              \
	  "Set by PMI launchers: the connection to the launcher.")                                 \
	X(PMI_RANK, pmi_rank, INT, -1, -1, 0x7fffffff, "rank",                                     \
	  "Set by launchers of PMI-1 and PMI-2.")                                                  \
	X(PMI_SIZE, pmi_size, INT, -1, -1, 0x7fffffff, "processes",                                \
	  "Set by launchers of PMI-1 and PMI-2.")                                                  \
	X(PMI_JOBID, pmi_jobid, STR, NULL, 0, 0, "", "Set by PMI launchers: the job's name.")      \
	X(PMI_SPAWNED, pmi_spawned, INT, 0, 0, 0x7fffffff, "",                                     \
	  "Set by launchers of PMI-1 and PMI-2.")                                                  \
	X(PMI_PORT, pmi_port, STR, NULL, 0, 0, "host:port",                                        \
	  "Set by PMI launchers that listen instead of passing a connection.")                     \
	X(PMIX_NAMESPACE, pmix_namespace, STR, NULL, 0, 0, "", "Set by PMIx launchers.")           \
	X(PMIX_RANK, pmix_rank, STR, NULL, 0, 0, "rank", "Set by PMIx launchers.")                 \
	X(PMIX_SERVER_URI41, pmix_server_uri41, STR, NULL, 0, 0, "address",                        \
	  "Set by PMIx launchers of version 4.1 or later.")                                        \
	X(PMIX_SERVER_URI4, pmix_server_uri4, STR, NULL, 0, 0, "address",                          \
	  "Set by PMIx launchers of version 4.")                                                   \
	X(PMIX_SERVER_URI3, pmix_server_uri3, STR, NULL, 0, 0, "address",                          \
	  "Set by PMIx launchers of version 3.")                                                   \
	X(PMIX_SERVER_URI2, pmix_server_uri2, STR, NULL, 0, 0, "address",                          \
	  "Set by PMIx launchers of version 2.")                                                   \
	X(OMPI_COMM_WORLD_SIZE, ompi_comm_world_size, STR, NULL, 0, 0, "processes",                \
	  "Set by Open MPI's launcher.")                                                           \
	X(OMPI_COMM_WORLD_RANK, ompi_comm_world_rank, STR, NULL, 0, 0, "rank",                     \
	  "Set by Open MPI's launcher.")                                                           \
	X(OMPI_COMM_WORLD_LOCAL_RANK, ompi_comm_world_local_rank, STR, NULL, 0, 0, "rank",         \
	  "Set by Open MPI's launcher.")                                                           \
	X(MPI_LOCALRANKID, mpi_localrankid, STR, NULL, 0, 0, "rank", "Set by Hydra.")              \
	X(SLURM_LOCALID, slurm_localid, STR, NULL, 0, 0, "rank", "Set by Slurm.")                  \
	X(PALS_LOCAL_RANKID, pals_local_rankid, STR, NULL, 0, 0, "rank", "Set by PALS.")           \
	X(SLURM_STEP_NUM_TASKS, slurm_step_num_tasks, STR, NULL, 0, 0, "processes",                \
	  "Set by Slurm's srun.")                                                                  \
	X(SLURM_NTASKS, slurm_ntasks, STR, NULL, 0, 0, "processes", "Set by Slurm.")               \
	X(SLURM_STEP_ID, slurm_step_id, STR, NULL, 0, 0, "", "Set by Slurm's srun.")               \
	X(SLURM_PROCID, slurm_procid, STR, NULL, 0, 0, "rank", "Set by Slurm.")                    \
	X(PALS_SIZE, pals_size, STR, NULL, 0, 0, "processes", "Set by PALS.")                      \
	X(PALS_RANKID, pals_rankid, STR, NULL, 0, 0, "rank", "Set by PALS.")

/* The choices of the ENUM rows, in the order of their text. */
enum {
	BASE_LAUNCHER_AUTO,
	BASE_LAUNCHER_PMIX,
	BASE_LAUNCHER_PMI2,
	BASE_LAUNCHER_PMI1,
	BASE_LAUNCHER_NONE
};
enum { BASE_PROGRESS_AUTO, BASE_PROGRESS_POLL, BASE_PROGRESS_THREAD };
enum { BASE_AUTH_HEADER, BASE_AUTH_FULL };
enum { BASE_READ_AUTO, BASE_READ_ON, BASE_READ_OFF };
enum { BASE_CMA_AUTO, BASE_CMA_ON, BASE_CMA_OFF };
enum { BASE_BIAS_AUTO, BASE_BIAS_OFF };
enum { BASE_LONG_AUTO, BASE_LONG_PIPE, BASE_LONG_CLAIM, BASE_LONG_CMA };
enum { BASE_RMA_AUTO, BASE_RMA_PORTALS, BASE_RMA_CMA };

#define BASE_CONFIG_FIELD_STR(field)  const char *field;
#define BASE_CONFIG_FIELD_INT(field)  long field;
#define BASE_CONFIG_FIELD_BOOL(field) bool field;
#define BASE_CONFIG_FIELD_ENUM(field) int field;
#define BASE_CONFIG_FIELD(name, field, type, def, min, max, choices, help)                         \
	BASE_CONFIG_FIELD_##type(field)

struct base_config {
	BASE_CONFIG_TABLE(BASE_CONFIG_FIELD)
};

/* The values in force, read from the environment once, at the first call. Any thread may call. */
const struct base_config *base_config(void);

/* Suppress the warnings of this reader: another copy of it, in another library of the process,
 * has printed them. No effect after the first call of base_config(). */
void base_config_hush(void);

/* For tools and generated documents: the table and the values as text. */
enum base_config_type { BASE_CONFIG_STR, BASE_CONFIG_INT, BASE_CONFIG_BOOL, BASE_CONFIG_ENUM };

struct base_config_var {
	const char *name;
	enum base_config_type type;
	size_t offset;       /* of the field in struct base_config */
	const char *def_str; /* STR: the default, or NULL */
	long def_num;        /* the others */
	long min, max;
	const char *choices; /* ENUM: the choices; else the unit, "" if none */
	const char *help;
};

/* Row i of the table, NULL after the last. */
const struct base_config_var *base_config_var(size_t i);

/* The name of today of a setting that the last release called `name`; else `name`. */
const char *base_config_name_now(const char *name);
/* Did a valid value of this variable come from the environment? False for unknown names. */
bool base_config_is_set(const char *name);

/*
 * The present value of a variable in the environment, NULL if it is unset or empty. It is for
 * variables specified to be read at the time of a call: clients set PTL_MY_RID and the maps
 * themselves.
 */
const char *base_config_env(const char *name);

/* The value in force and the default as text, "" for an unset string. Returns as snprintf. */
int base_config_value_text(const struct base_config_var *var, char *buf, size_t len);
int base_config_default_text(const struct base_config_var *var, char *buf, size_t len);

#endif
