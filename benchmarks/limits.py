"""Pages made of what `grader bench` measured on a GPU: the README's table, every ladder with its bytes, and the sweep.

    python benchmarks/limits.py             print the table
    python benchmarks/limits.py --count     count with simt what the limit files launch for one image (minutes)
    python benchmarks/limits.py --write     write the README's table, LADDERS.md and, if there is data/sweep.json, SWEEP.md

`grader bench` writes data/bench.json (forward, and with --backward --add forward and backward) and data/sweep.json. Steps of
other problems are measured by references.py (data/steps.json); bytes and predictions of steps are model.py's (data/model.json).
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import references  # noqa: E402
from tables import markdown, put_into_readme, show  # noqa: E402

from grader import bench, problem  # noqa: E402
from grader.bench import growth  # noqa: E402
from grader.bench import tables as said_of  # noqa: E402
from grader.contract import code_digest  # noqa: E402
from simt.model import Work, predict  # noqa: E402

FOLDER = ROOT / "benchmarks"
BENCH, SWEEP, STEPS, MODEL, COUNTED, SANITIZED, BUILDS = (
    FOLDER / "data" / f"{name}.json" for name in ("bench", "sweep", "steps", "model", "limits", "sanitizer_limits", "builds")
)
DEVICE = "H200"
COMMAND = "`python benchmarks/limits.py --write` made this"


def read(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


# ---- the README's table ----


def readme(data: dict) -> str:
    """What stands between the README's marks: a table of forward, one of forward and backward where there is one, and
    sentences on what the data lacks."""
    parts = [section(data, "forward", "One forward of the whole model at full size, in milliseconds.")]
    if any(made.get("backward", {}).get("rows") for made in data["problems"].values()):
        parts.append(section(data, "backward", "Forward and backward, with the gradients of every input and every weight."))
    if SANITIZED.exists():
        parts.append(sanitized(read(SANITIZED)))
    if BUILDS.exists():
        parts.append(built(read(BUILDS)))
    if SWEEP.exists():
        parts.append("How these times grow with the work, from batch 1 on: [benchmarks/SWEEP.md](benchmarks/SWEEP.md).")
    return "\n\n".join(parts)


def sanitized(data: dict) -> str:
    """What compute-sanitizer's tools said of the files as they are now (sanitizer.py --limits)."""
    tools = list(data["options"])
    there = {f"{file.parent.name}/{file.stem}": code_of(file) for file in sorted(ROOT.glob("kernels_ref/*/limit*.py"))}
    files = {name: told for name, told in data["files"].items() if told["code"] == there.get(name)}
    clean = [name for name, told in files.items() if all(tool in told and told[tool]["finished"] and not told[tool]["errors"] for tool in tools)]
    said = [
        f"{name}: {tool} " + (f"{told[tool]['errors']} errors ({told[tool].get('says', '')})" if told[tool]["errors"] else "did not end")
        for name, told in files.items() for tool in tools if tool in told and (told[tool]["errors"] or not told[tool]["finished"])
    ]  # fmt: skip
    m, version = data["machine"], re.search(r"\d+\.[\d.]+", data["sanitizer"])
    head = f"compute-sanitizer {version[0] if version else ''} ({listed(tools)}) on an {m['gpu']}, {m['date']}: {len(clean)} of {len(there)} files without a finding."
    missing = [name for name in there if name not in files]
    return " ".join([head, *(f"{s}." for s in said), *([f"Not examined as they are now: {listed(missing)}."] if missing else [])])


def built(data: dict) -> str:
    """How long the files as they are now take to be built where nothing is there yet (builds.py)."""
    there = {f"{file.parent.name}/{file.stem}": code_of(file) for file in sorted(ROOT.glob("kernels_ref/*/limit*.py"))}
    seconds = {name: row["seconds"] for name, row in data["files"].items() if row["code"] == there.get(name)}
    missing = [name for name in there if name not in seconds]
    m, slowest = data["machine"], max(seconds, key=seconds.get, default="")
    head = f"Built by nvcc from nothing, one after another on {data['cores']} cores of the host of an {m['gpu']}, {m['date']}: " + (
        f"{len(seconds)} of {len(there)} files in {min(seconds.values()):.1f} to {seconds[slowest]:.1f} s, {slowest} the slowest." if seconds else "none of them."
    )
    return head + (f" Not built as they are now: {listed(missing)}." if missing else "")


