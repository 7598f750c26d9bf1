"""Times every step of a problem's ladder, eager, torch.compile and submissions beside one another on a GPU, in one run.

Each problem is measured by a process of its own, the child, so that a kernel that destroys the GPU's state costs one
row: the rest is measured again without it. In each round every row is run once, in random order: the L2 cache is
flushed, and two events on the stream stand around one call. What the child finds it says at once, a line of JSON each,
so that whatever was measured is kept when somebody interrupts.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from grader import cases, clock
from grader import problem as _problem

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data" / "bench.json"
# Timed if none is named.
SEEDS = ("groupnorm", "conv_groupnorm_logsumexp", "conv_groupnorm_maxpool", "conv_sigmoid_groupnorm")

KINDS = ("step", "reference", "beside", "submission", "eager", "compile")
MODES = ("default", "max-autotune")  # of torch.compile
OURS = ("step", "reference", "beside", "submission")
SPARED = ("step", "reference", "eager", "compile", *MODES, "channels_last", "tf32")  # what a run can leave out

NARROW = 0.01  # half the width of a median's interval, relative
FEWEST, MOST = 20, 200  # rounds
SLOW = 5.0  # times the fastest row: after FEWEST rounds it waits no longer for others
WARM_UPS = 3
PROOF = 2.0  # times eager's error in its class: how far a row may be from float64
CLOCKS = ("timestamp", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")
EVERY = 200  # milliseconds between two readings of the clocks
PATIENCE = 900.0  # seconds in which a child says nothing (it compiles) before it is given up


# --- what is measured ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Entry:
    """One row: a file's ModelNew, or the problem's own Model run by torch.

    name: unique in its problem. kind: one of KINDS. precision: whose error it is held to, "fp32" or "tf32" (which torch
    is then allowed to use). file: of ModelNew. mode: of torch.compile. channels_last: its weights and inputs lie so
    beforehand.
    """

    name: str
    kind: str
    precision: str = "fp32"
    file: str | None = None
    mode: str | None = None
    channels_last: bool = False


def ladder_of(folder: Path) -> list[tuple[str, Path]]:
    """Kind and file of what stands in a problem's folder: its steps in order, its solution, what stands beside them."""
    found = [("step", f) for f in sorted(folder.glob("steps/*.py"))]
    found += [("reference", f) for f in [folder / "solution.py"] if f.is_file()]
    known = {"model.py", "solution.py", "backward.py"}
    others = [f for f in sorted(folder.glob("*.py")) if f.name not in known]
    return found + [("beside", f) for f in others if "class ModelNew" in f.read_text(encoding="utf-8")]


def entries(problem: _problem.Problem, submissions: Sequence[Path], spared: Sequence[str], work: Work) -> list[Entry]:
    """The rows of a problem. TF32 and channels_last are tried only where they make a difference."""
    made = []
    for kind, file in [*ladder_of(problem.path.parent), *(("submission", f) for f in submissions)]:
        name = {"reference": "solution", "submission": f"submission {file.stem}"}.get(kind, file.stem)
        made.append(Entry(name, kind, precision_of(file, problem), str(file.resolve())))
    for precision in cases.PRECISIONS if work.products else ("fp32",):
        for last in (False, True) if work.planes else (False,):
            words = (", channels_last" if last else "") + (f", {precision}" if work.products else "")
            made.append(Entry(f"eager{words}", "eager", precision, channels_last=last))
            for mode in MODES:
                said = "torch.compile" + ("" if mode == "default" else f" {mode}")
                made.append(Entry(said + words, "compile", precision, mode=mode, channels_last=last))

    def is_spared(entry: Entry) -> bool:
        words = {entry.kind, entry.mode, "channels_last" if entry.channels_last else None}
        return bool(set(spared) & (words | ({entry.precision} if entry.kind not in OURS else set())))

    return [entry for entry in made if not is_spared(entry)]


def precision_of(file: Path, problem: _problem.Problem) -> str:
    """What the file says its answers are (PRECISION = "tf32" at its top level), else what the problem asks for."""
    try:
        said = re.search(r'^PRECISION\s*=\s*["\'](\w+)["\']', file.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):  # its row will say why
        said = None
    return said[1] if said and said[1] in cases.PRECISIONS else problem.precision


