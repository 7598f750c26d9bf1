"""Reads hardware counters and times on a GPU: of the micro-kernels in benchmarks/micro and of every kernel of kernels_ref.

    python benchmarks/ncu.py [--out FILE] [--only PART …] [--program NAME …]

Needs nvcc, cuobjdump and ncu. What it writes is what counters.py and model.py hold simt against. A row is one launch:

    programs.NAME.small, .large   a micro-kernel's program at its two sizes, under ncu
    programs.NAME.times           medians of 20 by events: L2 as the last run left it, L2 flushed, and one of many in a row
    programs.NAME.sass            a kernel's instructions as nvcc made them
    solutions.NAME.cases, .full   kernels_ref under ncu at two small cases and at full size
    steps.NAME.cases              the steps of kernels_ref, and forward and backward of each backward.py, under ncu at these cases
    solutions.NAME.times          at full size without ncu: medians of 20, L2 flushed before each run of the model
"""

from __future__ import annotations

import collections
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

MICRO = ROOT / "benchmarks" / "micro"
DATA = ROOT / "benchmarks" / "data" / "ncu.json"
PARTS = ("small", "large", "times", "cases", "full", "profile", "steps")
BUILDS = 16  # of extensions side by side

_SASS = "smsp__sass_thread_inst_executed_op_"
METRICS = {
    # L1's T-Stage: requests and 32-byte sectors
    **{f"global_{op}_{what}": f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "atom", "red") for what in ("requests", "sectors")},
    **{f"local_{op}_{what}": f"l1tex__t_{what}_pipe_lsu_mem_local_op_{op}.sum" for op in ("ld", "st") for what in ("requests", "sectors")},
    "global_ld_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    # shared memory: as the data stage saw it (with arbitration), and as its instructions caused it
    **{f"shared_{op}_wavefronts": f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")},
    **{f"shared_{op}_conflicts": f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")},
    **{f"shared_{op}_own_wavefronts": f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")},
    **{f"shared_{op}_instructions": f"smsp__inst_executed_op_shared_{op}.sum" for op in ("ld", "st", "atom")},
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "lsu_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "t_wavefronts": "l1tex__t_output_wavefronts.sum",
    # instructions
    "instructions": "smsp__inst_executed.sum",
    "thread_instructions": "smsp__thread_inst_executed.sum",
    "thread_instructions_on": "smsp__thread_inst_executed_pred_on.sum",
    **{f"pipe_{p}": f"smsp__inst_executed_pipe_{p}.sum" for p in ("alu", "fma", "fmaheavy", "fp64", "xu", "lsu", "cbu", "adu", "uniform")},
    **{
        f"thread_{op}": f"{_SASS}{op}_pred_on.sum"
        for op in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "integer", "conversion", "control", "memory", "bit", "misc", "inter_thread_communication")
    },
    "branches": "smsp__sass_inst_executed_op_branch.sum",
    "branch_targets": "smsp__sass_branch_targets.sum",
    "branch_targets_uniform": "smsp__sass_branch_targets_threads_uniform.sum",
    "branch_targets_divergent": "smsp__sass_branch_targets_threads_divergent.sum",
    # L2 and DRAM
    **{f"l2_{op}_sectors": f"lts__t_sectors_srcunit_tex_op_{op}.sum" for op in ("read", "write", "red", "atom")},
    "l2_read_hits": "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    # time
    "nanoseconds": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "cycles_active": "sm__cycles_active.avg",
    "warps_active_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    **{
        f"stall_{s}": f"smsp__warp_issue_stalled_{s}_per_warp_active.pct"
        for s in (
            "long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle", "math_pipe_throttle", "wait", "barrier", "membar", "branch_resolving",
            "not_selected", "no_instruction", "imc_miss", "drain", "dispatch_stall",
        )
    },
    # the launch
    "registers": "launch__registers_per_thread",
    "shared_static": "launch__shared_mem_per_block_static",
    "shared_dynamic": "launch__shared_mem_per_block_dynamic",
    **{f"limit_{x}": f"launch__occupancy_limit_{x}" for x in ("blocks", "registers", "shared_mem", "warps")},
    "waves": "launch__waves_per_multiprocessor",
    "occupancy_percent": "sm__maximum_warps_per_active_cycle_pct",
}
SHORT = {metric: name for name, metric in METRICS.items()}

# im2col makes its columns a few images at a time: two such rounds stand for all under ncu, which replays every launch.
FULL_SIZES = {"im2col_conv": {"batch_size": 14}, "conv_groupnorm_maxpool": {"batch_size": 14}}


SIMPLE = [MICRO / "elementwise.cu"]  # what tells which metrics ncu has, where no program is chosen
chosen: set[str] = set()  # names of programs, and of solutions and steps; empty: all


