"""A check that has been shown goes on: a button shows the next hint, and the line that the search finds is added."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol

from grader.notebook import progress_bar
from grader.reports import feedback

POLL_S = 0.3  # between two looks at a search that runs beside the cells


class Checked(Protocol):
    """What is asked of a grader.notebook.check.Checked."""

    @property
    def has_more_hints(self) -> bool: ...

    @property
    def hints_given(self) -> int: ...

    @property
    def searching(self) -> bool: ...

    def give_next(self) -> None: ...

    def parts(self) -> list[object]: ...


def show(checked: Checked) -> None:
    """Display a check in a notebook. Raises NotImplementedError elsewhere, where IPython then shows it as a value."""
    shell = progress_bar.find_shell()
    if shell is None or not hasattr(shell, "kernel") or feedback.plain():
        raise NotImplementedError
    from IPython.display import display

    handle = display(feedback.bundle(checked.parts()), raw=True, display_id=True)
    if handle is None:
        raise NotImplementedError
    button = _make_button(checked, handle)
    if button is not None:
        display(button)
    if checked.searching:
        _update_later(checked, handle, button)


def _make_button(checked: Checked, handle: Any) -> Any:
    """Return a button for the next hint; None where there is no further hint, or without ipywidgets."""
    if not checked.has_more_hints:
        return None
    try:
        import ipywidgets
    except ImportError:
        return None
    button = ipywidgets.Button(description=_name_next(checked), tooltip="Show the next hint")

    def give(_: object) -> None:
        checked.give_next()
        handle.update(feedback.bundle(checked.parts()), raw=True)
        _rename(button, checked)

    button.on_click(give)
    return button


def _name_next(checked: Checked) -> str:
    return "Next hint" if checked.hints_given else "Show a hint"


def _rename(button: Any, checked: Checked) -> None:
    button.description = _name_next(checked) if checked.has_more_hints else "No further hint"
    button.disabled = not checked.has_more_hints


def _update_later(checked: Checked, handle: Any, button: Any) -> None:
    """Show the check again when its search has ended. The kernel's own loop looks for that, between cells."""
    with contextlib.suppress(RuntimeError):  # no loop: the reader asks with .hint()
        loop = asyncio.get_running_loop()

        def look() -> None:
            if checked.searching:
                loop.call_later(POLL_S, look)
                return
            handle.update(feedback.bundle(checked.parts()), raw=True)
            if button is not None:
                _rename(button, checked)

        loop.call_later(POLL_S, look)
