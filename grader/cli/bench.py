"""The command `grader bench`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from grader.cli.options import FileCommand, ProblemFile, parse_setting
from grader.cli.statuses import CANNOT, FAILED, INTERRUPTED, PASSED, USAGE

FILE_WIDTH = 150  # columns of the tables where the output is a file or a pipe
EXITS = """
\b
Exit status:
  130  interrupted; what was measured until then is in the data file
    2  wrong usage, or a problem file cannot be used
    3  this machine has no GPU, or the data file cannot be written
    1  a step, a solution or a submission could not be timed (torch.compile may fail: its row says why)
       (in a sweep: at one of the sizes)
    0  every row that matters was timed
"""


@click.command(cls=FileCommand, epilog=EXITS)
@click.argument("what", metavar="[PROBLEM|SUBMISSION]...", nargs=-1)
@click.option(
    "--problem",
    metavar="NAME|FILE",
    type=ProblemFile(),
    help="The problem that the submissions answer: one of the course, or any KernelBench file.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Replace a literal that the problem file assigns. May be repeated.",
)
@click.option(
    "--backward",
    is_flag=True,
    help="Time forward and backward together instead, with the gradients of every input and weight: backward.py, "
    "eager, torch.compile, and submissions that have a backward.",
)
@click.option(
    "--sweep",
    is_flag=True,
    help="Time batches 1 to 512 and images of 32 to 512 pixels a side instead: the fastest kernels, the last "
    "step, eager, torch.compile.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The data file. Without it, bench.json, or sweep.json with --sweep.",
)
@click.option(
    "--add",
    is_flag=True,
    help="Keep what the data file has and this run does not time, such as the forward rows during --backward.",
)
@click.option(
    "--pictures",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where the pictures go. Without it, into a folder next to the data file.",
)
@click.option(
    "--without",
    "spared",
    metavar="ROWS",
    multiple=True,
    help="Leave rows out, separated by commas: step, reference, eager, compile, default, max-autotune, channels_last, "
    "tf32, anchor; or launches, which the waterfall needs.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    help="Time limit of a problem's rounds, without the compilation before them (default 60). With --sweep: no further "
    "size is begun after this time, which includes what torch.compile compiles (default 95).",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cuda", hidden=True)
# Stays whole: it hands the options over.
def bench(
    what: tuple[str, ...],
    problem: Path | None,
    settings: tuple[str, ...],
    backward: bool,
    sweep: bool,
    out: Path | None,
    add: bool,
    pictures: Path | None,
    spared: tuple[str, ...],
    seconds: float | None,
    device: str,
) -> None:
    """Time all steps, eager, torch.compile and any submission on a GPU in one run, in interleaved rounds.

    PROBLEM is a name in kernels_ref; without any, KernelBench's four models are timed. A SUBMISSION is timed next to
    its problem's rows. Times are medians of runs with the L2 flushed before each, with their 95 % intervals. The data
    file holds them, with bytes, operations, errors, clocks and power; pictures show the ladders and the launches, or
    how times grow.
    """
    import torch
    from rich.console import Console
    from rich.text import Text

    from grader import bench as timing
    from grader.problems.problem import ProblemError

    errors = Console(stderr=True, highlight=False)
    spared = tuple(row for listed in spared for row in listed.split(","))
    unknown = sorted(set(spared) - {*timing.SPARED, "launches"})
    if unknown:
        raise click.UsageError(f"--without {unknown[0]}: it is one of {', '.join(timing.SPARED)} or launches.")
    if device == "cuda" and not torch.cuda.is_available():
        errors.print("grader bench times kernels on a GPU, and this machine has none.")
        sys.exit(CANNOT)
    if backward and sweep:
        raise click.UsageError("--backward and --sweep are two runs: give one of them.")
    task = "backward" if backward else "sweep" if sweep else "forward"
    out = out or Path("sweep.json" if sweep else "bench.json")
    sets = dict(map(parse_setting, settings))
    try:
        chosen = timing.choose(what, problem, sets, task)
    except ProblemError as error:
        errors.print(Text(str(error)))
        sys.exit(USAGE)
    left_out = [row for row in spared if row != "launches"]
    seconds = timing.SECONDS[task] if seconds is None else seconds
    options = timing.Options(
        chosen, sets, out, left_out, seconds, device, launches="launches" not in spared, add=add, task=task
    )
    try:
        data = timing.run(options, lambda words: errors.print(Text(words)))
    except (OSError, timing.NoBenchData) as error:
        sentence = f"{out}: {error.strerror}." if isinstance(error, OSError) else str(error)
        errors.print(Text(sentence), soft_wrap=True)
        sys.exit(CANNOT)
    _show(data)
    errors.print(Text(f"written: {out}"))
    try:
        for path in timing.draw(data, pictures or out.with_suffix("")):
            errors.print(Text(f"written: {path}"))
    except ImportError as error:
        errors.print(Text(f"No pictures were drawn: {error}."))
    sys.exit(INTERRUPTED if data["interrupted"] else FAILED if timing.incomplete(data) else PASSED)


def _show(data: dict) -> None:
    """Print the tables of a run and the sentences below them."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from grader import bench as timing

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    for name, heads, rows in timing.tables_of(data):
        table = Table(*heads, title=name, title_justify="left")
        for cells in rows:
            table.add_row(*map(Text, cells))
        console.print(table)
    for sentence in timing.sentences_of(data):
        console.print(Text(sentence))
