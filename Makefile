# One command each; plain `make` lists them. Needs Python 3.11 or newer and nothing else.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.tests_compiled
N ?= 1000
EXAMPLES ?= 10
KILLS ?= 50
SEEDS ?= 100
WORKERS ?= 5
FAST_WORKERS ?= 3
TESTS ?=
BENCHMARKS := step_cost versus_structured_streaming long_run scheduling_decisions simulator_speed \
  arrow_expressions placement small_steps step_growth cluster registration linear_road \
  virtual_operators profiling live_burst live_hmts prediction deciding many_queries shared_join \
  window_lengths serve_load language nexmark connectors constraints overload page durability
export PYTHONUTF8 := 1
export PYTHONDONTWRITEBYTECODE := # tests start many processes: none compiles what another has compiled

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast check docs-check format fuzz bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## create .venv with everything in it, so that .venv/bin/millpond works

$(STAMP): pyproject.toml constraints.txt
	@for python in "$(PYTHON)" python3.11 python3.12 python3.13 python3; do \
	  [ -n "$$python" ] || continue; \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    test -x $(BIN)/pip || "$$python" -m venv $(VENV) || exit 1; \
	    break; \
	  fi; \
	done; \
	test -x $(BIN)/pip || { echo 'make: Python 3.11 or newer is needed (set PYTHON=/path/to/python)' >&2; exit 1; }
	@echo 'Installing into $(VENV) ...'
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## live queries over bursty traffic in a browser; as moving text where there is none, about a minute
	@$(BIN)/millpond demo

# Once, by one process: five that begin together would each compile all tests for themselves.
$(COMPILED): $(STAMP)
	@echo 'Compiling the tests ...'
	@$(BIN)/pytest --collect-only -q > /dev/null 2>&1 || true
	@touch $@

test: $(COMPILED) ## all tests, in five processes, which wait for half of their time; what failed is named last (TESTS='-m spark' chooses)
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

test-fast: $(COMPILED) ## the quick tests that need no JVM, about two minutes
	$(BIN)/pytest -m 'not spark and not slow' -n $(FAST_WORKERS) --dist worksteal

check: $(STAMP) docs-check ## ruff, mypy --strict, import contracts, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs-check: $(STAMP)
	$(BIN)/python tests/docs/check_docs.py

format: $(STAMP) ## put all files into the agreed form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(STAMP) ## fresh examples for the property tests (EXAMPLES=10 times as many), then N=1000 random queries beside the reference and beside PostgreSQL, KILLS=50 cases of constraints, all that the lab says on all its seeds, KILLS=50 kills of each that has a ledger, 2000 damaged stores, 2000 losses of power, bounds of SEEDS=100 samples, all fixtures where overload may be approximated, and all attacks on a server
	MILLPOND_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -m 'hypothesis and not spark' -n 2
	MILLPOND_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/spark/test_schedule_independence.py tests/test_all_or_nothing.py tests/server/test_accessible.py
	$(BIN)/python -m tests.fuzz --n $(N)
	$(BIN)/python -m tests.fuzz --n $(N) --queries 50 --sharing
	$(BIN)/python -m tests.fuzz --n $(N) --coming
	$(BIN)/python -m tests.postgres_oracle --n $(N)
	$(BIN)/python -m tests.constrained --n $(KILLS)
	$(BIN)/millpond lab verify
	$(BIN)/python -m tests.kills --n $(KILLS)
	$(BIN)/python -m tests.resident_kills --n $(KILLS)
	$(BIN)/python -m tests.connectors.kafka_kills --n $(KILLS)
	$(BIN)/python -m tests.connectors.joined_kills --n $(KILLS)
	$(BIN)/python -m tests.connectors.mqtt_kills --n $(KILLS)
	$(BIN)/python -m tests.connectors.postgres_kills --n $(KILLS)
	$(BIN)/python -m tests.connectors.source_kills --n $(KILLS)
	$(BIN)/python -m tests.object_kills --n $(KILLS)
	$(BIN)/python -m tests.object_faults --n $(N)
	$(BIN)/python -m tests.damage --n 2000
	$(BIN)/python -m tests.power --n 2000
	$(BIN)/python -m tests.covering --seeds $(SEEDS)
	$(BIN)/python -m tests.ample
	$(BIN)/python -m tests.attacks

bench: $(STAMP) ## the benchmarks, one JSON line a case
	@for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name || exit 1; done

clean: ## remove everything that was made
	rm -rf $(VENV) build dist out spark-warehouse *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
