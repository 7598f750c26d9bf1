"""Count the dialect words in the code's text, per 10,000 words, now and at a commit.

python docs/words.py            # one row per folder and one in total, next to those of 488ac8d
python docs/words.py COMMIT     # next to those of another commit
python docs/words.py --list     # also list where the present uses are: file:line: word

Text is what a person reads in a file of Python, C++ or CUDA: docstrings, comments, string literals, and identifiers
split at underscores. The project's own words are not wrong English, but a reader has to guess what they mean here:
"told" for reported, "beside" for next to or in parallel, "mended" for fixed.
"""

import argparse
import io
import keyword
import re
import subprocess
import tarfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("grader", "simt", "benchmarks", "kernels_ref", "tests")
SUFFIXES = {".py", ".h", ".cuh", ".cpp", ".cu"}
BEFORE = "488ac8d"  # the last commit before the code was reworded
# Left out, because each has a legitimate meaning in this code: file, answer, noise, room, search, repair, looking,
# edit, otherwise, mark, limit, floor, warm, place. "lead" is counted as a noun only: an arrow may lead somewhere.
DIALECT = (
    "told better",
    "told",
    "said",
    "asked",
    "beside",
    "made anew",
    "anew",
    "goes on with",
    "stands",
    "holds the word",
    "whoever",
    "nobody",
    "mend",
    "mends",
    "mended",
    "mending",
    "stain",
    "stains",
    "stained",
    "truth",
    "right answers",
    "the other side",
    "desk file",
    "at the hardware's limit",
    "lanes at work",
    "in turns",
    "hangs on",
    "a lead",
    "the lead",
    "no lead",
    "each lead",
    "first lead",
)
# Dialect in an identifier, where the word stands alone without an article.
DIALECT_NAMES = (*DIALECT, "lead", "leads")
C_TEXT = re.compile(
    r"(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)
C_KEYWORDS = frozenset(
    "alignas auto bool break case char class const constexpr continue default define delete do double else enum extern "
    "false float for friend if include inline int long namespace new nullptr operator private public return short "
    "signed sizeof static struct switch template this true typedef typename union unsigned using void while".split()
)
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
STRING_TOKENS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}  # the latter since Python 3.12


@dataclass(frozen=True)
class Text:
    """A comment, a string literal or an identifier, and the line at which it begins."""

    line: int
    text: str
    is_name: bool = False


@dataclass(frozen=True)
class Use:
    """A dialect word or phrase at a line of a file."""

    path: str
    line: int
    word: str


@dataclass
class Count:
    """The words of a folder and the dialect uses among them."""

    words: int
    uses: list[Use]

    def rate(self) -> float:
        """Return the uses per 10,000 words."""
        return 10_000 * len(self.uses) / max(self.words, 1)


def count(files: dict[str, str]) -> Count:
    """Return the words and the dialect uses in these files: path -> content."""
    words, uses = 0, []
    for path, content in files.items():
        for text in find_texts(content, path.endswith(".py")):
            many, found = _count_text(path, text)
            words += many
            uses += found
    return Count(words, uses)


def _phrases(words: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, longest_first))})(?!\S)")


IN_PROSE, IN_NAMES = _phrases(DIALECT), _phrases(DIALECT_NAMES)


def _count_text(path: str, text: Text) -> tuple[int, list[Use]]:
    """Return the number of words of one text, and the dialect uses in it."""
    words, lines = [], []
    for number, line in enumerate(text.text.replace("’", "'").split("\n"), text.line):
        found = WORD.findall(line.lower())
        words += found
        lines += [number] * len(found)
    joined = " ".join(words)
    uses = [
        Use(path, lines[joined.count(" ", 0, match.start())], match.group())
        for match in (IN_NAMES if text.is_name else IN_PROSE).finditer(joined)
    ]
    return len(words), uses


def find_texts(content: str, is_python: bool) -> Iterator[Text]:
    """Yield the comments, string literals and identifiers of a file; comments of consecutive lines are one text."""
    if not is_python:
        yield from _texts_of_c(content)
        return
    try:
        yield from _texts_of_python(content)
    except (tokenize.TokenError, IndentationError):
        return  # a specimen whose syntax is wrong: what comes before the error has been counted


def _texts_of_python(content: str) -> Iterator[Text]:
    comment: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        line = token.start[0]
        if comment and token.type != tokenize.NL and (token.type != tokenize.COMMENT or line != last + 1):
            yield Text(last - len(comment) + 1, "\n".join(comment))
            comment = []
        if token.type == tokenize.COMMENT:
            comment.append(token.string)
            last = line
        elif token.type in STRING_TOKENS:
            yield Text(line, _unescaped(re.sub(r"^[A-Za-z]{0,2}(?=[\"'])", "", token.string)))
        elif token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield Text(line, token.string, is_name=True)


def _texts_of_c(content: str) -> Iterator[Text]:
    for match in C_TEXT.finditer(content):
        line = content.count("\n", 0, match.start()) + 1
        if match["name"] is None:
            yield Text(line, _unescaped(match.group()))
        elif match["name"] not in C_KEYWORDS:
            yield Text(line, match["name"], is_name=True)


def _unescaped(literal: str) -> str:
    r"""Return a string literal with spaces for its escapes: the "n" of "\ntold" is no letter of the word."""
    return re.sub(r"\\[a-z]", "  ", literal)


def read_now() -> dict[str, str]:
    """Return path -> content of the working tree's files that git knows, in the folders that are counted."""
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if path.suffix in SUFFIXES and path.is_file()
    }


def read_commit(commit: str) -> dict[str, str]:
    """Return path -> content of a commit's files in the folders that are counted."""
    packed = subprocess.run(["git", "archive", commit, *FOLDERS], cwd=ROOT, capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            file = archive.extractfile(member) if Path(member.name).suffix in SUFFIXES else None
            if file is not None:
                found[member.name] = file.read().decode("utf-8", errors="replace")
    return found


def table(now: dict[str, str], then: dict[str, str], commit: str) -> str:
    """Return a row per folder and one in total: uses per 10,000 words, and uses and words, now and at the commit."""
    rows = [f"{'per 10,000 words':16} {'now':>8} {'(uses, words)':>18} {commit[:10]:>12} {'(uses, words)':>18}"]
    for folder in (*FOLDERS, ""):
        counts = [count({p: t for p, t in files.items() if p.startswith(folder)}) for files in (now, then)]
        cells = [(f"{one.rate():.1f}", f"({len(one.uses):,}, {one.words:,})") for one in counts]
        (rate, many), (rate_then, many_then) = cells
        rows.append(f"{folder or 'total':16} {rate:>8} {many:>18} {rate_then:>12} {many_then:>18}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default=BEFORE, help=f"the commit to compare with (default {BEFORE})")
    parser.add_argument("--list", action="store_true", help="list where the present uses are")
    options = parser.parse_args()
    now = read_now()
    print(table(now, read_commit(options.commit), options.commit))
    if options.list:
        for use in count(now).uses:
            print(f"{use.path}:{use.line}: {use.word}")


if __name__ == "__main__":
    main()
