"""Do imports point downwards from room to room, as docs/rooms.toml says, without a circle?"""

import ast
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALONE = {"torch", *sys.stdlib_module_names}  # what a file of kernels_ref or kernels_student may import


def _load():
    """Return docs/rooms.py as a module."""
    spec = importlib.util.spec_from_file_location("docs_rooms", ROOT / "docs" / "rooms.py")
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rooms = _load()
each_package = pytest.mark.parametrize("name", ["grader", "simt"])


@each_package
def test_no_import_points_upward(name):
    """Does every import lead to the same room or to a floor below?"""
    assert not rooms.forbidden(rooms.read(name))


@each_package
def test_no_circle(name):
    """Are there no modules that import one another in a circle, function-local imports included?"""
    assert not rooms.circles(rooms.read(name))


@each_package
def test_the_table_names_no_room_that_is_gone(name):
    """Does each room of docs/rooms.toml have a module?"""
    package = rooms.read(name)
    assert {room for floor in package.floors for room in floor} <= {package.room(module) for module in package.modules}


@pytest.mark.slow
@pytest.mark.parametrize(
    "where, planted, expected",
    [
        ("verdict/schema.py", "from grader.judging import grading\n", "not on a floor below"),
        ("source/contract.py", "def f():\n    import grader.reports.terminal\n", "not on a floor below"),
        ("pictures/picture.py", "from grader.source.contract import Source\n", "not on a floor below"),
        ("reports/terminal.py", "from grader import grade\n", "public door"),
        ("attic/old.py", "import os\n", "attic is not in docs/rooms.toml"),
    ],
)
def test_a_planted_import_is_found(where, planted, expected, tmp_path):
    """Is an import upward, sideways, through the door, or from an unknown room reported?"""
    shutil.copytree(ROOT / "grader", tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "grader" / where
    file.parent.mkdir(exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + planted)
    found = rooms.forbidden(rooms.read("grader", tmp_path))
    assert len(found) == 1 and expected in found[0]


def test_a_planted_circle_is_found(tmp_path):
    """Are two modules of one room that import each other reported?"""
    shutil.copytree(ROOT / "grader", tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    for here, there in (("cpp", "syntax"), ("syntax", "cpp")):
        with open(tmp_path / "grader" / "source" / f"{here}.py", "a") as file:
            file.write(f"def f():\n    from grader.source import {there}\n")
    assert ["grader.source.cpp", "grader.source.syntax"] in [
        [module for module in circle if module.endswith((".cpp", ".syntax"))]
        for circle in rooms.circles(rooms.read("grader", tmp_path))
    ]


def test_the_worker_imports_nothing_of_the_judge():
    """Does the untrusted side reach only modules of grader.worker, and of those not the judge's?"""
    package = rooms.read("grader")
    reached, waiting = set(), ["grader.worker.main"]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += [one.imported for one in package.imports if one.importer == module]
    assert all(module.startswith("grader.worker") for module in reached)
    assert not reached & {"grader.worker.client", "grader.worker.exchange", "grader.worker.sandbox"}


@pytest.mark.parametrize("folder", ["kernels_ref", "kernels_student"])
def test_kernels_import_torch_alone(folder):
    """Can each file of kernels_ref and kernels_student be handed in, mailed, or run anywhere?"""
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= ALONE, file
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 and (node.module or "").split(".")[0] in ALONE, file


def test_the_picture_is_of_today():
    """Is docs/rooms.svg what `python docs/rooms.py --draw` draws?"""
    drawn = rooms.draw([rooms.read("grader"), rooms.read("simt")])
    assert rooms.PICTURE.read_text(encoding="utf-8") == drawn, "run: python docs/rooms.py --draw"
