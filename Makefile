# bough: everything that is built, checked and shown. The Go toolchain and make
# are all that a machine must have.

GO     ?= go
BIN    := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
PREFIX ?= $(HOME)/.local
# The linter and the protobuf compiler are pinned in modules of their own, so
# that their hundreds of dependencies stay out of bough's.
LINT   := $(GO) tool -modfile=tools/lint/go.mod golangci-lint
BUF    := $(GO) tool -modfile=tools/proto/go.mod buf
FUZZTIME ?= 60s
CHAOSPOINTS ?= 200
export CGO_ENABLED ?= 0

.PHONY: build run demo test lint fuzz chaos bench bench-go proto proto-check install clean help

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## bough and its model plugin, into bin/
	@mkdir -p $(BIN)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

run: build ## open bough
	@$(BIN)/bough

demo: build ## see bough do real work: no key, no network
	@sh contrib/demo/demo.sh $(BIN)/bough

test: ## all tests, with the race detector where a C compiler is there
	sh contrib/dev/test.sh

lint: ## vet, golangci-lint, formatting
	$(GO) vet ./...
	$(LINT) run ./...

fuzz: ## each fuzz target for FUZZTIME
	sh contrib/dev/fuzz.sh $(FUZZTIME)

chaos: ## kill bough's processes at CHAOSPOINTS points of scripted sessions
	$(GO) test -timeout 60m -run TestKills -v ./contrib/chaos -chaos.points $(CHAOSPOINTS)

bench: ## measure what users notice, and write docs/performance.md (some minutes)
	$(GO) run ./contrib/bench -o docs/performance.md

bench-go: ## the benchmarks of the packages, for work on one of them
	$(GO) test -run '^$$' -bench . -benchtime 1s ./host/... ./plugins/...

proto: ## generate the protobuf code
	$(BUF) lint
	$(BUF) generate

proto-check: ## fail when the committed protobuf code is not current
	sh contrib/dev/proto-check.sh "$(BUF)"

install: build ## into PREFIX/bin
	install -d $(PREFIX)/bin
	install -m 755 $(BIN)/bough $(BIN)/bough-models $(PREFIX)/bin/

clean: ## remove what was built
	rm -rf $(BIN)
