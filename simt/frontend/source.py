"""Parse a C++ or CUDA source once. Every later reader uses this object instead of splitting the text again."""

from __future__ import annotations

import threading
from functools import cached_property

from simt.errors import Diagnostic
from simt.frontend.declarations import Kernel, find_bodies, find_constants, find_host_variables, find_kernels
from simt.frontend.qualifier_macros import expand_qualifier_macros
from simt.frontend.tokens import Token, find_directives, find_next, get_text, join_launch_marks, tokenize


class Source:
    """A source text and its parsed parts. Each part is computed on first use and kept.

    text: without a byte order mark. label: the name of the source in messages and in #line ("cuda_sources", or the file
    of a program). The tokens of this object never change; a pass that rewrites works on `copy_tokens()`. A pass changes
    the text of tokens but never adds or removes a token, so the indices in `directives` and `bodies` hold for the copy.
    """

    def __init__(self, text: str, label: str = "cuda_sources"):
        self.text = text.removeprefix("\ufeff")
        self.label = label
        self._tokens: list[Token] | None = None
        self._lock = threading.Lock()  # two modes of one extension may be built in parallel

    @property
    def tokens(self) -> list[Token]:
        """The tokens as written, but for names of CUDA's qualifiers. Do not change them: use `copy_tokens`."""
        with self._lock:
            if self._tokens is None:
                self._tokens = expand_qualifier_macros(join_launch_marks(tokenize(self.text)))
            return self._tokens

    def copy_tokens(self) -> list[Token]:
        """Return a copy of the tokens, which a pass may change."""
        return [Token(t.kind, t.text, t.line) for t in self.tokens]

    @cached_property
    def code(self) -> list[Token]:
        """The tokens without spaces and comments."""
        return [t for t in self.tokens if t.kind not in ("space", "comment")]

    @cached_property
    def words(self) -> set[str]:
        """Every identifier and keyword in the source."""
        return {t.text for t in self.tokens if t.kind == "word"}

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text; line n of a token is `lines[n - 1]`."""
        return self.text.split("\n")

    @cached_property
    def directives(self) -> dict[int, int]:
        """The index of each token in a preprocessor line -> the index of the line's #."""
        return find_directives(self.tokens)

    @cached_property
    def macros(self) -> set[str]:
        """The names that #define defines."""
        defines = (i for i, t in enumerate(self.tokens) if t.text == "define" and self._follows_hash(i))
        return {get_text(self.tokens, find_next(self.tokens, i)) for i in defines}

    def _follows_hash(self, i: int) -> bool:
        return get_text(self.tokens, find_next(self.tokens, i, -1)) == "#"

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels that the source declares, by name."""
        return find_kernels(self.tokens, self.directives)

    @cached_property
    def bodies(self) -> list[tuple[int, int]]:
        """The first and the last token of the body of each __global__ and __device__ function."""
        return find_bodies(self.tokens, self.directives)

    @cached_property
    def device_lines(self) -> set[int]:
        """The numbers of the lines between the braces of __global__ and __device__ functions, without those of the
        braces.
        """
        spans = ((self.tokens[first].line, self.tokens[last].line) for first, last in self.bodies)
        return {line for first, last in spans for line in range(first + 1, last)}

    @cached_property
    def constants(self) -> list[str]:
        """The names of the variables in constant memory."""
        return find_constants(self.tokens)

    @cached_property
    def host_variables(self) -> list[str]:
        """The names of the variables outside of functions that only the host can use."""
        return find_host_variables(self.tokens, self.directives)

    @cached_property
    def has_main(self) -> bool:
        """Whether the source defines or declares main()."""
        return any(
            a.kind == "word" and a.text != "return" and b.text == "main" and c.text == "("
            for a, b, c in zip(self.code, self.code[1:], self.code[2:])
        )

    @property
    def binds_by_hand(self) -> bool:
        """Whether the source has a PYBIND11_MODULE."""
        return "PYBIND11_MODULE" in self.words

    @property
    def registers_operators(self) -> bool:
        """Whether the source has a TORCH_LIBRARY, or a part of one."""
        return not self.words.isdisjoint(("TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT", "TORCH_LIBRARY_IMPL"))

    def make_error(self, line: int, message: str) -> Diagnostic:
        """Return an error about a line of this source, with the line's text."""
        return Diagnostic(self.label, line, 1, "error", message, self.lines[line - 1])
