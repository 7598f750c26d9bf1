"""Write the pages of what `grader bench` measured on a GPU: the table of the fastest files, all ladders, and the sweep.

    python benchmarks/publish/fastest.py            print the table
    python benchmarks/publish/fastest.py --count    count with simt what these files launch for one image (minutes)
    python benchmarks/publish/fastest.py --write    write the table of benchmarks/README.md, LADDERS.md and, if there
                                                   is data/sweep.json, SWEEP.md

`grader bench` writes data/bench.json (forward, and with --backward --add forward and backward) and data/sweep.json.
timing/steps.py measures the steps of other problems (data/steps.json); validate/model.py has the steps' bytes and
predictions (data/model.json).
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.paths import BENCHMARKS, DATA_FOLDER, ROOT
from benchmarks.publish.tables import make_table, make_table_with_source, show_table, write_section
from grader.bench import draw, growth, ncu, tables
from grader.source.contract import code_digest
from simt.counting.time_model import Work, predict

BENCH, SWEEP, STEPS, MODEL, COUNTED, SANITIZED, BUILDS = (
    DATA_FOLDER / f"{name}.json"
    for name in ("bench", "sweep", "steps", "model", "fastest", "sanitizer_fastest", "builds")
)
DEVICE = "H200"
COMMAND = "`python benchmarks/publish/fastest.py --write` made this"


def read(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


# ---- the table ----


def readme(data: dict) -> str:
    """Return the section of benchmarks/README.md: a table of forward, one of forward and backward if it was measured,
    and sentences on what the data lack.
    """
    parts = [section(data, "forward", "One forward of the whole model at full size, in milliseconds.")]
    if any(made.get("backward", {}).get("rows") for made in data["problems"].values()):
        parts.append(
            section(data, "backward", "Forward and backward, with the gradients of every input and every weight.")
        )
    if SANITIZED.exists():
        parts.append(sanitized(read(SANITIZED)))
    if BUILDS.exists():
        parts.append(built(read(BUILDS)))
    if SWEEP.exists():
        parts.append("How these times grow with the work, from batch 1 on: [SWEEP.md](SWEEP.md).")
    return "\n\n".join(parts)


def sanitized(data: dict) -> str:
    """Return a sentence on compute-sanitizer's findings in the present files (sanitizer.py --fastest)."""
    tools = list(data["options"])
    there = {
        f"{file.parent.name}/{file.stem}": code_of(file) for file in sorted(ROOT.glob("kernels_ref/*/fastest*.py"))
    }
    files = {name: result for name, result in data["files"].items() if result["code"] == there.get(name)}
    clean = [
        name
        for name, result in files.items()
        if all(tool in result and result[tool]["finished"] and not result[tool]["errors"] for tool in tools)
    ]
    problems = []
    for name, result in files.items():
        for tool in (tool for tool in tools if tool in result):
            errors = result[tool]["errors"]
            if errors:
                problems.append(f"{name}: {tool} {errors} errors ({result[tool].get('says', '')})")
            elif not result[tool]["finished"]:
                problems.append(f"{name}: {tool} did not end")
    m, version = data["machine"], re.search(r"\d+\.[\d.]+", data["sanitizer"])
    source = f"compute-sanitizer {version[0] if version else ''} ({listed(tools)}) on an {m['gpu']}, {m['date']}"
    head = f"{source}: {len(clean)} of {len(there)} files without a finding."
    missing = [name for name in there if name not in files]
    return " ".join(
        [
            head,
            *(f"{problem}." for problem in problems),
            *([f"Not examined as they are now: {listed(missing)}."] if missing else []),
        ]
    )


def built(data: dict) -> str:
    """Return a sentence on how long the present files take to build from nothing (builds.py)."""
    there = {
        f"{file.parent.name}/{file.stem}": code_of(file) for file in sorted(ROOT.glob("kernels_ref/*/fastest*.py"))
    }
    seconds = {name: row["seconds"] for name, row in data["files"].items() if row["code"] == there.get(name)}
    missing = [name for name in there if name not in seconds]
    m, slowest = data["machine"], max(seconds, key=lambda name: seconds[name], default="")
    source = f"{data['cores']} cores of the host of an {m['gpu']}, {m['date']}"
    found = "none of them."
    if seconds:
        span = f"{min(seconds.values()):.1f} to {seconds[slowest]:.1f} s"
        found = f"{len(seconds)} of {len(there)} files in {span}, {slowest} the slowest."
    head = f"Built by nvcc from nothing, one after another on {source}: {found}"
    return head + (f" Not built as they are now: {listed(missing)}." if missing else "")


