# Two commands: `make demo` shows the grader at work, `make test` tests it. Each sets itself up.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
# There while something is being installed.
HALF := $(VENV)/.unfinished
HAS_PIP := $(VENV)/bin/python -m pip --version >/dev/null 2>&1
# python -m venv that Ctrl-C ends without a traceback.
MAKE_VENV := $(PYTHON) -c 'import signal, venv; signal.signal(signal.SIGINT, signal.SIG_DFL); venv.main()' $(VENV)
PIP := python -m pip install --quiet --disable-pip-version-check
# A hand-out has no solution, and perhaps no specimen: the demo grades what is there.
RIGHT := $(wildcard kernels_ref/groupnorm/solution.py)
WRONG := $(wildcard tests/specimens/groupnorm_stats_per_position.py)
GROUPNORMS := $(RIGHT) kernels_student/groupnorm.py $(WRONG)
STATUS := $(if $(WRONG),1,4)
VERDICTS := $(strip $(if $(RIGHT),passed) not_attempted $(if $(WRONG),failed))
# torch finds ninja, and recipes find grader, by this path.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Every file of the checkout that git does not ignore.
SOURCES := git ls-files --cached --others --exclude-standard --
# How this machine installs what pip cannot: make's own guess, shown in error messages only.
APT := $(shell command -v apt-get 2>/dev/null)
BREW := $(shell command -v brew 2>/dev/null)
GET := $(if $(APT),sudo apt-get install -y,$(if $(BREW),brew install,sudo dnf install -y))
GET_CXX := $(if $(APT),$(GET) g++,$(if $(BREW),xcode-select --install,$(GET) gcc-c++))
GET_VENV := $(if $(APT),$(GET) python3-venv,$(GET) python3)

.DEFAULT_GOAL := help
.PHONY: help demo lint test test-all lab bench clean system

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s%s\n", $$1, $$2 }' Makefile

demo: $(READY)  ## grade three GroupNorm kernels: a right one, an unwritten one, a wrong one
	@rm -f $(VENV)/demo.json
	@$(if $(RIGHT),,echo "This copy has no kernels_ref/groupnorm/solution.py: the right kernel is left out.")
	@# The grader's own exit status is that of the worst: failed, or not attempted. These files are the project's own.
	@grader grade $(GROUPNORMS) --problem kernels_ref/groupnorm/model.py --allow-unsandboxed --json $(VENV)/demo.json; test $$? -eq $(STATUS)
	@test "$$(sed 's/.*"outcome":"\([a-z_]*\)".*/\1/' $(VENV)/demo.json | xargs)" = "$(VERDICTS)" \
		|| { echo "These are not the verdicts that the demo should give: $(VERDICTS)." >&2; exit 1; }

lint: $(READY)  ## check format, names and types: ruff, clang-format, pyright
	@ruff check --quiet .
	@ruff format --quiet --check . || { echo "Not formatted as ruff does: run 'ruff format .'" >&2; exit 1; }
	@$(SOURCES) '*.h' '*.cuh' '*.cpp' '*.cu' | xargs -r clang-format --dry-run -Werror
	@pyright --warnings

test: lint  ## lint, then test every unit: four minutes on two cores
	pytest -n 2 -rfEs -m "not slow"
	pytest --nbval --nbval-current-env lessons/01_naive_conv.ipynb

# UNTIL, in seconds since 1970: slow tests that have not begun by then are skipped, and reported.
test-all: test  ## what test does, then the slow tests and every other lesson
	pytest -n 2 -rfEs --durations=15 -m slow $(if $(UNTIL),--until $(UNTIL))
	pytest -n 2 --dist loadfile --nbval --nbval-current-env --ignore=lessons/01_naive_conv.ipynb lessons

lab: $(READY)  ## open the first lesson in JupyterLab
	@case "$${JUPYTER_PORT:-8888}" in *[!0-9]*|??????*) echo "JUPYTER_PORT=$$JUPYTER_PORT is no port: say a number, as in JUPYTER_PORT=8899 make lab." >&2; exit 2;; esac
	@jupyter lab --config=lessons/.jupyter/config.py $(if $(LESSON),--LabApp.default_url=/lab/tree/$(LESSON))

bench: $(READY)  ## on a GPU: time all references beside torch; else print this machine's figures beside stock load_inline's
	@if python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; \
		then grader bench --out benchmarks/data/bench.json && grader bench --backward --add --out benchmarks/data/bench.json \
		&& grader bench --sweep --out benchmarks/data/sweep.json; else python benchmarks/timing/cpu.py; fi

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
	@# After an interruption all is made anew: pip takes a package that is half there for installed.
	@test ! -e $(HALF) && $(HAS_PIP) || { rm -rf $(VENV)/bin && rm -rf $(VENV) && mkdir $(VENV) && touch $(HALF) && $(MAKE_VENV); }
	@# Where pip itself gives up (no network, say), what there was before is kept.
	@touch $(HALF); trap 'exit 130' INT; { $(PIP) -r requirements.lock && $(PIP) --no-deps --no-build-isolation -e .; } || { rm $(HALF); exit 1; }
	@rm $(HALF)
	@echo "Compiling what every kernel is built with ..."
	@# A submission's process cannot write the byte code of what it alone imports.
	@python -m compileall -q grader simt
	@# "count" is for predicted times, which a user's first check tells
	@python -c 'import simt; from simt.toolchain import build; simt.warm_up(); build.warm_up(modes=["count"])'
	@touch $@
