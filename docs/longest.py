"""List the longest files, classes and functions: past these lengths each must hold one idea, or say why it stays whole.

    python docs/longest.py

Generated files, lessons and test material do not count. A reason is a comment that contains "stays whole" in the file,
class or function.
"""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {"file": 500, "class": 200, "function": 60}  # lines
SUFFIXES = {".py", ".h", ".cuh", ".cpp", ".cu"}
LEFT_OUT = ("kernels_student/", "tests/specimens/", "tests/simt/checks/", "tests/simt/corpus/", "tests/simt/programs/")
REASON = "stays whole"


def find_long(path: Path) -> Iterator[tuple[str, str, int, bool]]:
    """Yield (kind, name, lines, whether a reason is given) for the file and what is too long in it."""
    text = path.read_text(encoding="utf-8")
    name = str(path.relative_to(ROOT))
    lines = text.splitlines()
    if len(lines) > LIMITS["file"]:
        yield "file", name, len(lines), REASON in text.lower()
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(text)):
        kind = {ast.ClassDef: "class", ast.FunctionDef: "function", ast.AsyncFunctionDef: "function"}.get(type(node))
        if kind and isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LIMITS[kind]:
                around = lines[max(0, node.lineno - 3) : node.end_lineno]
                yield kind, f"{name}:{node.lineno} {node.name}", length, any(REASON in line.lower() for line in around)


def main() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [ROOT / name for name in listed if Path(name).suffix in SUFFIXES and not name.startswith(LEFT_OUT)]
    generated = {path for path in files if path.parent.parent.name == "kernels_ref" and path.stem.startswith("fastest")}
    found = [row for path in files if path not in generated for row in find_long(path)]
    for kind in LIMITS:
        rows = sorted((row for row in found if row[0] == kind), key=lambda row: -row[2])
        print(f"{len(rows)} of kind {kind} past {LIMITS[kind]} lines")
        for _, name, length, has_reason in rows:
            print(f"  {length:5}  {name}{'' if has_reason else '  (no reason given)'}")


if __name__ == "__main__":
    main()
