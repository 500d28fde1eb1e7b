/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A server and its clients, each a job. They know of each other the file that the port's name is
 * in.
 *
 *   meet serve FILE CLIENTS     accepts so many jobs, one after the other, and uses all of them
 *   meet call FILE              connects, is used
 *   meet again FILE ROUNDS      serves a client that connects and disconnects so many times
 *   meet calls FILE ROUNDS      is that client
 *   meet merge FILE 1|0         meets another, and both become one communicator; 1: accepts
 *   meet wrong                  calls ports that are none
 *   meet end FILE 1|0           meets another, and ends without a word: MPI_Finalize has to do
 *   meet lose FILE 1|0          one rank of the side with 0 is killed; the other side notices
 *   meet hold FILE              opens a port, and accepts nobody
 *   meet dead FILE              calls a port whose owner is killed meanwhile
 *   meet stranger FILE          calls a port without its secret
 *   meet join                   starts itself once more, and joins it
 */
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char port[MPI_MAX_PORT_NAME];

static void open_port(const char *file)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank)
		return;
	MPI_Open_port(MPI_INFO_NULL, port);
	put_text(file, port);
}

static void close_port(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!rank)
		MPI_Close_port(port);
}

static void read_port(const char *file)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!rank)
		get_text(file, port, sizeof(port));
}

static void serve(const char *file, int clients)
{
	MPI_Comm *client = malloc((size_t)clients * sizeof(MPI_Comm));

	open_port(file);
	for (int i = 0; i < clients; i++)
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client[i]);
	close_port();
	for (int i = 0; i < clients; i++)
		use_inter(client[i]);
	for (int i = 0; i < clients; i++) {
		MPI_Comm_disconnect(&client[i]);
		REQUIRE(client[i] == MPI_COMM_NULL);
	}
	free(client);
}

static void call_server(const char *file)
{
	MPI_Comm server;

	read_port(file);
	MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
	use_inter(server);
	MPI_Comm_disconnect(&server);
}

/* Resources of the process: descriptors, and mapped regions. */
static int descriptors(void)
{
	return count_entries("/proc/self/fd");
}

static int mappings(void)
{
	return count_lines("/proc/self/maps");
}

static void meet_once(int accepts)
{
	MPI_Comm other;

	if (accepts)
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
	else
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
	MPI_Barrier(other);
	MPI_Comm_disconnect(&other);
}

static void meet_often(const char *file, int rounds, int accepts)
{
	int fds, maps;

	if (accepts)
		open_port(file);
	else
		read_port(file);
	/* what is made at the first use stays */
	for (int i = 0; i < 3; i++)
		meet_once(accepts);
	fds = descriptors();
	maps = mappings();
	for (int i = 0; i < rounds; i++)
		meet_once(accepts);
	if (descriptors() > fds)
		fprintf(stderr, "descriptors: %d, then %d\n", fds, descriptors());
	REQUIRE(descriptors() <= fds);
	REQUIRE(mappings() <= maps + 4);
	if (accepts)
		close_port();
}

static void merge(const char *file, int accepts)
{
	MPI_Comm inter, copy, all, part;
	MPI_Group group;
	int size, theirs, n, rank, first = -1, mine, *memory, *word;
	MPI_Win win;

	if (accepts)
		open_port(file);
	else
		read_port(file);
	if (accepts)
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	else
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	MPI_Comm_size(inter, &size);
	MPI_Comm_remote_size(inter, &theirs);
	MPI_Comm_dup(inter, &copy);
	use_inter(copy);
	MPI_Intercomm_merge(copy, accepts, &all);
	MPI_Comm_size(all, &n);
	MPI_Comm_rank(all, &rank);
	REQUIRE(n == size + theirs);
	use_intra(all);
	MPI_Comm_rank(MPI_COMM_WORLD, &mine);
	REQUIRE(rank == (accepts ? theirs : 0) + mine);
	/* the groups know the processes again */
	MPI_Comm_remote_group(copy, &group);
	MPI_Comm_create(all, group, &part);
	REQUIRE(part == MPI_COMM_NULL); /* this one is not in the other side's group */
	MPI_Group_free(&group);
	MPI_Comm_group(all, &group);
	MPI_Comm_create(all, group, &part);
	use_intra(part);
	MPI_Group_free(&group);
	MPI_Comm_disconnect(&part);
	/* memory of all */
	MPI_Win_allocate(2 * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, all, &memory, &win);
	memory[0] = memory[1] = 0;
	MPI_Win_fence(0, win);
	MPI_Put(&rank, 1, MPI_INT, (rank + 1) % n, 0, 1, MPI_INT, win);
	mine = 1;
	for (int i = 0; i < n; i++)
		MPI_Accumulate(&mine, 1, MPI_INT, i, 1, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	REQUIRE(memory[0] == (rank + n - 1) % n && memory[1] == n);
	word = &first;
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, n - 1 - rank, 0, win);
	MPI_Get(word, 1, MPI_INT, n - 1 - rank, 1, 1, MPI_INT, win);
	MPI_Win_unlock(n - 1 - rank, win);
	REQUIRE(first == n);
	MPI_Win_free(&win);
	MPI_Comm_disconnect(&all);
	MPI_Comm_disconnect(&copy);
	MPI_Comm_disconnect(&inter);
	if (accepts)
		close_port();
}

