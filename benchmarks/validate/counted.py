"""Count with simt what a micro-kernel's program or a file of kernels_ref launches, each in a process of its own.

    python benchmarks/validate/counted.py program NAME SIZE OUT [BLOCKS]    benchmarks/micro/NAME.cu (or unseen/), this
                                                                            argument
    python benchmarks/validate/counted.py cases NAME OUT                    kernels_ref/NAME at references.counted_cases
    python benchmarks/validate/counted.py full NAME OUT                     kernels_ref/NAME, one image of full size
    python benchmarks/validate/counted.py step NAME OUT                     the same of a step, such as conv2d/01_naive

BLOCKS: count this many blocks of each launch and extrapolate; the other blocks run only where a kernel depends on what
they write.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import MICRO, ROOT, UNSEEN

DEVICE = "H200"
# Steps whose launches differ between one image and the batch: all images are counted, with these smaller sizes.
SMALL_IMAGES = {"groupnorm/01_naive": {"dim1": 2}}
# Problems without images: every block is counted, with sums of this length and of twice this length. A histogram's grid
# has as many blocks at each length, or grows with it.
SHORT_SUMS = {
    "matmul": {"K": 32},
    "histogram": {"length": 2**21},
    "compaction": {"length": 2**21},
    "radix_pass": {"length": 2**22},  # for which its scan has one round, and for twice as many two
}
# Problems whose blocks all do the same, and of which one image takes minutes, or which have a single large one: so many
# blocks a launch are counted.
SAMPLED = {"attention": 8, "int4_matvec": 8, "int8_matmul": 8, "fp8_matvec": 8}
# Problems of one vector: every block is counted at this length, and the work at full size is that for as many blocks.
SHORT_VECTORS = {"scan": {"length": 2**21}}
WEIGHTS = {"arrange_kernel"}  # kernels that work on weights alone, once per batch
DEPENDENT = {"chase", "histogram"}  # programs whose kernels read addresses that an earlier kernel wrote


def _list_rows(report) -> list[dict]:
    """Return each launch's counters, without those of its lines."""
    return [{key: value for key, value in launch.items() if key != "lines"} for launch in report.as_dict()["launches"]]


def list_programs() -> dict[str, Path]:
    """Return the programs by name: the micro-kernels, and the kernels that the time model was not made from."""
    return {file.stem: file for folder in (MICRO, UNSEEN) for file in sorted(folder.glob("*.cu"))}


