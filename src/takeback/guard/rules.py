"""The user's own rules about calls: parsed values. Who reads which file is not known here."""

from takeback.model.value import Value


class Rule(Value):
    """One rule: a command's words or a tool's name, as patterns, and the class they mean."""

    id: str
    effect: str
    match: "tuple[str, ...]" = ()
    tool: str = ""
    reason: str = ""
    instead: str = ""
    inverse: str = ""
    examples: "tuple[str, ...]" = ()
    not_examples: "tuple[str, ...]" = ()


class Rules(Value):
    """The rules that count, in their order, and the MCP servers whose annotations are believed.

    `tree` are rules of a file in the tree: these can only make a class graver.
    """

    rules: "tuple[Rule, ...]" = ()
    trusted: "tuple[str, ...]" = ()
    tree: "tuple[Rule, ...]" = ()


NONE = Rules()
