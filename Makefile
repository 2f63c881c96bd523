# Every command a developer runs. `make run` needs Python 3.11 or newer, make, and nothing else.

PYTHON ?= python3
ARGS   ?=
EXAMPLES ?= 300
MINUTES  ?= 10
SEED     ?= 1
SEEDS    ?= 1-100

VENV := .venv
BIN  := $(VENV)/bin
# Twice quiet: warnings about index settings of the machine are hidden, errors are not.
PIP  := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check --no-input

# Below a command that prints nothing for a minute: a dot a second, until it ends; its exit code is the result.
WITH_DOTS = & pid=$$!; trap 'kill $$pid' INT TERM; while kill -0 $$pid 2>/dev/null; do printf .; sleep 1; done; echo; wait $$pid

# Of Hypothesis's examples, and of the order of the tests and `random` in each of them.
SEEDED = --hypothesis-seed=$(SEED) --randomly-seed=$(SEED)

RUN_READY := $(VENV)/run.stamp
DEV_READY := $(VENV)/dev.stamp
PINS      := pyproject.toml pytest-waypost/pyproject.toml constraints.txt

.PHONY: run test test-npm test-image test-chart examples dates lint check bench peers soak crash simulate planted restarts alerts fuzz format reference screenshots pin dist sbom resolutions notes test-old-pins advisories
.DELETE_ON_ERROR:

run: $(RUN_READY)  ## start the service, the simulator and its phones; ARGS goes to `waypost dev`
	@exec $(BIN)/waypost dev $(ARGS)

# Compiled modules are kept, whatever the environment says: the suite starts a few hundred processes.
# Four workers on two cores: much of what a journey does is waiting.
test: $(DEV_READY)  ## the whole suite, on both engines, with SEED=1; ARGS goes to pytest
	@echo "seed $(SEED)"
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4 --dist worksteal $(SEEDED) $(ARGS)

test-npm: $(DEV_READY)  ## types and tests of the npm package @waypost/dev; TypeScript and Vitest come from the registry
	cd npm/waypost-dev && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	cd npm/waypost-dev && WAYPOST=$(CURDIR)/$(BIN)/waypost npm test

test-image: $(DEV_READY)  ## build the image with buildah and run it, alone and as the services of deploy/compose.yaml; needs root
	$(BIN)/python -m tests.deployment.run_image $(ARGS)

test-chart: $(DEV_READY)  ## lint and render the Helm chart, and validate what it renders; Helm comes from the package index
	$(BIN)/python -m tests.deployment.run_chart

examples: $(DEV_READY)  ## the tests of the example projects in Python, Node and Go, with their times
	$(BIN)/pytest -n 0 --durations=0 tests/testing/test_example.py tests/dev/test_example_projects.py $(ARGS)

dates: $(DEV_READY)  ## the whole suite under ten dates: ends of weeks, months and years, a leap day, summer time; ARGS goes to pytest
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.dates -n 4 --dist worksteal $(SEEDED) $(ARGS)

lint: $(DEV_READY)  ## all that is checked without running the service
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	if simulation=$$($(BIN)/python -m simulation.environment); then \
		$(BIN)/basedpyright -p simulation --pythonpath $$simulation; fi
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/typos
	$(BIN)/rumdl check .

check: lint test  ## what has to pass before a change is merged

bench: $(DEV_READY)  ## measure, and print ratios with the machine they were taken on
	$(BIN)/python -m benchmarks.run $(ARGS)

peers: $(DEV_READY)  ## the same work through Waypost, Kannel and Jasmin, as far as they are installed
	$(BIN)/python -m benchmarks.peers $(ARGS)

soak: $(DEV_READY)  ## the console over 200,000 messages with fifty changes a second, in a browser, for MINUTES=10
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) $(ARGS)

crash: $(DEV_READY)  ## inject faults under load and count: lost, duplicated and out of order must be 0
	$(BIN)/python -m crashes.run $(ARGS)

simulate: $(RUN_READY)  ## the whole server in one thread under seeds: order, packets, faults and time; SEEDS=1-100; Python 3.12 or newer
	@simulation=$$($(BIN)/python -m simulation.environment) && exec $$simulation -m simulation --seeds $(SEEDS) $(ARGS)

