# On a machine that has Go, make run starts a server and make test tests the tree.
# make test-all runs the tests that need more: real processes, databases, Terraform.

GO       ?= go
BIN      := bin/leasehold
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
PACKAGES ?= work
FUZZTIME ?= 30s
SEEDS    ?= 400
FIRST    ?= 1000
MINUTES  ?= 3
SEED     ?= 0
FAULTS   ?=
RUNS     ?= 3
ONLY     ?=

# What is tested without the race detector. The first start no goroutines that it could watch, and
# hold no locks, which internal/arch checks; without it there is time for ten times as many random
# logs and runs, and memory can be measured. What else has neither is not worth it to compile what it
# imports a second time. The others test what other processes do, and their drivers would compile for
# minutes.
PLAIN := '/internal/(btree|core(/(command|internal/[a-z]+|pool|record|reservation|timeline|usage|waitgraph))?|wire|sim(/mutants)?|trace|pattern|calendar|arch|engine/replica|azureblob|door/kubernetes/object|eventstream|flatjson|id|resp|statediff)$$|/test/(fence|compat/(azure|consul|python|redis))$$'

# "work" is every package of every module in go.work. A package belongs to test-all if its tests
# start processes, that is, if they import os/exec or internal/peer, or are below test/, or if it
# is in a module of its own, as each store is. Every other package belongs to test, so none is in
# both or in neither.
LIST      := $(GO) list -find -f '{{.ImportPath}} {{.Module.Path}} {{.TestImports}} {{.XTestImports}}' $(PACKAGES)
PROCESSES := '^[^ ]*/test/|^[^ ]*/internal/peer |^[^ ]* [^ ]*/leasehold/leasehold/|[[ ](os/exec|[^ ]*/internal/peer)[] ]'

# Tests that take long ask for testing.Short: make test makes them shorter or leaves them out, and
# make test-all runs them whole. These are their names, and their packages.
SHORTENED := grep -lF 'testing.Short()' $$(git ls-files '*_test.go' 2>/dev/null || find . -name '*_test.go')
LONG      := awk '/^func Test/ { sub(/[(].*/, "", $$2); test = $$2 } /testing[.]Short[(][)]/ { print test }' $$($(SHORTENED)) | sort -u | paste -sd '|'
LONG_IN   := $(GO) list -find -f '{{.ImportPath}}' $$($(SHORTENED) | xargs -n 1 dirname | sort -u | sed 's|^[^.]|./&|')

# The package that takes longest starts first, so that nothing waits for it at the end.
LONGEST := internal/engine/cluster

# A package that hangs is ended after this time, with the stacks of all goroutines.
LIMIT := -timeout 25m

# With these, a program under the race detector does not sleep for a second before it ends, and the
# compiler and the tests collect garbage less often: they take a quarter less time, and more memory.
QUICK := GORACE=atexit_sleep_ms=0 GOGC=400 GOMEMLIMIT=2GiB

.DEFAULT_GOAL := build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the binary, in bin/
	@echo "building $(BIN): the first time it takes about a minute on two cores, later seconds"
	@CGO_ENABLED=0 $(GO) build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/leasehold

# What is built is committed, so that a machine with Go alone has the console; make test-all builds it
# again elsewhere, and compares.
web: ## the console, from its source in web/ to web/dist, which the server embeds; needs Node
	@cd web && npm ci --loglevel error && npm run build

# The drivers of other stores take a third of the time that a first build takes, and a server needs
# none of them. The command line of make build has them all.
run: TAGS := nostores
run: build ## a durable server on 127.0.0.1:4653, its data in ./leasehold-data
	@exec $(BIN) serve --listen 127.0.0.1:4653 --data ./leasehold-data

test: format ## all tests that need nothing but Go: no root, no network but loopback
	@{ race=$$($(LIST) | grep -Ev $(PROCESSES) | cut -d ' ' -f 1 | grep -Ev $(PLAIN)) && \
	    $(QUICK) $(GO) test $(LIMIT) -short -vet off -race -json $(COUNT) $$(echo "$$race" | grep $(LONGEST)) $$(echo "$$race" | grep -v $(LONGEST)); \
	  plain=$$($(LIST) | grep -Ev $(PROCESSES) | cut -d ' ' -f 1 | grep -E $(PLAIN)) && \
	    $(QUICK) $(GO) test $(LIMIT) -short -vet off -json $(COUNT) $$plain; \
	} 2>&1 | $(GO) run ./internal/testreport $(REPORT)

soak: ## make test RUNS (3) times; a test that fails once fails it, even if it passes alone
	@failed=0; for run in $$(seq $(RUNS)); do echo "run $$run of $(RUNS)"; \
	  $(MAKE) -s test COUNT='-count 1' REPORT=-strict || failed=$$((failed + 1)); done; \
	  echo "$$failed of $(RUNS) runs failed"; [ $$failed = 0 ]

