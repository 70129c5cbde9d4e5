# Needs Python >= 3.11, git and make; installs into .venv only, never on the system.
#
#   make demo         two worktrees side by side, one orphan, and nothing left at the end
#   make test         all tests; engines that cannot be had here are skipped and say why
#   make cover        the pure rules are tested to the last branch
#   make lint         ruff, the formatter, mypy --strict, the import contracts
#   make bench        every figure, with many rounds
#   make bench-check  the stated budgets; exits 1 beyond them
#   make soak         the long campaigns (SOAK_SECONDS each)
#   make docs         writes the generated part of the reference
#
# PYTHON chooses the interpreter, TESTS and ARGS go to pytest, JOBS is its number of workers.

TESTS ?= tests
ARGS ?=
JOBS ?= logical
SOAK_SECONDS ?= 600

VENV = .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

# The interpreter: PYTHON if it is set, else the first that is new enough. Sets $$python.
FIND_PYTHON = \
	for python in $${PYTHON:-python3.13 python3.12 python3.11 python3 python3.14}; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
		python=; \
	done; \
	if [ -z "$$python" ]; then \
		echo "corral needs Python 3.11 or newer, and $${PYTHON:-python3} is not." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12 $@" >&2; \
		exit 1; \
	fi

.PHONY: demo test cover lint bench bench-check soak docs clean

# The standard library is all that the demo needs, so it runs straight from the source.
demo:
	@$(FIND_PYTHON); PYTHONPATH="$(CURDIR)/src" exec "$$python" -m corral.cli.main demo

test: $(READY)
	@$(BIN)/python -m pytest -n $(JOBS) $(TESTS) $(ARGS)

cover: $(READY)
	@$(BIN)/python -m pytest -q tests/unit --cov=corral.decide --cov=corral.model --cov-branch \
		--cov-fail-under=100

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	@$(BIN)/python bench/check.py --thorough; $(BIN)/python bench/imports.py

bench-check: $(READY)
	@$(BIN)/python bench/check.py

soak: $(READY)
	@$(BIN)/python -m pytest -m soak --soak-seconds $(SOAK_SECONDS) --timeout 7200 tests $(ARGS)

docs: $(READY)
	@$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV)

# Debian's python3 comes without ensurepip; there the pip of the system fills the environment.
# A new pip writes commands that start faster (docs/explanation/decisions.md).
$(READY): pyproject.toml
	@$(FIND_PYTHON); \
	echo "making $(VENV) with $$("$$python" --version) and the development tools"; \
	if "$$python" -c 'from ensurepip import version' 2>/dev/null; then \
		"$$python" -m venv --upgrade-deps $(VENV) && pip="$(BIN)/python -m pip"; \
	elif "$$python" -m pip --version >/dev/null 2>&1; then \
		"$$python" -m venv --without-pip $(VENV) && \
			pip="$$python -m pip --python $(BIN)/python"; \
	else \
		echo "$$python has neither ensurepip nor pip, so the test tools cannot be installed." >&2; \
		echo "On Debian and Ubuntu: apt-get install python3-venv. (make demo works without.)" >&2; \
		exit 1; \
	fi && \
	$$pip --disable-pip-version-check install --quiet --editable '.[dev]' && \
	$(BIN)/python -m compileall -q src && \
	touch $@