planted: $(RUN_READY)  ## how many seeds the simulation needs to find each of the planted faults; ARGS='NAME … --seeds 500'
	@$(BIN)/python -m simulation.planted $(ARGS)

restarts: $(DEV_READY)  ## two machines behind nginx and Caddy: limits, then each is restarted five times under load; needs both programs
	WAYPOST_TEST_PROXIES=nginx,caddy $(BIN)/pytest -n 0 tests/processes/test_behind_a_proxy.py -k limits
	$(BIN)/python -m crashes.rolling_restart $(ARGS)

advisories:  ## check the pins against the database of advisories at osv.dev, if it can be reached
	$(PYTHON) -m tests.advisories $(ARGS)

test-old-pins: $(DEV_READY)  ## a project whose dependencies are two years old, with pytest-waypost beside them; needs a package index
	$(BIN)/python -m tests.old_pins

alerts: $(DEV_READY)  ## check the alerts and the dashboard in a Prometheus that scrapes a service; needs Debian's `prometheus`
	$(BIN)/pytest -n 0 tests/operations/in_prometheus.py

# Expanded once: the seed that is printed is the one that is used. SEED=… on the command line overrides it.
fuzz: SEED := $(or $(WAYPOST_FUZZ_SEED),$(shell $(PYTHON) -c 'import secrets; print(secrets.randbelow(10**6))'))
fuzz: $(DEV_READY)  ## send random requests to every route and the console, and print the coverage; EXAMPLES=300 for each route
	@echo "seed $(SEED)"
	WAYPOST_FUZZ_EXAMPLES=$(EXAMPLES) WAYPOST_FUZZ_SEED=$(SEED) $(BIN)/pytest -n 0 -s $(SEEDED) tests/fuzz tests/properties $(ARGS)

format: $(DEV_READY)  ## format code and pages
	$(BIN)/ruff check --select I --fix --quiet .
	$(BIN)/ruff format .
	$(BIN)/rumdl fmt .

reference: $(DEV_READY)  ## regenerate docs/reference/ from the tables in the code
	$(BIN)/python -m docs.make_reference

screenshots: $(DEV_READY)  ## regenerate docs/images/console/: every page, light and dark; ARGS selects some by name
	$(BIN)/python -m docs.make_screenshots $(ARGS)

dist: $(DEV_READY)  ## build the wheel and the sdist of each distribution into dist/
	@rm -rf dist
	@for project in . $(wildcard pytest-waypost); do (cd $$project && $(CURDIR)/$(BIN)/python -m hatchling build -d $(CURDIR)/dist) || exit 1; done
	@ls -l dist

sbom: dist  ## write sbom/waypost.cdx.json, the bill of materials (CycloneDX) of the wheel with the pinned dependencies
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && mkdir -p sbom && \
	$(PYTHON) -m venv --without-pip "$$folder/installed" && $(PYTHON) -m venv "$$folder/tools" && \
	pip="$$folder/tools/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input" && \
	$$pip install 'cyclonedx-bom>=7' && \
	$$pip --python "$$folder/installed/bin/python" install -c constraints.txt dist/waypost-*.whl && \
	"$$folder/tools/bin/cyclonedx-py" environment --output-reproducible --pyproject pyproject.toml \
	-o sbom/waypost.cdx.json "$$folder/installed/bin/python"

resolutions: $(DEV_READY)  ## install the wheel with the lowest and the newest dependencies on every Python, and test it; takes an hour
	$(BIN)/python -m tests.resolutions $(ARGS)

notes: $(DEV_READY)  ## print the fragments of changelog.d as they will stand in CHANGELOG.md
	@$(BIN)/towncrier build --draft

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
	@$(PIP) install -c constraints.txt -e . $(WITH_DOTS)
	@touch $@

$(DEV_READY): $(VENV)/pyvenv.cfg $(PINS)
	@echo "Installing what developing needs into $(VENV), which takes some minutes ..."
	@$(PIP) install 'pip>=25.1'
	@$(PIP) install -c constraints.txt -e . -e ./pytest-waypost --group dev $(WITH_DOTS)
	@touch $(RUN_READY) $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Waypost needs Python 3.11 or newer, and '$(PYTHON)' is not; name another with: make PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
