#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Does commits.sh see what it is there for? Makes commits in a repository of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
if ! command -v git >/dev/null; then
	echo "1..0 # SKIP there is no git"
	exit 0
fi
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/test/lint"
cp "$here/commits.sh" "$tree/test/lint/"
commits() {
	"$tree/test/lint/commits.sh" "$@"
}
in_tree() {
	git -C "$tree" -c user.name=nobody -c user.email=nobody@localhost "$@" >/dev/null 2>&1
}
commit() {
	in_tree commit --allow-empty -m "$1"
}
skips() {
	commits "$@" | grep -q '^1\.\.0 # SKIP'
}
refuses() {
	! commits "$@"
}

# TMPDIR may be in a checkout itself
check "sources that are no checkout are skipped" skips
in_tree init -b main
check "a repository without a commit is skipped" skips
commit "whatever was there before, in any form."
in_tree branch before
commit "nal/shm, base: leave nothing behind"
check "a good subject passes" commits
check "only commits since the merge base count" commits before
check "all commits that are asked for count" refuses -2
check "a ref that is not there is skipped" skips nowhere

for subject in "leave nothing behind" "base: Leave nothing behind" "base: leave nothing behind." "base: left nothing, added more" \
	"base: adding something" "base: adds something" "base: the end of it" \
	"base: leave nothing at all behind, whatever it is and however long it may be"; do
	commit "$subject"
	case $subject in
	*left*) check "only the first word is judged: $subject" commits ;;
	*) check "refused: $subject" refuses ;;
	esac
done
tap_done
