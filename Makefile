# Everything runs in a virtual environment that is made on first use:
#   make quickstart    train, evaluate and use a small tagger on data that the project makes
#   make check         format, lint, types and the fast tests: before each commit
#   make test          all tests; SELECT=slow or another of pytest's marker expressions for some of them
#   make format        rewrite the code in the project's format
#   make benchmark     speed and memory on this machine, on sentences of $ELMO_TASKS_DATA, as tables; takes an hour or more and wants
#                      the machine for itself; ALLENNLP=CHECKOUT measures beside AllenNLP's Elmo
#   make environment   the virtual environment alone

PYTHON ?= python3
VENV ?= .venv
RUNS ?= runs
JOBS ?= 2
SELECT ?=
ALLENNLP ?=

BIN := $(VENV)/bin
ELMO_TASKS := $(BIN)/elmo-tasks
STAMP := $(VENV)/.installed
# Small matrices, several processes: more threads in each would only stand in each other's way.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses $(JOBS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help environment quickstart check test format benchmark

help:
	@sed -n 's/^#   //p' Makefile

environment: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[dev]'
	touch $@

quickstart: $(STAMP)
	$(ELMO_TASKS) sample-data $(RUNS)/quickstart-data --task ner
	$(ELMO_TASKS) train configs/quickstart.jsonnet -s $(RUNS)/quickstart --force
	$(ELMO_TASKS) evaluate $(RUNS)/quickstart $(RUNS)/quickstart-data/ner_conll2003/eng.testb
	printf 'Mira Dolvane joined Karvel as coach. Karvel closed a mill in Dolvane Bay.' | $(ELMO_TASKS) predict $(RUNS)/quickstart -

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -m 'not slow'

test: $(STAMP)
	$(PYTEST) $(if $(SELECT),-m '$(SELECT)')

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: $(STAMP)
	$(BIN)/python -m benchmarks.bilm $(if $(ALLENNLP),--allennlp $(ALLENNLP))
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.tagger_step
	$(BIN)/python -m benchmarks.pretraining_step
	$(BIN)/python -m benchmarks.alternating_lstm
	$(BIN)/python -m benchmarks.heads
