"""Compare simt's counters with ncu's on an H200, launch by launch: every micro-kernel and every kernel of kernels_ref.

    python benchmarks/validate/counters.py [NAME …]     count (a few minutes) and print; writes data/counters.json
    python benchmarks/validate/counters.py --write      also write COUNTERS.md from all of it
    python benchmarks/validate/counters.py --table      apply the rules again to the data file, and write COUNTERS.md

ncu's counters are in data/ncu.json, which ncu.py writes on a GPU. Requests and sectors of global loads, stores and
atomics must be equal; wavefronts of shared memory, bank conflicts, and active lanes per instruction must agree within
5 %. Where nvcc's machine code explains a difference, the row says so. Launches in which nvcc changed the bank conflicts
or the active lanes have a table of their own, as have all launches of backward.py files. Lanes that are not predicated
off are shown but not compared: machine code predicates off a branch that is not taken.
"""

from __future__ import annotations

import collections
import json
import re
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import BENCHMARKS, DATA_FOLDER, MICRO
from benchmarks.publish.tables import make_table, show_table
from benchmarks.validate import counted

NCU_FILE = DATA_FOLDER / "ncu.json"
DATA = DATA_FOLDER / "counters.json"
PAGE = BENCHMARKS / "COUNTERS.md"

NEAR = 0.05
EXACT = ("load requests", "load sectors", "store requests", "store sectors", "atomic requests", "atomic sectors")
CLOSE = ("shared wavefronts", "shared conflicts", "lanes active")
RULES = {"shared conflicts", "lanes active"}  # launches in which nvcc changes these have their own table
SHORT = 500  # warp instructions of a launch
# kernels whose blocks wait for others by reading a counter with atomic operations
WAITING = {"groupnorm_kernel"}


# ---- both counts ----


def read_ncu(row: dict) -> dict[str, float]:
    """Return a launch's counters by ncu. Its row leaves out counters of 0."""

    def total(*names: str) -> float:
        return sum(row.get(name, 0) for name in names)

    kinds = ("ld", "st", "atom")
    wavefronts = total(*(f"shared_{k}_own_wavefronts" for k in kinds))
    return {
        "load requests": total("global_ld_requests"),
        "load sectors": total("global_ld_sectors"),
        "store requests": total("global_st_requests"),
        "store sectors": total("global_st_sectors"),
        "atomic requests": total("global_atom_requests", "global_red_requests"),
        "atomic sectors": total("global_atom_sectors", "global_red_sectors"),
        "shared requests": total(*(f"shared_{k}_instructions" for k in kinds)),
        "shared wavefronts": wavefronts,
        "shared conflicts": total(*(f"shared_{k}_conflicts" for k in kinds)),
        "lanes active": row["thread_instructions"] / row["instructions"],
        "lanes at work": row["thread_instructions_on"] / row["instructions"],
        "instructions": row["instructions"],
    }


def read_simt(launch: dict) -> dict[str, float]:
    """Return the same counters by simt."""
    counters = launch["counters"]

    def add(memory: str, kinds: tuple[str, ...], what: str) -> float:
        return sum(counters.get(f"{memory}_{kind}", {}).get(what, 0) for kind in kinds)

    every = ("loads", "stores", "atomics")
    made = {}
    for kind in every:
        made[f"{kind[:-1]} requests"] = add("global", (kind,), "requests")
        made[f"{kind[:-1]} sectors"] = add("global", (kind,), "sectors")
    return made | {
        "shared requests": add("shared", every, "requests"),
        "shared wavefronts": add("shared", every, "wavefronts"),
        "shared conflicts": add("shared", every, "conflicts"),
        "lanes active": counters.get("active_lanes", 32.0),
        "lanes at work": counters.get("working_lanes", 32.0),
        "instructions": counters.get("warp_instructions", 0),
    }


# ---- the verdict ----


def find_differences(simt: dict[str, float], ncu: dict[str, float]) -> list[str]:
    """Return the names of the counters that disagree."""
    wrong = [name for name in EXACT if simt[name] != ncu[name]]
    # Where a kernel has next to no bank conflicts, ncu's are arbitration between warps: compare with all wavefronts.
    return wrong + [
        name
        for name in CLOSE
        if abs(simt[name] - ncu[name]) > NEAR * max(ncu[name], ncu["shared wavefronts"] * (name == "shared conflicts"))
    ]


class Explanation:
    """What nvcc did to a launch: sentences with counts of its instructions, and the differences that remain."""

    def __init__(self, wrong: list[str], code: dict[str, int]):
        self.sentences: list[str] = []
        self.left, self.code = list(wrong), code

    def add(self, sentence: str, *names: str) -> None:
        """Explain these differences, if any of them remains."""
        if any(name in self.left for name in names):
            self.sentences.append(sentence)
            self.left = [name for name in self.left if name not in names]

    def list_counts(self, *operations: str) -> str:
        """Return how often the machine code has each of these operations."""
        return ", ".join(f"{self.code[name]} {name}" for name in operations if self.code.get(name))


