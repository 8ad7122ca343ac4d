"""The conformance suite for participants: what each has to keep, checked on a real one.

Write a *subject*: the state that your participant captures, as its users see it.

    class Notes:
        def __init__(self, folder): self.path = os.path.join(folder, "notes.txt")
        def participant(self): return NotesParticipant("notes", self.path)  # as a new process does
        def write(self, number): ...   # bring the state into one of five, 0 to 4; all differ
        def read(self): ...            # all of the state, as others see it; compared with ==

    participant_suite.check(Notes)     # raises BrokenPromises, which names all of them

`check` calls the class with a new folder for each promise. `read` raises `Blocked` where a prepared
restore keeps others waiting. With pytest, each promise can be a test of its own:

    @pytest.mark.parametrize("promise", participant_suite.PROMISES)
    def test_notes(promise, tmp_path): participant_suite.check_one(promise, Notes, str(tmp_path))
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import Protocol

from takeback.errors import ParticipantError
from takeback.model.beyond.participants import KINDS, LONGEST_TOKEN, Difference
from takeback.testing.shelves import FolderShelf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.ports import Participant


class Subject(Protocol):
    """The state that a participant captures, as its users see it."""

    def participant(self) -> "Participant":
        """A new participant for this state, not attached, as another process makes it."""

    def write(self, number: int, /) -> None:
        """Bring the state into the one with a number, whatever it was."""

    def read(self) -> object:
        """All of it, as others see it."""


_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Blocked(Exception):
    """Raised by a subject's `read`: a prepared restore keeps others waiting, and shows nothing."""


class BrokenPromise(AssertionError):
    """A participant does not keep one promise."""


class BrokenPromises(AssertionError):
    """What a participant does not keep: one sentence for each broken promise."""

    def __init__(self, broken: "Sequence[str]") -> None:
        super().__init__("\n".join(broken))
        self.broken = tuple(broken)


Make = Callable[[str], Subject]
Promise = Callable[["Bench"], None]


