"""Events without what is forgotten: what each says, said again without it.

Nothing is written here. Ids, hashes and words of our own stay; names, prompts and the like lose
what shall be forgotten, and entries of lists go where nothing sensible would be left.
"""

from takeback.engine import rescue
from takeback.model import terms
from takeback.model.forget import GONE, SHORTEST_TEXT, TURN
from takeback.store import events
from takeback.store.rows import entry_facts, entry_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from takeback.engine.purge import Purge
    from takeback.model.forget import Wish
    from takeback.store.events import Event

    Said = dict[str, Any]

_OURS = frozenset(
    (
        "after", "authors", "before", "changes", "checkpoint", "checkpoints", "deltas", "dropped",
        "entry", "events", "files", "holder", "inside", "kept", "kind", "looked",
        "outside", "owners", "packs", "parent", "paths", "rescued", "restore",
        "root", "saves", "session", "status", "step", "target", "tree", "turn", "turns", "verb",
        "view", "when",
    )
)  # fmt: skip
"""What of an event is made of ids, hashes and words of our own, or is seen to one by one."""
_REASON = "forgotten"


class ForgottenTurn:
    """A turn whose words shall go: its id, its steps, and what it was called."""

    __slots__ = ("id", "label", "steps")

    def __init__(self, id: str, label: str, steps: "frozenset[str]") -> None:
        self.id = id
        self.label = label
        self.steps = steps


