"""The command `grader grade`."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.first_use import lint_on_first_use
from grader.cli.options import DEFAULT_GPU, FileCommand, ProblemFile, check_seconds, gpu_option, parse_setting
from grader.cli.statuses import CANNOT, FAILED, INTERRUPTED, NOT_ATTEMPTED, PASSED, USAGE, worst
from grader.paths import KERNELS_REF, find_real_path
from grader.verdict import USUAL_TIMEOUT, Outcome, Reason, Stage, StageName, Status, Submission, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from grader.reports.verdict_file import VerdictWriter

DAY = 86_400.0  # seconds
EXITS = """
\b
Exit status (of several submissions, the first of these that any has):
  130  interrupted
    2  wrong usage, or the problem file cannot be used
    3  the grader or this machine could not do it (no compiler, no sandbox, a full disk)
    1  failed
    4  not attempted: still the exercise as handed out
    0  passed
"""


@dataclasses.dataclass(frozen=True)
class Options:
    """What every submission of one command is graded with.

    overrides: the problem's literals that --set replaces. folder: of all submissions where there are several, below
    which no link is followed. gpu: whose time is predicted on a machine without one.
    """

    problem: Path | None
    overrides: dict[str, str]
    device: str | None
    seed: int | None
    require_sandbox: bool
    timeout: float = USUAL_TIMEOUT
    folder: Path | None = None
    gpu: str = DEFAULT_GPU


@click.command(cls=FileCommand, epilog=EXITS)
@click.argument("submissions", metavar="SUBMISSION...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--problem",
    metavar="NAME|FILE",
    type=ProblemFile(),
    help="The problem: one of the course, or any KernelBench file. Without it, the submission's name says which.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Replace a literal that the problem file assigns, such as batch_size=2. May be repeated.",
)
@click.option(
    "--own-sizes",
    is_flag=True,
    help="Grade at the problem's own sizes and with its own inputs alone, as KernelBench does. Without it, the file's "
    "CASES say what is run; for a file without CASES the grader adds other sizes, and values with a large mean.",
)
@click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), help="Where to run. Without it, on a GPU if there is one."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of inputs and weights, as a report names it. Without it, a new secret seed.",
)
@click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Also write the verdicts as JSON, one per line, each as soon as it is known; the first one replaces what an "
    "earlier run wrote. - is standard output, and the table then goes to standard error.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue --json FILE: a submission that has a verdict there is not graded again, unless the grader could not "
    "finish it, or its bytes, the problem file or an option that changes the verdict are others: --set, --gpu of a "
    "prediction, a shorter --timeout, a longer one after a time limit, --seed and --device if they are given, or a "
    "sandbox that is now required.",
)
@click.option(
    "--require-sandbox",
    is_flag=True,
    help="Refuse to run anything where there is no sandbox. This is the default for several submissions.",
)
@click.option(
    "--allow-unsandboxed", is_flag=True, help="Run several submissions even where there is no sandbox to protect you."
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=DAY),
    callback=check_seconds,
    default=USUAL_TIMEOUT,
    show_default=True,
    help="Limit for the import, for ModelNew(...) and for each case, without compilers; all together have 30 times it.",
)
@gpu_option
def grade(
    submissions: tuple[Path, ...],
    problem: Path | None,
    settings: tuple[str, ...],
    own_sizes: bool,
    device: str | None,
    seed: int | None,
    json_to: str | None,
    resume: bool,
    require_sandbox: bool,
    allow_unsandboxed: bool,
    timeout: float,
    gpu: str,
) -> None:
    """Grade each SUBMISSION: a Python file with a class ModelNew.

    A file called NAME_backward.py answers problem NAME and must have gradients as well; in other files gradients are
    checked where the output of forward carries them.
    """
    from rich.console import Console
    from rich.text import Text

    from grader.reports import terminal, verdict_file

    overrides, folder = dict(map(parse_setting, settings)), find_batch_folder(submissions)
    if own_sizes:
        overrides["CASES"] = repr("own sizes")  # OWN_SIZES of grader.problems.cases, which loads torch
    if require_sandbox and allow_unsandboxed:
        raise click.UsageError("--require-sandbox and --allow-unsandboxed exclude each other: give one of them.")
    required = require_sandbox or (len(submissions) > 1 and not allow_unsandboxed)
    options = Options(problem, overrides, device, seed, required, timeout, folder, gpu)
    _check_files(submissions, problem, json_to)
    if resume and json_to is None:
        raise click.UsageError("--resume continues the file that --json names: give --json FILE too.")
    try:
        writer = verdict_file.VerdictWriter(json_to, [*submissions, *filter(None, [problem])], resume)
    except verdict_file.UnusableFile as error:
        raise click.UsageError(f"--json {json_to}: {error}") from None
    click.get_current_context().call_on_close(writer.close)
    tables = Console(stderr=json_to == "-", highlight=False)
    errors = Console(stderr=True, highlight=False)
    with lint_on_first_use(problem, overrides) as remarks:
        verdicts, statuses = _grade_all(submissions, options, writer, resume, tables, errors)
    if len(submissions) > 1 and verdicts:
        terminal.show_summary(tables, verdicts)
    if len(submissions) > 1 and writer.file and {INTERRUPTED, CANNOT} & {*statuses}:
        errors.print("The same command with --resume grades what is left.")
    for remark in remarks:
        errors.print(Text(terminal.line(remark)))
    sys.exit(worst(statuses))


def _check_files(submissions: Sequence[Path], problem: Path | None, json_to: str | None) -> None:
    """Raise UsageError for mistyped names, before the verdicts of an earlier run are replaced."""
    from grader.notebook.cells import describe_unusable, nearest

    if missing := [path for path in submissions if not path.exists()]:
        if pattern := next((path for path in missing if set("*?[") & set(str(path))), None):
            raise click.UsageError(f"No file's name matches {pattern}: nothing was graded. Is this the right folder?")
        if len(missing) == len(submissions):
            others = " Neither do the other files that you name." if len(missing) > 1 else ""
            near = nearest(missing[0], of_names=False)
            meant = f" Did you mean {near}?" if near else ""
            why = describe_unusable(missing[0]) or "does not exist"
            raise click.UsageError(f"{missing[0]} {why}.{others} So nothing was graded or written.{meant}")
    if problem is None or len(submissions) < 2 or find_real_path(problem).is_relative_to(find_real_path(KERNELS_REF)):
        return  # the course's own problems were not handed in
    if _folders(problem) & set().union(*map(_folders, submissions)):
        raise click.UsageError(
            f"--problem {problem}: this file lies next to the submissions and may have been handed in with them, and a "
            "problem's code runs in the grader itself. Copy the problem that you mean to another folder."
        )


def _folders(file: Path) -> set[Path]:
    """Return the folder of a file as it is named, and the one in which it lies if a link leads there."""
    return {find_real_path(Path(os.path.abspath(file)).parent), find_real_path(file).parent}


def find_batch_folder(submissions: Sequence[Path]) -> Path | None:
    """Return the folder that holds all submissions; None for a single one, and where they have no folder in common."""
    parents = {os.path.dirname(os.path.abspath(path)) for path in submissions}
    common = os.path.commonpath(parents)
    return Path(common) if len(submissions) > 1 and common != os.path.sep else None


def _grade_all(
    submissions: Sequence[Path], options: Options, writer: VerdictWriter, resume: bool, tables: Console, errors: Console
) -> tuple[list[Verdict], list[int]]:
    """Grade, write and show each submission, except those with an earlier verdict. Returns verdicts and statuses."""
    from rich.text import Text

    from grader.reports import progress, terminal
    from grader.worker import sandbox

    earlier = {path: _find_earlier(writer, path, options) for path in submissions}
    if resume:
        errors.print(f"{sum(map(bool, earlier.values()))} of {len(earlier)} have a verdict already.")
    verdicts: list[Verdict] = []
    statuses: list[int] = []
    for path in submissions:
        if old := earlier[path]:
            verdicts.append(old)
            statuses.append(exit_code(old))
            continue
        verdict, status, sentence = _grade_one(path, errors, options)
        statuses.append(status)
        news, write_error = "", None
        if verdict is not None:
            verdicts.append(verdict)
            with sandbox.undisturbed():  # kept before it is shown: the reader may leave, and Ctrl-C may come
                news = progress.note(verdict) if options.problem is None and not options.overrides else ""
                write_error = writer.write(verdict)
        if sentence:
            errors.print(Text(terminal.clean(sentence)))
        elif verdict is not None:
            terminal.show(tables, verdict, _find_empty_places(path, verdict, options))
            if other := _find_changed_copy(path):
                words = f"You have changed the copy {other}: `grader check {path.stem}` grades that one."
                errors.print(Text(words), soft_wrap=True)
        if news:
            tables.print(f"  {terminal.clean(news)}\n", markup=False)
        if write_error:
            errors.print(Text(f"--json {writer.name} cannot be written ({write_error})."))
            statuses.append(CANNOT)
        if write_error or status == INTERRUPTED:
            break
    return verdicts, statuses


def _find_earlier(writer: VerdictWriter, path: Path, options: Options) -> Verdict | None:
    """Return the verdict of an earlier run on this file that grading it again would repeat."""
    name, digest = _exercise_name(path, options), _problem_digest(path, options)
    return writer.find_earlier(
        path,
        name,
        digest,
        options.overrides,
        options.seed,
        options.device,
        options.folder,
        timeout=options.timeout,
        gpu=options.gpu,
        sandboxed=options.require_sandbox,
    )


def _grade_one(path: Path, errors: Console, options: Options) -> tuple[Verdict | None, int, str]:
    """Grade one submission.

    Returns the verdict, or None if it was interrupted before there was one; the exit status; and the sentence to print
    in place of a table, or an empty string.
    """
    from grader.judging.grading import Limits, Refused, grade
    from grader.reports import terminal

    try:
        # before the problem is read: if it changes meanwhile, --resume grades this submission again
        digest = _problem_digest(path, options)
        with terminal.Progress(errors, str(path)) as progress:
            verdict = grade(
                path,
                problem=options.problem,
                overrides=options.overrides,
                device=options.device,
                seed=options.seed,
                require_sandbox=options.require_sandbox,
                limits=Limits(own=options.timeout),
                progress=progress,
                folder=options.folder,
                predict=options.gpu,
            )
        verdict.settings, verdict.problem_sha256 = options.overrides, digest
        return verdict, exit_code(verdict), ""
    except KeyboardInterrupt:
        return None, INTERRUPTED, "Interrupted."
    except Refused as error:
        sentence, status = str(error), CANNOT
    except Exception as error:
        sentence, status = explain_error(error)
    reason = Reason.no_problem if status == USAGE else Reason.grader_error
    return _make_ungraded(path, sentence, options, reason), status, f"{terminal.line(str(path))}: {sentence}"


def _find_changed_copy(path: Path) -> Path | None:
    """Return the working copy that a student has changed, if the course's own file was graded in place of it."""
    from grader.authoring.working_copies import find_exercise

    folder = Path(os.path.abspath(path)).parent
    return find_exercise(folder.parent, path.stem) if folder.name == "kernels_student" else None