def explain(wrong: list[str], simt: dict, ncu: dict, code: dict[str, int], kernel: str) -> tuple[str, list[str]]:
    """Return what nvcc did, in sentences, and the differences that this does not explain."""
    found = Explanation(wrong, code)
    _explain_shared_loads(found, simt, ncu)
    _explain_atomics(found, simt, ncu, kernel)
    if code.get("FCHK") and code.get("CALL") and simt["lanes active"] > ncu["lanes active"]:
        counts = found.list_counts("FCHK", "CALL")
        found.add(f"a division of 0 takes a slow path that few lanes run: {counts}", "lanes active")
    _explain_global(found, simt, ncu)
    return "; ".join(found.sentences), found.left


def _explain_shared_loads(found: Explanation, simt: dict, ncu: dict) -> None:
    names = ("shared wavefronts", "shared conflicts")
    counts = found.list_counts("LDS", "LDS.64", "LDS.128", "STS", "STS.64", "STS.128")
    if ncu["shared wavefronts"] < simt["shared wavefronts"] and ("LDS.64" in found.code or "LDS.128" in found.code):
        found.add(f"neighbouring words of shared memory are loaded as one: {counts}", *names)
    elif ncu["shared requests"] < simt["shared requests"]:
        found.add(f"values that are in registers already are not loaded again: {counts}", *names)


def _explain_atomics(found: Explanation, simt: dict, ncu: dict, kernel: str) -> None:
    names = ("atomic requests", "atomic sectors")
    if "REDUX" in found.code or "POPC" in found.code:
        counts = found.list_counts("REDUX", "POPC", "REDG", "ATOMG")
        found.add(f"a warp's values are added up first: {counts}", *names, "lanes active")
    if found.code.get("ATOMS") and found.code.get("LDS", 0) > 1 and ncu["shared requests"] > simt["shared requests"]:
        found.add(
            f"an addition of floats is a compare-and-swap loop: {found.list_counts('ATOMS', 'LDS')}",
            *("shared wavefronts", "shared conflicts", "lanes active"),
        )
    if kernel in WAITING and ncu["atomic requests"] > simt["atomic requests"]:
        found.add("not by nvcc: blocks poll until others are done, and how often depends on the machine", *names)


def _explain_global(found: Explanation, simt: dict, ncu: dict) -> None:
    loads, stores = ("load requests", "load sectors"), ("store requests", "store sectors")
    code, ratio = found.code, ncu["load requests"] / simt["load requests"] if simt["load requests"] else 0.0
    counts = found.list_counts("LDG", "LDG.U8", "LDG.U16", "LDG.64", "LDG.128")
    if 0.4 <= ratio < 1:
        found.add(f"loads are merged, or moved behind the branch that needs them: {counts}", *loads)
    elif code.get("LDG", 0) >= 4 and 1 <= ratio < 1.15:
        names = (*loads, *(stores if code.get("STG", 0) >= 4 else ()), "lanes active")
        found.add(f"loops are unrolled, with separate code for their ends: {counts}", *names)
    if ncu["store requests"] > simt["store requests"] and code.get("STG.128") and code.get("STG"):
        found.add(f"one of a thread's vectors is stored word by word: {found.list_counts('STG', 'STG.128')}", *stores)
    if ncu["store requests"] < simt["store requests"]:
        found.add(f"stores are merged: {found.list_counts('STG', 'STG.64', 'STG.128')}", *stores)


def compare(name: str, label: str, launch: dict, row: dict, sass: dict[str, dict]) -> dict:
    """Return a row with both counts of a launch and its verdict."""
    return add_verdict(
        {
            "name": name,
            "label": label,
            "simt": read_simt(launch),
            "ncu": read_ncu(row),
            "sass": find_sass(row["kernel"], sass),
        }
    )


def add_verdict(row: dict) -> dict:
    """Return the row with its verdict.

    "equal"; "nvcc" if it merged or split accesses, as its machine code shows; "rewritten" if that also changed bank
    conflicts or active lanes; otherwise "differs".
    """
    wrong = find_differences(row["simt"], row["ncu"])
    kernel = re.sub(r"^void |<.*|,.*", "", row["label"])
    why, left = explain(wrong, row["simt"], row["ncu"], row["sass"], kernel) if wrong else ("", [])
    verdict = "differs" if left else "equal" if not wrong else "rewritten" if RULES & set(wrong) else "nvcc"
    return row | {"verdict": verdict, "why": why, "unexplained": left, "differs": wrong}


