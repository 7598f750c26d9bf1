"""Lint the course's own problems: count the decoys and mutants that their cases reject, and name those that survive.

    python benchmarks/validate/lint.py [NAME …] [--json] [--readme]

The work is that of `grader lint-problem --all`, on the CPU with seed 0. --json keeps the figures in data/lint.json;
with NAME those of the others stay. --readme writes that file's table into benchmarks/README.md. The exit status is 1 if
something survives.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section

DATA = DATA_FOLDER / "lint.json"
HEADS = ["problem", "cases", "decoys killed", "mutants killed", "equivalent mutants", "survivors"]


def measure(name: str) -> dict:
    """Return the rates of one of the course's problems."""
    import torch

    from grader.lint import run
    from grader.lint.attempt import DECOY, MUTANT
    from grader.lint.result import EQUIVALENT
    from grader.problems import problem
    from grader.reports.lint import describe_survivor

    torch.set_num_threads(1)
    result = run.lint(problem.read(ROOT / "kernels_ref" / name / "model.py"))
    found: dict = {"sha256": result.sha256, "cases": len(result.cases)}
    for kind in (DECOY, MUTANT):
        killed, counted = result.rate(kind)
        equivalent = len(result.of_kind(kind, EQUIVALENT))
        found[f"{kind}s"] = {"killed": killed, "counted": counted, "equivalent": equivalent}
    found["survivors"] = [describe_survivor(one) for one in result.survivors]
    return found


def make_rows(problems: dict[str, dict]) -> list[list[str]]:
    """Return cells under HEADS, and a row for all problems."""
    rows = [
        [
            name,
            str(one["cases"]),
            *(f"{one[kind]['killed']} of {one[kind]['counted']}" for kind in ("decoys", "mutants")),
            str(one["mutants"]["equivalent"]),
            "; ".join(one["survivors"]) or "–",
        ]
        for name, one in problems.items()
    ]
    sums = {
        (kind, key): sum(one[kind][key] for one in problems.values())
        for kind in ("decoys", "mutants")
        for key in ("killed", "counted", "equivalent")
    }
    rates = [f"{sums[kind, 'killed']} of {sums[kind, 'counted']}" for kind in ("decoys", "mutants")]
    cases = sum(one["cases"] for one in problems.values())
    survivors = sum(len(one["survivors"]) for one in problems.values())
    return [*rows, ["all", str(cases), *rates, str(sums["mutants", "equivalent"]), str(survivors or "–")]]


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/lint.json.")
@click.option(
    "--readme", is_flag=True, help="Write the data file's table into benchmarks/README.md; alone, measure nothing."
)
def main(names: tuple[str, ...], keep: bool, readme: bool) -> None:
    if keep or not readme:
        known = sorted(path.parent.name for path in ROOT.glob("kernels_ref/*/model.py"))
        started = time.perf_counter()
        found = {name: measure(name) for name in known if not names or name in names}
        seconds = time.perf_counter() - started
        show_table(HEADS, make_rows(found))
        if keep:
            old = json.loads(DATA.read_text(encoding="utf-8")) if names else {"seconds": 0, "problems": {}}
            problems = {name: one for name, one in sorted((old["problems"] | found).items()) if name in known}
            data = {"machine": describe_machine(), "seconds": old["seconds"] or round(seconds), "problems": problems}
            DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if readme:
        data = json.loads(DATA.read_text(encoding="utf-8"))
        source = describe_source(data["machine"], "validate/lint.py --json --readme")
        write_section("lint", make_table_with_source(HEADS, make_rows(data["problems"]), source))
        found = data["problems"]
    sys.exit(any(one["survivors"] for one in found.values()))


if __name__ == "__main__":
    main()