def _find_empty_places(path: Path, verdict: Verdict, options: Options) -> str:
    """Name the marked places that are still empty in a file that failed; nothing if it has changed since."""
    from grader.problems import exercises
    from grader.source import contract

    source, _ = contract.read(path, options.folder)
    unchanged = source.sha256 == verdict.submission.sha256
    return exercises.still_empty(source.text) if verdict.outcome is Outcome.failed and unchanged else ""


def _make_ungraded(path: Path, sentence: str, options: Options, reason: Reason) -> Verdict:
    """Make the verdict on a submission that could not be graded, so that readers of the verdicts find it there."""
    from grader.source import contract
    from grader.worker import sandbox

    stages = [Stage(name=name, status=Status.skipped, reason=Reason.not_reached) for name in StageName]
    stages[0] = Stage(name=StageName.contract, status=Status.error, reason=reason, message=sentence)
    return Verdict(
        problem=_exercise_name(path, options),
        submission=Submission(path=str(path), sha256=contract.read(path, options.folder)[0].sha256),
        outcome=Outcome.error,
        stages=stages,
        device="none",
        versions={},
        seed=options.seed or 0,
        seconds=0.0,
        sandbox=sandbox.NOT_RUN,
        settings=options.overrides,
        problem_sha256=_problem_digest(path, options),
    )


