# Everything is set up by the targets themselves: `make demo` and `make test` work on a fresh clone.
# The first Python that runs and is new enough (a version manager may offer names that do not).
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# As many as there are processors: much of what is tested waits for other processes.
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
FRAMEWORKS := .venv-frameworks
FOREIGN := tests/foreign/node_modules

.PHONY: demo test frameworks foreign pythons check bench docs fuzz format clean browser

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "flakestorm needs Python 3.11 or newer; none was found" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable '.[demo]' --group dev
	touch $@

# Agent frameworks bring hundreds of megabytes and opinions on versions, so they live apart. The list is complete: no
# resolver runs, and flakestorm itself is installed as it stands.
$(FRAMEWORKS)/.installed: tests/agents/requirements.txt pyproject.toml
	test -x $(FRAMEWORKS)/bin/python || $(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(FRAMEWORKS)/bin/python -m pip install --quiet --no-deps --requirement tests/agents/requirements.txt
	$(FRAMEWORKS)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

# What agents in Node are tried with; only where Node is, and the tests say so where it is not.
$(FOREIGN)/.installed: tests/foreign/package.json tests/foreign/package-lock.json
	cd tests/foreign && npm ci --no-audit --no-fund
	touch $@

# The same seed must give the same faults on every Python there is here: an environment for each of the others, found on
# the path or where pyenv keeps them.
other = $(shell for p in python3.$(1) $$HOME/.pyenv/versions/3.$(1).*/bin/python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, $(1)))' 2>/dev/null && echo $$p && break; done)
RUNNING = $(shell $(PYTHON) -c 'import sys; print(sys.version_info[1])')
OTHERS = $(foreach v,$(filter-out $(RUNNING),11 12 13 14),$(if $(call other,$(v)),$(v)))
pythons:    ## an environment for every other Python that is here
	@for v in $(OTHERS); do $(MAKE) --no-print-directory .venv-3.$$v/.installed || exit 1; done

.venv-3.%/.installed: pyproject.toml
	test -x .venv-3.$*/bin/python || $(call other,$*) -m venv .venv-3.$*
	.venv-3.$*/bin/python -m pip install --quiet --editable .
	touch $@

foreign:    ## the packages of the tests with agents in Node
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(FOREIGN)/.installed; \
		else echo "no npm here: the tests with agents in Node will be skipped"; fi

demo: $(STAMP)            ## the bundled agent, tools and model end to end
	$(BIN)/flakestorm demo

test: $(STAMP) browser frameworks foreign pythons    ## every test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

# What frameworks warn of and leave open is their affair, hence -W default.
frameworks: $(FRAMEWORKS)/.installed    ## the tests with real agent frameworks alone
	$(FRAMEWORKS)/bin/python -m pytest tests/agents -n $(JOBS) --dist loadfile -W default -W ignore::ResourceWarning -q --disable-warnings

check: $(STAMP)           ## ruff, mypy --strict, import-linter, the mirror rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/mirror.py

bench: $(STAMP)           ## every figure the documentation quotes
	$(BIN)/python -m bench

docs: $(STAMP)            ## the pages that are made from the code, and the site in site/
	$(BIN)/python -m scripts.reference
	$(BIN)/python scripts/picture.py
	$(BIN)/python scripts/links.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html --doctree-dir build/doctrees docs site

FUZZ_S ?= 300
fuzz: $(STAMP)            ## every fuzz target, FUZZ_S seconds each
	$(BIN)/python -m pip install --quiet --group fuzz
	@for target in $$($(BIN)/python -m fuzz); do $(BIN)/python -m fuzz $$target --seconds $(FUZZ_S) || exit 1; done

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A browser for the tests that drive one; they say so and are skipped where there is none and it cannot be installed.
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
		|| echo "no chromium here: browser tests will be skipped"

clean:
	rm -rf $(VENV) .venv-3.* $(FRAMEWORKS) $(FOREIGN) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis reports
