"""Find the solutions and steps of kernels_ref, and run them with equal models and inputs on the CPU and on the GPU."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import torch

from benchmarks.paths import ROOT
from grader.problems import problem as _problem
from grader.problems.cases import Case

# The cases at which counters are compared with hardware: the ragged one, and the full problem's channels on one small
# image.
COUNTED = ("prime sizes", "batch 1")

# The size that is a problem's batch where it is not called batch_size, and how many of it are counted in place of one
# image. softmax has a thread for each row in one of its steps: a single row would leave its warps empty.
# int4_matvec, int8_matmul and fp8_matvec have few x and many rows of weights.
BATCHES = {
    "softmax": ("rows", 128),
    "scan": ("length", 1),
    "histogram": ("length", 1),
    "compaction": ("length", 1),
    "radix_pass": ("length", 1),
    "int4_matvec": ("rows", 128),
    "int8_matmul": ("rows", 1),
    "fp8_matvec": ("rows", 128),
}

# im2col makes its columns a few images at a time. ncu replays every launch: it profiles two such rounds instead of all.
FULL_SIZES = {"im2col_conv": {"batch_size": 14}, "conv_groupnorm_maxpool": {"batch_size": 14}}


def solutions() -> list[Path]:
    """Return the solution of every problem."""
    return sorted(ROOT.glob("kernels_ref/*/solution.py"))


def steps() -> list[Path]:
    """Return every step of kernels_ref, each problem's in order."""
    return sorted(ROOT.glob("kernels_ref/*/steps/*.py"))


def variants() -> list[Path]:
    """Return the files outside the ladders, of another precision class: they are timed, not predicted."""
    return sorted(ROOT.glob("kernels_ref/*/split.py"))


def backwards() -> list[Path]:
    """Return every backward.py."""
    return sorted(ROOT.glob("kernels_ref/*/backward.py"))


def files() -> list[Path]:
    """Return all solutions and steps."""
    return solutions() + steps()


def counted() -> list[Path]:
    """Return the files whose counters are compared with hardware, case by case."""
    return files() + backwards()


def name(file: Path) -> str:
    """Return the file's name: 'groupnorm' for a solution, 'groupnorm/01_naive' for a step."""
    if file.name == "solution.py":
        return file.parent.name
    return f"{(file.parent.parent if file.parent.name == 'steps' else file.parent).name}/{file.stem}"


def problem(file: Path) -> _problem.Problem:
    """Return the file's problem."""
    return _problem.find(file)


def sizes(file: Path) -> dict[str, int]:
    """Return the whole numbers that the file's problem assigns: its sizes."""
    return {name: value for name, value in problem(file).literals.items() if isinstance(value, int)}


def counted_cases(file: Path) -> list[Case]:
    """Return the cases at which the file's counters are compared."""
    return [c for c in problem(file).cases() if any(word in c.name for word in COUNTED)]


def batch(file: Path) -> tuple[str, int]:
    """Return the name of the size that is the batch of the file's problem, and how many of it are counted as a part."""
    return BATCHES.get(problem(file).name, ("batch_size", 1))


def full(file: Path, **changed: int) -> Case:
    """Return the case with the file's own sizes, some of them changed."""
    return Case("full size", dict(changed), "file", 1)


def load(file: Path) -> ModuleType:
    """Import a file, which compiles its kernels, and return its module. Raises ImportError."""
    spec = importlib.util.spec_from_file_location("solution_" + name(file).replace("/", "_"), file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare(file: Path, module, case: Case, device: str, made_on: str = "cpu"):
    """Return a call that runs ModelNew once on the case's inputs, and its backward if the file is a backward.py.

    made_on: the device that draws the values; those drawn on the CPU are the same on every machine.
    """
    instance = problem(file).instantiate(case, 0, made_on)
    model = module.ModelNew(*instance.init_args, **instance.init_kwargs)
    model.load_state_dict(instance.model.state_dict())
    model = model.to(device)
    inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in instance.inputs]

    def run():
        with torch.no_grad():
            return model(*inputs)

    if file.name != "backward.py":
        return run
    upstream = torch.randn(run().shape, generator=torch.Generator().manual_seed(0)).to(device)
    for x in inputs:
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            x.requires_grad_()
    return lambda: model(*inputs).backward(upstream)


def prepare_unwritten(file: Path, module):
    """Return the same call at full size on the CPU, on inputs that are never written: for a run of a few blocks."""
    name, part = batch(file)
    small = problem(file).instantiate(full(file, **{name: part}), 0, "cpu")
    model = module.ModelNew(*small.init_args, **small.init_kwargs)
    whole = sizes(file)[name]
    inputs = [torch.empty([whole if len(x) == part else len(x), *x.shape[1:]], dtype=x.dtype) for x in small.inputs]

    def run():
        with torch.no_grad():
            return model(*inputs)

    return run


def source(file: Path) -> str:
    """Return a digest of the file's code; the docstring at its head does not count."""
    code = file.read_text(encoding="utf-8").split('"""', 2)[2]
    return hashlib.sha256(code.encode()).hexdigest()[:12]


# ---- building ----


def start_build(file: Path, environment: dict[str, str] | None = None) -> subprocess.Popen:
    """Start a process that compiles a file's extension into torch's own cache."""
    script = "import sys, pathlib; from benchmarks import references; references.load(pathlib.Path(sys.argv[1]))"
    return subprocess.Popen(
        [sys.executable, "-c", script, str(file)],
        cwd=ROOT,
        env=os.environ | {"MAX_JOBS": "2"} | (environment or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def build(file: Path) -> str:
    """Compile a file's extension into torch's own cache. Return the end of the error output if that fails, else ""."""
    process = start_build(file)
    errors = process.communicate()[1]
    return errors[-3000:] if process.returncode else ""
