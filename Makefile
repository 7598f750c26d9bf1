# Two commands: `make demo` shows the grader at work, `make test` tests everything. Each sets itself up.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
GROUPNORMS := kernels_ref/groupnorm/solution.py kernels_student/groupnorm.py \
	tests/specimens/groupnorm_stats_per_position.py
# torch finds ninja, and recipes find grader, by this path.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# How this machine installs what pip cannot: make's own guess, shown in error messages only.
APT := $(shell command -v apt-get 2>/dev/null)
BREW := $(shell command -v brew 2>/dev/null)
GET := $(if $(APT),sudo apt-get install -y,$(if $(BREW),brew install,sudo dnf install -y))
GET_CXX := $(if $(APT),$(GET) g++,$(if $(BREW),xcode-select --install,$(GET) gcc-c++))
GET_VENV := $(if $(APT),$(GET) python3-venv,$(GET) python3)

.DEFAULT_GOAL := help
.PHONY: help demo test test-long lab bench clean system

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s%s\n", $$1, $$2 }' Makefile

demo: $(READY)  ## grade three GroupNorm kernels: a right one, an unwritten one, a wrong one
	@# One of the three fails, so the grader's own exit status must be 1.
	@grader grade $(GROUPNORMS) --problem kernels_ref/groupnorm/model.py --json $(VENV)/demo.json; test $$? -eq 1
	@test "$$(sed 's/.*"outcome":"\([a-z_]*\)".*/\1/' $(VENV)/demo.json | xargs)" = "passed not_attempted failed" \
		|| { echo "These are not the verdicts that the demo should give: passed, not attempted, failed." >&2; exit 1; }

test: $(READY)  ## run the tests and every lesson
	pytest -n 2 -rs -m "not long"
	pytest -n 2 --dist loadfile --nbval --nbval-current-env lessons

test-long: $(READY)  ## run the tests that take too long to be run each time
	pytest -n 2 -rs -m long

lab: $(READY)  ## open the first lesson in JupyterLab
	@jupyter trust lessons/*.ipynb >/dev/null  # else their outputs are shown without their style
	@jupyter lab --config=lessons/.jupyter/config.py $(if $(LESSON),--LabApp.default_url=/lab/tree/$(LESSON))

bench: $(READY)  ## on a GPU: time all references beside torch; else print this machine's figures beside stock load_inline's
	@if python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; \
		then grader bench --out benchmarks/data/bench.json && grader bench --backward --add --out benchmarks/data/bench.json \
		&& grader bench --sweep --out benchmarks/data/sweep.json; else python benchmarks/cpu.py; fi

clean:  ## remove what was generated or cached; your kernels and .venv stay
	rm -rf build dist reports .pytest_cache *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -not -path './$(VENV)/*' -prune -exec rm -rf {} +

system:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed and $(PYTHON) was not found: $(GET) python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Python 3.11 or newer is needed and $(PYTHON) is older: $(GET) python3.11, then make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: $(GET_VENV)" >&2; exit 1; }
	@command -v $${CXX:-g++} >/dev/null || { echo "A C++ compiler is needed and $${CXX:-g++} was not found: $(GET_CXX)" >&2; exit 1; }

# Made anew when the requirements change.
$(READY): pyproject.toml requirements.lock | system
	@echo "Installing into $(VENV) (a few minutes the first time) ..."
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo "Compiling what every kernel is built with ..."
	@python -c 'import simt; simt.warm_up()'
	@touch $@
