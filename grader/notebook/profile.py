"""grader.profile and grader.compare: a kernel's memory requests, operations and time on a GPU, counted on the CPU and
predicted, or measured where there is a GPU.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from grader.notebook import cells
from grader.notebook.check import CannotCheck, Interrupted, find_gpu, find_subject
from grader.problems import exercises
from grader.reports import feedback, terminal
from grader.reports.feedback import Code, Image, Table, Words
from grader.source import contract, syntax
from grader.verdict import EXPLANATIONS, Outcome, Reason
from simt.own_torch import with_own_torch

TIMEOUT_S = 180.0  # for one kernel, builds included
NEIGHBOURS, BANKS = (
    "neighbouring threads should {} neighbouring addresses",
    "several lanes access the same bank: pad the array's rows by one element",
)
WIDE = "to global memory touch {have:.1f} sectors of 32 bytes per request; {ideal:.1f} would be enough"
PASSES = "shared memory take {have:.1f} wavefronts per request; {ideal:.1f} would be enough"
WORDS = {
    "global_loads": ("loads from" + WIDE.removeprefix("to"), NEIGHBOURS.format("read")),
    "global_stores": (f"stores {WIDE}", NEIGHBOURS.format("write")),
    "shared_loads": (f"loads from {PASSES}", BANKS),
    "shared_stores": (f"stores to {PASSES}", BANKS),
}


class NotAttempted(CannotCheck):
    """A kernel is still the exercise as handed out; str() is what grader.check shows of it."""

    def __init__(self, exercise: str):
        word, sentence = terminal.WORDS[Outcome.not_attempted], EXPLANATIONS[Reason.not_attempted]
        self.parts = [Words(f"{exercise}: {word}", "title", Outcome.not_attempted.value), Words(sentence)]
        super().__init__(feedback.as_text(self.parts))


class CannotCount(CannotCheck):
    """A forward could not be counted. path: the kernel's file; reason: the sentences that say why."""

    def __init__(self, path: Path, reason: str):
        self.path, self.reason = path, reason
        super().__init__(f"{reason} Run grader.check on it first: it explains more.")


def profile(what, device: str = "H200", problem: str | Path | None = None) -> Profile:
    """Count one forward's requests and operations and predict its time on a GPU; where there is a GPU, measure it too.

    what, problem: as for grader.check. device: a GPU whose figures simt has (T4, A100, H100, H200, …). The problem's
    own sizes are used, reduced if the inputs would not fit into memory. Raises CannotCheck if the forward cannot be
    counted, NotAttempted for an exercise as handed out, and Interrupted.
    """
    device = find_gpu(device)
    return _profile(_find_kernel(what, problem), device)


def compare(a, b, device: str = "H200", problem: str | Path | None = None) -> Comparison:
    """Return two profiles side by side, and what changed from a to b. Arguments as in profile."""
    device = find_gpu(device)
    kernels = [_find_kernel(what, problem) for what in (a, b)]  # both, before one is counted
    return Comparison(*(_profile(subject, device) for subject in kernels))


def _find_kernel(what, problem: str | Path | None) -> cells.Subject:
    """Return the kernel to count. Raises CannotCheck, and NotAttempted."""
    subject = find_subject(what, problem)
    if subject.problem_file is None:
        raise CannotCheck(f"The problem that {subject.name} answers is unknown. Give problem=.")
    source, broken = contract.read(subject.path)
    tree, unparsable = (None, broken) if broken else contract.parse(source)
    if not unparsable and exercises.is_untouched(subject.text, subject.problem):
        raise NotAttempted(subject.problem)
    if tree:
        unparsable = contract.check(tree, _parse_problem(subject.problem_file), subject.path.name)
    if unparsable:
        sentence = feedback.moved(unparsable.message, subject.where)
        raise CannotCheck(sentence if subject.path.name in sentence else f"{subject.name}: {sentence}")
    return subject


def _parse_problem(path: Path) -> ast.Module:
    """Return the syntax tree of the problem's file; an empty one if it is damaged, which counting reports."""
    try:
        return syntax.parse(contract.read(path)[0].text)
    except (SyntaxError, ValueError, RecursionError):
        return syntax.parse("")