def find_sass(kernel: str, sass: dict[str, dict]) -> dict[str, int]:
    """Return a kernel's instruction counts. ncu and c++filt write template arguments differently."""

    def normalize(text: str) -> str:
        text = re.sub(r"\((?:int|bool|unsigned int)\)|\(Pattern\)", "", text)
        text = re.sub(r"^void |const| ", "", text)
        return text.replace("longlong", "long").split("(")[0]

    same = [code for found, code in sass.items() if normalize(found) == normalize(kernel)]
    if len(same) == 1:
        return same[0]
    base = [code for found, code in sass.items() if normalize(found).split("<")[0] == normalize(kernel).split("<")[0]]
    return base[0] if base else {"total": 0}


# ---- all of them ----


def count_programs(profiled: dict, names: set[str]) -> list[dict]:
    """Count and compare the micro-kernels' programs."""
    made = []
    for name, program in profiled["programs"].items():
        if names and name not in names:
            continue
        size = counted.read_sizes(MICRO / f"{name}.cu")[0]
        launches = counted.count("program", name, size)
        check_same(name, launches, program["small"])
        made += [
            compare(name, r["label"], s, r, program["sass"]) for s, r in zip(launches, program["small"], strict=True)
        ]
        print(f"{name}: {collections.Counter(r['verdict'] for r in made if r['name'] == name)}", flush=True)
    return made


def count_solutions(profiled: dict, names: set[str]) -> list[dict]:
    """Count and compare the solutions and steps."""
    made = []
    for name, solution in (profiled["solutions"] | profiled.get("steps", {})).items():
        if (names and name not in names) or "cases" not in solution:  # only its instructions are known
            continue
        launches = counted.count("cases", name)
        check_same(name, launches, solution["cases"])
        made += [
            compare(name, f"{r['kernel'].split('(')[0]}, {r['case']}", s, r, solution.get("sass", {}))
            for s, r in zip(launches, solution["cases"], strict=True)
        ]
        print(f"{name}: {collections.Counter(r['verdict'] for r in made if r['name'] == name)}", flush=True)
    return made


def check_same(name: str, launches: list[dict], rows: list[dict]) -> None:
    """Exit unless simt and ncu saw the same kernels with the same grids and blocks."""
    ours = [(s["kernel"].split("<")[0], list(s["grid"]), list(s["block"])) for s in launches]
    theirs = [(re.sub(r"^void ", "", r["kernel"]).split("(")[0].split("<")[0], r["grid"], r["block"]) for r in rows]
    if ours != theirs:
        raise SystemExit(f"{name}: simt launched {ours}\nand ncu saw {theirs}")


# ---- the table ----

HEADS = [
    "kernel",
    "loads",
    "stores",
    "atomics",
    "shared wavefronts (conflicts)",
    "lanes active, not predicated off",
    "verdict",
]


def make_cells(row: dict) -> list[str]:
    """Return a row's cells under HEADS."""
    simt, ncu = row["simt"], row["ncu"]

    def pair(*names: str, digits: int = 0) -> str:
        """Return simt's figures, and ncu's where they differ."""
        ours, theirs = (" / ".join(f"{side[name]:,.{digits}f}" for name in names) for side in (simt, ncu))
        return (
            ("–" if not any(simt[n] or ncu[n] for n in names) else ours) if ours == theirs else f"{ours} (ncu {theirs})"
        )

    verdict = f"nvcc: {row['why']}" if row["verdict"] in ("nvcc", "rewritten") else row["verdict"]
    if row["unexplained"]:
        verdict = "differs: " + ", ".join(row["unexplained"]) + (f" ({row['why']})" if row["why"] else "")
    return [
        f"{row['name']}: {row['label']}",
        pair("load requests", "load sectors"),
        pair("store requests", "store sectors"),
        pair("atomic requests", "atomic sectors"),
        pair("shared wavefronts", "shared conflicts"),
        pair("lanes active", "lanes at work", digits=1),
        verdict,
    ]


