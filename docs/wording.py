"""Print sentences side by side, as they were at a commit and as they are now: messages, docstrings, lessons.

python docs/wording.py            # next to those of 488ac8d
python docs/wording.py COMMIT     # next to those of another commit

Messages are the explanations of a verdict's reasons. Docstrings belong to functions and classes whose name is defined
once, before and now. Lessons' paragraphs belong to cells with the same id. Those that changed little are left out, and
of the others a sample is printed, the same one each time.
"""

import argparse
import ast
import difflib
import io
import json
import random
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "488ac8d"  # the last commit before the code was reworded
FOLDERS = ("grader", "simt", "lessons")
SHOWN = 12  # docstrings, and as many paragraphs
MOST_CHARACTERS = 400  # of a text that is shown
ALIKE = 0.8  # difflib's ratio from which two texts are alike

Pair = tuple[str, str, str]  # where, before, now


def read_commit(commit: str) -> dict[str, str]:
    """Return the text of each Python file and notebook of FOLDERS at a commit, by its path."""
    packed = subprocess.run(["git", "archive", commit, *FOLDERS], cwd=ROOT, capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith((".py", ".ipynb")):
                content = archive.extractfile(member)
                found[member.name] = content.read().decode("utf-8") if content else ""
    return found


def read_now() -> dict[str, str]:
    """Return the same for the working tree."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".ipynb")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}


def list_trees(files: dict[str, str]) -> Iterator[ast.AST]:
    """Give each node of every Python file."""
    for name, text in sorted(files.items()):
        if name.endswith(".py"):
            yield from ast.walk(ast.parse(text))


def find_messages(files: dict[str, str]) -> dict[str, str]:
    """Return the explanation of each reason."""
    for node in list_trees(files):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == "EXPLANATIONS":
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return {ast.unparse(key): ast.literal_eval(value) for key, value in pairs if key}
    return {}


def find_docstrings(files: dict[str, str]) -> dict[str, str]:
    """Return the docstring of each name that is defined once."""
    found: dict[str, list[str]] = {}
    for node in list_trees(files):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and (text := ast.get_docstring(node)):
            found.setdefault(node.name, []).append(" ".join(text.split()))
    return {name: texts[0] for name, texts in found.items() if len(texts) == 1}


def find_paragraphs(files: dict[str, str]) -> dict[str, str]:
    """Return each paragraph of the lessons, by its cell's id and its number in the cell."""
    found = {}
    for name, text in files.items():
        if name.endswith(".ipynb"):
            for cell in json.loads(text)["cells"]:
                if cell["cell_type"] == "markdown":
                    paragraphs = "".join(cell["source"]).split("\n\n")
                    found |= {f"{cell['id']}, paragraph {n}": p for n, p in enumerate(paragraphs, 1)}
    return found


def pair(before: dict[str, str], now: dict[str, str]) -> list[Pair]:
    """Return the texts that both have and that differ."""
    return [(name, before[name], now[name]) for name in before if name in now and before[name] != now[name]]


def sample(pairs: list[Pair]) -> list[Pair]:
    """Return SHOWN pairs of texts that are short and not alike."""
    short = [each for each in pairs if max(len(each[1]), len(each[2])) <= MOST_CHARACTERS]
    unlike = [each for each in short if difflib.SequenceMatcher(None, each[1], each[2]).ratio() < ALIKE]
    return random.Random(0).sample(unlike, min(SHOWN, len(unlike)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default=BEFORE)
    before, now = read_commit(parser.parse_args().commit), read_now()
    for title, find in (
        ("Messages", find_messages),
        ("Docstrings", find_docstrings),
        ("Paragraphs", find_paragraphs),
    ):
        changed = pair(find(before), find(now))
        shown = changed if title == "Messages" else sample(changed)
        print(f"{title}: {len(changed)} changed, {len(shown)} shown")
        for name, old, new in shown:
            print(f"  {name}\n    - {old}\n    + {new}")


if __name__ == "__main__":
    main()
