"""What a kernel asks of a GPU and how long that takes there: one kernel, or two side by side. Counted here, predicted, or measured on a GPU."""

from __future__ import annotations

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

from grader import cells, shown, student
from grader.desk import CannotCheck, Interrupted, _subject
from grader.shown import Code, Image, Table, Words

SECONDS = 180.0  # for one kernel, builds included
NEIGHBOURS, BANKS = "neighbouring threads should {} neighbouring addresses", "lanes meet in the same bank: pad the array's rows by one element"
WIDE = "to global memory touch {have:.1f} sectors of 32 bytes a request, where {ideal:.1f} would do"
PASSES = "shared memory take {have:.1f} passes a request, where {ideal:.1f} would do"
WORDS = {
    "global_loads": ("loads from" + WIDE.removeprefix("to"), NEIGHBOURS.format("read")),
    "global_stores": (f"stores {WIDE}", NEIGHBOURS.format("write")),
    "shared_loads": (f"loads from {PASSES}", BANKS),
    "shared_stores": (f"stores to {PASSES}", BANKS),
}


def profile(what, device: str = "H200", problem: str | Path | None = None) -> Profile:
    """Count what one forward asks of a GPU, and predict its time there; on a machine with a GPU the time is measured as well.

    what, problem: as for grader.check. device: a GPU that simt knows figures of (T4, A100, H100, H200, …). The problem's own sizes
    are used, lowered where the inputs would not fit here. Raises CannotCheck where it cannot be counted, and Interrupted.
    """
    from simt.model import GPUS

    if device not in GPUS:
        raise CannotCheck(f"There are no figures of a GPU {device!r}; there are of {', '.join(GPUS)}.")
    subject = _subject(what, problem)
    if subject.problem_file is None:
        raise CannotCheck(f"Which problem does {subject.name} answer? Say problem=.")
    found = _counted(subject, device)
    if "error" in found:
        where = f" (at {subject.where(found['line'])})" if found.get("line") else ""
        raise CannotCheck(f"{subject.name} cannot be counted{where}: {found['error']} Check it first: grader.check tells more.")
    return Profile(subject, device, found, *_measured(subject))


def compare(a, b, device: str = "H200", problem: str | Path | None = None) -> Comparison:
    """Two kernels side by side: what each asks of the GPU, its time, and what changed from a to b. Arguments as of profile."""
    return Comparison(profile(a, device, problem), profile(b, device, problem))