# Packages run one after the other: on two cores, processes of two packages would wait for
# each other more than for what they test. They are compiled before that, on all cores.
test-all: check ## the other tests: real processes, chaos, databases, Terraform, Azure's SDK
	@{ export GORACE=atexit_sleep_ms=0; \
	  race=$$($(LIST) | grep -E $(PROCESSES) | cut -d ' ' -f 1 | grep -Ev $(PLAIN)) && \
	    $(GO) test -vet off -race -exec true $$race >/dev/null; \
	    $(GO) test $(LIMIT) -vet off -p 1 -race -json $$race; \
	  LEASEHOLD_WIRE=http $(GO) test $(LIMIT) -vet off -race -json ./client; \
	  long="^($$($(LONG)))$$"; \
	  $(GO) test $(LIMIT) -vet off -race -json -run "$$long" $$($(LONG_IN) | grep -Ev $(PLAIN)); \
	  $(GO) test $(LIMIT) -vet off -json -run "$$long" $$($(LONG_IN) | grep -E $(PLAIN)); \
	  plain=$$($(LIST) | grep -E $(PROCESSES) | cut -d ' ' -f 1 | grep -E $(PLAIN)) && \
	    $(GO) test -vet off -exec true $$plain >/dev/null; \
	    $(GO) test $(LIMIT) -vet off -p 1 -json $$plain; \
	} 2>&1 | $(GO) run ./internal/testreport

gpu: build ## pools with the cards of this machine; says so if there are none
	@test/gpu/run.sh

check: format bin/lint/staticcheck bin/lint/exhaustive ## go vet, gofmt and linters; make test-all begins with it
	@$(GO) vet $(PACKAGES)
	@bin/lint/staticcheck $(PACKAGES)
	@bin/lint/exhaustive -d -typeignore "$$(grep -v '^#' test/lint/exhaustive.ignore | grep . | paste -sd '|')" $(PACKAGES)

# The linters are named in a go.mod of their own, so that nothing here requires them. Each is the newest
# that builds with Go 1.26. What they leave out, and why, is in staticcheck.conf and in test/lint.
LINT = mkdir -p bin/lint && GOWORK=off CGO_ENABLED=0 $(GO) build -modfile $< -trimpath -ldflags '-s -w' -o $@

bin/lint/staticcheck: test/lint/lint.mod
	@$(LINT) honnef.co/go/tools/cmd/staticcheck

bin/lint/exhaustive: test/lint/lint.mod
	@$(LINT) github.com/nishanths/exhaustive/cmd/exhaustive

format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "run gofmt -w on: $$unformatted"; exit 1; fi

# No go.mod replaces another module of this tree, or nobody could "go install" the command; so
# "go mod tidy" would look for their versions, which need not be released. It gets a copy that does.
tidy: ## go.mod and go.sum of every module, as the imports in it need them
	@mkdir -p bin && modules=$$($(GO) list -m -f '{{.Path}}={{.Dir}}') && for module in $$modules; do \
	  dir=$${module#*=} && cp $$dir/go.mod bin/tidy.mod && { cat $$dir/go.sum 2>/dev/null || :; } >bin/tidy.sum && \
	  for other in $$modules; do $(GO) mod edit -replace $$other bin/tidy.mod; done && \
	  (cd $$dir && GOWORK=off $(GO) mod tidy -e -modfile=$(CURDIR)/bin/tidy.mod) && \
	  for other in $$modules; do $(GO) mod edit -dropreplace $${other%%=*} bin/tidy.mod; done && \
	  mv bin/tidy.mod $$dir/go.mod && mv bin/tidy.sum $$dir/go.sum || exit 1; \
	done

deps: ## what the tests can use and this machine may lack
	@$(GO) list -deps -test $(PACKAGES) >/dev/null
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v redis-server && command -v mariadbd && command -v my_print_defaults && command -v pgbouncer && ls /usr/share/java/zookeeper.jar && ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1; then \
	  apt-get install -y -q --no-install-recommends postgresql mariadb-server-core mariadb-client-core redis-server pgbouncer zookeeper >/dev/null 2>&1 || \
	    echo "the databases could not be installed: what needs them is left out"; \
	fi
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v redis-cli && /usr/bin/python3 -c 'import redis'; } >/dev/null 2>&1; then \
	  apt-get install -y -q --no-install-recommends redis-tools python3-redis >/dev/null 2>&1 || \
	    echo "redis-cli and redis-py could not be installed: what needs them is left out"; \
	fi
	@if command -v npm >/dev/null && [ ! -d bin/ioredis/node_modules/ioredis ]; then \
	  mkdir -p bin/ioredis && npm install --prefix bin/ioredis --no-save --no-audit --no-fund --loglevel error ioredis@5.11.1 >/dev/null 2>&1 || \
	    echo "ioredis could not be installed: its test is left out"; \
	fi
	@if command -v npm >/dev/null && [ ! -d bin/azurite/node_modules/azurite ]; then \
	  mkdir -p bin/azurite && npm install --prefix bin/azurite --no-save --no-audit --no-fund --loglevel error azurite@3.37.0 >/dev/null 2>&1 || \
	    echo "azurite could not be installed: the comparison with it is left out"; \
	fi
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v chromium >/dev/null; then \
	  apt-get install -y -q --no-install-recommends chromium >/dev/null 2>&1 || \
	    echo "chromium could not be installed: the tests of the console in a browser are left out"; \
	fi
	@if command -v npm >/dev/null && ! cmp -s test/console/package-lock.json test/console/node_modules/installed.json; then \
	  (cd test/console && npm ci --loglevel error >/dev/null 2>&1 && cp package-lock.json node_modules/installed.json) || \
	    echo "playwright could not be installed: the tests of the console in a browser are left out"; \
	fi
	@$(MAKE) -s bin/peers/etcd bin/peers/etcdutl bin/peers/etcdctl

