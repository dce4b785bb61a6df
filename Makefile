# The two commands: `make demo` and `make test`. Everything else is a part of them or a longer check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
STAMP := $(VENV)/.dev

.PHONY: unit-rooms unit-cases unit-contract unit-proofs unit-webui help demo test test-slow truth soak exact lint types contracts unit rooms package wheelhouse webui webui-check bench clean

help:            ## list the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BASE): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(f"llm-locust needs Python 3.11 or newer, this is {sys.version.split()[0]}: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(STAMP): $(BASE)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(BASE)    ## a distributed sweep against the embedded server: stage table and files, under 3 minutes
	$(BIN)/llm-locust demo

test: $(STAMP) lint types contracts webui-check unit package   ## every check that CI runs

lint: $(STAMP)   ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy --strict
	$(BIN)/mypy

contracts: $(STAMP)  ## which room may import which
	$(BIN)/lint-imports

# The tests in five parts: most of them wait for processes, so the parts run side by side. What is not in a part of
# its own is in the first.
PARTS := unit-rooms unit-cases unit-contract unit-proofs unit-webui
# Real servers, masters and workers share two cores here: what fails is tried twice more, each try is told, and what
# fails three times has failed.
PYTEST := -q --durations=8 --reruns 2 -rfER -m "not slow" -p no:cacheprovider
REST := tests/cases tests/contract tests/proofs tests/webui tests/real tests/truth

unit: $(STAMP)   ## the tests, without the slow ones
	$(MAKE) --no-print-directory --keep-going -j $(words $(PARTS)) --output-sync=target $(PARTS)

unit-rooms: $(STAMP)
	$(BIN)/pytest $(PYTEST) $(REST:%=--ignore=%)
unit-cases: $(STAMP)
	$(BIN)/pytest $(PYTEST) tests/cases
unit-contract: $(STAMP)
	$(BIN)/pytest $(PYTEST) tests/contract
unit-proofs: $(STAMP)
	$(BIN)/pytest $(PYTEST) tests/proofs tests/real tests/truth
unit-webui: $(STAMP)
	$(BIN)/pytest $(PYTEST) tests/webui

rooms: $(STAMP)  ## the tests of the rooms that start no Locust; PYTHON=… VENV=… for another Python
	$(BIN)/pytest -q --reruns 2 -m "not slow" tests/protocol tests/wire tests/measure tests/prompts tests/outputs

test-slow: $(STAMP)  ## the slow tests only
	$(BIN)/pytest -m slow

truth: $(STAMP)  ## reported times against the sender's own: 400 streams, plain, under TLS, and with the hub held
	$(BIN)/pytest -q -rs --reruns 1 -m slow tests/truth

soak: $(STAMP)   ## ten minutes at time scale 60: memory that does not grow, nothing lost
	$(BIN)/pytest -s -m slow tests/proofs/test_soak.py

exact: $(STAMP)  ## rows against the server's own account at the end of a distributed run, ten runs of ten
	$(BIN)/pytest -s -m slow tests/proofs/test_exact.py

package: $(STAMP)  ## wheel and sdist build; the wheel installs without a network from a wheelhouse
	$(BIN)/python scripts/check_package.py

wheelhouse: $(BASE)  ## wheels for machines without a network (x86_64 and aarch64)
	$(BIN)/python scripts/wheelhouse.py wheelhouse

webui:           ## build the front end from its source (needs Node 20 or newer; running it does not)
	cd webui && npm ci --no-progress && npm run build

webui-check: webui  ## lint and test the front end; fail where the committed bundle is not what its source gives
	cd webui && npm run lint && npm test
	@git status --porcelain -- llm_locust/webui | (! grep .) || { echo "llm_locust/webui differs from its source: commit what make webui built"; exit 1; }

# The last two put other tools, some 14 GB, under benchmarks/build; make bench BENCHES="receive tls" for a part.
BENCHES := receive tls verdict many_users startup master soak report peers truth
bench: $(STAMP)  ## what it costs and how true its times are, beside other tools (90 minutes); 2 where a bar is missed
	$(MAKE) --no-print-directory --keep-going $(BENCHES:%=bench-%)

bench-%: $(STAMP)
	$(BIN)/python -m benchmarks.$*

clean:           ## remove what the targets made
	rm -rf $(VENV) dist build wheelhouse
