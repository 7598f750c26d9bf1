"""Read the imports of grader and simt, check them against rooms.toml, and draw the rooms.

python docs/rooms.py            # list circles and forbidden imports; exit status 1 if there is one
python docs/rooms.py --draw     # also write docs/rooms.svg
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "rooms.svg"
BOX, GAP, FLOOR, MARGIN = 150, 24, 92, 28  # pixels
TITLE = (
    "The rooms of grader and simt. An arrow leads from a room to one that it imports, on a lower floor; "
    "arrows that follow from others are left out."
)
STYLE = (
    "rect{fill:#fff;stroke:#445}text{font-family:sans-serif;fill:#223}.package{font-size:18px;font-weight:bold}"
    ".room{font-size:14px;text-anchor:middle}.size{font-size:11px;text-anchor:middle;fill:#667}"
    "path{fill:none;stroke:#9ab;stroke-width:1.2;marker-end:url(#tip)}"
    "defs path{marker-end:none}.up{stroke:#c33;stroke-width:2.5}"
)


@dataclass(frozen=True)
class Import:
    """One import of a module of the project by another, inside functions too."""

    importer: str
    imported: str
    line: int


@dataclass(frozen=True)
class Package:
    """A package with its modules, the imports among them, and the floor of each room, 0 at the bottom."""

    name: str
    root: Path
    modules: dict[str, Path]
    imports: list[Import]
    floors: list[list[str]]
    doors: list[str]

    def room(self, module: str) -> str:
        """Return the room of a module: the first part of its name inside the package."""
        parts = module.split(".")
        return parts[1] if len(parts) > 1 else "__init__"

    def floor(self, room: str) -> int | None:
        """Return the floor of a room, or None if rooms.toml does not have it."""
        height = len(self.floors)
        return next((height - level for level, rooms in enumerate(self.floors, 1) if room in rooms), None)

    def pairs(self) -> set[tuple[str, str]]:
        """Return the pairs of different rooms of which the first imports the second; the doors are left out."""
        found = {(self.room(one.importer), self.room(one.imported)) for one in self.imports}
        return {
            (here, there)
            for here, there in found
            if here != there and self.floor(here) is not None and self.floor(there) is not None
        }


def read(name: str, root: Path = ROOT) -> Package:
    """Return the package of that name as its source files show it; nothing is imported."""
    table = tomllib.loads((ROOT / "docs" / "rooms.toml").read_text(encoding="utf-8"))[name]
    modules = {_module_of(path, root): path for path in sorted((root / name).rglob("*.py"))}
    imports = [found for module, path in modules.items() for found in set(_imports_of(module, path, modules))]
    return Package(name, root, modules, imports, table["floors"], table["doors"])


def _module_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(module: str, path: Path, modules: dict[str, Path]) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [(base, alias.name) for alias in node.names]
        else:
            continue
        for base, name in names:
            target = f"{base}.{name}" if f"{base}.{name}" in modules else base
            if target in modules and target != module:
                yield Import(module, target, node.lineno)


def forbidden(package: Package) -> list[str]:
    """Return a sentence for each import that rooms.toml does not allow, and for each room that it does not list."""
    found = []
    rooms = {package.room(module) for module in package.modules} - set(package.doors)
    found += [
        f"{package.name}/{room} is not in docs/rooms.toml" for room in sorted(rooms) if package.floor(room) is None
    ]
    for one in package.imports:
        here, there = package.room(one.importer), package.room(one.imported)
        if here == there or here in package.doors:
            continue
        where = f"{package.modules[one.importer].relative_to(package.root)}:{one.line}"
        if there in package.doors:
            found.append(f"{where}: {one.importer} imports {one.imported}, the package's public door")
            continue
        low, high = package.floor(here), package.floor(there)
        if low is not None and high is not None and high >= low:
            found.append(f"{where}: {one.importer} imports {one.imported}, which is not on a floor below")
    return found


def circles(package: Package) -> list[list[str]]:
    """Return each group of modules that import one another in a circle (strongly connected components, by Tarjan)."""
    graph: dict[str, set[str]] = {module: set() for module in package.modules}
    for one in package.imports:
        if package.room(one.importer) not in package.doors:
            graph[one.importer].add(one.imported)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            at = stack.index(module)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in index:
            visit(module)
    return found


def draw(packages: list[Package]) -> str:
    """Return an SVG picture: one box per room, on its floor, and one arrow from each room to each that it imports."""
    height = max(len(package.floors) for package in packages) * FLOOR + 2 * MARGIN + 20
    left = MARGIN
    body: list[str] = []
    for package in packages:
        widest = max(len(rooms) for rooms in package.floors)
        width = widest * BOX + (widest - 1) * GAP
        places = _places(package, left, height - MARGIN - len(package.floors) * FLOOR, width)
        body.append(f'<text x="{left}" y="{MARGIN}" class="package">{package.name}/</text>')
        for here, there in sorted(_shown(package.pairs())):
            upward = (package.floor(there) or 0) >= (package.floor(here) or 0)
            body.append(_arrow(places[here], places[there], upward))
        body += [_box(package, room, x, y) for room, (x, y) in places.items()]
        left += width + 3 * GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left} {height}" role="img" aria-label="{TITLE}">'
        f"<title>{TITLE}</title><style>{STYLE}</style><defs>"
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" style="fill:#9ab;stroke:none"/></marker></defs>'
        '<rect width="100%" height="100%" style="fill:#f7f8fa;stroke:none"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _shown(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the pairs without those that follow from others: a to c is left out where a to b and b to c are drawn."""

    def reaches(start: str, end: str, seen: frozenset[str]) -> bool:
        onward = {there for here, there in pairs if here == start} - seen
        return end in onward or any(reaches(room, end, seen | {room}) for room in onward)

    rooms = {room for pair in pairs for room in pair}
    return {
        (here, there)
        for here, there in pairs
        if not any(
            (here, between) in pairs and reaches(between, there, frozenset({here, between}))
            for between in rooms - {here, there}
        )
    }


