"""Holds simt's counters against ncu's on an H200, launch by launch, for every micro-kernel and every kernel of kernels_ref.

    python benchmarks/counters.py [NAME …]     count (a few minutes) and print; writes data/counters.json
    python benchmarks/counters.py --write      also write COUNTERS.md from all of it
    python benchmarks/counters.py --table      judge what the data file holds anew, and write COUNTERS.md

ncu's side is data/ncu.json (ncu.py makes it on a GPU). Compared are requests and sectors of global loads, stores and
atomics, which must be equal; wavefronts of shared memory, conflicts among them, and active lanes an instruction, within 5 %.
Where the machine code that nvcc made explains a difference, the row says so; launches in which nvcc
changed the conflicts or the lanes themselves stand in a table of their own, and all of a backward.py's in another. Lanes at work
(not predicated off) are shown, not judged: a branch that is not taken counts as predicated off in machine code.
"""

from __future__ import annotations

import collections
import json
import re
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import counted  # noqa: E402
from machine import machine  # noqa: E402
from tables import show  # noqa: E402

TRUTH = ROOT / "benchmarks" / "data" / "ncu.json"
DATA = ROOT / "benchmarks" / "data" / "counters.json"
PAGE = ROOT / "benchmarks" / "COUNTERS.md"

NEAR = 0.05
EXACT = ("load requests", "load sectors", "store requests", "store sectors", "atomic requests", "atomic sectors")
CLOSE = ("shared wavefronts", "shared conflicts", "lanes active")
RULES = {"shared conflicts", "lanes active"}  # a launch in which nvcc changes these stands apart
SHORT = 500  # warp instructions of a launch
WAITING = {"groupnorm_kernel"}  # kernels whose blocks wait for others, reading a counter by an atomic operation again and again


# ---- the two sides ----


def by_ncu(row: dict) -> dict[str, float]:
    """A launch as ncu counted it. A counter of 0 is left out of its row."""

    def total(*names: str) -> float:
        return sum(row.get(name, 0) for name in names)

    kinds = ("ld", "st", "atom")
    wavefronts = total(*(f"shared_{k}_own_wavefronts" for k in kinds))
    return {
        "load requests": total("global_ld_requests"), "load sectors": total("global_ld_sectors"),
        "store requests": total("global_st_requests"), "store sectors": total("global_st_sectors"),
        "atomic requests": total("global_atom_requests", "global_red_requests"), "atomic sectors": total("global_atom_sectors", "global_red_sectors"),
        "shared requests": total(*(f"shared_{k}_instructions" for k in kinds)), "shared wavefronts": wavefronts,
        "shared conflicts": total(*(f"shared_{k}_conflicts" for k in kinds)),
        "lanes active": row["thread_instructions"] / row["instructions"], "lanes at work": row["thread_instructions_on"] / row["instructions"],
        "instructions": row["instructions"],
    }  # fmt: skip


def by_simt(launch: dict) -> dict[str, float]:
    """The same launch as simt counted it."""
    counters = launch["counters"]

    def of(memory: str, kinds: tuple[str, ...], what: str) -> float:
        return sum(counters.get(f"{memory}_{kind}", {}).get(what, 0) for kind in kinds)

    every = ("loads", "stores", "atomics")
    made = {}
    for kind in every:
        made[f"{kind[:-1]} requests"] = of("global", (kind,), "requests")
        made[f"{kind[:-1]} sectors"] = of("global", (kind,), "sectors")
    return made | {
        "shared requests": of("shared", every, "requests"), "shared wavefronts": of("shared", every, "wavefronts"),
        "shared conflicts": of("shared", every, "conflicts"),
        "lanes active": counters.get("active_lanes", 32.0), "lanes at work": counters.get("working_lanes", 32.0),
        "instructions": counters.get("warp_instructions", 0),
    }  # fmt: skip


# ---- the verdict ----


def differing(simt: dict[str, float], ncu: dict[str, float]) -> list[str]:
    """The figures that are not what they must be."""
    wrong = [name for name in EXACT if simt[name] != ncu[name]]
    # Conflicts of a kernel that has next to none are the hardware's arbitration between warps: compared with all wavefronts.
    return wrong + [name for name in CLOSE if abs(simt[name] - ncu[name]) > NEAR * max(ncu[name], ncu["shared wavefronts"] * (name == "shared conflicts"))]


