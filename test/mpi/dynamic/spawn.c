/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * A job that starts others, all of this program.
 *
 *   spawn N               starts N children, uses them, and merges with them
 *   spawn args            passes arguments with blanks, and a directory to work in
 *   spawn multiple        starts two programs at once
 *   spawn missing         starts what is not there
 *   spawn trouble         starts two of which one cannot be started, then a good one
 *   spawn grand           starts a child that starts one
 *   spawn silent          starts a program that does not know of MPI
 *   spawn names           publishes a port, which a child looks up
 *   spawn universe        MPI_UNIVERSE_SIZE
 * The children are called with the word "child" and what they are to do.
 */
#include <limits.h>
#include <unistd.h>

#include "check.h"

static const char *self;

static void start(const char *word, const char *more, int n, MPI_Info info, MPI_Comm *children)
{
	char *argv[] = { "child", (char *)(size_t)word, (char *)(size_t)more, NULL };
	int code[64];

	for (int i = 0; i < n; i++)
		code[i] = -1;
	MPI_Comm_spawn(self, argv, n, info, 0, MPI_COMM_WORLD, children, code);
	for (int i = 0; i < n; i++)
		REQUIRE(code[i] == MPI_SUCCESS);
}

static void spawn_some(int n)
{
	MPI_Comm children, all, parent;
	int size;

	MPI_Comm_get_parent(&parent);
	REQUIRE(parent == MPI_COMM_NULL);
	start("used", "", n, MPI_INFO_NULL, &children);
	MPI_Comm_remote_size(children, &size);
	REQUIRE(size == n);
	use_inter(children);
	MPI_Intercomm_merge(children, 0, &all);
	use_intra(all);
	MPI_Comm_disconnect(&all);
	MPI_Comm_disconnect(&children);
}

static void spawn_args(void)
{
	char dir[PATH_MAX] = "/tmp/spawn-XXXXXX", got[PATH_MAX] = "";
	MPI_Comm children;
	MPI_Info info;
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!rank)
		REQUIRE(mkdtemp(dir));
	MPI_Bcast(dir, sizeof(dir), MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Info_create(&info);
	MPI_Info_set(info, "wdir", dir);
	start("says", "three blank words = one", 2, info, &children);
	MPI_Info_free(&info);
	if (!rank) {
		MPI_Recv(got, sizeof(got), MPI_CHAR, 1, 1, children, MPI_STATUS_IGNORE);
		REQUIRE(!strcmp(got, dir));
		MPI_Recv(got, sizeof(got), MPI_CHAR, 1, 2, children, MPI_STATUS_IGNORE);
		REQUIRE(!strcmp(got, "three blank words = one"));
		rmdir(dir);
	}
	MPI_Comm_disconnect(&children);
}

static void spawn_multiple(void)
{
	char *one[] = { "child", "numbered", "0", NULL },
	     *two[] = { "child", "numbered", "1", NULL };
	char *command[] = { (char *)(size_t)self, (char *)(size_t)self };
	char **argv[] = { one, two };
	const MPI_Info info[] = { MPI_INFO_NULL, MPI_INFO_NULL };
	const int n[] = { 1, 2 };
	MPI_Comm children;
	int code[3] = { -1, -1, -1 }, size;

	MPI_Comm_spawn_multiple(2, command, argv, n, info, 0, MPI_COMM_WORLD, &children, code);
	for (int i = 0; i < 3; i++)
		REQUIRE(code[i] == MPI_SUCCESS);
	MPI_Comm_remote_size(children, &size);
	REQUIRE(size == 3);
	use_inter(children);
	MPI_Comm_disconnect(&children);
}

static void spawn_missing(void)
{
	MPI_Comm children = MPI_COMM_NULL;
	int code[2] = { 0, 0 };

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	REQUIRE(class_of(MPI_Comm_spawn("/not/there", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0,
					MPI_COMM_WORLD, &children, code)) == MPI_ERR_SPAWN);
	REQUIRE(class_of(code[0]) == MPI_ERR_SPAWN && class_of(code[1]) == MPI_ERR_SPAWN);
	REQUIRE(class_of(MPI_Comm_spawn("", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
					&children, MPI_ERRCODES_IGNORE)) == MPI_ERR_ARG);
	REQUIRE(class_of(MPI_Comm_spawn(self, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
					&children, MPI_ERRCODES_IGNORE)) == MPI_ERR_ARG);
}

/* The first of two commands cannot be carried out. Nothing of either is left for the next call. */
static void spawn_after_trouble(void)
{
	char *argv[] = { "child", "used", "", NULL }, **both[] = { argv, argv };
	char *command[] = { (char *)(size_t)self, (char *)(size_t)self };
	const int n[] = { 1, 1 };
	MPI_Comm children;
	MPI_Info info[2] = { MPI_INFO_NULL, MPI_INFO_NULL };
	int code[2] = { 0, 0 };

	MPI_Info_create(&info[0]);
	MPI_Info_set(info[0], "host", "host.that.is.not.there.invalid");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	REQUIRE(class_of(MPI_Comm_spawn_multiple(2, command, both, n, info, 0, MPI_COMM_WORLD,
						 &children, code)) == MPI_ERR_SPAWN);
	MPI_Info_free(&info[0]);
	spawn_some(1);
}

