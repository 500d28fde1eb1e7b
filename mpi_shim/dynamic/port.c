/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Ports: see port.h. A name is
 *
 *   postern-port:1:SECRET:SOCKET[:ADDRESS:PORT]
 *
 * SECRET is 32 hexadecimal digits. SOCKET is a name in the abstract namespace of the host's
 * sockets, for processes of this host. ADDRESS and PORT are for those of other hosts; they are
 * there if the job has a network transport. Calls of strangers cost a moment each: they cannot
 * prove that they have the secret.
 */
#include "mpi_shim/dynamic/port.h"

#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/random.h"
#include "mpi_shim/core/error.h"
#include "mpi_shim/core/progress.h"

#define PREFIX "postern-port:1:"

enum {
	SECRET = BASE_SIPHASH_BYTES,
	SOCKET_BYTES = 12, /* of the random part of a socket's name */
	PROOF_MS = 5000,   /* how long a caller may take to prove that it has the secret */
	AGAIN_MS = 20,     /* between two calls of a process whose queue is full */
	QUEUE = 1024
};

struct port {
	struct port *next;
	int fd;
	unsigned char secret[SECRET];
	char name[MPI_MAX_PORT_NAME];
};

static struct port *ports;

/* ---- names ----------------------------------------------------------------------------------- */

static void write_hex(char *text, const unsigned char *bytes, int n)
{
	for (int i = 0; i < n; i++)
		snprintf(text + (size_t)2 * (size_t)i, 3, "%02x", bytes[i]);
}

static bool read_hex(const char *text, unsigned char *bytes, int n)
{
	for (int i = 0; i < n; i++) {
		int high = base_hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : base_hex_digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		bytes[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

/* A name, taken apart. */
struct place {
	unsigned char secret[SECRET];
	char socket[2 * SOCKET_BYTES + 1];
};

static int not_a_port(const char *name)
{
	return mpi_fail(MPI_ERR_PORT,
			"\"%.40s%s\" is not the name of a port that MPI_Open_port made", name,
			strlen(name) > 40 ? "..." : "");
}

static int read_name(const char *name, struct place *place)
{
	const size_t digits = (size_t)2 * SECRET, chars = (size_t)2 * SOCKET_BYTES;
	const char *at = name + sizeof(PREFIX) - 1;

	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 ||
	    strnlen(name, MPI_MAX_PORT_NAME) == MPI_MAX_PORT_NAME ||
	    strlen(at) < digits + 1 + chars || !read_hex(at, place->secret, SECRET) ||
	    at[digits] != ':')
		return not_a_port(name);
	at += digits + 1;
	if (strspn(at, "0123456789abcdef") != chars || (at[chars] && at[chars] != ':'))
		return not_a_port(name);
	memcpy(place->socket, at, chars);
	place->socket[chars] = '\0';
	return MPI_SUCCESS;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static socklen_t port_address(struct sockaddr_un *a, const char *socket)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
					    "postern-port-%s", socket));
}

static int new_socket(int *fd)
{
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *fd >= 0 ? MPI_SUCCESS
			: mpi_fail(MPI_ERR_OTHER, "no socket for a port: %s%s", strerror(errno),
				   errno == EMFILE ? "; raise `ulimit -n`" : "");
}

static int listen_at(const char *socket, int *fd)
{
	struct sockaddr_un a;
	socklen_t len = port_address(&a, socket);
	int err = new_socket(fd);

	if (err != MPI_SUCCESS)
		return err;
	if (bind(*fd, (struct sockaddr *)&a, len) == 0 && listen(*fd, QUEUE) == 0)
		return MPI_SUCCESS;
	err = mpi_fail(MPI_ERR_OTHER, "a port cannot be opened: %s", strerror(errno));
	close(*fd);
	return err;
}

/* ---- ports ----------------------------------------------------------------------------------- */

