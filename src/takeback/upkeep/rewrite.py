"""The history as it would be without what is forgotten: rows, commits, events, packs.

With a writer of packs, what has to be made anew is written; with one that only counts, this is a
preview, and, once something was forgotten, the proof that nothing is left to do.

What each event says is said again without what is forgotten. Ids, hashes and words of our own stay;
names, prompts and the like lose what shall be forgotten, and entries of lists go where nothing
sensible would be left. Nothing is written here.
"""

import re

from takeback.errors import DamagedStoreError, NewerStoreError
from takeback.ledger.beyond.effects import forget_words
from takeback.ledger.log import events
from takeback.ledger.log.events import entry_facts, entry_from
from takeback.model import words as terms
from takeback.model.forgotten import OURS, SHORTEST_TEXT, TURN, ForgottenTurn, Touched
from takeback.model.text import json_text
from takeback.model.tree import NO_HASH, NO_OBJECT
from takeback.model.words import GONE
from takeback.objects import git_view
from takeback.objects.git_view import Commit
from takeback.objects.pack_merge import Piece
from takeback.undo import rescue
from takeback.upkeep.purge import Purge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from takeback.ledger.log.events import CheckpointRow, Event
    from takeback.model.forgotten import ForgetRequest
    from takeback.ports import ObjectTaker, Progress
    from takeback.store import Store
    from takeback.upkeep.purge import Folder, Purge

    Said = dict[str, Any]


_REASON = "forgotten"
_BLANK = dict.fromkeys(("was", "became", "given")) | {"values": [], "of": GONE, "stage": "broken"}
_HEX_ID = re.compile("[0-9a-f]{40}")


class Redaction:
    """Says again what events say."""

    def __init__(self, wish: "ForgetRequest", purge: "Purge", turn: "ForgottenTurn | None") -> None:
        self._wish = wish
        self._purge = purge
        self._turn = turn
        self._patterns = wish.patterns()
        self._emptied: set[str] = set()
        """Steps that named a forgotten file: their input may hold it."""
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
            events.LOSSES_SEEN: self._checkpoint,
            events.LESSON_NOTED: self._lesson,
            events.LESSON_CHANGED: self._lesson,
            events.RELAPSE_SEEN: self._relapse,
            events.WORK_PLAN_STARTED: self._session,
            events.PLAN_STEP_ENDED: self._turn_started,
            events.MEMORY_CHANGED: self._beside,
            events.MUTATION_RECORDED: self._beside,
            events.MUTATION_SETTLED: self._beside,
        }

    def of(self, event: "Event") -> "Said":
        """What an event says without what is forgotten."""
        said: Said = dict(event.payload or {})
        special = self._each.get(event.kind)
        if special is not None:
            special(said)
        if self._is_of_turn(said) and ("effects" in said or "refusal" in said):
            forget_words(said)
        found = {key: json_text.mapped(said[key], self.words) for key in said if key not in OURS}
        return said | found if self._patterns else said

    def empties(self, event: "Event") -> bool:
        """Whether an event needs nothing any more, and says nothing at length.

        It is of a turn that is forgotten, or of a step that named a forgotten file.
        """
        said: Said = dict(event.payload or {})
        if event.kind == events.STEP_STARTED and any(
            self._wish.covers(_bytes(path)) for path in said.get("paths", ())
        ):
            self._emptied.add(str(said.get("step")))
        is_of_step = said.get("step") in self._emptied
        return event.kind in events.KINDS and (is_of_step or self._is_of_turn(said))

    def detail(self, said: "Said") -> "Said":
        """What an event says at length without what is forgotten."""
        return {key: json_text.mapped(value, self.words) for key, value in said.items()}

    def words(self, text: str) -> str:
        """Words without what shall be forgotten."""
        for pattern in self._patterns:
            text = pattern.sub(GONE, text)
        return text

    # -- kinds of events -----------------------------------------------------------------------

    def _checkpoint(self, said: "Said") -> None:
        if self._is_of_turn(said) and said.get("label"):
            said["label"] = GONE
        if said.get("owners"):
            said["owners"] = [row for row in said["owners"] if not self._hides(row[0])]
        if said.get("secrets"):
            said["secrets"] = [path for path in said["secrets"] if not self._hides(path)]
        if said.get("deltas"):
            said["deltas"] = [row for each in said["deltas"] for row in self._delta(each)]
        if said.get("losses"):
            kept = [row for row in said["losses"] if not self._hides(row[0])]
            said["losses"] = [
                [*row[:7], "" if row[7] and self._hides(row[7]) else row[7]] for row in kept
            ]

    def _delta(self, row: "list[Any]") -> "list[list[Any]]":
        path, verb, author, *more = row
        if self._hides(path):
            return []
        if more and verb != terms.OMIT and self._hides(more[0]):
            more = []
        return [[path, verb, author, *more]]

    def _session(self, said: "Said") -> None:
        if "title" in said:
            said["title"] = self._without_label(said["title"])
        if self.words(str(said.get("own_id", ""))) != said.get("own_id", ""):
            said["own_id"] = ""  # two sessions, or plans, cannot have the same; none they can have

    def _turn_started(self, said: "Said") -> None:
        if self._is_of_turn(said):
            said["label"] = GONE
            said["forgotten"] = True
            said.pop("result", None)

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
        for name in ("kept", "rescued", "left", "took", "marked"):
            if name in said:
                said[name] = [row for row in said[name] if not self._hides(row[0])]

    def _lesson(self, said: "Said") -> None:
        """What was learned from a turn are words about it."""
        if said.get("text") and self._turn and self._turn.id in said.get("turns", ()):
            said["text"] = GONE

    def _beside(self, said: "Said") -> None:
        """What a turn remembered, and what it did to the application, are words of it."""
        if self._is_of_turn(said):
            said.update((key, _BLANK[key]) for key in said.keys() & _BLANK.keys())

    def _relapse(self, said: "Said") -> None:
        said["paths"] = [path for path in said.get("paths", ()) if not self._hides(path)]

    def _set_aside(self, said: "Said") -> None:
        """A row of the journal that nobody can read: it may say anything, so it goes whole."""
        said |= {"row": GONE} if self._wish.kind != TURN else {}

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
        from takeback.history.references import quoted

        for name in (turn.label, quoted(turn.label)):
            text = text.replace(name, GONE)
        return text


