# Everything a new machine needs is Python 3.11 to 3.13, Java 17 or newer (docs/local-stack.md#java), and Maven.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DONE   := $(VENV)/.installed
HELM   := $(VENV)/helm-3.22.0/helm
# tests/lanes.py says what stays together. Two cores, four workers: most of them wait for servers.
SPREAD := --numprocesses=4 --no-loadscope-reorder

# Of the command line only: a variable PINOT of the environment may be something else.
ON_PINOT := $(if $(filter command,$(firstword $(origin PINOT))),--pinot '$(PINOT)')

# The tests start hundreds of processes: without stored bytecode each would compile the program anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo realtime-demo audit-demo evolve-demo pack-demo test test-all oracle oracle-1.6 ui-test postgres-test clouds-test helm-test old-spark-test pauseless-test crash-matrix soak mutants size bench-build bench-floor bench-plan bench-sensor bench-spark bench-push bench-dagster bench-cli bench-location bench-memory bench-small bench-files bench-pack bench-layout simulate-demo docs check dev down lock audit-deps smoke smoke-lowest sbom release clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9.-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(DONE) ## Install the locked dependencies and this package into .venv

$(DONE): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	  echo "Python 3.11, 3.12 or 3.13 is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "The virtual environment could not be made. On Debian and Ubuntu, install the package python3-venv."; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock || { \
	  echo "The dependencies could not be installed. Check the network and the disk, then run make again: it continues from there."; exit 1; }
	@rm -rf build
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(DONE) ## Run the main job on real data, on a local Pinot of its own, and show what happened (PINOT=1.5.1: on that release)
	@$(BIN)/python -m demos story $(ON_PINOT)

realtime-demo: $(DONE) ## Take the deep store, then a server, from a REALTIME table on Kafka, and show what happened (six minutes)
	@$(BIN)/python -m demos realtime

audit-demo: $(DONE) ## Lose half of a file's rows in three ways; each tier of the audit stops one of them (three minutes)
	@$(BIN)/python -m demos audit $(ON_PINOT)

evolve-demo: $(DONE) ## Change a published table in five ways under query load: index, column, filter, type, and back (four minutes)
	@$(BIN)/python -m demos evolve $(ON_PINOT)

pack-demo: $(DONE) ## Let 5,000 small files arrive, be rewritten and deleted under query load; few segments (four minutes)
	@$(BIN)/python -m demos pack $(ON_PINOT)

test: check ## Run all tests, integration included, after the static checks
	@$(BIN)/pytest $(SPREAD) --maxfail=20

test-all: check ## The same, and what takes too long for every landing: tests/slow, tests/pauseless, all of each kind (an hour)
	@$(BIN)/pytest $(SPREAD) --maxfail=20 --whole --override-ini='norecursedirs=tests/ui tests/clouds tests/helm .* __pycache__'

mutants: $(DONE) ## Plant 60 defects, one at a time, and count how many of them the tests find (hours; continues where it was stopped)
	@PYTHONPATH=tests $(BIN)/python -m mutants $(ARGS)

oracle: $(DONE) ## Compare 500 generated tables with Pinot's own builder, byte for byte (ten minutes)
	@ORACLE_EXAMPLES=500 $(BIN)/pytest tests/oracle

oracle-1.6: $(DONE) ## Compare with the builder of a compiled source of Pinot 1.6, named by PINOT_ORACLE_HOME (ten minutes)
	@ORACLE_EXAMPLES=500 $(BIN)/pytest tests/oracle/newest_source.py tests/oracle/test_generated_tables.py

postgres-test: $(DONE) ## Run one table with Dagster on Postgres (needs Debian's package postgresql)
	@$(BIN)/pytest tests/postgres/whole_run.py

clouds-test: $(DONE) ## Hold ADLS to the contract of object stores, on Azurite (needs Node.js)
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/azurite azurite@3.35.0
	@AZURITE=$(VENV)/azurite/node_modules/.bin/azurite-blob $(BIN)/pytest tests/clouds

helm-test: $(DONE) $(HELM) ## Check the chart for Kubernetes: Helm, schemas, what Dagster and Spark make of it (needs Go; five minutes)
	@$(PYTHON) -m venv $(VENV)/kubernetes-validate
	@$(VENV)/kubernetes-validate/bin/python -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
	@HELM=$(abspath $(HELM)) KUBERNETES_VALIDATE=$(abspath $(VENV))/kubernetes-validate/bin/kubernetes-validate \
	  $(BIN)/pytest tests/helm

