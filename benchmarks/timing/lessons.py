"""Measure the lessons: words, cells, and the seconds that one takes to run with every kernel built from nothing.

    python benchmarks/timing/lessons.py [NAME …]     run them one after another and print; --write also writes the table
                                                     of lessons/README.md
    python benchmarks/timing/lessons.py --words      run none of them: the seconds of the data file stay
    python benchmarks/timing/lessons.py --gpu        run them in parallel on this machine's GPU, all kernels by nvcc,
                                                     and record in data/lessons_gpu.json which cells ran; nothing
                                                     else is written
    python benchmarks/timing/lessons.py --gpu NAME --cells ID,…
                                                     run these cells of a lesson after its first one, and add them to
                                                     what the data file has of it

The reading time is 150 words per minute and a minute per code cell, without the exercise.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click
import nbformat

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section

LESSONS, DATA = ROOT / "lessons", DATA_FOLDER / "lessons.json"
GPU_DATA = DATA.with_name("lessons_gpu.json")
HEADS = ["lesson", "exercises", "words", "cells of code", "reading, about", "runs in"]


def measure_seconds(path: Path) -> float:
    """Return the seconds that the cells take, with simt's one-time builds but no kernel of the lesson in the cache."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as cache:
        for made in ("base", "header", "runtime"):
            place = Path(os.environ.get("SIMT_CACHE") or Path.home() / ".cache" / "simt") / made
            if place.is_dir():
                (Path(cache) / made).symlink_to(place)
        os.environ |= {"NBVAL": "1", "SIMT_CACHE": cache}
        try:
            begun = time.monotonic()
            NotebookClient(
                nbformat.read(path, 4), timeout=600, resources={"metadata": {"path": str(LESSONS)}}
            ).execute()
            return time.monotonic() - begun
        finally:
            del os.environ["SIMT_CACHE"]


def run_on_gpu(path: Path, only: Sequence[str] = ()) -> dict:
    """Run one lesson with nvcc's kernels. Return how many cells ran, and the error that stopped it.

    only: the ids of the cells that run after the first one; all if there are none.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook, error, begun = nbformat.read(path, 4), None, time.monotonic()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if only:
        notebook.cells = code = [code[0], *(cell for cell in code[1:] if cell.id in only)]
    for cell in code:
        cell.update(outputs=[], execution_count=None)
    try:
        NotebookClient(notebook, timeout=560, resources={"metadata": {"path": str(LESSONS)}}).execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as stopped:
        error = str(stopped)[-1500:]
    if error is None:  # a cell that may raise shows its error among its outputs
        error = next(
            (
                out.evalue
                for cell in code
                for out in cell.outputs
                if out.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", [])
            ),
            None,
        )
    text = {cell.id: "".join(out.get("text", "") for out in cell.outputs) for cell in code}
    return {
        "name": path.stem,
        "cells": len(code),
        "ran": sum(cell.execution_count is not None for cell in code),
        "seconds": round(time.monotonic() - begun, 1),
        "date": describe_machine()["date"],
        "error": error,
        "printed": text,
    }


def add_cells(path: Path, old: dict, new: dict) -> dict:
    """Return a lesson's row with the cells that ran later; "later" has their dates."""
    ids = [cell.id for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    printed = {key: text for key, text in (old["printed"] | new["printed"]).items() if key in ids}
    later = old.get("later", {}) | dict.fromkeys(new["printed"], new["date"])
    counted = {"cells": len(ids), "ran": len(printed) if new["ran"] == new["cells"] else old["ran"]}
    return old | counted | {"printed": printed, "error": new["error"], "later": later}


def record_on_gpu(paths: list[Path], only: Sequence[str] = ()) -> int:
    """Run the lessons in parallel and write the data file. Return the exit status.

    Most of the time is nvcc's, which uses one or two cores per kernel.
    """
    import torch

    if not torch.cuda.is_available():
        print("--gpu needs a CUDA GPU and nvcc, and torch finds no GPU here.", file=sys.stderr)
        return 2
    old = {row["name"]: row for row in json.loads(GPU_DATA.read_text())["rows"]} if GPU_DATA.exists() else {}
    new: dict[str, dict] = {}
    with ThreadPoolExecutor(len(paths)) as pool:
        running = {pool.submit(run_on_gpu, path, only): path for path in paths}
        for done in as_completed(running):  # kept though the next is cut off
            row = done.result()
            if only and row["name"] in old:
                row = add_cells(running[done], old[row["name"]], row)
            new[row["name"]] = row
            rows = sorted((old | new).values(), key=lambda row: row["name"])
            made = {"machine": describe_machine(), "rows": rows}
            GPU_DATA.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    show_table(
        ["lesson", "cells", "ran", "seconds, builds and all", "stopped by"],
        [
            [row["name"], str(row["cells"]), str(row["ran"]), f"{row['seconds']:.0f}", (row["error"] or "")[-400:]]
            for row in new.values()
        ],
    )
    return int(any(row["error"] or row["ran"] < row["cells"] for row in new.values()))


def measure(path: Path, run: bool) -> dict:
    """Return a lesson's row of the data file. run: whether to time it."""
    notebook = nbformat.read(path, 4)
    text = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    words = len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())
    exercises = re.findall(r'grader\.check\("(\w+)"', "\n".join(code))
    counted = {
        "words": words,
        "cells": len(code),
        "exercises": exercises,
        "seconds": round(measure_seconds(path), 1) if run else None,
        "date": describe_machine()["date"] if run else None,
    }
    return {"name": path.stem, "title": notebook.cells[0].source.split("\n")[0].lstrip("# ")} | counted


