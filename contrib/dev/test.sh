#!/bin/sh
# All tests. The race detector needs cgo and a C compiler; without one the
# tests run without it, and say so.
set -eu
race=-race
if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
	race=
	echo "no C compiler: testing without the race detector" >&2
fi
[ -n "$race" ] && export CGO_ENABLED=1
exec "${GO:-go}" test $race -timeout 20m "$@" ./...
