"""Runs a solution of kernels_ref at a size: the same model and inputs on the CPU and on the GPU."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from grader import problem as _problem  # noqa: E402
from grader.cases import Case  # noqa: E402

# The cases at which counters are held against hardware: the ragged one, and the full problem's channels on a small image.
COUNTED = ("prime sizes", "batch 1")


def files() -> list[Path]:
    """Every solution and step of kernels_ref."""
    return sorted([*ROOT.glob("kernels_ref/*/solution.py"), *ROOT.glob("kernels_ref/*/steps/*.py")])


def name(file: Path) -> str:
    """'groupnorm', or 'groupnorm/01_naive' for a step."""
    return file.parent.name if file.name == "solution.py" else f"{file.parent.parent.name}/{file.stem}"


def problem(file: Path) -> _problem.Problem:
    return _problem.find(file)


def counted_cases(file: Path) -> list[Case]:
    return [c for c in problem(file).cases() if any(word in c.name for word in COUNTED)]


def full(file: Path, **sizes: int) -> Case:
    """The file's own sizes, or some of them changed."""
    return Case("full size", dict(sizes), "file", 1)


def load(file: Path):
    """The solution's module; importing it compiles its kernels."""
    spec = importlib.util.spec_from_file_location("solution_" + name(file).replace("/", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare(file: Path, module, case: Case, device: str, made_on: str = "cpu"):
    """A call that runs ModelNew once on this case's inputs. Values drawn on the CPU are the same on every machine."""
    instance = problem(file).instantiate(case, 0, made_on)
    model = module.ModelNew(*instance.init_args, **instance.init_kwargs)
    model.load_state_dict(instance.model.state_dict())
    model = model.to(device)
    inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in instance.inputs]

    def run():
        with torch.no_grad():
            return model(*inputs)

    return run
