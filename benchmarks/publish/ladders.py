"""Write grader/problems/ladders.json: the work of every step, reference solution and fastest file at full size, beside
what was measured, so that a student's kernel can be placed between them on a machine without a GPU.

    python benchmarks/publish/ladders.py [PROBLEM …]     count the solutions and fastest files again; some minutes
    python benchmarks/publish/ladders.py --check         exit status 1 if a file has changed since it was counted

The work of the steps is data/model.json's (validate/model.py --steps). Solutions and fastest files are counted as the
grader counts a submission: a few blocks of each launch, at full size, on memory that is never written. PROBLEM_backward
is one forward and backward of backward.py and of fastest_backward.py, as the grader itself counts them. Measured times
are those of data/steps.json, times.json and bench.json.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from grader.judging import full_size
from grader.judging.grading import Limits, grade
from grader.paths import KERNELS_REF
from grader.problems import ladders
from grader.problems.exercises import BACKWARD
from grader.problems.ladders import Ladder, Launches, Rung
from grader.verdict import Outcome
from grader.worker.messages import TalliedLaunch
from simt.counting.time_model import predict

GPUS = {"NVIDIA H200": "H200", "NVIDIA H100 80GB HBM3": "H100"}
FAR = 2.5  # times as long or as short as measured: such a prediction of a solution or a fastest file is not kept
DIGITS = 6  # of a counter that are kept
PATIENCE = 300.0  # seconds for the counted blocks of one launch


def main_problems() -> list[str]:
    """Return the problems that have a reference solution, then PROBLEM_backward where one has gradients."""
    forward = [file.parent.name for file in references.solutions()]
    return forward + [name + BACKWARD for name in forward if (KERNELS_REF / name / "backward.py").is_file()]


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[PROBLEM …]")
@click.option("--check", is_flag=True, help="Only say whether the file is up to date.")
@click.option("--count", "counted", nargs=2, hidden=True, type=click.Path(path_type=Path))
def main(names: tuple[str, ...], check: bool, counted: tuple[Path, Path] | None) -> None:
    if counted:
        _count(*counted)
        return
    if check:
        stale = list_stale()
        for name in stale:
            print(f"{name} has changed since it was counted")
        sys.exit(1 if stale else 0)
    unknown = sorted(set(names) - set(main_problems()))
    if unknown:
        raise click.UsageError(f"{unknown[0]} is no problem with a reference solution.")
    old = ladders.read_all()
    made = dict(old.problems)
    for name in names or main_problems():
        made[name] = make_ladder(name)
        print(name, "; ".join(f"{rung.name}: {len(rung.launches)}" for rung in made[name].rungs), flush=True)
        machine = {key: str(value) for key, value in describe_machine().items()}  # torch's version is no plain text
        whole = ladders.Ladders(machine, {known: made[known] for known in sorted(made)})
        ladders.DATA.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=0) + b"\n")


def list_stale() -> list[str]:
    """Return the files of kernels_ref whose code is another one than when they were counted, or that are missing."""
    known = {name: ladder.rungs for name, ladder in ladders.read_all().problems.items()}
    stale = []
    for problem in main_problems():
        counted = {rung.name: (rung.source, rung.idea) for rung in known.get(problem, [])}
        for name, file in list_files(problem):
            idea = read_idea(file) if file.parent.name == "steps" else ""
            if counted.get(name) != (references.source(file), idea):
                stale.append(f"{problem}/{name}")
    return stale


def list_files(problem: str) -> list[tuple[str, Path]]:
    """Return the problem's files by the names of their rungs, the steps first."""
    folder = KERNELS_REF / problem.removesuffix(BACKWARD)
    if problem.endswith(BACKWARD):
        others = [("reference", folder / "backward.py"), ("fastest", folder / "fastest_backward.py")]
        return [(name, file) for name, file in others if file.is_file()]
    steps = [(file.stem, file) for file in sorted(folder.glob("steps/*.py"))]
    others = [("reference", folder / "solution.py"), ("fastest", folder / "fastest.py")]
    return steps + [(name, file) for name, file in others if file.is_file()]


def make_ladder(problem: str) -> Ladder:
    """Count a problem's files, or take what was counted."""
    solution = KERNELS_REF / problem.removesuffix(BACKWARD) / "solution.py"
    meta = references.problem(solution).instantiate(references.full(solution), 0, "meta")
    count_file = count_backward if problem.endswith(BACKWARD) else count
    rungs = []
    for name, file in list_files(problem):
        kind = "step" if file.parent.name == "steps" else name
        launches = read_step(f"{problem}/{name}") if kind == "step" else count_file(file)
        source, idea = references.source(file), read_idea(file) if kind == "step" else ""
        times = read_times(problem, file, kind)
        kept = launches if kind == "step" or is_near(launches, times) else []
        if len(kept) < len(launches):
            print(f"{problem}, {name}: the prediction is far from {times}: the measured time is kept alone")
        rungs.append(Rung(name, kind, source, kept, times, idea))
    rungs += read_torch(problem)
    return Ladder([list(value.shape) for value in meta.inputs if hasattr(value, "shape")], rungs)