static void wrong(void)
{
	MPI_Comm other;
	char name[MPI_MAX_PORT_NAME];

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	REQUIRE(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &other)) ==
		MPI_ERR_PORT);
	REQUIRE(class_of(MPI_Comm_accept("nonsense", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other)) ==
		MPI_ERR_PORT);
	MPI_Open_port(MPI_INFO_NULL, name);
	MPI_Close_port(name);
	REQUIRE(class_of(MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other)) ==
		MPI_ERR_PORT);
	REQUIRE(class_of(MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other)) ==
		MPI_ERR_PORT);
	REQUIRE(class_of(MPI_Close_port(name)) == MPI_ERR_PORT);
	REQUIRE(class_of(MPI_Comm_connect(name, MPI_INFO_NULL, 5, MPI_COMM_WORLD, &other)) ==
		MPI_ERR_ROOT);
}

/* Both sides end with the connection in use: freed on one, left as it is on the other. */
static void end_connected(const char *file, int accepts)
{
	MPI_Comm inter;
	int rank;

	if (accepts)
		open_port(file);
	else
		read_port(file);
	if (accepts)
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	else
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!accepts)
		MPI_Send(&rank, 1, MPI_INT, 0, 0, inter);
	if (accepts && !rank)
		for (int i = 0; i < 2; i++)
			MPI_Recv(&rank, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE);
	if (accepts)
		MPI_Comm_free(&inter);
}

/* A process of the other side is killed in the middle of traffic. Every operation ends. */
static void lose(const char *file, int accepts)
{
	MPI_Comm inter;
	int rank, word = 0, err = MPI_SUCCESS, size;

	if (accepts)
		open_port(file);
	else
		read_port(file);
	if (accepts)
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	else
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_remote_size(inter, &size);
	use_inter(inter);
	if (!accepts && rank == 1)
		kill(getpid(), SIGKILL);
	if (accepts)
		err = MPI_Recv(&word, 1, MPI_INT, 1, 99, inter, MPI_STATUS_IGNORE);
	else
		err = MPI_Recv(&word, 1, MPI_INT, 0, 99, inter, MPI_STATUS_IGNORE);
	REQUIRE(class_of(err) == MPI_ERR_PROC_ABORTED);
	REQUIRE(class_of(MPI_Barrier(inter)) == MPI_ERR_PROC_ABORTED);
	MPI_Comm_disconnect(&inter);
}

static void hold(const char *file)
{
	open_port(file);
	for (;;)
		pause();
}

static void call_dead(const char *file)
{
	MPI_Comm other;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	read_port(file);
	REQUIRE(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other)) ==
		MPI_ERR_PORT);
}

/* Connects to the port's socket, says something else than its secret, and hangs up. */
static void say_nonsense(size_t bytes, int hears)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char junk[256] = "GET / HTTP/1.1";
	const char *name = strrchr(port, ':');
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), n;

	REQUIRE(name);
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "postern-port-%s", name + 1);
	REQUIRE(connect(fd, (struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0);
	REQUIRE(write(fd, junk, bytes) == (ssize_t)bytes);
	if (hears)
		REQUIRE(read(fd, junk, sizeof(junk)) > 0);
	close(fd);
}

static void call_as_stranger(const char *file)
{
	char wrong_secret[MPI_MAX_PORT_NAME];
	MPI_Comm other;

	read_port(file);
	say_nonsense(3, 0);
	say_nonsense(32, 0);
	say_nonsense(200, 1);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	strcpy(wrong_secret, port);
	wrong_secret[16] = wrong_secret[16] == '0' ? '1' : '0';
	REQUIRE(class_of(MPI_Comm_connect(wrong_secret, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
					  &other)) == MPI_ERR_PORT);
}

/* The program once more, at the other end of a socket. */
static pid_t start_twin(int fd)
{
	char number[16];
	pid_t pid = fork();

	snprintf(number, sizeof(number), "%d", fd);
	if (!pid)
		execl("/proc/self/exe", "meet", "joins", number, (char *)NULL);
	return pid;
}

static void join_socket(int fd)
{
	MPI_Comm inter;
	char byte = 'x';

	MPI_Comm_join(fd, &inter);
	use_inter(inter);
	MPI_Comm_disconnect(&inter);
	/* the socket is as before */
	REQUIRE(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 && byte == 'x');
}

static void join_twin(void)
{
	int fd[2], status = -1;
	pid_t twin;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	twin = start_twin(fd[1]);
	close(fd[1]);
	join_socket(fd[0]);
	REQUIRE(waitpid(twin, &status, 0) == twin && status == 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *file = argc > 2 ? argv[2] : "";
	int number = argc > 3 ? atoi(argv[3]) : 0;

	MPI_Init(&argc, &argv);
	if (!strcmp(what, "serve"))
		serve(file, number);
	else if (!strcmp(what, "call"))
		call_server(file);
	else if (!strcmp(what, "again") || !strcmp(what, "calls"))
		meet_often(file, number, !strcmp(what, "again"));
	else if (!strcmp(what, "merge"))
		merge(file, number);
	else if (!strcmp(what, "wrong"))
		wrong();
	else if (!strcmp(what, "hold"))
		hold(file);
	else if (!strcmp(what, "dead"))
		call_dead(file);
	else if (!strcmp(what, "stranger"))
		call_as_stranger(file);
	else if (!strcmp(what, "lose"))
		lose(file, number);
	else if (!strcmp(what, "join"))
		join_twin();
	else if (!strcmp(what, "joins"))
		join_socket(atoi(file));
	else if (!strcmp(what, "end"))
		end_connected(file, number);
	else
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Finalize();
	return 0;
}
