"""Draw what a run measured."""

from __future__ import annotations

from pathlib import Path

from grader.bench import growth
from grader.bench.rows import OURS
from grader.problems import cases


def draw(data: dict, folder: Path) -> list[Path]:
    """Save SVG pictures into the folder and return their paths.

    Each problem and class has a ladder, and another of forward and backward; a problem whose launches are known has a
    waterfall; each problem of a sweep has curves.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn, device = [], data["machine"]["name"].removeprefix("NVIDIA ")
    for name, made in data["problems"].items():
        if isinstance(made.get("sizes"), list):
            drawn += (
                [growth.draw_curves(name, made, device).save(folder / f"{name}.svg")]
                if growth.find_curves(made)
                else []
            )
            continue
        for part, label, end in ((made, "", ""), (made.get("backward", {}), ", forward and backward", "_backward")):
            drawn += _ladders(part.get("rows", []), f"{name}{label}", device, folder / f"{name}{{}}{end}_ladder.svg")
        drawn += _waterfall(made, device, folder / f"{name}_waterfall.svg")
    return drawn


def _ladders(all_rows: list[dict], name: str, device: str, file: Path) -> list[Path]:
    """Draw a ladder for each class. file: its name, with {} for the class."""
    from grader.pictures import Step, ladder

    drawn = []
    for precision in cases.PRECISIONS:
        rows = [r for r in all_rows if "ms" in r and r["precision"] == precision]
        rows.sort(key=lambda r: -r["ms"])
        given = [r for r in rows if r["kind"] == "submission"]
        own = Step(given[0]["name"], given[0]["ms"] / 1e3) if len(given) == 1 else None
        steps = [Step(r["name"], r["ms"] / 1e3) for r in rows if own is None or r["kind"] != "submission"]
        if any(r["kind"] in OURS for r in rows) and steps:
            title = name if precision == "fp32" else f"{name}, TF32"
            picture = ladder(steps, own, device=device, problem=title)
            drawn.append(picture.save(file.with_name(file.name.format(f"_{precision}"))))
    return drawn


def _waterfall(made: dict, device: str, file: Path) -> list[Path]:
    """Draw the launches of the profiled rows, if there are any."""
    from grader.pictures import TimedLaunch, waterfall

    known = {row: ls for row, ls in made.get("launches", {}).items() if row != "failed" and ls}
    if not known:
        return []
    variants = {
        row: [TimedLaunch(one["kernel"], one["seconds"], one["bytes"]) for one in ls] for row, ls in known.items()
    }
    return [waterfall(variants, device=device).save(file)]