class Bench:
    """A subject, its shelf, and participants as processes make them."""

    def __init__(self, make: "Make", folder: str) -> None:
        self._shelf = os.path.join(folder, "shelf")
        self._number = 0
        place = os.path.join(folder, "subject")
        for each in (self._shelf, place):
            os.mkdir(each, 0o700)
        self.subject = make(place)
        self.participant = self.another()

    def another(self) -> "Participant":
        """A participant as another process makes it, on the same shelf."""
        self.shelf = FolderShelf(self._shelf)
        found = self.subject.participant()
        found.attach(self.shelf)
        return found

    def write(self, number: int) -> object:
        """Bring the state into one; what others see then."""
        self.subject.write(number)
        return self.subject.read()

    def capture(self) -> str:
        return self.shelf.capture(self.participant)

    def captured(self, number: int) -> "tuple[str, object]":
        """The token of a state, and what others see in it."""
        state = self.write(number)
        return self.capture(), state

    def restore(self, token: str) -> str:
        """Restore a token as a project does; the id of that restore."""
        self._number += 1
        id = f"restore{self._number}"
        self.capture()
        self.participant.describe(token)
        self.participant.prepare(id, token)
        self.participant.commit(id)
        return id

    def expect(self, state: object, told: str) -> None:
        """Require that others see a state."""
        found = self.subject.read()
        require(found == state, f"{told}: others see {found!r}, and not {state!r}")

    def expect_hidden(self, state: object, told: str) -> None:
        """Require that others see a state still, or wait."""
        try:
            self.expect(state, told)
        except Blocked:
            return

    def elsewhere(self, work: "Callable[[], str]") -> str:
        """What `work` returns in another process, which ends right behind it without tidying up."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                answer = "=" + work()
            except BaseException as problem:  # noqa: BLE001 -- the parent reports it
                answer = f"!{type(problem).__name__}: {problem}"
            with os.fdopen(writing, "w") as pipe:
                pipe.write(answer)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        require(answer.startswith("="), f"another process failed: {answer[1:] or 'it ended'}")
        return answer[1:]


def require(holds: object, told: str) -> None:
    """Report a broken promise."""
    if not holds:
        raise BrokenPromise(told)


# -- the promises --------------------------------------------------------------------------


def tells_what_it_is(bench: Bench) -> None:
    """It has a name, a kind, and says how it takes part."""
    one = bench.participant
    require(_NAME.fullmatch(one.name), f"`name` is {one.name!r}")
    require(one.kind in KINDS, f"`kind` is {one.kind!r}, and none of {', '.join(KINDS)}")
    for field in ("can_prepare", "each_step"):
        require(getattr(one, field) in (True, False), f"`{field}` is no bool")


def tokens_are_short(bench: Bench) -> None:
    """A token is text of at most 1 KiB, also when much was written."""
    for number in range(4):
        token, _ = bench.captured(number)
        require(token and hasattr(token, "encode"), f"`capture` returned {token!r}")
        require(len(token.encode()) <= LONGEST_TOKEN, "a token is longer than 1 KiB")


def same_token_if_nothing_was_written(bench: Bench) -> None:
    """Two captures without a write have one token, also from another process."""
    token, _ = bench.captured(1)
    for _ in range(3):
        require(bench.capture() == token, "the token changed, and nothing was written")
    bench.participant = bench.another()
    require(bench.capture() == token, "the token changed with the process, and nothing was written")


def new_token_after_a_write(bench: Bench) -> None:
    """Each write is noticed."""
    tokens = [bench.captured(number)[0] for number in range(4)]
    require(len(set(tokens)) == len(tokens), "a state was written, and the token is an older one")


def capture_changes_nothing(bench: Bench) -> None:
    """To capture and to describe is only to read."""
    token, _ = bench.captured(1)
    state = bench.write(2)
    bench.capture()
    bench.expect(state, "after `capture`")
    bench.participant.describe(token)
    bench.expect(state, "after `describe`")


def describes_what_would_change(bench: Bench) -> None:
    """Restoring the present changes nothing; restoring another state does."""
    token, _ = bench.captured(1)
    found = bench.participant.describe(token)
    require(tuple(found) == (), f"restoring the present would change {found!r}")
    bench.captured(2)
    found = bench.participant.describe(token)
    require(found, "restoring another state would change nothing")
    require(all(isinstance(each, Difference) for each in found), "it describes no `Difference`")


def restores_what_was_captured(bench: Bench) -> None:
    """What others see after `commit` is what they saw at the capture: back, and forward again."""
    captured = [bench.captured(number) for number in range(3)]
    for number in (0, 2, 1, 0, 1, 2):
        token, state = captured[number]
        bench.restore(token)
        bench.expect(state, f"after `commit` of state {number}")


def the_restored_state_has_its_token(bench: Bench) -> None:
    """After a restore, a capture finds the token that was restored, or one that leads there."""
    token, state = bench.captured(1)
    bench.captured(2)
    bench.restore(token)
    again = bench.capture()
    bench.write(3)
    bench.restore(again)
    bench.expect(state, "the state after a restore was captured, and restored")


def can_be_written_after_a_restore(bench: Bench) -> None:
    """Nothing is locked behind a commit, and the next capture notices the next write."""
    token, _ = bench.captured(1)
    bench.captured(2)
    bench.restore(token)
    newer, state = bench.captured(3)
    require(newer != token, "a write behind a restore was not noticed")
    bench.expect(state, "after a write behind a restore")


def prepare_shows_nothing(bench: Bench) -> None:
    """What is prepared is visible to nobody before `commit`."""
    token, old = bench.captured(1)
    _, state = bench.captured(2)
    bench.participant.prepare("one", token)
    try:
        if bench.participant.can_prepare:
            bench.expect_hidden(state, "after `prepare`")
    finally:
        bench.participant.commit("one")
    bench.expect(old, "after `commit`")


def prepare_can_be_repeated(bench: Bench) -> None:
    """A second `prepare` of the same restore is no error, and does no harm."""
    token, old = bench.captured(1)
    bench.captured(2)
    for _ in range(2):
        bench.participant.prepare("one", token)
    bench.participant.commit("one")
    bench.expect(old, "after two `prepare` and a `commit`")


def commit_can_be_repeated(bench: Bench) -> None:
    """A second `commit` changes nothing, in this process or in another, also after a write."""
    token, old = bench.captured(1)
    bench.captured(2)
    id = bench.restore(token)
    bench.participant.commit(id)
    bench.expect(old, "after a second `commit`")
    state = bench.write(3)
    bench.participant.commit(id)
    bench.expect(state, "after a write and one more `commit`")
    bench.participant = bench.another()
    bench.participant.commit(id)
    bench.expect(state, "after one more `commit` by another process")


def abort_undoes_prepare(bench: Bench) -> None:
    """After `abort` nothing has happened, nothing is locked, and the next restore works."""
    token, old = bench.captured(1)
    _, state = bench.captured(2)
    bench.participant.prepare("one", token)
    bench.participant.abort("one")
    bench.expect(state, "after `abort`")
    bench.participant.abort("one")
    bench.expect(state, "after a second `abort`")
    bench.write(3)
    bench.capture()
    bench.restore(token)
    bench.expect(old, "after the restore behind an `abort`")


def abort_without_prepare(bench: Bench) -> None:
    """`abort` of what was never prepared is no error, and changes nothing."""
    bench.captured(1)
    _, state = bench.captured(2)
    bench.participant.abort("never")
    bench.expect(state, "after an `abort` without `prepare`")


def refuses_what_it_does_not_know(bench: Bench) -> None:
    """A token that is none raises `ParticipantError`, and nothing changes."""
    _, state = bench.captured(1)
    told = "a token that is none was accepted"
    try:
        bench.participant.prepare("one", "no token of anybody")
        if not bench.participant.can_prepare:
            bench.participant.commit("one")
    except ParticipantError:
        told = ""
    except Exception as problem:  # noqa: BLE001 -- it is reported
        told = f"a token that is none raised {type(problem).__name__}: {problem}"
    bench.participant.abort("one")
    require(not told, told)
    bench.expect(state, "after a token that is none")


def captures_are_durable(bench: Bench) -> None:
    """What one process captured, another restores when the first has ended."""
    bench.captured(1)
    state = bench.write(4)  # which no other promise captures: a memory of this process has none

    def capture() -> str:
        bench.participant = bench.another()
        return bench.capture()

    token = bench.elsewhere(capture)
    bench.participant = bench.another()
    bench.captured(3)
    bench.restore(token)
    bench.expect(state, "after the restore of what another process captured")


def a_crash_before_the_decision(bench: Bench) -> None:
    """A process that prepared has ended: `abort` in another one, and nothing has happened."""
    token, old = bench.captured(1)
    _, state = bench.captured(2)
    _die_prepared(bench, token)
    bench.participant = bench.another()
    bench.participant.abort("one")
    if bench.participant.can_prepare:
        bench.expect(state, "after a crash and `abort`")
    bench.restore(token)
    bench.expect(old, "after a crash, `abort` and a restore")


def a_crash_behind_the_decision(bench: Bench) -> None:
    """A process that prepared has ended: `prepare` and `commit` in another one restore."""
    token, old = bench.captured(1)
    bench.captured(2)
    _die_prepared(bench, token)
    bench.participant = bench.another()
    bench.participant.prepare("one", token)
    bench.participant.commit("one")
    bench.expect(old, "after a crash, `prepare` and `commit`")


def _die_prepared(bench: Bench, token: str) -> None:
    def prepare() -> str:
        bench.participant = bench.another()
        bench.participant.prepare("one", token)
        return "prepared"

    bench.elsewhere(prepare)


PROMISES: "tuple[Promise, ...]" = (
    tells_what_it_is,
    tokens_are_short,
    same_token_if_nothing_was_written,
    new_token_after_a_write,
    capture_changes_nothing,
    describes_what_would_change,
    restores_what_was_captured,
    the_restored_state_has_its_token,
    can_be_written_after_a_restore,
    prepare_shows_nothing,
    prepare_can_be_repeated,
    commit_can_be_repeated,
    abort_undoes_prepare,
    abort_without_prepare,
    refuses_what_it_does_not_know,
    captures_are_durable,
    a_crash_before_the_decision,
    a_crash_behind_the_decision,
)
"""Functions that raise `BrokenPromise`; their names and first lines say what is promised."""


def check_one(promise: "Promise", make: "Make", folder: str) -> None:
    """Check one promise in an empty folder; raise `BrokenPromise`."""
    bench = Bench(make, folder)
    try:
        promise(bench)
    except BrokenPromise:
        raise
    except Exception as problem:
        # Whatever a participant raises where it should work breaks the promise.
        raise BrokenPromise(f"{type(problem).__name__}: {problem}") from problem
    finally:
        close = getattr(bench.subject, "close", None)
        if close is not None:
            close()


def check(make: "Make") -> None:
    """Check all promises, each in a folder of its own; raise one error that names the broken."""
    broken = []
    for promise in PROMISES:
        folder = tempfile.mkdtemp(prefix="takeback-suite-")
        try:
            check_one(promise, make, folder)
        except BrokenPromise as problem:
            broken.append(f"{promise.__name__}: {problem}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if broken:
        raise BrokenPromises(broken)
