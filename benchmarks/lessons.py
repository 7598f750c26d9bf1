"""How long the lessons are: words, cells, and the seconds that running one takes, every kernel built anew.

    python benchmarks/lessons.py [NAME …]     run them one after another and print; --write puts the table into lessons/README.md
    python benchmarks/lessons.py --words      run none of them: seconds measured before stay

Reading is reckoned at 150 words a minute and a minute for each code cell; the exercise comes on top.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import click
import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from machine import machine  # noqa: E402
from tables import markdown, put_into_readme, show, source  # noqa: E402

LESSONS, DATA = ROOT / "lessons", ROOT / "benchmarks" / "data" / "lessons.json"
HEADS = ["lesson", "exercises", "words", "cells of code", "reading, about", "runs in"]


def seconds(path: Path) -> float:
    """The time that the notebook's cells take, with simt's one-time parts built and no kernel of the lesson."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as cache:
        for made in ("base", "header", "runtime"):
            place = Path(os.environ.get("SIMT_CACHE") or Path.home() / ".cache" / "simt") / made
            if place.is_dir():
                (Path(cache) / made).symlink_to(place)
        os.environ |= {"NBVAL": "1", "SIMT_CACHE": cache}
        try:
            begun = time.monotonic()
            NotebookClient(nbformat.read(path, 4), timeout=600, resources={"metadata": {"path": str(LESSONS)}}).execute()
            return time.monotonic() - begun
        finally:
            del os.environ["SIMT_CACHE"]


def measured(path: Path, run: bool) -> dict:
    notebook = nbformat.read(path, 4)
    text = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    words = len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())
    exercises = re.findall(r'grader\.check\("(\w+)"', "\n".join(code))
    counted = {"words": words, "cells": len(code), "exercises": exercises, "seconds": round(seconds(path), 1) if run else None}
    return {"name": path.stem, "title": notebook.cells[0].source.split("\n")[0].lstrip("# ")} | counted


def line(row: dict) -> list[str]:
    minutes = 5 * round((row["words"] / 150 + row["cells"]) / 5)
    exercises = ", ".join(f"`{name}.py`" for name in row["exercises"])
    return [f"[{row['title']}]({row['name']}.ipynb)", exercises, f"{row['words']:,}", str(row["cells"]), f"{minutes} minutes", f"{row['seconds']:.0f} s" if row["seconds"] else "not measured"]


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--words", is_flag=True, help="Only count words and cells.")
@click.option("--write", is_flag=True, help="Put the table into lessons/README.md.")
def main(names: tuple[str, ...], words: bool, write: bool) -> None:
    old = {row["name"]: row for row in json.loads(DATA.read_text())["rows"]} if DATA.exists() else {}
    chosen = [path for path in sorted(LESSONS.glob("[0-9]*.ipynb")) if not names or any(name in path.stem for name in names)]
    rows = old | {path.stem: measured(path, not words) for path in chosen}
    if words:
        rows = {name: row | {"seconds": row["seconds"] or old.get(name, {}).get("seconds")} for name, row in rows.items()}
    rows = [rows[path.stem] for path in sorted(LESSONS.glob("[0-9]*.ipynb")) if path.stem in rows]
    on = machine()
    DATA.write_text(json.dumps({"machine": on, "rows": rows}, indent=1) + "\n")
    show(HEADS, [line(row) for row in rows])
    if write:
        put_into_readme("lessons", markdown(HEADS, [line(row) for row in rows], source(on, "lessons.py --write")), LESSONS / "README.md")


if __name__ == "__main__":
    main()
