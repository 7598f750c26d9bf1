"""Define the command line: python -m simt run, check, count."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from simt.devices import DEFAULT, DEVICES, UnknownDevice, find_name, read_default
from simt.errors import CacheError, CompileError, NoCompiler, NoTorch

if TYPE_CHECKING:
    from simt.checking.findings import Report
    from simt.runtime.programs import End

FOUND, USAGE, NOT_BUILT, CANNOT, NOT_LAUNCHED, INTERRUPTED = 1, 2, 3, 4, 5, 130
EXITS = """
\b
Exit status:
  {first}
    2  wrong usage, or the file cannot be read
    3  the file does not compile, or uses a feature that only a GPU has
    4  no C++ compiler, no torch, no usable cache folder, no memory, or output that cannot be written
{last}  130  interrupted
"""
RUN_EXITS = EXITS.format(first="  the program's own, or 128 + the signal's number if it crashed; otherwise", last="")
_NONE = "    5  no kernel was launched, so there was nothing to {}\n"
CHECK_EXITS = EXITS.format(
    first="  0  no problem was found, or only warnings\n"
    "    1  a problem was found, or the program crashed or raised an exception",
    last=_NONE.format("check"),
)
COUNT_EXITS = EXITS.format(
    first="  0  the kernels were counted\n    1  the program crashed or raised an exception", last=_NONE.format("count")
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpu-kernel-course")
def cli() -> None:
    """Run CUDA C++ on the CPU: unchanged, with every check on, or with counters of the work for a GPU.

    FILE.cu is a program with a main function; name all its .cu, .cpp and .c files if it has several. FILE.py is a
    script that builds its kernels with torch.utils.cpp_extension.load_inline and launches them in its
    `if __name__ == "__main__":` part. If it has no such part, its ModelNew is called with the result of get_inputs().
    Write options before FILE (--json also at the end); everything after the files is passed to the program.

    Of nvcc's options, -I, -D, -L, -l, -std and -Xcompiler (with -fopenmp, -D, -I) take effect, and those that concern
    nvcc's own code (-arch, -O3, -lineinfo, …) change nothing.

    \b
    Examples:
      python -m simt run vector_add.cu 1000
      python -m simt run -Xcompiler -fopenmp main.cpp kernels.cu table.c
      python -m simt check --json findings.json vector_add.cu
      python -m simt count --device H200 matmul.cu
    """


# Options of nvcc's that change nothing on the CPU, with a value and without.
_IGNORED = (
    ("-arch", "--gpu-architecture"), ("-code", "--gpu-code"), ("-gencode", "--generate-code"), ("-O", "--optimize"),
    ("-o", "--output-file"), ("-rdc", "--relocatable-device-code"), ("-maxrregcount", "--maxrregcount"), ("-x", "--x"),
    ("-Xptxas", "--ptxas-options"), ("-Xlinker", "--linker-options"), ("-cudart", "--cudart"),
)  # fmt: skip
_IGNORED_FLAGS = (
    ("-g", "--debug"), ("-G", "--device-debug"), ("-lineinfo", "--generate-line-info"), ("-w", "--disable-warnings"),
    ("-use_fast_math", "--use_fast_math"), ("-extended-lambda", "--extended-lambda"), ("-m64", "--m64"),
    ("-expt-extended-lambda", "--expt-extended-lambda"), ("-expt-relaxed-constexpr", "--expt-relaxed-constexpr"),
)  # fmt: skip
# Libraries of CUDA's: what simt has of them needs no library, and the names of the others are refused in the source.
_CUDA_LIBRARIES = re.compile(r"cuda\w*|nvToolsExt|cu(blas|blasLt|rand|fft|sparse|solver|dnn)|nvrtc|nvidia-ml|nccl")


def _shared(command: Callable) -> Callable:
    """Add the arguments and options that all three commands have."""
    parts = [
        click.argument("file", metavar="FILE", type=click.Path(path_type=Path)),
        click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED),
        click.option(
            "--device", metavar="NAME", default=None, callback=_device,
            help=f"GPU whose limits apply: {', '.join(DEVICES)}.  [default: SIMT_DEVICE, or {DEFAULT}]",
        ),
        click.option(
            "--schedule", metavar="forward|reverse|SEED", default="forward", show_default=True, callback=_schedule,
            help="Order in which threads and blocks run. The results of a correct program do not depend on it.",
        ),
        click.option(
            "--seconds", type=click.FloatRange(min=0.01), default=120.0, show_default=True,
            help="Time limit for one launch of a kernel.",
        ),
        click.option("--threads", type=click.IntRange(min=1), help="CPU threads to use.  [default: one per core]"),
        click.option(
            "-I", "folders", metavar="FOLDER", multiple=True, help="Also search FOLDER for #include. May be repeated."
        ),
        click.option("-D", "macros", metavar="NAME[=VALUE]", multiple=True, help="Define a macro. May be repeated."),
        click.option("-l", "libraries", metavar="NAME", multiple=True, help="Link with a library. May be repeated."),
        click.option("-L", "library_folders", metavar="FOLDER", multiple=True, hidden=True),
        click.option("-Xcompiler", "--compiler-options", "host_flags", metavar="FLAGS", multiple=True,
                     help="Flags of the host compiler: -fopenmp, -D and -I. May be repeated."),
        click.option("-std", "--std", "standard", metavar="NAME",
                     help="Standard of C files. CUDA and C++ files are compiled as C++20."),
        *(click.option(*names, expose_value=False, hidden=True, multiple=True) for names in _IGNORED),
        *(click.option(*names, expose_value=False, hidden=True, is_flag=True) for names in _IGNORED_FLAGS),
    ]  # fmt: skip
    for part in reversed(parts):
        command = part(command)
    return command


_REST = {
    "ignore_unknown_options": False,
    "allow_interspersed_args": False,
}  # everything after FILE is passed to the program


def _schedule(context: click.Context, parameter: click.Parameter, value: str) -> str | int:
    if value in ("forward", "reverse"):
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not forward, reverse or an integer.") from None


def _device(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """Return the full name of the GPU that --device or SIMT_DEVICE names."""
    try:
        return read_default() if value is None else find_name(value)
    except UnknownDevice as error:
        raise (click.UsageError if value is None else click.BadParameter)(str(error)) from None


@cli.command(context_settings=_REST, epilog=RUN_EXITS)
@_shared
def run(file: Path, arguments: tuple[str, ...], **options) -> None:
    """Compile FILE for the CPU and run it.

    The program uses the terminal's input and output, and its exit status is returned. Errors of kernels, launches and
    copies are reported on standard error.

    \b
    Examples:
      python -m simt run vector_add.cu
      python -m simt run -I common -D N=1024 --device A100 matmul.cu 64 64
    """
    job = _make_job(file, arguments, "plain", options)
    start = _prepare(job)
    from simt.runtime import library

    with library.run(**job.settings()):
        end = start()
    _print_end(end)
    _leave(file, end.status)


@cli.command(context_settings=_REST, epilog=CHECK_EXITS)
@_shared
@click.option("--json", "json_to", metavar="FILE|-", help="Also write the findings as JSON; - is standard output.")
def check(file: Path, arguments: tuple[str, ...], json_to: str | None, **options) -> None:
    """Run FILE with every check on and print the findings, the one to fix first at the top.

    The checks cover bounds, alignment, uninitialised reads, races, barriers and shuffles that some threads never reach,
    index overflow, leaks, and errors that the program ignores. Findings go to standard error, so that the program's own
    output is unchanged.

    \b
    Examples:
      python -m simt check reduction.cu
      python -m simt check --json findings.json my_kernel.py
      python -m simt check --schedule reverse reduction.cu
    """
    arguments, json_to = _take_trailing_json(arguments, json_to)
    job = _make_job(file, arguments, "check", options)
    with _open_json(json_to, file) as out:
        began = time.monotonic()
        start = _prepare(job)
        from simt.checking.findings import checked

        with checked(**job.settings()) as report, _unbroken_pipe():
            end = start()
        if not job.is_script and (end.status or not end.orderly):
            # a program that fails does not have to free its memory
            report.findings = [f for f in report.findings if f.check != "leak"]
        launched = _take_launched(job, end, "checked")
        _print_end(end)
        if launched and not job.is_script and end.orderly and not report.errors:
            _compare_schedules(job, end, report, 10 + 3 * (time.monotonic() - began))
        if launched or report.findings:
            print(report.text(), file=sys.stderr)
        written = _write_json(out, file, end, report)
    found = FOUND if report.errors or not end.orderly else 0 if launched else NOT_LAUNCHED
    _leave(file, found if written else CANNOT)


def _compare_schedules(job: _Job, end: End, report: Report, seconds: float) -> None:
    """Add a finding to the report if the program's result depends on the order of its threads, or a message to the end
    if the program cannot be run again.
    """
    from simt.checking import schedules
    from simt.runtime import library

    library.free_programs_memory()  # the program runs again, twice at a time
    try:
        report.findings += schedules.compare(job.files, job.arguments, job.repeat(), seconds)
    except (OSError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "Cannot allocate memory"
        end.messages.append(
            f"The program was not run again with its threads in other orders: no process can be started ({why})."
        )
        _say(end.messages[-1])


@cli.command(context_settings=_REST, epilog=COUNT_EXITS)
@_shared
@click.option("--json", "json_to", metavar="FILE|-", help="Also write the counters as JSON; - is standard output.")
def count(file: Path, arguments: tuple[str, ...], json_to: str | None, **options) -> None:
    """Run FILE and count the work for a GPU, for each kernel and source line.

    The counters include requests, sectors, bytes, bank conflicts, atomics and active lanes, by the rules of Nsight
    Compute. The report goes to standard error.

    \b
    Examples:
      python -m simt count transpose.cu
      python -m simt count --device H200 --json counters.json my_kernel.py
    """
    arguments, json_to = _take_trailing_json(arguments, json_to)
    job = _make_job(file, arguments, "count", options)
    with _open_json(json_to, file) as out:
        start = _prepare(job)
        from simt.counting.collect import counted

        with counted(**job.settings()) as report, _unbroken_pipe():
            end = start()
        launched = _take_launched(job, end, "counted")
        _print_end(end)
        if launched:
            print(report.text(end.texts), file=sys.stderr)
        written = _write_json(out, file, end, report)
    succeeded = FOUND if not end.orderly else 0 if launched else NOT_LAUNCHED
    _leave(file, succeeded if written else CANNOT)


# ---- building and running ----


@dataclass(frozen=True)
class _Job:
    """A file to run, its arguments, its build mode, and the options that all three commands have."""

    file: Path
    more: tuple[Path, ...]
    arguments: tuple[str, ...]
    mode: str
    options: dict

    @property
    def is_script(self) -> bool:
        return self.file.suffix == ".py"

    @property
    def device(self) -> str:
        return self.options["device"]

    def settings(self) -> dict:
        """Return the options of library.run()."""
        return {"schedule": self.options["schedule"], "seconds": self.options["seconds"], "device": self.device}

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.file, *self.more)

    def flags(self) -> list[str]:
        """Return the compiler's flags."""
        given = [word for words in self.options["host_flags"] for word in re.split(r"[,\s]+", words)]
        standard = self.options["standard"]
        return [
            *(f"-I{folder}" for folder in self.options["folders"]),
            *(f"-D{macro}" for macro in self.options["macros"]),
            *(word for word in given if re.match(r"-[DI]\S|-fopenmp$", word)),
            *([f"-std={standard}"] if standard else []),
        ]

    def links(self) -> list[str]:
        """Return the linker's flags."""
        libraries = [name for name in self.options["libraries"] if not _CUDA_LIBRARIES.fullmatch(name)]
        folders = [f"-L{Path(folder).absolute()}" for folder in self.options["library_folders"]]
        parallel = ["-fopenmp"] if "-fopenmp" in self.flags() else []
        return [*folders, *(f"-l{name}" for name in libraries), *parallel]

    def repeat(self) -> list[str]:
        """Return the options with which another `python -m simt` builds the same program."""
        again = {"-L": "library_folders", "-l": "libraries"}
        links = [f"{option}{value}" for option, name in again.items() for value in self.options[name]]
        flags = [f"-Xcompiler={flag}" if flag.startswith("-f") else flag for flag in self.flags()]
        return [*flags, *links, "--device", self.device]


