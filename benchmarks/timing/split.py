"""Time the builds for a GPU that compile host and device code apart (simt/gpu), and compare what they make with nvcc's.

    python benchmarks/timing/split.py                every file of kernels_ref; writes data/split.json
    python benchmarks/timing/split.py --stock 3      torch's own load_inline, too, for every third file
    python benchmarks/timing/split.py --only NAME    only files whose name contains this; the others' rows stay, and
                                                     what this run does not measure
    python benchmarks/timing/split.py --readme       print and publish the table of data/split.json, without a GPU

Each file is executed where torch is imported already: with nothing of it cached ("new"), with another comment added to
its CUDA sources ("edited"), and once more as it is ("unchanged"). Where torch's load_inline is timed, results
are compared bit by bit in all cases, with the gradients' where the file has a backward, and the two builds take turns
at the problem's full size: the ratio is the median of the split build's time over that of nvcc's.
"""

from __future__ import annotations

import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, write_section

DATA = DATA_FOLDER / "split.json"
TURNS = 15  # of the two builds at full size
MARK = "row "  # before a row in a child's output
_writing = threading.Lock()
HEADS = ["build", "files", "median, s", "worst, s", "of"]
COMMAND = "timing/split.py"


def find_files() -> dict[str, Path]:
    """Return the files of kernels_ref that build an extension, by their names."""
    found = sorted((ROOT / "kernels_ref").rglob("*.py"))
    return {
        str(file.relative_to(ROOT / "kernels_ref")).removesuffix(".py"): file
        for file in found
        if "load_inline" in file.read_text(encoding="utf-8")
    }


# ---- in a process of its own ----


def execute(file: Path, load_inline: Callable, remark: str = "") -> tuple[types.ModuleType, float]:
    """Return the file as a module whose extensions load_inline builds, and the seconds that it took.

    remark: a comment added to the CUDA sources.
    """
    from simt.runtime.torch_extension import cpp_extension

    def edited(*args, **kwargs):
        cuda = kwargs.get("cuda_sources")
        if remark and cuda:
            kwargs["cuda_sources"] = f"{cuda}\n// {remark}\n" if isinstance(cuda, str) else [*cuda, f"// {remark}\n"]
        return load_inline(*args, **kwargs)

    module = types.ModuleType("measured")
    module.__file__ = str(file)
    code = compile(file.read_text(encoding="utf-8"), str(file), "exec")
    kept, cpp_extension.load_inline = cpp_extension.load_inline, edited
    try:
        begun = time.perf_counter()
        exec(code, module.__dict__)
        return module, time.perf_counter() - begun
    finally:
        cpp_extension.load_inline = kept


def measure(file: Path, stock: bool) -> dict:
    """Return a file's row."""
    from simt.runtime import gpu_extension

    remark = f"{file.name} {time.time_ns()}"
    gpu_extension.ways.clear()
    row: dict = {}
    _, row["new"] = execute(file, gpu_extension.load_inline, f"new {remark}")
    mine, row["edited"] = execute(file, gpu_extension.load_inline, f"edited {remark}")
    _, row["unchanged"] = execute(file, gpu_extension.load_inline, f"edited {remark}")
    row["ways"] = sorted(set(gpu_extension.ways.values()))
    if stock:
        theirs, row["stock"] = execute(file, gpu_extension.stock_load_inline)
        row |= compare(file, mine, theirs)
    return row


def compare(file: Path, mine: types.ModuleType, theirs: types.ModuleType) -> dict:
    """Return whether the two modules' results are the same bits, and the ratio of their times at full size."""
    import torch

    from grader.problems import problem

    folder = file.parent.parent if file.parent.name == "steps" else file.parent
    task = problem.read(folder / "model.py")
    differ = [
        case.name for case in task.cases() if not all(map(same_bits, run(task, case, mine), run(task, case, theirs)))
    ]
    instance = task.instantiate(task.full(), 1, "cuda")
    models = []
    for module in (mine, theirs):
        model = module.ModelNew(*instance.init_args).to("cuda")
        model.load_state_dict(instance.model.state_dict())
        models.append(model)
    ratios = []
    with (Path(tempfile.gettempdir()) / "gpu-turn").open("w") as turn, torch.no_grad():
        fcntl.flock(turn, fcntl.LOCK_EX)  # one file at a time has the GPU
        for number in range(TURNS):
            order = models if number % 2 else models[::-1]
            taken = {id(model): time_once(model, instance.inputs) for model in order}
            ratios.append(taken[id(models[0])] / taken[id(models[1])])
    return {"differ": differ, "ratio": statistics.median(ratios[3:]), "ms": 1e3 * taken[id(models[1])]}


def run(task, case, module: types.ModuleType) -> list:
    """Return the results of a case, and the gradients of all parameters if there are any."""
    import torch

    instance = task.instantiate(case, 1, "cuda")
    model = module.ModelNew(*instance.init_args).to("cuda")
    model.load_state_dict(instance.model.state_dict())
    inputs = [
        value.clone().requires_grad_() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for value in instance.inputs
    ]
    got = model(*inputs)
    outputs = list(got) if isinstance(got, (tuple, list)) else [got]
    learned = [value for value in outputs if value.requires_grad]
    if learned:
        torch.autograd.backward(learned, [torch.ones_like(value) for value in learned])
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    grads = [value.grad for value in (*tensors, *model.parameters()) if value.grad is not None]
    return [value.detach().cpu() for value in (*outputs, *grads)]


