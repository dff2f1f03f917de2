# make help lists the targets
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo test fast torch mpi docs figures array-api lint golden counts compare bench gpu clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(VENV)/.run $@

$(VENV)/.docs: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $(VENV)/.run $@

demo: $(VENV)/.run  ## set everything up and run the main job on a generated mesh
	@mkdir -p out
	$(PY) -m geoopt demo --force --out out/curvature.png

test: $(VENV)/.dev  ## set everything up and run all tests
	$(PY) -m pytest -n auto --dist worksteal

fast: $(VENV)/.dev  ## the tests without real meshes, the command line and random programs
	$(PY) -m pytest -n auto --dist worksteal --ignore tests/test_cli.py --ignore tests/test_random_programs.py -k "not real"

torch: $(VENV)/.dev  ## install torch, run the tests of geoopt.torch and its examples, and tell what a call costs
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,torch]'
	$(PY) -m pytest -rs tests/test_torch.py tests/test_torch_tensors.py
	$(PY) -m pytest -rs tests/test_examples.py -k torch
	$(VENV)/bin/pyright --pythonpath $(PY) geoopt/torch
	$(PY) -m benchmarks.torch_overhead

mpi: $(VENV)/.dev  ## install mpi4py and petsc4py, and run the tests of geoopt.distributed
	.ci/petsc $(PY)
	$(PY) -m pytest -rs --hypothesis-profile=thorough tests/test_distributed.py tests/test_benchmarks.py -k "distributed or ranks"

docs: $(VENV)/.docs  ## build the documentation into out/docs
	rm -rf docs/reference/generated docs/examples/gallery out/docs
	PYTHONPATH="$(CURDIR)" $(PY) -m sphinx -W --keep-going -q -d out/doctrees docs out/docs
	@echo "open out/docs/index.html"

figures: $(VENV)/.docs  ## draw the pictures of the documentation; GEOOPT_MESHES must be a folder with armadillo.obj
	PYTHONPATH="$(CURDIR)" $(PY) docs/figures/draw.py

array-api: $(VENV)/.dev  ## run the array API standard's own tests: make array-api SUITE=path/to/array-api-tests
	@test -d "$(SUITE)/array_api_tests" || { echo "SUITE must be a clone of data-apis/array-api-tests, with its submodule"; exit 1; }
	$(PY) -m pip install --quiet --disable-pip-version-check --requirement "$(SUITE)/requirements.txt"
	cd "$(SUITE)" && PYTHONPATH="$(CURDIR)" GEOOPT_CACHE_DIR="$(CURDIR)/$(VENV)/array-api" \
	ARRAY_API_TESTS_MODULE=tests.array_api.module ARRAY_API_TESTS_MAX_ARRAY_SIZE=256 \
	"$(CURDIR)/$(PY)" -m pytest -p tests.array_api.scope --max-examples 20 --disable-deadline -rs -W ignore array_api_tests

lint: $(VENV)/.dev  ## style, unused code and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright --pythonpath $(PY)

golden: $(VENV)/.dev  ## rewrite the golden kernels and counts; review the difference
	$(PY) -m pytest -n auto --dist worksteal tests/test_golden.py tests/test_counts.py --update-golden

counts: $(VENV)/.dev  ## compare kernels, operations, columns and code of all programs with the pinned ones
	$(PY) -m pytest -n auto --dist worksteal tests/test_counts.py

compare: $(VENV)/.dev  ## this tree beside a commit, about 10 minutes: make compare BASE=commit [WORK=benchmark or work]
	@test -n "$(BASE)" || { echo "BASE must be a commit: make compare BASE=HEAD~1"; exit 1; }
	$(PY) -m benchmarks compare "$(BASE)" $(if $(WORK),--work "$(WORK)")

bench: $(VENV)/.dev  ## every benchmark at small sizes beside its peers, about 15 minutes; then the report
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(PY) -m benchmarks all --small
	$(PY) -m benchmarks report --results out/benchmarks --out out/benchmarks/REPORT.md

gpu: $(VENV)/.dev  ## on a machine with a GPU: run its tests, then measure into benchmarks/results/gpu.json
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,cuda,cudss,cholespy]'
	$(PY) -m pytest -m gpu -rs
	$(PY) -m benchmarks.gpu

clean:  ## remove what make has made
	rm -rf $(VENV) out docs/reference/generated docs/examples/gallery *.egg-info
