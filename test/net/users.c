/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Access control between users over UDP: entries go by the user that the requester is, as it
 * says under the key. The initiator is another user of this machine, which only root's processes
 * can become.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include "test/support/ptest.h"

enum { PORTAL = 20, AC = 1, SOMEBODY = 4711, NOBODY_ELSE = 4712 };
enum { WORD_DENIED };

/* The secret in a file that is the other user's alone, as it has to be. */
static void take_secret(const char *mine, char *path, size_t len)
{
	char bytes[256];
	int from = open(mine, O_RDONLY | O_CLOEXEC), to;
	ssize_t n;

	pt_true(from >= 0);
	n = read(from, bytes, sizeof(bytes));
	close(from);
	pt_true(n > 0 && n < (ssize_t)sizeof(bytes));
	snprintf(path, len, "/tmp/postern-users-XXXXXX");
	to = mkstemp(path);
	pt_true(to >= 0);
	pt_is(write(to, bytes, (size_t)n), n);
	pt_is(fchown(to, SOMEBODY, SOMEBODY), 0);
	close(to);
}

static bool become_somebody(void)
{
	if (setgroups(0, NULL) || setresgid(SOMEBODY, SOMEBODY, SOMEBODY) ||
	    setresuid(SOMEBODY, SOMEBODY, SOMEBODY))
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* which a change of user undoes */
	return true;
}

/* Rank 0 is somebody else from now on. */
static void begin(void)
{
	char secret[64] = "";
	ptl_handle_me_t me;
	ptl_uid_t uid;

	if (pt_rank == 0) {
		*pt_word(WORD_DENIED) = geteuid() != 0;
		if (!*pt_word(WORD_DENIED)) {
			take_secret(getenv("PTL_KEY_FILE"), secret, sizeof(secret));
			setenv("PTL_KEY_FILE", secret, 1);
			*pt_word(WORD_DENIED) = !become_somebody();
		}
	}
	pt_barrier();
	if (*pt_word(WORD_DENIED)) {
		if (*secret)
			unlink(secret);
		pt_skip("only root's processes can become another user");
	}
	pt_open();
	if (*secret)
		unlink(secret);
	pt_ok(PtlGetUid(pt_ni, &uid));
	if (pt_rank == 0) {
		pt_is(uid, SOMEBODY);
	} else {
		pt_is(uid, geteuid());
		pt_ok(PtlMEAttach(pt_ni, PORTAL, pt_any, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
		pt_entry(me, 'A');
	}
	pt_barrier();
}

/* Two shots of somebody under an entry for this user: are they taken? */
static void shoot_with(ptl_uid_t uid, const char *tags)
{
	if (pt_is_target())
		pt_ok(PtlACEntry(pt_ni, AC, pt_any, uid, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	pt_barrier();
	for (int i = 0; pt_is_initiator() && i < 2; i++)
		pt_shoot_at(pt_target(), PORTAL, AC, 0, 0, 1);
	pt_finish();
	if (pt_is_target())
		pt_taken(tags);
}

static void entries_go_by_the_user_that_the_key_vouches_for(void)
{
	begin();
	shoot_with(SOMEBODY, "AA");
	shoot_with(geteuid() == SOMEBODY ? 0 : geteuid(), "--");
	shoot_with(NOBODY_ELSE, "--");
	shoot_with(PTL_UID_ANY, "AA");
	shoot_with(SOMEBODY, "AA");
	if (pt_is_target())
		pt_is(pt_stat(getpid(), "refused by the access control entry"), 4);
}

/* As long as nobody asks for anything else: the own user alone. */
static void entries_that_nobody_set_refuse_other_users(void)
{
	begin();
	if (pt_is_initiator()) {
		pt_shoot_at(pt_target(), PORTAL, 0, 0, 0, 1);
		pt_shoot_at(pt_target(), PORTAL, AC, 0, 0, 1);
	}
	pt_finish();
	if (pt_is_target())
		pt_taken("--");
}

int main(int argc, char **argv)
{
	static const struct pt_test tests[] = {
		PT_CASE(entries_go_by_the_user_that_the_key_vouches_for, 2),
		PT_CASE(entries_that_nobody_set_refuse_other_users, 2),
	};

	return PT_MAIN(argc, argv, tests);
}