def code_of(file: Path) -> str:
    """Return a digest of a file's code; the docstring at its head does not count."""
    return code_digest(file.read_text(encoding="utf-8"))


def section(data: dict, task: str, head: str) -> str:
    cells, heads = (
        tables.format_summary(data, task),
        tables.SUMMARY_BACKWARD if task == "backward" else tables.SUMMARY,
    )
    aims = (
        ""
        if task == "backward"
        else " A target is a time, and a speed-up over the best of torch; a row at most 5 % below that time is at it."
    )
    gaps = " ".join(filter(None, [tables.describe_runs(data, task), *changed(data, task)]))
    how = "Medians of interleaved rounds, L2 flushed before each; times faster: the median ratio over common rounds."
    source = f"{made_on(data, task)} {how} {COMMAND} from benchmarks/data/bench.json.{aims} {gaps}"
    return f"{head}\n\n{make_table_with_source(heads, cells, source.strip())}"


def changed(data: dict, task: str) -> list[str]:
    """Return a sentence for each of the table's files that has changed since it was timed."""
    found = []
    for name, made in data["problems"].items():
        made = made.get("backward", {}) if task == "backward" else made
        names = {best["ours"] for best in made.get("best", {}).values()}
        found += changed_since(name, [row for row in made.get("rows", []) if row["name"] in names])
    return found


def changed_since(name: str, rows: list[dict]) -> list[str]:
    """Return the same sentences for a problem's rows, one per file."""
    files = [(ROOT / row["file"], row["code"]) for row in rows if "file" in row]
    return list(
        dict.fromkeys(
            f"{name}'s {file.name} has changed since it was timed."
            for file, code in files
            if file.is_file() and code_of(file) != code
        )
    )


def made_on(data: dict, task: str) -> str:
    """Return date, GPU and versions of every run in the table."""
    parts = [made.get("backward") if task == "backward" else made for made in data["problems"].values()]
    machines = [part.get("machine", data["machine"]) for part in parts if part and part.get("rows")]
    return "; ".join(dict.fromkeys(f"{m['date']}, {m['name']}, torch {m['torch']}" for m in machines)) + "."


# ---- ladders ----

HEADS = [
    "rung",
    "measured, ms",
    "times as fast as the one before",
    "predicted, ms",
    "off by",
    "bytes counted",
    "bytes of DRAM, ncu",
]


def ladders(measured: dict, steps: dict, model: dict, counted: dict) -> dict[str, list[dict]]:
    """problem -> its rungs in order, the steps and then what is the fastest: ms, predicted seconds and bytes
    counted by simt, bytes of DRAM by ncu; None where one is not known, and why."""
    predicted = steps_counted(model)
    found: dict[str, list[dict]] = {}
    for name in map(references.name, references.steps()):
        own, step = name.split("/")
        rows = {r["name"]: r for r in measured["problems"].get(own, {}).get("rows", [])}
        ms = rows.get(step, {}).get("ms") if rows else steps["steps"].get(name, {}).get("ms")
        p = predicted.get(name, {})
        rung = {
            "name": step,
            "ms": ms,
            "predicted": p.get("seconds"),
            "bytes": p.get("bytes"),
            "dram": dram(measured, own, step),
            "class": "fp32",
        }
        found.setdefault(own, []).append(rung | {"why": ""})
    for own, rungs in found.items():
        rows = [
            row
            for row in measured["problems"].get(own, {}).get("rows", [])
            if row["kind"] == "beside" and row["name"].startswith("fastest")
        ]
        rungs += [fastest_rung(measured, own, row, counted) for row in rows]
        known = {row["name"] for row in rows}
        rungs += [unmeasured_rung(stem) for stem in forward_files(own) if stem not in known]
    return found


def forward_files(own: str) -> list[str]:
    """Return the names of a problem's fastest files, those with gradients left out."""
    files = (ROOT / "kernels_ref" / own).glob("fastest*.py")
    return sorted(file.stem for file in files if "backward" not in file.stem)


def unmeasured_rung(name: str) -> dict:
    """Return the rung of a fastest file that no run of `grader bench` has timed."""
    precision = "tf32" if name.endswith("_tf32") else "fp32"
    unknown = dict.fromkeys(("ms", "predicted", "bytes", "dram"))
    return {"name": name, "class": precision, **unknown, "why": "no run of `grader bench` has timed it yet"}


