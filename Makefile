# idproxy. `make run` shows it at work; `make test` checks it. Both install what they need.

SHELL      := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
# A Go that scripts/install-servers.sh brings comes before one that is too old for go.mod.
export PATH := $(CURDIR)/.tools/go/bin:$(PATH)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
INSTALL     := scripts/install-servers.sh go
FUZZTIME    ?= 4s
STORE       ?= mysql
CHAOS       ?= 5m
RUNS        ?= 1
BASE        ?= HEAD

.PHONY: go servers help build run test test-matrix test-long lint fuzz-short shape walk chaos fleet referee bench dist docs clean

build lint test fuzz-short shape walk dist: go
go:
	@$(INSTALL)

build: ## the program, in bin/idproxy
	CGO_ENABLED=0 go build -trimpath -o bin/idproxy ./cmd/idproxy

run: ## two shards behind idproxy until Ctrl-C; UPSTREAM=host:port uses a server that is there
	@scripts/run-demo.sh

# Tests have their files in memory where that has 8 GB free, for dozens of servers that share a disk wait for each other.
# What must outlive a crash is tested with SIGKILL, which memory files outlive too.
test test-matrix test-long fleet referee: export TMPDIR := $(shell [ "$$(df --output=avail -m /dev/shm 2>/dev/null | tail -1)" -gt 8000 ] 2>/dev/null && echo /dev/shm || echo "$${TMPDIR:-/tmp}")

# Programs and tests are compiled alike, so that each package is compiled once; with the race detector once more.
test test-matrix test-long lint: export CGO_ENABLED := 0
test test-matrix test-long lint: export GOFLAGS := -trimpath -buildvcs=false
RACE := IDPROXY_RACE=1

# At most four tests that have servers run at once, one of each of four packages; those without run beside them. Those that take
# longest begin first, and some that compute beside some that wait, so that no processor is idle.
TESTRUN := go run ./integration/testrun -p 9
LONGEST := ./proxy ./integration/{oracle,lifecycle,migration,parity} ./idsource/etcd ./integration/{clients,observability} \
	./idsource/{mysql,lease} ./integration/names ./idsource/zookeeper ./rewriter/grammar ./integration/{simulation,selects} \
	./idsource/{segment,redis} ./integration/{ids,sizes,load,deploy} ./cmd/idproxy/explain ./integration/{failover,chaos} \
	./cmd/idproxy ./integration/{prepared,columns}
PKG     ?= $(LONGEST) ./...
RUN     ?= .
# ROOMS are tests of programs. The race detector is in these, and tests themselves do not need it: most of what they do is one
# session after the other. Nor does explain, which says of one statement after the other what becomes of it.
ROOMS   := ./integration/{compose,simulation} $(filter-out ./proxy ./idsource% ./rewriter% ./cmd/idproxy,$(LONGEST)) ./integration/...
WITHIN   = $$(go list ./... | grep -vE '/integration|/explain$$')
# DRIVEN are the rooms that look at what sessions do. They run over event loops, and over goroutines in test-matrix.
DRIVEN  := ./integration/{dynamic,genes,lifecycle,load,names,parity,prepared,random,replies,selects,sizes,wide}
SERVERS := mariadb mariadb118 mysql redis etcd zookeeper gcc clients prometheus haproxy sysbench sandbox shells

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

servers: # what tests run, and what they are written in
	$(INSTALL) $(SERVERS)

test: ## every kind of comparison, on both servers; PKG=./integration/oracle RUN=TestX runs one room, or one test of it
	@[ -e .tools/mysql97 ] || go build ./... & $(MAKE) servers && wait $$! # a first time waits for downloads
	$(TESTRUN) -timeout=40m -run '$(RUN)' $(PKG)

