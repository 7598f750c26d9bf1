"""The command line: grader grade, grader bench, grader progress, grader doctor, grader student, grader new."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
from pathlib import Path

import click

from grader.outlet import Outlet
from grader.verdict import Outcome, Reason, Stage, StageName, Status, Submission, Verdict

FAILED, USAGE, CANNOT, NOT_ATTEMPTED, INTERRUPTED = 1, 2, 3, 4, 130
WORST_FIRST = (INTERRUPTED, USAGE, CANNOT, FAILED, NOT_ATTEMPTED, 0)
DAY = 86_400.0  # seconds
NARROWEST = 20  # columns that a terminal has; less is none of its sizes, but a variable that nobody meant
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
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


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Grade CUDA kernels written as KernelBench's ModelNew, with a GPU or without."""


def _finite(_context, _parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is no number of seconds.")
    return value


# --- grade -----------------------------------------------------------------------------------------------------------


@cli.command(epilog=EXITS)
@click.argument("submissions", metavar="SUBMISSION...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--problem",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The problem: any KernelBench file. Without it, the submission's name says which.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Replace a literal that the problem file assigns, such as batch_size=2. May be repeated.",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where to run. Without it, on a GPU if there is one.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of inputs and weights, as a report names it. Without it, a new secret one.",
)
@click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Write the verdicts as JSON too, one a line, each as soon as there is one; the first replaces what an earlier run wrote. "
    "- is standard output, and the table then goes to standard error.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with --json FILE: a submission that has a verdict there, for the same bytes, problem file and --set, is not "
    "graded again, unless the grader could not finish it.",
)
@click.option("--require-sandbox", is_flag=True, help="Refuse to run anything where bubblewrap does not work.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=DAY),
    callback=_finite,
    default=20.0,
    show_default=True,
    help="Limit for the import, for ModelNew(...) and for a case; compilers are not counted.",
)
def grade(
    submissions: tuple[Path, ...],
    problem: Path | None,
    settings: tuple[str, ...],
    device: str | None,
    seed: int | None,
    json_to: str | None,
    resume: bool,
    require_sandbox: bool,
    timeout: float,
) -> None:
    """Grade each SUBMISSION: a Python file with a class ModelNew.

    One called NAME_backward.py answers problem NAME and must have gradients, too; in others they are checked where forward's
    result carries them.
    """
    from rich.console import Console
    from rich.text import Text

    from grader import jsonl, progress, report, sandbox
    from grader.judge import Limits

    overrides = dict(_setting(text) for text in settings)
    options = dict(problem=problem, overrides=overrides, device=device, seed=seed, require_sandbox=require_sandbox)
    # Said now: an earlier run's verdicts are not to make room for it.
    if missing := [path for path in submissions if not path.exists()]:
        if pattern := next((path for path in missing if set("*?[") & set(str(path))), None):
            raise click.UsageError(f"No file's name matches {pattern}: nothing was graded. Is this the right folder?")
        if json_to is not None and len(missing) == len(submissions):
            raise click.UsageError(f"{missing[0]}: there is no such file, nor any other of those named: nothing was graded or written.")
    if problem is not None and not problem.is_file():
        raise click.UsageError(f"--problem {problem}: there is no such file.")
    if resume and json_to is None:
        raise click.UsageError("--resume goes on with the file that --json names: give that too.")
    try:
        lines = jsonl.Lines(json_to, [*submissions, *filter(None, [problem])], resume)
    except jsonl.Unfit as error:
        raise click.UsageError(f"--json {json_to}: {error}") from None
    click.get_current_context().call_on_close(lines.close)
    tables = Console(stderr=json_to == "-", highlight=False)
    errors = Console(stderr=True, highlight=False)
    earlier = {path: lines.known(path, _exercise(path, problem), _digest(path, problem), overrides, seed, device) for path in submissions}
    if resume:
        errors.print(f"{sum(map(bool, earlier.values()))} of {len(earlier)} have a verdict already.")
    done: list[Verdict] = []
    codes: list[int] = []
    for path in submissions:
        if old := earlier[path]:
            done.append(old)
            codes.append(exit_code(old))
            continue
        made, code, said = _grade_one(path, errors, options | {"limits": Limits(own=timeout)})
        codes.append(code)
        news, unwritten = "", None
        if made is not None:
            done.append(made)
            with sandbox.undisturbed():  # kept before it is shown: the reader may leave, and Ctrl-C may come
                news = progress.note(made) if problem is None and not overrides else ""
                unwritten = lines.write(made)
        if said:
            errors.print(Text(report.clean(said)))
        elif made is not None:
            report.show(tables, made, _still_empty(path, made))
        if news:
            tables.print(f"  {report.clean(news)}\n", markup=False)
        if unwritten:
            errors.print(Text(f"--json {json_to} cannot be written ({unwritten})."))
            codes.append(CANNOT)
        if unwritten or code == INTERRUPTED:
            break
    if len(submissions) > 1 and done:
        report.show_summary(tables, done)
    if len(submissions) > 1 and lines.file and {INTERRUPTED, CANNOT} & {*codes}:
        errors.print("The same command with --resume grades what is left.")
    sys.exit(next(code for code in WORST_FIRST if code in codes))


