#!/bin/sh
# Runs every fuzz target of the module, one after the other.
set -eu
time=${1:-60s}
go=${GO:-go}
for pkg in $("$go" list ./...); do
	dir=$("$go" list -f '{{.Dir}}' "$pkg")
	for target in $(cat "$dir"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		echo "== $pkg $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg"
	done
done
