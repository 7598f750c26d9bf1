"""Hold the judge's clock against measurements of another kind, and against submissions that were written to deceive it.

    python benchmarks/validate/times.py references [--only TEXT] [--part K/N]   on a GPU
    python benchmarks/validate/times.py repeat                                  on a GPU
    python benchmarks/validate/times.py dishonest [--only TEXT] [--part K/N]    on a GPU
    python benchmarks/validate/times.py readme

`references` times each reference solution and each fastest file as the judge does, and in a process of its own with
CUDA events; a file whose times scatter, because the GPU waits for the host, is measured by both in turn, and medians
are compared. `repeat` times one kernel ten times over, and ten times a copy that does 5 % more. `dishonest` grades
tests/specimens/dishonest/time_*.py, each of which computes what eager computes, and says what each was paid. All write
data/times.json; `readme` writes its tables into benchmarks/README.md. The exit status is 1 if a figure is out of
bounds.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table, show_table, write_section
from grader.judging import clock, grading
from grader.judging.context import Context
from grader.judging.stages import fast
from grader.judging.timing import others, rounds
from grader.judging.timing.bench import MOST_INPUTS
from grader.judging.timing.commands import Candidate
from grader.judging.trial import FindingError, Limits
from grader.problems import problem as problems
from grader.source import contract
from grader.verdict import TIMED, Stage, StageName, Status
from grader.worker import sandbox
from grader.worker.outputs import compute_gradients, find_floating
from grader.worker.weights import list_buffers, load_weights

DATA = DATA_FOLDER / "times.json"
DISHONEST = ROOT / "tests" / "specimens" / "dishonest"
LARGE = DISHONEST / "problems" / "large_groupnorm.py"
REPEATED = ROOT / "kernels_ref" / "conv_groupnorm_maxpool" / "fastest.py"
LIMITS = Limits(own=60.0)
SEED = 5
ROUNDS, REPETITIONS = 25, 10
TURNS = 3  # in which judge and events measure a file whose times scatter
BUILDS = 8  # at a time
SLOWED = 0.05  # by which the copy is slower
APART, SPREAD = 0.03, 0.02  # that the judge may be from the other measurement, and repetitions from each other
PAID = 1.1  # times eager: more is a reward that a file which runs eager did not earn
EAGER_RATIO = f"speed-up over {others.EAGER}"


def find_files() -> list[Path]:
    """Return the reference solutions and the fastest files."""
    found = [*ROOT.glob("kernels_ref/*/solution.py"), *ROOT.glob("kernels_ref/*/backward.py")]
    return sorted([*found, *ROOT.glob("kernels_ref/*/fastest*.py")])


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def build_all(files: list[Path]) -> None:
    """Build the kernels of all files, into the folders where the judge looks for them."""

    def build(path: Path) -> None:
        source, _ = contract.read(path)
        folder = sandbox.extensions(source.sha256)
        folder.mkdir(parents=True, exist_ok=True)
        program = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='submission')"
        environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(folder), "MAX_JOBS": "2"}
        subprocess.run([sys.executable, "-c", program, str(path)], env=environment, capture_output=True, check=False)

    with ThreadPoolExecutor(BUILDS) as pool:
        list(pool.map(build, files))


# --- the judge's figure ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def prepared(path: Path, model: Path):
    """Yield the state of a grading up to the stage "fast"; correctness is not looked at."""
    context = grading.make_context(path, model, device="cuda", seed=SEED, limits=LIMITS)
    other = (
        mock.patch.object(problems.Problem, "precision", "tf32") if "tf32" in path.stem else contextlib.nullcontext()
    )
    try:
        with other:
            for name in (StageName.contract, StageName.build):
                stage = context.result(name)
                importlib.import_module(f"grader.judging.stages.{name}").run(context, stage)
                if "backward" in path.stem:
                    context.problem_name = f"{context.problem.name}_backward"
            trial = context.make_trial(context.problem.full())
            if context.requires_gradient:
                context.differentiated = trial.instance.differentiable()
            yield context
    finally:
        context.close()


class Recorded:
    """clock.measure(), whose candidate and result are kept."""

    def __init__(self, measure: Callable[..., clock.Measurement]):
        self.measure = measure

    def __call__(self, candidate: Candidate, *arguments, **options) -> clock.Measurement:
        self.candidate, self.found = candidate, self.measure(candidate, *arguments, **options)
        return self.found


def time_as_judge(context: Context) -> dict:
    """Return the judge's figures: milliseconds and speed-ups over eager alone."""
    stage = Stage(name=StageName.fast, status=Status.passed)
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(others, "COMPARED", (others.EAGER,)))
        measure = stack.enter_context(mock.patch.object(clock, "measure", Recorded(clock.measure)))
        # times alone are asked for: a file in TF32 is not as precise as its problem
        for step in ("end", "verify"):
            stack.enter_context(mock.patch.object(rounds.Rounds, step, lambda *_: None))
        try:
            fast.run(context, stage)
        except FindingError as error:
            return {"failed": error.finding.message}
    found = {one.name: one for one in stage.measurements}
    if TIMED not in found:
        return {"failed": stage.message}
    ratio = found[EAGER_RATIO]
    return {
        "ms": found[TIMED].value,
        "eager_ms": found[others.EAGER].value,
        "speedup": [ratio.low, ratio.value, ratio.high],
        "quartiles_ms": [found[TIMED].low, found[TIMED].high],
        "rounds": found[TIMED].samples,
        "batch": measure.found.batch,
        "way_ms": measure.found.way_ms,
        "claimed_ms": 1e3 * statistics.median(measure.candidate.claims[-measure.found.rounds :]) / measure.found.batch,
        "seconds": round(time.monotonic() - begun, 1),
    }