def _grade_one(path: Path, errors, options: dict) -> tuple[Verdict | None, int, str]:
    """The verdict, or None where not even grading began; the exit status; and a sentence where that is all there is to show."""
    from grader import report
    from grader.judge import Refused, grade

    try:
        digest = _digest(path, options["problem"])  # before it is read: one that changes meanwhile is graded again by --resume
        with report.Progress(errors, str(path)) as progress:
            made = grade(path, progress=progress, **options)
        made.settings, made.problem_sha256 = options["overrides"], digest
        return made, exit_code(made), ""
    except KeyboardInterrupt:
        return None, INTERRUPTED, "Interrupted."
    except Refused as error:
        said, code = str(error), CANNOT
    except Exception as error:
        said, code = _said(error), USAGE if type(error).__name__ == "ProblemError" else CANNOT
    return _refused(path, said, options), code, f"{report.line(str(path))}: {said}"


def _still_empty(path: Path, made: Verdict) -> str:
    """Which marked places of a file that failed are empty, in a sentence, if it is still what was graded."""
    from grader import contract, student

    source, _ = contract.read(path)
    return student.still_empty(source.text) if made.outcome is Outcome.failed and source.sha256 == made.submission.sha256 else ""


def _refused(path: Path, said: str, options: dict) -> Verdict:
    """The verdict on a submission that was not graded, so that nobody who reads verdicts misses it."""
    from grader import contract, sandbox

    stages = [Stage(name=name, status=Status.skipped, reason=Reason.not_reached) for name in StageName]
    stages[0] = Stage(name=StageName.contract, status=Status.error, reason=Reason.grader_error, message=said)
    return Verdict(
        problem=_exercise(path, options["problem"]),
        submission=Submission(path=str(path), sha256=contract.read(path)[0].sha256),
        outcome=Outcome.error,
        stages=stages,
        device="none",
        versions={},
        seed=options["seed"] or 0,
        seconds=0.0,
        sandbox=sandbox.NONE,
        settings=options["overrides"],
        problem_sha256=_digest(path, options["problem"]),
    )


def _exercise(path: Path, problem: Path | None) -> str:
    """The exercise that a file answers, as far as names tell it; empty where they do not."""
    from grader import student

    model = problem or student.model_of(path)
    if model is None:
        return ""
    return student.exercise_of(path, model.resolve().parent.name if model.name == "model.py" else model.stem)


def _digest(path: Path, problem: Path | None) -> str:
    """The SHA-256 of the file of the problem that a file answers; empty where there is none to read."""
    from grader import student

    model = problem or student.model_of(path)
    try:
        return hashlib.sha256(model.read_bytes()).hexdigest() if model and model.is_file() else ""
    except OSError:
        return ""


def _said(error: Exception) -> str:
    if type(error).__name__ == "ProblemError":
        return str(error)
    return f"the grader failed ({type(error).__name__}: {error}); this says nothing about the submission."