def _make_job(file: Path, arguments: tuple[str, ...], mode: str, options: dict) -> _Job:
    """Return the job, with the words after FILE that name more sources of a program split from its arguments.

    A -- ends them where the program's first argument has the name of a source.
    """
    from simt.runtime.program_files import SUFFIXES

    sources = [Path(word).suffix in SUFFIXES for word in arguments]
    more = [*sources, False].index(False) if file.suffix in SUFFIXES else 0
    ended = arguments[more : more + 1] == ("--",) and sources[more + 1 : more + 2] == [True]
    return _Job(file, tuple(map(Path, arguments[:more])), arguments[more + ended :], mode, options)


def _prepare(job: _Job) -> Callable[[], End]:
    """Build what can be built before the file runs. Return the function that runs it."""
    return _prepare_script(job) if job.is_script else _prepare_program(job)


def _prepare_program(job: _Job) -> Callable[[], End]:
    """Build a program. This does not import torch, which takes a second."""
    from simt.runtime import library, programs

    _check_threads(job)
    choices = programs.Choices(job.mode, tuple(job.flags()), job.device, tuple(job.links()))
    built = programs.make(job.files, choices, lambda: _say("compiling its own parts, once (about 15 s)"))
    library.options.threads = job.options["threads"]

    def start() -> End:
        sys.stdout.flush()
        return programs.run(built, list(job.arguments))

    return start


