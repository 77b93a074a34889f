# Two commands do everything: `make demo` and `make test`. The rest is for working on Eventide.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format bench golden signatures wheel lock clean

help: ## Show what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(READY) ## Set up, then show the product in two minutes
	@$(RUN)/eventide demo

test: $(READY) ## Set up, then run all tests, doctests and examples
	@$(RUN)/eventide warm
	@$(RUN)/pytest

check: $(READY) lint test ## Everything a change has to pass

lint: $(READY) ## Formatter, linter, types
	@$(RUN)/ruff format --check src tests benchmarks examples tools
	@$(RUN)/ruff check src tests benchmarks examples tools
	@$(RUN)/mypy

format: $(READY) ## Format the code
	@$(RUN)/ruff format src tests benchmarks examples tools
	@$(RUN)/ruff check --fix src tests benchmarks examples tools

bench: $(READY) ## Measure against named rivals, write benchmarks/results.md and benchmarks/results/
	@$(RUN)/python -m benchmarks

golden: $(READY) ## Write the golden plans anew, for a diff to review
	@$(RUN)/python -m tests.golden.plans

signatures: $(READY) ## Note for which types the tests have compiled kernels
	@$(RUN)/python -m tools.signatures

wheel: $(READY) ## Build a wheel with compiled kernels for this Python and platform, and check it
	@$(RUN)/python -m tools.wheel

lock: $(READY) ## Pin versions anew in requirements.lock
	@$(RUN)/pip install --quiet uv
	@$(RUN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
		--extra rules --extra spark --group dev pyproject.toml --upgrade -o requirements.lock > /dev/null

clean: ## Remove the environment, wheels, and what the demo wrote
	@rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" sh setup.sh "$(VENV)"
	@touch $@
