"""Standard output and error for a program that continues when a reader leaves or a disk is full."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TextIO


class Outlet:
    """A text stream that drops what it cannot write. trouble: the error that made it stop writing, or None."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.trouble: OSError | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write the text, unless a write has failed before. Returns its length in any case."""
        if self.trouble is None:
            self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, unless a write has failed before."""
        if self.trouble is None:
            self._try(self.stream.flush)

    def _try(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            self.trouble = error
            with contextlib.suppress(OSError):  # what it still buffers goes to /dev/null when Python ends
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)
