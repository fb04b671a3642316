PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
EXTRAS := molecules,drawing,excel,text,gradients,web,chemprop,shapiq,notebooks,test,docs,dev

.DEFAULT_GOAL := help
.PHONY: help browser demo test check bench reproduce soak docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# First all that has a known SHA-256, the build backend included: an isolated build would fetch
# whichever is newest. Then the project, with what is left: torch, and what it needs here alone.
$(READY): pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("GStarX needs Python 3.11 or newer (got %d.%d); choose one: make PYTHON=python3.11 ..." % v)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[$(EXTRAS)]'
	touch $@

demo: $(READY) ## two networks explained, as a page: demo/report.html
	$(BIN)/gstarx demo

# The report is opened in a browser, which is installed where that asks nobody: as root, by apt.
CHROMIUM = command -v chromium || command -v chromium-browser || command -v google-chrome
browser:
	@($(CHROMIUM)) >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || \
	  echo "there is no Chromium: the tests that open the report in one are skipped"

# One thread each: the workers fill the cores already.
test: $(READY) browser ## every test and doctest, on all cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

check: $(READY) ## lint, formatting, types
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy --strict src reproduction

bench: $(READY) ## measure speed and accuracy
	$(BIN)/python -m benchmarks

reproduce: $(READY) ## write docs/results.md, its tables and plots from the stored rows
	$(BIN)/python -m reproduction page

soak: $(READY) browser ## slow tests too, and far more examples of properties
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --hypothesis-profile=soak -m ''

.PHONY: coverage
coverage: $(READY) ## lines that the tests run, as htmlcov/index.html
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --cov=gstarx --cov-report=term --cov-report=html

docs: $(READY) ## build the site into site/, readable offline
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lock: ## write requirements.lock anew from constraints.txt
	$(PYTHON) .ci/lock.py

clean: ## remove everything that can be made again
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