# --- the other figure ------------------------------------------------------------------------------------------------


def time_with_events(path: Path, model: Path) -> float:
    """Return the milliseconds of a call by CUDA events around batches of calls on distinct inputs."""
    problem = problems.read(model)
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    instance = problem.instantiate(problem.full(), SEED, "cuda")
    made = module.ModelNew(*instance.init_args, **instance.init_kwargs).cuda()
    if hasattr(made, "load_reference"):
        with torch.no_grad():
            made.load_reference(instance.model)
    else:
        load_weights(made, instance.model.state_dict(), list_buffers(instance.model))
    call = make_call(made, instance, problem, "backward" in path.stem)
    once = measure_batches(call, [instance.inputs], 3)
    size = sum(2 * value.numel() * value.element_size() for value in instance.inputs if isinstance(value, torch.Tensor))
    fit = max(1, torch.cuda.mem_get_info()[0] // (4 * size))
    count = min(math.ceil(clock.BATCH_SECONDS * 1e3 / once), MOST_INPUTS, fit)
    inputs = [problem.draw_inputs(problem.full(), SEED + number, "cuda") for number in range(count)]
    measure_batches(call, inputs, 3)
    return measure_batches(call, inputs, ROUNDS)


def make_call(made, instance, problem, backward: bool):
    """Return forward, or forward and backward, of a model."""
    if not backward:
        return lambda inputs: made(*inputs)
    upstream = problem.upstream(problem.full(), SEED, instance.eager())
    parameters = list(made.parameters())

    def call(inputs):
        wanted = [value.requires_grad_() for value in inputs if isinstance(value, torch.Tensor)] + parameters
        with torch.enable_grad():
            return compute_gradients(find_floating(made(*inputs)), wanted, upstream)

    return call


def measure_batches(call, inputs: list, rounds: int) -> float:
    flush, times = clock.Flush(), []
    for _ in range(rounds):
        flush()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        with torch.no_grad():
            kept = [call(one) for one in inputs]
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / len(inputs))
        del kept
    return statistics.median(times)


# --- the commands ----------------------------------------------------------------------------------------------------


@click.group(help=__doc__)
def main() -> None:
    pass


def choose(command):
    """Add the options that choose among files."""
    command = click.option("--part", default="1/1", help="Every Nth file from the Kth on.", callback=read_part)(command)
    return click.option("--only", default="", help="Files whose name contains this text.")(command)


def read_part(context: click.Context, parameter: click.Parameter, text: str) -> slice:
    first, _, count = text.partition("/")
    if not (first.isdecimal() and count.isdecimal() and 1 <= int(first) <= int(count)):
        raise click.BadParameter("write it as K/N, such as 1/3")
    return slice(int(first) - 1, None, int(count))


@main.command()
@choose
def references(only: str, part: slice) -> None:
    files = [path for path in find_files() if only in name_of(path)][part]
    build_all(files)
    rows: dict[str, dict] = {}
    for path in files:
        model = path.with_name("model.py")
        row = measure_both(path, model)
        if scatters(row):
            row = join_rows([row, *(measure_both(path, model) for _ in range(TURNS - 1))])
        rows[name_of(path)] = row
        click.echo(f"{name_of(path)}: {json.dumps(row)}")
        keep("references", rows, merge=True)
    show_table(REFERENCE_HEADS, make_reference_rows(rows))
    sys.exit(not all(is_near(row) for row in rows.values()))


