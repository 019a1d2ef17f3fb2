# make test, make quick, make run, make bench: each does all the set-up, once, in .venv.
PYTHON ?= python3
TORCH ?= torch==2.13.0
EXTRAS := dev,workers
export PYTHON TORCH
# The processes of a test run share what was compiled, and so does the next run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check-python test quick thorough lint types wild bench endings doors faults fuzz soak run app pictures messages reference docs clean
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
# What the installation depends on; the stamp holds its checksum, so a moved checkout,
# another torch or a changed requirement installs again and nothing else does.
INPUTS := pyproject.toml tests/softmps/pyproject.toml tests/appkit/install.py tests/install_from_npm.py packaging/trainer-requirements.txt Makefile
WANT = $$( { echo "$(CURDIR) $(PYTHON) $(TORCH)"; cat $(INPUTS); } | cksum)

help:
	@echo "make run       mpsbar at work, with small real workers"
	@echo "make test      lint, types and tests; with ARGS=\"tests/agent -k fork\" only those tests"
	@echo "make quick     lint, types and the tests that start no process and import no torch: about a minute"
	@echo "make thorough  the largest tests whole: 2,000 frees under load, 10,000 polls, more Pythons, 200 random networks"
	@echo "make wild      real programs beside mpsbar, in .venv-wild (some GB); ARGS=\"ray_actor dask_cluster\" for some"
	@echo "make bench     the figures, as ratios from one run"
	@echo "make endings   350 real workers ended in every way, and what mpsbar says of each"
	@echo "make doors     attacks by another user, with figures (root); make faults, soak, fuzz: more of them"
	@echo "make app       dist/mpsbar.app, a zip and a disk image, on a Mac (./build_app.sh --help)"
	@echo "make pictures  the README's pictures of the menu, of top and of the report, by Chromium; ARGS=top for some"
	@echo "make docs      the documentation as a site, build/site; make reference: what is made from the code"
	@echo "make messages  the translations brought up to date with the texts in the code; NEW=ja adds a language"
	@echo "make setup     only the set-up the others begin with; PYTHON=… and TORCH=… can be set"
	@echo "make clean     remove .venv and what was built"

check-python:
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { echo "mpsbar: no '$(PYTHON)' was found: install Python 3.10 or newer, or name one: make PYTHON=/path/to/python3"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "mpsbar: $$("$(PYTHON)" --version 2>&1) is too old, 3.10 or newer is needed: make PYTHON=python3.11"; exit 1; }
	@"$(PYTHON)" -c 'import venv' 2>/dev/null || { echo "mpsbar: this Python has no venv module: on Debian and Ubuntu, apt-get install python3-venv"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || { echo "mpsbar: this Python cannot put pip into a venv (no ensurepip): on Debian and Ubuntu, apt-get install python3-venv"; exit 1; }

setup: check-python
	@if [ "$$(cat $(VENV)/ready 2>/dev/null)" != "$(WANT)" ] || ! $(PY) -c pass 2>/dev/null; then $(MAKE) --no-print-directory install; fi
	@(cd / && "$(CURDIR)/$(PY)" -c 'import mpsbar') 2>/dev/null || { echo "mpsbar: the editable install in .venv is not found by Python. On macOS its .pth file may carry the hidden flag: chflags -R nohidden .venv; else: make clean setup"; exit 1; }
	@$(PY) -m softmps build --if-possible

.PHONY: install wanted
# What the stamp must hold for nothing to be installed.
wanted:
	@echo "$(WANT)"

install:
	@echo "mpsbar: setting up .venv (torch, a few hundred MB: some minutes the first time)"
	@rm -f $(VENV)/ready
	@$(PY) -c pass 2>/dev/null || { rm -rf $(VENV); "$(PYTHON)" -m venv $(VENV); }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip >/dev/null || { echo "mpsbar: .venv has no pip and ensurepip failed: make clean setup"; exit 1; }
	$(PY) -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r packaging/trainer-requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e tests/softmps
	$(PY) tests/appkit/install.py
	$(PY) tests/install_from_npm.py
	@echo "$(WANT)" > $(VENV)/ready

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: setup
	$(PY) -m mypy

# Tests mostly wait, for their workers or a screen: `auto` is five processes on two cores (tests/conftest.py).
PYTEST = $(PY) -m pytest -n auto --dist loadgroup

test: $(if $(ARGS),setup,lint types)
	$(PYTEST) $(ARGS)

quick: lint types
	$(PYTEST) -m "not starts_processes" $(ARGS)

# What `make test` runs in a small form, whole: tests/thorough.py; and more examples of Hypothesis.
thorough: setup
	$(PYTEST) --thorough -m "thorough or hypothesis" $(ARGS)

run: setup
	@$(PY) -m mpsbar demo

WILD := .venv-wild
WILD_PY := $(WILD)/bin/python
WILD_WANT = $$( { echo "$(CURDIR) $(PYTHON) $(TORCH)"; cat tests/wild/requirements.txt; } | cksum)

# torch first and held there: some of them would bring another.
wild: setup
	@test -x $(WILD_PY) || "$(PYTHON)" -m venv $(WILD)
	@echo "$(TORCH)" > $(WILD)/torch.txt
	@if [ "$$(cat $(WILD)/ready 2>/dev/null)" != "$(WILD_WANT)" ]; then \
	  echo "mpsbar: setting up $(WILD) (some GB: many minutes the first time)"; rm -f $(WILD)/ready; \
	  $(WILD_PY) -m pip install --quiet --disable-pip-version-check "$(TORCH)" setuptools && \
	  $(WILD_PY) -m pip install --quiet --disable-pip-version-check -c $(WILD)/torch.txt -r tests/wild/requirements.txt && \
	  $(WILD_PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e tests/softmps && \
	  echo "$(WILD_WANT)" > $(WILD)/ready; fi
	@$(WILD_PY) -m softmps build --if-possible
	@PYTHONPATH=tests $(PY) -m wild $(WILD_PY) $(ARGS)

bench: setup
	@PYTHONPATH=tests $(PY) -m bench $(ARGS)

# 300 workers that end while mpsbar runs, 50 while it does not; some minutes. The cgroup needs root.
endings: setup
	@PYTHONPATH=tests $(PY) -m endings $(ARGS)

# Attacks with figures: tried, survived, lost. SCALE=1 is the whole of faults, SECONDS=1800 that of soak.
SCALE ?= 1
SECONDS ?= 1800
RUNS ?= 700000
doors: setup
	@PYTHONPATH=tests $(PY) -m trust doors

faults: setup
	@PYTHONPATH=tests $(PY) -m trust faults $(SCALE)

soak: setup
	@PYTHONPATH=tests $(PY) -m trust soak $(SECONDS)

fuzz: setup
	@$(PY) -c 'import atheris' 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check "atheris>=3"
	@PYTHONPATH=tests $(PY) -m fuzz $(RUNS) $(ARGS)

app:
	@./build_app.sh

pictures: setup
	@$(PY) packaging/draw_pictures.py docs $(ARGS)

# Schemas of the JSON, man page, completions, docs/reference.
reference: setup
	@$(PY) packaging/build_reference.py

docs: setup
	@$(PY) packaging/build_docs.py

messages: setup
	@$(PY) packaging/update_messages.py $(NEW)

clean:
	rm -rf $(VENV) $(WILD) build dist *.egg-info tests/softmps/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
