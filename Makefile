# Needs Python 3.11 or later, git and make. Everything else goes into .venv.
#
# Another interpreter: make PYTHON=/path/to/python3.12 test
# More test processes: make JOBS=8 test

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; \
	done)
JOBS ?= 2
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow bench format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/installed ## the main job: a certified epsilon for 30 rounds of a shuffled survey
	@$(BIN)/python examples/demo.py

test: .venv/installed-dev ## lint, format check, type check, all tests but the slow ones
	@echo "== ruff check"
	@$(BIN)/ruff check -q .
	@echo "== ruff format --check"
	@$(BIN)/ruff format -q --check . || { echo "run: make format"; exit 1; }
	@echo "== mypy --strict"
	@$(BIN)/mypy
	@echo "== pytest"
	@$(BIN)/python -m pytest -q -n $(JOBS)

test-slow: .venv/installed-dev ## the tests that take minutes
	@$(BIN)/python -m pytest -q -n $(JOBS) -m slow

bench: .venv/installed-bench ## measure, and write docs/performance.md
	@$(BIN)/python benchmarks/accounting.py --output docs/performance.md

format: .venv/installed-dev ## rewrite the code in the house format
	@$(BIN)/ruff check -q --fix-only .
	@$(BIN)/ruff format .

clean: ## remove the environment, caches and builds
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: each set of packages is installed once, and again only when pyproject.toml changes.

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "shuffledp needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3"; exit 1; }
	@echo "creating .venv with $$($(PYTHON) --version)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/created pyproject.toml
	@echo "installing shuffledp"
	@$(PIP_INSTALL) -e .
	@touch $@

.venv/installed-dev: .venv/installed
	@echo "installing the development tools"
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $@

.venv/installed-bench: .venv/installed
	@echo "installing the benchmark baseline"
	@$(PIP_INSTALL) -e '.[bench]'
	@touch $@
