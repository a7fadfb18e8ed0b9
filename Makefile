# Everything runs in .venv, which is made on first use. `make help` lists the commands.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help book pdf preview check test test-phone binder lab notebooks constraints vendor bench bench-gpu bench-site clean bare-venv venv test-venv
# Two steps that install into .venv at the same time would disturb each other, also with `make -j`.
.NOTPARALLEL:

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

book: venv ## execute the notebooks and build the site in _build/html
	@$(BIN)/python website/build.py

preview: venv ## serve the book here, and build a page again when its source changes
	@$(BIN)/python website/preview.py

pdf: test-venv book ## print the whole book into _build/html/book.pdf
	@$(BIN)/python website/pdf.py

check: test-venv ## check what a change touches, in less than a minute
	@$(BIN)/python tests/check.py

test: test-venv ## check everything: style, types, library, notebooks, site
	@$(BIN)/python tests/run.py

test-phone: test-venv ## visit the pages of the built site as by phone, too
	@$(BIN)/python tests/run.py "site by phone"

binder: test-venv ## install the book as Binder does, and run a chapter in JupyterLab
	@$(BIN)/python website/binder.py

lab: venv ## open the book in JupyterLab
	@$(BIN)/jupyter lab book

notebooks: venv ## execute all notebooks in place and store them in their normal form
	@$(BIN)/python website/notebooks.py

constraints: bare-venv ## resolve requirements.txt anew and write constraints.txt
	@$(BIN)/python website/constraints.py

vendor: venv ## fetch the scripts and fonts that the site serves, from npm
	@$(BIN)/pip install -q brotli
	@$(BIN)/python website/vendor.py

bench-site: test-venv book ## measure how pages open on a slow phone
	@$(BIN)/python website/bench.py

bench: ## measure speed and accuracy beside the peers, in an environment of its own
	@test -x .venv-bench/bin/pip || $(PYTHON) -m venv --clear .venv-bench
	@.venv-bench/bin/pip install -q -r benchmarks/requirements.txt -e .
	@.venv-bench/bin/python benchmarks/run.py

bench-gpu: venv ## measure table, sum and rotation on an NVIDIA GPU
	@$(BIN)/python benchmarks/gpu.py

clean: ## remove the environment and everything built
	@rm -rf .venv .venv-bench _build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

bare-venv:
	@$(PYTHON) website/install.py --bare

venv:
	@$(PYTHON) website/install.py

test-venv:
	@$(PYTHON) website/install.py --test
	@$(BIN)/python website/browser.py
