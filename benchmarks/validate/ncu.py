"""Read hardware counters and times on a GPU, of the micro-kernels and of every kernel of kernels_ref: data/ncu.json.

    python benchmarks/validate/ncu.py [--out FILE] [--only PART …] [--program NAME …]

Needs nvcc, cuobjdump and ncu. counters.py and model.py compare simt with these figures. A row is one launch:

    programs.NAME.small, .large    a micro-kernel's program at its two sizes, under ncu
    programs.NAME.times            medians of 20 by events: with L2 as the last run left it, with L2 flushed, and one of
                                   many launches in a row
    programs.NAME.sass             the instructions that nvcc made of a kernel
    solutions.NAME.cases, .full    kernels_ref under ncu at two small cases and at full size
    solutions.NAME.times           full size without ncu: medians of 20, L2 flushed before each run of the model
    steps.NAME.cases               steps of kernels_ref, and forward and backward of each backward.py, under ncu at the
                                   small cases
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, MICRO, ROOT
from benchmarks.validate.counted import read_sizes
from benchmarks.validate.nvidia import find_tool, find_usable_metrics, profile, read_sass, run_tool

DATA = DATA_FOLDER / "ncu.json"
PARTS = ("small", "large", "times", "cases", "full", "profile", "steps")
BUILDS = 16  # of extensions in parallel
ENVIRONMENT = {"TORCH_CUDA_ARCH_LIST": "9.0", "NVCC_APPEND_FLAGS": "-lineinfo", "MAX_JOBS": "2"}


SIMPLE = [MICRO / "elementwise.cu"]  # shows which metrics ncu has, where no program is chosen
chosen: set[str] = set()  # names of programs, and of solutions and steps; empty: all


def programs() -> list[Path]:
    """Return the chosen micro-kernels' programs."""
    return [p for p in sorted(MICRO.glob("*.cu")) if not chosen or p.stem in chosen]


def steps() -> list[Path]:
    """Return the chosen steps and backward.py files."""
    return [f for f in references.counted() if f.name != "solution.py" and (not chosen or references.name(f) in chosen)]


# ---- building ----


def compile_program(program: Path, folder: Path) -> None:
    """Compile a micro-kernel's program, once for ncu and once to time itself."""
    for name, flags in ((program.stem, []), (program.stem + ".timed", ["-DMICRO_TIMED"])):
        run_tool(
            ["nvcc", "-O3", "-lineinfo", "-arch=sm_90", "-std=c++17", *flags, "-o", str(folder / name), str(program)]
        )


def find_extension_name(file: Path) -> str:
    """Return the name that a file gives load_inline."""
    found = re.search(
        r'^    name="([^"]+)"|load_inline\(\s*name="([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE
    )
    return found.expand(r"\1\2") if found else ""


def profile_programs(folder: Path, which: int, metrics: list[str]) -> dict[str, list[dict]]:
    """Profile all programs at their small or large size in one run of ncu. A row's label is the program's own."""
    script = "".join(
        f"{folder / p.stem} {read_sizes(p)[which]} > {folder / p.stem}.labels || echo {p.stem} failed >&2\n"
        for p in programs()
    )
    (folder / "all.sh").write_text(script)
    found: dict[str, list[dict]] = {}
    for row in profile(["sh", str(folder / "all.sh")], folder / f"report{which}", metrics):
        found.setdefault(row.pop("process"), []).append(row)
    for name, rows in found.items():
        labels = (folder / f"{name}.labels").read_text().splitlines()
        if len(labels) != len(rows):
            raise RuntimeError(f"{name} launched {len(labels)} kernels, ncu saw {len(rows)}")
        for row, label in zip(rows, labels, strict=True):
            row.pop("pid")
            row["label"] = label
    return found


# ---- times without ncu ----


def time_program(folder: Path, program: Path) -> list[dict]:
    """Return the median milliseconds of each launch."""
    made = []
    for line in run_tool([str(folder / f"{program.stem}.timed"), read_sizes(program)[1]]).splitlines():
        label, *pairs = line.split("\t")
        made.append({"label": label} | {key: float(value) for key, value in (p.split() for p in pairs)})
    return made


# linspace's kernel, which no solution launches: in ncu's report it precedes each run
MARK = "elementwise_kernel_with_index"


def run_solutions(part: str, names: list[str], out: Path) -> None:
    """Run ModelNew of each solution at the sizes of `part`, in a process of its own under ncu."""
    import torch

    order = []
    for file in references.counted():
        if references.name(file) not in names:
            continue
        module = references.load(file)
        cases = (
            references.counted_cases(file)
            if part == "cases"
            else [references.full(file, **references.FULL_SIZES.get(file.parent.name, {}))]
        )
        for case in cases:
            run = references.prepare(file, module, case, "cuda", "cpu" if part == "cases" else "cuda")
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            torch.linspace(0, 1, 5, device="cuda")
            run()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            order.append([references.name(file), case.name, case.set])
            out.write_text(json.dumps(order))
            del run
            torch.cuda.empty_cache()


