"""%%cuda: runs a CUDA program in a notebook cell (`%load_ext grader`); a cell without a main is only compiled."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from grader.judging import compiler_messages
from grader.paths import ROOT
from grader.reports import feedback
from grader.reports.feedback import Words
from grader.worker import sandbox
from simt.devices import DEFAULT, DEVICES, UnknownDevice, find_name

MAIN = re.compile(r"^\s*(?:int|auto)\s+main\s*\(", re.MULTILINE)
KERNELS = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\([^)]*\)\s*)?(\w+)\s*\(")
MESSAGE = re.compile(
    r"^(?:\w+: )?(?:\S*/)?cell\.cu(?:, line |\(|:)(\d+)\)?(?::\d+)?:? ?(?:fatal )?(?:(error|warning)[^:]*: )?(.*)$"
)


@magics_class
class CudaMagics(Magics):
    """The cell magic %%cuda."""

    @magic_arguments()
    @argument("--check", action="store_true", help="run with every check on")
    @argument("--count", action="store_true", help="count the memory requests and operations of the kernels")
    @argument(
        "--device",
        default=DEFAULT,
        help=f"GPU whose limits apply on the CPU: {', '.join(DEVICES)} (default: {DEFAULT})",
    )
    @argument("--seconds", type=float, default=60.0, help="time limit of the run (default: 60)")
    @argument("arguments", nargs="*", help="arguments of main")
    @cell_magic
    def cuda(self, line: str, cell: str) -> Ran | None:
        """Run a CUDA program: with nvcc on a GPU, else on the CPU. A cell without a main is only compiled."""
        try:
            options = parse_argstring(self.cuda, line)
        except ValueError as error:  # shlex: a quotation mark is not closed
            raise UsageError(f"%%cuda {line.strip()}: {str(error).rstrip('.').lower()}.") from None
        try:
            device = find_name(options.device.strip("\"'"))  # IPython leaves the quotation marks on
        except UnknownDevice as error:
            raise UsageError(f"%%cuda --device: {error}") from None
        if not cell.strip():
            raise UsageError("%%cuda: the cell is empty. Write a kernel, and a main that launches it.")
        return run(
            cell,
            check=options.check,
            count=options.count,
            device=device,
            arguments=options.arguments,
            seconds=options.seconds,
        )


def run(
    text: str,
    *,
    check: bool = False,
    count: bool = False,
    device: str = DEFAULT,
    arguments: Sequence[str] = (),
    seconds: float = 60.0,
) -> Ran | None:
    """Build and run a cell's text and print its output. The result displays itself; it is None if there is nothing to
    report.
    """
    has_main = bool(MAIN.search(text))
    folder = sandbox.simt_cache().parent / "grader" / "cuda" / hashlib.sha256(text.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cell.cu"
    file.write_text(text if has_main else text + "\nint main() { return 0; }\n", encoding="utf-8")
    on_gpu = sandbox.has_gpu() and shutil.which("nvcc") and not (check or count)
    if on_gpu:
        built = _process(["nvcc", "-std=c++17", "-lineinfo", str(file), "-o", str(folder / "cell")], folder, 300.0)
        done = _process([str(folder / "cell"), *arguments], folder, seconds) if built[0] == 0 else built
        status = 3 if built[0] else done[0]
    else:
        mode = "check" if check else "count" if count else "run"
        done = _process(
            [sys.executable, "-m", "simt", mode, "--device", device, str(file), *arguments], folder, seconds + 60.0
        )
        status = done[0]
    _, out, messages = done
    if out:
        print(out, end="" if out.endswith("\n") else "\n")
    if status is None:
        return Ran(
            text,
            [f"The program did not end within {seconds:g} s and was stopped. Look for a loop that never ends."],
            None,
        )
    lines = [line for line in messages.splitlines() if line.strip() and not line.startswith("simt: compiling")]
    if status == 0 and not has_main:
        names = KERNELS.findall(text)
        what = _list_kernels(names) if names else "The cell"
        return Ran(text, [f"{what} compiled. It was not run, because the cell has no main.", *lines], 0)
    if status == 0 and not lines:
        return None
    return Ran(text, lines or [f"The program ended with exit status {status}."], status)


def _list_kernels(names: list[str]) -> str:
    return f"Kernel {names[0]}" if len(names) == 1 else f"Kernels {', '.join(names[:-1])} and {names[-1]}"


def _process(command: list[str], folder: Path, seconds: float) -> tuple[int | None, str, str]:
    """Run a command and return its exit status (None: timed out), standard output and standard error. The processes it
    started end with this call, also if it is interrupted.
    """
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    }
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    try:
        out, messages = process.communicate(timeout=seconds)
        return process.returncode, out, messages
    except subprocess.TimeoutExpired:
        return None, "", ""
    except KeyboardInterrupt:
        from grader.notebook.check import Interrupted

        raise Interrupted("Interrupted: the program was stopped.") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Ran:
    """The messages about a cell, which display themselves with its lines. status: the program's, or None."""

    def __init__(self, text: str, messages: list[str], status: int | None):
        self.text, self.messages, self.status = text, messages, status

    def parts(self) -> list[object]:
        parts: list[object] = []
        lines = self.text.rstrip().split("\n")
        own, marked = {text.strip() for text in lines}, False
        for line in self.messages[:20]:
            if line.strip() in own:
                continue  # the compiler repeats the line, which is shown anyway
            match = MESSAGE.match(line.strip())
            number = int(match[1]) if match else 0
            if not match or not 0 < number <= len(lines):
                parts.append(Words(line.replace("cell.cu, line ", "line ")))
                continue
            message = re.sub(r"^, kernel (\w+): ", r"kernel \1: ", match[3]).strip() or line
            kind = "failed" if self.status else ""
            parts.append(Words(f"Line {number} of the cell: {message}", "text", kind))
            if not marked:
                explanation = compiler_messages.explain(message, lines[number - 1], self.text, number)
                parts += [Words(explanation.text)] if explanation else []
                parts += feedback.show_line(self.text, number)
            marked = True
        return parts

    def __repr__(self) -> str:
        return feedback.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return feedback.bundle(self.parts())
