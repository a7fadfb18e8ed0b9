# Everything runs in .venv, which is made on first use. `make help` lists the commands.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help book test lab notebooks constraints vendor clean venv test-venv

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

book: venv ## execute the notebooks and build the site in _build/html
	@$(BIN)/python tools/build_book.py

test: test-venv book ## check everything: style, types, library, notebooks, site
	@$(BIN)/python tools/run_tests.py

lab: venv ## open the book in JupyterLab
	@$(BIN)/jupyter lab book

notebooks: venv ## execute all notebooks in place and store them in their normal form
	@$(BIN)/python tools/notebooks.py

constraints: ## resolve requirements.txt anew and write constraints.txt
	@$(PYTHON) tools/constraints.py

vendor: venv ## fetch the scripts and fonts that the site serves, from npm
	@$(BIN)/python tools/vendor.py

clean: ## remove the environment and everything built
	@rm -rf .venv _build .pytest_cache .mypy_cache .ruff_cache .hypothesis

venv:
	@$(PYTHON) tools/install.py

test-venv:
	@$(PYTHON) tools/install.py --test