class Redaction:
    """Says again what events say."""

    def __init__(self, wish: "Wish", purge: "Purge", turn: "ForgottenTurn | None") -> None:
        self._wish = wish
        self._purge = purge
        self._turn = turn
        self._patterns = wish.patterns()
        self._each: dict[str, Callable[[Said], None]] = {
            events.CHECKPOINT_TAKEN: self._checkpoint,
            events.CHECKPOINT_NAMED: self._checkpoint,
            events.SESSION_STARTED: self._session,
            events.TURN_STARTED: self._turn_started,
            events.TURN_ENDED: self._changes,
            events.STEP_STARTED: self._step,
            events.STEP_ENDED: self._changes,
            events.RESTORE_APPLIED: self._restore,
            events.RESTORE_TAKEN_BACK: self._remarks,
            events.RESTORE_SET_ASIDE: self._set_aside,
            events.SAVES_RESCUED: self._saves,
            events.OUTSIDE_SEEN: self._files,
        }

    def of(self, event: "Event") -> "Said":
        """What an event says without what is forgotten."""
        said: Said = dict(event.payload or {})
        special = self._each.get(event.kind)
        if special is not None:
            special(said)
        if self._patterns:
            for key, value in said.items():
                if key not in _OURS:
                    said[key] = self._words(value)
        return said

    def words(self, text: str) -> str:
        """Words without what shall be forgotten."""
        for pattern in self._patterns:
            text = pattern.sub(GONE, text)
        return text

    def _words(self, value: "Any") -> "Any":  # noqa: ANN401 - whatever an event holds
        if isinstance(value, str):
            return self.words(value)
        if isinstance(value, list):
            return [self._words(each) for each in value]
        if isinstance(value, dict):
            return {key: self._words(each) for key, each in value.items()}
        return value

    # -- kinds of events -----------------------------------------------------------------------

    def _checkpoint(self, said: "Said") -> None:
        if self._is_of_turn(said) and said.get("label"):
            said["label"] = GONE
        if said.get("owners"):
            said["owners"] = [row for row in said["owners"] if not self._hides(row[0])]
        if said.get("deltas"):
            said["deltas"] = [row for each in said["deltas"] for row in self._delta(each)]

    def _delta(self, row: "list[Any]") -> "list[list[Any]]":
        path, verb, author, *more = row
        if self._hides(path):
            return []
        if more and verb != terms.OMIT and self._hides(more[0]):
            more = []
        return [[path, verb, author, *more]]

    def _session(self, said: "Said") -> None:
        said["title"] = self._without_label(said.get("title", ""))
        if self.words(str(said.get("own_id", ""))) != said.get("own_id", ""):
            # Two sessions of an agent cannot have the same id of its own; none they can have.
            said["own_id"] = ""

    def _turn_started(self, said: "Said") -> None:
        if self._is_of_turn(said):
            said["label"] = GONE
            said["forgotten"] = True

    def _step(self, said: "Said") -> None:
        if self._is_of_turn(said):
            said["summary"], said["paths"] = GONE, []
        said["paths"] = [path for path in said.get("paths", ()) if not self._hides(path)]

    def _changes(self, said: "Said") -> None:
        if "changes" not in said:
            return
        if self._is_of_turn(said):
            said["changes"] = []
        said["changes"] = [row for each in said["changes"] for row in self._change(each)]

    def _change(self, row: "list[Any]") -> "list[list[Any]]":
        path, verb, added, removed, how, *origin = row
        hides_origin = bool(origin) and self._hides(origin[0])
        if self._hides(path):
            # What a file was called before it got a name that is forgotten is gone from there.
            is_known = bool(origin) and not hides_origin
            return [[origin[0], terms.DELETE, None, None, how]] if is_known else []
        if hides_origin:
            verb = terms.CREATE if verb == terms.RENAME else verb
            return [[path, verb, added, removed, how]]
        return [row]

    def _restore(self, said: "Said") -> None:
        if self._is_of_turn(said) or (self._turn and self._turn.id in said.get("turns", ())):
            said["because"] = GONE if said.get("because") else ""
        said["goal"] = self._without_label(said.get("goal", ""))
        self._remarks(said)
        if "outside" in said:
            said["outside"] = [row for row in said["outside"] if not self._was_outside(row)]

    def _was_outside(self, row: "list[Any]") -> bool:
        """Whether what a restore did to a file outside is forgotten; unknown is not absent."""
        path = _bytes(row[0])
        sides = [entry_from(facts) for facts in row[1:3]]
        known = [entry for entry in sides if entry is not None]
        if self._takes_outside(path) or any(map(self._purge.contains, known)):
            for entry in known:
                self._purge.take(path, entry)
            return True
        for entry in known:
            self._purge.keep(path, entry)
        return False

    def _remarks(self, said: "Said") -> None:
        for name in ("kept", "rescued"):
            if name in said:
                rows = [row for row in said[name] if not self._hides(row[0])]
                said[name] = [[path, self.words(str(why))] for path, why in rows]

    def _set_aside(self, said: "Said") -> None:
        """A row of the journal that nobody can read: it may say anything, so it goes whole."""
        if self._wish.kind != TURN:
            said["row"] = GONE

    def _saves(self, said: "Said") -> None:
        said["saves"] = [row for row in said.get("saves", ()) if self._keeps_save(row)]

    def _keeps_save(self, row: "list[Any]") -> bool:
        at, entry = rescue.as_entry(*row)
        is_named = self._wish.covers(at) or self._takes_outside(at)
        if is_named or self._purge.contains(entry):
            self._purge.take(at, entry)
            return False
        self._purge.keep(at, entry)
        return True

    def _files(self, said: "Said") -> None:
        files = []
        for step, path, facts, reason in said.get("files", ()):
            at, entry = _bytes(path), entry_from(facts)
            of_turn = self._is_of_turn(said) or (
                self._turn is not None and step in self._turn.steps
            )
            contains = entry is not None and self._purge.contains(entry)
            if self._takes_outside(at) or of_turn or contains:
                if entry is not None:
                    self._purge.take(at, entry)
                if not self._wish.hides(at):
                    files.append([step, path, None, reason or _REASON])
                continue
            if entry is not None:
                self._purge.keep(at, entry)
            files.append([step, path, entry_facts(entry), reason])
        said["files"] = files

    # -- small pieces --------------------------------------------------------------------------

    def _is_of_turn(self, said: "Said") -> bool:
        turn = self._turn
        if turn is None:
            return False
        return said.get("turn") == turn.id or said.get("step") in turn.steps

    def _takes_outside(self, path: bytes) -> bool:
        return self._wish.covers_outside(path) or self._wish.hides(path)

    def _hides(self, path: object) -> bool:
        return self._wish.hides(_bytes(path))

    def _without_label(self, text: str) -> str:
        """What restores and sessions are called after the turn."""
        turn = self._turn
        if turn is None or len(turn.label) < SHORTEST_TEXT:
            return text
        from takeback.engine.naming import quoted

        for name in (turn.label, quoted(turn.label)):
            text = text.replace(name, GONE)
        return text


def _bytes(text: object) -> bytes:
    return str(text).encode("utf-8", "surrogateescape")
