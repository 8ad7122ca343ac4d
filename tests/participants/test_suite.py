"""The conformance suite: it passes a participant that keeps its promises, and catches others."""

import os
import time
from pathlib import Path

import pytest

from takeback.errors import ParticipantError
from takeback.model.beyond.participants import Difference
from takeback.ports import Shelf
from takeback.testing import participant_suite


class Note:
    """A text in a file, as a participant: the simplest one that keeps all promises."""

    name = "note"
    kind = "other"
    can_prepare = True
    each_step = False
    shelf: Shelf

    def __init__(self, path: Path) -> None:
        self.path = path

    def attach(self, shelf: Shelf, /) -> None:
        self.shelf = shelf

    def capture(self) -> str:
        return self.shelf.put([self.path.read_bytes()])

    def describe(self, token: str, /) -> tuple[Difference, ...]:
        return () if self.content(token) == self.path.read_bytes() else (Difference("the note"),)

    def prepare(self, restore: str, token: str, /) -> None:
        self.staged(restore).write_bytes(self.content(token))

    def commit(self, restore: str, /) -> None:
        if self.staged(restore).exists():
            self.staged(restore).rename(self.path)

    def abort(self, restore: str, /) -> None:
        self.staged(restore).unlink(missing_ok=True)

    def content(self, token: str) -> bytes:
        try:
            return b"".join(self.shelf.read(token))
        except Exception as problem:
            raise ParticipantError("no note") from problem

    def staged(self, restore: str) -> Path:
        return Path(os.fsdecode(self.shelf.folder())) / restore


class Place:
    """What a person does with the note."""

    def __init__(self, folder: str, kind: type[Note]) -> None:
        self.path = Path(folder) / "note"
        self.kind = kind
        self.write(0)

    def participant(self) -> Note:
        return self.kind(self.path)

    def write(self, number: int) -> None:
        self.path.write_text(f"note {number}\n" * (number + 1))

    def read(self) -> str:
        return self.path.read_text()


class ChangesTokens(Note):
    """Its tokens change without a write."""

    def capture(self) -> str:
        return self.shelf.put([self.path.read_bytes(), b"%d" % time.time_ns()])


class LongTokens(Note):
    """Its token is all of its content, and more."""

    def capture(self) -> str:
        return super().capture() + " " * 1024

    def content(self, token: str) -> bytes:
        return super().content(token.strip())


class InMemory(Note):
    """What it captured is in the memory of one process."""

    kept: dict[str, bytes] = {}  # noqa: RUF012 -- that is the fault

    def capture(self) -> str:
        token = super().capture()
        self.kept[token] = self.path.read_bytes()
        return token

    def content(self, token: str) -> bytes:
        if token not in self.kept:
            raise ParticipantError("no note")
        return self.kept[token]


class VisibleEarly(Note):
    """What it prepares is there at once."""

    def prepare(self, restore: str, token: str, /) -> None:
        super().prepare(restore, token)
        super().commit(restore)


class CommitsOnce(Note):
    """A second commit fails."""

    def commit(self, restore: str, /) -> None:
        self.staged(restore).rename(self.path)


class CommitsAgain(Note):
    """A second commit restores again, over what was written since."""

    def commit(self, restore: str, /) -> None:
        if self.staged(restore).exists():
            self.path.write_bytes(self.staged(restore).read_bytes())


class AbortLeaves(Note):
    """An abort does not give back what a prepare changed."""

    def prepare(self, restore: str, token: str, /) -> None:
        super().prepare(restore, token)
        self.path.rename(self.path.with_name("gone"))

    def commit(self, restore: str, /) -> None:
        super().commit(restore)
        self.path.with_name("gone").unlink(missing_ok=True)

    def abort(self, restore: str, /) -> None:
        super().abort(restore)
        self.path.touch()


class AbortsOnce(Note):
    """An abort without a prepare fails."""

    def abort(self, restore: str, /) -> None:
        self.staged(restore).unlink()


