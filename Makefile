# Every command a developer runs. `make run` needs Python 3.11 or newer, make, and nothing else.

PYTHON ?= python3
ARGS   ?=
EXAMPLES ?= 300
MINUTES  ?= 10

VENV := .venv
BIN  := $(VENV)/bin
# Twice quiet: warnings about index settings of the machine are hidden, errors are not.
PIP  := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check --no-input

RUN_READY := $(VENV)/run.stamp
DEV_READY := $(VENV)/dev.stamp
PINS      := pyproject.toml constraints.txt

.PHONY: run test dates lint check bench soak crash fuzz format reference screenshots pin
.DELETE_ON_ERROR:

run: $(RUN_READY)  ## start the service, the simulator and its phones; ARGS goes to `waypost dev`
	@exec $(BIN)/waypost dev $(ARGS)

# Compiled modules are kept, whatever the environment says: the suite starts a few hundred processes.
# Three workers on two cores: much of what a journey does is waiting.
test: $(DEV_READY)  ## the whole suite, on both engines; ARGS goes to pytest
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4 --dist worksteal $(ARGS)

dates: $(DEV_READY)  ## the whole suite under ten dates: ends of weeks, months and years, a leap day, summer time; ARGS goes to pytest
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.dates -n 4 --dist worksteal $(ARGS)

lint: $(DEV_READY)  ## all that is checked without running the service
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/typos
	$(BIN)/rumdl check .

check: lint test  ## what has to pass before a change is merged

bench: $(DEV_READY)  ## measure, and print ratios with the machine they were taken on
	$(BIN)/python -m benchmarks.run $(ARGS)

soak: $(DEV_READY)  ## the console over 200,000 messages with fifty changes a second, in a browser, for MINUTES=10
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) $(ARGS)

crash: $(DEV_READY)  ## inject faults under load and count: lost, duplicated and out of order must be 0
	$(BIN)/python -m crashes.run $(ARGS)

fuzz: $(DEV_READY)  ## send random requests to every route and the console, and print the coverage; EXAMPLES=300 for each route
	WAYPOST_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -n 0 -s tests/fuzz tests/properties $(ARGS)

format: $(DEV_READY)  ## format code and pages
	$(BIN)/ruff check --select I --fix --quiet .
	$(BIN)/ruff format .
	$(BIN)/rumdl fmt .

reference: $(DEV_READY)  ## regenerate docs/reference/ from the tables in the code
	$(BIN)/python -m docs.make_reference

screenshots: $(DEV_READY)  ## regenerate docs/images/console/: every page, light and dark; ARGS selects some by name
	$(BIN)/python -m docs.make_screenshots $(ARGS)

pin:  ## regenerate constraints.txt: the newest versions that pyproject.toml allows
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(PYTHON) -m venv "$$folder" && \
	pip="$$folder/bin/python -m pip --quiet --disable-pip-version-check --no-input" && \
	$$pip install 'pip>=25.1' && \
	$$pip install -e . --group dev && \
	sed '/^[^#]/,$$d' constraints.txt > "$$folder/pins" && \
	$$pip freeze --exclude-editable >> "$$folder/pins" && \
	cp "$$folder/pins" constraints.txt

# The newest stamp says what .venv holds. A changed pin or dependency makes both stamps old.

$(RUN_READY): $(VENV)/pyvenv.cfg $(PINS)
	@echo "Installing what running needs into $(VENV), which takes about a minute ..."
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(DEV_READY): $(VENV)/pyvenv.cfg $(PINS)
	@echo "Installing what developing needs into $(VENV) ..."
	@$(PIP) install 'pip>=25.1'
	@$(PIP) install -c constraints.txt -e . --group dev
	@touch $(RUN_READY) $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Waypost needs Python 3.11 or newer, and '$(PYTHON)' is not; name another with: make PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