static void spawn_grand(const char *word)
{
	MPI_Comm children;

	start(word, "", 1, MPI_INFO_NULL, &children);
	use_inter(children);
	MPI_Comm_disconnect(&children);
}

static void spawn_silent(void)
{
	MPI_Comm children;

	MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
		       MPI_ERRCODES_IGNORE);
}

static void spawn_names(void)
{
	char name[64], port[MPI_MAX_PORT_NAME], again[MPI_MAX_PORT_NAME];
	MPI_Comm children, client;

	snprintf(name, sizeof(name), "a service of %d", (int)getpid());
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	REQUIRE(class_of(MPI_Lookup_name(name, MPI_INFO_NULL, again)) == MPI_ERR_NAME);
	REQUIRE(class_of(MPI_Unpublish_name(name, MPI_INFO_NULL, "")) == MPI_ERR_SERVICE);
	MPI_Open_port(MPI_INFO_NULL, port);
	REQUIRE(MPI_Publish_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS);
	REQUIRE(class_of(MPI_Publish_name(name, MPI_INFO_NULL, port)) == MPI_ERR_SERVICE);
	REQUIRE(MPI_Lookup_name(name, MPI_INFO_NULL, again) == MPI_SUCCESS);
	REQUIRE(!strcmp(port, again));
	start("calls", name, 1, MPI_INFO_NULL, &children);
	MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client);
	use_inter(client);
	MPI_Comm_disconnect(&client);
	MPI_Comm_disconnect(&children);
	REQUIRE(MPI_Unpublish_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS);
	REQUIRE(class_of(MPI_Lookup_name(name, MPI_INFO_NULL, again)) == MPI_ERR_NAME);
	MPI_Close_port(port);
}

static void check_universe(void)
{
	int *universe, found, size;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &found);
	REQUIRE(found && *universe >= size);
}

/* ---- children -------------------------------------------------------------------------------- */

static void say_back(MPI_Comm parent, const char *text)
{
	char dir[PATH_MAX];
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank != 1)
		return;
	REQUIRE(getcwd(dir, sizeof(dir)));
	MPI_Send(dir, (int)strlen(dir) + 1, MPI_CHAR, 0, 1, parent);
	MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, 2, parent);
}

static void check_number(const char *text)
{
	int *number, found;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
	REQUIRE(found && *number == atoi(text));
}

static void call_by_name(const char *name)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Comm server;

	MPI_Lookup_name(name, MPI_INFO_NULL, port);
	MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
	use_inter(server);
	MPI_Comm_disconnect(&server);
}

static int be_child(const char *word, const char *more)
{
	MPI_Comm parent, all;

	MPI_Comm_get_parent(&parent);
	REQUIRE(parent != MPI_COMM_NULL);
	if (!strcmp(word, "says"))
		say_back(parent, more);
	if (!strcmp(word, "calls"))
		call_by_name(more);
	if (!strcmp(word, "numbered"))
		check_number(more);
	if (!strcmp(word, "used") || !strcmp(word, "numbered") || !strcmp(word, "grand"))
		use_inter(parent);
	if (!strcmp(word, "grand"))
		spawn_grand("numbered");
	if (!strcmp(word, "used")) {
		MPI_Intercomm_merge(parent, 1, &all);
		use_intra(all);
		MPI_Comm_disconnect(&all);
	}
	if (!strcmp(word, "fails"))
		exit(3);
	MPI_Comm_disconnect(&parent);
	MPI_Comm_get_parent(&parent);
	REQUIRE(parent == MPI_COMM_NULL);
	MPI_Finalize();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	MPI_Comm children;
	static char path[PATH_MAX];

	REQUIRE(realpath("/proc/self/exe", path));
	self = path;
	MPI_Init(&argc, &argv);
	if (!strcmp(what, "child") && argc > 3)
		return be_child(argv[2], argv[3]);
	if (atoi(what))
		spawn_some(atoi(what));
	else if (!strcmp(what, "args"))
		spawn_args();
	else if (!strcmp(what, "multiple"))
		spawn_multiple();
	else if (!strcmp(what, "trouble"))
		spawn_after_trouble();
	else if (!strcmp(what, "missing"))
		spawn_missing();
	else if (!strcmp(what, "grand"))
		spawn_grand("grand");
	else if (!strcmp(what, "silent"))
		spawn_silent();
	else if (!strcmp(what, "names"))
		spawn_names();
	else if (!strcmp(what, "universe"))
		check_universe();
	else if (!strcmp(what, "fails")) {
		start("fails", "", 2, MPI_INFO_NULL, &children);
		MPI_Barrier(children); /* until the launcher ends this job */
	} else
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Finalize();
	return 0;
}