def exit_code(verdict: Verdict) -> int:
    """The exit status that a verdict stands for."""
    if verdict.reason is Reason.interrupted:
        return INTERRUPTED
    codes = {Outcome.passed: 0, Outcome.failed: FAILED, Outcome.not_attempted: NOT_ATTEMPTED, Outcome.error: CANNOT}
    return codes[verdict.outcome]


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip().isidentifier():
        raise click.UsageError(f"--set {text}: write NAME=VALUE, such as --set batch_size=2.")
    return name.strip(), value


# --- bench -----------------------------------------------------------------------------------------------------------

BENCH_EXITS = """
\b
Exit status:
  130  interrupted; what was measured until then is in the data file
    2  wrong usage, or a problem file cannot be used
    3  this machine has no GPU, or the data file cannot be written
    1  a step, a solution or a submission could not be timed (torch.compile may fail: its row says why)
       (in a sweep: at one of the sizes)
    0  every row that matters was timed
"""


@cli.command(epilog=BENCH_EXITS)
@click.argument("what", metavar="[PROBLEM|SUBMISSION]...", nargs=-1)
@click.option(
    "--problem",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The problem that the submissions answer: any KernelBench file.",
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
    help="Time forward and backward together instead, with the gradients of every input and weight: backward.py, eager, "
    "torch.compile, and submissions that have a backward.",
)
@click.option(
    "--sweep",
    is_flag=True,
    help="Time batches 1 to 512 and images of 32 to 512 pixels a side instead: the fastest kernels, the last step, eager, "
    "torch.compile.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The data file. Without it, bench.json, or sweep.json with --sweep.",
)
@click.option("--add", is_flag=True, help="What the data file has, and is not timed now, stays in it: forward, too, beside --backward.")
@click.option(
    "--pictures",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where the pictures go. Without it, into a folder beside the data file.",
)
@click.option(
    "--without",
    "spared",
    metavar="ROWS",
    multiple=True,
    help="Leave rows out: step, reference, eager, compile, default, max-autotune, channels_last, tf32; "
    "or launches, which the waterfall needs.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    help="A problem's rounds end after so long, what is compiled before not counted (60 without it); with --sweep, no more "
    "sizes are begun after so long, what torch.compile compiles counted (95).",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cuda", hidden=True)
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
    """Time all steps, eager, torch.compile and any submission on a GPU in one run, in turns.

    PROBLEM is a name in kernels_ref; without any, KernelBench's four models are timed. A SUBMISSION is timed beside its
    problem's rows. Times are medians of runs with the L2 flushed before, with their 95 % intervals. The data file has
    them, with bytes, operations, errors, clocks and power; pictures show the ladders and the launches, or how times grow.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    import torch

    from grader import bench as timing
    from grader.problem import ProblemError

    errors = Console(stderr=True, highlight=False)
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
    sets = dict(_setting(text) for text in settings)
    try:
        chosen = timing.choose(what, problem, sets, task)
    except ProblemError as error:
        errors.print(Text(str(error)))
        sys.exit(USAGE)
    kept = [word for word in spared if word != "launches"]
    seconds = timing.SECONDS[task] if seconds is None else seconds
    options = timing.Options(
        chosen, sets, out, kept, seconds, device, launches="launches" not in spared, add=add, task=task
    )
    try:
        data = timing.run(options, lambda words: errors.print(Text(words)))
    except (OSError, timing.NoData) as error:
        said = f"{out}: {error.strerror}." if isinstance(error, OSError) else str(error)
        errors.print(Text(said), soft_wrap=True)
        sys.exit(CANNOT)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 150
    for name, heads, rows in timing.tables_of(data):
        shown = Table(*heads, title=name, title_justify="left")
        for cells in rows:
            shown.add_row(*map(Text, cells))
        console.print(shown)
    for sentence in timing.sentences_of(data):
        console.print(Text(sentence))
    errors.print(Text(f"written: {out}"))
    try:
        for path in timing.draw(data, pictures or out.with_suffix("")):
            errors.print(Text(f"written: {path}"))
    except ImportError as error:
        errors.print(Text(f"No pictures were drawn: {error}."))
    sys.exit(INTERRUPTED if data["interrupted"] else FAILED if timing.incomplete(data) else 0)


# --- progress, doctor and student ------------------------------------------------------------------------------------


@cli.command(name="progress")
def show_progress() -> None:
    """Say where you stand: the best verdict so far for each problem, what is better since you last looked, what is next.

    What `grader grade` and grader.check say of kernels_student/NAME.py is kept in ~/.local/state/grader/progress.json
    (XDG_STATE_HOME names another folder, GRADER_PROGRESS another file). Exit status 3 if that file cannot be used, or
    was damaged and has been set aside.
    """
    from rich.console import Console

    from grader import progress

    made = progress.progress()
    Console(highlight=False, stderr=not made.rows).print(made)
    sys.exit(CANNOT if made.said else 0)


@cli.command()
def doctor() -> None:
    """Say what this machine can do, and what each missing part costs. Exit status 3 if kernels cannot be built here."""
    from rich.console import Console

    from grader import doctor as ward

    findings = ward.examine()
    ward.show(Console(highlight=False), findings)
    sys.exit(0 if ward.can_grade(findings) else CANNOT)


@cli.command()
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if a student file is not what its solution makes.")
def student(check: bool) -> None:
    """Make the files in kernels_student from the solutions in kernels_ref.

    Exit status 2 if a solution's marks make no exercise or a hints file cannot be used, 3 if a file cannot be read or written.
    """
    from grader import student as maker

    try:
        if check:
            problems = maker.check_all()
            for line in problems:
                click.echo(line)
            sys.exit(FAILED if problems else 0)
        written, kept = maker.write_all()
    except maker.ExerciseError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        click.echo(f"{error.filename} cannot be read or written ({error.strerror}).", err=True)
        sys.exit(CANNOT)
    for path in written:
        click.echo(f"written: {path.parent.name}/{path.name}")
    for path in kept:
        click.echo(f"kept, because someone has worked on it: {path.parent.name}/{path.name}")


@cli.command()
@click.argument("name")
@click.option(
    "--model",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A KernelBench file that becomes the problem's model.py as it is.",
)
def new(name: str, model: Path | None) -> None:
    """Make a problem: kernels_ref/NAME with model, solution and hints, which work as they stand, to be replaced by yours.

    Exit status 2 if the name is taken or the file is no problem; nothing is changed then.
    """
    from grader import new as maker

    try:
        made = maker.problem(name, model)
    except maker.CannotMake as error:
        raise click.UsageError(str(error)) from None
    for path in made:
        click.echo(f"written: {path.parent.parent.name}/{path.parent.name}/{path.name}")
    click.echo(f"Next: edit these, run `grader grade {made[1].parent.parent.name}/{name}/solution.py`, then `grader student`.")


def main() -> None:
    """The command's entry point. A request to terminate, and a terminal that is closed, end the worker too, as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> None:
        handler = signal.getsignal(signal.SIGINT)  # which sandbox.undisturbed may have put off
        if not callable(handler):
            raise KeyboardInterrupt
        handler(number, frame)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, interrupt)
    _fit_the_terminal()
    sys.stdout, sys.stderr = Outlet(sys.stdout), Outlet(sys.stderr)
    try:
        status = _run()
        _hear_no_more()
    except KeyboardInterrupt:  # one more, while the first was being told of
        _hear_no_more()
        status = INTERRUPTED
    trouble = sys.stdout.trouble
    if trouble is not None and not isinstance(trouble, BrokenPipeError):  # a reader who has left is no trouble
        click.echo(f"Standard output cannot be written ({trouble.strerror}).", err=True)
        status = next(code for code in WORST_FIRST if code in (status or 0, CANNOT))
    sys.exit(status)


def _run() -> int | str | None:
    """Do what the command line says; the exit status."""
    try:
        return cli.main(prog_name="grader", standalone_mode=False)
    except SystemExit as end:
        return end.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _hear_no_more()
        click.echo("Interrupted.", err=True)
        return INTERRUPTED


def _hear_no_more() -> None:
    """All is said: another signal to end would cut short how Python ends, and how it ends the workers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _fit_the_terminal() -> None:
    """What its encoding cannot hold is written as \\xfc instead of ending us; a width that none has does not count."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and not (columns.isdecimal() and int(columns) >= NARROWEST):
        del os.environ["COLUMNS"]