def _profile(subject: cells.Subject, device: str) -> Profile:
    found = _counted(subject, device)
    if "error" in found:
        where = f" (at {subject.where(found['line'])})" if found.get("line") else ""
        raise CannotCount(subject.path, f"{subject.name} cannot be counted{where}: {_end(found['error'])}")
    return Profile(subject, device, found, *_measured(subject))


def _end(text: str) -> str:
    """Return the text with a full stop, if no mark ends it."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _counted(subject: cells.Subject, device: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        result = Path(folder) / "result.json"
        command = [
            sys.executable,
            "-m",
            "grader.notebook.counting",
            str(subject.path.resolve()),
            str(subject.problem_file),
            device,
            str(result),
        ]
        paths = os.pathsep.join(filter(None, [str(cells.ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = os.environ | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            command, stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment, start_new_session=True, cwd=folder
        )
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return {"error": f"it did not end within {TIMEOUT_S:g} s."}
        except KeyboardInterrupt:
            raise Interrupted("Interrupted: counting was stopped.") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not result.is_file():
            return {"error": f"the program died (exit status {process.returncode})."}
        return json.loads(result.read_text(encoding="utf-8"))


@with_own_torch
def _measured(subject: cells.Subject) -> tuple[list, str]:
    """Return the grader's measurements if there is a GPU, or why there are none."""
    import torch

    if not torch.cuda.is_available():
        return [], ""
    from grader.judging.grading import grade

    verdict = grade(subject.path, problem=subject.problem_file)
    found = [one for stage in verdict.stages for one in stage.measurements]
    stopped = verdict.first_problem
    why = (
        f"It was not timed, because the check stopped at stage {stopped.name.value}: {stopped.message}"
        if stopped and not found
        else ""
    )
    return found, why


@dataclasses.dataclass(frozen=True)
class Sum:
    """The totals of all launches of one forward."""

    launches: int
    seconds: float
    flops: float
    bytes: float
    moved: float
    sectors_per_request: float
    ideal_sectors: float
    conflicts: float
    lanes: float
    barriers: float
    atomics: float