$(HELM):
	@command -v go >/dev/null || { \
	  echo "Helm is built with Go, which is not installed. Install Go 1.26 or newer, then run make helm-test again."; exit 1; }
	@echo "building Helm into $(@D) (a few minutes the first time)"
	@GOBIN=$(abspath $(@D)) go install helm.sh/helm/v3/cmd/helm@v$(patsubst $(VENV)/helm-%/helm,%,$@)

old-spark-test: $(DONE) ## Run what touches Spark on Spark 3.5 (needs Python 3.11, its last one)
	@sed -E '/^ |^#/d; s/ \\$$//; s/\[[^]]*\]//; /^(pyspark|py4j)==/d' requirements.lock > $(VENV)/constraints.txt
	@python3.11 -m venv $(VENV)/spark35
	@$(VENV)/spark35/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint $(VENV)/constraints.txt --editable '.[dev,avro,sql]' 'pyspark<3.6'
	@$(VENV)/spark35/bin/pytest -W 'ignore:unclosed <socket:ResourceWarning' tests/contract/test_builder.py \
	  tests/integration/test_spark_build.py tests/slow/test_spark_cluster.py tests/integration/test_spark_functions.py \
	  tests/integration/test_spark_sql.py

pauseless-test: $(DONE) ## Kill servers of pauseless tables on Pinot 1.5.1 where that takes long (half an hour, needs javac)
	@$(BIN)/pytest tests/pauseless

size: $(DONE) ## Count statements, lines and docstrings of the wheel, and of what left it
	@$(BIN)/python -m tools.size

crash-matrix: $(DONE) ## Kill a driver at each of its effects, and servers at each state (an hour or two)
	@PYTHONPATH=tests $(BIN)/python -m crash $(ARGS)

soak: $(DONE) ## Change files and kill processes for 20 minutes while queries run, then compare all rows (ARGS="--minutes 90 --seed 1")
	@PYTHONPATH=tests $(BIN)/python -m soak $(ARGS)

bench-build: $(DONE) ## Measure building a segment against Pinot's own builder (ten minutes, needs javac)
	@$(BIN)/python -W ignore benchmarks/segment_build.py

bench-floor: $(DONE) ## Measure the whole writer against the part of its work that no library can leave out (three minutes; fetches polars and DuckDB; with PINOT_ORACLE_HOME Pinot 1.6, too)
	@$(PYTHON) -m venv $(VENV)/floor
	@sed -nE 's/^((pyarrow|isal)==[^ ]+).*/\1/p' requirements.lock > $(VENV)/floor.txt
	@$(VENV)/floor/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/floor.txt polars==2.1.0 duckdb==2.0.1
	@PYTHONPATH=tests $(BIN)/python -W ignore benchmarks/floor.py $(abspath $(VENV))/floor/bin/python $(ARGS)

bench-memory: $(DONE) ## Measure the memory of a worker over csv files of 13, 79 and 300 columns (three minutes; ARGS="--megabytes 100")
	@$(BIN)/python -W ignore benchmarks/worker_memory.py $(ARGS)

bench-plan: $(DONE) ## Measure what it costs to know what changed among a million objects (a few minutes)
	@$(BIN)/python -W ignore benchmarks/plan_listing.py

bench-sensor: $(DONE) ## Measure a sweep of the files sensor over a million objects against listing them (a few minutes)
	@PYTHONPATH=tests $(BIN)/python -W ignore benchmarks/sensor_sweep.py

bench-spark: $(DONE) ## Measure a Spark job of ten million rows against one with Pinot's builder (ten minutes, needs javac)
	@$(BIN)/python -W ignore benchmarks/spark_ingest.py

bench-small: $(DONE) ## Measure builds of small files, and of wide ones, against Pinot's standalone job (ten minutes; ARGS="--only plain")
	@$(BIN)/python -W ignore benchmarks/small_runs.py $(ARGS)

bench-pack: $(DONE) ## Measure 20,000 files of 20 KB as packs, and queries with and without packs (ten minutes; ARGS="--files 2000 --queried 200")
	@PYTHONPATH=benchmarks $(BIN)/python -W ignore -m packs.small_files $(ARGS)

bench-layout: $(DONE) ## Measure what it costs to give each segment one partition and one day, and how many segments queries skip (five minutes; ARGS="--rows 10000")
	@PYTHONPATH=benchmarks $(BIN)/python -W ignore -m packs.layout $(ARGS)

bench-files: $(DONE) ## Measure what each of 3,000 small files costs beyond its rows (five minutes; ARGS="--files 300")
	@$(BIN)/python -W ignore benchmarks/file_cost.py $(ARGS)

