"""What a checkpoint is taken of, and where in the log it belongs."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from takeback.engine.deltas import Delta
    from takeback.engine.finish import Finish
    from takeback.engine.glances import Glances
    from takeback.model.history import Author
    from takeback.model.jsontext import Json
    from takeback.ports import Progress, Rules

    Attribute = Callable[[list[Delta], int], list[Author]]


class Place:
    """Where in the log a checkpoint is taken: the ids of session, turn and step, if any.

    `title` is what the git view calls it. Prompts are kept out of it: `forget` has to find
    every copy of them.
    """

    __slots__ = ("parents", "session", "step", "title", "turn")

    def __init__(
        self,
        session: "str | None" = None,
        turn: "str | None" = None,
        step: "str | None" = None,
        parents: "tuple[int, ...]" = (),
        title: str = "",
    ) -> None:
        self.title = title
        self.session = session
        self.turn = turn
        self.step = step
        self.parents = parents


class Request:
    """What a checkpoint is taken of, when, where in the log, and what it will be called.

    `attribute` tells the authors of what changed. A `silent` one leaves no event when nothing
    changed, and does not tell what was left out: whoever asked for it records what it was for.
    `wanted` are files that are captured whatever their size; `again` are paths whose stamps are not
    to be believed. `modes` are those that paths really have which are open for this look only.
    `finish` is the restore that is committed with the checkpoint. `glances` may know where nothing
    happened.
    """

    __slots__ = (
        "again",
        "at",
        "attribute",
        "device",
        "finish",
        "glances",
        "id",
        "label",
        "modes",
        "mounts",
        "place",
        "progress",
        "rehash",
        "request",
        "root",
        "rules",
        "silent",
        "strangers",
        "wanted",
    )

    def __init__(
        self,
        *,
        root: int,
        device: int,
        rules: "Callable[[Callable[[bytes], bool]], Rules]",
        mounts: "frozenset[bytes] | None",
        strangers: "Mapping[tuple[int, int], int]",
        at: int,
        id: str,
        label: str,
        attribute: "Attribute | None",
        place: Place,
        silent: bool = False,
        request: "str | None" = None,
        rehash: bool = False,
        progress: "Progress | None" = None,
        wanted: "frozenset[bytes]" = frozenset(),
        again: "frozenset[bytes]" = frozenset(),
        modes: "Mapping[bytes, int] | None" = None,
        finish: "Finish | None" = None,
        glances: "Glances | None" = None,
    ) -> None:
        self.again = again
        self.modes = modes or {}
        self.root = root
        self.device = device
        self.rules = rules
        self.mounts = mounts
        self.strangers = strangers
        self.at = at
        self.id = id
        self.label = label
        self.attribute = attribute
        self.place = place
        self.silent = silent
        self.request = request
        self.rehash = rehash
        self.progress = progress
        self.wanted = wanted
        self.finish = finish
        self.glances = glances

    def coordinate(self) -> "dict[str, Json]":
        """Where in the log this is, as events say it."""
        return {
            "session": self.place.session,
            "turn": self.place.turn,
            "step": self.place.step,
            "looked": self.at,
        }

    def tell(self, doing: str, done: int, total: int) -> None:
        """Say how far it has come, if anybody listens."""
        if self.progress is not None:
            self.progress(doing, done, total)