def steps_counted(model: dict) -> dict[str, dict]:
    """Return step -> seconds and bytes of all its launches in a run. Each launch reads and writes a byte once."""
    found: dict[str, dict] = {}
    for row in model["steps"]:
        total = found.setdefault(row["group"], {"seconds": 0.0, "bytes": 0.0})
        work = Work(**row["work"])
        total["seconds"] += row["launches"] * predict(work, DEVICE).seconds
        total["bytes"] += row["launches"] * (work.unique_read + work.unique_written)
    return found


def dram(measured: dict, own: str, row: str) -> float | None:
    launches = measured["problems"].get(own, {}).get("launches", {}).get(row)
    return sum(launch["bytes"] for launch in launches) if launches and row != "failed" else None


def fastest_rung(measured: dict, own: str, row: dict, counted: dict) -> dict:
    """The rung of a fastest file."""
    rung = {
        "name": row["name"],
        "ms": row.get("ms"),
        "class": row["precision"],
        "dram": dram(measured, own, row["name"]),
    }
    here = counted["fastest"].get(f"{own}/{row['name']}")
    why = uncounted(measured, own, row["name"], here)
    if why:
        return rung | {"predicted": None, "bytes": None, "why": why}
    works = [Work(**launch["work"]) for launch in here["launches"]]
    seconds, moved = (
        sum(predict(w, DEVICE).seconds for w in works),
        sum(w.unique_read + w.unique_written for w in works),
    )
    return rung | {"predicted": seconds, "bytes": moved, "why": ""}


def uncounted(measured: dict, own: str, name: str, here: dict | None) -> str:
    """Return why a fastest file has no prediction; "" if it has one.

    The counted kernels must be those that ran on the GPU: a fastest file selects its kernels by device.
    """
    if here is None:
        return "not counted"
    if "failed" in here:
        return here["failed"]
    if here["source"] != references.source(ROOT / "kernels_ref" / own / f"{name}.py"):
        return "the file has changed since it was counted"
    mine = sorted({ncu.shorten_name(launch["kernel"]) for launch in here["launches"]})
    launches = measured["problems"][own].get("launches", {})
    of_fastest = {row: ls for row, ls in launches.items() if row.startswith("fastest")}
    ran = of_fastest.get(name) or next(iter(of_fastest.values()), None)
    if not ran:
        return (
            f"it is not known whether the GPU runs the same kernels as a CPU ({listed(mine)}): the data has no launches"
        )
    theirs = sorted({launch["kernel"] for launch in ran})
    return "" if mine == theirs else f"the GPU ran {listed(theirs)}, but what can be counted on a CPU is {listed(mine)}"


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def rung_cells(rungs: list[dict]) -> list[list[str]]:
    """Return cells under HEADS. A rung of another class is compared with the last step, not with the rung before it."""
    made, before = [], None
    for rung in rungs:
        ms, seconds = rung["ms"], rung["predicted"]
        if (
            before is not None and rung["class"] != before["class"]
        ):  # tf32 is a rung next to the fastest fp32 file, above the last step
            before = next(
                (r for r in reversed(rungs[: rungs.index(rung)]) if not r["name"].startswith("fastest")), None
            )
        faster = f"{before['ms'] / ms:.2f}" if before and before["ms"] and ms else ""
        off = f"{seconds * 1e3 / ms - 1:+.0%}" if seconds and ms else ""
        prediction = f"{seconds * 1e3:.4g}" if seconds else "–"
        made.append(
            [
                f"{rung['name']}" + (" (tf32)" if rung["class"] == "tf32" else ""),
                f"{ms:.4g}" if ms else "–",
                faster,
                prediction,
                off,
            ]
        )
        made[-1] += [f"{rung[key] / 1e6:,.0f} MB" if rung[key] else "–" for key in ("bytes", "dram")]
        before = rung
    return made


def ladder_page(found: dict[str, list[dict]], measured: dict, steps: dict) -> str:
    """Return LADDERS.md."""
    m = steps["machine"]
    dates = " and ".join(sorted({m["date"], *(row["date"] for row in steps["steps"].values() if "date" in row)}))
    lines = [
        "# Ladders", "",
        "Every problem's steps in order, at full size, with what is the fastest as the last rungs.", "",
        "- Measured: one forward of the whole model, medians, L2 flushed before each run.",
        f"  Problems that `grader bench` has timed: all rows in one run, {made_on(measured, 'forward')}",
        f"  The others: `python benchmarks/timing/steps.py`, {dates}, {m['gpu']}, torch {m['torch']}.",
        f"- Predicted: simt's time model of an {DEVICE} on counters from the CPU,",
        "  never fitted to these kernels (`python benchmarks/validate/model.py`).",
        "- Bytes counted: distinct bytes that each launch reads and writes, added up over the launches.",
        "- Bytes of DRAM: those between DRAM and L2 by Nsight Compute, for the rows that `grader bench` profiles.", "",
        f"{COMMAND} from benchmarks/data/bench.json, steps.json, model.json and fastest.json.",
    ]  # fmt: skip
    for name, rungs in found.items():
        lines += ["", f"## {name}", "", *make_table(HEADS, rung_cells(rungs))]
        why = [f"- {rung['name']} has no prediction: {rung['why']}." for rung in rungs if rung["why"]]
        why += [f"- {sentence}" for sentence in changed_since(name, measured["problems"].get(name, {}).get("rows", []))]
        lines += ["", *why] if why else []
    return "\n".join(lines) + "\n"