test-matrix: ## with the race detector, over more servers, modes, character sets, triggers, sizes and seeds, and over the other engine; each fuzz target for FUZZTIME
	$(INSTALL) $(SERVERS) browser spider
	$(INSTALL) bare site docker & $(RACE) IDPROXY_MATRIX=1 $(TESTRUN) -timeout=100m -race $(WITHIN) && wait $$! # these wait for downloads
	$(RACE) IDPROXY_MATRIX=1 $(TESTRUN) -timeout=100m $(ROOMS)
	IDPROXY_ENGINE=goroutines $(TESTRUN) -timeout=40m $(DRIVEN)
	go -C integration/kubernetes test -vet=off -count=1 -json ./... | go run ./integration/testrun
	scripts/fuzz.sh $(FUZZTIME)
	GOOS=darwin go build -o /dev/null ./cmd/idproxy

test-long: lint ## what takes longer: tests with the build tag long, ten minutes of each fuzz target
	$(INSTALL) $(SERVERS) browser spider icu
	go vet -tags=long ./...
	$(RACE) IDPROXY_STATEMENTS=20000 $(TESTRUN) -timeout=6h -tags=long $(ROOMS)
	$(RACE) IDPROXY_STATEMENTS=20000 $(TESTRUN) -timeout=6h -tags=long -race $(WITHIN)
	$(TESTRUN) -timeout=6h -tags=long ./idsource/lease # walks of its model, which the race detector would make too slow
	go -C integration/kubernetes test -tags=long -vet=off -count=1 -timeout=1h -json . | go run ./integration/testrun # it builds kube-apiserver
	scripts/fuzz.sh 10m

lint: ## vet, staticcheck, gofumpt
	go vet ./...
	go run $(STATICCHECK) ./...
	@unformatted=$$(find . -name '.?*' -prune -o -name '*.go' -print0 | xargs -0 go run $(GOFUMPT) -l); [ -z "$$unformatted" ] || { echo "not gofumpt: $$unformatted"; exit 1; }

fuzz-short: ## every fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

shape: ## how dense each package is: functions, branches, types, circles of files; a ! is above its limit
	@go run ./scripts/shape ./...

walk: ## the files and functions that one INSERT runs through, as text and prepared
	$(INSTALL) mariadb
	IDPROXY_MATRIX=1 go test -count=1 -v -run '^TestWalk$$' ./integration/walk | sed -n 's/^ *walk_test.go:[0-9]*: //p'

chaos: ## RUNS times for CHAOS, harms six idproxies and the servers they depend on, looks for ids that come twice, and adds up
	$(INSTALL) mariadb redis etcd gcc
	IDPROXY_CHAOS=$(CHAOS) IDPROXY_CHAOS_RUNS=$(RUNS) IDPROXY_CHAOS_SUM=$(CURDIR)/.tools/chaos.sum \
		go test -count=1 -timeout=12h -v -tags=long -run '^Test(Chaos|Clock|Outage)' ./integration/chaos

fleet: ## sixteen idproxies with sixty-four listeners each, over STORE (mysql or etcd): what they take, and ids that come twice; for docs/sizing.md
	$(INSTALL) mariadb etcd
	IDPROXY_FLEET=$(STORE) go test -count=1 -timeout=1h -v -run '^TestFleet' ./integration/fleet

referee: ## plays the scripts of integration/oracle through the program of commit BASE, too: clients and servers get the same bytes
	$(INSTALL) mariadb mysql
	at=$$(mktemp -d) && trap 'rm -rf "$$at"' EXIT && git archive $(BASE) | tar -x -C "$$at" && \
		CGO_ENABLED=0 go -C "$$at" build -trimpath -buildvcs=false -o idproxy ./cmd/idproxy && \
		for engine in loops goroutines; do IDPROXY_REFEREE="$$at/idproxy" IDPROXY_ENGINE=$$engine $(TESTRUN) -timeout=2h -run '$(RUN)' ./integration/oracle; done

bench: ## idproxy against a direct connection, a plain relay and HAProxy; results are for docs/benchmarks.md
	$(INSTALL) mariadb haproxy sysbench
	go run ./integration/bench

dist: ## programs for Linux and macOS, Debian and RPM packages, checksums and what is in them, in dist/, once no known vulnerability is found
	scripts/dist.sh

docs: ## the site of all pages, in .site/html, with no link that leads nowhere
	scripts/docs.sh

clean: ## what was built and downloaded
	rm -rf bin dist .tools
