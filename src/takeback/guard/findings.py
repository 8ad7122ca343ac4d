"""What the judge works with: words of a command, what flows through a pipe, and findings."""

from takeback.model.beyond.effects import INSIDE, gravity
from takeback.model.reasons import Reason
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.beyond.effects import Outside, Target

UNKNOWN = "\ufffc"
"""Stands in a word for text that is not known before the command runs."""

TEXT, FILE, LISTING, DOWNLOAD, DECODED, NOTHING, HIDDEN = (
    "text", "file", "listing", "download", "decoded", "nothing", "hidden",
)  # fmt: skip
"""What a pipe carries: known text, a file's content, names of paths, and so on."""


class Word(Value):
    """One word of a command after expansion; `raw` is how it was written."""

    value: str
    raw: str = ""
    is_glob: bool = False
    flow: "Flow | None" = None
    """What a process substitution gives to read."""
    has_secret: bool = False
    source: str = ""
    """What kind of text a command substitution put into it."""

    @property
    def is_known(self) -> bool:
        return UNKNOWN not in self.value


class Flow(Value):
    """What a command writes to its output, or gets as its input."""

    kind: str = NOTHING
    text: str = ""
    paths: "tuple[Word, ...]" = ()
    has_secret: bool = False


NO_FLOW = Flow()
HIDDEN_FLOW = Flow(HIDDEN)


class Finding(Value):
    """The class of one simple command, and what it would destroy or publish."""

    effect: str
    rule: str
    reason: Reason
    instead: str = ""
    inverse: str = ""
    targets: "tuple[Target, ...]" = ()
    git: "tuple[str, ...]" = ()
    git_dirs: "tuple[bytes, ...]" = ()
    outside: "tuple[Outside, ...]" = ()
    command: str = ""

    def at_least(self, effect: str, rule: str, reason: Reason) -> "Finding":
        """The same finding, raised to a class if it is lighter."""
        if gravity(self.effect) >= gravity(effect):
            return self
        return self.replace(effect=effect, rule=rule, reason=reason, instead="", inverse="")


def gravest_of(found: "Iterable[Finding]") -> "Finding | None":
    return max(found, key=lambda each: gravity(each.effect), default=None)


def target_effect(targets: "Iterable[Target]", lightest: str = INSIDE) -> str:
    """The class that targets of a deletion or an overwrite give a command."""
    from takeback.model.beyond.effects import DESTRUCTIVE, IN_TREE

    effect = lightest
    for each in targets:
        found = INSIDE if each.where == IN_TREE else DESTRUCTIVE
        effect = max(effect, found, key=gravity)
    return effect
