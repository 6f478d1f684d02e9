# Every target makes what it needs: `make demo` on a fresh machine is enough.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: install demo demo-fleet test test-slow check build clean

install: $(STAMP)

# The lock file names everything but what only a CUDA build of torch needs: torch pins that itself.
$(STAMP): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(STAMP)
	$(BIN)/robot-fb demo

# Four robots whose policy is no good yet, a simulated operator at the console, and a place there for you.
FLEET := runs/demo-fleet
demo-fleet: $(STAMP)
	test -d $(FLEET)/demos || $(BIN)/robot-fb record --task pick_place --by expert --episodes 30 --out $(FLEET)/demos
	test -d $(FLEET)/base/policy || $(BIN)/robot-fb train bc --data $(FLEET)/demos --preset demo --steps 1500 \
	  --out $(FLEET)/base $$(test -d $(FLEET)/base && echo --resume)
	$(BIN)/robot-fb fleet --robots 4 --policy $(FLEET)/base --data $(FLEET)/demos --operator both \
	  --gate-episodes 40 --out $(FLEET)/rounds $$(test -d $(FLEET)/rounds && echo --resume)

test: $(STAMP)
	$(BIN)/python -m pytest

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow --timeout 3600

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

# Wheel and sdist, each installed into a fresh environment beside the locked packages and started once.
build: $(STAMP)
	rm -rf build dist
	$(BIN)/python -m build --no-isolation
	for package in dist/*.whl dist/*.tar.gz; do \
	  rm -rf build/smoke && $(PYTHON) -m venv build/smoke && \
	  build/smoke/bin/pip install --quiet -r requirements.lock && \
	  build/smoke/bin/pip install --quiet --no-deps --no-build-isolation $$package && \
	  (cd build && smoke/bin/robot-fb tasks && smoke/bin/robot-fb eval --policy expert --task keyed_socket --episodes 2) \
	  || exit 1; \
	done

clean:
	rm -rf build dist .pytest_cache .ruff_cache .import_linter_cache