def make_cells(row: dict) -> list[str]:
    """Return cells under HEADS."""
    minutes = 5 * round((row["words"] / 150 + row["cells"]) / 5)
    exercises = ", ".join(f"`{name}.py`" for name in row["exercises"])
    return [
        f"[{row['title']}]({row['name']}.ipynb)",
        exercises,
        f"{row['words']:,}",
        str(row["cells"]),
        f"{minutes} minutes",
        f"{row['seconds']:.0f} s" if row["seconds"] else "not measured",
    ]


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--words", is_flag=True, help="Only count words and cells.")
@click.option("--write", is_flag=True, help="Write the table of lessons/README.md.")
@click.option("--gpu", is_flag=True, help="Run them on this machine's GPU with nvcc's kernels and record it.")
@click.option("--cells", default="", metavar="ID,…", help="With --gpu: only these cells, after the first one.")
def main(names: tuple[str, ...], words: bool, write: bool, gpu: bool, cells: str) -> None:
    chosen = [
        path for path in sorted(LESSONS.glob("[0-9]*.ipynb")) if not names or any(name in path.stem for name in names)
    ]
    if gpu:
        sys.exit(record_on_gpu(chosen, tuple(filter(None, cells.split(",")))))
    old = {row["name"]: row for row in json.loads(DATA.read_text())["rows"]} if DATA.exists() else {}
    rows = old | {path.stem: measure(path, not words) for path in chosen}
    if words:
        rows = {
            name: row | {what: row[what] or old.get(name, {}).get(what) for what in ("seconds", "date")}
            for name, row in rows.items()
        }
    rows = [rows[path.stem] for path in sorted(LESSONS.glob("[0-9]*.ipynb")) if path.stem in rows]
    on = describe_machine()
    dates = sorted({row["date"] for row in rows if row["date"]})
    DATA.write_text(json.dumps({"machine": on, "rows": rows}, indent=1) + "\n")
    show_table(HEADS, [make_cells(row) for row in rows])
    if write:
        write_section(
            "lessons",
            make_table_with_source(
                HEADS,
                [make_cells(row) for row in rows],
                describe_source(on | {"date": " and ".join(dates)}, "timing/lessons.py --write"),
            ),
            LESSONS / "README.md",
        )


if __name__ == "__main__":
    main()