def _prepare_script(job: _Job) -> Callable[[], End]:
    """Read a script and load what its extensions need. They are built when the script runs."""
    if job.flags() or job.links():
        raise click.UsageError("-I and -D are for FILE.cu. In a script, pass them to load_inline.")
    _check_threads(job)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks for a GPU
    if job.options["threads"]:
        os.environ["SIMT_THREADS"] = str(job.options["threads"])
    from simt.toolchain import build, headers

    headers.torch_folder()  # raises NoTorch with a message; the next import would raise ImportError
    from simt.runtime import extension, scripts

    tree = scripts.parse(job.file)
    if not build.is_warm():
        _say("compiling its own parts, once (about 30 s)")
        extension.warm_up()
    extension.load_binder()
    return lambda: scripts.run(job.file, tree, list(job.arguments))


def _take_launched(job: _Job, end: End, done: str) -> bool:
    """Return whether a kernel was launched. If not, add a message that explains it to the end."""
    from simt.runtime import library

    if library.take_launches():
        return True
    why = "."
    if job.is_script and end.orderly:
        from simt.runtime import scripts

        why = f". {scripts.explain_no_launch(job.file)}"
    end.messages.append(f"No kernel was launched, so none was {done}{why}")
    return False


def _check_threads(job: _Job) -> None:
    from simt.runtime import library

    try:
        if not job.options["threads"]:
            library.read_threads()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@contextlib.contextmanager