def profile_solutions(part: str, names: list[str], folder: Path, metrics: list[str]) -> dict[str, list[dict]]:
    """Return a row for each launch, with its case, by solution."""
    order = folder / "order.json"
    command = [sys.executable, __file__, "--solutions", part, "--names", ",".join(names), "--out", str(order)]
    rows = profile(command, folder / f"report_{part}", metrics, only_marked=True)
    return split_by_solution(rows, json.loads(order.read_text()))


def split_by_solution(rows: list[dict], runs: list[list]) -> dict[str, list[dict]]:
    """Split the rows at the marks, one part for each run (name, case, sizes), and return them by solution."""
    found: dict[str, list[dict]] = {}
    run = -1
    for row in rows:
        run += MARK in row["kernel"]
        if MARK in row["kernel"] or re.match(r"(void )?at::", row["kernel"]):  # torch's own
            continue
        name, case, changed = runs[run]
        kept = {key: value for key, value in row.items() if key not in ("pid", "process")}
        found.setdefault(name, []).append(kept | {"case": case, "set": changed})
    return found


def time_solutions(names: list[str], out: Path) -> None:
    """Time the solutions at full size without ncu: medians over 20 runs of the model, and of each launch from torch's
    profiler.
    """
    import torch

    found = {}
    other = torch.rand(64 << 20, device="cuda")
    for file in references.solutions():
        if references.name(file) not in names:
            continue
        module = references.load(file)
        run = references.prepare(file, module, references.full(file), "cuda", "cuda")
        for _ in range(3):
            run()
        whole = []
        for _ in range(20):
            other.sum()
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            stop.record()
            torch.cuda.synchronize()
            whole.append(start.elapsed_time(stop))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
            for _ in range(20):
                other.sum()
                run()
            torch.cuda.synchronize()
        found[references.name(file)] = {"ms": statistics.median(whole), "launches": summarize_launches(record, 20)}
        del run
        torch.cuda.empty_cache()
        out.write_text(json.dumps(found))


def summarize_launches(record, runs: int) -> list[dict]:
    """Return the median milliseconds, shape and registers of each launch of the model."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        record.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    kernels = sorted(
        (e for e in events if e.get("cat") == "kernel" and "at::native" not in e["name"]), key=lambda e: e["ts"]
    )
    each = len(kernels) // runs
    made = []
    for i in range(each):
        same = [kernels[run * each + i] for run in range(runs)]
        details = same[0]["args"]
        made.append(
            {
                "kernel": same[0]["name"],
                "ms": statistics.median(e["dur"] for e in same) / 1e3,
                "grid": details.get("grid"),
                "block": details.get("block"),
                "registers": details.get("registers per thread"),
            }
        )
    return made


# ---- the run ----


def read_clocks() -> str:
    """Return the GPU's name, driver, clocks and power limit."""
    fields = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,persistence_mode"
    return run_tool(["nvidia-smi", f"--query-gpu={fields}", "--format=csv"]).strip()


