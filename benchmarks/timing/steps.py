"""Time the steps of kernels_ref at full size on a GPU: data/steps.json.

    python benchmarks/timing/steps.py [NAME …] [--out FILE]

NAME is a step (conv2d/01_naive) or a problem (conv2d), whose ladder is timed; without one all are timed. Needs a GPU
and nvcc. Measured are the time of the whole model and of each of its kernels, medians with L2 flushed before each run
and with everything launched before the GPU begins, and the largest difference from float64. Steps that are not timed
keep their rows, whose date is the machine's unless they have one of their own.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER
from grader.bench.times import EventTimer

DATA = DATA_FOLDER / "steps.json"
SECONDS = 1.0  # of all runs of a step, about
RUNS = (2, 20)  # at least and at most


def time_step(file: Path, known: dict[int, torch.Tensor]) -> dict:
    """Return milliseconds of the model and of each kernel at full size, and the largest error in three images."""
    module = references.load(file)
    instance = references.problem(file).instantiate(references.full(file), 0, "cuda")
    model = module.ModelNew(*instance.init_args, **instance.init_kwargs).to("cuda")
    model.load_state_dict(instance.model.state_dict())
    inputs = list(instance.inputs)
    other = torch.rand(64 << 20, device="cuda")  # reading its 256 MB takes everything else out of L2
    timer = EventTimer(other.sum)

    def time_once() -> float:
        with torch.no_grad():
            return 1e3 * timer(lambda: model(*inputs))

    time_once()
    runs = int(min(max(SECONDS / (time_once() / 1e3), RUNS[0]), RUNS[1]))
    whole = [time_once() for _ in range(runs)]
    profiled = min(runs // 2, 5)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
        for _ in range(profiled):
            time_once()
    return {
        "ms": statistics.median(whole),
        "runs": runs,
        "source": references.source(file),
        "kernels": summarize_kernels(record, profiled),
        "error": measure_error(instance, model, inputs, known),
    }


def summarize_kernels(record, runs: int) -> dict[str, dict]:
    """Return each kernel's launches in a run of the model, and the median milliseconds and registers of a launch."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        record.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    times: dict[str, list[float]] = {}
    registers: dict[str, int] = {}
    for event in events:
        if event.get("cat") == "kernel" and not event["name"].removeprefix("void ").startswith("at::"):  # torch's own
            kernel = strip_name(event["name"])
            times.setdefault(kernel, []).append(event["dur"] / 1e3)
            registers[kernel] = event["args"].get("registers per thread")
    return {
        kernel: {"ms": statistics.median(ms), "launches": len(ms) // runs, "registers": registers[kernel]}
        for kernel, ms in times.items()
    }


def strip_name(kernel: str) -> str:
    """Return a kernel's name as simt gives it: without result type and parameters."""
    return kernel.split("(")[0].removeprefix("void ")


def measure_error(instance, model, inputs: list[torch.Tensor], known: dict[int, torch.Tensor]) -> float:
    """Return the largest difference from float64: of the whole vector, or in the first, a middle and the last image.

    No image needs another, nor a row of a product; an input as long as the first one has a part of each.
    known: the expected results, by image, of another step of the same problem; filled if empty.
    """
    x = inputs[0]
    with torch.no_grad():
        got = model(*inputs)
    if x.dim() == 1:
        if not known:
            (known[0],) = instance.expected()
        return (got.double() - known[0]).abs().max().item()
    errors = []
    for image in sorted({0, len(x) // 2, len(x) - 1}):
        if image not in known:
            instance.inputs[:] = [one[image : image + 1] if len(one) == len(x) else one for one in inputs]
            (known[image],) = instance.expected()
        errors.append((got[image : image + 1].double() - known[image]).abs().max().item())
    return max(errors)


def is_chosen(name: str, names: tuple[str, ...]) -> bool:
    """Return whether the step or its problem is among the names."""
    return name in names or name.split("/")[0] in names


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
def main(names: tuple[str, ...], out: Path) -> None:
    if not torch.cuda.is_available():
        raise click.ClickException("Steps are timed on a GPU, and this machine has none.")
    chosen = [
        f for f in references.steps() + references.variants() if not names or is_chosen(references.name(f), names)
    ]
    if not chosen:
        raise click.ClickException(
            "No step has such a name; they are " + ", ".join(map(references.name, references.steps())) + "."
        )
    machine = describe_machine()
    data = json.loads(DATA.read_text()) if DATA.exists() and names else {"machine": machine, "steps": {}}
    start = time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        build_errors = list(pool.map(references.build, chosen))
    print(f"{time.perf_counter() - start:.0f} s: compiled", flush=True)
    failed = 0
    known: dict[str, dict[int, torch.Tensor]] = {}  # expected results by problem and image
    for file, build_error in zip(chosen, build_errors, strict=True):
        name = references.name(file)
        try:
            if build_error:
                raise RuntimeError(build_error)
            row = data["steps"][name] = time_step(file, known.setdefault(name.split("/")[0], {})) | (
                {"date": machine["date"]} if names else {}
            )
            print(
                f"{time.perf_counter() - start:.0f} s: {name}: {row['ms']:.4g} ms, error {row['error']:.2g}",
                flush=True,
            )
        except Exception as error:
            failed += 1
            print(f"{name} FAILED: {error}", flush=True)
        torch.cuda.empty_cache()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