def _unbroken_pipe():
    """Ignore SIGPIPE, so that a reader that stops early, such as head, does not end the program before its report."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


# ---- output ----


def _say(text: str) -> None:
    print(f"simt: {text}", file=sys.stderr, flush=True)


def _print_end(end: End) -> None:
    with contextlib.suppress(OSError):  # _leave reports the error
        sys.stdout.flush()
    for sentence in end.messages:
        _say(sentence)
    if end.failure:
        _say(str(end.failure))


def _leave(file: Path, status: int) -> None:
    """End the process. A program has already flushed its output and run its exit functions, so skip Python's."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if status != CANNOT:
            _say(f"Standard output cannot be written: {error.strerror}.")
        status = CANNOT
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise Python reports the error again when it ends
    sys.stderr.flush()
    if file.suffix == ".py":
        sys.exit(status)
    os._exit(status)


def _take_trailing_json(arguments: tuple[str, ...], json_to: str | None) -> tuple[tuple[str, ...], str | None]:
    """Remove --json FILE from the end of the program's arguments and return both."""
    if json_to is None and arguments[-2:-1] == ("--json",):
        return arguments[:-2], arguments[-1]
    return arguments, json_to


_SOURCES = (".cu", ".cuh", ".cpp", ".h", ".hpp", ".py")


def _open_json(json_to: str | None, file: Path):
    """Open the file for the JSON. Refuse to overwrite a source, whose name may follow --json by mistake."""
    try:
        if json_to == "-":
            return contextlib.nullcontext(sys.stdout)
        if (
            json_to
            and os.path.exists(json_to)
            and (Path(json_to).suffix in _SOURCES or (os.path.exists(file) and file.samefile(json_to)))
        ):
            raise click.UsageError(f"--json {json_to}: this would overwrite a source. Name another file.")
        return open(json_to, "w", encoding="utf-8") if json_to else contextlib.nullcontext(None)
    except OSError as error:
        raise click.UsageError(f"--json {json_to}: {error.strerror}.") from None


def _write_json(out: TextIO | None, file: Path, end: End, report) -> bool:
    """Write the JSON if `out` is not None. Return whether this succeeded."""
    about = {
        "file": str(file),
        "status": end.status,
        "said": end.messages,
        "failure": str(end.failure) if end.failure else None,
    }
    try:
        if out:
            out.write(json.dumps(about | report.as_dict(), ensure_ascii=False, indent=1) + "\n")
            out.flush()
    except OSError as error:
        _say(f"The JSON cannot be written: {error.strerror}.")
        if out and out is not sys.stdout:
            with contextlib.suppress(OSError):  # closing flushes again, which fails again
                out.close()
        return False
    return True


def main() -> None:
    """Run the command line and end the process with its status."""
    from simt.runtime.program_files import NoProgram

    # a reader that stops early ends this process silently, like any other program
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
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
    except (NoCompiler, NoTorch, CacheError) as error:
        _say(str(error))
        status = CANNOT
    except CompileError as error:
        _say(str(error))
        status = NOT_BUILT
    except MemoryError:
        _say("There is not enough memory. Close other programs, or raise the limit that `ulimit -v` shows.")
        status = CANNOT
    sys.exit(status)