def _bytes(text: object) -> bytes:
    return str(text).encode("utf-8", "surrogateescape")


_BILLION = 1_000_000_000


class Rewriting:
    """One run over the whole history; with the lock held."""

    def __init__(
        self,
        store: "Store",
        wish: "ForgetRequest",
        writer: "ObjectTaker",
        progress: "Progress | None" = None,
    ) -> None:
        self._store = store
        self._wish = wish
        self._writer = writer
        self._tell = progress or _silently
        self.packs = store.ledger.packs()
        self._held = self._holdings()
        self._known = {oid for held in self._held.values() for oid in held}
        self.purge = Purge(store.objects, writer, wish, self._known)
        turn = _turn(store, wish)
        self._turn = turn[1] if turn else None
        self._redaction = Redaction(wish, self.purge, self._turn)
        self._own = store.ledger.forgets.states_of_turn_alone(turn[0]) if turn else frozenset()
        self._rows = sorted(store.ledger.checkpoints.of_all_lines(), key=lambda row: row.number)
        self._new: dict[str, Said] = {}
        self._old: set[bytes] = set()
        self._changed = self._own_changed = 0
        self._events = 0
        self._dead: dict[str, list[bytes]] = {}
        self._named: dict[int, list[bytes]] = {}
        self._detailed: list[int] = []
        self._details: dict[int, Said | None] = {}
        """Details of events that change, as they were; those that go, as None."""
        self._left: dict[int, list[bytes]] = {}
        """What events name, and what they name from now on, where that is less."""

    def run(self) -> None:
        """Go through everything."""
        # The events first: whether a content is needed outside has to be known with the trees.
        for event in self._store.ledger.events():
            self._events += self._redaction.of(event) != event.payload
            is_emptied = self._redaction.empties(event)
            if "detail" in (event.payload or {}):
                self._look_at_detail(event.seq, is_emptied=is_emptied)
            named = events.objects_in(event.payload)
            if named:
                self._named[event.seq] = named
                if is_emptied:
                    self._left[event.seq] = []
        self._trees()
        self._objects()
        self._printed()
        self._refuse_foreign()
        self._dead = self._find_dead()

    def _printed(self) -> None:
        """Look at all details once more: which contents go is known by now."""
        printed = self.purge.lines_gone()
        for seq in self._detailed if printed.lines else ():
            old = self._details[seq] if seq in self._details else self._store.ledger.detail(seq)
            new = old and json_text.mapped(old, printed.cut_from)
            if new != old:
                self._events += seq not in self._details
                self._details[seq] = new

    def _look_at_detail(self, seq: int, *, is_emptied: bool) -> None:
        detail = self._store.ledger.detail(seq)
        if detail is None:
            return
        self._detailed.append(seq)
        new = None if is_emptied else self._redaction.detail(detail)
        if new != detail:
            self._details[seq] = new
            self._events += 1

    def _objects(self) -> None:
        """What events name is needed, unless it is forgotten."""
        purge = self.purge
        for seq, named in self._named.items():
            left = self._left.get(seq, [oid for oid in named if not purge.takes_object(oid)])
            if left != named:
                self._left[seq] = left
        self._events += len(self._left)
        for seq, oid in self._store.ledger.objects_named():
            if oid in self._left.get(seq, self._named[seq]):
                purge.marks.add(oid)
                purge.series.setdefault(oid, b"e" + oid)
        for seq, left in self._left.items():
            for oid in self._named[seq]:
                if oid not in left:
                    purge.take_object(oid)

    def _refuse_foreign(self) -> None:
        """An error if a newer program needs what it does not name: nobody knows what that holds."""
        purge = self.purge
        for name in self._store.ledger.foreign_packs():
            held = self._held.get(name)
            if held is None or not all(oid in purge.marks or oid in purge.taken for oid in held):
                raise NewerStoreError(
                    "a newer Takeback stored something that this one cannot read",
                    hint="update Takeback, and try again",
                )

    def _holdings(self) -> "dict[str, list[bytes]]":
        found = {}
        for name in self.packs:
            with self._store.objects.pack(name) as pack:
                found[name] = list(pack.objects())
        return found

    # -- checkpoints ---------------------------------------------------------------------------

    def _trees(self) -> None:
        known: dict[int, _Above] = {}
        for done, row in enumerate(self._rows):
            self._tell("looking through checkpoints", done, len(self._rows))
            parent = known.get(row.parent or 0)
            above = known[row.number] = _Above(parent)
            if row.gone is not None:
                self._let_go(row)
            else:
                self._keep(row, above)

    def _let_go(self, row: "CheckpointRow") -> None:
        """A state whose files are gone leads nowhere; its hashes would still tell of them."""
        if row.tree != NO_HASH or row.root != NO_OBJECT:
            self._old |= {row.tree, row.root, row.view}
            none = NO_OBJECT.hex()
            self._new[row.id] = {"tree": NO_HASH.hex(), "root": none, "view": none}

    def _keep(self, row: "CheckpointRow", above: "_Above") -> None:
        is_own = row.number in self._own
        folder = self.purge.nothing_known(row) if is_own else self.purge.tree(row)
        old = self._commit(row)
        label = self._label(row)
        message = old.message if label == row.label else label.encode("utf-8", "surrogateescape")
        message = self._redaction.words(_text(message)).encode("utf-8", "surrogateescape")
        same = folder.oid == row.root and folder.strong == row.tree
        self._changed += not same
        self._own_changed += is_own and not same
        if same and message == old.message and above.is_kept(old):
            above.view = row.view
            self.purge.marks.add(row.view)
            self.purge.series[row.view] = b"c"
            return
        above.is_new = True
        seconds = row.created // _BILLION
        above.view = git_view.add_commit(
            self._writer, folder.view, above.view, seconds, message.rstrip(b"\n")
        )
        self._follow(row, folder, above)

    def _follow(self, row: "CheckpointRow", folder: "Folder", above: "_Above") -> None:
        """What the event of a checkpoint says of its tree now."""
        assert above.view is not None, "it was just made"
        new: Said = {
            "tree": folder.strong.hex(),
            "root": folder.oid.hex(),
            "view": above.view.hex(),
            "entries": folder.entries if folder.oid != row.root else row.entries,
        }
        old = {"tree": row.tree, "root": row.root, "view": row.view}
        if any(new[name] != old[name].hex() for name in old):
            self._new[row.id] = new
            self._old |= {id for name, id in old.items() if new[name] != id.hex()}

    def _label(self, row: "CheckpointRow") -> str:
        if not row.label:
            return row.label
        event = self._store.ledger.event(row.event)
        return str(self._redaction.of(event).get("label", "")) if event is not None else row.label

    def _commit(self, row: "CheckpointRow") -> "Commit":
        try:
            return Commit(self._store.objects.read(row.view)[1])
        except DamagedStoreError:
            # Only what it was called is lost, and that the log knows, too.
            title = row.label or f"checkpoint {row.id}"
            return Commit(b"tree " + bytes(40) + b"\n\n" + title.encode() + b"\n")

    # -- what comes of it ----------------------------------------------------------------------

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._new or self._events or self._dead)

    def _find_dead(self) -> "dict[str, list[bytes]]":
        """The packs that hold something which nobody needs, and what of them is needed."""
        marks = self.purge.marks
        return {
            name: [oid for oid in held if oid in marks]
            for name, held in self._held.items()
            if not all(oid in marks for oid in held)
        }

    def pieces(self) -> "Iterator[Piece]":
        """What is copied out of such packs, each kind of thing by its versions, oldest first."""
        series = self.purge.series
        for name, held in self._dead.items():
            for oid in held:
                yield Piece(oid, name.encode(), series.get(oid, oid))

    def ids(self) -> "set[bytes]":
        """The hashes that must not be found in the end."""
        found = {id for id in self._old if any(id)}
        for oid in self.purge.gone:
            found |= {oid, self.purge.hashes[oid]}
        return found

    def events(self) -> "dict[int, Said]":
        """What events have to say from now on, by number; only those that change."""
        live, details = set(self.packs) - self._dead.keys(), self.details()
        changed = {}
        for event in self._store.ledger.events():
            said = self._redaction.of(event)
            if event.kind == events.CHECKPOINT_TAKEN:
                said.update(self._new.get(str(said.get("checkpoint")), {}))
            if said.get("packs"):
                # The name of a pack is a hash of what was in it, also of one that was merged since.
                said["packs"] = [pack for pack in said["packs"] if pack[0] in live]
            if said.get("dropped"):
                said["dropped"] = []
            if event.seq in self._left:
                said = self._without_objects(event.seq, said)
            if said != event.payload or event.seq in details:
                changed[event.seq] = said
        return changed

    def details(self) -> "dict[int, Said | None]":
        """What events have to say at length from now on, by number; None if that goes."""
        found = dict(self._details)
        gone = self._gone_objects()
        for seq in self._detailed if gone else ():
            detail = found.get(seq, self._store.ledger.detail(seq))
            # The start of a step may name what came into the store with its end.
            named = set(_HEX_ID.findall(json_text.dumps(detail))) & gone if detail else ()
            for oid in named:
                detail = _replaced(detail, oid)
            if named:
                found[seq] = detail
        return found

    def _gone_objects(self) -> "set[str]":
        """The ids of all objects that are forgotten, as events say them."""
        purge = self.purge
        named = {
            oid for seq, left in self._left.items() for oid in self._named[seq] if oid not in left
        }
        return {oid.hex() for oid in (*named, *purge.taken) if oid not in purge.marks}

    def _without_objects(self, seq: int, said: "Said") -> "Said":
        """The same without the ids of forgotten objects, wherever it says them."""
        left = self._left[seq]
        for oid in self._named[seq]:
            if oid not in left:
                said = _replaced(said, oid.hex())
        return {**said, "objects": [oid.hex() for oid in left]}

    def touched(self) -> Touched:
        """What all of this touches."""
        found, purge = Touched(), self.purge
        found.paths = sorted(set(map(self._shown, purge.paths)))
        found.versions, found.bytes = len(purge.gone), sum(purge.gone.values())
        found.checkpoints, found.gone = self._changed - self._own_changed, self._own_changed
        found.events = self._events
        found.turns = self._count_turns()
        found.elsewhere = sorted(
            (path, purge.names[oid])
            for oid, (_, path) in purge.taken.items()
            if oid in purge.names and self._wish.kind != TURN
        )
        return found

    def _shown(self, path: bytes) -> bytes:
        """A path as it can be told: without the text, if that is what is forgotten."""
        for text in self._wish.texts if self._wish.in_files else ():
            path = path.replace(text, GONE.encode())
        return path

    def _count_turns(self) -> int:
        if self._wish.kind == TURN:
            return 1
        changed = self._store.ledger.forgets.changed_by_turns()
        return len({turn for path, turn in changed if path in self.purge.paths})


class _Above:
    """What the commit of the next checkpoint stands on."""

    __slots__ = ("is_new", "view")

    def __init__(self, parent: "_Above | None") -> None:
        self.view: bytes | None = parent.view if parent is not None else None
        self.is_new: bool = parent is not None and parent.is_new

    def is_kept(self, view: "Commit") -> bool:
        """Whether the commit of a checkpoint already stands on the one before."""
        return not self.is_new and view.stands_on(self.view)


def _turn(store: "Store", wish: "ForgetRequest") -> "tuple[int, ForgottenTurn] | None":
    if not wish.turn:
        return None
    found = store.ledger.forgets.turn(wish.turn)
    return None if found is None else (found[0], ForgottenTurn(wish.turn, *found[1:]))


def _replaced(said: "Any", text: str) -> "Any":  # noqa: ANN401 - whatever an event holds
    return json_text.mapped(said, lambda words: words.replace(text, GONE))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _silently(doing: str, done: int, total: int) -> None:
    del doing, done, total
