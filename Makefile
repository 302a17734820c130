# Two commands do everything: `make demo` and `make test`. Both install what is missing first and say what they install.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo image dist dist-check schema setup-dist build test everyday check-format clippy deny shellcheck vet lint unit components audit bench fmt clean setup-demo setup-test

CARGO ?= cargo

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup-demo ## Build, fetch Envoy, measure what a sidecar costs, say where the report is
	@scripts/demo.sh

test: setup-test lint unit ## Formatting, lints, licences, all tests

everyday: setup-test check-format clippy components ## The tests of minutes: no real Istio, no cluster, no benchmarks
	@CARGO=$(CARGO) scripts/tests.sh --everyday

lint: check-format clippy deny shellcheck vet ## Formatting, lints and licences alone

bench: setup-test build ## Benchmarks (minutes; leave the machine alone meanwhile)
	$(CARGO) bench --locked --workspace --no-fail-fast --bench '*'

image: setup-dist ## An image for clusters, of a static program, and its bill of materials: target/image/
	@CARGO=$(CARGO) scripts/image.sh $(addprefix --architecture ,$(ARCHITECTURES))

dist: setup-dist ## What is shipped: archive, Debian package, wheel, image, bill of materials, sums: target/dist/
	@CARGO=$(CARGO) scripts/dist.sh $(addprefix --architecture ,$(ARCHITECTURES))

dist-check: dist ## Install each package into an empty folder and run a study from there
	@CARGO=$(CARGO) scripts/dist/check.sh

schema: ## The JSON Schemas in docs/schema, after a change to keys
	$(CARGO) run --locked --quiet --bin meshmeter -- schema experiment >docs/schema/experiment.json
	$(CARGO) run --locked --quiet --bin meshmeter -- schema topology >docs/schema/topology.json

audit: ## Known vulnerabilities of dependencies (needs the network)
	scripts/cargo-deny.sh check advisories

fmt: ## Format the code
	$(CARGO) fmt --all

clean: ## Remove everything built here; runs/ and the installed components stay
	$(CARGO) clean
	rm -rf .tools

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

deny:
	scripts/cargo-deny.sh --log-level error check bans licenses sources

shellcheck:
	shellcheck scripts/*.sh scripts/*/*.sh .ci/run

# With the options of `meshmeter lab install`: what that has compiled is not compiled again.
vet: components
	cd components/istio && CGO_ENABLED=0 GOWORK=off go vet -trimpath -buildvcs=false ./...
	cd components/cluster-tools && CGO_ENABLED=0 GOWORK=off go vet -trimpath -buildvcs=false ./...
	cd components/fleet-peer && CGO_ENABLED=0 GOWORK=off go vet -trimpath -buildvcs=false ./...
	cd components/gateway-services && CGO_ENABLED=0 GOWORK=off go vet -tags no_fs_access -trimpath -buildvcs=false ./...
	cd components/gateway-services && CGO_ENABLED=0 GOWORK=off go test -tags no_fs_access -trimpath -buildvcs=false ./...

unit: components
	@CARGO=$(CARGO) scripts/tests.sh

# In the profile of the tests: nothing is built twice. The first time, a quarter of an hour on two cores; later, a second.
components:
	$(CARGO) run --locked --quiet --bin meshmeter -- lab install --from-source
	scripts/cluster.sh install
