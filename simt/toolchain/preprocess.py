"""Rewrite sources without what the preprocessor leaves out, where that contains what simt refuses."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from simt.errors import CompileError, NoCompiler
from simt.frontend.rewrite import Rewritten
from simt.frontend.source import Source
from simt.frontend.untaken import blank_untaken, has_conditional_line, make_probe
from simt.toolchain.compilers import find_compiler, flags, run_compiler
from simt.toolchain.headers import SIMT, include_flags


def rewrite_taken(
    sources: list[Source],
    rewrite: Callable[[list[Source]], list[Rewritten]],
    write_probes: Callable[[Path, list[str]], Path],
    header: str,
    extra: Sequence[str] = (),
) -> list[Rewritten]:
    """Return rewrite(sources). If it refuses lines that depend on an #if, try again without those that are left out.

    write_probes: writes the sources' probes to a folder and returns the file to preprocess. header: what is included
    before it; extra: further flags. Raises what rewrite raises.
    """
    try:
        return rewrite(sources)
    except CompileError as error:
        refused = {(d.source, d.line) for d in error.diagnostics}
        if not any(has_conditional_line(s, {line for label, line in refused if label == s.label}) for s in sources):
            raise
        text = _preprocess([make_probe(s, n) for n, s in enumerate(sources)], write_probes, header, extra)
        if text is None:
            raise
        return rewrite([blank_untaken(s, n, text) for n, s in enumerate(sources)])


def _preprocess(
    probes: list[str], write_probes: Callable[[Path, list[str]], Path], header: str, extra: Sequence[str]
) -> str | None:
    """Return the preprocessed probes, or None if the preprocessor reports an error."""
    with tempfile.TemporaryDirectory(prefix="simt_") as folder:
        main = write_probes(Path(folder), probes)
        prelude = SIMT / "include/simt" / f"{header}.h"
        command = [find_compiler()[0], *flags(), *extra, f"-I{folder}", *include_flags(shim=True), "-include"]
        try:
            result = run_compiler([*command, str(prelude), "-E", "-P", "-x", "c++", str(main)])
        except NoCompiler:
            return None
    return result.stdout if result.returncode == 0 else None
