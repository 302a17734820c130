# `make demo` and `make test` are for everyone. Both install what is missing first and say what they install.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo fuzz image docs dist dist-check schema setup-dist build test test-all lint-and-compile program quick-components check-format clippy deny shellcheck limits vet lint components audit bench fmt clean setup-demo setup-test

CARGO ?= cargo
TEST_PROGRAM = $(or $(CARGO_TARGET_DIR),target)/debug/meshmeter
export CARGO
# Go programs take minutes to compile, and the program compiles them: it is built first where there are none yet, and they beside the
# tests. Otherwise one call of Cargo compiles everything, which leaves no CPU idle.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
GO_PROGRAMS := $(wildcard $(MESHMETER_COMPONENTS)/istiod-* $(CACHE)/meshmeter/components/istiod-*)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup-demo ## Build, fetch Envoy, measure what a sidecar costs, say where the report is
	@scripts/demo.sh

test: setup-test check-format $(if $(GO_PROGRAMS),,program) ## Lints and the tests of minutes; what continuous integration runs
	@$(MAKE) --no-print-directory $(if $(GO_PROGRAMS),,--jobs 2 --output-sync=line) lint-and-compile quick-components
	@scripts/tests.py quick --no-build

# Simulated studies take five times as long if they are not optimised; compiling them for `make test` would take longer than they do.
test-all: export SIMULATIONS := $(foreach crate,results statistics,--config profile.dev.package.meshmeter-$(crate).opt-level=1)
test-all: setup-test program ## All tests: every mode and death with real Istio, clusters, releases, tests that measure, benchmarks
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line lint-and-compile components
	@$(MAKE) --no-print-directory vet clippy deny
	@scripts/tests.py all --no-build
	@$(MAKE) --no-print-directory dist-check

lint: check-format clippy deny shellcheck limits vet ## Formatting, lints and licences alone, benchmarks included

bench: setup-test build ## Benchmarks (minutes; leave the machine alone meanwhile)
	$(CARGO) bench --locked --workspace --no-fail-fast --bench '*'

fuzz: ## Every fuzz target for an hour each, or SECONDS=… (C++ compiler)
	scripts/fuzz.sh $(SECONDS)

image: setup-dist ## An image for clusters, of a static program, and its bill of materials: target/image/
	@CARGO=$(CARGO) scripts/image.sh $(addprefix --architecture ,$(ARCHITECTURES))

docs: ## The documents as a book with offline search: target/book/html/
	@CARGO=$(CARGO) scripts/docs.sh

dist: setup-dist ## What is shipped: archive, Debian package, wheel, image, bill of materials, sums: target/dist/
	@CARGO=$(CARGO) scripts/dist.sh $(addprefix --architecture ,$(ARCHITECTURES))

dist-check: dist ## Install each package into an empty folder and run a study from there
	@CARGO=$(CARGO) scripts/dist/check.sh

schema: ## The JSON Schemas in docs/schema, after a change to keys
	$(CARGO) run --locked --quiet --bin meshmeter -- schema experiment >docs/schema/experiment.json
	$(CARGO) run --locked --quiet --bin meshmeter -- schema topology >docs/schema/topology.json
	$(CARGO) run --locked --quiet --bin meshmeter -- schema traffic >docs/schema/traffic.json

audit: ## Known vulnerabilities of dependencies (needs the network)
	scripts/cargo-deny.sh check advisories

fmt: ## Format the code
	$(CARGO) fmt --all

clean: ## Remove everything built here; runs/, installed components and tools stay
	$(CARGO) clean

# The parts.

setup-demo:
	@scripts/setup.sh demo

setup-test:
	@scripts/setup.sh test

setup-dist:
	@scripts/setup.sh dist

build:
	$(CARGO) build --locked --release --bin meshmeter

check-format:
	$(CARGO) fmt --all --check
	@unformatted=$$(gofmt -l components) && test -z "$$unformatted" || { echo "gofmt -w $$unformatted" >&2; exit 1; }

clippy:
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Not in `make test`: Cargo.lock changes rarely, and compiling cargo-deny takes minutes on a new machine.
deny:
	scripts/cargo-deny.sh --log-level error check bans licenses sources

shellcheck:
	shellcheck scripts/*.sh scripts/*/*.sh .ci/run

# Files and functions that a reader has on a screen or a few.
limits:
	scripts/count.py --limits

# With the options of `meshmeter lab install`: what that has compiled is not compiled again.
vet: components
	cd components/istio && CGO_ENABLED=0 GOWORK=off go vet -trimpath -buildvcs=false ./...
	cd components/cluster-node && CGO_ENABLED=0 GOWORK=off go vet -trimpath -buildvcs=false ./...
	cd components/fleet-peer && CGO_ENABLED=0 GOWORK=off go vet -trimpath -buildvcs=false ./...
	cd components/gateway-services && CGO_ENABLED=0 GOWORK=off go vet -tags no_fs_access -trimpath -buildvcs=false ./...
	cd components/gateway-services && CGO_ENABLED=0 GOWORK=off go test -tags no_fs_access -trimpath -buildvcs=false ./...

# As the tests are compiled, and linted on the way: nothing is built twice, and nothing checked that is compiled anyway. With a test
# along, libraries have the features that tests need; without one, half of the packages would be compiled once more for the tests.
program: check-format
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/rustc-with-lints.sh $(CARGO) build --locked $(SIMULATIONS) --workspace --bin meshmeter --test scale

# Go compiles beside it.
lint-and-compile:
	@$(MAKE) --no-print-directory --jobs 1 shellcheck limits
	@scripts/tests.py build $(SIMULATIONS)

# The real components, once per version: the first time minutes, later a second. `make test` needs some of them.
quick-components: program
	$(TEST_PROGRAM) lab install --from-source envoy etcd kube-apiserver istiod pilot-agent istio-files
	scripts/cluster.sh install

components: program
	$(TEST_PROGRAM) lab install --from-source
	scripts/cluster.sh install --all
