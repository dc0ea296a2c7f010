# Each target sets up what it needs in .venv; python3 and make are all a fresh machine must have.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo serve browser neighbours test test-rest test-all fuzz sequences kills cluster lint house type docs bench dist reproducible release-check image-check format clean

demo: $(VENV)/cli ## learn 12,582 classes from text, explain, teach and undo
	$(BIN)/longtail demo

serve: $(VENV)/cli ## the WordNet model with its page, at http://127.0.0.1:8080/
	$(BIN)/python -m longtail.serve.wordnet

browser: ## Chromium, for the tests of the page; needs root where it is missing
	@command -v chromium >/dev/null || { [ "$$(id -u)" != 0 ] || { apt-get update -qq && apt-get -o DPkg::Lock::Timeout=600 install -y -qq chromium; }; }

test: $(VENV)/dev ## the tests to run before every commit; six minutes on two cores
	$(BIN)/python -m pytest --numprocesses auto --dist loadscope -m "not slow" tests

test-rest: $(VENV)/dev browser ## what `make test` leaves out, and properties with all their examples
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "slow or hypothesis" --hypothesis-profile full

test-all: test test-rest ## every test

neighbours: $(VENV)/dev ## tests with Annif and MLflow themselves, in environments of their own
	[ -d $(VENV)-annif ] || { $(PYTHON) -m venv $(VENV)-annif && $(VENV)-annif/bin/pip install -q annif; }
	[ -d $(VENV)-mlflow ] || { $(PYTHON) -m venv $(VENV)-mlflow && $(VENV)-mlflow/bin/pip install -q mlflow-skinny pandas pytest httpx2 -e '.[serve]'; }
	LONGTAIL_ANNIF=$(VENV)-annif/bin/annif $(BIN)/python -m pytest -n0 tests/serve/test_neighbours.py
	$(VENV)-mlflow/bin/python -m pytest tests/serve/test_neighbours.py -k mlflow

fuzz: $(VENV)/dev ## a million hostile model files; goes on where it stopped
	$(BIN)/python -m tests.fuzz --cases 1000000

sequences: $(VENV)/dev ## random sequences of 50 changes, for 15 minutes
	$(BIN)/python -m tests.sequences

kills: $(VENV)/dev ## kill a process that changes a model, 300 times
	LONGTAIL_KILLS=300 $(BIN)/python -m pytest tests/persistence/test_journal_crashes.py -k any_moment
	LONGTAIL_SERVE_KILLS=30 $(BIN)/python -m pytest tests/serve/test_process.py -k acknowledged

cluster: $(VENV)/dev ## fits on real Dask clusters: workers killed in each stage, and more
	LONGTAIL_CLUSTER=1 $(BIN)/python -m pytest tests/distributed/test_cluster.py

lint: $(VENV)/dev ## style, format, import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

house: $(VENV)/dev ## what the house promises, counted
	$(BIN)/python tools/house.py

type: $(VENV)/dev ## static types
	$(BIN)/mypy

bench: $(VENV)/dev ## both classifiers and a baseline on every data set of ../shared/data
	$(BIN)/longtail bench compare

docs: $(VENV)/dev ## the documentation as a site, in site/; fails where a link or a name leads nowhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

dist: $(VENV)/dev ## wheel and sdist, in dist/; the same commit gives the same bytes
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build

reproducible: dist ## build again and compare
	mv dist dist-first
	$(MAKE) dist
	cd dist-first && sha256sum * | (cd ../dist && sha256sum --check)
	rm -rf dist-first

release-check: dist ## the wheel in empty environments, with the README's commands; oldest and newest dependencies
	tools/check_release.sh

image-check: ## the image, built without a daemon and run as it will be; needs root and buildah
	tools/check_image.sh

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist dist-first site

$(VENV)/cli: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[cli,serve]'
	touch $@

$(VENV)/dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]' -e bench
	touch $@ $(VENV)/cli
