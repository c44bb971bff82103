# Two commands: `make demo` and `make test`. Both make the virtual environment first and need Python 3.11 or newer.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
INSTALL := $(PIP) --constraint constraints.txt
# $(call watched,WHAT,COMMAND): runs it, and shows the seconds and the last line that it printed: on a terminal in one
# line, elsewhere every ten seconds. What it printed stays in install.log.
watched = @log=$(VENV)/install.log; echo "installing $(1)"; \
	( s=0; while sleep 1 && kill -0 $$$$ 2>/dev/null; do s=$$((s + 1)); line=`tail -n 1 $$log | cut -c 1-60`; \
		if [ -t 1 ]; then printf '\r\033[K  %d s  %s' $$s "$$line"; \
		elif [ $$((s % 10)) = 0 ]; then echo "  $$s s  $$line"; fi; done ) & shown=$$!; \
	{ $(2); } >$$log 2>&1; code=$$?; kill $$shown; if [ -t 1 ]; then printf '\r\033[K'; fi; \
	[ $$code = 0 ] || { tail -n 15 $$log; exit $$code; }
# The demo keeps everything below one folder of the clone; remove the folder and it is gone.
export AUTORESEARCH_HOME ?= $(CURDIR)/.demo
# So many tests at a time: on two cores a third runs while others wait. The slow ones wait for more than half of their time.
JOBS ?= 3
SLOW_JOBS ?= 5
# So many daemons in the demo: make demo N=5.
N ?= 3

.PHONY: demo test test-slow test-libraries hunt shrink mutants lint benchmarks benchmarks-quick docs dist size clean

demo: $(VENV)/installed
	@$(BIN)/autoresearch demo --peers $(N)

test: $(VENV)/installed-test
	@env -u AUTORESEARCH_HOME $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow"

# On the disk: what sandboxes are shown must not lie below /dev.
test-slow: $(VENV)/installed-test
	@env -u AUTORESEARCH_HOME PYTEST_DEBUG_TEMPROOT=/tmp $(BIN)/python -m pytest -q -n $(SLOW_JOBS) --dist load --maxschedchunk 1 -m slow

# OpenEnv's client and server bring a hundred packages, of other versions than those of the tests, and jax is large. So
# they have an environment of their own above that of the tests.
$(VENV)/libraries/installed: $(VENV)/installed-test
	@$(BIN)/python -m venv $(VENV)/libraries
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		>`$(VENV)/libraries/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'`/tests.pth
	$(call watched,libraries of others,$(VENV)/libraries/bin/pip install --disable-pip-version-check openenv-core==0.3.0 jax==0.10.2)
	@touch $@

test-libraries: $(VENV)/libraries/installed
	@env -u AUTORESEARCH_HOME $(VENV)/libraries/bin/python -m pytest -q tests/project/test_openenv.py tests/services/test_jax.py

# Properties alone, with HUNT times as many examples, other ones each time.
HUNT ?= 80
hunt: $(VENV)/installed-test
	@env -u AUTORESEARCH_HOME $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow" --hunt $(HUNT)

# Properties again, where `make test` showed that one fails: the example is made as small as it goes, however long it takes.
TESTS ?= tests
shrink: $(VENV)/installed-test
	@env -u AUTORESEARCH_HOME $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow" --shrink $(TESTS)

# Do the tests notice a change? So many changes in each room, and each room's share of those that a test noticed.
EACH ?= 10
ROOMS ?=
mutants: $(VENV)/installed-test
	@env -u AUTORESEARCH_HOME $(BIN)/python -m benchmarks.mutants --each $(EACH) $(ROOMS)

lint: $(VENV)/installed-lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmarks: $(VENV)/installed-benchmarks
	@env -u AUTORESEARCH_HOME $(BIN)/python -m benchmarks

# Every benchmark in small, for not dying and for figures that are possible, never for speed.
benchmarks-quick: $(VENV)/installed-benchmarks
	@env -u AUTORESEARCH_HOME $(BIN)/python -m benchmarks --all --quick

# The documents as a site, with the tables that are made from the code. It is read without network and without a server.
docs: $(VENV)/installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict >$(VENV)/docs.log 2>&1 || { cat $(VENV)/docs.log; exit 1; }
	@echo "open site/index.html"

# What a release is: the sources as one archive, a wheel that is built from it, and the plug-in for coding agents with its
# manifests. WHEELHOUSE=1 adds the wheels of all
# that it needs but torch, in dist/wheels; EXTRAS="projects ssh" those of extras that are installed here.
dist: $(VENV)/installed-lint
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . >$(VENV)/build.log 2>&1 || { tail -n 15 $(VENV)/build.log; exit 1; }
	@cp autoresearch/network.txt dist/
	@$(BIN)/python .ci/plugins.py dist/agents
	@test -z "$(WHEELHOUSE)" || $(BIN)/python .ci/wheelhouse.py dist/wheels $(EXTRAS)
	@ls -d dist/*
	@echo "install with a network: pip install --constraint constraints.txt dist/*.whl"
	@echo "without one (make dist WHEELHOUSE=1): pip install --no-index --find-links dist/wheels dist/*.whl"

# Files, lines of code and the share of imports in the three packages.
size:
	@$(PYTHON) benchmarks/size.py

clean:
	rm -rf $(VENV) .demo dist build site

# torch first and by itself: where a build without CUDA is offered under this version, it is the one that is taken.
$(VENV)/torch: constraints.txt
	@test -n "$(PYTHON)" || { echo "autoresearch needs Python 3.11 or newer: apt install python3 python3-venv"; exit 1; }
	@command -v bwrap >/dev/null || echo "note: no bubblewrap here, runs are walled in less well: apt install bubblewrap"
	$(PYTHON) -m venv $(VENV) || { echo "python3 has no venv module: apt install python3-venv"; exit 1; }
	$(call watched,torch: 200 MB or with CUDA 3 GB,$(PIP) torch==2.13.0)
	@touch $@

$(VENV)/installed: $(VENV)/torch pyproject.toml autoresearch/network.txt
	$(call watched,autoresearch,$(INSTALL) --editable . && $(PIP) --no-deps --requirement autoresearch/network.txt)
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(call watched,what the tests need,$(INSTALL) --editable .[test])
	@touch $@

$(VENV)/installed-lint: $(VENV)/installed-test
	$(call watched,what the linters need,$(INSTALL) --editable .[lint])
	@touch $@

$(VENV)/installed-benchmarks: $(VENV)/installed
	$(call watched,what the benchmarks need,$(INSTALL) --editable .[benchmark])
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(call watched,what the site needs,$(INSTALL) --editable .[docs])
	@touch $@
