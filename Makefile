# Every target can be run by itself; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
PY := $(BIN)/python
export PYTHONHASHSEED := 0
SEEDS ?= 10000
SEEDS_OF_EVERYBODY ?= 100000
SEEDS_OF_WORKERS ?= 100000
JOBS ?= 2

.PHONY: help setup demo demo-catalog test lint types contract tests coverage stores browser mutants spec crashpoints kill description described soak conformance rck contract-matrix bench bench-catalog lock clean

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

stores: browser ## what needs Node or Go: the contract on more store servers, and the browser
	@tests/servers/build.sh
	$(BIN)/pytest -m stores

browser: setup ## a page in Chromium that asks the state by itself, with DuckDB-WASM; needs Node
	@tests/browser/build.sh
	$(BIN)/pytest -m browser tests/browser

mutants: setup ## plant every known bug; each must be caught
	$(PY) -m arco_sim mutants

spec: setup ## explore the models of the protocols exhaustively; without any one guard they must fail (docs/specs.md)
	$(PY) -m specs

crashpoints: setup ## every step of every scenario × every fault, then pairs; of one transaction all of them
	$(PY) -m arco_sim crashpoints all --pairs-max 15000
	$(PY) -m arco_sim crashpoints one_transaction --pairs-max 100000

kill: setup ## processes killed at random: while they increment one object, servers under load, runs at every step
	$(PY) -m tests.integration.kill_rounds --rounds 200
	$(PY) -m tests.integration.server_kill_rounds --rounds 50 --store local --workers 3
	$(PY) -m tests.integration.server_kill_rounds --rounds 100 --store local --spark
	$(PY) -m tests.integration.server_kill_rounds --rounds 50 --store local --takeover-s 1
	$(PY) -m tests.integration.server_kill_rounds --rounds 20 --store s3 --spark
	EVERY_PLACE=1 $(BIN)/pytest tests/integration/test_servo_killed.py tests/integration/test_servo_atomic.py \
		tests/integration/test_maintain_killed.py
	$(PY) -m tests.integration.worker_rounds --tasks 200 --disturbances 20

soak: setup description crashpoints mutants kill described ## long campaigns: SEEDS seeds of every scenario (default 10000; 100000 of everybody at once and of workers), kill rounds
	$(PY) -m arco_sim run all --seeds 1..$(SEEDS) --jobs $(JOBS)
	$(PY) -m arco_sim run everybody --seeds 1..$(SEEDS_OF_EVERYBODY) --jobs $(JOBS)
	$(PY) -m arco_sim run workers --seeds 1..$(SEEDS_OF_WORKERS) --jobs $(JOBS)

description:
	@test -f "$(ICEBERG_OPENAPI)" || { echo "set ICEBERG_OPENAPI to the path of Iceberg's rest-catalog-open-api.yaml" >&2; exit 2; }

described: setup description ## 20,000 requests made from Iceberg's REST description (ICEBERG_OPENAPI), with a token and credentials
	SCHEMATHESIS_REQUESTS=20000 $(BIN)/pytest tests/hostile/test_schemathesis.py

conformance: setup contract-matrix rck ## what others can hold us to: the store contract, Iceberg's kit, more clients (docs/conformance.md)
	$(BIN)/pytest -m conformance
	@tests/conformance/newest.sh
	@tests/conformance/spark35.sh
	@tests/conformance/flink.sh
	@tests/conformance/trino.sh

rck: setup ## Iceberg's REST Compatibility Kit against running servers, on a folder and on S3
	@tools/maven.sh --compiler
	$(PY) -m tests.conformance.rck

contract-matrix: setup ## print the store contract: cases × stores
	@tests/servers/build.sh
	cd tests && ../$(PY) -m behaviour.matrix

bench-catalog: setup ## the catalog beside Iceberg's reference server, SeaweedFS and Nessie, in one run; and what 10,000 tables take of memory
	@tools/wrk.sh
	$(PY) bench/catalog_peers.py
	$(PY) bench/memory.py

bench: setup ## storage, catalog, ledger and Servo against their limits, in one run
	$(PY) bench/storage.py
	$(PY) bench/catalog.py
	$(PY) bench/txn.py
	$(PY) bench/txn_peers.py
	$(PY) bench/ledger.py
	$(PY) bench/commands.py
	$(PY) bench/planning.py
	$(PY) bench/scheduling.py
	$(PY) bench/handover.py
	$(PY) bench/peers.py
	$(PY) bench/checks.py
	$(PY) bench/publishing.py
	$(PY) bench/fold.py
	$(PY) bench/reads.py
	$(PY) bench/visible.py
	$(PY) bench/upkeep.py

lock: setup ## renew requirements.lock from pyproject.toml
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --python-version 3.11 --upgrade -q \
		--group dev pyproject.toml -o requirements.lock
	@! grep -nE '^--|https?://' requirements.lock

clean: ## remove what make made (tools and servers stay: .tools)
	rm -rf .venv .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
