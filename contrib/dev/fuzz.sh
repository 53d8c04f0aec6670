#!/bin/sh
# Runs every fuzz target of the module, one after the other.
set -eu
time=${1:-60s}
go=${GO:-go}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for pkg in $("$go" list ./...); do
	dir=$("$go" list -f '{{.Dir}}' "$pkg")
	for target in $(cat "$dir"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		echo "== $pkg $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg" >"$log" 2>&1 && bad=0 || bad=$?
		tail -n 3 "$log"
		# The end of the time can hit a run in the middle, which the go tool
		# takes for a failure: one that counts has a failing input.
		if [ "$bad" != 0 ] && ! { grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; }; then
			cat "$log"
			exit "$bad"
		fi
	done
done
