#!/bin/sh
# Fails when the committed protobuf code differs from what its sources give.
set -eu
buf=$1
$buf lint
$buf generate
if ! git diff --exit-code -- '*.pb.go' || [ -n "$(git ls-files --others --exclude-standard -- '*.pb.go')" ]; then
	echo "the generated protobuf code is not current: run 'make proto' and commit the result" >&2
	exit 1
fi
