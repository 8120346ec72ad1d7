# Everything is done through these targets; `make help` lists them. Needs Go, make, gcc and git, nothing else: every
# other tool is built from Go modules at the version that test/tools/<tool>/go.mod names, once, and cached.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

export GOTOOLCHAIN := local
# All compile with the same flags, so that each package is compiled once, and without tables for debuggers, which a panic's stack trace
# does not need. Tag fdb and the race detector need cgo, and are compiled with both.
export GOFLAGS ?= -buildvcs=false -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED := 0
# A compiler lives for seconds: without garbage collection it takes a tenth less time.
compiling = GOGC=off GOMEMLIMIT=2GiB
# Compiles packages and their tests into the cache, for tools that would have them compiled with garbage collection.
compile = $(compiling) go list -export -deps -test $(1) >/dev/null

tool = $$(go -C test run ./tools/cmd/holdfast-tools -path $(1))
# One `go test` for both modules: that of the tests requires the product, so it can name the product's packages by import path.
gotestsum = gotestsum=$(call tool,gotestsum); cd test; "$$gotestsum"
imports   = $(patsubst ./%,holdfast.dev/holdfast/%,$(1))

PACKAGES  := ./activities/... ./k8s/... ./starter/... ./test/... ./worker/... ./workflows/...
# What may have goroutines: workflows have none, as workflowcheck sees to, and an instrumented one takes longer between two waits than
# the SDK allows on a busy machine. RACED are the packages of it whose code or tests name them: no others can have a race of their own.
MAY_RACE  := activities k8s starter worker workflows/codec workflows/connect test/fdbtools
CONCURRENT := ^\s*go \w|\.Go\(|"sync|errgroup|synctest|httptest
RACED      = $(patsubst %/,./%,$(sort $(dir $(shell grep -rlE --include='*.go' '$(CONCURRENT)' $(MAY_RACE)))))
# Of a release; the environment changes none of these.
RELEASE   := v0.1.0
RELEASES  := https://releases.example.com/holdfast
# Of what is shipped, here and in deploy/image/Dockerfile: of Google's storage client no gRPC, since buckets are read by HTTP.
# -trimpath lets one checkout's cache serve another; what is compiled with the same SHARED is compiled once.
BUILD_TAGS  := disable_grpc_modules
SHARED      := -trimpath -tags=$(BUILD_TAGS)
BUILD_FLAGS  = $(SHARED) -ldflags="-s -w -X holdfast.dev/holdfast/k8s/process.version=$(or $(VERSION),$(shell git describe --tags --always --dirty 2>/dev/null))"
FDB_FLAGS   := -tags=fdb,$(BUILD_TAGS) -ldflags=-w
LEAN        := -vet=off $(SHARED)
TEST_ARGS ?=
# How holdfast-gate runs the tests: its stage, flags of go test, packages.
GATE_ARGS ?=
build_gate = go -C test build -o $(CURDIR)/bin/ ./gate/cmd/holdfast-gate; bin/holdfast-gate
gate       = gotestsum=$(call tool,gotestsum); $(build_gate) $(1) -gotestsum "$$gotestsum" -lanes $${HOLDFAST_TEST_LANES:-2} \
	$(GATE_ARGS) -- $(2) $(TEST_ARGS) -- $(call imports,$(3))
OUT        := $(CURDIR)/bin
BASE       := gcr.io/distroless/cc-debian12
# What an image and its programs call themselves; empty is the commit.
VERSION    :=
BENCH_ARGS ?=
# server: dev and bench run Temporal's own server on PostgreSQL instead of its development server.
TEMPORAL   ?=
# Temporal's own server is built where PostgreSQL is.
PRODUCTION = $(shell { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 && echo production)
GENERATED := deploy/crds/* deploy/rbac/* deploy/components/fdb/crds/* deploy/components/fdb/rbac/* \
	$$(find deploy/chart deploy/bundle -type f)

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use it

.PHONY: demo
demo: ## On the real components: back a namespace up, also into its own bucket, lose it, restore it, compare; back FoundationDB up
	@go -C test run ./tools/cmd/holdfast-tools stack
	@echo "compiling Holdfast and the demo, with all that they import"
	@go -C test run $(SHARED) ./env/cmd/holdfast-dev demo

.PHONY: dev
dev: ## Leave the whole stack running until Ctrl-C (TEMPORAL=server: with Temporal's own server on PostgreSQL)
	@HOLDFAST_TEMPORAL=$(TEMPORAL) go -C test run $(SHARED) ./env/cmd/holdfast-dev dev

.PHONY: build
build: ## Build bin/holdfast-worker and bin/holdfast
	$(compiling) go build $(BUILD_FLAGS) -o bin/holdfast-worker ./worker
	$(compiling) go build $(BUILD_FLAGS) -o bin/holdfast ./starter

.PHONY: image
image: ## Write the image for amd64 and arm64 as an OCI archive, with SBOM and provenance: bin/image (needs no container engine)
	go -C test run ./image/cmd/holdfast-image -into $(OUT)/image -version "$(VERSION)"

.PHONY: image-foundationdb
image-foundationdb: ## The same on BASE, which has the C library of FoundationDB's tools
	go -C test run ./image/cmd/holdfast-image -into $(OUT)/image -version "$(VERSION)" -name holdfast-foundationdb -base $(BASE)

.PHONY: plugin
plugin: ## Pack `kubectl holdfast` for four platforms, with krew's manifest: bin/plugin (RELEASES: the URL below which they will be)
	go -C test run ./tools/cmd/holdfast-plugin -version $(RELEASE) -url $(RELEASES)/$(RELEASE) -out $(OUT)/plugin

.PHONY: release
release: ## Make all of a release of a tagged commit: images, plugin, chart, sources, checksums: bin/release (twice the same bytes)
	@refuse() { echo "make release: $$1" >&2; exit 1; }; \
	[ -z "$$(git status --porcelain)" ] || refuse "files differ from the commit: commit or remove them"; \
	git tag --points-at HEAD | grep -qx '$(RELEASE)' || refuse "the commit has no tag $(RELEASE): git tag -s $(RELEASE)"; \
	[[ '$(BASE)' == *@sha256:* ]] || refuse "a tag moves: name the base image by a digest, BASE=$(BASE)@sha256:..."
	@rm -rf bin/release.part && mkdir -p bin/release.part
	@$(MAKE) --no-print-directory image image-foundationdb plugin VERSION=$(RELEASE) OUT=$(CURDIR)/bin/release.part
	@export LC_ALL=C SOURCE_DATE_EPOCH=$$(git show -s --format=%ct HEAD); helm=$(call tool,helm); cd bin/release.part; \
	"$$helm" package $(CURDIR)/deploy/chart --version $(RELEASE:v%=%) --app-version $(RELEASE); \
	git -C $(CURDIR) -c tar.umask=0022 archive --prefix=holdfast-$(RELEASE)/ HEAD | gzip -n >holdfast-$(RELEASE).tar.gz; \
	mv image/* plugin/* . && rmdir image plugin && sha256sum * >SHA256SUMS
	@rm -rf bin/release && mv bin/release.part bin/release && echo "bin/release:" && cat bin/release/SHA256SUMS

.PHONY: tools
tools: components tools-dev ## Build the real components and the developers' tools (minutes the first time)

.PHONY: components
components: ## Build the real components (half an hour the first time)
	go -C test run ./tools/cmd/holdfast-tools stack $(PRODUCTION)

.PHONY: tools-dev
tools-dev: ## Build the developers' tools
	go -C test run ./tools/cmd/holdfast-tools dev

##@ Change it

# A role has the rights whose markers stand in the packages of its process, beside the code that needs them.
role = "$$gen" rbac:roleName=$(1),fileName=$(2)_role.yaml $(addprefix paths=./,$(4)) output:rbac:artifacts:config=$(3)/rbac

.PHONY: generate
generate: ## Write the generated code: deepcopy, CRDs, RBAC; of them Helm's chart and OLM's bundle
	gen=$(call tool,controller-gen); \
	"$$gen" object paths=./k8s/api/...; \
	"$$gen" crd paths=./k8s/api/oadp/... paths=./k8s/api/holdfast/... output:crd:artifacts:config=deploy/crds; \
	"$$gen" crd paths=./k8s/api/fdb/... output:crd:artifacts:config=deploy/components/fdb/crds; \
	$(call role,holdfast-worker,worker,deploy,worker $(filter-out activities/fdb%,$(wildcard activities/*/))); \
	$(call role,holdfast-watcher,watcher,deploy,starter $(filter-out starter/watch/fdb/,$(wildcard starter/watch/*/))); \
	$(call role,holdfast-fdb,worker,deploy/components/fdb,worker/fdbworker $(wildcard activities/fdb/*/)); \
	$(call role,holdfast-drills,worker,deploy/components/drills,activities/drill/namespaces); \
	$(call role,holdfast-watcher-fdb,watcher,deploy/components/fdb,starter/watch/fdb)
	go -C test run ./deploy/cmd/holdfast-manifests

.PHONY: fmt
fmt: ## Format the code
	"$(call tool,golangci-lint)" fmt

.PHONY: lint
lint: ## Check style, import direction, determinism, generated code and go.mod
	golangci=$(call tool,golangci-lint); export GOFLAGS="$(GOFLAGS) -trimpath -tags=$(BUILD_TAGS)"; \
	$(call compile,./...); (cd test; $(call compile,./...)); \
	"$$golangci" run; (cd test; "$$golangci" run); \
	GOFLAGS="$(GOFLAGS) -trimpath" "$$golangci" run --build-tags outage,$(BUILD_TAGS) ./worker/... ./starter/...
	"$(call tool,workflowcheck)" ./workflows/...
	go mod tidy -diff
	go -C test mod tidy -diff
	$(MAKE) --no-print-directory verify-generated

# They build the SSA form of all dependencies: with them the linters take twice as long.
SLOW_LINTERS := bodyclose,contextcheck,nilerr,noctx,wastedassign
.PHONY: lint-slow
lint-slow: ## Run the linters that take longest, and all of them over the code of tag fdb (make test-long does)
	golangci=$(call tool,golangci-lint); export GOFLAGS="$(GOFLAGS) -trimpath -tags=$(BUILD_TAGS)"; \
	"$$golangci" run --enable=$(SLOW_LINTERS); (cd test; "$$golangci" run --enable=$(SLOW_LINTERS)); \
	export CGO_ENABLED=1; $(call headers,$(CURDIR)/test/fdbstub/include); \
	"$$golangci" run --enable=$(SLOW_LINTERS) --build-tags fdb,$(BUILD_TAGS) ./activities/fdblock/...

.PHONY: lint-house
lint-house: ## Check the words, sizes and maps of which `make test` only warns
	HOLDFAST_HOUSE=strict go -C test test -count=1 ./house

.PHONY: verify-generated
verify-generated:
	@before=$$(sha256sum $(GENERATED) $$(find k8s/api -name 'zz_generated*') | sort); \
	$(MAKE) --no-print-directory generate >/dev/null; \
	after=$$(sha256sum $(GENERATED) $$(find k8s/api -name 'zz_generated*') | sort); \
	if [ "$$before" != "$$after" ]; then echo "generated code was out of date; it is written again: commit it"; exit 1; fi

.PHONY: build-fdb
# The folders of the header and the library are no CGO_CFLAGS and CGO_LDFLAGS: those are part of every package that uses cgo, which would
# be compiled again in each checkout. What the header says is part of them.
headers = export CGO_CFLAGS="-g -O2 -DHEADERS=$$(cat $(1)/foundationdb/*.h | cksum | cut -d" " -f1)" C_INCLUDE_PATH=$(1)
# What takes half a minute and needs no library runs among the other tests.
test_fdb = go test $(FDB_FLAGS) -vet=off -skip=TestNeverTwoAtATime -count=1 ./activities/fdblock/...
build-fdb: ## Check the code of build tag fdb with the race detector: against a stand-in for the C library, and against FoundationDB itself where it is there
	@mkdir -p bin/fdbstub
	gcc -std=c11 -Wall -Wextra -Werror -O1 -shared -fPIC -pthread -Itest/fdbstub/include -o bin/fdbstub/libfdb_c.so test/fdbstub/fdb_c.c
	export CGO_ENABLED=1 GOFLAGS="$(GOFLAGS) -race"; $(call headers,$(CURDIR)/test/fdbstub/include); \
	export LIBRARY_PATH=$(CURDIR)/bin/fdbstub LD_LIBRARY_PATH=$(CURDIR)/bin/fdbstub; \
	$(compiling) go build $(FDB_FLAGS) -o bin/fdbstub/ ./worker; \
	go vet -tags fdb,$(BUILD_TAGS) ./activities/fdblock/...; \
	$(test_fdb)
	@echo "compiled and tested against test/fdbstub, a stand-in for FoundationDB's client"
	@mkdir -p bin/fdb; go -C test build -o ../bin/fdb/ ./env/cmd/holdfast-fdb; \
	real=$$(bin/fdb/holdfast-fdb -path); \
	if [ ! -e "$$real/libfdb_c.so" ]; then echo "FoundationDB's own client and server are not here: run against no database"; exit; fi; \
	export CGO_ENABLED=1 GOFLAGS="$(GOFLAGS) -race"; \
	$(call headers,$$real/include); export LIBRARY_PATH=$$real LD_LIBRARY_PATH=$$real; \
	$(compiling) go build $(FDB_FLAGS) -o bin/fdb/ ./worker; \
	bin/fdb/worker --help >/dev/null; \
	bin/fdb/holdfast-fdb $(test_fdb); \
	echo "compiled against FoundationDB's own client in $$real, and tested on its server"

.PHONY: test
test: ## Run every test: what computes first and alone, then the stacks of real components; what fails is run again (test/README.md)
	@.ci/stage unit 25 $(MAKE) --no-print-directory test-unit
	@if [[ "$(PACKAGES)" == *./test* ]]; then .ci/stage components 45 $(MAKE) --no-print-directory components; fi
	@.ci/stage stacks 85 $(MAKE) --no-print-directory test-stacks

.PHONY: test-unit
test-unit: ## Run the tests that only compute, the replay of histories and test/house, too
	$(call gate,unit,$(LEAN),$(PACKAGES))

.PHONY: test-stacks
test-stacks: ## Run the tests on real components, HOLDFAST_TEST_LANES (2) stacks at a time
	$(call gate,stacks,$(LEAN),$(PACKAGES))

.PHONY: test-fresh
test-fresh: ## Run every test anew, and forgive nothing: what fails once is refused
	$(MAKE) --no-print-directory test GATE_ARGS='-forgive=false -prove=false' TEST_ARGS='-count=1 $(TEST_ARGS)'

.PHONY: test-flakes
test-flakes: ## Show how often each test has failed on this machine, since when, and at which load
	@$(build_gate) flakes

.PHONY: check-flakes
check-flakes:
	@$(build_gate) check

.PHONY: test-short
test-short: ## Run the tests that need no component
	$(gotestsum) --format pkgname -- $(LEAN) -short $(call imports,$(PACKAGES))

.PHONY: test-race
test-race: ## Run the unit tests of what has goroutines with the race detector, the long ones shortened (minutes the first time)
	@test -n "$(strip $(RACED))" || { echo "no package with goroutines was found: see CONCURRENT in the Makefile"; exit 1; }
	export CGO_ENABLED=1; (cd test; $(call compile,-race -tags=$(BUILD_TAGS) $(call imports,$(RACED)))); \
	$(call gate,race,-race -short $(LEAN),$(RACED))

.PHONY: test-long
test-long: ## Run every test with the whole matrices, the long outages and a browser, and the slow linters (hours)
	$(MAKE) --no-print-directory lint-slow
	@test/browser/install-chromium
	$(MAKE) --no-print-directory test-race RACED="$(MAY_RACE:%=./%/...)"
	export HOLDFAST_TEST_LONG=1; $(call gate,unit,$(LEAN),$(PACKAGES))
	export HOLDFAST_TEST_LONG=1 HOLDFAST_TEST_ROLLOUTS=1; $(call gate,stacks,$(LEAN),$(PACKAGES))

.PHONY: bench
bench: ## Measure what a backup costs: a table and bench.json (minutes; BENCH_ARGS='-help' lists more; TEMPORAL=server as for dev)
	HOLDFAST_TEMPORAL=$(TEMPORAL) go -C test run $(SHARED) ./bench -json $(CURDIR)/bench.json $(BENCH_ARGS)

.PHONY: pictures
pictures: ## Make the README's pictures, in docs/pictures, by the browser's tests (needs a Chromium)
	@test/browser/install-chromium; mkdir -p docs/pictures
	HOLDFAST_TEST_LONG=1 HOLDFAST_PICTURES=$(CURDIR)/docs/pictures go -C test test $(LEAN) -count=1 -run 'ReportIsRead|WebUIShows' ./browser

.PHONY: histories
histories: ## Record the baseline of workflow histories from the commit that is checked out (half an hour)
	@git diff --quiet HEAD -- workflows activities k8s worker || { echo "commit first: the baseline names the commit that recorded it"; exit 1; }
	rm -rf bin/histories
	HOLDFAST_RECORD_HISTORIES=$(CURDIR)/bin/histories HOLDFAST_TEST_ROLLOUTS=1 $(MAKE) test PACKAGES="./test/e2e ./test/fdb ./test/outage ./test/outage/fdb"
	go -C test run $(SHARED) ./histories/cmd/holdfast-histories $(CURDIR)/bin/histories $(CURDIR)/test/histories/baseline $$(git rev-parse HEAD)