# Servers of other systems that the tests start. Each version is named in a go.mod of its own, under
# another name, so that nothing here requires them.
PEER = mkdir -p bin/peers && GOWORK=off CGO_ENABLED=0 $(GO) build -modfile $< -trimpath -ldflags '-s -w' -o $@

bin/peers/etcd: test/peers/etcd.mod
	@$(PEER) go.etcd.io/etcd/server/v3 || echo "etcd could not be built: what needs it is left out"

bin/peers/etcdutl: test/peers/etcd.mod
	@$(PEER) go.etcd.io/etcd/etcdutl/v3 || echo "etcdutl could not be built: what needs it is left out"

bin/peers/etcdctl: test/peers/etcd.mod
	@$(PEER) go.etcd.io/etcd/etcdctl/v3 || echo "etcdctl could not be built: what needs it is left out"

bin/peers/consul: test/peers/consul.mod
	@$(PEER) github.com/hashicorp/consul

bin/peers/kube-apiserver: test/peers/kubernetes.mod
	@$(PEER) -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4' k8s.io/kubernetes/cmd/kube-apiserver

peers: bin/peers/etcd bin/peers/etcdutl bin/peers/consul bin/peers/kube-apiserver ## Consul and kube-apiserver, for the tests that start them; takes half an hour

compat: build ## Terraform, OpenTofu, Azure's SDK and clients of Redis against real servers: all of it
	@$(GO) test -count 1 -v -timeout 60m ./test/compat/terraform -full
	@cd test/compat/azure && $(GO) test -count 1 -v -timeout 60m ./... -full
	@cd test/compat/redis && $(GO) test -count 1 -v ./...
	@$(GO) test -count 1 -v ./test/compat/python

# The modules below store/ have a driver each, and real servers in their tests.
STORES = $$($(GO) list -m -f '{{.Dir}}' | grep /store/)

stores: ## every store on real servers: all of it, with failovers and clocks that jump
	@for dir in $(STORES); do (cd $$dir && $(GO) test -count 1 -v -timeout 60m . -full) || exit 1; done

bench-stores: ## the figures of docs/stores, of every store and of the lock libraries beside it
	@for dir in ./store/memory $(STORES); do \
	  (cd $$dir && $(GO) test -timeout 30m -run '^$$' -bench . -benchtime 2s .) || exit 1; done

fuzz: ## each fuzz target for FUZZTIME (30s)
	@for package in $$($(GO) list $(PACKAGES)); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; \
	done

sim: ## SEEDS (400) seeds of the simulator, from FIRST (1000) on
	@$(GO) test -count 1 -v -timeout 0 -run 'TestOneNode|TestThreeNodes|TestMembers|TestFiveNodes|TestChurn|TestRestores|TestVersions' ./internal/sim -seeds $(SEEDS) -first $(FIRST)

mutants: ## every mistake on purpose, in a table of who finds it and how fast; ONLY has names, separated by commas
	@$(GO) test -count 1 -v -timeout 0 -run TestMutantsAreFound ./internal/sim/mutants -only '$(ONLY)'

trace: ## replay two weeks of jobs with fixed and learned TTLs: the table and the plot of docs/pools.md
	@$(GO) test -count 1 -v -timeout 30m -run TestLearnedTTLs ./internal/trace -write $(CURDIR)/docs/images/learned-ttls.svg

chaos: ## MINUTES (3) of trouble for three servers; SEED and FAULTS choose which, the report is in bin/chaos
	@mkdir -p bin/chaos
	@$(GO) test -count 1 -v -timeout 0 -run '^TestChaos$$' ./test/chaos -minutes $(MINUTES) -seed $(SEED) -faults '$(FAULTS)' -report $(CURDIR)/bin/chaos

bench: build bin/peers/etcd ## Leasehold beside Redis, etcd and others, in a quarter of an hour; BENCH has flags of go run ./bench
	@$(GO) run ./bench -binary $(BIN) $(BENCH)

bench-quick: build bin/peers/etcd ## the same in small, to see whether it works; its figures mean nothing
	@$(GO) run ./bench -binary $(BIN) -quick $(BENCH)

bench-go: ## the Go benchmarks of docs/performance.md
	@$(GO) test -run '^$$' -bench . -benchmem $(PACKAGES)

load: build ## load the server of make run, or of LEASEHOLD_SERVER, and measure it
	@exec $(BIN) bench

clean: ## remove what was built; data stays
	@rm -rf bin

.PHONY: help build web gpu run stores bench-stores test test-all soak check format tidy deps peers compat fuzz sim mutants trace chaos bench bench-quick bench-go load clean