def make_page(data: dict) -> str:
    """Return COUNTERS.md."""
    ncu = data["ncu"]
    backward = [row for row in data["rows"] if row["name"].endswith("/backward")]
    rows = [row for row in data["rows"] if row not in backward]
    count = collections.Counter(row["verdict"] for row in rows)
    rewritten = [row for row in rows if row["verdict"] == "rewritten"]
    lines = [
        "# simt's counters and Nsight Compute's",
        "",
        f"Of {len(rows)} launches, {count['equal']} are equal in every figure. In {count['nvcc']} nvcc merged or split",
        "accesses, and the row says which; their bank conflicts and active lanes agree. "
        f"{count['rewritten']} have a table of their own below:",
        f"nvcc rewrote them. {count['differs']} differ otherwise.",
        "",
        "Requests / sectors of global memory must be equal; wavefronts of shared memory (bank conflicts among them)",
        "and active lanes must agree within 5 %. A single figure or pair is that of both. The micro-kernels are in",
        "`benchmarks/micro`, one file per name; kernels_ref runs at two of its small cases.",
        "",
        "Sectors of atomic operations follow a rule found with `benchmarks/validate/atomics.py`. Active lanes are the",
        "mean over all instructions, which nvcc and g++ make differently: simt counts each of g++'s as many times as",
        "nvcc makes instructions of it (EXPANSION in `simt/toolchain/disassembly/arithmetic.py`).",
        "",
        f"simt: {data['machine']['date']}, {data['machine']['compiler']}. "
        f"ncu: {ncu['date']}, {ncu['gpu']}, {ncu['nvcc']}, {ncu['ncu']}.",
        "`python benchmarks/validate/counters.py --write` made this.",
        "",
        *make_table(HEADS, [make_cells(row) for row in rows if row not in rewritten]),
    ]
    if rewritten:
        lines += [
            "",
            "## What nvcc rewrote",
            "",
            "Here the machine code has other bank conflicts than the source's accesses, or adds instructions that few",
            "lanes run. simt counts what the source says, so these launches test no rule against ncu; they show what a",
            "count of the source cannot know. For each, the table above has a launch without that effect:",
            "`a place in a list`, `strided, in turns` and `shared, scattered`.",
            "",
            *make_table(HEADS, map(make_cells, rewritten)),
        ]
    return "\n".join(lines + (describe_backward(backward) if backward else [])) + "\n"


def describe_backward(rows: list[dict]) -> list[str]:
    """Return the lines of COUNTERS.md on the launches of backward.py files."""
    off = [row for row in rows if row["verdict"] in ("rewritten", "differs")]
    others = [row for row in rows if row not in off]
    short, short_others = (sum(row["ncu"]["instructions"] < SHORT for row in some) for some in (off, others))
    figures = collections.Counter(
        name for row in off for name in row["differs"] if name in RULES or name in row["unexplained"]
    )
    more = sum(row["simt"]["lanes active"] > row["ncu"]["lanes active"] for row in off)
    return [
        "",
        "## Forward and backward",
        "",
        "The kernels of each backward.py at the same cases, forward and backward.",
        f"Of {len(rows)} launches {len(others)} are as above, equal or with accesses that nvcc merged or split. "
        f"{len(off)} are off: " + ", ".join(f"{count} in {name}" for name, count in figures.most_common()) + ".",
        f"In {more} of these {len(off)} simt has more active lanes than ncu. {short} of the {len(off)} have fewer than "
        f"{SHORT} warp instructions,",
        f"and {short_others} of the other {len(others)}.",
        "",
        *make_table(HEADS, map(make_cells, rows)),
    ]


def write_data(data: dict) -> None:
    """Write the data file with one row per line."""
    text = re.sub(
        r"\{\n\s+([^{}]*)\}", lambda m: "{" + re.sub(r"\s*\n\s*", " ", m[1]).strip() + "}", json.dumps(data, indent=1)
    )
    DATA.write_text(text + "\n")


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Also write COUNTERS.md.")
@click.option("--table", is_flag=True, help="Only write COUNTERS.md from the data file.")
def main(names: tuple[str, ...], write: bool, table: bool) -> None:
    profiled = json.loads(NCU_FILE.read_text())
    if table:
        data = json.loads(DATA.read_text())
        write_data(data | {"rows": [add_verdict(row) for row in data["rows"]]})
        PAGE.write_text(make_page(json.loads(DATA.read_text())))
        return
    rows = count_programs(profiled, set(names)) + count_solutions(profiled, set(names))
    if names and DATA.exists():  # the other rows stay, in their order
        new = {name: [r for r in rows if r["name"] == name] for name in names}
        old = json.loads(DATA.read_text())["rows"]
        rows = [
            r
            for name in dict.fromkeys([*profiled["programs"], *profiled["solutions"], *profiled.get("steps", {})])
            for r in (new[name] if name in new else [o for o in old if o["name"] == name])
        ]
    data = {"machine": describe_machine(), "ncu": profiled["machine"], "rows": [add_verdict(row) for row in rows]}
    write_data(data)
    rows = data["rows"]
    shown = [r for r in rows if not names or r["name"] in names]
    show_table(HEADS, [make_cells(row) for row in shown if row["verdict"] != "equal"])
    print(dict(collections.Counter(r["verdict"] for r in rows)))
    if write:
        PAGE.write_text(make_page(data))


if __name__ == "__main__":
    main()