def measure_both(path: Path, model: Path) -> dict:
    """Return the judge's figures, and the milliseconds of a call by CUDA events in another process."""
    with prepared(path, model) as context:
        row = time_as_judge(context)
    torch.cuda.empty_cache()
    program = [sys.executable, __file__, "measure", str(path), str(model)]
    source, _ = contract.read(path)
    environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(sandbox.extensions(source.sha256))}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        click.echo(done.stderr[-300:], err=True)
    return row | {"events_ms": float(done.stdout.split()[-1]) if not done.returncode else None}


def scatters(row: dict) -> bool:
    """Return whether the rounds of a file differ by more than judge and events may."""
    return "ms" in row and row["quartiles_ms"][1] / row["quartiles_ms"][0] - 1 > APART


def join_rows(turns: list[dict]) -> dict:
    """Return the row of the judge's median, with medians of both figures, and the figures of each turn."""
    measured = [row for row in turns if row.get("ms") and row["events_ms"]]
    if len(measured) < len(turns):
        return turns[0]
    middle = sorted(measured, key=lambda row: row["ms"])[len(measured) // 2]
    events = statistics.median(row["events_ms"] for row in measured)
    return middle | {"events_ms": events, "turns_ms": [[row["ms"], row["events_ms"]] for row in measured]}


@main.command(hidden=True)
@click.argument("path", type=Path)
@click.argument("model", type=Path)
def measure(path: Path, model: Path) -> None:
    print(time_with_events(path, model))


@main.command()
def repeat() -> None:
    slowed = write_slowed(REPEATED)
    build_all([REPEATED, slowed])
    figures: dict[str, list[dict]] = {}
    try:
        for number in range(REPETITIONS):
            for name, path in (("as it is", REPEATED), ("slowed", slowed)):
                with prepared(path, REPEATED.with_name("model.py")) as context:
                    figures.setdefault(name, []).append(time_as_judge(context))
                torch.cuda.empty_cache()
                click.echo(f"{number} {name}: {json.dumps(figures[name][-1])}")
            keep("repeat", figures | {"file": name_of(REPEATED)})  # though the next is cut off
    finally:
        slowed.unlink()
    show_table(REPEAT_HEADS, make_repeat_rows(figures))
    sys.exit(not is_repeatable(figures))


def write_slowed(path: Path) -> Path:
    """Write a copy of a submission beside it that also works for 5 % of its time: on a slice of one more tensor."""
    made = path.with_name("slowed.py")
    text = path.read_text(encoding="utf-8")
    made.write_text(text + SLOWER, encoding="utf-8")
    return made


SLOWER = '''

class Slowed(ModelNew):
    """What is above, and a wait on the GPU for 5 % of its own time."""

    def forward(self, x):
        if not hasattr(self, "cycles"):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            for _ in range(20):
                super().forward(x)
            start.record()
            for _ in range(100):
                super().forward(x)
            end.record()
            torch.cuda._sleep(1000)
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            torch.cuda._sleep(10_000_000)
            b.record()
            torch.cuda.synchronize()
            self.cycles = int(0.05 * start.elapsed_time(end) / 100 / a.elapsed_time(b) * 10_000_000)
        torch.cuda._sleep(self.cycles)
        return super().forward(x)


ModelNew = Slowed
'''


@main.command()
@choose
def dishonest(only: str, part: slice) -> None:
    rows: dict[str, dict] = {}
    for path in [path for path in sorted(DISHONEST.glob("time_*.py")) if only in path.stem][part]:
        begun = time.monotonic()
        verdict = grading.grade(path, LARGE, device="cuda", seed=SEED, limits=LIMITS)
        made = verdict.stage(StageName.fast)
        ratios = [one.value for one in made.measurements if one.name == EAGER_RATIO]
        rows[path.stem] = {
            "outcome": str(verdict.outcome),
            "reason": str(verdict.reason or ""),
            "speedup": ratios[0] if ratios else None,
            "message": (verdict.first_problem.message if verdict.first_problem else made.message)[:300],
            "seconds": round(time.monotonic() - begun, 1),
        }
        click.echo(f"{path.stem}: {json.dumps(rows[path.stem])}")
        keep("dishonest", rows, merge=True)
    show_table(DISHONEST_HEADS, make_dishonest_rows(rows))
    sys.exit(not all(is_unpaid(row) for row in rows.values()))


def keep(part: str, rows: dict, merge: bool = False) -> None:
    """Write one part of the data file; merge: other files keep their rows, each of which says where it was measured."""
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    machine = describe_machine()
    if merge:
        rows = {name: {"gpu": machine["gpu"], "date": machine["date"]} | row for name, row in rows.items()}
        rows = data.get(part, {}).get("rows", {}) | rows
    data[part] = {"machine": machine, "rows": rows}
    DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")


# --- tables ----------------------------------------------------------------------------------------------------------

REFERENCE_HEADS = ["file", "judge: ms", "events: ms", "judge / events", "rounds", "seconds", "GPU, date"]
REPEAT_HEADS = ["kernel", "repetitions", "least ms", "median ms", "most ms", "spread", "seen as slower"]
DISHONEST_HEADS = ["file", "outcome", "reason", "times eager, as reported", "paid"]


def is_near(row: dict) -> bool:
    """Return whether judge and events agree."""
    return bool(row.get("ms") and row.get("events_ms")) and abs(row["ms"] / row["events_ms"] - 1) <= APART


def make_reference_rows(rows: dict[str, dict]) -> list[list[str]]:
    found = []
    for name, row in sorted(rows.items()):
        measured = f"{row['gpu'].removeprefix('NVIDIA ')}, {row['date']}" if "gpu" in row else ""
        if "ms" not in row or not row["events_ms"]:
            found.append([name, row.get("failed", "?")[:60], "", "", "", "", measured])
            continue
        ratio = f"{row['ms'] / row['events_ms']:.3f}"
        found.append(
            [
                name,
                f"{row['ms']:.4g}",
                f"{row['events_ms']:.4g}",
                ratio,
                f"{row['rounds']}",
                f"{row['seconds']}",
                measured,
            ]
        )
    return found


def is_repeatable(figures: dict[str, list[dict]]) -> bool:
    """Return whether repetitions agree, and the slowed copy was seen as slower each time."""
    times = {name: [row.get("ms", math.nan) for row in figures[name]] for name in ("as it is", "slowed")}
    close = all(max(each) / min(each) - 1 <= SPREAD for each in times.values())
    return close and count_slower(figures) == len(figures["slowed"])


def count_slower(figures: dict[str, list[dict]]) -> int:
    """Return how often the slowed copy's whole interval of its speed-up lies below that of the kernel as it is."""
    pairs = zip(figures["as it is"], figures["slowed"])
    return sum(slow["speedup"][2] < plain["speedup"][0] for plain, slow in pairs if "ms" in slow and "ms" in plain)


def make_repeat_rows(figures: dict[str, list[dict]]) -> list[list[str]]:
    found = []
    for name in ("as it is", "slowed"):
        times = sorted(row["ms"] for row in figures[name] if "ms" in row)
        slower = f"{count_slower(figures)} of {len(figures[name])}" if name == "slowed" else "–"
        shown = [f"{one:.4g}" for one in (times[0], statistics.median(times), times[-1])]
        found.append([name, f"{len(times)}", *shown, f"{100 * (times[-1] / times[0] - 1):.1f} %", slower])
    return found


def is_unpaid(row: dict) -> bool:
    """Return whether a file that runs eager got no more than eager's speed."""
    return row["outcome"] != "passed" or row["speedup"] is None or row["speedup"] <= PAID


def make_dishonest_rows(rows: dict[str, dict]) -> list[list[str]]:
    return [
        [
            name,
            row["outcome"],
            row["reason"].replace("_", " "),
            "–" if row["speedup"] is None else f"{row['speedup']:.2f}",
            "no" if is_unpaid(row) else "yes",
        ]
        for name, row in sorted(rows.items())
    ]


@main.command()
def readme() -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    makers = {
        "references": (REFERENCE_HEADS, make_reference_rows),
        "repeat": (REPEAT_HEADS, make_repeat_rows),
        "dishonest": (DISHONEST_HEADS, make_dishonest_rows),
    }
    parts = []
    for part, (heads, make_rows) in makers.items():
        if part in data:
            source = describe_source(data[part]["machine"], f"validate/times.py {part}")
            parts.append("\n".join([*make_table(heads, make_rows(data[part]["rows"])), "", source]))
    write_section("times", "\n\n".join(parts))


if __name__ == "__main__":
    main()
