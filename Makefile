# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard native/*.cpp native/*.hpp native/*/*.cpp native/*/*.hpp)
# An editable install knows the packages of the day it was made.
PACKAGES := $(shell find src -name __init__.py)

.PHONY: demo test test-all lint bench reproduce clean
.DEFAULT_GOAL := test

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The tools first, so that the package builds without a second, isolated build environment.
$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python tools/dev_requirements.py > $(VENV)/dev-requirements.txt
	$(BIN)/python -m pip install --quiet -r $(VENV)/dev-requirements.txt
	touch $@

$(VENV)/.installed: $(VENV)/.tools CMakeLists.txt $(NATIVE) $(PACKAGES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps \
		-C cmake.define.MMES_WERROR=ON -e .
	touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not slow"

test-all: $(VENV)/.installed
	$(BIN)/python -m pytest --timeout 3600
	$(BIN)/python tools/sanitize.py

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/ask_tell.py
	$(BIN)/python benchmarks/suites.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/rivals.py cost
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/rivals.py peers
	$(BIN)/python benchmarks/parallel.py

# The paper's tables and figures beside ours, in minutes, with a report; killed, it goes on when started again.
reproduce: $(VENV)/.installed
	$(BIN)/python -m mmes reproduce --quick

clean:
	rm -rf $(VENV) build dist out
