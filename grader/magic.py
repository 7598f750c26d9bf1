"""%%cuda: a quick kernel in a notebook cell (`%load_ext grader`), run where it has a main, else compiled and looked over."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from grader import messages, sandbox, shown
from grader.shown import Code, Words

MAIN = re.compile(r"^\s*(?:int|auto)\s+main\s*\(", re.MULTILINE)
KERNELS = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\([^)]*\)\s*)?(\w+)\s*\(")
SAID = re.compile(r"^(?:\w+: )?(?:\S*/)?cell\.cu(?:, line |\(|:)(\d+)\)?(?::\d+)?:? ?(?:fatal )?(?:(error|warning)[^:]*: )?(.*)$")
ROOT = Path(__file__).resolve().parent.parent


@magics_class
class CudaMagics(Magics):
    """The cell magic %%cuda."""

    @magic_arguments()
    @argument("--check", action="store_true", help="run with every check on")
    @argument("--count", action="store_true", help="count what the kernels ask of a GPU")
    @argument("--device", default="T4", help="whose limits hold on the CPU (default: T4)")
    @argument("--seconds", type=float, default=60.0, help="limit for the run (default: 60)")
    @argument("arguments", nargs="*", help="what main gets")
    @cell_magic
    def cuda(self, line: str, cell: str) -> Ran | None:
        """Run a CUDA program: by nvcc where there is a GPU, else on the CPU. A cell of kernels without a main is compiled only."""
        try:
            options = parse_argstring(self.cuda, line)
        except ValueError as error:  # shlex's, of a quotation mark that stands alone
            raise UsageError(f"%%cuda {line.strip()}: {str(error).rstrip('.').lower()}.") from None
        if not cell.strip():
            raise UsageError("%%cuda: the cell is empty; write a kernel, and a main that launches it.")
        return run(cell, check=options.check, count=options.count, device=options.device, arguments=options.arguments, seconds=options.seconds)


def run(text: str, *, check: bool = False, count: bool = False, device: str = "T4", arguments: list[str] = [], seconds: float = 60.0) -> Ran | None:
    """Build and run a cell's text. What the program prints is printed; the result, if there is something to say, displays itself."""
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
        done = _process([sys.executable, "-m", "simt", mode, "--device", device, str(file), *arguments], folder, seconds + 60.0)
        status = done[0]
    _, out, said = done
    if out:
        print(out, end="" if out.endswith("\n") else "\n")
    if status is None:
        return Ran(text, [f"It was not done after {seconds:g} s and was stopped: look for a loop that never ends."], None)
    lines = [line for line in said.splitlines() if line.strip()]
    if status == 0 and not has_main:
        names = KERNELS.findall(text)
        return Ran(text, [f"{_listed(names)} compiled; without a main nothing was run." if names else "It compiled; without a main nothing was run."] + lines, 0)
    if status == 0 and not lines:
        return None
    return Ran(text, lines or [f"It ended with exit status {status}."], status)


def _listed(names: list[str]) -> str:
    return f"Kernel {names[0]}" if len(names) == 1 else f"Kernels {', '.join(names[:-1])} and {names[-1]}"


def _process(command: list[str], folder: Path, seconds: float) -> tuple[int | None, str, str]:
    """Exit status (None: too late), standard output, standard error. What keeps running ends with the call, also when that is interrupted."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
                               env=environment, cwd=folder, start_new_session=True)  # fmt: skip
    try:
        out, said = process.communicate(timeout=seconds)
        return process.returncode, out, said
    except subprocess.TimeoutExpired:
        return None, "", ""
    except KeyboardInterrupt:
        from grader.desk import Interrupted

        raise Interrupted("Interrupted: the program was stopped.") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Ran:
    """What there was to say about a cell: displays itself, with the cell's lines. status: the program's, or None."""

    def __init__(self, text: str, said: list[str], status: int | None):
        self.text, self.said, self.status = text, said, status

    def parts(self) -> list[object]:
        parts: list[object] = []
        lines = self.text.rstrip().split("\n")
        own, marked = {line.strip() for line in lines}, False
        for said in self.said[:20]:
            if said.strip() in own or said.startswith("simt: compiling"):
                continue  # the compiler repeats the line, which is shown anyway
            match = SAID.match(said.strip())
            number = int(match[1]) if match else 0
            if not match or not 0 < number <= len(lines):
                parts.append(Words(said.replace("cell.cu, line ", "line ")))
                continue
            message = re.sub(r"^, kernel (\w+): ", r"kernel \1: ", match[3]).strip() or said
            kind = "failed" if self.status else ""
            parts.append(Words(f"Line {number} of the cell: {message}", "text", kind))
            if not marked:
                explanation = messages.explain(message, lines[number - 1], self.text, number)
                parts += [Words(explanation.text)] if explanation else []
                near = range(max(1, number - 2), min(len(lines), number + 2) + 1)
                parts.append(Code([(n, lines[n - 1], n == number) for n in near]))
            marked = True
        return parts

    def __repr__(self) -> str:
        return shown.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return shown.bundle(self.parts())
