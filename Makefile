# Every target is a first command: it makes .venv with a Python >= 3.11 and installs what it needs, once.
# Another Python: make demo PYTHON=/path/to/python

PYTHON ?= python3.13 python3.12 python3.11 python3 python
JOBS ?= 2
MUTANTS ?= 100000
SEED ?= 0
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check
DECIDING := algorithm limits past judging learning lifelong methods features release logs metrics objective
COVERED := $(addprefix --cov=pdcl.,$(DECIDING))
COVERAGE ?= 95

.DEFAULT_GOAL := help
.PHONY: help demo fuzz test test-slow test-integrations run-integrations test-scale lint docs bench browser clean

help:
	@echo "make demo       set up, then digits are learned under limits: under a minute, after minutes of installing"
	@echo "make test       all quick tests, with line coverage of the rooms that decide something"
	@echo "make test-slow  the tests marked slow: long forms of random claims, published numbers, kills (half an hour)"
	@echo "make test-integrations  the tests against other people's libraries"
	@echo "make test-scale the tests on a Ray cluster of this machine"
	@echo "make fuzz       100,000 mutated files of runs and models, and everything that reads them (half an hour)"
	@echo "make lint       ruff, mypy, import-linter"
	@echo "make docs       the site, into site/, with every link checked"
	@echo "make bench      speed, as ratios measured in one run"
	@echo "make browser    chromium for the tests of report and live page, where it is missing and can be had"
	@echo "make clean      remove caches and environments; records of runs stay"

demo: $(VENV)/.installed-run
	@$(BIN)/pdcl demo
	@echo
	@echo "pdcl is installed in $(VENV)."
	@echo "activate it:  . $(BIN)/activate"
	@echo "then type:    pdcl run digits pdcl --tolerance +5pt"

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --ignore=tests/integrations --ignore=tests/scale $(COVERED) --cov-report=term --cov-fail-under=$(COVERAGE)

# Exit code 5 says that no test is marked slow, which is no failure.
test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow -n $(JOBS) --ignore=tests/scale || [ $$? -eq 5 ]

# Beside tests/integrations: files of which `make test` skips a part, since pandas, pyarrow, Pillow, ONNX, matplotlib or
# transformers is missing there.
SKIPPED := $(addprefix tests/streams/test_,columns.py inputs.py table.py images.py docs_own_data.py original_formats.py) \
	$(addprefix tests/logs/test_,tables.py no_wrong_pass.py) $(addprefix tests/lifelong/test_,models.py links.py) \
	tests/records/test_checksum.py tests/docs/test_pages.py tests/test_documents.py

# Avalanche pins another torch, so it has an environment of its own, made here.
# PDCL_INTEGRATIONS turns every skipped test into a failed one: a library that is missing there is an error.
test-integrations:
	@$(MAKE) --no-print-directory run-integrations SET=integrations TESTS="tests/integrations $(SKIPPED)"
	@$(MAKE) --no-print-directory run-integrations VENV=.venv-avalanche SET=avalanche TESTS=tests/avalanche

run-integrations: $(VENV)/.installed-$(SET)
	PDCL_INTEGRATIONS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest $(TESTS) -n $(JOBS) --dist loadgroup

test-scale: $(VENV)/.installed-scale
	$(BIN)/python -m pytest tests/scale -p no:cacheprovider -rs

fuzz: $(VENV)/.installed-test
	$(BIN)/python tests/fuzzing/fuzz.py $(MUTANTS) $(SEED)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Strict: a broken link or anchor, or a page outside the menu, ends the build. With --quiet warnings would not count.
docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "open site/index.html"

# The live page is measured in a browser, by what tests use.
bench: $(VENV)/.installed-test
	@for each in benchmarks/[a-z]*.py; do echo "$$each"; $(BIN)/python $$each || exit 1; done

# Tests that need a browser say so and are skipped where none can be had.
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then \
	  echo "A browser is here."; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -y -q --no-install-recommends chromium || echo "No chromium could be installed."; \
	else \
	  echo "No browser, and no right to install one: apt-get install chromium, or set PDCL_BROWSER to one."; \
	fi

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov build dist site
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed-run: EXTRAS := [report,live]
$(VENV)/.installed-test: EXTRAS := [test]
$(VENV)/.installed-scale: EXTRAS := [ray,test]
$(VENV)/.installed-lint: EXTRAS := [lint]
$(VENV)/.installed-integrations: EXTRAS := [integrations]
$(VENV)/.installed-avalanche: EXTRAS := [avalanche-tests]
$(VENV)/.installed-docs: EXTRAS := [docs]
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/.created
	@echo "Installing pdcl$(EXTRAS) into $(VENV); the first time this takes minutes, most of them for PyTorch."
	@$(PIP) install --constraint constraints.txt --editable ".$(EXTRAS)"
	@touch $@

# A .venv that works is kept, whoever made it; one whose Python is gone or too old is made anew.
$(VENV)/.created:
	@works='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	if ! $(BIN)/python -c "$$works" >/dev/null 2>&1; then \
	  for python in $(PYTHON); do \
	    if "$$python" -c "$$works" >/dev/null 2>&1; then found="$$python"; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "pdcl needs Python 3.11 or newer with its venv module; none of these is one: $(PYTHON)." >&2; \
	    echo "Install it (Debian, Ubuntu: apt install python3-venv), or say where it is: make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	  fi; \
	  echo "Creating $(VENV) with $$("$$found" --version)."; \
	  "$$found" -m venv --clear $(VENV); \
	fi
	@touch $@
