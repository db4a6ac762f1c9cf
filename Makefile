# Needs Python 3.11 or later, git and make. Everything else goes into .venv.
#
# Another interpreter: make PYTHON=/path/to/python3.12 test
# More test processes: make JOBS=8 test (3: some wait for servers and browsers, so that two cores are busy)
# Another NumPy:       make WITH='numpy==1.26.*' test
#
# Tiers: check (a minute, while working), test (everything before a change lands), test-slow (repetitions
# on a grand scale), test-oldest and release-check (before a release).

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; \
	done)
OLDEST_PYTHON ?= python3.11
JOBS ?= 3
WITH ?=
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS)# processes, not threads
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo check test suite lint test-slow test-oldest mutation release-check bench bench-collect bench-learn docs site
.PHONY: bench-map bench-questions bench-width bench-service study-mnist format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/installed ## the main job: a certified epsilon for 30 rounds of a shuffled survey
	@$(BIN)/python examples/demo.py

check: lint ## while working: lint, types and the quick tests of every room, in about a minute
	@echo "== pytest, the quick tests"
	@$(PYTEST) --dist worksteal -m 'quick and not thorough and not slow'

test: .venv/installed-dev ## before a change lands: lint, types and all tests but the slow ones
	@$(MAKE) --no-print-directory -j 2 lint suite

suite: .venv/installed-dev
	@echo "== pytest"
	@$(PYTEST) --dist worksteal

lint: .venv/installed-dev ## lint, format check, type check
	@echo "== ruff check"
	@$(BIN)/ruff check -q .
	@echo "== ruff format --check"
	@$(BIN)/ruff format -q --check . || { echo "run: make format"; exit 1; }
	@echo "== mypy --strict"
	@$(BIN)/mypy

test-slow: .venv/installed-dev ## the tests that take minutes
	@$(PYTEST) -m slow

OLDEST := tests/accounting/test_golden.py tests/certified tests/randomizers tests/randomness
test-oldest: ## numbers and randomizers on the oldest packages allowed (oldest.txt), with Python 3.11
	@$(MAKE) --no-print-directory .venv-oldest/installed
	@$(subst .venv/,.venv-oldest/,$(BIN))/python -m pytest -q -n $(JOBS) -p no:cacheprovider $(OLDEST)

mutation: .venv/installed-dev ## turn each directed rounding off and the wrong way; write docs/mutation.md (minutes)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/mutation/mutate.py

release-check: .venv/installed-dev ## a dry run of a release: build, install in empty environments, try it
	@$(BIN)/python tools/release_check.py

bench: .venv/installed-bench ## measure the accountant and sampling, and write docs/performance.md
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/accounting.py --output docs/performance.md

COUNT ?= 2000
bench-map: .venv/installed ## ask COUNT random questions in JOBS processes, and write docs/performance-map.md (minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/map.py --count $(COUNT) --jobs $(JOBS) --output docs/performance-map.md

bench-width: .venv/installed-dev ## measure how wide answers are, for every randomizer, and write docs/performance-width.md (minutes)
	@$(BIN)/python benchmarks/width.py --output docs/performance-width.md

bench-collect: .venv/installed-dev ## measure collections of up to 10^8 rows (minutes)
	@$(BIN)/python benchmarks/collect.py --output docs/performance-collect.md

bench-questions: ## measure errors of ranges and strings beside pure-LDP, in an environment of its own (minutes)
	@$(MAKE) --no-print-directory .venv-pure/installed
	@$(subst .venv/,.venv-pure/,$(BIN))/python benchmarks/questions.py --output docs/performance-questions.md

bench-service: .venv/installed-dev ## measure the running shuffler (minutes)
	@$(BIN)/python benchmarks/service.py --output docs/performance-service.md

LEARN_PAGE ?= docs/performance-learn-cpu.md
bench-learn: .venv/installed-dev ## measure training (on a GPU: with LEARN_PAGE=docs/performance-learn.md)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/learn.py --output $(LEARN_PAGE)

docs: .venv/installed-docs ## build the site in build/docs/html (warnings are errors)
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/docs/trees docs build/docs/html
	@echo "open build/docs/html/index.html"

ENGINE ?=
site: .venv/installed-dev ## the public calculator in build/site (needs npm; ENGINE=folder: the official wheels)
	@$(BIN)/python tools/site.py build/site $(if $(ENGINE),--engine $(ENGINE))

MNIST ?= mnist
FASHION ?= fashion-mnist
study-mnist: .venv/installed-dev ## the image study, from the idx files in MNIST=folder and FASHION=folder (days without a GPU)
	@$(BIN)/python studies/mnist/budget.py --out studies/mnist/budget.csv
	@$(BIN)/python studies/mnist/search.py --task fashion --data $(FASHION) --out $(FASHION)/search.csv --network $(FASHION)/features.pt
	@$(BIN)/python studies/mnist/run.py --task fashion --data $(FASHION) --search $(FASHION)/search.csv --network $(FASHION)/features.pt --only best --epsilon 3 --out $(FASHION)
	@$(BIN)/python studies/mnist/search.py --task mnist --data $(MNIST) --out $(MNIST)/search.csv --network $(MNIST)/features.pt
	@$(BIN)/python studies/mnist/run.py --task mnist --data $(MNIST) --search $(MNIST)/search.csv --network $(MNIST)/features.pt --out $(MNIST)

format: .venv/installed-dev ## rewrite the code in the house format
	@$(BIN)/ruff check -q --fix-only .
	@$(BIN)/ruff format .

clean: ## remove the environment, caches and builds
	rm -rf .venv .venv-oldest .venv-pure .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
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

.venv/installed-dev: .venv/installed constraints.txt
	@echo "installing the development tools"
# Not compiled: most of their files are never imported, and those that are get compiled then.
	@$(PIP_INSTALL) --no-compile -c constraints.txt -e '.[dev]' $(WITH)
	@touch $@

.venv-oldest/installed: oldest.txt pyproject.toml
	@echo "installing the oldest packages allowed in .venv-oldest"
	@rm -rf .venv-oldest
	@$(OLDEST_PYTHON) -m venv .venv-oldest
	@$(subst .venv/,.venv-oldest/,$(PIP_INSTALL)) -c oldest.txt -e '.[collect]' \
	  hypothesis pytest pytest-xdist python-flint scipy
	@touch $@

.venv-pure/installed: pyproject.toml
	@echo "installing pure-LDP in .venv-pure"
	@rm -rf .venv-pure
	@$(PYTHON) -m venv .venv-pure
	@$(subst .venv/,.venv-pure/,$(PIP_INSTALL)) -e . pure-ldp==1.2.0 scikit-learn statsmodels 'xxhash<4'
	@touch $@

.venv/installed-bench: .venv/installed
	@echo "installing the benchmark baseline"
	@$(PIP_INSTALL) -e '.[bench]'
	@touch $@

.venv/installed-docs: .venv/installed constraints.txt
	@echo "installing the documentation tools"
	@$(PIP_INSTALL) -c constraints.txt -e '.[docs]'
	@touch $@