class Profile:
    """Counters by kernel and line, the time, and pictures; displays itself.

    launches: one dict per launch; total: their Sum.
    """

    def __init__(self, subject: cells.Subject, device: str, found: dict, measured: list, untimed: str = ""):
        self.name, self.device, self.measured, self._untimed = subject.name, device, measured, untimed
        self.launches, self.lines = found["launches"], found["lines"]
        self.lowered, self.sizes = found["lowered"], found["sizes"]
        self._subject, self._sources = subject, found["sources"]

    @property
    def total(self) -> Sum:
        def all_of(name: str) -> float:
            return sum(launch[name] or 0 for launch in self.launches)

        requests = all_of("requests") or 1
        weight = sum(launch["requests"] for launch in self.launches) or 1
        lanes = sum(launch["active"] * launch["requests"] for launch in self.launches) / weight
        return Sum(
            len(self.launches),
            all_of("seconds"),
            all_of("flops"),
            all_of("bytes"),
            all_of("moved"),
            all_of("sectors") / requests,
            all_of("ideal") / requests,
            all_of("conflicts"),
            lanes,
            all_of("barriers"),
            all_of("atomics"),
        )

    @property
    def pictures(self) -> list:
        """The roofline, a waterfall of the launches if there are several, and a request of the costliest line."""
        try:
            from grader import pictures
        except ImportError:
            return []
        made, total = [], self.total
        with contextlib.suppress(ImportError, ValueError):
            made.append(
                pictures.roofline(
                    [pictures.Point(self.name, total.flops, total.bytes, total.seconds, predicted=True)], self.device
                )
            )
        if len(self.launches) > 1:
            with contextlib.suppress(ImportError, ValueError):
                rows = [
                    pictures.TimedLaunch(one["kernel"], one["seconds"] or 0.0, one["bytes"]) for one in self.launches
                ]
                made.append(pictures.waterfall({self.name: rows}, device=self.device))
        for line in self.lines[:1]:
            for request in line["drawn"]:
                with contextlib.suppress(ImportError, ValueError, AttributeError, TypeError):
                    made += pictures.explain_line(SimpleNamespace(requests=[_request(request)]), self._text(line))
        return made

    def parts(self, pictures: bool = True) -> list[object]:
        sizes = " and ".join("×".join(map(str, shape)) for shape in self.sizes)
        changed = "".join(f", {name} reduced to {value}" for name, value in self.lowered.items())
        heading = f"{self.name}: {time(self.total.seconds)} predicted on the {self.device}"
        parts: list[object] = [Words(heading, "title")]
        parts.append(Words(f"One forward for inputs of {sizes}{changed}. {caution(self.device)}", "soft"))
        parts.append(Table([_row(*one) for one in _alike(self.launches)], head=HEAD, numbers=range(2, len(HEAD) - 1)))
        if self.measured:
            parts += [
                Words("Measured here, at full size", "lead"),
                Table([(one.name, f"{one.value:.4g} {one.unit}") for one in self.measured]),
            ]
        parts += [Words(self._untimed)] if self._untimed else []
        for line in self.lines[:3]:
            parts += self._line(line)
        return parts + ([Image(picture) for picture in self.pictures] if pictures else [])

    def _line(self, line: dict) -> list[object]:
        words, remedy = WORDS[line["kind"]]
        if line["kind"].startswith("global") and line["have"] < 1.5 * line["ideal"]:
            remedy = (
                "the addresses are contiguous, but a warp's part does not begin at a multiple of 32 bytes, which costs "
                "little"
            )
        sentence = f"{words.format(**line).capitalize()}: {remedy}."
        number = self._number(line)
        if number is None:
            return [
                Words(f"{line['kernel']}, line {line['line']} of cuda_sources", "lead"),
                Words(sentence),
            ]
        place = self._subject.where(number)
        shown_lines = [
            (n, text, n == number) for n, text in enumerate(self._subject.text.splitlines(), 1) if abs(n - number) <= 1
        ]
        return [
            Words(f"{line['kernel']}, {place}", "lead"),
            Words(sentence),
            Code(shown_lines),
        ]

    def _number(self, line: dict) -> int | None:
        """Return the file's line for a line of cuda_sources, or None."""
        source = contract.Source(self._subject.path, self._subject.text, "")
        base = line["kernel"].split("<")[0].split("::")[-1]
        string = next((text for text in self._sources if base in text), "")
        return contract.locate(source, string, line["line"]) if string else None

    def _text(self, line: dict) -> str:
        number = self._number(line)
        return self._subject.text.splitlines()[number - 1].strip() if number else ""

    def __repr__(self) -> str:
        return feedback.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return feedback.bundle(self.parts())


HEAD = (
    "kernel",
    "launch",
    "predicted",
    "DRAM bytes",
    "operations",
    "sectors per request",
    "bank conflicts",
    "active lanes",
    "limited by",
)


def _alike(launches: list[dict]) -> list[tuple[dict, int]]:
    """Return the launches grouped by kernel and shape: the first of each group with sums, and their number."""
    found: dict[tuple, list[dict]] = {}
    for one in launches:
        found.setdefault((one["kernel"], *one["grid"], *one["block"]), []).append(one)
    return [
        (
            same[0] | {"seconds": sum(s["seconds"] or 0.0 for s in same)} | {n: sum(s[n] for s in same) for n in SUMS},
            len(same),
        )
        for same in found.values()
    ]


SUMS = ("bytes", "flops", "sectors", "ideal", "requests", "conflicts")


def _row(one: dict, times: int) -> tuple[str, ...]:
    grid, block = ("×".join(str(n) for n in _trimmed(one[name])) for name in ("grid", "block"))
    return (
        one["kernel"],
        (f"{times} times " if times > 1 else "") + f"{grid} blocks of {block}",
        time(one["seconds"]),
        size(one["bytes"]),
        f"{one['flops']:,.0f}",
        f"{one['sectors'] / (one['requests'] or 1):.2f} (ideal {one['ideal'] / (one['requests'] or 1):.2f})",
        f"{one['conflicts']:,.0f}",
        f"{one['active']:.1f} of 32",
        one["limit"],
    )


def _trimmed(shape: list[int]) -> list[int]:
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _request(plain: dict):
    import simt

    return dataclasses.replace(simt.Request(**plain), addresses=tuple(plain["addresses"]))


def caution(device: str) -> str:
    from simt.counting.time_model import MEDIAN_ERROR

    return (
        "Predicted from counters. In tests on an H200, half of the predictions were off by more than "
        f"{MEDIAN_ERROR:.0%}."
    )


