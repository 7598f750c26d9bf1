"""Keep the last check of each kernel in a file, from which a later command shows the next hint without running it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from grader.classroom.files import replace_file
from grader.diagnosis.fault_localization import Lead
from grader.notebook import cells, spare_worker
from grader.notebook.check import Given
from grader.verdict import Reason, StageName, Verdict
from simt.toolchain.cache import trim_folder, user_cache

KEPT = 100  # files


class KeptCheck(msgspec.Struct, kw_only=True, frozen=True):
    """A check. key: a digest of all that the verdict depends on. repeats: whether the same would come out again.

    gpu: whose time was to be predicted. lead: the line that fault localization found. is_late: whether it was found
    after the verdict was shown, with the lines that are suspect without it. given: how many hints were given.
    is_lead_given: whether that line was given as a hint.
    """

    key: str
    gpu: str
    repeats: bool
    verdict: Verdict
    lead: Lead | None
    is_late: bool
    given: int
    is_lead_given: bool = False


class Place:
    """Where the last check of one kernel is kept, and the key that it has now."""

    def __init__(self, subject: cells.Subject, case: str | None, seed: int):
        path = os.path.realpath(subject.path)
        named = "\0".join([path, str(subject.problem_file), case or "", str(seed)])
        self.file = folder() / f"{hashlib.sha256(os.fsencode(named)).hexdigest()[:16]}.json"
        self.key = spare_worker.key(subject.text, subject.problem_file, (path, case, seed))
        self.is_whole = spare_worker.self_contained(subject.text, subject.path.parent)

    def read(self) -> KeptCheck | None:
        """Return the last check, of the present kernel or of an earlier text; None where none can be read."""
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(self.file.read_bytes(), type=KeptCheck)
        return None

    def is_of_this(self, kept: KeptCheck, gpu: str | None) -> bool:
        """Return whether a check is of the present kernel, which reads no other file.

        gpu: whose time is wanted; None for any. It changes a verdict that has reached the last stage alone.
        """
        fits = gpu in (None, kept.gpu) or not _is_timed(kept.verdict)
        return kept.key == self.key and self.is_whole and fits

    def write(self, verdict: Verdict, gpu: str, lead: Lead | None, is_late: bool, given: Given) -> None:
        """Keep a check in place of the last one. Where it cannot be written, the next command checks anew."""
        repeats = spare_worker.keepable(verdict)
        kept = KeptCheck(
            key=self.key,
            gpu=gpu,
            repeats=repeats,
            verdict=verdict,
            lead=lead,
            is_late=is_late,
            given=given.count,
            is_lead_given=lead is not None and given.lead == lead.words,
        )
        with contextlib.suppress(OSError, UnicodeEncodeError):  # a full disk, half a character
            self.file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.file, msgspec.json.encode(kept).decode())
            trim_folder(self.file.parent, KEPT)


def _is_timed(verdict: Verdict) -> bool:
    """Return whether the stage that predicts a time was reached."""
    return any(stage.name is StageName.fast and stage.reason is not Reason.not_reached for stage in verdict.stages)


def folder() -> Path:
    """Return the folder with one file for each kernel."""
    return user_cache() / "grader" / "checks"