def read_step(name: str) -> list[Launches]:
    """Return a step's launches from data/model.json."""
    rows = [row for row in read("model.json")["steps"] if row["group"] == name]
    return [make_launches(row["name"].split(": ")[1], row["launches"], row["work"]) for row in rows]


def is_near(launches: list[Launches], times: dict[str, float]) -> bool:
    """Return whether the predicted time is at most FAR times as long or as short as each measured one."""
    predicted = {gpu: 1e3 * sum(one.times * predict(one.make_work(), gpu).seconds for one in launches) for gpu in times}
    return all(ms / FAR <= predicted[gpu] <= ms * FAR for gpu, ms in times.items())


def read_idea(file: Path) -> str:
    """Return what is new in a step, without its number: the first sentence of the file."""
    first = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n\n")[0]
    return " ".join(first.partition(": ")[2].split()).rstrip(".")


def make_launches(kernel: str, times: int, work: dict) -> Launches:
    mix = {key: shorten(value) for key, value in work.get("mix", {}).items()}
    return Launches(kernel, times, {key: shorten(value) for key, value in work.items() if key != "mix"}, mix)


def shorten(value: float) -> float:
    """Return a counter with a few digits: the file is part of every copy of the course."""
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def count(file: Path) -> list[Launches]:
    """Count one forward of a file at full size, in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, __file__, "--count", str(file), out.name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        if done.returncode:
            raise RuntimeError(f"{file}: {done.stderr[-2000:]}")
        return [make_launches(**row) for row in json.loads(Path(out.name).read_text())]


def count_backward(file: Path) -> list[Launches]:
    """Return the launches of one forward and backward at full size, as the grader counts them when it predicts; none
    where it predicts nothing, because a few blocks do not show what all do.
    """
    counted: list[list[TalliedLaunch]] = []
    usual = full_size.count, full_size.SECONDS

    def count_and_keep(*arguments) -> list[TalliedLaunch]:
        counted.append(usual[0](*arguments))
        return counted[-1]

    full_size.count, full_size.SECONDS = count_and_keep, PATIENCE
    try:
        verdict = grade(file, device="cpu", seed=1, limits=Limits(own=PATIENCE), predict="H200")
    finally:
        full_size.count, full_size.SECONDS = usual
    if verdict.outcome is not Outcome.passed:
        raise RuntimeError(f"{file}: {verdict.outcome.value}")
    if not counted:
        print(f"{file.parent.name}/{file.stem}: {verdict.stages[-1].message}")
    return [make_launches(one.kernel, one.times, one.work | {"mix": one.mix}) for one in (*counted, [])[0]]


def _count(file: Path, out: Path) -> None:
    """Write OUT: the launches of one forward of the file, as make_launches() takes them."""
    import torch

    import simt
    from grader.worker import tallies
    from grader.worker.device import ClearedAllocations

    simt.enable(cuda_device=True)
    problem, case = references.problem(file), references.full(file)
    meta = problem.instantiate(case, 0, "meta")
    module = references.load(file)
    model = module.ModelNew(*meta.init_args, **meta.init_kwargs)
    tensors = [x for x in meta.inputs if isinstance(x, torch.Tensor)]
    if full_size.is_drawn(tensors, full_size.find_outputs(meta)):
        inputs = problem.draw_inputs(case, 0)
    else:
        inputs = [torch.empty(x.shape, dtype=x.dtype) if isinstance(x, torch.Tensor) else x for x in meta.inputs]
    with (
        torch.no_grad(),
        simt.count(sample=full_size.BLOCKS, partial=True, seconds=300) as report,
        ClearedAllocations(),
    ):
        model(*inputs)
    rows = [
        {"kernel": one.kernel, "times": one.times, "work": one.work | {"mix": one.mix}}
        for one in tallies.describe(report).launches
    ]
    out.write_text(json.dumps(rows))


def read(name: str) -> dict:
    return json.loads((DATA_FOLDER / name).read_text())


def read_times(problem: str, file: Path, kind: str) -> dict[str, float]:
    """Return the measured milliseconds of a file by GPU."""
    if kind == "step":
        row = read("steps.json")["steps"].get(f"{problem}/{file.stem}")
        return {"H200": shorten(row["ms"])} if row else {}
    row = read("times.json")["references"]["rows"].get(f"{file.parent.name}/{file.stem}")
    return {GPUS[row["gpu"]]: shorten(row["ms"])} if row and row["gpu"] in GPUS else {}


def read_torch(problem: str) -> list[Rung]:
    """Return what PyTorch itself took where it was measured: eager, and torch.compile."""
    rungs = []
    base = problem.removesuffix(BACKWARD)
    wanted = {f"{base}/{'solution' if base == problem else 'backward'}"}
    eager = {
        GPUS[row["gpu"]]: shorten(row["eager_ms"])
        for name, row in read("times.json")["references"]["rows"].items()
        if name in wanted and row["gpu"] in GPUS
    }
    if eager:
        rungs.append(Rung("eager", "eager", measured=eager))
    rows = read("bench.json")["problems"].get(problem, {}).get("rows", [])
    compiled = [row["ms"] for row in rows if row["name"] in ("torch.compile", "torch.compile, fp32")]
    if compiled:
        rungs.append(Rung("torch.compile", "compile", measured={"H200": shorten(compiled[0])}))
    return rungs


if __name__ == "__main__":
    main()
