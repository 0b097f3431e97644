# One command for each habit. Every one of them sets up what it needs the first time: see scripts/setup.

SHELL := bash
.DEFAULT_GOAL := help

# Tests run in two processes, each with a Spark of its own; a file's tests stay together. `make test WORKERS=1` for one.
WORKERS := 2
PYTEST := -m pytest -n $(WORKERS) --dist loadfile

READY := .venv/.ready
SETUP_INPUTS := pyproject.toml constraints.txt scripts/setup

# The Spark releases that `make test-matrix` tests against: the pinned one, and the newest of the lines around it.
MATRIX := 4.1 4.2 4.3
PYSPARK_4.1 := 4.1.4
PYSPARK_4.2 := 4.2.0
PYSPARK_4.3 := 4.3.0
MATRIX_TESTS := $(MATRIX:%=test-spark-%)

.PHONY: help demo test test-all test-matrix fuzz $(MATRIX_TESTS) lint format tpcds-data bench docs clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## see it work, in a minute or two
	@source .venv/environment.sh && .venv/bin/slackwater demo

test: $(READY) ## run the tests, but for the slow ones
	@source .venv/environment.sh && .venv/bin/python $(PYTEST) -m "not slow"

test-all: $(READY) ## run all tests, the fuzzer and both benchmark suites among them
	@if [ "$(SKIP_TPCDS)" = 1 ]; then echo "==> the tests of TPC-DS are skipped if their data is not there"; \
	else $(MAKE) --no-print-directory tpcds-data || { echo "==> SKIP_TPCDS=1 goes on without TPC-DS" >&2; exit 1; }; fi
	@source .venv/environment.sh && .venv/bin/python $(PYTEST)

fuzz: $(READY) ## look for wrong answers with 10,000 random cases and 500 on Spark
	@source .venv/environment.sh && .venv/bin/python -m tests.fuzz

test-matrix: ## run the tests against each supported Spark
	@$(MAKE) --no-print-directory --keep-going -j1 $(MATRIX_TESTS)

lint: $(READY) ## check style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: $(READY) ## put imports and layout in order
	.venv/bin/ruff check --select I --fix .
	.venv/bin/ruff format .

tpcds-data: $(READY) ## make the small TPC-DS data that its tests need
	@source .venv/environment.sh && .venv/bin/slackwater bench tpcds-data

bench: $(READY) ## run TPC-H at scale factor 1
	@source .venv/environment.sh && .venv/bin/slackwater bench tpch --sf 1

docs: $(READY) ## check the links and the code blocks in the documentation
	@.venv/bin/python scripts/check_docs.py

clean: ## remove the environments and everything generated
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MATRIX_TESTS): test-spark-%: .venv-%/.ready
	@echo "==> PySpark $(PYSPARK_$*)"
	@source .venv-$*/environment.sh && .venv-$*/bin/python $(PYTEST) -m "not slow"

$(READY): $(SETUP_INPUTS)
	@scripts/setup

.venv-%/.ready: $(SETUP_INPUTS)
	@VENV=.venv-$* PYSPARK=$(PYSPARK_$*) scripts/setup
