# idproxy. `make run` shows it at work; `make test` checks everything. Both install what they need.

SHELL      := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
INSTALL     := scripts/install-servers.sh
FUZZTIME    ?= 4s
STORE       ?= mysql
CHAOS       ?= 5m
RUNS        ?= 1

.PHONY: build run test test-matrix test-long lint fuzz-short shape chaos fleet bench dist docs clean

build: ## the program, in bin/idproxy
	CGO_ENABLED=0 go build -trimpath -o bin/idproxy ./cmd/idproxy

run: ## two shards behind idproxy until Ctrl-C; UPSTREAM=host:port uses a server that is there
	@scripts/run-demo.sh

# Rooms wait for servers much of the time, so that three of them run at once; those that take longest begin first, and short
# ones are left for the end, when there is no other to fill the gaps. The idproxy that they start has the race detector, they
# themselves do not need it: most of what they do is one session after the other. Nor do walks through states, which it makes
# ten times slower, and explain, which says of one statement after the other what becomes of it.
ROOMS  := -p 3 ./integration/{oracle,clients,columns,parity,lifecycle,monitor,ids,load,names} ./cmd/idproxy/explain ./integration/...
PURE   := ./idsource/lease ./rewriter/grammar
WITHIN := $$(go list ./... | grep -vE '/integration|/explain$$')
# ALL runs all tests with some flags. The other packages run beside the rooms; what they print comes last. They are vetted by lint.
# A program with the race detector sleeps for a second at its end unless it is told not to. Nobody debugs these programs, and
# without what a debugger reads (-ldflags=-w) they are linked in two thirds of the time.
ALL = { mkdir -p .tools; within=$$(mktemp -p .tools); GORACE=atexit_sleep_ms=10 go test -race -p 2 -ldflags=-w -vet=off -count=1 $(1) -json $(WITHIN) >"$$within" & ok=true; \
	go test -ldflags=-w -vet=off -count=1 $(1) -json $(ROOMS) $(PURE) || ok=false; wait $$! || ok=false; cat "$$within"; rm "$$within"; $$ok; }
WIDE   := $$(grep -rlE 'width\.(Of|Matrix)|harness\.AllServers' --include='*_test.go' . | xargs -n1 dirname | sort -u)

# Tests have their files in memory where that has 8 GB free, for dozens of servers that share a disk wait for each other.
# What must outlive a crash is tested with SIGKILL, which memory files outlive too.
test test-matrix test-long fleet: export TMPDIR := $(shell [ "$$(df --output=avail -m /dev/shm 2>/dev/null | tail -1)" -gt 8000 ] 2>/dev/null && echo /dev/shm || echo "$${TMPDIR:-/tmp}")

# DRIVEN are the rooms that look at what sessions do. They run over event loops in test, and over goroutines in test-matrix.
DRIVEN := ./integration/{dynamic,genes,lifecycle,load,names,parity,prepared,random,replies,selects,sizes,wide}

test: ## every kind of comparison, on both servers; within twelve minutes
	$(INSTALL) mariadb mariadb118 mysql redis etcd zookeeper gcc clients browser prometheus haproxy sysbench sandbox shells
	$(call ALL,-timeout=40m) | go run ./integration/testrun

test-matrix: ## the same comparisons over more servers, modes, character sets, triggers, sizes and seeds, and over the other engine; each fuzz target for FUZZTIME
	$(INSTALL) mariadb mariadb118 spider mysql redis etcd zookeeper gcc clients browser prometheus haproxy sysbench sandbox shells bare site
	IDPROXY_MATRIX=1 go test -count=1 -timeout=100m -json -p 3 ./integration/oracle $(WIDE) | go run ./integration/testrun
	IDPROXY_MATRIX=1 go test -count=1 -timeout=20m -json ./integration/simulation | go run ./integration/testrun
	go -C integration/kubernetes test -count=1 -json ./... | go run ./integration/testrun
	IDPROXY_ENGINE=goroutines go test -vet=off -count=1 -timeout=40m -json -p 3 $(DRIVEN) | go run ./integration/testrun
	scripts/fuzz.sh $(FUZZTIME)
	GOOS=darwin go build -o /dev/null ./cmd/idproxy

test-long: lint ## what takes longer: tests with the build tag long, ten minutes of each fuzz target
	$(INSTALL) mariadb mariadb118 spider mysql redis etcd zookeeper gcc icu clients browser prometheus haproxy sysbench sandbox shells
	go vet -tags=long ./...
	export IDPROXY_STATEMENTS=20000; $(call ALL,-timeout=6h -tags=long) | go run ./integration/testrun
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

fleet: ## sixteen idproxies with sixty-four listeners each, over STORE (mysql or etcd): what they take, and ids that come twice; for docs/sizing.md
	$(INSTALL) mariadb etcd
	IDPROXY_FLEET=$(STORE) go test -count=1 -timeout=1h -v -run '^TestFleet' ./integration/fleet

bench: ## idproxy against a direct connection, a plain relay and HAProxy; results are for docs/benchmarks.md
	$(INSTALL) mariadb haproxy sysbench
	go run ./integration/bench

dist: ## programs for Linux and macOS, Debian and RPM packages, checksums and what is in them, in dist/, once no known vulnerability is found
	scripts/dist.sh

docs: ## the site of all pages, in .site/html, with no link that leads nowhere
	scripts/docs.sh

clean: ## what was built and downloaded
	rm -rf bin dist .tools