def same_bits(a, b) -> bool:
    import torch

    return a.shape == b.shape and torch.equal(a.view(torch.uint8).flatten(), b.view(torch.uint8).flatten())


def time_once(model, inputs: list) -> float:
    """Return the seconds of one call on the GPU."""
    import torch

    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(3):
        model(*inputs)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 3e3


# ---- all of them ----


def measure_all(files: dict[str, Path], every: int, jobs: int, data: dict) -> None:
    """Measure the files in `jobs` processes, and write the data file after each file."""
    numbered = [(name, file, bool(every) and number % every == 0) for number, (name, file) in enumerate(files.items())]
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(measure_apart, numbered[start::jobs], jobs, data) for start in range(jobs)]
        for done in running:
            done.result()


def measure_apart(files: list[tuple[str, Path, bool]], jobs: int, data: dict) -> None:
    """Measure files one after another in a process of their own, or in several where one of them ends it."""
    while files:
        with tempfile.TemporaryDirectory() as folder, (Path(folder) / "errors").open("w+") as errors:
            child = subprocess.Popen(
                [sys.executable, __file__, "--child", json.dumps([[str(file), stock] for _, file, stock in files])],
                env=os.environ | {"TORCH_EXTENSIONS_DIR": folder},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith(MARK):
                    row = json.loads(line.removeprefix(MARK))
                    row |= {"jobs": jobs} | ({"stock_jobs": jobs} if "stock" in row else {})
                    keep(data, files.pop(0)[0], row)
            if child.wait() and files:
                errors.seek(0)
                keep(data, files.pop(0)[0], {"error": errors.read()[-1500:]})


def keep(data: dict, name: str, row: dict) -> None:
    with _writing:
        data["files"][name] = data["files"].get(name, {}) | row
        DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
        print(name, row, flush=True)


def make_readme(data: dict) -> str:
    """Return the table and the sentences below it."""
    rows = {name: row for name, row in data["files"].items() if "error" not in row}
    cells = []
    for kind, head in (
        ("new", "apart, nothing cached"),
        ("edited", "apart, after an edit of the CUDA source"),
        ("unchanged", "apart, unchanged"),
        ("stock", "torch's load_inline"),
    ):
        seconds = {name: row[kind] for name, row in rows.items() if kind in row}
        if seconds:
            worst = max(seconds, key=lambda name: seconds[name])
            median = statistics.median(seconds.values())
            cells.append([head, str(len(seconds)), f"{median:.2f}", f"{seconds[worst]:.2f}", worst])
    apart = sum(row["ways"] == ["split"] for row in rows.values())
    compared = {name: row for name, row in rows.items() if "ratio" in row}
    differ = [f"{name} ({', '.join(row['differ'])})" for name, row in compared.items() if row["differ"]]
    ratios = sorted(row["ratio"] for row in compared.values())
    notes = [f"{apart} of {len(data['files'])} files were compiled apart."]
    if compared:
        notes.append(
            f"Of {len(compared)} files that torch built, too, {len(compared) - len(differ)} gave the same "
            f"bits in every case{'; not ' + ', '.join(differ) if differ else ''}; their times at full size were "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f} times nvcc's, median {statistics.median(ratios):.3f}."
        )
    failed = [name for name, row in data["files"].items() if "error" in row]
    if failed:
        notes.append(f"Not measured, because of an error: {', '.join(failed)}.")
    at_once = {
        kind: max((row[kind] for row in rows.values() if kind in row), default=1) for kind in ("jobs", "stock_jobs")
    }
    notes.insert(0, f"Up to {at_once['jobs']} files at a time, torch's own up to {at_once['stock_jobs']}.")
    source = f"{describe_source(data['machine'], COMMAND)} {' '.join(notes)}"
    return make_table_with_source(HEADS, cells, source)


@click.command(help=__doc__)
@click.option("--stock", "every", default=0, metavar="N", help="Build every Nth file with torch's load_inline, too.")
@click.option("--only", default="", help="Only files whose name contains this.")
@click.option("--jobs", default=4, help="Processes that build at a time.")
@click.option("--readme", is_flag=True, help="Publish the data file's table.")
@click.option("--child", hidden=True)
def main(every: int, only: str, jobs: int, readme: bool, child: str | None) -> None:
    if child:
        for file, stock in json.loads(child):
            print(MARK + json.dumps(measure(Path(file), stock)), flush=True)
        return
    data: dict = json.loads(DATA.read_text()) if DATA.exists() and (only or readme) else {"files": {}}
    if not readme:
        import torch

        if not torch.cuda.is_available():
            raise click.ClickException("These builds are for this machine's GPU, and it has none.")
        from simt.gpu import build

        build.warm_up()
        data["machine"] = describe_machine()
        measure_all({name: file for name, file in find_files().items() if only in name}, every, jobs, data)
    table = make_readme(data)
    print(table)
    if readme:
        write_section("split", table)


if __name__ == "__main__":
    main()
