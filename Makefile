# idproxy. `make run` shows it at work; `make test` checks everything. Both install what they need.

SHELL      := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
INSTALL     := scripts/install-servers.sh
FUZZTIME    ?= 6s
CHAOS       ?= 5m
RUNS        ?= 1

.PHONY: build run test test-long lint fuzz-short shape chaos bench clean

build: ## the program, in bin/idproxy
	CGO_ENABLED=0 go build -trimpath -o bin/idproxy ./cmd/idproxy

run: ## two shards behind idproxy until Ctrl-C; UPSTREAM=host:port uses a server that is there
	@scripts/run-demo.sh

# Package integration takes longest, so it begins first.
test: lint ## everything that takes about half an hour
	$(INSTALL) mariadb mariadb118 mysql redis etcd gcc clients
	go test -race -count=1 -timeout=40m -json ./integration ./... | go run ./integration/testrun
	scripts/fuzz.sh $(FUZZTIME)

test-long: lint ## what takes longer: tests with the build tag long, ten minutes of each fuzz target
	$(INSTALL) mariadb mariadb118 mysql redis etcd gcc clients
	go vet -tags=long ./...
	IDPROXY_STATEMENTS=20000 go test -race -count=1 -timeout=6h -tags=long -json ./integration ./... | go run ./integration/testrun
	scripts/fuzz.sh 10m

lint: ## vet, staticcheck, gofumpt
	go vet ./...
	go run $(STATICCHECK) ./...
	@unformatted=$$(go run $(GOFUMPT) -l .); [ -z "$$unformatted" ] || { echo "not gofumpt: $$unformatted"; exit 1; }

fuzz-short: ## every fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

shape: ## how dense each package is: functions, branches, types, circles of files; a ! is above its limit
	@go run ./scripts/shape ./...

chaos: ## RUNS times for CHAOS, harms six idproxies and the servers they depend on, looks for ids that come twice, and adds up
	$(INSTALL) mariadb redis etcd gcc
	IDPROXY_CHAOS=$(CHAOS) IDPROXY_CHAOS_RUNS=$(RUNS) IDPROXY_CHAOS_SUM=$(CURDIR)/.tools/chaos.sum \
		go test -count=1 -timeout=12h -v -tags=long -run '^Test(Chaos|Clock|Outage)' ./integration/chaos

bench: ## idproxy against a direct connection, a plain relay and HAProxy; results are for docs/benchmarks.md
	$(INSTALL) mariadb haproxy
	go run ./integration/bench

clean: ## what was built and downloaded
	rm -rf bin .tools
