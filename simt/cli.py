"""The command line: python -m simt run, check, count."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from .devices import DEFAULT, DEVICES
from .errors import CacheError, CompileError, NoCompiler

FOUND, USAGE, NOT_BUILT, CANNOT, NOT_LAUNCHED, INTERRUPTED = 1, 2, 3, 4, 5, 130
EXITS = """
\b
Exit status:
  {first}
    2  wrong usage, or the file cannot be read
    3  the file does not compile, or uses what only a GPU has
    4  this machine cannot: no C++ compiler, no usable cache folder, or output that cannot be written
{last}  130  interrupted
"""
RUN_EXITS = EXITS.format(first="  the program's own, and 128 + the signal's number where it crashed; else", last="")
_NONE = "    5  no kernel was launched, so there was nothing to {}\n"
CHECK_EXITS = EXITS.format(
    first="  0  nothing was found\n    1  something was found, or the program crashed or ended by an exception", last=_NONE.format("check")
)
COUNT_EXITS = EXITS.format(first="  0  counted\n    1  the program crashed or ended by an exception", last=_NONE.format("count"))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Run CUDA C++ on the CPU: as it is, with every check on, or counting what it asks of a GPU.

    FILE.cu is a program with a main of its own. FILE.py is a script whose kernels go through
    torch.utils.cpp_extension.load_inline: its `if __name__ == "__main__":` part launches them, or, where it has none, its ModelNew is
    called on what get_inputs() returns. Options stand before FILE (--json also at the end); all else that follows FILE
    is the program's.

    \b
    Examples:
      python -m simt run vector_add.cu 1000
      python -m simt check --json findings.json vector_add.cu
      python -m simt count --device H200 matmul.cu
    """


def _shared(command: Callable) -> Callable:
    """The arguments and options that all three commands have."""
    parts = [
        click.argument("file", metavar="FILE", type=click.Path(path_type=Path)),
        click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED),
        click.option("--device", type=click.Choice(list(DEVICES), case_sensitive=False), default=None, help=f"The GPU whose limits hold.  [default: {DEFAULT}]"),
        click.option(
            "--schedule", metavar="forward|reverse|SEED", default="forward", show_default=True, callback=_schedule,
            help="The order in which threads and blocks take turns; a sound program's results do not depend on it.",
        ),
        click.option("--seconds", type=click.FloatRange(min=0.01), default=120.0, show_default=True, help="Limit for one launch of a kernel."),
        click.option("--threads", type=click.IntRange(min=1), help="Threads of the CPU to use.  [default: one a core]"),
        click.option("-I", "folders", metavar="FOLDER", multiple=True, help="Where #include also looks. May be repeated."),
        click.option("-D", "macros", metavar="NAME[=VALUE]", multiple=True, help="Define a macro. May be repeated."),
    ]  # fmt: skip
    for part in reversed(parts):
        command = part(command)
    return command


_REST = {"ignore_unknown_options": False, "allow_interspersed_args": False}  # what follows FILE is the program's


def _schedule(context: click.Context, parameter: click.Parameter, value: str) -> str | int:
    if value in ("forward", "reverse"):
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither forward nor reverse nor a whole number.") from None


@cli.command(context_settings=_REST, epilog=RUN_EXITS)
@_shared
def run(file: Path, arguments: tuple[str, ...], **options) -> None:
    """Compile FILE for the CPU and run it.

    Its input and output are the terminal's, its exit status is the program's. What a kernel or a launch failed with,
    and why a copy was refused, is told on standard error.

    \b
    Examples:
      python -m simt run vector_add.cu
      python -m simt run -I common -D N=1024 --device A100 matmul.cu 64 64
    """
    if file.suffix == ".py":
        end, _ = _run_script(file, arguments, "plain", options)
    else:
        from . import program, runtime

        built, settings = _build(file, arguments, "plain", options)
        with runtime.run(**settings):
            sys.stdout.flush()
            end = program.run(built, list(arguments))
    _tell(end)
    _leave(file, end.status)


