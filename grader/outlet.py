"""Standard output and error for a program that goes on with its work where a reader leaves or a disk is full."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TextIO


class Outlet:
    """A text stream that drops what it cannot write. trouble: why, since it first could not."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.trouble: OSError | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """As the stream does, until it fails."""
        if self.trouble is None:
            self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """As the stream does, until it fails."""
        if self.trouble is None:
            self._try(self.stream.flush)

    def _try(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            self.trouble = error
            with contextlib.suppress(OSError):  # what the stream still holds is written to nowhere when Python ends
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)
