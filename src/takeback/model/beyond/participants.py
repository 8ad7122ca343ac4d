"""State beside the files that moves with them, as values: what would change, and what moves."""

from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.reasons import Reason

FILES, CONVERSATION, MEMORY, DATABASES, OTHER = (
    "files", "conversation", "memory", "databases", "other",
)  # fmt: skip
KINDS = (MEMORY, DATABASES, OTHER)
"""What a participant may be."""

LONGEST_TOKEN = 1024
"""Bytes."""


class Difference(Value):
    """What restoring would change: a table, a key, a file; None where nobody counted."""

    what: str
    added: "int | None" = None
    removed: "int | None" = None
    changed: "int | None" = None


MOVES, AFTERWARDS, STAYS, CONFLICTS = "moves", "afterwards", "stays", "conflicts"
"""With the files; after the decision; not at all; not until somebody decides."""
DONE, FAILED = "done", "failed"
"""What became of it."""


class Move(Value):
    """What a restore does with a participant, or with a mutation of the application's state.

    `token` is where it goes, `before` what the safety capture holds. `how` is one of `MOVES`,
    `AFTERWARDS`, `STAYS` and `CONFLICTS`; in a report also `DONE` and `FAILED`.
    """

    name: str
    kind: str
    how: str
    token: str = ""
    before: str = ""
    reason: "Reason | None" = None
    differences: "tuple[Difference, ...]" = ()


MEMORY_NAME = "memory."
"""How the names of the memories of sessions begin; the id of the session follows."""
MUTATION_NAME = "mutation."
"""How the names of mutations begin; the key follows."""
EVERY = (FILES, CONVERSATION, MEMORY, DATABASES, OTHER)
"""What `--only` takes."""


class Captured(Value):
    """A participant's tokens before and after a turn, or at a checkpoint only `after`.

    An empty token means that its state was not known; `problem` says why.
    """

    name: str
    kind: str
    before: str
    after: str
    problem: str = ""


class Mutation(Value):
    """What an agent did to the application: a `target` that was `before`, and is `after` it.

    `key` is its own: an inverse that is called twice with one key must act once. `given` is what
    the tool was called with, as [positional, named], if it was a tool.
    """

    key: str
    turn: str
    target: str
    before: object
    after: object
    given: object = None
    inverse: str = ""
    state: str = ""
    event: int = 0
