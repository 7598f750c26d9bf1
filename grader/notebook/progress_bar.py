"""Shows a progress bar while a check runs: HTML in JupyterLab, rich in a terminal, none where outputs are compared."""

from __future__ import annotations

import contextlib
import html
import re
import sys
from collections.abc import Callable, Iterator

from grader.reports.terminal import clean
from grader.verdict import StageName

# The start of each stage as a fraction of the time that a check of an edited kernel takes.
BEGINS = {
    StageName.contract: 0.0,
    StageName.build: 0.05,
    StageName.correct: 0.5,
    StageName.safe: 0.65,
    StageName.gradient: 0.95,
    StageName.fast: 0.96,
}
COUNTED = re.compile(r"case (\d+) of (\d+)")
Say = Callable[[StageName, str], None]


@contextlib.contextmanager
def waiting(name: str) -> Iterator[Say]:
    """Yield the function that `grade` calls with its progress; the bar is removed when the block ends."""
    from grader.reports import feedback

    show, end = (None if feedback.plain() else _in_notebook() or _in_terminal()) or (_show_nothing, _do_nothing)
    last: list[str] = []

    def say(stage: StageName, text: str) -> None:
        line = f"{name}: {stage.value} {clean(text)[:100]}".strip()
        if last != [line]:
            last[:] = [line]
            show(fraction(stage, text), line)

    try:
        yield say
    finally:
        end()


def _show_nothing(_part: float, _text: str) -> None: ...


def _do_nothing() -> None: ...


def fraction(stage: StageName, text: str) -> float:
    """Return the progress of a check, from 0 to 1: the start of its stage plus the cases that have run."""
    names = list(BEGINS)
    begin = BEGINS[stage]
    after = BEGINS[names[names.index(stage) + 1]] if stage is not names[-1] else 1.0
    counted = COUNTED.match(text)
    return begin + (after - begin) * ((int(counted[1]) - 1) / int(counted[2]) if counted else 0.0)


def _in_notebook():
    shell = find_shell()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    if handle is None:
        return None

    def show(part: float, text: str) -> None:
        handle.update(HTML(bar(part, text)))

    return show, lambda: handle.update(HTML(""))


def bar(part: float, text: str) -> str:
    """Return the bar as HTML, in JupyterLab's colours."""
    done = f"height:100%;width:{100 * part:.0f}%;background:var(--jp-brand-color1, #1976d2)"
    return (
        f'<div role="progressbar" aria-valuenow="{100 * part:.0f}" aria-valuemin="0" aria-valuemax="100" '
        'style="max-width:40em">'
        '<div style="height:6px;border-radius:3px;overflow:hidden;'
        'background:var(--jp-layout-color3, rgba(128,128,128,.35))">'
        f'<div style="{done}"></div></div>'
        '<div style="color:var(--jp-content-font-color2, inherit);margin-top:.2em">'
        f"{html.escape(text)}</div></div>"
    )


def find_shell():
    """Return the IPython shell that this process runs in, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _in_terminal():
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    progress = Progress(
        BarColumn(bar_width=20), TextColumn("{task.description}", markup=False), console=console, transient=True
    )
    task = progress.add_task("", total=1.0)
    progress.start()
    return (lambda part, text: progress.update(task, completed=part, description=text)), progress.stop