@dataclasses.dataclass(frozen=True)
class Work:
    """What any implementation must do: bytes (inputs, weights and outputs once), operations of products (two a
    multiply-add), and elements touched by everything else. planes: whether an input's layout can be chosen, as it has
    four dimensions."""

    bytes: int
    products: int
    others: int
    planes: bool

    def floor(self, roof: Mapping[str, float], precision: str) -> float | None:
        """Least seconds under a roof (roof_of); None if it is not known. float16 has TF32's 11 bits at twice the rate,
        and three such products make one in fp32."""
        if not roof:
            return None
        fp32, tf32 = roof["fp32_a_second"], max(roof["tf32_a_second"], roof["fp16_a_second"])
        by_products = self.products / (tf32 if precision == "tf32" else max(fp32, tf32 / 3))
        return max(self.bytes / roof["bytes_a_second"], by_products, self.others / fp32)


def work_of(problem: _problem.Problem) -> Work:
    """By shapes, on the meta device where the model runs there: nothing is computed."""
    from torch.utils.flop_counter import FlopCounterMode

    def watched(device: str):
        instance = problem.instantiate(problem.full(), 0, device)
        with FlopCounterMode(display=False) as flops:
            return instance, *instance.watched(), flops.get_total_flops()

    try:
        instance, outputs, watch, products = watched("meta")
    except _problem.ProblemError:
        instance, outputs, watch, products = watched("cpu")
    inputs = [v for v in instance.inputs if isinstance(v, torch.Tensor)]
    moved = sum(t.numel() * t.element_size() for t in [*inputs, *instance.model.parameters(), *outputs])
    return Work(moved, products, max(0, watch.work - products // 2), any(v.dim() == 4 for v in inputs))


def roof_of() -> dict[str, float]:
    """What this GPU reaches: bytes a second of a large copy, operations a second of large products in three precisions.
    {} without one."""
    if not torch.cuda.is_available():
        return {}
    found, n, one = {"bytes_a_second": clock.copy_rate()}, 8192, Events(lambda: None)
    for precision in ("fp32", "tf32", "fp16"):
        allow_tf32(precision == "tf32")
        a, b = (torch.randn(n, n, device="cuda").to(torch.half if precision == "fp16" else torch.float) for _ in "ab")
        torch.mm(a, b)
        found[f"{precision}_a_second"] = 2 * n**3 / min(one(lambda: torch.mm(a, b)) for _ in range(5))
    return found


# --- times -----------------------------------------------------------------------------------------------------------


class Events:
    """Seconds of a call between two events on the current stream. before: queued ahead of them, so that the GPU still
    works on it while the call is launched."""

    def __init__(self, before: Callable[[], object]):
        self.before = before

    def __call__(self, call: Callable[[], object]) -> float:
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.before()
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / 1e3


def wall(call: Callable[[], object]) -> float:
    """Seconds of a call by this process's clock."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rounds(
    rows: Mapping[str, Callable[[], float]],
    each: Callable[[dict[str, float]], None],
    *,
    now: Callable[[], float] = time.perf_counter,
    seconds: float = 60.0,
    seed: int | None = None,
) -> None:
    """Run all rows in turns, in random order, until each one's median is known to NARROW, or time or patience ends.

    rows: each call measures its row once. each: called after every round with its seconds. A row much slower than the
    fastest leaves after FEWEST rounds. At least one round is run.
    """
    order, deadline = random.Random(seed), now() + seconds
    samples: dict[str, list[float]] = {name: [] for name in rows}
    running = list(rows)
    while running:
        found = {name: rows[name]() for name in order.sample(running, len(running))}
        for name, taken in found.items():
            samples[name].append(taken)
        each(found)
        if now() > deadline or len(samples[running[0]]) >= MOST:
            return
        if len(samples[running[0]]) < FEWEST:
            continue
        fastest = min(statistics.median(s) for s in samples.values())
        if all(is_narrow(samples[name]) for name in running):
            return
        running = [name for name in running if statistics.median(samples[name]) <= SLOW * fastest]


@functools.cache
def rank(n: int) -> int:
    """The number k so that the k-th smallest and the k-th largest of n numbers hold their distribution's median between
    them in at least 95 % of all cases, whatever the distribution; 1 where there are too few for that."""
    outside, k = 1, 1  # cases of 2^n in which fewer than k numbers lie below the median
    while outside + math.comb(n, k) <= 0.025 * 2**n:
        outside, k = outside + math.comb(n, k), k + 1
    return k


def median(samples: Sequence[float]) -> tuple[float, float, float]:
    """The median and its 95 % interval."""
    ordered, k = sorted(samples), rank(len(samples))
    return statistics.median(ordered), ordered[k - 1], ordered[-k]


def is_narrow(samples: Sequence[float]) -> bool:
    middle, low, high = median(samples)
    return len(samples) >= 6 and (high - low) / 2 <= NARROW * middle


# --- the child -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Order:
    """What a child is asked to do. skip: rows that ended the one before. profile: run these once each, for ncu."""

    problem: str
    sets: dict[str, str]
    device: str
    submissions: list[str]
    spared: list[str]
    seconds: float
    seed: int
    skip: list[str] = dataclasses.field(default_factory=list)
    profile: list[str] = dataclasses.field(default_factory=list)

    def command(self, descriptor: int) -> list[str]:
        """Which starts the child, whose lines come through the descriptor."""
        return [sys.executable, "-m", "grader.bench", str(descriptor), json.dumps(dataclasses.asdict(self))]

    def read(self) -> _problem.Problem:
        return _problem.read(Path(self.problem), self.sets)

    def entries(self, work: Work) -> list[Entry]:
        return entries(self.read(), [Path(f) for f in self.submissions], self.spared, work)


def child(order: Order, say: Callable[[dict], None]) -> None:
    """Measure one problem and say what is found: work, roof, each row's error or failure, each round's seconds."""
    problem, device = order.read(), order.device
    work = work_of(problem)
    if not order.profile:
        say({"work": dataclasses.asdict(work), "roof": roof_of() if device == "cuda" else {}})
    instance = problem.instantiate(problem.full(), order.seed, device)
    inputs = list(instance.inputs)
    expected = expected_of(instance, inputs)
    time_one = Events(_eraser()) if device == "cuda" else wall
    rows: dict[str, Callable[[], float]] = {}
    for entry in order.entries(work):
        if entry.name in order.skip or order.profile and entry.name not in order.profile:
            continue
        say({"trying": entry.name})
        try:
            call = prepared(entry, problem, instance, inputs)
            for _ in range(WARM_UPS):
                out = call()
            clock.synchronize()
            if order.profile:
                _between_marks(call)
                continue
            say({"row": entry.name, "error": error_of(out, expected)})
            rows[entry.name] = functools.partial(_turn, entry, call, time_one, order, say)
            del out
        except Exception as error:  # noqa: BLE001  (a baseline that fails is a row that says so)
            if device == "cuda" and not _usable():
                raise  # nothing more will run in this process: the next one leaves this row out
            say({"row": entry.name, "failed": _words(error)})
    if rows:
        rounds(rows, lambda found: say({"round": found}), seconds=order.seconds, seed=order.seed)


def _turn(entry: Entry, call: Callable[[], object], time_one, order: Order, say) -> float:
    allow_tf32(entry.kind not in OURS and entry.precision == "tf32")
    say({"trying": entry.name})
    return time_one(call)


def _words(error: BaseException) -> str:
    """Its kind and first line, or what a compiler called an error."""
    text = str(error).strip().splitlines() or [""]
    line = next((line for line in text if re.search(r"\berror( \w+)?: ", line)), text[0])
    return f"{type(error).__name__}: {line.strip()}"[:200].removesuffix(": ")


def _usable() -> bool:
    """Whether the GPU still answers this process: an illegal access in a kernel ends that."""
    try:
        torch.zeros(1, device="cuda").item()
    except RuntimeError:
        return False
    return True


def _eraser() -> Callable[[], object]:
    return clock.Flush().buffer.zero_


def _between_marks(call: Callable[[], object]) -> None:
    """One run for ncu, after a kernel that does nothing and by whose name rows are told apart."""
    torch.cuda.cudart().cudaProfilerStart()
    torch.cuda._sleep(1)
    call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def allow_tf32(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed
    torch.set_float32_matmul_precision("high" if allowed else "highest")


def prepared(
    entry: Entry, problem: _problem.Problem, instance: _problem.Instance, inputs: list
) -> Callable[[], object]:
    """A call that runs the row's model once on the inputs, with the instance's weights."""
    device = next((v.device for v in inputs if isinstance(v, torch.Tensor)), torch.device("cpu"))
    allow_tf32(entry.kind not in OURS and entry.precision == "tf32")
    if entry.file:
        made = load(Path(entry.file)).ModelNew
    else:  # a module of its own: torch.compile keeps only so many variants of one function
        made = problem.module({}).Model
    model = made(*instance.init_args, **instance.init_kwargs).to(device)
    model.load_state_dict(instance.model.state_dict())
    if entry.channels_last:
        model = model.to(memory_format=torch.channels_last)

        def turned(value):
            is_planes = isinstance(value, torch.Tensor) and value.dim() == 4
            return value.contiguous(memory_format=torch.channels_last) if is_planes else value

        inputs = [turned(value) for value in inputs]
    if entry.mode:
        model = torch.compile(model, mode=None if entry.mode == "default" else entry.mode)

    def run():
        with torch.no_grad():
            return model(*inputs)

    return run


def load(file: Path):
    """A submission's module; importing it compiles its kernels, for the CPU where there is no GPU."""
    import simt

    simt.enable()
    name = f"bench_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected_of(instance: _problem.Instance, inputs: list) -> dict[int, torch.Tensor]:
    """The float64 answer for the first, a middle and the last image (row of a product): none needs the others. {-1: the
    whole answer} of an input that is no batch."""
    x, *others = inputs
    whole = {-1: (x,)} if not isinstance(x, torch.Tensor) or x.dim() < 2 else {}
    found = {}
    try:
        for image in [] if whole else sorted({0, len(x) // 2, len(x) - 1}):
            instance.inputs[:] = [x[image : image + 1], *others]
            found[image] = instance.expected()[0]
        if whole:
            found[-1] = instance.expected()[0]
    except torch.OutOfMemoryError:
        found = {}
    finally:
        instance.inputs[:] = inputs
    return found


def error_of(out: object, expected: dict[int, torch.Tensor]) -> float | None:
    """The largest distance from float64, beside the largest value; None where float64's answer is not known or not
    finite."""
    out = _problem.flatten(out)[0]
    worst, largest = 0.0, 0.0
    for image, right in expected.items():
        got = out if image < 0 else out[image : image + 1]
        if got.shape != right.shape:
            raise ValueError(f"the answer's shape is {tuple(got.shape)}, not {tuple(right.shape)}")
        worst = max(worst, (got.double() - right).abs().max().item())
        largest = max(largest, right.abs().max().item())
    error = worst / largest if largest else worst
    return error if expected and error == error and error != float("inf") else None


# --- the parent ------------------------------------------------------------------------------------------------------


class Lines:
    """A child's lines as they come. It is ended with the with. tick: called about once a second meanwhile."""

    def __init__(self, order: Order, tick: Callable[[], None]):
        take, give = os.pipe()
        self.process = subprocess.Popen(
            order.command(give), pass_fds=[give], env=_environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(give)
        self.take, self.tick, self.said = take, tick, b""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # with torch.compile's own processes
        self.process.wait()
        self.process.stderr.close()
        os.close(self.take)

    def __iter__(self) -> Iterator[dict]:
        """Raises TimeoutError if it is silent for too long."""
        rest, heard, stderr = b"", time.monotonic(), self.process.stderr.fileno()
        watched = [self.take, stderr]
        while True:
            ended = self.process.poll() is not None
            ready, _, _ = select.select(watched, [], [], 0 if ended else 1.0)
            self.tick()
            if stderr in ready:  # its end says why a child died
                piece = os.read(stderr, 1 << 16)
                self.said = (self.said + piece)[-4000:]
                watched = watched if piece else [self.take]
            if self.take in ready:
                piece, heard = os.read(self.take, 1 << 16), time.monotonic()
                if not piece:
                    return
                *whole, rest = (rest + piece).split(b"\n")
                yield from (json.loads(line) for line in whole)
            elif ended and not ready:
                return
            elif time.monotonic() - heard > PATIENCE:
                raise TimeoutError

    def last_words(self) -> str:
        """The last line that it wrote, or how it ended."""
        code = self.process.wait()
        lines = self.said.decode(errors="replace").strip().splitlines()
        ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return f"its process ended ({ended})" + (f": {lines[-1].strip()[:200]}" if lines else "")


@dataclasses.dataclass
class Measured:
    """What a problem's children have said so far. samples: seconds of every row's rounds."""

    work: Work | None = None
    roof: dict[str, float] = dataclasses.field(default_factory=dict)
    errors: dict[str, float | None] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    samples: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    trying: str | None = None

    def hear(self, line: dict) -> None:
        if "work" in line:
            self.work, self.roof = Work(**line["work"]), line["roof"]
        if "trying" in line:
            self.trying = line["trying"]
        if "error" in line:
            self.errors[line["row"]] = line["error"]
        if "failed" in line:
            self.failed[line["row"]] = line["failed"]
        for name, seconds in line.get("round", {}).items():
            self.samples.setdefault(name, []).append(seconds)


def _environment() -> dict[str, str]:
    """In which a child finds this package."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


def measure(order: Order, found: Measured, say: Callable[[str], None], tick: Callable[[], None] = lambda: None) -> None:
    """Fill `found` by as many children as it takes. KeyboardInterrupt passes through; what was heard before stays."""
    while True:
        found.samples.clear()  # rows that are run side by side must be of one process
        with Lines(order, tick) as lines:
            try:
                for line in lines:
                    if "trying" in line and not found.samples and line["trying"] not in found.errors:
                        say(f"{Path(order.problem).parent.name}: {line['trying']}")
                    found.hear(line)
                ended = lines.process.wait() == 0
                words = "" if ended else lines.last_words()
            except TimeoutError:
                ended, words = False, f"it said nothing for {PATIENCE:.0f} seconds"
        if ended:
            return
        if found.trying is None or found.trying in order.skip:
            raise RuntimeError(words)
        found.failed[found.trying] = words
        order.skip.append(found.trying)
        found.trying = None


def build(files: Sequence[str], say: Callable[[str], None]) -> None:
    """Compile extensions into torch's cache, side by side, each in a process; what fails says so when it is run."""
    loading = "import sys, pathlib; from grader import bench; bench.load(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", loading]

    def one(file: str) -> None:
        subprocess.run([*command, file], capture_output=True, env=_environment() | {"MAX_JOBS": "2"}, check=False)

    say(f"compiling {len(files)} files")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, files))


class Clocks:
    """Reads the GPU's clocks and power in the background, where nvidia-smi is there. log: [seconds, MHz, MHz, watts,
    degrees]."""

    def __init__(self):
        self.start, self.process, self.rest = datetime.datetime.now(), None, b""
        self.log: list[list[float]] = []

    def __enter__(self) -> Clocks:
        program = shutil.which("nvidia-smi")
        if program and torch.cuda.is_available():
            which = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
            query = [f"--query-gpu={','.join(CLOCKS)}", "--format=csv,noheader,nounits", f"--loop-ms={EVERY}"]
            command = [program, f"--id={which}", *query]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            os.set_blocking(self.process.stdout.fileno(), False)
        return self

    def __exit__(self, *_: object) -> None:
        self.read()
        if self.process:
            self.process.terminate()
            self.process.wait()

    def read(self) -> None:
        """Take what has come since."""
        if self.process is None:
            return
        with contextlib.suppress(BlockingIOError):
            *lines, self.rest = (self.rest + (self.process.stdout.read() or b"")).split(b"\n")
            self.log += filter(None, (reading(line.decode(errors="replace"), self.start) for line in lines))

    def told(self, since: int = 0) -> dict | None:
        """Least, median and most of each since a reading; None if nothing could be read."""
        log = self.log[since:]
        if not log:
            return None
        columns = list(zip(*log, strict=True))[1:]
        names = ("sm_mhz", "memory_mhz", "watts", "celsius")
        ends = {n: [min(c), statistics.median(c), max(c)] for n, c in zip(names, columns, strict=True)}
        return ends | {"readings": len(log)}


def reading(line: str, start: datetime.datetime) -> list[float] | None:
    """A line of nvidia-smi as seconds since the start and numbers; None if it has something else in it ([N/A])."""
    when, *values = line.split(",")
    try:
        seconds = (datetime.datetime.strptime(when.strip(), "%Y/%m/%d %H:%M:%S.%f") - start).total_seconds()
        return [round(seconds, 1), *map(float, values)]
    except ValueError:
        return None


@dataclasses.dataclass
class Options:
    """What `grader bench` was asked for. chosen: each problem and the submissions to it. add: problems that the data file
    has already stay in it."""

    chosen: list[tuple[_problem.Problem, list[Path]]]
    sets: dict[str, str] = dataclasses.field(default_factory=dict)
    out: Path = DATA
    spared: Sequence[str] = ()
    seconds: float = 60.0
    device: str = "cuda"
    seed: int = 0
    launches: bool = True
    add: bool = False


Chosen = list[tuple[_problem.Problem, list[Path]]]


def choose(what: Sequence[str], problem: Path | None, sets: dict[str, str]) -> Chosen:
    """Each problem that is named, or that a submission answers, with its submissions; SEEDS if nothing is named. Raises
    ProblemError."""
    known, found = _problem.names(), {}

    def of(path: Path) -> list[Path]:
        return found.setdefault(path.resolve(), [])

    if problem is not None:
        of(problem)
    for word in what or ([] if problem is not None else SEEDS):
        if word in known:
            of(_problem.KERNELS_REF / word / "model.py")
        elif not Path(word).is_file():
            raise _problem.ProblemError(f"{word} is neither a problem ({', '.join(known)}) nor a file.")
        else:
            of(problem or _problem.find(Path(word)).path).append(Path(word))
    return [(_problem.read(path, sets), files) for path, files in found.items()]


def incomplete(data: dict) -> bool:
    """Whether a row of ours has no time."""
    return any("ms" not in row for made in data["problems"].values() for row in made["rows"] if row["kind"] in OURS)


class NoData(Exception):
    """What was to be added to is not what this module writes."""


def run(options: Options, say: Callable[[str], None]) -> dict:
    """Measure, and write the data file after each problem; the data. If somebody interrupts, what was measured is
    written and "interrupted" is true. Raises NoData, OSError."""
    start = time.perf_counter()
    data: dict = {"machine": machine(), "command": " ".join(sys.argv[1:]), "interrupted": False, "problems": {}}
    if options.add and options.out.exists():
        try:
            data["problems"] = dict(json.loads(options.out.read_text(encoding="utf-8"))["problems"])
        except (ValueError, KeyError, TypeError):
            raise NoData(f"{options.out} is no data file of grader bench.") from None
    with Clocks() as clocks:
        try:
            if options.device == "cuda":
                every = [f for p, s in options.chosen for f in [*(f for _, f in ladder_of(p.path.parent)), *s]]
                build([str(f.resolve()) for f in every], say)
            for problem, submissions in options.chosen:
                _one(problem, submissions, options, data, clocks, say)
        except KeyboardInterrupt:
            data["interrupted"] = True
        data["seconds"] = round(time.perf_counter() - start, 1)
        clocks.read()
        data["clocks"] = clocks.log
        write(data, options.out)
    return data


def _one(problem: _problem.Problem, submissions: list[Path], options: Options, data: dict, clocks: Clocks, say) -> None:
    order = Order(
        str(problem.path.resolve()), options.sets, options.device, [str(f.resolve()) for f in submissions],
        list(options.spared), options.seconds, options.seed,
    )  # fmt: skip
    clocks.read()
    found, before = Measured(), len(clocks.log)
    failed = None
    try:
        measure(order, found, say, clocks.read)
    except RuntimeError as error:
        failed = str(error)
    finally:  # also when interrupted
        clocks.read()
        made = told(problem, order, found)
        made |= {"machine": data["machine"], "clocks": clocks.told(before)}
        data["problems"][problem.name] = made | ({"failed": failed} if failed else {})
        write(data, options.out)
    if options.device == "cuda" and options.launches and not failed:
        say(f"{problem.name}: launches, under ncu")
        data["problems"][problem.name]["launches"] = launches(order, data["problems"][problem.name])
        write(data, options.out)


def told(problem: _problem.Problem, order: Order, found: Measured) -> dict:
    """A problem's part of the data file. Seconds become milliseconds, each row is held to its class and to the roof."""
    if found.work is None:
        return {"rows": []}
    rows, every = [], order.entries(found.work)
    eager: dict[str, float | None] = {}
    for entry in every:  # cuDNN takes TF32 in channels_last only
        if entry.kind == "eager" and (entry.precision == "tf32" or not entry.channels_last):
            known = (eager.get(entry.precision), found.errors.get(entry.name))
            eager[entry.precision] = max((error for error in known if error is not None), default=None)
    for entry in every:
        row = {k: v for k, v in dataclasses.asdict(entry).items() if v}
        row["precision"] = entry.precision
        if entry.file:
            file = Path(entry.file)
            row["file"] = str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)
            with contextlib.suppress(OSError):
                row["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
        samples = found.samples.get(entry.name, [])
        if entry.name in found.failed:
            row["failed"] = found.failed[entry.name]
        elif not samples:
            row["failed"] = "it was not timed: the run ended before"
        else:
            ms, low, high = (1e3 * value for value in median(samples))
            row |= {"ms": ms, "low": low, "high": high, "n": len(samples), "narrow": is_narrow(samples)}
            row["samples"] = [float(f"{1e3 * s:.5g}") for s in samples]
            floor = found.work.floor(found.roof, entry.precision)
            row |= {"gb_a_second": found.work.bytes / ms / 1e6, "tflop_a_second": found.work.products / ms / 1e9}
            row["of_roof"] = floor * 1e3 / ms if floor else None
        error, held = found.errors.get(entry.name), eager.get(entry.precision)
        row["error"] = error
        row["in_class"] = None if error is None or held is None else error <= PROOF * held
        rows.append(row)
    sizes = {k: v for k, v in problem.literals.items() if isinstance(v, (int, float, tuple, str))}
    made = {"sizes": sizes, "work": dataclasses.asdict(found.work), "roof": found.roof, "rows": rows}
    for precision in cases.PRECISIONS:
        if found.roof and (floor := found.work.floor(found.roof, precision)):
            made[f"floor_{precision}_ms"] = floor * 1e3
    return made | {"best": _best(rows)}


def _best(rows: list[dict]) -> dict:
    """For each class the fastest of ours and the fastest baseline that keep to it, and how many times as fast ours is,
    with the interval of the rounds' ratios."""
    found = {}
    for precision in cases.PRECISIONS:
        fair = [r for r in rows if "ms" in r and r["precision"] == precision and r["in_class"] is not False]
        ours = min((r for r in fair if r["kind"] in OURS), key=lambda r: r["ms"], default=None)
        baseline = min((r for r in fair if r["kind"] not in OURS), key=lambda r: r["ms"], default=None)
        if ours is None or baseline is None:
            continue
        n = min(ours["n"], baseline["n"])
        times, low, high = median([b / o for b, o in zip(baseline["samples"][:n], ours["samples"][:n], strict=True)])
        names = {"ours": ours["name"], "baseline": baseline["name"]}
        found[precision] = names | {"times": times, "low": low, "high": high}
    return found


def machine() -> dict:
    """What the times were taken on, when, and with which versions."""
    versions = {}
    for package in ("triton", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    if torch.cuda.is_available():
        versions["cudnn"] = str(torch.backends.cudnn.version())
    stamp = {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    return stamp | clock.describe_device() | versions


def write(data: dict, out: Path) -> None:
    """All at once, so that nobody finds half of it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    new.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    new.replace(out)


# --- launches, under ncu ---------------------------------------------------------------------------------------------

METRICS = {"seconds": "gpu__time_duration.sum", "read": "dram__bytes_read.sum", "written": "dram__bytes_write.sum"}
MARK = "spin_kernel"  # torch.cuda._sleep's


def launches(order: Order, made: dict) -> dict:
    """Of eager, the fastest torch.compile, the slowest and the fastest of ours: every launch's seconds and bytes to and
    from DRAM. {"failed": why} where ncu does not say."""
    timed = sorted((r for r in made["rows"] if "ms" in r), key=lambda r: r["ms"])
    ours = [r for r in timed if r["kind"] in OURS]
    compiled = [r for r in timed if r["kind"] == "compile" and r["mode"] == "default"]
    eager = [r for r in timed if r["kind"] == "eager" and r["precision"] == "fp32" and not r.get("channels_last")]
    picked = [*eager[:1], *compiled[:1], *ours[-1:], *ours[:1]]
    names = list(dict.fromkeys(r["name"] for r in picked))
    program = shutil.which("ncu")
    if not names or program is None:
        return {"failed": "ncu is not there" if names else "nothing was timed"}
    how = ["--target-processes", "all", "--clock-control", "none", "--profile-from-start", "off"]
    how += ["--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS.values())]
    child_of_ncu = dataclasses.replace(order, profile=names).command(2)
    entry_order = [r["name"] for r in made["rows"] if r["name"] in names]  # in which the child runs them
    try:
        done = subprocess.run(
            [program, *how, *child_of_ncu], cwd=ROOT, env=_environment(), capture_output=True, text=True,
            timeout=PATIENCE / 3, check=False,
        )  # fmt: skip
        found = launches_in(done.stdout, entry_order)
        return {name: found[name] for name in names}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return {"failed": _words(error)}


def launches_in(text: str, names: Sequence[str]) -> dict:
    """ncu's CSV (a line of heads, one of units, one a launch), cut at the marks. ValueError unless there are as many as
    names."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError(f"ncu said: {lines[-1][:200] if lines else 'nothing'}")
    heads, _, *table = csv.reader(lines[start:])
    parts: list[list[dict]] = []
    for line in table:
        if len(line) != len(heads):
            continue
        cells = dict(zip(heads, line, strict=True))
        if MARK in cells["Kernel Name"]:
            parts.append([])
        elif parts:
            seconds, read, written = (float(cells[m].replace(",", "")) for m in METRICS.values())
            parts[-1].append({"kernel": short(cells["Kernel Name"]), "seconds": seconds / 1e9, "bytes": read + written})
    if len(parts) != len(names):
        raise ValueError(f"ncu saw {len(parts)} of {len(names)} rows")
    return dict(zip(names, parts, strict=True))


def short(kernel: str) -> str:
    """A kernel's name without its result, its namespaces, its template's and its own arguments."""
    bare = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel).removeprefix("void ")
    return re.split(r"[<(]", bare)[0].split("::")[-1] or kernel[:40]


# --- table and pictures ----------------------------------------------------------------------------------------------

HEADS = ["row", "class", "ms", "95 % interval", "n", "of the roof", "GB/s", "error", "in its class"]


def table(made: dict) -> list[list[str]]:
    """A problem's rows, the fastest last, as cells under HEADS; what was not timed at the end."""
    cells = []
    for row in sorted(made["rows"], key=lambda r: -r.get("ms", 0.0)):
        error = "–" if row["error"] is None else f"{row['error']:.1e}"
        kept = {None: "–", True: "yes", False: "no"}[row["in_class"]]
        if "ms" not in row:
            cells.append([row["name"], row["precision"], "–", row["failed"], "", "", "", error, kept])
            continue
        roof = "–" if row["of_roof"] is None else f"{100 * row['of_roof']:.0f} %"
        interval = f"{row['low']:.4g}–{row['high']:.4g}" + ("" if row["narrow"] else " (wide)")
        rate = f"{row['gb_a_second']:,.0f}"
        times = [f"{row['ms']:.4g}", interval, str(row["n"]), roof, rate]
        cells.append([row["name"], row["precision"], *times, error, kept])
    return cells


SUMMARY = ["problem", "class", "fastest of ours", "ms", "best of torch", "ms", "times faster", "95 % interval", "floor"]


def summary(data: dict) -> list[list[str]]:
    """For each problem and class the fastest kernel beside the fastest baseline, as cells under SUMMARY."""
    cells = []
    for name, made in data["problems"].items():
        ms = {row["name"]: f"{row['ms']:.4g}" for row in made["rows"] if "ms" in row}
        for precision, best in made.get("best", {}).items():
            floor = made.get(f"floor_{precision}_ms")
            sides = [best["ours"], ms[best["ours"]], best["baseline"], ms[best["baseline"]]]
            sure = [f"{best['times']:.3g}", f"{best['low']:.3g}–{best['high']:.3g}"]
            cells.append([name, precision, *sides, *sure, "–" if floor is None else f"{floor:.3g}"])
    return cells


def draw(data: dict, folder: Path) -> list[Path]:
    """A ladder for each problem and class, and a waterfall for each problem whose launches are known, as SVG files."""
    from grader.pictures import Launched, Step, ladder, waterfall

    folder.mkdir(parents=True, exist_ok=True)
    drawn, device = [], data["machine"]["name"].removeprefix("NVIDIA ")
    for name, made in data["problems"].items():
        for precision in cases.PRECISIONS:
            rows = [r for r in made["rows"] if "ms" in r and r["precision"] == precision]
            rows.sort(key=lambda r: -r["ms"])
            given = [r for r in rows if r["kind"] == "submission"]
            own = Step(given[0]["name"], given[0]["ms"] / 1e3) if len(given) == 1 else None
            steps = [Step(r["name"], r["ms"] / 1e3) for r in rows if own is None or r["kind"] != "submission"]
            if any(r["kind"] in OURS for r in rows) and steps:
                said = name if precision == "fp32" else f"{name}, TF32"
                picture = ladder(steps, own, device=device, problem=said)
                drawn.append(picture.save(folder / f"{name}_{precision}_ladder.svg"))
        known = {row: ls for row, ls in made.get("launches", {}).items() if row != "failed" and ls}
        if known:
            variants = {row: [Launched(l["kernel"], l["seconds"], l["bytes"]) for l in ls] for row, ls in known.items()}
            drawn.append(waterfall(variants, device=device).save(folder / f"{name}_waterfall.svg"))
    return drawn


def main() -> None:
    """The child: python -m grader.bench FD ORDER."""
    descriptor, order = int(sys.argv[1]), Order(**json.loads(sys.argv[2]))
    with os.fdopen(descriptor, "w", closefd=False) as out:

        def say(line: dict) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        child(order, say)


if __name__ == "__main__":
    main()
