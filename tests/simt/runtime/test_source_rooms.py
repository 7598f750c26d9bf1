"""simt/src: does each room include only rooms below it, and does a cache key cover every file?"""

import re
from pathlib import Path

import pytest

import simt
from simt.gpu.build import LAUNCHER
from simt.toolchain import headers, runtime_library

SOURCES = Path(simt.__file__).parent / "src"
FILES = sorted(p.relative_to(SOURCES) for p in SOURCES.rglob("*") if p.suffix in (".h", ".cpp"))
MAY_INCLUDE = {
    "run": {"run"},
    "check": {"run", "check"},
    "count": {"run", "count"},
    "process": {"run", "check", "count", "process"},
    "gpu": {"gpu"},
}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_includes_only_rooms_below_its_own(path):
    included = re.findall(r'^\s*#\s*include\s*"([^"]+)"', (SOURCES / path).read_text(), re.MULTILINE)
    assert {Path(name).parts[0] for name in included} <= MAY_INCLUDE[path.parts[0]]
    assert all((SOURCES / name).is_file() for name in included)


def test_every_source_is_compiled_and_every_header_is_part_of_a_key():
    names = [*runtime_library._list_sources(), *runtime_library._list_probes()]
    names += [runtime_library._find_binder(), runtime_library._find_values()]
    sources = [*(f"src/{name}.cpp" for name in names), LAUNCHER]
    covered = {path for source in sources for path in headers.list_closure(source)}
    assert {SOURCES / path for path in FILES} <= covered