def read_sizes(program: Path) -> tuple[str, str]:
    """Return the small and the large argument, from the program's head."""
    found = re.search(r"^// sizes: (\d+) (\d+)", program.read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{program.name} has no line '// sizes: SMALL LARGE'")
    return found[1], found[2]


def _count_program(name: str, size: str, out: str, blocks: str = "0") -> None:
    import simt
    from simt.runtime import programs

    built = programs.make([list_programs()[name]], programs.Choices("count", device=DEVICE))
    chosen = {"sample": int(blocks), "partial": name not in DEPENDENT} if int(blocks) else {}
    with simt.run(device=DEVICE, seconds=300), simt.count(**chosen) as report:
        sys.stdout.flush()
        end = programs.run(built, [size])
    Path(out).write_text(json.dumps(_list_rows(report)))
    for message in end.messages:
        print(message, file=sys.stderr)
    os._exit(end.status)


def _count_cases(name: str, out: str) -> None:
    import simt
    from benchmarks import references

    simt.enable()
    file = next(f for f in references.counted() if references.name(f) == name)
    module = references.load(file)
    rows = []
    for case in references.counted_cases(file):
        run = references.prepare(file, module, case, "cpu")
        with simt.count(device=DEVICE, seconds=300) as report:
            run()
        rows += [row | {"case": case.name} for row in _list_rows(report)]
    Path(out).write_text(json.dumps(rows))


def _count_full(name: str, out: str) -> None:
    """Count every block of one image at full size. "factor": how many times as large the whole launch is."""
    import torch

    import simt
    from benchmarks import references

    simt.enable()
    file = next(f for f in references.files() if references.name(f) == name)
    module = references.load(file)
    if name in SHORT_SUMS:
        Path(out).write_text(json.dumps(_count_short_sums(file, module, SHORT_SUMS[name], references.sizes(file))))
        return
    if name in SAMPLED:
        Path(out).write_text(json.dumps(_count_sample(file, module, SAMPLED[name])))
        return
    batch, counted = references.batch(file)
    whole = references.sizes(file)[batch]
    # half of the images that ncu sees: one round of im2col and its product
    part = references.FULL_SIZES.get(file.parent.name, {batch: whole})[batch] // 2
    run = references.prepare(file, module, references.full(file, **{batch: counted}), "cpu")
    torch.set_num_threads(2)
    with simt.count(device=DEVICE, seconds=300) as report:
        run()
    rows = _list_rows(report)
    for row in rows:
        row["factor"] = part if row["kernel"] in ("im2col_kernel", "matmul_kernel") else whole / counted
    Path(out).write_text(json.dumps(rows))


def _count_step(name: str, out: str) -> None:
    """Write a row for each kernel of a step, counting every block of one image (of references.BATCHES: of that part).

    "factor": images (or parts) per launch. "launches": launches in a run. Both come from a run at full size, on memory
    that is never written, in which three blocks per launch run. "longer": how many times as long each thread works at
    full size. "source": the digest of the step's code. "twice": the counters with sums twice as long; those at full
    size lie on the straight line through both, "times" their distance beyond the first.
    """
    import simt
    from benchmarks import references

    simt.enable()
    file = next(f for f in references.files() if references.name(f) == name)
    module = references.load(file)
    full_sizes = references.sizes(file)
    if file.parent.parent.name in SHORT_SUMS:
        Path(out).write_text(
            json.dumps(_count_short_sums(file, module, SHORT_SUMS[file.parent.parent.name], full_sizes))
        )
        return
    if file.parent.parent.name in SAMPLED:
        Path(out).write_text(json.dumps(_count_sample(file, module, SAMPLED[file.parent.parent.name])))
        return
    if file.parent.parent.name in SHORT_VECTORS:
        Path(out).write_text(json.dumps(_count_short_vector(file, module, SHORT_VECTORS[file.parent.parent.name])))
        return
    batch, counted = references.batch(file)
    sizes = SMALL_IMAGES.get(name, {batch: counted})
    run = references.prepare(file, module, references.full(file, **sizes), "cpu")
    with simt.count(device=DEVICE, seconds=300) as report:
        run()
    rows = {row["kernel"]: row for row in _list_rows(report)}
    if len(rows) != len(report.launches):
        raise RuntimeError(f"{name} launches a kernel twice for one image")
    images, whole = 1, report
    if batch in sizes:
        images = full_sizes[batch] / sizes[batch]
        with simt.count(device=DEVICE, seconds=300, sample=1, partial=True) as whole:
            references.prepare_unwritten(file, module)()
    longer = math.prod(full_sizes[size] // small for size, small in sizes.items() if size != batch)
    for kernel, row in rows.items():
        launches = sum(launch.kernel == kernel for launch in whole.launches)
        row |= {
            "factor": 1 if kernel in WEIGHTS else images / launches,
            "launches": launches,
            "longer": longer,
            "source": references.source(file),
        }
    Path(out).write_text(json.dumps(list(rows.values())))


def _count_sample(file: Path, module, blocks: int) -> list[dict]:
    """Return the rows of a problem at full size, from so many blocks a launch, on memory that is never written."""
    import simt
    from benchmarks import references

    with simt.count(device=DEVICE, seconds=300, sample=blocks, partial=True) as report:
        references.prepare_unwritten(file, module)()
    extra = {"factor": 1, "launches": 1, "longer": 1, "source": references.source(file)}
    return [row | extra for row in _list_rows(report)]


def _count_short_sums(file: Path, module, sizes: dict[str, int], full_sizes: dict[str, int]) -> list[dict]:
    """Return the rows of a problem without images, counted with sums of length `sizes` and of twice that."""
    import simt
    from benchmarks import references

    counted = []
    for factor in (1, 2):
        run = references.prepare(
            file, module, references.full(file, **{name: factor * size for name, size in sizes.items()}), "cpu"
        )
        # every block: extrapolation would multiply a sample's error
        with simt.count(device=DEVICE, seconds=300, sample=1 << 30) as report:
            run()
        counted.append(_list_rows(report))
    (times,) = (full_sizes[name] / size - 1 for name, size in sizes.items())
    extra = {"factor": 1, "launches": 1, "longer": 1, "source": references.source(file), "times": times}
    return [row | extra | {"twice": twice} for row, twice in zip(*counted, strict=True)]


def _count_short_vector(file: Path, module, sizes: dict[str, int]) -> list[dict]:
    """Return the rows of a problem of one vector: one for each kernel and number of blocks that it has at full size.

    Of each kernel the largest launch is counted at length `sizes`; of several of that size, the one in the middle.
    """
    import simt
    from benchmarks import references

    run = references.prepare(file, module, references.full(file, **sizes), "cpu")
    # every block: blocks may hand values on to others
    with simt.count(device=DEVICE, seconds=300, sample=1 << 30) as report:
        run()
    counted: dict[str, list[dict]] = {}
    for row in _list_rows(report):
        counted.setdefault(row["kernel"], []).append(row)
    with simt.count(device=DEVICE, seconds=300, sample=1, partial=True) as whole:
        references.prepare_unwritten(file, module)()
    times: dict[tuple[str, int], int] = {}
    for launch in whole.launches:
        times[launch.kernel, launch.blocks] = times.get((launch.kernel, launch.blocks), 0) + 1
    rows = []
    for (kernel, blocks), launches in times.items():
        most = max(_count_blocks(row) for row in counted[kernel])
        largest = [row for row in counted[kernel] if _count_blocks(row) == most]
        extra = {"factor": blocks / most, "launches": launches, "longer": 1, "source": references.source(file)}
        rows.append(largest[len(largest) // 2] | extra)
    return rows


def _count_blocks(row: dict) -> int:
    return math.prod(row["grid"])


def count(*arguments: str) -> list[dict]:
    """Run this script with these arguments (without OUT) and return a row for each launch. Raises RuntimeError."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        at = {"program": 3, "cases": 2, "full": 2, "step": 2}[arguments[0]]
        command = [sys.executable, __file__, *arguments[:at], file.name, *arguments[at:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.returncode}\n{done.stderr[-3000:]}")
        return json.loads(Path(file.name).read_text())


KINDS = {
    "program": (_count_program, "NAME SIZE OUT"),
    "cases": (_count_cases, "NAME OUT"),
    "full": (_count_full, "NAME OUT"),
    "step": (_count_step, "NAME OUT"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="|".join(KINDS))
    for kind, (_, words) in KINDS.items():
        takes = kinds.add_parser(kind)
        for word in words.split():
            takes.add_argument(word)
        if kind == "program":
            takes.add_argument("BLOCKS", nargs="?", type=int, default=0)
    given = vars(parser.parse_args())
    kind, name, out = given.pop("kind"), given["NAME"], Path(given["OUT"])
    known = _list_names(kind)
    if name not in known:
        parser.error(f"{name} is none of {', '.join(known)}.")
    if out.is_dir() or not out.parent.is_dir():  # found now, not after counting
        parser.error(f"{out} cannot be written: it is a folder, or in none.")
    KINDS[kind][0](*given.values())


def _list_names(kind: str) -> list[str]:
    """Return the names that can be counted."""
    if kind == "program":
        return sorted(list_programs())
    from benchmarks import references

    return [references.name(file) for file in (references.counted() if kind == "cases" else references.files())]


if __name__ == "__main__":
    main()
