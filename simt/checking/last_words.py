"""Report a crash of a program that its own process cannot report.

The program has damaged that process's memory, or the crash was in another thread than main's.

The runtime (program.cpp in simt/src) replaces that process by this one:

    python last_words.py MODULE LABEL... -- MESSAGE STATUS FILE OFFSET...

MODULE is the built program, LABEL the name of a source, MESSAGE the sentence, STATUS the exit status, FILE the
descriptor of a file with what the checks have found, or 0, OFFSET a place in MODULE's code, the innermost first.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from simt.checking.findings import Report, describe
from simt.runtime.library import decode
from simt.toolchain.lines import add_labels, find_source_lines


def main(words: list[str]) -> None:
    """Print the message, with the line of the first place that is in the program's own sources, and the findings."""
    split = words.index("--")
    (module, *labels), (message, status, file, *offsets) = words[:split], words[split + 1 :]
    add_labels(labels)
    places = [(module, int(offset)) for offset in offsets]
    lines = find_source_lines(places)
    line = next((lines[place] for place in places if lines[place]), None)
    at = f"{line[0]}, line {line[1]}" if line else labels[0]
    print(f"simt: {message} ({at}).", file=sys.stderr, flush=True)
    if int(file):
        with open(int(file), "rb") as raw:
            findings = describe(decode(raw.read()))
        if findings:
            print(Report(findings).text(), file=sys.stderr, flush=True)
    os._exit(int(status))


if __name__ == "__main__":
    main(sys.argv[1:])
