# Every target says what it does: make help.
SHELL := bash
.DEFAULT_GOAL := help
GO      ?= go
LINT     = $(GO) tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 10s
MODULES  = . bench examples
TESTFLAGS = -race -shuffle=on -count=1

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: deps
deps: ## install what tests need: redis-server, postgresql, gcc, and valkey where it can be had
	@scripts/deps

.PHONY: build
build: ## compile everything
	@for m in $(MODULES); do (cd $$m && $(GO) build ./...) || exit 1; done

.PHONY: test
test: deps ## everything, on real Redis single, Sentinel and Cluster, with the race detector
	@for m in $(MODULES); do (cd $$m && $(GO) test $(TESTFLAGS) ./...) || exit 1; done

.PHONY: check
check: ## lint, formatting, modules tidy
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./... && $(GO) mod tidy -diff) || exit 1; done
	@for m in $(MODULES); do (cd $$m && $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run --config $(CURDIR)/.golangci.yaml ./...) || exit 1; done

.PHONY: fmt
fmt: ## format the code
	@for m in $(MODULES); do (cd $$m && $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint fmt --config $(CURDIR)/.golangci.yaml ./...); done

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME each (default 10s)
	@scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: bar-engine bar-libs bar-match bar-memory ## the measurements of docs/benchmarks.md

.PHONY: quickstart
quickstart: deps ## a 15-line program limits a handler on a real Redis, and goes on without it
	@cd examples && $(GO) run ./quickstart/show

# Each bar measures one promise and fails where it falls short.
BAR = @cd bench && $(GO) run
.PHONY: bar-exact bar-rates bar-engine bar-libs bar-match bar-memory bar-mutants
bar-exact: deps ## 4 processes × 32 callers on single and Cluster: no over-admission, no false refusal (3 min)
	$(BAR) ./exact
bar-rates: deps ## token buckets from 1 per day to 5 million per second keep their rate
	$(BAR) ./rates
bar-engine: deps ## Limiter.Check against a bare rueidis loop and redis-benchmark (3 min)
	$(BAR) ./engine
bar-libs: deps ## decisions per second and Redis CPU against redis_rate, throttled and ulule/limiter
	$(BAR) ./libs
bar-match: ## matching 1,000 rules against matching 10
	$(BAR) ./match
bar-memory: deps ## Redis memory per counter
	$(BAR) ./memory
bar-mutants: deps ## every mutation of the Lua scripts is noticed
	$(BAR) ./mutants