@cli.command(context_settings=_REST, epilog=CHECK_EXITS)
@_shared
@click.option("--json", "json_to", metavar="FILE|-", help="Write the findings as JSON too; - is standard output.")
def check(file: Path, arguments: tuple[str, ...], json_to: str | None, **options) -> None:
    """Run FILE with every check on and print what is wrong, worst first.

    Checked are bounds, alignment, uninitialised reads, races, barriers and shuffles that not all threads reach, index
    overflow, leaks, and errors that nobody looked at. Findings go to standard error, so that the program's own output
    stays as it is.

    \b
    Examples:
      python -m simt check reduction.cu
      python -m simt check --json findings.json my_kernel.py
      python -m simt check --schedule reverse reduction.cu
    """
    arguments, json_to = _trailing_json(arguments, json_to)
    with _opened(json_to, file) as out:
        began = time.monotonic()
        end, report, launched = _probed(file, arguments, "check", options)
        _tell(end)
        if file.suffix != ".py" and end.orderly and not report.errors:
            report.findings += _other_schedules(file, arguments, options, 10 + 3 * (time.monotonic() - began))
        if launched or report.findings:
            print(report.text(), file=sys.stderr)
        written = _write(out, file, end, report)
    found = FOUND if report.findings or not end.orderly else 0 if launched else NOT_LAUNCHED
    _leave(file, found if written else CANNOT)


@cli.command(context_settings=_REST, epilog=COUNT_EXITS)
@_shared
@click.option("--json", "json_to", metavar="FILE|-", help="Write the counters as JSON too; - is standard output.")
def count(file: Path, arguments: tuple[str, ...], json_to: str | None, **options) -> None:
    """Run FILE and count, for each kernel and source line, what it would ask of a GPU.

    Counted are requests, sectors, bytes, bank conflicts, atomics, active lanes and more, by the rules of Nsight
    Compute. The tables go to standard error.

    \b
    Examples:
      python -m simt count transpose.cu
      python -m simt count --device H200 --json counters.json my_kernel.py
    """
    arguments, json_to = _trailing_json(arguments, json_to)
    with _opened(json_to, file) as out:
        end, report, launched = _probed(file, arguments, "count", options)
        _tell(end)
        if launched:
            print(report.text(end.texts), file=sys.stderr)
        written = _write(out, file, end, report)
    counted = FOUND if not end.orderly else 0 if launched else NOT_LAUNCHED
    _leave(file, counted if written else CANNOT)


# ---- building and running ----


def _build(file: Path, arguments: tuple[str, ...], mode: str, options: dict):
    """The built program and the settings to run it with."""
    from . import program, runtime

    device = _device(options)
    _check_threads(options)
    flags = tuple(f"-I{folder}" for folder in options["folders"]) + tuple(f"-D{macro}" for macro in options["macros"])
    built = program.make(file, mode, flags, device, lambda: _say("compiling its own parts, once (about 15 s)"))
    runtime.options.threads = options["threads"]
    return built, {"schedule": options["schedule"], "seconds": options["seconds"], "device": device}


def _probed(file: Path, arguments: tuple[str, ...], mode: str, options: dict):
    """How the file ended, run with checks or counters, the report, and whether a kernel was launched; if none was, the end says it."""
    from . import runtime

    end, report = (_run_script if file.suffix == ".py" else _run_program)(file, arguments, mode, options)
    launched = bool(runtime.take_launches())
    if not launched:
        why = ""
        if file.suffix == ".py" and end.orderly:
            from . import script

            why = f": {script.why_no_launch(file)}"
        end.said.append(f"No kernel was launched, so none was {'checked' if mode == 'check' else 'counted'}{why or '.'}")
    return end, report, launched


def _run_program(file: Path, arguments: tuple[str, ...], mode: str, options: dict):
    """A program needs no torch, whose import takes a second."""
    built, settings = _build(file, arguments, mode, options)
    from . import program

    if mode == "check":
        from .checks import checked as probed
    else:
        from .counts import counted as probed
    with probed(**settings) as report, _unbroken_pipe():
        sys.stdout.flush()
        end = program.run(built, list(arguments))
    if mode == "check" and (end.status or not end.orderly):
        report.findings = [f for f in report.findings if f.check != "leak"]  # what a program that gave up has not freed is no news
    return end, report


def _other_schedules(file: Path, arguments: tuple[str, ...], options: dict, seconds: float) -> list:
    """What changes when threads and blocks run in another order."""
    from . import schedules

    passed = [f"{flag}{value}" for flag, name in (("-I", "folders"), ("-D", "macros")) for value in options[name]]
    passed += ["--device", _device(options)]
    return schedules.compare(file, arguments, passed, seconds)