def explanation(wrong: list[str], simt: dict, ncu: dict, code: dict[str, int], kernel: str = "") -> tuple[str, list[str]]:
    """What nvcc did, in words with the counts of its instructions, and what is left unexplained."""
    said, left = [], list(wrong)

    def explains(words: str, *names: str) -> None:
        if any(name in left for name in names):
            said.append(words)
            left[:] = [name for name in left if name not in names]

    def listed(*names: str) -> str:
        found = [f"{code[name]} {name}" for name in names if code.get(name)]
        return ", ".join(found)

    loads = listed("LDG", "LDG.U8", "LDG.U16", "LDG.64", "LDG.128")
    wide = listed("LDS", "LDS.64", "LDS.128", "STS", "STS.64", "STS.128")
    if ncu["shared wavefronts"] < simt["shared wavefronts"] and ("LDS.64" in code or "LDS.128" in code):
        explains(f"neighbouring words of shared memory are loaded as one: {wide}", "shared wavefronts", "shared conflicts")
    elif ncu["shared requests"] < simt["shared requests"]:
        explains(f"what is in registers already is not loaded again: {wide}", "shared wavefronts", "shared conflicts")
    if "REDUX" in code or "POPC" in code:
        explains(f"a warp's values are added up first: {listed('REDUX', 'POPC', 'REDG', 'ATOMG')}", "atomic requests", "atomic sectors", "lanes active")
    if code.get("ATOMS") and code.get("LDS", 0) > 1 and ncu["shared requests"] > simt["shared requests"]:
        explains(f"an addition of floats is a loop that compares and swaps: {listed('ATOMS', 'LDS')}", "shared wavefronts", "shared conflicts", "lanes active")
    if kernel in WAITING and ncu["atomic requests"] > simt["atomic requests"]:
        explains("not nvcc's doing: blocks ask until others are done, and how often that is depends on the machine", "atomic requests", "atomic sectors")
    if code.get("FCHK") and code.get("CALL") and simt["lanes active"] > ncu["lanes active"]:
        explains(f"a division of 0 takes the long way, in lanes by themselves: {listed('FCHK', 'CALL')}", "lanes active")
    if simt["load requests"] > ncu["load requests"] >= 0.4 * simt["load requests"]:
        explains(f"loads are merged, or moved behind the branch that needs them: {loads}", "load requests", "load sectors")
    elif code.get("LDG", 0) >= 4 and simt["load requests"] <= ncu["load requests"] < 1.15 * simt["load requests"]:
        explains(
            f"loops are unrolled, and their ragged ends taken apart: {loads}",
            "load requests", "load sectors", *(["store requests", "store sectors"] if code.get("STG", 0) >= 4 else []), "lanes active",
        )  # fmt: skip
    if ncu["store requests"] > simt["store requests"] and code.get("STG.128") and code.get("STG"):
        explains(f"one of a thread's vectors is stored word by word: {listed('STG', 'STG.128')}", "store requests", "store sectors")
    if ncu["store requests"] < simt["store requests"]:
        explains(f"stores are merged: {listed('STG', 'STG.64', 'STG.128')}", "store requests", "store sectors")
    return "; ".join(said), left


def compared(name: str, label: str, launch: dict, row: dict, sass: dict[str, dict]) -> dict:
    return judged({"name": name, "label": label, "simt": by_simt(launch), "ncu": by_ncu(row), "sass": sass_of(row["kernel"], sass)})


def judged(row: dict) -> dict:
    """The row with its verdict: equal, nvcc (it merged or split accesses: its machine code says which), rewritten (that changed even the
    conflicts or the lanes), or differs."""
    wrong = differing(row["simt"], row["ncu"])
    kernel = re.sub(r"^void |<.*|,.*", "", row["label"])
    why, left = explanation(wrong, row["simt"], row["ncu"], row["sass"], kernel) if wrong else ("", [])
    verdict = "differs" if left else "equal" if not wrong else "rewritten" if RULES & set(wrong) else "nvcc"
    return row | {"verdict": verdict, "why": why, "unexplained": left, "differs": wrong}


