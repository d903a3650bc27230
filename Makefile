# All commands run in a virtual environment, which is created on first use:
#   make quickstart    train, evaluate and use a small tagger on sample data, and use one that was trained on CoNLL-2003
#   make demo          serve the trained models to browsers at http://127.0.0.1:8000; PORT=N is another port
#   make check         format, lint, types and fast tests; run it before each commit
#   make test          all tests; SELECT=slow or another marker expression of pytest runs only some of them
#   make format        format the code
#   make docs          build the documentation site in build/site; it runs the notebooks, which takes minutes
#   make wheel         build the wheels of elmo-tasks and of its trained models, and use them in an empty folder outside of this one
#   make benchmark     measure speed and memory on sentences of $ELMO_TASKS_DATA; takes an hour or more on an otherwise idle
#                      machine; ALLENNLP=CHECKOUT also measures AllenNLP's Elmo
#   make class-kit     make build/class-kit, a folder with all that a class needs without a network; it runs the notebooks;
#                      PLATFORMS=windows,mac-arm,linux are the laptops, PIP=OPTIONS goes to `pip download`
#   make torture       damaged and hostile files, kills, full disks; takes minutes, HOURS=1 takes an hour
#   make engines       the tests with Ray and Spark, which it installs in an environment of their own; needs Java
#   make environment   only create the virtual environment

PYTHON ?= python3
VENV ?= .venv
RUNS ?= runs
PORT ?= 8000
JOBS ?= 2
SELECT ?=
ALLENNLP ?=
HOURS ?=
PLATFORMS ?= windows,mac-arm,linux
PIP ?=

NOT_COMPILED := tests?|models|testing|pip|setuptools|sqlalchemy|nltk|debugpy|fontTools|pygments|mypyc?|networkx|playwright|_inductor|torchgen

BIN := $(VENV)/bin
ELMO_TASKS := $(BIN)/elmo-tasks
STAMP := $(VENV)/.installed
# Real data, for the tests and benchmarks that need it.
ifneq ($(wildcard ../shared/data),)
export ELMO_TASKS_DATA ?= $(abspath ../shared/data)
endif
# The tests use small matrices and several processes: more threads per process would slow each other down. Each process
# takes one file after the other, in the order of tests/conftest.py, so that what the tests of a file share is made once.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help environment quickstart demo check test format docs wheel class-kit benchmark torture engines lint types fast-tests

help:
	@sed -n 's/^#   //p' Makefile

environment: $(STAMP)

# npm's files for the page without a server, which its test and `make docs` take from here.
DOWNLOAD := from elmo_tasks.extras.export import page; page.downloaded_runtime()

# pip would compile all files in one process. Some are for other versions of Python and cannot be compiled, and of the large
# packages, much is never imported; Python compiles the rest when it is.
$(STAMP): pyproject.toml trained_models/pyproject.toml elmo_runtime/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --upgrade pip  # that of Python 3.11 takes twice as long for what follows
	$(BIN)/python -m pip install --no-compile --constraint constraints.txt --editable '.[dev]' --editable trained_models --editable elmo_runtime
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/($(NOT_COMPILED))/' $(VENV)/lib || true
	ELMO_TASKS_CACHE=$(VENV)/cache $(BIN)/python -c '$(DOWNLOAD)' || echo 'without it, the page without a server is not tested'
	touch $@

quickstart: $(STAMP)
	$(ELMO_TASKS) sample-data $(RUNS)/quickstart-data --task ner
	$(ELMO_TASKS) train quickstart -s $(RUNS)/quickstart --force
	$(ELMO_TASKS) evaluate $(RUNS)/quickstart $(RUNS)/quickstart-data/ner_conll2003/eng.testb
	printf 'Angela Merkel met Barack Obama in Berlin. They spoke English.' | $(ELMO_TASKS) predict $(RUNS)/quickstart -
	printf 'Alan Turing worked at Bletchley Park, and the BBC filmed it.' | $(ELMO_TASKS) predict ner -

demo: $(STAMP)
	$(ELMO_TASKS) serve --port $(PORT)

check: lint
	$(MAKE) --no-print-directory --jobs 2 types fast-tests

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select PLW1514 --exclude tests .  # text files name their encoding: Windows has others
	$(BIN)/hadolint Dockerfile

# mypy has one process, and the tests leave a processor idle now and then.
types: $(STAMP)
	$(BIN)/mypy

fast-tests: $(STAMP)
	$(PYTEST) -m 'not slow'

test: $(STAMP)
	$(PYTEST) $(if $(SELECT),-m '$(SELECT)')

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site shows the notebooks with their outputs. Each is run again only after a change.
EXECUTED := $(patsubst notebooks/%,build/notebooks/%,$(wildcard notebooks/*.ipynb))
build/notebooks/%.ipynb: notebooks/%.ipynb $(STAMP)
	mkdir -p $(@D)
	cp $< $@
	OMP_NUM_THREADS=1 $(BIN)/python -m nbconvert --execute --to notebook --inplace $@

docs: $(STAMP) $(EXECUTED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	ELMO_TASKS_CACHE=$(VENV)/cache $(ELMO_TASKS) export pos build/site/page --page --quiet || echo 'the site has no page without a server'

wheel: $(STAMP)
	bash .ci/wheel $(abspath $(BIN)/python)

class-kit: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python notebooks/kit/build.py build/class-kit --platforms $(PLATFORMS) -- $(PIP)

benchmark: $(STAMP)
	$(BIN)/python -m benchmarks.bilm $(if $(ALLENNLP),--allennlp $(ALLENNLP))
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.large_texts
	$(BIN)/python -m benchmarks.tagger_step
	$(BIN)/python -m benchmarks.pretraining_step
	$(BIN)/python -m benchmarks.heads
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.peers
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.trained_models
	$(BIN)/python -m benchmarks.significance

torture: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture $(if $(HOURS),--minutes $(shell expr $(HOURS) '*' 60))

# pyspark has 450 MB, and none of it is needed to use or test anything else.
engines: $(STAMP)
	test -x $(VENV)-engines/bin/python || $(BIN)/python -m venv $(VENV)-engines
	$(VENV)-engines/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' 'ray[data]' pyspark
	OMP_NUM_THREADS=1 $(VENV)-engines/bin/python -m pytest -q tests/extras/engines/test_engines.py
