# Everything here sets itself up: a bare checkout and `make demo` is enough.
# PYTHON=… picks the interpreter, JOBS=… the processes for tests without Spark, SPARK_JOBS=… those for tests with it, PYTEST_ARGS=… is handed to pytest.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= auto
# Each has a JVM and its workers; a stream mostly waits for commits to the disk.
SPARK_JOBS ?= 2
PYTEST_ARGS ?=
FUZZ_EXAMPLES ?= 5000
FAULT_KILLS ?= 8

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-spark test-faults soak check lint bench fuzz clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with all that is needed, find a Java, and compile the engine's loops

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@PYTHON="$(PYTHON)" sh scripts/setup $(VENV)
	@touch $@

demo: $(STAMP) ## find the planted violations in a generated hospital day, on Spark
	$(BIN)/eventcube demo

test: test-fast test-spark test-faults ## run all tests

test-fast: $(STAMP) ## run the tests that need no Spark, in parallel
	$(BIN)/python -m pytest -n $(JOBS) -m "not spark and not faults" $(PYTEST_ARGS)

test-spark: $(STAMP) ## run the tests that need Spark
	$(BIN)/python -m pytest -n $(SPARK_JOBS) --dist loadfile -m spark $(PYTEST_ARGS)

test-faults: $(STAMP) ## kill, fill and feed streams as in production, for some minutes
	$(BIN)/python -m pytest -n $(SPARK_JOBS) --dist loadfile -m faults $(PYTEST_ARGS)

soak: $(STAMP) ## the same at length: FAULT_KILLS=… in each test that kills, at other moments with FAULT_SEED=…
	FAULT_KILLS=$(FAULT_KILLS) $(BIN)/python -m pytest -m faults -rP $(PYTEST_ARGS)

lint: $(STAMP) ## format, lint, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

# CI runs the tests first, as the README's command, and then `make check TESTED=1`.
check: lint $(if $(TESTED),,test) ## all that CI checks: lint and tests

bench: $(STAMP) ## compare the engine with DuckDB on one core (results in out/bench)
	$(BIN)/eventcube bench engine

fuzz: $(STAMP) ## random queries against the oracle, at length: FUZZ_EXAMPLES=… for each test
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n $(JOBS) -m "not spark" tests/property tests/differential $(PYTEST_ARGS)

clean: ## remove everything that was built or generated
	rm -rf $(VENV) out build dist spark-warehouse metastore_db .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