def sass_of(kernel: str, sass: dict[str, dict]) -> dict[str, int]:
    """The machine code of a kernel: ncu and c++filt write template arguments differently."""

    def plain(text: str) -> str:
        text = re.sub(r"\((?:int|bool|unsigned int)\)|\(Pattern\)", "", text)
        text = re.sub(r"^void |const| ", "", text)
        return text.replace("longlong", "long").split("(")[0]

    same = [code for found, code in sass.items() if plain(found) == plain(kernel)]
    if len(same) == 1:
        return same[0]
    base = [code for found, code in sass.items() if plain(found).split("<")[0] == plain(kernel).split("<")[0]]
    return base[0] if base else {"total": 0}


# ---- all of them ----


def programs(truth: dict, names: set[str]) -> list[dict]:
    made = []
    for name, program in truth["programs"].items():
        if names and name not in names:
            continue
        size = re.search(r"^// sizes: (\d+)", (ROOT / "benchmarks" / "micro" / f"{name}.cu").read_text(), re.MULTILINE)[1]
        launches = counted.count("program", name, size)
        check_same(name, launches, program["small"])
        made += [compared(name, r["label"], s, r, program["sass"]) for s, r in zip(launches, program["small"], strict=True)]
        print(f"{name}: {collections.Counter(r['verdict'] for r in made if r['name'] == name)}", flush=True)
    return made


def solutions(truth: dict, names: set[str]) -> list[dict]:
    """Of solutions and steps."""
    made = []
    for name, solution in (truth["solutions"] | truth.get("steps", {})).items():
        if (names and name not in names) or "cases" not in solution:  # its instructions may be known before
            continue
        launches = counted.count("cases", name)
        check_same(name, launches, solution["cases"])
        made += [
            compared(name, f"{r['kernel'].split('(')[0]}, {r['case']}", s, r, solution.get("sass", {})) for s, r in zip(launches, solution["cases"], strict=True)
        ]
        print(f"{name}: {collections.Counter(r['verdict'] for r in made if r['name'] == name)}", flush=True)
    return made


def check_same(name: str, launches: list[dict], rows: list[dict]) -> None:
    """Both sides must have launched the same kernels in the same grids."""
    ours = [(s["kernel"].split("<")[0], list(s["grid"]), list(s["block"])) for s in launches]
    theirs = [(re.sub(r"^void ", "", r["kernel"]).split("(")[0].split("<")[0], r["grid"], r["block"]) for r in rows]
    if ours != theirs:
        raise SystemExit(f"{name}: simt launched {ours}\nand ncu saw {theirs}")


# ---- the table ----

HEADS = ["kernel", "loads", "stores", "atomics", "shared wavefronts (conflicts)", "lanes active, at work", "verdict"]


def cells(row: dict) -> list[str]:
    simt, ncu = row["simt"], row["ncu"]

    def pair(*names: str, digits: int = 0) -> str:
        """simt's figures, and ncu's where they are others."""
        ours, theirs = (" / ".join(f"{side[name]:,.{digits}f}" for name in names) for side in (simt, ncu))
        return ("–" if not any(simt[n] or ncu[n] for n in names) else ours) if ours == theirs else f"{ours} (ncu {theirs})"

    verdict = f"nvcc: {row['why']}" if row["verdict"] in ("nvcc", "rewritten") else row["verdict"]
    if row["unexplained"]:
        verdict = "differs: " + ", ".join(row["unexplained"]) + (f" ({row['why']})" if row["why"] else "")
    return [
        f"{row['name']}: {row['label']}", pair("load requests", "load sectors"), pair("store requests", "store sectors"),
        pair("atomic requests", "atomic sectors"), pair("shared wavefronts", "shared conflicts"), pair("lanes active", "lanes at work", digits=1), verdict,
    ]  # fmt: skip


