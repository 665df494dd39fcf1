# Needs only make and one of Python 3.11 to 3.13; everything else goes into .venv.
#   make test PYTHON=/path/to/python      another interpreter
#   make test PYTEST_FLAGS="-m 'not slow'"    part of the suite
#   make test WORKERS=4                 on more processors; 0 runs it in one process
# The solvers that `make bench` races against live in an environment of their own, .venv-race.

VENV   := .venv
RACE   := .venv-race
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
RACE_PIP := $(RACE)/bin/python -m pip --quiet --disable-pip-version-check
PYTHON ?= python3.13 python3.12 python3.11 python3

WORKERS      ?= 2
PYTEST_FLAGS ?=
BENCH_FLAGS  ?=

# Real data sets for the tests that use them; those tests are skipped where there are none.
ifeq ($(origin ADASPDC_DATA),undefined)
ifneq ($(wildcard ../shared/data/.),)
export ADASPDC_DATA := $(CURDIR)/../shared/data
endif
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo docs test lint bench ratios clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed-demo ## Solve the paper's ridge problem with every method and plot it
	@$(BIN)/adaspdc demo

test: $(VENV)/.installed-test ## Run the whole test suite, slow tests included
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_FLAGS)

docs: $(VENV)/.installed-docs ## Build the site into docs/_build/html; a warning is an error
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint: $(VENV)/.installed-lint ## Check style, formatting, types and import directions
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(RACE)/.installed ## Race against other solvers and write docs/performance.md
	@PYTHONPATH=benchmarks $(RACE)/bin/python -m race $(BENCH_FLAGS)

ratios: $(VENV)/.installed-test ## Measure the speed ratios that the documentation promises
	@$(BIN)/python benchmarks/run.py $(BENCH_FLAGS)

clean: ## Remove the environments and what was built
	rm -rf $(VENV) $(RACE) docs/_build build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +

# The environment is installed once, and again whenever pyproject.toml changes.

$(VENV)/.installed-demo: EXTRA :=
$(VENV)/.installed-test: EXTRA := --group test
$(VENV)/.installed-lint: EXTRA := --group lint
$(VENV)/.installed-docs: EXTRA := --group docs

INSTALLED := $(addprefix $(VENV)/.installed-,demo docs lint test)
$(INSTALLED): $(READY) pyproject.toml
	@echo "Installing adaspdc and what it needs into $(VENV) (a minute or two) ..."
	@$(PIP) install --editable ".[demo]" $(EXTRA)
	@touch $@

# .ready holds the folder it was made in: an environment copied along with the tree would run the
# package of the old place, so it is made anew.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# An interpreter counts only if it really makes an environment: version managers leave commands that
# merely print an error, and some systems ship Python without ensurepip.
$(READY):
	@rm -f $(VENV)/.installed-*; \
	usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	if [ ! -e $(READY) ] && $(BIN)/python -c "$$usable; import pip" >/dev/null 2>&1; then \
	  found=$(BIN)/python; \
	else \
	  found=; \
	  for python in $(PYTHON); do \
	    if "$$python" -c "$$usable" >/dev/null 2>&1 \
	      && "$$python" -m venv --clear $(VENV) >/dev/null 2>&1; then found=$$python; break; fi; \
	  done; \
	fi; \
	if [ -z "$$found" ]; then \
	  echo "No usable Python 3.11, 3.12 or 3.13 (with venv and ensurepip) among: $(PYTHON)." >&2; \
	  echo "Install one (on Debian or Ubuntu also python3-venv), or name it:" >&2; \
	  echo "  make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; \
	  exit 1; \
	fi; \
	echo "Using $$found: $$($(BIN)/python --version)"
	@$(PIP) install --upgrade "pip>=25.1"
	@echo "$(CURDIR)" > $@

# The peers, one by one: what does not install here is shown as such by the race. Python 3.11 comes
# first because snapml has no wheel for 3.13. adelie needs an older NumPy than the rest.
PEERS := liblinear-official cyanure snapml skglm glum rehline
$(RACE)/.installed: pyproject.toml Makefile
	@echo "Installing the solvers to race against into $(RACE) (some minutes) ..."
	@rm -rf $(RACE); for python in python3.11 python3.12 $(PYTHON); do \
	  if "$$python" -m venv $(RACE) >/dev/null 2>&1; then break; fi; \
	done; [ -x $(RACE)/bin/python ] || { echo "No usable Python among: $(PYTHON)" >&2; exit 1; }
	@$(RACE_PIP) install --upgrade pip
	@$(RACE_PIP) install --editable . matplotlib "scikit-learn>=1.6" "threadpoolctl>=3.5"
	@for peer in $(PEERS); do $(RACE_PIP) install "$$peer" "numpy>=2" >/dev/null 2>&1 \
	  || echo "  $$peer does not install here"; done
	@$(RACE_PIP) install Cython setuptools wheel >/dev/null 2>&1 && $(RACE_PIP) install \
	  --no-build-isolation sklearn-contrib-lightning "numpy>=2" >/dev/null 2>&1 \
	  || echo "  sklearn-contrib-lightning does not install here"
	@$(RACE)/bin/python -m venv $(RACE)/adelie && $(RACE)/adelie/bin/python -m pip --quiet install \
	  --disable-pip-version-check adelie scipy threadpoolctl >/dev/null 2>&1 \
	  || echo "  adelie does not install here"
	@touch $@
