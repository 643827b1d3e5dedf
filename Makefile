# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The Python that has torch for the GPU; it need not have mmes installed.
GPU_PYTHON ?= python3
NATIVE := $(wildcard native/*.cpp native/*.hpp native/*/*.cpp native/*/*.hpp)
# An editable install knows the packages of the day it was made.
PACKAGES := $(shell find src -name __init__.py)

# The packages that adapters need, for their tests and the documentation; not for `make demo` and `make test`.
# PyTorch by its version: the tests need no GPU, and the newest build may bring gigabytes for one.
# Triton for its interpreter, in which the GPU's kernels are tested.
EXTRAS := torch jax optuna coco ray docs
TORCH ?= torch==2.13.0 'triton==3.7.1; sys_platform == "linux"'

# Kernels and strategies whose vectors live on a device; without a GPU on the CPU.
GPU_TESTS := tests/kernels/gpu/test_device_kernels.py tests/kernels/gpu/test_ahead.py tests/kernels/gpu/test_launch.py \
	tests/kernels/test_without_population.py tests/strategies/shell/test_without_population.py \
	tests/strategies/test_devices.py tests/run/test_devices.py tests/replicas/test_devices.py \
	tests/kernels/gpu/test_normals_ahead.py

# Two tests at a time, for two cores. Which of them runs where does not matter: each has its own folder.
SIDE_BY_SIDE := -n 2 --dist worksteal

.PHONY: install demo test test-all test-torch test-extras test-gpu attack lint docs docs-test lock release bench reproduce clean
.DEFAULT_GOAL := test

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The tools first, so that the package builds without a second, isolated build environment.
$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python tools/dev_requirements.py > $(VENV)/dev-requirements.txt
	$(BIN)/python -m pip install --quiet -r $(VENV)/dev-requirements.txt -c requirements.lock
	touch $@

$(VENV)/.torch: pyproject.toml | $(VENV)/.tools
	$(BIN)/python -m pip install --quiet $(TORCH)
	touch $@

$(VENV)/.extras: pyproject.toml | $(VENV)/.torch
	$(BIN)/python tools/dev_requirements.py $(EXTRAS) > $(VENV)/extras-requirements.txt
	$(BIN)/python -m pip install --quiet -r $(VENV)/extras-requirements.txt -c requirements.lock
	touch $@

$(VENV)/.installed: $(VENV)/.tools CMakeLists.txt $(NATIVE) $(PACKAGES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps \
		-C cmake.define.MMES_WERROR=ON -e .
	touch $@

install: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow"

# State on a device (without a GPU: on the CPU, and Triton's kernels in its interpreter), PyTorch's adapter.
test-torch: $(VENV)/.installed $(VENV)/.torch
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow" $(GPU_TESTS) tests/integrations/test_torch*.py \
		tests/project/test_structure.py

# Adapters with the real packages, state on a device, replicas, every code block of the documentation.
test-extras: $(VENV)/.installed $(VENV)/.extras
	$(BIN)/python -m pytest -m "not slow" tests/integrations $(GPU_TESTS) tests/replicas \
		tests/project/test_docs.py tests/project/test_code_of_docs.py tests/project/test_five_minutes.py

test-all: $(VENV)/.installed
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --timeout 3600
	$(BIN)/python tools/sanitize.py

# Ten minutes of kills, signals, hostile files, objectives and numbers; prints what was survived.
attack: $(VENV)/.installed
	$(BIN)/python tools/attack.py --seconds 600

# On a machine with a GPU and torch: the same tests, with the Triton kernels compiled.
test-gpu:
	PYTHONPATH=src $(GPU_PYTHON) -m pytest -q -m "not slow" -W ignore::mmes.errors.KernelWarning $(GPU_TESTS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/validate-pyproject pyproject.toml

# The site, without network: build/docs/html/index.html. The gallery's examples run on the way.
docs: $(VENV)/.installed $(VENV)/.extras
	$(BIN)/python -m sphinx -W -n --keep-going -b html docs build/docs/html

# Every example of a docstring, and every code block of the pages.
docs-test: $(VENV)/.installed $(VENV)/.extras
	$(BIN)/python -m sphinx -W -n --keep-going -b doctest -D sphinx_gallery_conf.plot_gallery=0 docs build/docs/doctest
	$(BIN)/python -m pytest tests/project/test_docs.py tests/project/test_code_of_docs.py tests/project/test_five_minutes.py

# The versions that were tested together, a week old at least; `make` installs these.
lock: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-header \
		--no-annotate --constraint packaging/pins.txt --upgrade \
		--exclude-newer "$$(date -u -d '7 days ago' +%Y-%m-%dT00:00:00Z)" -o requirements.lock

# Source archive and wheels in dist/, checked, and tried in empty environments of several Pythons.
release:
	$(PYTHON) packaging/release.py

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