def _run_script(file: Path, arguments: tuple[str, ...], mode: str, options: dict):
    """The same for a Python file; without a report in plain mode."""
    if options["folders"] or options["macros"]:
        raise click.UsageError("-I and -D are for FILE.cu; a script passes its own to load_inline.")
    _check_threads(options)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for a GPU
    if options["threads"]:
        os.environ["SIMT_THREADS"] = str(options["threads"])
    import simt

    from . import build, script

    tree = script.parse(file)
    if not build.warm():
        _say("compiling its own parts, once (about 30 s)")
        simt.warm_up()
    with simt.run(schedule=options["schedule"], seconds=options["seconds"], device=_device(options)):
        if mode == "plain":
            return script.run(file, tree, list(arguments)), None
        with getattr(simt, mode)() as report, _unbroken_pipe():
            end = script.run(file, tree, list(arguments))
        return end, report


def _device(options: dict) -> str:
    name = options["device"] or os.environ.get("SIMT_DEVICE", DEFAULT)
    if name not in DEVICES:
        raise click.UsageError(f"SIMT_DEVICE={name}: simt knows {', '.join(DEVICES)}.")
    return name


def _check_threads(options: dict) -> None:
    from . import runtime

    try:
        options["threads"] or runtime.threads()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@contextlib.contextmanager
def _unbroken_pipe():
    """A reader that leaves, such as head, does not end a program whose report is still to come."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


# ---- telling ----


def _say(text: str) -> None:
    print(f"simt: {text}", file=sys.stderr, flush=True)


def _tell(end) -> None:
    with contextlib.suppress(OSError):  # _leave will say it
        sys.stdout.flush()
    for sentence in end.said:
        _say(sentence)
    if end.failure:
        _say(str(end.failure))


def _leave(file: Path, status: int) -> None:
    """Ends the process; at once after a program, which has flushed its output and run its own last functions."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if status != CANNOT:
            _say(f"Standard output cannot be written: {error.strerror}.")
        status = CANNOT
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains again when it ends
    sys.stderr.flush()
    if file.suffix == ".py":
        sys.exit(status)
    os._exit(status)


def _trailing_json(arguments: tuple[str, ...], json_to: str | None) -> tuple[tuple[str, ...], str | None]:
    """--json FILE at the very end is ours as well."""
    if json_to is None and arguments[-2:-1] == ("--json",):
        return arguments[:-2], arguments[-1]
    return arguments, json_to


_SOURCES = (".cu", ".cuh", ".cpp", ".h", ".hpp", ".py")


def _opened(json_to: str | None, file: Path):
    """Where the JSON goes. No source is written over, where a name was left out or stands in the wrong place."""
    try:
        if json_to == "-":
            return contextlib.nullcontext(sys.stdout)
        if json_to and os.path.exists(json_to) and (Path(json_to).suffix in _SOURCES or os.path.exists(file) and file.samefile(json_to)):
            raise click.UsageError(f"--json {json_to}: the JSON would be written over a source.")
        return open(json_to, "w", encoding="utf-8") if json_to else contextlib.nullcontext(None)
    except OSError as error:
        raise click.UsageError(f"--json {json_to}: {error.strerror}.") from None


def _write(out, file: Path, end, report) -> bool:
    """Whether the JSON, if it is wanted, could be written."""
    about = {"file": str(file), "status": end.status, "said": end.said, "failure": str(end.failure) if end.failure else None}
    try:
        if out:
            out.write(json.dumps(about | report.as_dict(), ensure_ascii=False, indent=1) + "\n")
            out.flush()
    except OSError as error:
        _say(f"The JSON cannot be written: {error.strerror}.")
        if out is not sys.stdout:
            with contextlib.suppress(OSError):  # it tries again what has failed
                out.close()
        return False
    return True


def main() -> None:
    """The command's entry point."""
    from .program import NoProgram

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that leaves ends us quietly, as it ends any program
    try:
        status = cli.main(prog_name="python -m simt", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted.")
        status = INTERRUPTED
    except NoProgram as error:
        _say(str(error))
        status = USAGE
    except (NoCompiler, CacheError) as error:
        _say(str(error))
        status = CANNOT
    except CompileError as error:
        _say(str(error))
        status = NOT_BUILT
    sys.exit(status)