def programs() -> list[Path]:
    return [p for p in sorted(MICRO.glob("*.cu")) if not chosen or p.stem in chosen]


def steps() -> list[Path]:
    import references

    return [f for f in references.counted() if f.name != "solution.py" and (not chosen or references.name(f) in chosen)]


def sizes(program: Path) -> tuple[str, str]:
    """The small and the large argument, from the program's head."""
    found = re.search(r"^// sizes: (\d+) (\d+)", program.read_text(), re.MULTILINE)
    return found[1], found[2]


def tool(name: str) -> str:
    """The path of one of NVIDIA's tools: on the PATH, or where its packages put it."""
    places = [shutil.which(name), f"/usr/local/cuda/bin/{name}", *sorted(map(str, Path("/opt/nvidia/nsight-compute").glob(f"*/{name}")))]
    return next((p for p in places if p and Path(p).exists()), name)


def output(command: list[str], **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:300]}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


# ---- building ----


def compile_program(program: Path, folder: Path) -> None:
    for name, flags in ((program.stem, []), (program.stem + ".timed", ["-DMICRO_TIMED"])):
        output(["nvcc", "-O3", "-lineinfo", "-arch=sm_90", "-std=c++17", *flags, "-o", str(folder / name), str(program)])


def start_solutions(files: list[Path], environment: dict[str, str]) -> list[subprocess.Popen]:
    """Compiles every solution's extension, all at once, into torch's own cache."""
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, 'benchmarks'); import references; references.load(references.Path(sys.argv[1]))"]
    return [
        subprocess.Popen([*command, str(f)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for f in files
    ]


def extension_of(file: Path) -> str:
    """The name that a file gives load_inline."""
    return re.search(r'^    name="([^"]+)"|load_inline\(\s*name="([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE).expand(r"\1\2")


# ---- instructions ----


def instructions(text: str) -> dict[str, dict]:
    """cuobjdump -sass, kernel by kernel: how many instructions, of each operation, and memory operations with their widths;
    predicated: how many run under a predicate, other than branches."""
    kernels: dict[str, collections.Counter] = {}
    current = None
    for line in text.splitlines():
        if found := re.match(r"\s+Function : (\S+)", line):
            current = kernels.setdefault(found[1], collections.Counter())
        elif current is not None and (found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+ )?\s*([A-Z][A-Z0-9_.]*)", line)):
            current[found[2]] += 1
            if found[1] and not found[2].startswith(("BRA", "EXIT", "NOP")):
                current["predicated"] += 1
    made = {}
    for mangled, found in kernels.items():
        short: collections.Counter = collections.Counter()
        for operation, count in found.items():
            base = operation.split(".")[0]
            memory = re.match(r"(LDG|STG|LDS|STS|LDL|STL|LD|ST|ATOM|ATOMG|ATOMS|RED|REDG|LDGSTS)$", base)
            width = re.search(r"\.(U8|S8|U16|S16|64|128)\b", operation)
            short[base + (f".{width[1]}" if memory and width else "")] += count
        short.pop("NOP", None)
        predicated = short.pop("predicated", 0)
        made[demangled(mangled)] = {"total": sum(short.values()), "predicated": predicated, **dict(sorted(short.items()))}
    return made


def demangled(name: str) -> str:
    try:
        return subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return name


def sass(path: Path) -> dict[str, dict]:
    found = instructions(output([tool("cuobjdump"), "-sass", str(path)]))
    return {name: row for name, row in found.items() if "flush_l2" not in name}


# ---- ncu ----


def usable_metrics(program: Path) -> list[str]:
    """METRICS less those that this ncu refuses, which it names."""
    metrics = list(METRICS.values())
    for _ in range(10):
        command = [tool("ncu"), "--clock-control", "none", "--metrics", ",".join(metrics), "--launch-count", "1", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
        refused = {m for m in metrics if re.search(rf"(?i)(fail|could not|unable|invalid|not (?:found|available))[^\n]*{re.escape(m)}\b", text)}
        if not refused:
            if done.returncode or "ERROR" in text:
                raise RuntimeError(f"ncu: {text[-3000:]}")
            return metrics
        print("ncu has no", sorted(refused), flush=True)
        metrics = [m for m in metrics if m not in refused]
    raise RuntimeError("ncu refuses metric after metric")


def profile(command: list[str], report: Path, metrics: list[str], only_marked: bool = False) -> list[dict]:
    """Runs a command and its children under ncu: a row for each launch, in order."""
    options = ["--profile-from-start", "off"] if only_marked else []
    output(
        [tool("ncu"), "--target-processes", "all", "--clock-control", "none", "--metrics", ",".join(metrics), *options, "-f", "-o", str(report), *command],
        cwd=ROOT,
    )
    text = output([tool("ncu"), "--import", str(report) + ".ncu-rep", "--csv", "--page", "raw", "--print-units", "base"])
    return rows_of(text)


def rows_of(text: str) -> list[dict]:
    """ncu's CSV: a line of heads, a line of units, a line for each launch. A counter of 0 is left out."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    table = list(csv.reader(lines[start:]))
    heads, made = table[0], []
    for line in table[2:]:
        if len(line) != len(heads):
            continue
        cells = dict(zip(heads, line, strict=True))
        row = {"process": cells["Process Name"], "pid": cells["Process ID"], "kernel": cells["Kernel Name"]}
        row |= {name: [int(n) for n in re.findall(r"\d+", cells[head])] for name, head in (("grid", "Grid Size"), ("block", "Block Size"))}
        row |= {name: value for name, value in ((SHORT[m], number(cells[m])) for m in heads if m in SHORT) if value}
        made.append(row)
    return made


def number(text: str) -> float | int | None:
    text = text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else round(value, 4)


def profile_programs(folder: Path, which: int, metrics: list[str]) -> dict[str, list[dict]]:
    """All programs at their small or large size in one run of ncu. A row's label is what the program called the launch."""
    script = "".join(f"{folder / p.stem} {sizes(p)[which]} > {folder / p.stem}.labels || echo {p.stem} failed >&2\n" for p in programs())
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


def times_of(folder: Path, program: Path) -> list[dict]:
    """Each launch's medians, in milliseconds."""
    made = []
    for line in output([str(folder / f"{program.stem}.timed"), sizes(program)[1]]).splitlines():
        label, *pairs = line.split("\t")
        made.append({"label": label} | {key: float(value) for key, value in (p.split() for p in pairs)})
    return made


MARK = "elementwise_kernel_with_index"  # linspace's kernel, which no solution launches: in ncu's report it stands before each run


def run_solutions(part: str, names: list[str], out: Path) -> None:
    """In a process of its own, under ncu: runs ModelNew of each solution at the sizes of `part`."""
    import torch

    import references

    order = []
    for file in references.counted():
        if references.name(file) not in names:
            continue
        module = references.load(file)
        cases = references.counted_cases(file) if part == "cases" else [references.full(file, **FULL_SIZES.get(file.parent.name, {}))]
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
    """A row for each launch, with the case it belongs to."""
    order = folder / "order.json"
    command = [sys.executable, __file__, "--solutions", part, "--names", ",".join(names), "--out", str(order)]
    rows = profile(command, folder / f"report_{part}", metrics, only_marked=True)
    return by_solution(rows, json.loads(order.read_text()))


def by_solution(rows: list[dict], runs: list[list]) -> dict[str, list[dict]]:
    """Rows cut at the marks, one piece for each run (name, case, sizes)."""
    found: dict[str, list[dict]] = {}
    number_ = -1
    for row in rows:
        number_ += MARK in row["kernel"]
        if MARK in row["kernel"] or re.match(r"(void )?at::", row["kernel"]):  # torch's own
            continue
        name, case, changed = runs[number_]
        kept = {key: value for key, value in row.items() if key not in ("pid", "process")}
        found.setdefault(name, []).append(kept | {"case": case, "set": changed})
    return found


def time_solutions(names: list[str], out: Path) -> None:
    """Full size without ncu: each launch's median over 20 runs of the model, from the profiler's own record, and the model's."""
    import torch

    import references

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
        found[references.name(file)] = {"ms": statistics.median(whole), "launches": launches_of(record, 20)}
        del run
        torch.cuda.empty_cache()
        out.write_text(json.dumps(found))


def launches_of(record, runs: int) -> list[dict]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        record.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel" and "at::native" not in e["name"]), key=lambda e: e["ts"])
    each = len(kernels) // runs
    made = []
    for i in range(each):
        same = [kernels[run * each + i] for run in range(runs)]
        details = same[0]["args"]
        made.append(
            {"kernel": same[0]["name"], "ms": statistics.median(e["dur"] for e in same) / 1e3, "grid": details.get("grid"), "block": details.get("block"),
             "registers": details.get("registers per thread")}
        )
    return made


# ---- all of it ----


def clocks() -> str:
    fields = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,persistence_mode"
    return output(["nvidia-smi", f"--query-gpu={fields}", "--format=csv"]).strip()


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="Measure only this; the rest of the data file stays.")
@click.option("--program", "named", multiple=True, help="Of the micro-kernels' programs and of the steps, only this; the rest of the data file stays.")
@click.option("--solutions", "part", type=click.Choice(["cases", "full", "time"]), hidden=True)
@click.option("--names", default="", hidden=True)
def main(out: Path, only: tuple[str, ...], named: tuple[str, ...], part: str | None, names: str) -> None:
    if part:
        (time_solutions if part == "time" else lambda n, o: run_solutions(part, n, o))(names.split(","), out)
        return
    chosen.update(named)
    parts = only or PARTS
    data = json.loads(DATA.read_text()) if DATA.exists() and (only or named) else {}
    data.setdefault("programs", {})
    data.setdefault("solutions", {})
    data.setdefault("steps", {})
    start = time.perf_counter()

    def keep(what: str) -> None:
        print(f"{time.perf_counter() - start:6.1f} s  {what}", flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(dumps(data))

    def attempt(what: str, step) -> None:
        """One part that fails must not take the others with it."""
        try:
            step()
        except Exception as error:  # noqa: BLE001
            print(f"{what} FAILED: {error}", flush=True)
        keep(what)

    from machine import machine

    import references

    data["machine"] = machine() | {"clocks": clocks(), "ncu": output([tool("ncu"), "--version"]).strip().splitlines()[-1]}
    files = references.solutions()
    environment = os.environ | {"TORCH_CUDA_ARCH_LIST": "9.0", "NVCC_APPEND_FLAGS": "-lineinfo", "MAX_JOBS": "2"}
    os.environ.update(environment)
    folder = Path(tempfile.mkdtemp())
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda p: compile_program(p, folder), programs() or SIMPLE))
    keep("compiled the programs")
    building = start_solutions(files, environment) if set(parts) & {"cases", "full", "profile"} else []
    metrics = usable_metrics(folder / (programs() or SIMPLE)[0].stem)

    def programs_at(which: int, size: str) -> None:
        for name, rows in profile_programs(folder, which, metrics).items():
            data["programs"].setdefault(name, {})[size] = rows

    def all_sass() -> None:
        with ThreadPoolExecutor(16) as pool:
            for p, found in zip(programs(), pool.map(lambda p: sass(folder / p.stem), programs()), strict=True):
                data["programs"].setdefault(p.stem, {})["sass"] = found

    attempt("instructions", all_sass)
    if "small" in parts:
        attempt("small sizes under ncu", lambda: programs_at(0, "small"))
    if "large" in parts:
        attempt("large sizes under ncu", lambda: programs_at(1, "large"))
    names_built = []
    for file, process in zip(files, building, strict=False):
        errors = process.communicate()[1]
        if process.returncode:
            print(references.name(file), "does not build:", errors[-1500:], flush=True)
        else:
            names_built.append(references.name(file))
    keep("compiled the solutions")
    if "times" in parts:
        for p in programs():
            attempt(f"times of {p.stem}", lambda p=p: data["programs"].setdefault(p.stem, {}).update(times=times_of(folder, p)))
    if "profile" in parts:

        def timed() -> None:
            file = folder / "times.json"
            try:
                output([sys.executable, __file__, "--solutions", "time", "--names", ",".join(names_built), "--out", str(file)], cwd=ROOT)
            finally:
                for name, row in json.loads(file.read_text()).items():
                    data["solutions"].setdefault(name, {})["times"] = row

        attempt("times of the solutions", timed)
    for part_ in ("cases", "full"):
        if part_ in parts:

            def profiled(part_=part_) -> None:
                for found, rows in profile_solutions(part_, names_built, folder, metrics).items():
                    data["solutions"].setdefault(found, {})[part_] = rows

            attempt(f"solutions under ncu: {part_}", profiled)
    if "steps" in parts:

        def profiled_steps() -> None:
            built = []
            files = steps()
            for some in (files[at : at + BUILDS] for at in range(0, len(files), BUILDS)):
                for file, process in zip(some, start_solutions(some, environment), strict=True):
                    errors = process.communicate()[1]
                    if process.returncode:
                        print(references.name(file), "does not build:", errors[-1500:], flush=True)
                    else:
                        built.append(references.name(file))
            for found, rows in profile_solutions("cases", built, folder, metrics).items():
                data["steps"].setdefault(found, {})["cases"] = rows

        attempt("steps under ncu", profiled_steps)
    libraries = {path.stem.split("_v")[0]: path for path in Path(os.environ.get("TORCH_EXTENSIONS_DIR") or Path.home() / ".cache" / "torch_extensions").glob("**/*.so")}
    for file in references.counted():
        if library := libraries.get(extension_of(file)):
            row = data["solutions" if file.name == "solution.py" else "steps"].setdefault(references.name(file), {})
            attempt(f"instructions of {library.stem}", lambda row=row, library=library: row.update(sass=sass(library)))
    data["machine"]["clocks_after"] = clocks()
    keep("done")


def dumps(data: dict) -> str:
    """JSON with a row a line, so that a diff shows which launch changed."""
    text = json.dumps(data, indent=1)
    return re.sub(r"\{\n\s+(\"(?:process|kernel|label|total)\"(?:[^{}]|\{[^{}]*\})*)\}", lambda m: "{" + re.sub(r"\s*\n\s*", " ", m[1]).strip() + "}", text) + "\n"


if __name__ == "__main__":
    main()
