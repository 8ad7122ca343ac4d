"""The verb that cannot be taken back: forget."""

import os
import time

from takeback.capturing import Capturing
from takeback.disk.failures import FailingAs
from takeback.errors import TakebackError, UnknownReferenceError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.history.lookup import Place
    from takeback.model.forgotten import Forgotten, Wish
    from takeback.ports import Progress

    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_PATIENCE = 60.0
"""Seconds: who puts packs in order may have many of them."""


class WithForget(Capturing):
    """A project that can forget."""

    def forget(
        self,
        paths: "Iterable[AnyPath]" = (),
        *,
        turn: str = "",
        content: "bytes | None" = None,
        text: str = "",
        names: bool = False,
        inside: bytes = b"",
        dry_run: bool = False,
        progress: "Progress | None" = None,
    ) -> "Forgotten":
        """Take something out of the history for good. It cannot be taken back.

        `paths` in every state, each with all below it, and with `names` their names; the words
        of a `turn`, and the states that only it has; exactly this `content`, under whatever
        name; or every file and every word that holds a `text`. The work tree stays as it is.
        With `dry_run` only what it would touch is found out.
        """
        with (
            FailingAs(TakebackError, "nothing was forgotten"),
            self._store.tending(_PATIENCE),
            self.held(),
        ):
            self._forgetter(progress).go_on()
            wish = self._wish(tuple(map(os.fsencode, paths)), turn, content, text, names, inside)
            doing = self._forgetter(progress)
            if dry_run:
                from takeback.model.forgotten import Forgotten

                return Forgotten(wish, 0.0, doing.preview(wish), 0)
            try:
                return doing.carry_out(wish)
            finally:
                self._cache = None

    def continue_forgetting(self, *, progress: "Progress | None" = None) -> bool:
        """Go on with a forget that was interrupted; False if there is none."""
        with FailingAs(TakebackError, "forgetting is not finished"):
            began = self.ledger.forgets.under_way() is not None
            with self._store.tending(_PATIENCE), self.held():
                self._forgetter(progress).go_on()
                self._cache = None
                return began

    def is_path(self, word: bytes, inside: bytes = b"") -> bool:
        """Whether a word names something that the history, or the work tree, knows as a path."""
        if os.path.lexists(os.path.join(self.root, inside, word)):
            return True
        try:
            within, beyond = self._sorted((word,), inside)
        except UsageError:
            return False
        return any(map(self._is_known, within)) or any(
            self.ledger.forgets.is_outside(path) for path in beyond
        )

    def _is_known(self, path: bytes) -> bool:
        """Whether some turn, or somebody else, changed a path, or the newest state holds it."""
        if self.ledger.forgets.is_changed(path):
            return True
        newest = self.ledger.checkpoints.newest()
        if newest is None:
            return False
        from takeback.history import lookup
        from takeback.history.compare import Saved

        state = Saved(self._store.reader(), newest, self.ledger)
        try:
            return lookup.find(state, path) is not None
        finally:
            state.close()

    # -- what is meant -------------------------------------------------------------------------

    def _wish(
        self,
        paths: "tuple[bytes, ...]",
        turn: str,
        content: "bytes | None",
        text: str,
        names: bool,
        inside: bytes,
    ) -> "Wish":
        from takeback.model import forgotten, ids
        from takeback.model.forgotten import Wish

        given = [bool(paths), bool(turn), content is not None, bool(text)]
        if sum(given) != 1:
            raise UsageError(
                "one thing is forgotten at a time: paths, a turn, a content or a text",
                hint="see `takeback forget --help`",
            )
        id = ids.from_entropy(os.urandom(8))
        if paths:
            within, beyond = self._sorted(paths, inside)
            return Wish(forgotten.PATH, id, paths=within, outside=beyond, names=names)
        if content is not None:
            return _of_content(id, content)
        if turn:
            return Wish(forgotten.TURN, id, turn=self._turn_meant(turn))
        raw = os.fsencode(text)
        if len(raw) < forgotten.SHORTEST_TEXT:
            raise UsageError(
                f"a text of less than {forgotten.SHORTEST_TEXT} bytes would be found everywhere",
                hint="give more of it",
            )
        return Wish(forgotten.TEXT, id, texts=(raw,), in_files=True)

    def _sorted(
        self, paths: "tuple[bytes, ...]", inside: bytes
    ) -> "tuple[list[bytes], list[bytes]]":
        """Paths in the project, counted from its root, and whole ones of files outside."""
        from takeback.disk import descent
        from takeback.history.lookup import Place
        from takeback.model import tools

        place, within, beyond = Place(self.root, inside), [], []
        for path in paths:
            whole = descent.whole(self.root, inside, path)
            if tools.inside(self.root, self.root, whole) is None and path.startswith((b"/", b"..")):
                beyond.append(whole)
                continue
            found = self._meant(place, path)
            if not found:
                raise UsageError(
                    "the whole project cannot be forgotten like this",
                    hint="its history is the folder that `takeback` names: remove that",
                )
            within.append(found)
        return within, beyond

    def _meant(self, place: "Place", path: bytes) -> bytes:
        candidates = place.candidates(path)
        for each in candidates:
            there = os.path.lexists(os.path.join(self.root, each))
            if there or self._is_known(each):
                return each
        return candidates[0]

    def _turn_meant(self, ref: str) -> str:
        from takeback.history import references
        from takeback.history.references import TURN
        from takeback.model.words import RUNNING

        meant = references.find(self.ledger, ref, time.time())
        if meant.kind != TURN or meant.before:
            raise UnknownReferenceError(
                f"`{ref}` is no turn", hint="`takeback log` shows turns and their ids"
            )
        row = self.ledger.turns.get(self.ledger.turns.id_of(meant.number))
        if row.status == RUNNING:
            raise UsageError(f"`{ref}` still runs", hint="forget it when it is over")
        return row.id


def _of_content(id: str, content: bytes) -> "Wish":
    """Exactly these bytes; a short text also where somebody said it."""
    import hashlib

    from takeback.model import forgotten
    from takeback.model.forgotten import Wish
    from takeback.objects.git_objects import BLOB, object_id

    said = content.strip()
    is_text = forgotten.SHORTEST_TEXT * 2 <= len(said) <= forgotten.LONGEST_TEXT and 0 not in said
    texts = (said,) if is_text and b"\n" not in said else ()
    objects = (object_id(BLOB, content),)
    contents = (hashlib.sha256(content).digest(),)
    return Wish(forgotten.CONTENT, id, contents=contents, objects=objects, texts=texts)