def code_of(file: Path) -> str:
    """What tells a file's code from another's: the text at its head does not count."""
    return code_digest(file.read_text(encoding="utf-8"))


def section(data: dict, task: str, head: str) -> str:
    cells, heads = said_of.summary(data, task), said_of.SUMMARY_BACKWARD if task == "backward" else said_of.SUMMARY
    aims = "" if task == "backward" else " A target is milliseconds, and times the best of torch; within 5 % below its milliseconds a row is at it."
    said = " ".join(filter(None, [said_of.told(data, task), *changed(data, task)]))
    how = "Medians of runs in turns, L2 flushed before each; how many times faster is told from the rounds that both took part in."
    source = f"{made_on(data, task)} {how} {COMMAND} from benchmarks/data/bench.json.{aims} {said}"
    return f"{head}\n\n{markdown(heads, cells, source.strip())}"


def changed(data: dict, task: str) -> list[str]:
    """A sentence for each of the table's files that is not what was timed."""
    found = []
    for name, made in data["problems"].items():
        made = made.get("backward", {}) if task == "backward" else made
        names = {best["ours"] for best in made.get("best", {}).values()}
        found += changed_since(name, [row for row in made.get("rows", []) if row["name"] in names])
    return found


def changed_since(name: str, rows: list[dict]) -> list[str]:
    """The same of a problem's rows; each file once."""
    files = [(ROOT / row["file"], row["code"]) for row in rows if "file" in row]
    return list(dict.fromkeys(f"{name}'s {file.name} has changed since it was timed." for file, code in files if file.is_file() and code_of(file) != code))


def made_on(data: dict, task: str) -> str:
    """Date, GPU and versions of every run that has a part in the table."""
    parts = [made.get("backward") if task == "backward" else made for made in data["problems"].values()]
    machines = [part.get("machine", data["machine"]) for part in parts if part and part.get("rows")]
    return "; ".join(dict.fromkeys(f"{m['date']}, {m['name']}, torch {m['torch']}" for m in machines)) + "."


# ---- ladders ----

HEADS = ["rung", "measured, ms", "times as fast as the one before", "predicted, ms", "off by", "bytes counted", "bytes of DRAM, ncu"]


def ladders(measured: dict, steps: dict, model: dict, counted: dict) -> dict[str, list[dict]]:
    """problem -> its rungs in order, the steps and then what stands at the limit: ms, predicted seconds and bytes counted by
    simt, bytes of DRAM by ncu; None where one is not known, and why."""
    predicted = steps_counted(model)
    found: dict[str, list[dict]] = {}
    for name in map(references.name, references.steps()):
        own, step = name.split("/")
        rows = {r["name"]: r for r in measured["problems"].get(own, {}).get("rows", [])}
        ms = rows.get(step, {}).get("ms") if rows else steps["steps"].get(name, {}).get("ms")
        p = predicted.get(name, {})
        rung = {"name": step, "ms": ms, "predicted": p.get("seconds"), "bytes": p.get("bytes"), "dram": dram(measured, own, step), "class": "fp32"}
        found.setdefault(own, []).append(rung | {"why": ""})
    for own, rungs in found.items():
        for row in measured["problems"].get(own, {}).get("rows", []):
            if row["kind"] == "beside" and row["name"].startswith("limit"):
                rungs.append(limit(measured, own, row, counted))
    return found


def steps_counted(model: dict) -> dict[str, dict]:
    """step -> seconds and bytes of all its launches in a run: each launch reads and writes a byte once."""
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