def _places(package: Package, left: float, top: float, width: float) -> dict[str, tuple[float, float]]:
    """Return the top left corner of each room's box; the rooms of a floor are centred in the package's width."""
    places = {}
    for level, rooms in enumerate(package.floors):
        indent = (width - len(rooms) * BOX - (len(rooms) - 1) * GAP) / 2
        for number, room in enumerate(rooms):
            places[room] = (left + indent + number * (BOX + GAP), top + level * FLOOR)
    return places


def _box(package: Package, room: str, x: float, y: float) -> str:
    files = sum(package.room(module) == room for module in package.modules)
    many = "1 file" if files == 1 else f"{files} files"
    return (
        f'<rect x="{x}" y="{y}" width="{BOX}" height="44" rx="6"/>'
        f'<text x="{x + BOX / 2}" y="{y + 19}" class="room">{escape(room)}</text>'
        f'<text x="{x + BOX / 2}" y="{y + 36}" class="size">{many}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float], upward: bool) -> str:
    x1, y1, x2, y2 = start[0] + BOX / 2, start[1] + 44, end[0] + BOX / 2, end[1]
    bend = (y2 - y1) / 2
    kind = ' class="up"' if upward else ""
    return f'<path{kind} d="M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"/>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write docs/rooms.svg")
    options = parser.parse_args()
    packages = [read(name) for name in ("grader", "simt")]
    problems = [sentence for package in packages for sentence in forbidden(package)]
    problems += ["circle: " + ", ".join(group) for package in packages for group in circles(package)]
    for package in packages:
        counts = (
            f"{len(package.modules)} modules, {len(package.imports)} imports, {len(package.pairs())} pairs of rooms"
        )
        print(f"{package.name}: {counts}")
    print("\n".join(problems) or "no circle, no upward import")
    if options.draw:
        PICTURE.write_text(draw(packages), encoding="utf-8")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
