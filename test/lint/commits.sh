#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Are the subjects of the commits of a push as CONTRIBUTING.md has them: `area: imperative`, at most 72 columns?
#
#   commits.sh [REF | -N]   those since the merge base with REF, or the last N
#
# If nothing is said: those that the upstream branch has not got, or the last one. Where there is no history to look at (an
# archive, a shallow clone without REF) it says so and succeeds.
set -eu
cd "${GIT_ROOT:-$(dirname "$0")/../..}"

MOST=72
# A first word that is no imperative: articles and the like, and forms that end in -ed, -ing, -s.
NOT_IMPERATIVE='^(a|an|the|what|who|whoever|when|where|why|how|which|no|not|new|more|some|all|one|it|its|there|this|that)$|(ed|ing)$|[^suia]s$'
# ... but for these
IMPERATIVE='^(need|feed|seed|embed|shed|speed|bring|string|ring|exceed|proceed|always|as)$'

skip() {
	echo "1..0 # SKIP $*"
	exit 0
}

command -v git >/dev/null || skip "there is no git"
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip "no git repository"
[ "$(git rev-parse --show-toplevel)" -ef . ] || skip "the sources are no checkout of their own"
git rev-parse -q --verify HEAD >/dev/null || skip "no commit yet"

case ${1:-} in
--help | -h)
	sed -n '5,12s/^# \{0,1\}//p' "$0"
	exit 0
	;;
-[0-9]*) range=(-n "${1#-}" HEAD) ;;
'')
	if git rev-parse -q --verify '@{upstream}' >/dev/null 2>&1; then
		range=("@{upstream}..HEAD")
	else
		range=(-n 1 HEAD)
	fi
	;;
*)
	base=$(git merge-base "$1" HEAD 2>/dev/null) || skip "no history in common with $1 here"
	range=("$base..HEAD")
	;;
esac

# what is wrong with a subject, or nothing
wrong_with() {
	local subject=$1 text word
	[ "${#subject}" -le $MOST ] || echo "${#subject} columns, $MOST at most"
	[[ $subject =~ ^[a-z0-9_.,/+\ -]+:\ (.+)$ ]] || {
		echo "no \"area: \" at its beginning"
		return
	}
	text=${BASH_REMATCH[1]}
	word=${text%%[ ,]*}
	[[ $word =~ ^[a-z] ]] || echo "\"$word\" begins with no small letter"
	[[ ! $word =~ $NOT_IMPERATIVE || $word =~ $IMPERATIVE ]] || echo "\"$word\" is no imperative"
	[[ $text != *. ]] || echo "ends with a full stop"
}

failed=0 count=0
while IFS=' ' read -r commit subject; do
	count=$((count + 1))
	while read -r why; do
		echo "# $commit $subject"
		echo "#     $why"
		failed=$((failed + 1))
	done < <(wrong_with "$subject")
done < <(git log --no-merges --format='%h %s' "${range[@]}")
[ "$failed" -eq 0 ] && verdict=ok || verdict="not ok"
echo "$verdict 1 - subjects of $count commits"
echo "1..1"
[ "$failed" -eq 0 ]