def limit(measured: dict, own: str, row: dict, counted: dict) -> dict:
    """The rung of a limit file."""
    rung = {"name": row["name"], "ms": row.get("ms"), "class": row["precision"], "dram": dram(measured, own, row["name"])}
    here = counted["limits"].get(f"{own}/{row['name']}")
    why = uncounted(measured, own, row["name"], here)
    if why:
        return rung | {"predicted": None, "bytes": None, "why": why}
    works = [Work(**launch["work"]) for launch in here["launches"]]
    seconds, moved = sum(predict(w, DEVICE).seconds for w in works), sum(w.unique_read + w.unique_written for w in works)
    return rung | {"predicted": seconds, "bytes": moved, "why": ""}


def uncounted(measured: dict, own: str, name: str, here: dict | None) -> str:
    """Why a limit file has no prediction; "" if it has one. Counted must be the kernels that ran on the GPU: those of a limit
    file choose by what the device can do."""
    if here is None:
        return "not counted"
    if "failed" in here:
        return here["failed"]
    if here["source"] != references.source(ROOT / "kernels_ref" / own / f"{name}.py"):
        return "the file has changed since it was counted"
    mine = sorted({bench.short(launch["kernel"]) for launch in here["launches"]})
    launches = measured["problems"][own].get("launches", {})
    of_limits = {row: ls for row, ls in launches.items() if row.startswith("limit")}
    ran = of_limits.get(name) or next(iter(of_limits.values()), None)
    if not ran:
        return f"it is not known whether the GPU runs the same kernels as a CPU ({listed(mine)}): the data has no launches"
    theirs = sorted({launch["kernel"] for launch in ran})
    return "" if mine == theirs else f"the GPU ran {listed(theirs)}, but what can be counted on a CPU is {listed(mine)}"


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def rung_cells(rungs: list[dict]) -> list[list[str]]:
    """Cells under HEADS. A rung of another class than the one before is beside it, not above."""
    made, before = [], None
    for rung in rungs:
        ms, seconds = rung["ms"], rung["predicted"]
        if before is not None and rung["class"] != before["class"]:  # tf32 stands beside fp32's limit, on the last step
            before = next((r for r in reversed(rungs[: rungs.index(rung)]) if not r["name"].startswith("limit")), None)
        faster = f"{before['ms'] / ms:.2f}" if before and before["ms"] and ms else ""
        off = f"{seconds * 1e3 / ms - 1:+.0%}" if seconds and ms else ""
        said = f"{seconds * 1e3:.4g}" if seconds else "–"
        made.append([f"{rung['name']}" + (" (tf32)" if rung["class"] == "tf32" else ""), f"{ms:.4g}" if ms else "–", faster, said, off])
        made[-1] += [f"{rung[key] / 1e6:,.0f} MB" if rung[key] else "–" for key in ("bytes", "dram")]
        before = rung
    return made


