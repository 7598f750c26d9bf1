"""Runs solutions and steps of kernels_ref at a size, with the same model and inputs on the CPU and on the GPU.

    python benchmarks/references.py [NAME …] [--out FILE]     times steps (conv2d/01_naive) or problems' ladders (conv2d); all

Needs a GPU and nvcc. Writes data/steps.json: for each step at full size the time of the whole model and of each of its kernels,
medians with L2 flushed before each run, and how far its result is from float64. What is not run keeps its row.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from grader import problem as _problem  # noqa: E402
from grader.cases import Case  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "steps.json"  # times on a GPU

# The cases at which counters are held against hardware: the ragged one, and the full problem's channels on a small image.
COUNTED = ("prime sizes", "batch 1")


def solutions() -> list[Path]:
    return sorted(ROOT.glob("kernels_ref/*/solution.py"))


def steps() -> list[Path]:
    """Every step of kernels_ref, each problem's in order."""
    return sorted(ROOT.glob("kernels_ref/*/steps/*.py"))


def beside() -> list[Path]:
    """What stands beside a ladder because its answers are of another precision class: timed, not predicted."""
    return sorted(ROOT.glob("kernels_ref/*/split.py"))


def backwards() -> list[Path]:
    return sorted(ROOT.glob("kernels_ref/*/backward.py"))


def files() -> list[Path]:
    return solutions() + steps()


def counted() -> list[Path]:
    """What counters are held against hardware for, case by case."""
    return files() + backwards()


def name(file: Path) -> str:
    """'groupnorm', or 'groupnorm/01_naive' for a step."""
    if file.name == "solution.py":
        return file.parent.name
    return f"{(file.parent.parent if file.parent.name == 'steps' else file.parent).name}/{file.stem}"


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
    """A call that runs ModelNew once on this case's inputs, and its backward if the file is a backward. Values drawn on the CPU are the
    same on every machine."""
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
    """The same at full size on the CPU, for a kernel that hardly runs: an input that is no more than its addresses."""
    small = problem(file).instantiate(full(file, batch_size=1), 0, "cpu")
    model = module.ModelNew(*small.init_args, **small.init_kwargs)
    (x,) = small.inputs
    inputs = torch.empty((problem(file).literals["batch_size"], *x.shape[1:]))

    def run():
        with torch.no_grad():
            return model(inputs)

    return run


def source(file: Path) -> str:
    """What tells a file's code from another's; the text at its head does not count."""
    code = file.read_text(encoding="utf-8").split('"""', 2)[2]
    return hashlib.sha256(code.encode()).hexdigest()[:12]


# ---- steps on a GPU ----

SECONDS = 1.0   # about as long is each step run
RUNS = (2, 20)  # but at least and at most so often


def build(file: Path) -> str:
    """Compiles a file's extension into torch's own cache, in a process of its own; what it said if that failed."""
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, 'benchmarks'); import references; references.load(references.Path(sys.argv[1]))"]
    done = subprocess.run([*command, str(file)], cwd=ROOT, env=os.environ | {"MAX_JOBS": "2"}, capture_output=True, text=True, check=False)
    return done.stderr[-3000:] if done.returncode else ""


def time_step(file: Path) -> dict:
    """At full size: milliseconds of the model and of each of its kernels, and the largest error in three of its images."""
    module = load(file)
    instance = problem(file).instantiate(full(file), 0, "cuda")
    model = module.ModelNew(*instance.init_args, **instance.init_kwargs).to("cuda")
    model.load_state_dict(instance.model.state_dict())
    inputs = list(instance.inputs)
    other = torch.rand(64 << 20, device="cuda")  # reading its 256 MB takes everything else out of L2

    def once() -> float:
        other.sum()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        with torch.no_grad():
            model(*inputs)
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop)

    once()
    runs = int(min(max(SECONDS / (once() / 1e3), RUNS[0]), RUNS[1]))
    whole = [once() for _ in range(runs)]
    profiled = min(runs // 2, 5)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
        for _ in range(profiled):
            once()
    return {
        "ms": statistics.median(whole), "runs": runs, "source": source(file), "kernels": kernels_of(record, profiled),
        "error": error_at_full_size(instance, model, inputs),
    }  # fmt: skip


def kernels_of(record, runs: int) -> dict[str, dict]:
    """Each kernel's launches in a run of the model, and the median of one, in milliseconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        record.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    times: dict[str, list[float]] = {}
    registers: dict[str, int] = {}
    for event in events:
        if event.get("cat") == "kernel" and "at::native" not in event["name"]:
            kernel = plain(event["name"])
            times.setdefault(kernel, []).append(event["dur"] / 1e3)
            registers[kernel] = event["args"].get("registers per thread")
    return {kernel: {"ms": statistics.median(ms), "launches": len(ms) // runs, "registers": registers[kernel]} for kernel, ms in times.items()}


def plain(kernel: str) -> str:
    """A kernel's name as simt gives it: no result type, no parameters."""
    return kernel.split("(")[0].removeprefix("void ")


def error_at_full_size(instance, model, inputs: list[torch.Tensor]) -> float:
    """Largest distance from float64 in the first, a middle and the last image (a row, of a product): none needs the others."""
    x, *others = inputs
    with torch.no_grad():
        got = model(*inputs)
    errors = []
    for image in (0, len(x) // 2, len(x) - 1):
        instance.inputs[:] = [x[image : image + 1], *others]
        (expected,) = instance.expected()
        errors.append((got[image : image + 1].double() - expected).abs().max().item())
    return max(errors)


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
def main(names: tuple[str, ...], out: Path) -> None:
    from machine import machine

    if not torch.cuda.is_available():
        raise click.ClickException("Steps are timed on a GPU, and this machine has none.")
    chosen = [f for f in steps() + beside() if not names or name(f) in names or name(f).split("/")[0] in names]
    if not chosen:
        raise click.ClickException("No step has such a name; they are " + ", ".join(map(name, steps())) + ".")
    data = json.loads(DATA.read_text()) if DATA.exists() and names else {"steps": {}}
    data["machine"] = machine()
    start = time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        said = list(pool.map(build, chosen))
    print(f"{time.perf_counter() - start:.0f} s: compiled", flush=True)
    failed = 0
    for file, words in zip(chosen, said, strict=True):
        try:
            if words:
                raise RuntimeError(words)
            row = data["steps"][name(file)] = time_step(file)
            print(f"{time.perf_counter() - start:.0f} s: {name(file)}: {row['ms']:.4g} ms, error {row['error']:.2g}", flush=True)
        except Exception as error:  # noqa: BLE001  (one step that fails must not take the others with it)
            failed += 1
            print(f"{name(file)} FAILED: {error}", flush=True)
        torch.cuda.empty_cache()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