# ---- the sweep ----


def sweep_page(data: dict, folder: str = "data/sweep") -> str:
    """Return SWEEP.md: a picture and its sentences for each model."""
    machines = dict.fromkeys(
        f"{m['date']}, {m['name']}, torch {m['torch']}" for m in (made["machine"] for made in data["problems"].values())
    )
    lines = [
        "# Cost as the work grows", "",
        "Batch 1 to 512 at each model's own image size, and 32 to 512 pixels per side at its own batch: the fastest",
        "kernels, the last step of the ladder, eager, and torch.compile, which compiles for each size separately (at",
        "some batches only, as that takes seconds). Times are the GPU's: launches are queued ahead, so Python's",
        "overhead does not count. A cliff: a pixel takes more than 1.5 times as long as at the next smaller size, or",
        "less work takes longer than more.", "",
        f"{'; '.join(machines)}. Medians of interleaved rounds, L2 flushed before each.",
        f"{COMMAND} from benchmarks/data/sweep.json.",
    ]  # fmt: skip
    for name, made in data["problems"].items():
        lines += ["", f"## {name}", ""]
        if growth.find_curves(made):
            lines += [f"![{growth.draw_curves(name, made).alt}]({folder}/{name}.svg)", ""]
        lines += [sentence.removeprefix(f"{name}: ") + "\n" for sentence in growth.describe(name, made)]
        lines += [
            f"{sentence}\n"
            for sentence in changed_since(name, [row for size in made["sizes"] for row in size.get("rows", [])])
        ]
    return "\n".join(lines).rstrip() + "\n"


# ---- counting ----


def count(files: list[Path]) -> dict[str, dict]:
    """Count what each file launches for one image of full size. Return it as work of the whole batch."""
    import simt

    simt.enable()
    found = {}
    for file in files:
        name = f"{file.parent.name}/{file.stem}"
        try:
            module = references.load(file)
            run = references.prepare(file, module, references.full(file, batch_size=1), "cpu")
            with simt.count(device=DEVICE, seconds=300) as report:
                run()
        except Exception as error:
            found[name] = {"failed": f"simt cannot run it: {str(error).splitlines()[0][:150]}"}
            continue
        images = references.sizes(file)["batch_size"]
        launches = []
        for launch in report.as_dict()["launches"]:
            work = dataclasses.asdict(Work.of(launch).times(images))
            launches.append({"kernel": launch["kernel"], "work": {k: v for k, v in work.items() if v or k == "shared"}})
        found[name] = {"source": references.source(file), "launches": launches}
        print(name, ", ".join(launch["kernel"] for launch in launches), flush=True)
    return found


@click.command(help=__doc__)
@click.option("--count", "recount", is_flag=True, help="Count the fastest files with simt.")
@click.option("--write", is_flag=True, help="Write the table of benchmarks/README.md, LADDERS.md and SWEEP.md.")
def main(recount: bool, write: bool) -> None:
    data = read(BENCH)
    if recount:
        files = sorted(f for f in ROOT.glob("kernels_ref/*/fastest*.py") if "backward" not in f.stem)
        COUNTED.write_text(json.dumps({"fastest": count(files)}, indent=1) + "\n", encoding="utf-8")
    if write:
        write_section("fastest", readme(data))
        found = ladders(data, read(STEPS), read(MODEL), read(COUNTED))
        (BENCHMARKS / "LADDERS.md").write_text(ladder_page(found, data, read(STEPS)), encoding="utf-8")
        if SWEEP.exists():
            swept = read(SWEEP)
            draw(swept, SWEEP.with_suffix(""))
            (BENCHMARKS / "SWEEP.md").write_text(sweep_page(swept), encoding="utf-8")
        return
    show_table(tables.SUMMARY, tables.format_summary(data))
    print(tables.describe_runs(data))


if __name__ == "__main__":
    main()