def ladder_page(found: dict[str, list[dict]], measured: dict, steps: dict) -> str:
    """LADDERS.md."""
    m = steps["machine"]
    lines = [
        "# Ladders", "",
        "Every problem's steps in order, at full size, with what stands at the limit as the last rungs.", "",
        "- Measured: one forward of the whole model, medians, L2 flushed before each run.",
        f"  Problems with a limit: all rows of a problem in one run of `grader bench`, {made_on(measured, 'forward')}",
        f"  The others: `python benchmarks/references.py`, {m['date']}, {m['gpu']}, torch {m['torch']}.",
        f"- Predicted: simt's time model of an {DEVICE} on counters from the CPU (`python benchmarks/model.py`), never fitted to these kernels.",
        "- Bytes counted: distinct bytes that each launch reads and writes, added up over the launches.",
        "- Bytes of DRAM: what Nsight Compute saw pass between DRAM and L2, for the rows that `grader bench` profiles.", "",
        f"{COMMAND} from benchmarks/data/bench.json, steps.json, model.json and limits.json.",
    ]  # fmt: skip
    for name, rungs in found.items():
        lines += ["", f"## {name}", "", "| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
        lines += ["| " + " | ".join(cells) + " |" for cells in rung_cells(rungs)]
        why = [f"- {rung['name']} has no prediction: {rung['why']}." for rung in rungs if rung["why"]]
        why += [f"- {sentence}" for sentence in changed_since(name, measured["problems"].get(name, {}).get("rows", []))]
        lines += ["", *why] if why else []
    return "\n".join(lines) + "\n"


# ---- the sweep ----


def sweep_page(data: dict, folder: str = "data/sweep") -> str:
    """SWEEP.md: a picture and its sentences for each model."""
    machines = dict.fromkeys(f"{m['date']}, {m['name']}, torch {m['torch']}" for m in (made["machine"] for made in data["problems"].values()))
    lines = [
        "# Cost as the work grows", "",
        "Batch 1 to 512 at each model's own image size, and 32 to 512 pixels a side at its own batch: the fastest kernels, the last step",
        "of the ladder, eager, and torch.compile, compiled for each size anew (at some batches only, as that takes seconds each time). Times are",
        "the GPU's: launches are queued ahead, so that what Python takes to call does not count.",
        "A cliff: a pixel becomes more than 1.5 times as dear from one size to the next, or less work takes longer than more.", "",
        f"{'; '.join(machines)}. Medians of runs in turns, L2 flushed before each. {COMMAND} from benchmarks/data/sweep.json.",
    ]  # fmt: skip
    for name, made in data["problems"].items():
        lines += ["", f"## {name}", ""]
        if growth.curves(made):
            lines += [f"![{growth.picture(name, made).alt}]({folder}/{name}.svg)", ""]
        lines += [sentence.removeprefix(f"{name}: ") + "\n" for sentence in growth.sentences(name, made)]
        lines += [f"{sentence}\n" for sentence in changed_since(name, [row for size in made["sizes"] for row in size.get("rows", [])])]
    return "\n".join(lines).rstrip() + "\n"


# ---- counting ----


def count(files: list[Path]) -> dict[str, dict]:
    """What each file launches for one image of full size, as work of the whole batch."""
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
        except Exception as error:  # noqa: BLE001  (a file that simt cannot run says why)
            found[name] = {"failed": f"simt cannot run it: {str(error).splitlines()[0][:150]}"}
            continue
        images = problem.find(file).literals["batch_size"]
        launches = []
        for launch in report.as_dict()["launches"]:
            work = dataclasses.asdict(Work.of(launch).times(images))
            launches.append({"kernel": launch["kernel"], "work": {k: v for k, v in work.items() if v or k == "shared"}})
        found[name] = {"source": references.source(file), "launches": launches}
        print(name, ", ".join(launch["kernel"] for launch in launches), flush=True)
    return found


@click.command(help=__doc__)
@click.option("--count", "anew", is_flag=True, help="Count the limit files with simt.")
@click.option("--write", is_flag=True, help="Write the README's table, LADDERS.md and SWEEP.md.")
def main(anew: bool, write: bool) -> None:
    data = read(BENCH)
    if anew:
        files = sorted(f for f in ROOT.glob("kernels_ref/*/limit*.py") if "backward" not in f.stem)
        COUNTED.write_text(json.dumps({"limits": count(files)}, indent=1) + "\n", encoding="utf-8")
    if write:
        put_into_readme("limit", readme(data))
        found = ladders(data, read(STEPS), read(MODEL), read(COUNTED))
        (FOLDER / "LADDERS.md").write_text(ladder_page(found, data, read(STEPS)), encoding="utf-8")
        if SWEEP.exists():
            swept = read(SWEEP)
            bench.draw(swept, SWEEP.with_suffix(""))
            (FOLDER / "SWEEP.md").write_text(sweep_page(swept), encoding="utf-8")
        return
    show(said_of.SUMMARY, said_of.summary(data))
    print(said_of.told(data))


if __name__ == "__main__":
    main()
