"""The command `grader lint-problem`."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.options import FileCommand, parse_setting
from grader.cli.statuses import CANNOT, FAILED, INTERRUPTED, PASSED, USAGE, worst
from grader.paths import KERNELS_REF

if TYPE_CHECKING:
    from rich.console import Console

    from grader.lint.result import LintResult

QUICK_S = 2.0  # of processor time, of --quick for one problem, without the import of torch
EXITS = """
\b
Exit status (of several problems, the first of these that any has):
  130  interrupted
    2  wrong usage, or a problem file cannot be used
    3  the grader or this machine could not do it (--quick took too long, a full disk)
    1  something survives
    0  nothing survives
"""


@click.command("lint-problem", cls=FileCommand, epilog=EXITS)
@click.argument("problems", metavar="[PROBLEM...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Lint each of the course's own problems.")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Replace a literal that the problem file assigns, such as batch_size=2. May be repeated.",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="Where to run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of inputs and weights.")
@click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Also write all results as JSON, one problem per line. - is standard output, and the tables then go to "
    "standard error.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Decoys only, without those that depend on sizes, and no suggestions; at most "
    f"{QUICK_S:.0f} seconds of processor time a problem.",
)
def lint_problem(
    problems: tuple[Path, ...],
    every: bool,
    settings: tuple[str, ...],
    device: str,
    seed: int,
    json_to: str | None,
    quick: bool,
) -> None:
    """Find wrong results that the cases of each PROBLEM would let pass.

    A PROBLEM is a KernelBench file, or the name of one of the course's own. Its cases run with decoys (zeros, a
    constant, permuted outputs, half precision, a forgotten weight, ...) and with mutants of Model (copies of its code
    with one expression changed). The outputs are compared as `grader grade` compares those of a submission. For each
    decoy or mutant that survives, the command looks for a case that rejects it. Gradients are not compared.

    The code of a PROBLEM, and its mutants, run without a sandbox: lint only files that you trust.
    """
    from rich.console import Console

    from grader.reports import lint as report

    paths = _find_paths(problems, every)
    overrides = dict(map(parse_setting, settings))
    _check_device(device)
    tables, errors = Console(stderr=json_to == "-", highlight=False), Console(stderr=True, highlight=False)
    statuses, lines = [], []
    for path in paths:
        try:
            result = _lint_one(path, overrides, device, seed, quick, errors)
        except KeyboardInterrupt:
            errors.print("Interrupted.")
            statuses.append(INTERRUPTED)
            break
        except Exception as error:
            sentence, status = _explain_error(path, error)
            errors.print(sentence, markup=False)
            statuses.append(status)
            continue
        report.show(tables, result)
        lines.append(json.dumps(result.to_data(), ensure_ascii=False))
        statuses.append(FAILED if result.survivors else PASSED)
    if json_to is not None:
        statuses.append(_write(json_to, lines))
    sys.exit(worst(statuses))


def _find_paths(problems: tuple[Path, ...], every: bool) -> list[Path]:
    """Return the files to lint. Raises UsageError where one does not exist, or where nothing is named."""
    from grader.problems import exercises

    known = exercises.problems()
    if every == bool(problems):
        raise click.UsageError("Name the problems to lint, or all of the course's own with --all.")
    paths = []
    for problem in [Path(name) for name in known] if every else problems:
        own = KERNELS_REF / problem / "model.py"
        paths.append(own if str(problem) in known and not problem.is_file() else problem)
        if paths[-1].is_dir() or not paths[-1].exists():
            raise click.UsageError(
                f"{problem}: there is no such file. Name a problem's file, or one of {', '.join(known)}."
            )
    return paths


def _check_device(device: str) -> None:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise click.UsageError("--device cuda: torch finds no GPU here. Leave the option out to use the CPU.")


def _lint_one(
    path: Path, overrides: dict[str, str], device: str, seed: int, quick: bool, errors: Console
) -> LintResult:
    import torch

    from grader.lint import run
    from grader.problems import problem as problems

    # Cases are small: a second thread only waits for the first.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _silence(), errors.status(f"{path}: reading") as status:
            problem = problems.read(path, overrides)
            if quick:
                return run.lint_quickly(problem, QUICK_S)
            return run.lint(problem, device, seed, lambda text: status.update(f"{path}: {text}"))
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop what the problem's code prints and warns of: a mutant would repeat it hundreds of times."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _explain_error(path: Path, error: Exception) -> tuple[str, int]:
    """Return the sentence and the exit status for an exception that kept the grader from a result."""
    if type(error).__name__ == "ProblemError":  # by name: importing it needs torch, whose absence may be the error
        return str(error), USAGE
    if type(error).__name__ == "OutOfTime":
        return f"{path}: the cases are too large for a quick lint. Run it without --quick.", CANNOT
    if type(error).__name__ == "OutOfMemoryError":
        return f"{path}: the GPU is too small for the problem's cases. Use --device cpu.", CANNOT
    return f"{path}: the grader failed ({type(error).__name__}: {error}); this says nothing about the problem.", CANNOT


def _write(json_to: str, lines: list[str]) -> int:
    """Write the results and return the exit status that this alone has."""
    text = "".join(one + "\n" for one in lines)
    if json_to == "-":
        click.echo(text, nl=False)
        return PASSED
    try:
        Path(json_to).write_text(text, encoding="utf-8")
    except OSError as error:
        click.echo(f"--json {json_to} cannot be written ({error.strerror}).", err=True)
        return CANNOT
    return PASSED
