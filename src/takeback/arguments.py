"""What callers of the Python API see of a project, and may give for a turn, a path or a choice."""

import os

from takeback.errors import UsageError
from takeback.model.words import REDO, ROLLBACK, UNDO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol, TypedDict

    from takeback.capture.workspace import Workspace
    from takeback.effects.effect_log import Effects
    from takeback.history.reader import HistoryReader
    from takeback.lessons.lessons import Lessons
    from takeback.model.plan import Decisions, Description
    from takeback.upkeep.upkeep import Upkeep

    AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Paths = Iterable[AnyPath]
    Decide = str | Mapping[Any, str]
    """What was decided about conflicts: for all, by path, or by path and the index of a hunk."""

    class WithId(Protocol):
        """A turn, a checkpoint, a report: whatever has an id."""

        @property
        def id(self) -> str:
            """Its id."""

    Named = str | WithId
    Only = str | Iterable[str]

    class Applied(TypedDict, total=False):
        """How a plan is applied."""

        because: str
        keep_mtime: bool
        yes: bool
        asker: str
        only_own: bool

    class Options(Applied, total=False):
        """How a restore is done."""

        request: str | None

    class Which(TypedDict, total=False):
        """Which turns the log lists."""

        session: str | None
        since: str | float | None
        until: str | float | None
        grep: str
        paths: Paths
        inside: AnyPath
        all: bool
        changes: bool
        before: str | None


PUBLIC = """
    apply checkpoint checkpoints close compare continue_forgetting effects extract forget gc
    git_dir id keep kept lessons log on_restore origin plan_redo plan_rollback plan_undo read
    rebuild recorded recovered redo register release rescued retry_participants rollback root
    session sessions status turn undo usage usage_by verify
""".split()
"""What `dir(project)` lists, and docs/python.md describes."""


class Rooms:
    """The rooms of a project that have verbs of their own."""

    workspace: "Workspace"

    @property
    def reader(self) -> "HistoryReader":
        """Reads the log and states, for our own doors."""
        from takeback.history.reader import HistoryReader

        return HistoryReader(self.workspace)

    @property
    def lessons(self) -> "Lessons":
        """What restores taught: list, note, accept, edit and drop."""
        from takeback.lessons.lessons import Lessons

        return Lessons(self.workspace)

    @property
    def effects(self) -> "Effects":
        """What agents did outside the files."""
        from takeback.effects.effect_log import Effects

        return Effects(self.workspace)

    @property
    def upkeep(self) -> "Upkeep":
        """Tends and repairs the store, for our own doors."""
        from takeback.upkeep.upkeep import Upkeep

        return Upkeep(self.workspace)


def name_of(what: "Named") -> str:
    return what if isinstance(what, str) else what.id


def undo_of(
    turn: "Named | Iterable[Named] | None",
    session: "str | None",
    whole_session: str,
    paths: "Paths",
    decide: "Decide",
    shared: bool,
    *,
    by_hunk: bool = False,
    only: "Only" = (),
) -> "Description":
    from takeback.model.plan import Description

    is_one = turn is None or isinstance(turn, str) or hasattr(turn, "id")
    named: Any = [] if turn is None else [turn] if is_one else turn
    return Description(
        UNDO,
        tuple(name_of(each) for each in named),
        session=session,
        whole_session=whole_session,
        paths=paths_of(paths),
        decide=_decided(decide),
        shared=shared,
        by_hunk=by_hunk,
        only=only_of(only),
    )


def redo_of(
    turn: "Named | None",
    session: "str | None",
    paths: "Paths",
    decide: "Decide",
    *,
    by_hunk: bool = False,
    only: "Only" = (),
) -> "Description":
    from takeback.model.plan import Description

    refs = () if turn is None else (name_of(turn),)
    return Description(
        REDO,
        refs,
        session=session,
        paths=paths_of(paths),
        decide=_decided(decide),
        by_hunk=by_hunk,
        only=only_of(only),
    )


def rollback_to(
    ref: "Named", session: "str | None", paths: "Paths", only: "Only" = ()
) -> "Description":
    from takeback.model.plan import Description

    chosen = only_of(only)
    return Description(
        ROLLBACK, (name_of(ref),), session=session, paths=paths_of(paths), only=chosen
    )


def only_of(only: "Only") -> "tuple[str, ...]":
    """What may move: a list, or words with commas between them; nothing means everything."""
    from takeback.model.beyond.participants import EVERY

    words = only.split(",") if isinstance(only, str) else only
    chosen = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    for word in chosen:
        if word not in EVERY:
            raise UsageError(f"`{word}` cannot be moved alone", hint=f"use {', '.join(EVERY)}")
    return chosen


def _decided(decide: "Decide") -> "str | Decisions":
    if isinstance(decide, str) or all(isinstance(path, bytes) for path in decide):
        return decide
    return {_place(key): how for key, how in decide.items()}


def _place(key: "AnyPath | tuple[AnyPath, int]") -> "bytes | tuple[bytes, int]":
    """A path, or a path and the index of a hunk."""
    return (os.fsencode(key[0]), key[1]) if isinstance(key, tuple) else os.fsencode(key)


def paths_of(paths: "Paths") -> "tuple[bytes, ...]":
    if isinstance(paths, str | bytes):
        raise UsageError("`paths` takes several paths", hint="write paths=[PATH] for a single one")
    return tuple(map(os.fsencode, paths))


def raw(which: "Which") -> "dict[str, Any]":
    """The same with paths as bytes."""
    inside = os.fsencode(which.get("inside", b""))
    return {**which, "paths": paths_of(which.get("paths", ())), "inside": inside}