class DescribesNothing(Note):
    """It says that nothing would change."""

    def describe(self, token: str, /) -> tuple[Difference, ...]:
        self.content(token)
        return ()


class DescribesTooMuch(Note):
    """It says that something would change where nothing would."""

    def describe(self, token: str, /) -> tuple[Difference, ...]:
        self.content(token)
        return (Difference("the note"),)


class PreparesOnce(Note):
    """A second prepare of one restore fails."""

    def prepare(self, restore: str, token: str, /) -> None:
        with self.staged(restore).open("xb") as file:
            file.write(self.content(token))


class LosesTheEnd(Note):
    """What it restores lacks the end."""

    def content(self, token: str) -> bytes:
        return super().content(token)[:-1]


class MissesWrites(Note):
    """It believes that nothing was written."""

    def capture(self) -> str:
        return self.shelf.last or super().capture()


class ForgetsPrepared(Note):
    """What it prepared is lost with its process, and it believes to be done."""

    prepared: dict[str, bytes] = {}  # noqa: RUF012 -- that is the fault

    def prepare(self, restore: str, token: str, /) -> None:
        content = self.content(token)
        if not self.staged(restore).exists():
            self.staged(restore).touch()
            self.prepared[restore] = content

    def commit(self, restore: str, /) -> None:
        if restore in self.prepared:
            self.path.write_bytes(self.prepared.pop(restore))

    def abort(self, restore: str, /) -> None:
        super().abort(restore)
        self.prepared.pop(restore, None)


class TakesAnything(Note):
    """A token that is none empties the note."""

    def content(self, token: str) -> bytes:
        try:
            return super().content(token)
        except ParticipantError:
            return b""


class WritesOnCapture(Note):
    """To capture changes what is captured."""

    def capture(self) -> str:
        token = super().capture()
        if not self.path.read_text().endswith("captured\n"):
            self.path.write_text(self.path.read_text() + "captured\n")
        return token


BROKEN = {
    ChangesTokens: participant_suite.same_token_if_nothing_was_written,
    LongTokens: participant_suite.tokens_are_short,
    InMemory: participant_suite.captures_are_durable,
    VisibleEarly: participant_suite.prepare_shows_nothing,
    CommitsOnce: participant_suite.commit_can_be_repeated,
    CommitsAgain: participant_suite.commit_can_be_repeated,
    AbortLeaves: participant_suite.abort_undoes_prepare,
    AbortsOnce: participant_suite.abort_without_prepare,
    DescribesNothing: participant_suite.describes_what_would_change,
    DescribesTooMuch: participant_suite.describes_what_would_change,
    PreparesOnce: participant_suite.prepare_can_be_repeated,
    LosesTheEnd: participant_suite.restores_what_was_captured,
    MissesWrites: participant_suite.new_token_after_a_write,
    ForgetsPrepared: participant_suite.a_crash_behind_the_decision,
    TakesAnything: participant_suite.refuses_what_it_does_not_know,
    WritesOnCapture: participant_suite.capture_changes_nothing,
}


def test_a_participant_that_keeps_its_promises_passes() -> None:
    """Nothing is found where nothing is wrong."""
    participant_suite.check(lambda folder: Place(folder, Note))


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_participant_is_caught(kind: type[Note], tmp_path: Path) -> None:
    """Each fault breaks the promise that it is about."""
    with pytest.raises(participant_suite.BrokenPromise):
        participant_suite.check_one(BROKEN[kind], lambda folder: Place(folder, kind), str(tmp_path))


def test_what_is_broken_is_said_in_a_sentence() -> None:
    """The author reads what was seen, and what should have been."""
    with pytest.raises(
        participant_suite.BrokenPromises, match="others see 'note 0', and not"
    ) as told:
        participant_suite.check(lambda folder: Place(folder, LosesTheEnd))
    assert len(str(told.value).splitlines()) == len(told.value.broken)
