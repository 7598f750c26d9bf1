"""Grade every dishonest submission at each level of the sandbox, and count how many achieve what they want.

    python benchmarks/validate/dishonest.py [--level LEVEL …] [--only TEXT] [--json] [--readme]

The files are tests/specimens/dishonest, each graded in a batch with an honest file (tests/arena). A file has achieved
something if it passed, stopped or misled the grader, read or changed what is not its own, reached a service, changed
the honest file's verdict, or left a process, a file, a mount or memory behind. Files that should achieve nothing are
graded together; what surprises is graded again by itself.

--json keeps the results in data/dishonest.json after each batch, and goes on where an earlier run stopped: a file that
has a result at a level, and has not changed since, is not graded again. --readme writes that file's table into
benchmarks/README.md. The exit status is 1 if a result is another one than the table of the specimens promises.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section
from benchmarks.timing.sandbox import list_levels
from grader.worker.levels import Level
from tests.arena.arena import Arena
from tests.arena.batches import attempt_batch, make_batches
from tests.arena.specimen import CLASSES, Attempt, Specimen, find_mistake, read_specimens

DATA = DATA_FOLDER / "dishonest.json"
LEVELS = ("bubblewrap", "landlock", "none")
HEADS = ["they try to", "files", *(f"{level}: {what}" for level in LEVELS for what in ("stopped", "achieved"))]

Results = dict[str, dict[str, dict]]  # by level and name


def make_digest(specimen: Specimen) -> str:
    """Return what changes with a specimen and with how it is graded; what is promised of it does not count."""
    how = specimen.problem, specimen.plants, specimen.kind, specimen.handed_in_as, specimen.beside, specimen.seconds
    return hashlib.sha256(specimen.file.read_bytes() + repr(how).encode()).hexdigest()[:16]


def describe(made: Attempt) -> dict:
    """Return what the data file keeps of an attempt."""
    kept = {"digest": make_digest(made.specimen), "verdict": made.words, "achieved": made.harms}
    return kept | {"seconds": round(made.seconds, 1)}


def measure(levels: Sequence[str], specimens: list[Specimen], results: Results) -> Iterator[None]:
    """Add what is missing to the results; yields after each file."""
    for level in levels:
        known = results.setdefault(level, {})
        missing = [one for one in specimens if level in one.levels and find_result(results, level, one) is None]
        if not missing:
            continue
        with tempfile.TemporaryDirectory(prefix="dishonest-") as folder:
            arena = Arena(Level(level), Path(folder))
            try:
                for batch in make_batches(missing, level):
                    for made in attempt_batch(arena, batch, partial(_report_harms, level)):
                        known[made.specimen.name] = describe(made)
                        click.echo(summarize(made), err=True)
                        yield
            finally:
                arena.close()


def _report_harms(level: str, harms: list[str]) -> None:
    click.echo(f"{level:10} together: {'; '.join(harms)[:400]}", err=True)


def summarize(made: Attempt) -> str:
    """Return a line on what became of a file, and another one if that is not what is promised."""
    achieved, mistake = "; ".join(made.harms)[:150], made.find_mistake()
    line = f"{made.level:10} {made.specimen.name:28} {made.seconds:4.0f} s  {made.words}  {achieved}"
    return f"{line}\n    not as promised: {mistake}" if mistake else line


def find_mistakes(results: Results, specimens: list[Specimen]) -> list[str]:
    """Return the results that are others than expected.toml promises."""
    return [
        f"{level}: {one.name}: {mistake}"
        for level in results
        for one in specimens
        if (known := find_result(results, level, one))
        and (mistake := find_mistake(one, level, known["verdict"], known["achieved"]))
    ]


def make_rows(results: Results, specimens: list[Specimen]) -> list[list[str]]:
    """Return cells under HEADS: a row for each class of files, and one for all."""
    groups = {words: [one for one in specimens if one.group == name] for name, words in CLASSES.items()}
    groups = {words: found for words, found in groups.items() if found} | {"all": specimens}
    rows = []
    for words, group in groups.items():
        row = [words, str(len(group))]
        for level in LEVELS:
            known = [found for one in group if (found := find_result(results, level, one))]
            achieved = sum(bool(one["achieved"]) for one in known)
            row += [str(len(known) - achieved), str(achieved)] if known else ["–", "–"]
        rows.append(row)
    return rows


def _load() -> dict:
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}


def _save(results: Results, levels: Sequence[str]) -> None:
    """Add the results of these levels to the data file, to which another run may add others meanwhile."""
    merged: Results = _load().get("results", {})
    for level in levels:
        merged[level] = merged.get(level, {}) | results.get(level, {})
    data = {"machine": describe_machine(), "results": merged}
    DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def find_gaps(results: Results, specimens: list[Specimen]) -> str:
    """Return a sentence on the files without a result of their present text; empty if there are none."""
    gaps = {
        level: sum(level in one.levels and find_result(results, level, one) is None for one in specimens)
        for level in LEVELS
    }
    words = ", ".join(f"{number} at {level}" for level, number in gaps.items() if number)
    return f" Not run yet: {words}." if words else ""


def find_result(results: Results, level: str, specimen: Specimen) -> dict | None:
    """Return the result of a specimen as it is now, or None."""
    known = results.get(level, {}).get(specimen.name)
    return known if known and known["digest"] == make_digest(specimen) else None


@click.command(help=__doc__)
@click.option("--level", "chosen", multiple=True, type=click.Choice(LEVELS), help="Without it, all of the machine's.")
@click.option("--only", default="", help="Files whose names contain this text.")
@click.option("--json", "keep", is_flag=True, help="Keep the results in data/dishonest.json.")
@click.option(
    "--readme", is_flag=True, help="Write the data file's table into benchmarks/README.md; alone, measure nothing."
)
def main(chosen: tuple[str, ...], only: str, keep: bool, readme: bool) -> None:
    import simt

    specimens = read_specimens()
    results: Results = _load().get("results", {}) if keep or readme else {}
    if keep or not readme:
        simt.warm_up()
        levels = [level for level in chosen or LEVELS if level in list_levels()]
        for _ in measure(levels, [one for one in specimens if only in one.name], results):
            if keep:
                _save(results, levels)
        show_table(HEADS, make_rows(results, specimens))
    if readme:
        source = describe_source(_load()["machine"], "validate/dishonest.py --json --readme") + find_gaps(
            results, specimens
        )
        write_section("dishonest", make_table_with_source(HEADS, make_rows(results, specimens), source))
    mistakes = find_mistakes(results, specimens)
    for mistake in mistakes:
        click.echo(mistake)
    sys.exit(bool(mistakes))


if __name__ == "__main__":
    main()