int mpi_port_open(char *name)
{
	char socket[2 * SOCKET_BYTES + 1], digits[2 * SECRET + 1];
	struct port *p = calloc(1, sizeof(*p));
	unsigned char id[SOCKET_BYTES];
	int err;

	if (!p)
		return mpi_fail_memory("a port");
	if (!base_random(id, sizeof(id)) || !base_random(p->secret, SECRET)) {
		free(p);
		return mpi_fail(MPI_ERR_OTHER, "the system gives no random numbers for a port");
	}
	write_hex(socket, id, SOCKET_BYTES);
	write_hex(digits, p->secret, SECRET);
	snprintf(p->name, sizeof(p->name), PREFIX "%s:%s", digits, socket);
	err = listen_at(socket, &p->fd);
	if (err != MPI_SUCCESS) {
		free(p);
		return err;
	}
	p->next = ports;
	ports = p;
	memcpy(name, p->name, strlen(p->name) + 1);
	return MPI_SUCCESS;
}

static struct port **find_port(const char *name)
{
	struct port **at = &ports;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static int not_ours(const char *name)
{
	struct place place;
	int err = read_name(name, &place);

	return err != MPI_SUCCESS ? err
				  : mpi_fail(MPI_ERR_PORT, "the port is not open in this process");
}

static void end_port(struct port **at)
{
	struct port *p = *at;

	*at = p->next;
	close(p->fd);
	memset(p->secret, 0, sizeof(p->secret));
	free(p);
}

int mpi_port_close(const char *name)
{
	struct port **at = find_port(name);

	if (!*at)
		return not_ours(name);
	end_port(at);
	return MPI_SUCCESS;
}

void mpi_ports_close(void)
{
	while (ports)
		end_port(&ports);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The name of the socket can be seen by all users. Another one's silence would hold up the callers
 * behind it. */
static bool is_own_user(int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

int mpi_port_accept(const char *name, int64_t ms, struct mpi_channel *c)
{
	const int64_t end = mpi_now_ms() + ms;

	for (;;) {
		const struct port *p = *find_port(name); /* other threads may close it */
		unsigned char secret[SECRET];
		int fd;

		if (!p)
			return not_ours(name);
		memcpy(secret, p->secret, SECRET);
		if (!mpi_channel_wait(p->fd, POLLIN, 100)) {
			if (ms >= 0 && mpi_now_ms() >= end)
				return MPI_ERR_PENDING;
			continue;
		}
		p = *find_port(name);
		if (!p)
			return not_ours(name);
		fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
			return mpi_fail(MPI_ERR_OTHER,
					"a caller of the port cannot be accepted: %s",
					strerror(errno));
		if (fd >= 0 && !is_own_user(fd)) {
			close(fd);
			continue;
		}
		/* a caller without the secret, or that has ended meanwhile, is none */
		if (fd >= 0 && mpi_channel_open(c, fd, false, secret, PROOF_MS) == MPI_SUCCESS)
			return MPI_SUCCESS;
	}
}

static int nobody_listens(void)
{
	return mpi_fail(MPI_ERR_PORT,
			"nobody listens at the port: it was closed, or its process has ended");
}

static int connect_to(const struct place *place, int *fd)
{
	struct sockaddr_un a;
	socklen_t len = port_address(&a, place->socket);
	int err = new_socket(fd);

	if (err != MPI_SUCCESS)
		return err;
	while (connect(*fd, (struct sockaddr *)&a, len) < 0 && errno != EISCONN) {
		if (errno == EAGAIN || errno == EINTR) { /* its queue is full */
			mpi_channel_wait(-1, 0, AGAIN_MS);
			continue;
		}
		err = errno == ECONNREFUSED
			      ? nobody_listens()
			      : mpi_fail(MPI_ERR_PORT, "the port cannot be called: %s",
					 strerror(errno));
		close(*fd);
		return err;
	}
	return MPI_SUCCESS;
}

int mpi_port_call(const char *name, struct mpi_channel *c)
{
	struct place place;
	int fd, err = read_name(name, &place);

	if (err == MPI_SUCCESS)
		err = connect_to(&place, &fd);
	if (err == MPI_SUCCESS)
		err = mpi_channel_open(c, fd, true, place.secret, -1);
	/* the port was closed before it accepted */
	return err == MPI_ERR_PROC_ABORTED ? nobody_listens() : err;
}