def _exercise_name(path: Path, options: Options) -> str:
    """Return the exercise that a file answers by its name and the problem's; empty if they do not tell."""
    from grader.problems import exercises

    model = options.problem or exercises.model_of(path, options.folder)
    if model is None:
        return ""
    name = find_real_path(model).parent.name if model.name == "model.py" else model.stem
    return exercises.exercise_of(path, name, options.folder)


def _problem_digest(path: Path, options: Options) -> str:
    """Return the SHA-256 of the problem file that a submission answers; empty if there is none that can be read."""
    from grader.problems import exercises

    model = options.problem or exercises.model_of(path, options.folder)
    try:
        return hashlib.sha256(model.read_bytes()).hexdigest() if model and model.is_file() else ""
    except OSError:
        return ""


def explain_error(error: Exception) -> tuple[str, int]:
    """Return the sentence and the exit status for an exception that kept the grader from a verdict."""
    if type(error).__name__ == "ProblemError":  # by name: importing it needs torch, whose absence may be the error
        return str(error), USAGE
    sentence = f"the grader failed ({type(error).__name__}: {error}); this says nothing about the submission."
    return sentence, CANNOT


def exit_code(verdict: Verdict) -> int:
    """Return the exit status of a verdict."""
    if verdict.is_interrupted:
        return INTERRUPTED
    codes = {
        Outcome.passed: PASSED,
        Outcome.failed: FAILED,
        Outcome.not_attempted: NOT_ATTEMPTED,
        Outcome.error: CANNOT,
    }
    return codes[verdict.outcome]
