# `make run` serves, `make test` tests; both set up what they need first. VENV and PYTHON may be given:
#     make test PYTHON=python3.12 VENV=/tmp/qdesk-venv

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 4
BROWSERS ?= 2
MINUTES ?= 30
# Advisories that docs/security.md answers, and another list of them than PyPI's, such as http://host/v1/query.
ANSWERED := CVE-2025-69872
OSV ?=
BIN := $(VENV)/bin

unexport PYTHONDONTWRITEBYTECODE  # else every worker and every server that a test starts compiles our modules anew

.PHONY: help run test check clients lint audit format model screenshots bench soak docs clean

help:
	@echo "make run          set up, get a model and serve on http://127.0.0.1:8080"
	@echo "make test         set up and run every test"
	@echo "make check        formatting, lint, types, import directions, then every test"
	@echo "make clients      install clients of other houses into the user's cache, and test the API with them"
	@echo "make audit        ask PyPI, or OSV=URL, which pinned packages have known faults (needs the network)"
	@echo "make format       format the code and mend what lint can mend"
	@echo "make model        get the model now instead of at the first start"
	@echo "make screenshots  take docs/screenshots again (needs Chromium)"
	@echo "make bench        measure against other servers (an hour on two cores; nothing else may run)"
	@echo "make soak         load at twice the capacity for half an hour: pages and programs; MINUTES=5 is shorter"
	@echo "make docs         write docs/settings.md and the list in docs/structure.md again"
	@echo "make clean        remove the virtual environment and the tools' caches; data and models stay"

run: $(VENV)/.runtime
	$(BIN)/python main.py

# On two cores: a third worker, since many tests wait for something, and a fourth, which has the crowd of
# tests/test_server_load.py alone and ends with it; but no third browser, since these do not wait.
# The browser tests have a process of their own: Playwright's synchronous interface and pytest-asyncio do not mix.
test: $(VENV)/.development
	$(BIN)/python -m pytest -n $(WORKERS)
	$(BIN)/python -m pytest tests/browser -p no:asyncio -n $(BROWSERS)

check: lint test

clients: $(VENV)/.development
	$(BIN)/python -m tests.clients.environments
	ALL_CLIENTS=1 $(BIN)/python -m pytest tests/clients -n $(BROWSERS)

lint: $(VENV)/.development
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml main.py engine storage ui

audit: $(VENV)/.development
	$(BIN)/python -m pip install --constraint constraints.txt --editable ".[audit]"
	$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip $(addprefix --ignore-vuln ,$(ANSWERED)) \
		$(if $(OSV),--vulnerability-service osv --osv-url $(OSV))

format: $(VENV)/.development
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

model: $(VENV)/.runtime
	$(BIN)/python -m engine.backends.qwen2.weights

screenshots: $(VENV)/.development
	$(BIN)/python -m docs.screenshots.take

bench: $(VENV)/.development
	$(BIN)/python -m bench.compare

soak: $(VENV)/.development
	$(BIN)/python -m bench.soak --minutes $(MINUTES)

docs: $(VENV)/.runtime
	$(BIN)/python -m engine.settings
	$(BIN)/python -m docs.structure

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Set up again only when the dependencies have changed. The two stamps are what serving and what developing needs.
$(VENV)/.runtime: constraints.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.development: constraints.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --constraint constraints.txt --editable ".[dev]"
	@touch $(VENV)/.runtime $@

$(BIN)/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
		echo "Qdesk needs Python 3.11 or newer, and $(PYTHON) is not; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" || { \
		echo "This Python cannot make virtual environments; on Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV): a few minutes the first time, most of it for PyTorch."
