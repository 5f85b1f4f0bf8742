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
deps: ## install what tests need: redis-server, postgresql, nginx, caddy, gcc, and valkey where it can be had
	@scripts/deps
	@scripts/proxies

.PHONY: build
build: ## compile everything
	@for m in $(MODULES); do (cd $$m && $(GO) build ./...) || exit 1; done

.PHONY: test
test: deps ## everything, on real Redis single, Sentinel and Cluster, with the race detector
	@for m in $(MODULES); do (cd $$m && $(GO) test $(TESTFLAGS) ./...) || exit 1; done

.PHONY: check
check: ## lint, formatting, modules tidy, the gRPC API's contract
	@scripts/proto lint
	@scripts/proto breaking
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

.PHONY: quickstart-server
quickstart-server: deps ## the README's server examples, as pasted
	@scripts/quickstart-server

.PHONY: quickstart-control
quickstart-control: deps ## two nodes on a PostgreSQL: limits, plans and blocks changed live, taken back, and kept without it
	@cd examples && $(GO) run ./control

# Each bar measures one promise and fails where it falls short.
BAR = @cd bench && $(GO) run
.PHONY: bar-exact bar-rates bar-engine bar-libs bar-match bar-memory bar-mutants
.PHONY: bar-propagate bar-revoke bar-directory bar-authz bar-badrules bar-pgdown bar-keys
.PHONY: bar-rls bar-proxies bar-grpc bar-gateway bar-redis-gone bar-restart bar-clientip bar-hostile reference
reference:
	@scripts/reference >/dev/null
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
bar-rls: deps reference ## Envoy's rate limit service against the reference service, call by call (5 min)
	$(BAR) ./rls
bar-proxies: deps ## real nginx and Caddy in front of a counting upstream: exactly the limit reaches it
	$(BAR) ./proxies
bar-grpc: deps reference ## gRPC doors against the reference service and an empty handler (6 min)
	$(BAR) ./grpc
bar-gateway: deps ## the gateway against a bare reverse proxy
	$(BAR) ./gateway
bar-redis-gone: deps ## Redis killed and paused under load: deadlines, labels, shares, recovery (3 min)
	$(BAR) ./redisgone
bar-restart: deps ## 10 rolling restarts of 3 nodes under load: no request fails (4 min)
	$(BAR) ./restart
bar-clientip: ## who the client is behind proxies: 200 cases, and nothing prepended changes it
	$(BAR) ./clientip
bar-hostile: deps ## slow, huge, malformed and smuggled requests leave others alone
	$(BAR) ./hostile
bar-propagate: deps ## a rule changed by the API acts on every node (3 min)
	$(BAR) ./propagate
bar-revoke: deps ## a key revoked, a block set, an override changed act on every node
	$(BAR) ./revoke
bar-directory: deps ## 10 million subjects: memory, rate, and a flood of unknown keys (10 min)
	$(BAR) ./directory
bar-authz: deps ## every admin route × role × namespace
	$(BAR) ./authz
bar-badrules: deps ## bad rules by every way in are refused or left out alone
	$(BAR) ./badrules
bar-pgdown: deps ## PostgreSQL absent, killed, failed over (5 min)
	$(BAR) ./pgdown
bar-keys: deps ## a dump yields no usable key; known and unknown ids take the same work
	$(BAR) ./keys