def _counted(subject: cells.Subject, device: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "grader.counting", str(subject.path.resolve()), str(subject.problem_file), device, str(result)]
        paths = os.pathsep.join(filter(None, [str(cells.ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = os.environ | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment, start_new_session=True, cwd=folder)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return {"error": f"it was not done after {SECONDS:g} s."}
        except KeyboardInterrupt:
            raise Interrupted("Interrupted: counting was stopped.") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not result.is_file():
            return {"error": f"the program died (exit status {process.returncode})."}
        return json.loads(result.read_text(encoding="utf-8"))


def _measured(subject: cells.Subject) -> tuple[list, str]:
    """The times that the grader's clock takes, where there is a GPU; or else why there are none."""
    import torch

    if not torch.cuda.is_available():
        return [], ""
    from grader.judge import grade

    verdict = grade(subject.path, problem=subject.problem_file)
    found = [one for stage in verdict.stages for one in stage.measurements]
    stopped = verdict.first_problem
    why = f"It was not timed, for the check stopped in the stage {stopped.name.value}: {stopped.message}" if stopped and not found else ""
    return found, why


@dataclasses.dataclass(frozen=True)
class Sum:
    """All launches of one forward together."""

    launches: int
    seconds: float
    flops: float
    bytes: float
    moved: float
    sectors_a_request: float
    ideal_sectors: float
    conflicts: float
    lanes: float
    barriers: float
    atomics: float


class Profile:
    """Counters by kernel and line, the time, and pictures; displays itself.

    launches: one dict each, total: their Sum. untouched: whether it is an exercise that nobody has worked on.
    """

    def __init__(self, subject: cells.Subject, device: str, found: dict, measured: list, untimed: str = ""):
        self.name, self.device, self.measured, self._untimed = subject.name, device, measured, untimed
        self.launches, self.lines = found["launches"], found["lines"]
        self.lowered, self.sizes = found["lowered"], found["sizes"]
        self._subject, self._sources = subject, found["sources"]
        self.untouched = student.is_untouched(subject.text, subject.problem)

    @property
    def total(self) -> Sum:
        def all_of(name: str) -> float:
            return sum(launch[name] or 0 for launch in self.launches)

        requests = all_of("requests") or 1
        weight = sum(launch["requests"] for launch in self.launches) or 1
        lanes = sum(launch["active"] * launch["requests"] for launch in self.launches) / weight
        return Sum(
            len(self.launches), all_of("seconds"), all_of("flops"), all_of("bytes"), all_of("moved"), all_of("sectors") / requests,
            all_of("ideal") / requests, all_of("conflicts"), lanes, all_of("barriers"), all_of("atomics"),
        )  # fmt: skip

    @property
    def pictures(self) -> list:
        """Roofline, the launches as a waterfall where there are several, and the costliest line's request."""
        try:
            from grader import pictures
        except ImportError:
            return []
        made, total = [], self.total
        with contextlib.suppress(ImportError, ValueError):
            made.append(pictures.roofline([pictures.Point(self.name, total.flops, total.bytes, total.seconds, predicted=True)], self.device))
        if len(self.launches) > 1:
            with contextlib.suppress(ImportError, ValueError):
                rows = [pictures.Launched(one["kernel"], one["seconds"] or 0.0, one["bytes"]) for one in self.launches]
                made.append(pictures.waterfall({self.name: rows}, device=self.device))
        for line in self.lines[:1]:
            for request in line["drawn"]:
                with contextlib.suppress(ImportError, ValueError, AttributeError, TypeError):
                    made += pictures.of_line(SimpleNamespace(requests=[_request(request)]), self._text(line))
        return made

    def parts(self, pictures: bool = True) -> list[object]:
        sizes = " and ".join("×".join(map(str, shape)) for shape in self.sizes)
        changed = "".join(f", {name} lowered to {value}" for name, value in self.lowered.items())
        name = f"{self.name}, still as handed out," if self.untouched else self.name
        parts: list[object] = [Words(f"{name} on the {self.device}: {time(self.total.seconds)} predicted", "title")]
        parts += [Words(UNTOUCHED, "lead")] if self.untouched else []
        parts.append(Words(f"One forward for inputs of {sizes}{changed}. {caution(self.device)}", "soft"))
        parts.append(Table([_row(*one) for one in _alike(self.launches)], head=HEAD, numbers=range(2, len(HEAD) - 1)))
        if self.measured:
            parts += [Words("Measured here, at full size", "lead"), Table([(one.name, f"{one.value:.4g} {one.unit}") for one in self.measured])]
        parts += [Words(self._untimed)] if self._untimed else []
        for line in self.lines[:3]:
            parts += self._line(line)
        return parts + ([Image(picture) for picture in self.pictures] if pictures else [])

    def _line(self, line: dict) -> list[object]:
        words, remedy = WORDS[line["kind"]]
        if line["kind"].startswith("global") and line["have"] < 1.5 * line["ideal"]:
            remedy = "the addresses are neighbours, but a warp's part does not begin at a multiple of 32 bytes, which costs little"
        said = words.format(**line)
        number = self._number(line)
        if number is None:
            return [Words(f"{line['kernel']}, line {line['line']} of cuda_sources", "lead"), Words(f"{said[:1].upper()}{said[1:]}: {remedy}.")]
        place = self._subject.where(number)
        shown_lines = [(n, text, n == number) for n, text in enumerate(self._subject.text.splitlines(), 1) if abs(n - number) <= 1]
        return [Words(f"{line['kernel']}, {place}", "lead"), Words(f"{said[:1].upper()}{said[1:]}: {remedy}."), Code(shown_lines)]

    def _number(self, line: dict) -> int | None:
        """The file's line."""
        from grader import contract

        source = contract.Source(self._subject.path, self._subject.text, "")
        base = line["kernel"].split("<")[0].split("::")[-1]
        string = next((text for text in self._sources if base in text), "")
        return contract.locate(source, string, line["line"]) if string else None

    def _text(self, line: dict) -> str:
        number = self._number(line)
        return self._subject.text.splitlines()[number - 1].strip() if number else ""

    def __repr__(self) -> str:
        return shown.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return shown.bundle(self.parts())


UNTOUCHED = "This is still the exercise as handed out: the figures are of what is there, not of a kernel that does its work."
HEAD = ("kernel", "launch", "predicted", "DRAM bytes", "operations", "sectors a request", "bank conflicts", "lanes at work", "limited by")


def _alike(launches: list[dict]) -> list[tuple[dict, int]]:
    """Launches of one kernel and one shape together: the first of them, and how many."""
    found: dict[tuple, list[dict]] = {}
    for one in launches:
        found.setdefault((one["kernel"], *one["grid"], *one["block"]), []).append(one)
    return [(same[0] | {"seconds": sum(s["seconds"] or 0.0 for s in same)} | {n: sum(s[n] for s in same) for n in SUMS}, len(same)) for same in found.values()]


SUMS = ("bytes", "flops", "sectors", "ideal", "requests", "conflicts")


def _row(one: dict, times: int) -> tuple[str, ...]:
    grid, block = ("×".join(str(n) for n in _trimmed(one[name])) for name in ("grid", "block"))
    return (
        one["kernel"], (f"{times} times " if times > 1 else "") + f"{grid} blocks of {block}", time(one["seconds"]), size(one["bytes"]), f"{one['flops']:,.0f}",
        f"{one['sectors'] / (one['requests'] or 1):.2f} (ideal {one['ideal'] / (one['requests'] or 1):.2f})", f"{one['conflicts']:,.0f}",
        f"{one['active']:.1f} of 32", one["limit"],
    )  # fmt: skip


def _trimmed(shape: list[int]) -> list[int]:
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _request(plain: dict):
    import simt

    return simt.Request(**(plain | {"addresses": tuple(plain["addresses"])}))


def caution(device: str) -> str:
    from simt.model import MEDIAN_ERROR

    return f"Predicted from counters: on an H200 half of the predictions tested were off by more than {MEDIAN_ERROR:.0%}."


def time(seconds: float | None) -> str:
    """With the unit that suits it."""
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
            points = [pictures.Point(n, p.total.flops, p.total.bytes, p.total.seconds, predicted=True) for n, p in zip(names[::-1], (self.b, self.a))]
            made.append(pictures.roofline(points, self.a.device))
            told = {n: [pictures.Launched(one["kernel"], one["seconds"] or 0.0, one["bytes"]) for one in p.launches] for n, p in zip(names, (self.a, self.b))}
            made.append(pictures.waterfall(told, device=self.a.device))
        return made

    def parts(self, pictures: bool = True) -> list[object]:
        names = _names(self.a, self.b)
        parts: list[object] = [Words(self._heading(names), "title"), Words(caution(self.a.device), "soft")]
        both = [(words, show, getattr(self.a.total, field), getattr(self.b.total, field)) for words, field, show in FIELDS]
        rows = [(words, show(a), show(b), change(a, b)) for words, show, a, b in both]
        parts.append(Table(rows, head=("", *names, "change"), numbers=(1, 2, 3)))
        if self.a.sizes != self.b.sizes:
            parts.append(Words("The two ran on inputs of different sizes: compare figures with care.", "soft"))
        return parts + ([Image(picture) for picture in self.pictures] if pictures else [])

    def _heading(self, names: tuple[str, str]) -> str:
        """Which is faster, unless one is not written yet; two that answer different problems have theirs beside their names."""
        unwritten = list(dict.fromkeys(name for name, profile in zip(names, (self.a, self.b)) if profile.untouched))
        if unwritten:
            are = "is still the exercise" if len(unwritten) == 1 else "are still exercises"
            return f"{' and '.join(unwritten)} {are} as handed out: how the two compare on the {self.a.device} says nothing yet"
        files = [profile._subject.problem_file for profile in (self.a, self.b)]
        different = files[0].resolve() != files[1].resolve()
        problems = [f" (problem {cells.problem_name(file)})" if different else "" for file in files]
        told = [name + problem for name, problem in zip(names, problems)]
        first, second = told[::-1] if self.ratio >= 1 else told
        faster = f"{first} is predicted {max(self.ratio, 1 / self.ratio):.2f} times as fast as {second}"
        return f"{faster} on the {self.a.device}" + (": they answer different problems" if different else "")

    def __repr__(self) -> str:
        return shown.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return shown.bundle(self.parts())


def _names(a: Profile, b: Profile) -> tuple[str, str]:
    if a.name != b.name:
        return a.name, b.name
    parts = [f"{p._subject.path.parent.name}/{p.name}" for p in (a, b)]
    return (parts[0], parts[1]) if parts[0] != parts[1] else (f"first {a.name}", f"second {b.name}")


FIELDS = (
    ("launches", "launches", lambda v: f"{v:,}"),
    ("predicted time", "seconds", time),
    ("bytes that must pass DRAM", "bytes", size),
    ("bytes moved by requests", "moved", size),
    ("sectors a request", "sectors_a_request", lambda v: f"{v:.2f}"),
    ("floating-point operations", "flops", lambda v: f"{v:,.0f}"),
    ("bank conflicts", "conflicts", lambda v: f"{v:,.0f}"),
    ("lanes at work", "lanes", lambda v: f"{v:.1f} of 32"),
    ("barriers of warps", "barriers", lambda v: f"{v:,.0f}"),
    ("atomics", "atomics", lambda v: f"{v:,.0f}"),
)


def change(a: float, b: float) -> str:
    """From a to b as a factor or a difference in words."""
    if a == b:
        return "same"
    if not a:
        return "new"
    if not b:
        return "gone"
    return f"×{b / a:.2f}"