bench-push: $(DONE) ## Measure a push in batches against one upload a segment, on a controller of Pinot 1.5.1
	@PYTHONPATH=tests $(BIN)/python -W ignore benchmarks/segment_push.py

bench-dagster: $(DONE) ## Measure Dagster with thousands of files: the figures of docs/scale.md (a quarter of an hour)
	@PYTHONPATH=tests $(BIN)/python -W ignore benchmarks/dagster_scale.py

bench-cli: $(DONE) ## Measure the start of commands against a former commit (five minutes; ARGS="--before REVISION")
	@PYTHONPATH=tests $(BIN)/python -W ignore benchmarks/start_up.py $(ARGS)

bench-location: $(DONE) ## Measure a code location of 500 tables against one of plain Dagster (half an hour)
	@PYTHONPATH=tests $(BIN)/python -W ignore benchmarks/location_scale.py $(ARGS)

simulate-demo: $(DONE) ## Simulate a day of 100 REALTIME tables with an outage of the deep store; plots in docs/simulate
	@$(BIN)/pinot-assets simulate --plots docs/simulate

docs: $(DONE) ## Build docs/ into site/, and stop at any warning or link that leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html; with its search: python3 -m http.server --bind 127.0.0.1 --directory site"

ui-test: $(DONE) ## Drive a session in the Dagster UI with a browser, and take the docs' screenshots (needs Chromium)
	@$(BIN)/pytest tests/ui

check: $(DONE) ## Lint, formatting, types, and who imports whom
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@rm -rf build .mypy_cache/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --target .mypy_cache/installed .
	@rm -rf build
	@ln -s ../../benchmarks ../../demos ../../tests ../../tools .mypy_cache/installed/
	@cd .mypy_cache/installed && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../cache
	@cd .mypy_cache/installed && ../../$(BIN)/lint-imports ../../pyproject.toml --cache-dir ../imports --no-logo

dev: $(DONE) ## Start the local stack, sample data and the Dagster UI, and leave them running
	@$(BIN)/pinot-assets dev

down: $(DONE) ## Stop what `make dev` started; the data stay
	@$(BIN)/pinot-assets down

lock: $(DONE) ## Resolve the dependencies anew into requirements.lock and deploy/requirements.lock (needs uv)
	@uv pip compile pyproject.toml --extra dev --extra kubernetes --extra postgres --python-version 3.11 --universal \
	  --no-strip-extras --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.lock
	@uv pip compile pyproject.toml deploy/build.in --extra avro --extra kubernetes --extra postgres --extra simulate --extra sql \
	  --python-version 3.11 --universal --no-strip-extras --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --quiet --constraint requirements.lock --output-file deploy/requirements.lock

audit-deps: ## Look for known vulnerabilities of the locked dependencies (asks PyPI)
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	@$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock

# Programs of a release, in environments of their own, so that they are not among the locked dependencies.
UV            := $(VENV)/uv/bin/uv
RELEASE_TOOLS := $(VENV)/release/bin

$(UV):
	@$(PYTHON) -m venv $(VENV)/uv
	@$(VENV)/uv/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9

$(RELEASE_TOOLS)/twine:
	@$(PYTHON) -m venv $(VENV)/release
	@$(RELEASE_TOOLS)/python -m pip install --quiet --disable-pip-version-check \
	  build==1.6.1 cyclonedx-bom==7.5.0 setuptools==84.2.1 twine==7.0.0

smoke smoke-lowest: $(DONE) $(UV)
	@rm -rf build $(VENV)/wheel
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(VENV)/wheel .
	@rm -rf build
	@$(BIN)/python -m tools.smoke $(UV) $(if $(findstring lowest,$@),lowest,newest) $(VENV)/wheel/*.whl

smoke: ## Install the wheel into a new environment of each Python that it allows and this machine has, and try it there
smoke-lowest: ## The same with the lowest versions of the dependencies that pyproject.toml names

sbom: $(RELEASE_TOOLS)/twine ## Write dist/sbom.cdx.json: the locked dependencies of the image, as CycloneDX
	@mkdir -p dist
	@$(RELEASE_TOOLS)/cyclonedx-py requirements deploy/requirements.lock --pyproject pyproject.toml \
	  --output-reproducible --output-format JSON --output-file dist/sbom.cdx.json

release: $(DONE) $(RELEASE_TOOLS)/twine ## Check, build and tag the version of pyproject.toml; wheel, sdist, SBOM and notes are in dist/
	@$(BIN)/python -m tools.release check
	@$(MAKE) --no-print-directory check sbom
	@$(BIN)/python -m tools.release build $(RELEASE_TOOLS)

clean: ## Remove the virtual environment and what tools left
	@rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info .mutants