def page(data: dict) -> str:
    m = data["ncu"]
    backward = [r for r in data["rows"] if r["name"].endswith("/backward")]
    rows = [r for r in data["rows"] if r not in backward]
    count = collections.Counter(r["verdict"] for r in rows)
    apart = [r for r in rows if r["verdict"] == "rewritten"]
    head = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines = [
        "# simt's counters beside Nsight Compute's",
        "",
        f"Of {len(rows)} launches, {count['equal']} are equal in every figure. In {count['nvcc']} nvcc merged or split accesses, and the row says which; "
        f"their conflicts and lanes agree. {count['rewritten']} stand apart below: nvcc rewrote them. {count['differs']} differ otherwise.",
        "",
        "Requests / sectors of global memory must be equal; wavefronts of shared memory (conflicts among them) and lanes within 5 %. Where one figure or pair",
        "stands, both sides have it. The micro-kernels are in `benchmarks/micro`, one file a name; kernels_ref runs at two of its small cases.",
        "",
        "Sectors of atomic operations follow a rule found with `benchmarks/atomics.py`. How many lanes are active is the mean over all instructions, which",
        "nvcc and g++ make differently: simt takes each of g++'s for as many as nvcc makes of it (EXPANSION in `simt/disassembly.py`).",
        "",
        f"simt: {data['machine']['date']}, {data['machine']['compiler']}. ncu: {m['date']}, {m['gpu']}, {m['nvcc']}, {m['ncu']}.",
        "`python benchmarks/counters.py --write` made this.",
        "",
        *head,
    ]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows if row not in apart]
    if apart:
        lines += [
            "",
            "## What nvcc rewrote",
            "",
            "Here the machine code has other conflicts than the source's accesses, or adds instructions that few lanes run. simt counts what the source says, so",
            "these launches hold no rule against ncu; they show what a count of the source cannot know. Beside each stands, above, a launch without that:",
            "`a place in a list`, `strided, in turns` and `shared, scattered`.",
            "",
            *head,
        ]
        lines += ["| " + " | ".join(cells(row)) + " |" for row in apart]
    if backward:
        off = [r for r in backward if r["verdict"] in ("rewritten", "differs")]
        kept = [r for r in backward if r not in off]
        short, others = (sum(r["ncu"]["instructions"] < SHORT for r in some) for some in (off, kept))
        figures = collections.Counter(name for r in off for name in r["differs"] if name in RULES or name in r["unexplained"])
        more = sum(r["simt"]["lanes active"] > r["ncu"]["lanes active"] for r in off)
        lines += [
            "",
            "## Forward and backward",
            "",
            "Beside the references and their steps: the kernels of each backward.py at the same cases, forward and backward.",
            f"Of {len(backward)} launches {len(kept)} are as above, equal or with what nvcc merged or split. {len(off)} are off: "
            + ", ".join(f"{count} in {name}" for name, count in figures.most_common()) + ".",
            f"In {more} of these {len(off)} simt has more lanes active than ncu. Fewer than {SHORT} warp instructions are taken by {short} of the {len(off)}, "
            f"and by {others} of the other {len(kept)}.",
            "",
            *head,
        ]
        lines += ["| " + " | ".join(cells(row)) + " |" for row in backward]
    return "\n".join(lines) + "\n"


def write_data(data: dict) -> None:
    text = re.sub(r"\{\n\s+([^{}]*)\}", lambda m: "{" + re.sub(r"\s*\n\s*", " ", m[1]).strip() + "}", json.dumps(data, indent=1))
    DATA.write_text(text + "\n")


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Also write COUNTERS.md.")
@click.option("--table", is_flag=True, help="Only write COUNTERS.md, from the data file.")
def main(names: tuple[str, ...], write: bool, table: bool) -> None:
    truth = json.loads(TRUTH.read_text())
    if table:
        data = json.loads(DATA.read_text())
        write_data(data | {"rows": [judged(row) for row in data["rows"]]})
        PAGE.write_text(page(json.loads(DATA.read_text())))
        return
    rows = programs(truth, set(names)) + solutions(truth, set(names))
    if names and DATA.exists():  # the others stay, in their order
        new = {name: [r for r in rows if r["name"] == name] for name in names}
        old = json.loads(DATA.read_text())["rows"]
        rows = [r for name in dict.fromkeys([*truth["programs"], *truth["solutions"], *truth.get("steps", {})]) for r in (new[name] if name in new else [o for o in old if o["name"] == name])]
    data = {"machine": machine(), "ncu": truth["machine"], "rows": [judged(row) for row in rows]}
    write_data(data)
    rows = data["rows"]
    shown = [r for r in rows if not names or r["name"] in names]
    show(HEADS, [cells(row) for row in shown if row["verdict"] != "equal"])
    print(dict(collections.Counter(r["verdict"] for r in rows)))
    if write:
        PAGE.write_text(page(data))


if __name__ == "__main__":
    main()
