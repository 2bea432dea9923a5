# make demo    set everything up and run the main job
# make test    set everything up and pass all tests
# make lint    style and types
# make races   kernels in GPU form on Oclgrind (apt-get install oclgrind): races and accesses out of bounds
# make fuzz MINUTES=10   random programs, layers, models and files, with a new seed (docs/reliability.md)
# make site    the documentation site, in build/site/html: tutorials are executed, warnings are errors
# make bench   the benchmarks behind the figures in the documents
# make bench-gpu   a GPU of NVIDIA through CUDA beside cuBLAS, cuDNN, CuPy and Triton where installed: ten minutes
# make bench-opencl   OpenCL beside those libraries of requirements/benchmarks.txt that are installed

PYTHON := $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin
MINUTES := 10
# Random tests try more, and afresh; `make test` tries the same few. The seed is in the command that make prints
FRESH = --hypothesis-profile full --hypothesis-seed $(SEED)
SEED := $(shell date +%s)
# Tests start hundreds of interpreters, each of which would compile every module
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-ci test-mutants test-gpu races fuzz lint site bench bench-opencl bench-gpu clean

demo: $(VENV)/.installed
	mkdir -p build
	sh examples/demo.sh $(RUN)/polyloom build

test: $(VENV)/.developed
	$(RUN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/.developed
	$(RUN)/python -m pytest -n 2 --dist worksteal -rs $(FRESH) -m "slow and not gpu"

test-ci: $(VENV)/.developed
	$(RUN)/python -m pytest -n 2 --dist worksteal -rs $(FRESH) -m "slow and ci or hypothesis and not slow" --ignore tests/mutants

test-mutants: $(VENV)/.developed
	$(RUN)/python -m pytest -n 2 -rs -m "slow and ci" tests/mutants

races: $(VENV)/.developed
	$(RUN)/python -m pytest -rs -m slow tests/mdh/lowering/test_oclgrind.py

test-gpu: $(VENV)/.developed
	$(RUN)/python -m pytest -m gpu

lint: $(VENV)/.developed
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

fuzz: $(VENV)/.developed
	$(RUN)/python tests/fuzz/run.py --minutes $(MINUTES)

site: $(VENV)/.sited
	$(RUN)/python docs/site/build.py

bench: $(VENV)/.installed
	$(RUN)/python benchmarks/wafer_cycles.py
	$(RUN)/python benchmarks/explain_speed.py
	$(RUN)/python benchmarks/simulator_events.py

bench-opencl: $(VENV)/.installed
	$(RUN)/python benchmarks/opencl/run.py --device cpu

bench-gpu: $(VENV)/.installed
	$(RUN)/python benchmarks/gpu.py

$(VENV)/.installed: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Polyloom needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -r requirements/run.txt
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

$(VENV)/.developed: requirements/develop.txt $(VENV)/.installed
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -r requirements/develop.txt
	touch $@

$(VENV)/.sited: requirements/site.txt $(VENV)/.developed
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -r requirements/site.txt
	touch $@

clean:
	rm -rf $(VENV) build