def time(seconds: float | None) -> str:
    """Return a time with a suitable unit."""
    if seconds is None:
        return "does not fit"
    return f"{1e6 * seconds:,.1f} µs" if seconds < 1e-3 else f"{1e3 * seconds:,.2f} ms"


def size(value: float) -> str:
    for unit, much in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= much:
            return f"{value / much:.3g} {unit}"
    return f"{value:,.0f} bytes"


class Comparison:
    """Two profiles side by side; displays itself. a, b: the profiles; ratio: a's time over b's."""

    def __init__(self, a: Profile, b: Profile):
        self.a, self.b = a, b
        self.ratio = a.total.seconds / b.total.seconds if b.total.seconds else float("nan")

    @property
    def pictures(self) -> list:
        made = []
        with contextlib.suppress(ImportError, ValueError):
            from grader import pictures

            names = _names(self.a, self.b)
            points = [
                pictures.Point(n, p.total.flops, p.total.bytes, p.total.seconds, predicted=True)
                for n, p in zip(names[::-1], (self.b, self.a))
            ]
            made.append(pictures.roofline(points, self.a.device))
            variants = {
                n: [pictures.TimedLaunch(one["kernel"], one["seconds"] or 0.0, one["bytes"]) for one in p.launches]
                for n, p in zip(names, (self.a, self.b))
            }
            made.append(pictures.waterfall(variants, device=self.a.device))
        return made

    def parts(self, pictures: bool = True) -> list[object]:
        names = _names(self.a, self.b)
        parts: list[object] = [Words(self._heading(names), "title"), Words(caution(self.a.device), "soft")]
        both = [
            (words, show, getattr(self.a.total, field), getattr(self.b.total, field)) for words, field, show in FIELDS
        ]
        rows = [(words, show(a), show(b), change(a, b)) for words, show, a, b in both]
        parts.append(Table(rows, head=("", *names, "change"), numbers=(1, 2, 3)))
        if self.a.sizes != self.b.sizes:
            parts.append(
                Words("The two ran on inputs of different sizes, so their figures are not directly comparable.", "soft")
            )
        return parts + ([Image(picture) for picture in self.pictures] if pictures else [])

    def _heading(self, names: tuple[str, str]) -> str:
        """Return which is faster. Kernels of different problems are named with them."""
        files = [profile._subject.problem_file for profile in (self.a, self.b)]
        different = len({file.resolve() for file in files if file}) > 1
        problems = [f" (problem {cells.problem_name(file)})" if file and different else "" for file in files]
        labels = [name + problem for name, problem in zip(names, problems)]
        first, second = labels[::-1] if self.ratio >= 1 else labels
        faster = f"{first} is predicted {max(self.ratio, 1 / self.ratio):.2f} times as fast as {second}"
        return f"{faster} on the {self.a.device}" + (": they answer different problems" if different else "")

    def __repr__(self) -> str:
        return feedback.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return feedback.bundle(self.parts())


def _names(a: Profile, b: Profile) -> tuple[str, str]:
    if a.name != b.name:
        return a.name, b.name
    parts = [f"{p._subject.path.parent.name}/{p.name}" for p in (a, b)]
    return (parts[0], parts[1]) if parts[0] != parts[1] else (f"first {a.name}", f"second {b.name}")


FIELDS = (
    ("launches", "launches", lambda v: f"{v:,}"),
    ("predicted time", "seconds", time),
    ("bytes to and from DRAM", "bytes", size),
    ("bytes moved by requests", "moved", size),
    ("sectors per request", "sectors_per_request", lambda v: f"{v:.2f}"),
    ("floating-point operations", "flops", lambda v: f"{v:,.0f}"),
    ("bank conflicts", "conflicts", lambda v: f"{v:,.0f}"),
    ("active lanes", "lanes", lambda v: f"{v:.1f} of 32"),
    ("barriers (per warp)", "barriers", lambda v: f"{v:,.0f}"),
    ("atomics", "atomics", lambda v: f"{v:,.0f}"),
)


def change(a: float, b: float) -> str:
    """Return the change from a to b as a factor, or in a word."""
    if a == b:
        return "same"
    if not a:
        return "new"
    if not b:
        return "gone"
    return f"×{b / a:.2f}"
