"""Plant disguised copies among made submissions, and count how many `grader class similar` ranks among the first pairs.

    python benchmarks/validate/similar.py [--seeds N] [--json] [--readme]

A class has 300 submissions of one exercise: 276 that made students wrote by themselves, a tenth of them nearly alike
(tests/grader/classroom/honest_kernels.py), and 24 copies of others' work, each renamed, reordered, reformatted, with
other comments, rewritten loops and more (disguises.py). "found" counts the copies among the first 30 pairs, "by
passages" what winnowed k-grams of the same tokens would find, ranked by the same formula. False positives are the
pairs of independent work among the first 30. One process, one thread. --json keeps the figures in data/similar.json,
--readme writes that file's table into benchmarks/README.md.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section
from grader.classroom.handed_out import read_handed_exercise
from grader.classroom.similarity import Class, Pair, Table, Work, find_pairs, find_surroundings, read_class, score_alike
from tests.grader.classroom.disguises import plant_copies

DATA = DATA_FOLDER / "similar.json"
EXERCISES = ("conv2d", "groupnorm")
STUDENTS, COPIES, FIRST = 300, 24, 30
FIRST_SEED = 100  # seeds below were looked at while the comparison was written
HEADS = ["exercise", "seed", "found", "last at rank", "by passages", "false positives", "alike", "seconds"]


def measure(exercise: str, seed: int) -> dict:
    """Return what became of the planted copies of one class."""
    texts, planted = plant_copies(exercise, STUDENTS, COPIES, seed)
    works = [Work(f"{place:03}", f"student {place}", "1", text) for place, text in enumerate(texts)]
    begun = time.process_time()
    made = read_class(works, read_handed_exercise(exercise))
    pairs = find_pairs(made, STUDENTS * STUDENTS)
    seconds = time.process_time() - begun
    places = [_name(pair) for pair in pairs]
    ranks = [places.index(pair) + 1 if pair in places else len(places) + 1 for pair in planted]
    false = [
        {"pair": _name(pair), "alike": round(pair.alike, 2), "related": _is_related(_name(pair), planted)}
        for pair in pairs[:FIRST]
        if _name(pair) not in planted
    ]
    return {
        "exercise": exercise,
        "seed": seed,
        "found": sum(rank <= FIRST for rank in ranks),
        "ranks": sorted(ranks),
        "by_passages": _count_by_passages(made, planted),
        "false_positives": false,
        "seconds": round(seconds, 1),
    }


def _name(pair: Pair) -> tuple[int, int]:
    return int(pair.first.student), int(pair.second.student)


def _is_related(pair: tuple[int, int], planted: list[tuple[int, int]]) -> bool:
    """Return whether one of a pair is a copy or was copied: independent work that is like it appears twice."""
    return any(set(pair) & set(one) for one in planted)


def _count_by_passages(made: Class, planted: list[tuple[int, int]]) -> int:
    """Return how many copies winnowed k-grams would rank first, weighed and scaled as the comparison's own features."""
    table = Table([one.grams for one in made.prints], made.known["passages"], made.rows)
    base = find_surroundings(table.alike)
    score = score_alike(table.alike, base, table.shared)
    firsts, seconds = np.triu_indices(len(score), 1)
    order = np.argsort(-score[firsts, seconds], kind="stable")[:FIRST].tolist()
    return sum((int(firsts[at]), int(seconds[at])) in planted for at in order)


def make_rows(found: list[dict]) -> list[list[str]]:
    """Return cells under HEADS."""
    rows = []
    for one in found:
        false = one["false_positives"]
        rows.append(
            [
                one["exercise"],
                str(one["seed"]),
                f"{one['found']} of {COPIES}",
                str(one["ranks"][-1]),
                f"{one['by_passages']} of {COPIES}",
                str(len(false)),
                f"{min(each['alike'] for each in false):.2f} to {max(each['alike'] for each in false):.2f}"
                if false
                else "–",
                f"{one['seconds']:.1f}",
            ]
        )
    return rows


def show_false_positives(found: list[dict]) -> None:
    """Print the pairs of independent work among the first of each class."""
    for one in found:
        for each in one["false_positives"]:
            why = " (one of them was copied or is a copy)" if each["related"] else ""
            names = f"{each['pair'][0]} and {each['pair'][1]}"
            click.echo(f"{one['exercise']}, seed {one['seed']}: {names}, alike {each['alike']:.2f}{why}")


@click.command(help=__doc__)
@click.option("--seeds", type=click.IntRange(1, 50), default=5, show_default=True, help="Classes of each exercise.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/similar.json.")
@click.option(
    "--readme", is_flag=True, help="Write the data file's table into benchmarks/README.md; alone, measure nothing."
)
def main(seeds: int, keep: bool, readme: bool) -> None:
    if keep or not readme:
        found = [measure(name, FIRST_SEED + seed) for name in EXERCISES for seed in range(seeds)]
        show_table(HEADS, make_rows(found))
        show_false_positives(found)
        if keep:
            data = {"machine": describe_machine(), "classes": found}
            DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if readme:
        data = json.loads(DATA.read_text(encoding="utf-8"))
        source = describe_source(data["machine"], "validate/similar.py --json --readme")
        write_section("similar", make_table_with_source(HEADS, make_rows(data["classes"]), source))


if __name__ == "__main__":
    main()
