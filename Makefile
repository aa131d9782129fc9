# Every target can be run by itself; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
PY := $(BIN)/python
export PYTHONHASHSEED := 0
SEEDS ?= 10000
JOBS ?= 2

.PHONY: help setup demo demo-catalog test lint types contract tests coverage stores mutants crashpoints kill soak conformance rck contract-matrix bench lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

setup: ## check the system, make .venv, install the locked packages (a second run does nothing)
	@tools/setup.sh

demo: setup ## the main job, on a folder: the example pipeline on Spark, its tables read by any Iceberg client
	@tools/demo.sh

demo-catalog: setup ## the Iceberg catalog alone: PyIceberg, DuckDB and the shell, in a minute
	$(PY) examples/catalog_tour.py

test: setup lint types contract tests ## everything a change must pass

lint: setup ## formatting and lint rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup ## strict types
	$(BIN)/mypy

contract: setup ## the order of the rooms; the API and the events against the last release (contracts/)
	$(BIN)/lint-imports
	$(PY) tools/contracts.py

tests: setup ## the test suite and the simulation campaigns
	@tools/jars.sh
	@tools/tests.sh

coverage: setup ## the same with branch coverage; it takes longer
	@tools/jars.sh
	@COVERAGE=1 tools/tests.sh

stores: setup ## the contract on the store servers that need Node or Go
	@tests/servers/build.sh
	$(BIN)/pytest -m stores

mutants: setup ## plant every known bug; each must be caught
	$(PY) -m arco_sim mutants

crashpoints: setup ## every step of every scenario × every fault, then every pair
	$(PY) -m arco_sim crashpoints all --pairs-max 15000

kill: setup ## processes killed at random: while they increment one object, servers under load, runs at every step
	$(PY) -m tests.integration.kill_rounds --rounds 200
	$(PY) -m tests.integration.server_kill_rounds --rounds 100 --store local
	$(PY) -m tests.integration.server_kill_rounds --rounds 50 --store local --takeover-s 1
	$(PY) -m tests.integration.server_kill_rounds --rounds 20 --store s3
	EVERY_PLACE=1 $(BIN)/pytest tests/integration/test_servo_killed.py

soak: setup crashpoints mutants kill ## long campaigns: SEEDS seeds of every scenario (default 10000), kill rounds
	$(PY) -m arco_sim run all --seeds 1..$(SEEDS) --jobs $(JOBS)

conformance: setup contract-matrix rck ## what others can hold us to: the store contract, Iceberg's kit, more clients (docs/conformance.md)
	$(BIN)/pytest -m conformance
	@tests/conformance/newest.sh
	@tests/conformance/spark35.sh

rck: setup ## Iceberg's REST Compatibility Kit against running servers, on a folder and on S3
	@tools/maven.sh --compiler
	$(PY) -m tests.conformance.rck

contract-matrix: setup ## print the store contract: cases × stores
	@tests/servers/build.sh
	cd tests && ../$(PY) -m behaviour.matrix

bench: setup ## storage, catalog, ledger and Servo against their limits, in one run
	$(PY) bench/storage.py
	$(PY) bench/catalog.py
	$(PY) bench/ledger.py
	$(PY) bench/planning.py
	$(PY) bench/scheduling.py
	$(PY) bench/peers.py
	$(PY) bench/checks.py
	$(PY) bench/publishing.py
	$(PY) bench/fold.py

lock: setup ## renew requirements.lock from pyproject.toml
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --python-version 3.11 --upgrade -q \
		--group dev pyproject.toml -o requirements.lock
	@! grep -nE '^--|https?://' requirements.lock

clean: ## remove what make made (tools and servers stay: .tools)
	rm -rf .venv .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