class Run:
    """One run of this script: fills `data` part by part and writes the data file after each."""

    def __init__(self, data: dict, out: Path):
        self.data, self.out, self.start = data, out, time.perf_counter()
        for kind in ("programs", "solutions", "steps"):
            data.setdefault(kind, {})
        self.folder = Path(tempfile.mkdtemp())
        self.metrics: list[str] = []

    def save(self, what: str) -> None:
        """Print what is done and write the data file."""
        print(f"{time.perf_counter() - self.start:6.1f} s  {what}", flush=True)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(dumps(self.data))

    def attempt(self, what: str, part: Callable[[], object]) -> None:
        """Run one part and save. A part that fails is reported, and the others still run."""
        try:
            part()
        except Exception as error:
            print(f"{what} FAILED: {error}", flush=True)
        self.save(what)

    def measure(self, parts: tuple[str, ...]) -> None:
        """Measure the given parts of PARTS."""
        files = references.solutions()
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda program: compile_program(program, self.folder), programs() or SIMPLE))
        self.save("compiled the programs")
        needed = bool(set(parts) & {"cases", "full", "profile"})
        building = [references.start_build(file, ENVIRONMENT) for file in files] if needed else []
        self.metrics = find_usable_metrics(self.folder / (programs() or SIMPLE)[0].stem)
        self.attempt("instructions", self.read_program_sass)
        for which, size in enumerate(("small", "large")):
            if size in parts:
                self.attempt(f"{size} sizes under ncu", lambda which=which, size=size: self.profile_size(which, size))
        names = wait_for_builds(files, building)
        self.save("compiled the solutions")
        if "times" in parts:
            for program in programs():
                self.attempt(f"times of {program.stem}", lambda program=program: self.time_program(program))
        if "profile" in parts:
            self.attempt("times of the solutions", lambda: self.time_solutions(names))
        for part in ("cases", "full"):
            if part in parts:
                self.attempt(f"solutions under ncu: {part}", lambda part=part: self.profile_solutions(part, names))
        if "steps" in parts:
            self.attempt("steps under ncu", self.profile_steps)
        self.read_library_sass()

    def profile_size(self, which: int, size: str) -> None:
        """Profile the micro-kernels' programs at one size."""
        for name, rows in profile_programs(self.folder, which, self.metrics).items():
            self.data["programs"].setdefault(name, {})[size] = rows

    def read_program_sass(self) -> None:
        """Count the instructions of the micro-kernels."""
        with ThreadPoolExecutor(16) as pool:
            found = pool.map(lambda program: read_sass(self.folder / program.stem), programs())
            for program, sass in zip(programs(), found, strict=True):
                self.data["programs"].setdefault(program.stem, {})["sass"] = sass

    def time_program(self, program: Path) -> None:
        """Time one micro-kernel's program."""
        self.data["programs"].setdefault(program.stem, {})["times"] = time_program(self.folder, program)

    def time_solutions(self, names: list[str]) -> None:
        """Time the solutions in another process, and keep what it measured even if it fails."""
        file = self.folder / "times.json"
        command = [sys.executable, __file__, "--solutions", "time", "--names", ",".join(names), "--out", str(file)]
        try:
            run_tool(command, ROOT)
        finally:
            for name, row in json.loads(file.read_text()).items():
                self.data["solutions"].setdefault(name, {})["times"] = row

    def profile_solutions(self, part: str, names: list[str]) -> None:
        """Profile the solutions at small cases or at full size."""
        for name, rows in profile_solutions(part, names, self.folder, self.metrics).items():
            self.data["solutions"].setdefault(name, {})[part] = rows

    def profile_steps(self) -> None:
        """Build and profile the steps at small cases."""
        files, names = steps(), []
        for some in (files[at : at + BUILDS] for at in range(0, len(files), BUILDS)):
            names += wait_for_builds(some, [references.start_build(file, ENVIRONMENT) for file in some])
        for name, rows in profile_solutions("cases", names, self.folder, self.metrics).items():
            self.data["steps"].setdefault(name, {})["cases"] = rows

    def read_library_sass(self) -> None:
        """Count the instructions of every extension that was built."""
        cache = Path(os.environ.get("TORCH_EXTENSIONS_DIR") or Path.home() / ".cache" / "torch_extensions")
        libraries = {path.stem.split("_v")[0]: path for path in cache.glob("**/*.so")}
        for file in references.counted():
            if library := libraries.get(find_extension_name(file)):
                kind = "solutions" if file.name == "solution.py" else "steps"
                row = self.data[kind].setdefault(references.name(file), {})
                self.attempt(
                    f"instructions of {library.stem}",
                    lambda row=row, library=library: row.update(sass=read_sass(library)),
                )


def wait_for_builds(files: list[Path], building: list[subprocess.Popen]) -> list[str]:
    """Wait for the builds, report those that fail, and return the names of the others."""
    built = []
    for file, process in zip(files, building, strict=False):
        errors = process.communicate()[1]
        if process.returncode:
            print(references.name(file), "does not build:", errors[-1500:], flush=True)
        else:
            built.append(references.name(file))
    return built


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
@click.option(
    "--only", multiple=True, type=click.Choice(PARTS), help="Measure only this; the rest of the data file stays."
)
@click.option(
    "--program",
    "named",
    multiple=True,
    help="Of the micro-kernels' programs and of the steps, only this; the rest of the data file stays.",
)
@click.option("--solutions", "part", type=click.Choice(["cases", "full", "time"]), hidden=True)
@click.option("--names", default="", hidden=True)
def main(out: Path, only: tuple[str, ...], named: tuple[str, ...], part: str | None, names: str) -> None:
    if part == "time":
        time_solutions(names.split(","), out)
        return
    if part:
        run_solutions(part, names.split(","), out)
        return
    chosen.update(named)
    data = json.loads(DATA.read_text()) if DATA.exists() and (only or named) else {}
    version = run_tool([find_tool("ncu"), "--version"]).strip().splitlines()[-1]
    data["machine"] = describe_machine() | {"clocks": read_clocks(), "ncu": version}
    os.environ.update(ENVIRONMENT)
    run = Run(data, out)
    run.measure(only or PARTS)
    data["machine"]["clocks_after"] = read_clocks()
    run.save("done")


def dumps(data: dict) -> str:
    """Return JSON with one row per line, so that a diff shows which launch changed."""
    text = json.dumps(data, indent=1)
    return (
        re.sub(
            r"\{\n\s+(\"(?:process|kernel|label|total)\"(?:[^{}]|\{[^{}]*\})*)\}",
            lambda m: "{" + re.sub(r"\s*\n\s*", " ", m[1]).strip() + "}",
            text,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
