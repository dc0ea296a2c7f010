# Each target sets up what it needs in .venv; python3 and make are all a fresh machine must have.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test fuzz kills lint type bench wheel format clean

demo: $(VENV)/cli ## learn 12,582 real classes and evaluate them
	$(BIN)/longtail demo

test: $(VENV)/dev ## every test
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

fuzz: $(VENV)/dev ## a million hostile model files; goes on where it stopped
	$(BIN)/python -m tests.fuzz --cases 1000000

kills: $(VENV)/dev ## kill a process that changes a model, 300 times
	LONGTAIL_KILLS=300 $(BIN)/python -m pytest tests/persistence/test_journal_crashes.py -k any_moment

lint: $(VENV)/dev ## style, format, import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

house: $(VENV)/dev ## what the house promises, counted
	-$(BIN)/python tools/house.py

type: $(VENV)/dev ## static types
	$(BIN)/mypy

bench: $(VENV)/dev ## both classifiers and a baseline on every data set of ../shared/data
	$(BIN)/longtail bench compare

wheel: $(VENV)/dev ## the package, in dist/
	$(BIN)/python -m build --wheel

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist

$(VENV)/cli: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[cli]'
	touch $@

$(VENV)/dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]' -e bench
	touch $@ $(VENV)/cli
