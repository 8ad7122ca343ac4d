"""The user's own rules about calls: parsed values. Who reads which file is not known here."""

from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from takeback.guard.findings import Finding
    from takeback.model.beyond.effects import Judgement
    from takeback.model.reasons import Reason


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

    `tree` are rules of a file in the tree: these can only make a class graver. `held` are the
    databases that participants hold: paths of SQLite files, and `host/name` of others.
    """

    rules: "tuple[Rule, ...]" = ()
    trusted: "tuple[str, ...]" = ()
    tree: "tuple[Rule, ...]" = ()
    held: "tuple[str, ...]" = ()


NONE = Rules()


def matches(rule: Rule, words: "Sequence[str]") -> bool:
    """Whether a command's words begin with the patterns of a rule; `**` is any number of words."""
    return bool(rule.match) and _matched(rule.match, list(words))


def _matched(patterns: "Sequence[str]", words: "Sequence[str]") -> bool:
    from fnmatch import fnmatchcase

    if not patterns:
        return True
    first, rest = patterns[0], patterns[1:]
    if first == "**":
        return any(_matched(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and fnmatchcase(words[0], first) and _matched(rest, words[1:])


def applied(
    rules: Rules, words: "Sequence[str]", found: "list[Finding]", raw: str
) -> "list[Finding]":
    """The findings about a command with the first rule that matches it."""
    named = [words[0].rpartition("/")[2], *words[1:]]
    for rule in rules.rules:
        if matches(rule, named):
            found = [_ruled(rule, found, raw)]
            break
    for rule in rules.tree:
        if matches(rule, named):
            found = [_graver(rule, found, raw)]
    return found


def _ruled(rule: Rule, found: "list[Finding]", raw: str, origin: str = "user") -> "Finding":
    from takeback.guard.findings import Finding
    from takeback.model.reasons import Reason

    return Finding(
        rule.effect,
        f"{origin}.{rule.id}",
        Reason("rule", rule=rule.id, text=rule.reason),
        rule.instead,
        rule.inverse,
        tuple(target for each in found for target in each.targets),
        tuple(loss for each in found for loss in each.git),
        tuple(folder for each in found for folder in each.git_dirs),
        tuple(outside for each in found for outside in each.outside),
        raw,
    )


def _graver(rule: Rule, found: "list[Finding]", raw: str) -> "Finding":
    from takeback.guard.findings import gravest_of
    from takeback.model.beyond.effects import gravity

    made = _ruled(rule, found, raw, "tree")
    before = gravest_of(found)
    if before is None or gravity(before.effect) < gravity(rule.effect):
        return made
    return made.replace(
        effect=before.effect, rule=before.rule, reason=before.reason, instead=before.instead,
        inverse=before.inverse,
    )  # fmt: skip


def with_tool_rules(rules: Rules, tool: str, found: "Judgement") -> "Judgement":
    """A judgement with the first rule about the tool's name."""
    from fnmatch import fnmatchcase

    from takeback.model.beyond.effects import gravity
    from takeback.model.reasons import Reason

    for origin, listed in (("user", rules.rules), ("tree", rules.tree)):
        for rule in listed:
            if not rule.tool or rule.match or not fnmatchcase(tool, rule.tool):
                continue
            if origin == "tree" and gravity(rule.effect) <= gravity(found.effect):
                continue
            found = found.replace(
                effect=rule.effect, rule=f"{origin}.{rule.id}",
                reason=Reason("rule", rule=rule.id, text=rule.reason), instead=rule.instead,
                inverse=rule.inverse,
            )  # fmt: skip
            break
    return found


# -- reading ------------------------------------------------------------------------------------


def parse(tables: "Mapping[str, object]", origin: str) -> "tuple[Rules, tuple[Reason, ...]]":
    """The rules of a file that was read, and what is wrong in it: codes, each with the rule."""
    from takeback.model.reasons import Reason

    made: list[Rule] = []
    wrong: list[Reason] = []
    given = tables.get("rule", [])
    for number, table in enumerate(given if isinstance(given, list) else [], 1):
        rule, code = _rule(table if isinstance(table, dict) else {}, number)
        if rule is not None:
            made.append(rule)
        else:
            wrong.append(Reason(code, origin=origin, rule=str(number)))
    wrong += [
        Reason("guard-unknown-table", origin=origin, name=name)
        for name in tables
        if name not in {"rule", "mcp"}
    ]
    mcp = tables.get("mcp")
    return Rules(tuple(made), _texts(mcp.get("trusted") if isinstance(mcp, dict) else ())), tuple(
        wrong
    )


def _rule(table: "Mapping[str, object]", number: int) -> "tuple[Rule | None, str]":
    from takeback.model.beyond.effects import CLASSES

    effect = str(table.get("class", ""))
    if effect not in CLASSES:
        return None, "guard-unknown-class"
    match, tool = _words(table.get("match")), str(table.get("tool", ""))
    if not match and not tool:
        return None, "guard-no-match"
    return Rule(
        str(table.get("id") or f"rule-{number}"), effect, match, tool,
        str(table.get("reason", "")), str(table.get("instead", "")), str(table.get("inverse", "")),
        _texts(table.get("examples")), _texts(table.get("not_examples")),
    ), ""  # fmt: skip


def _words(given: object) -> "tuple[str, ...]":
    """Patterns of words: a list, or a text that is split as a shell would."""
    import shlex

    if isinstance(given, str):
        try:
            words = shlex.split(given)
        except ValueError:
            return ()
    else:
        words = list(_texts(given))
    if words and words[0] != "**":
        words[0] = words[0].rpartition("/")[2]
    return tuple(words)


def _texts(given: object) -> "tuple[str, ...]":
    if not isinstance(given, list | tuple):
        return ()
    return tuple(each for each in given if isinstance(each, str))


def lighter(found: Rules) -> "tuple[Reason, ...]":
    """What a file in the tree would make lighter, which does not count."""
    from takeback.model.reasons import Reason

    wrong = [
        Reason("guard-tree-lighter", rule=rule.id, effect=rule.effect)
        for rule in found.rules
        if _is_lighter(rule)
    ]
    if found.trusted:
        wrong.append(Reason("guard-tree-trust", servers=found.trusted))
    return tuple(wrong)


def _is_lighter(rule: Rule) -> bool:
    """Whether what a rule names is graver without it."""
    import shlex

    from takeback.guard.judge import judge
    from takeback.model import words
    from takeback.model.beyond.effects import gravity

    patterns = [word for word in rule.match if not set("*?[") & set(word)]
    texts = [*rule.examples, shlex.join(patterns)] if patterns else list(rule.examples)
    for text in texts:
        known = judge("Bash", {"command": text}, kind=words.SHELL, cwd=b"/", root=b"/", home=b"/")
        if gravity(known.effect) > gravity(rule.effect):
            return True
    return False


def failing(rules: Rules, cwd: bytes, root: bytes, home: bytes) -> "list[tuple[str, str, str]]":
    """Examples that a rule does not decide, and counter-examples that it does.

    Each is the rule's id, the example, and the rule that decides it.
    """
    from takeback.guard.judge import judge
    from takeback.model import words

    failed: list[tuple[str, str, str]] = []
    for origin, listed in (("user", rules.rules), ("tree", rules.tree)):
        for rule in listed:
            name = f"{origin}.{rule.id}"
            for wanted, texts in ((True, rule.examples), (False, rule.not_examples)):
                for text in texts:
                    found = judge(
                        "Bash", {"command": text}, kind=words.SHELL, cwd=cwd, root=root, home=home,
                        rules=rules,
                    )  # fmt: skip
                    decides = name in (part.rule for part in found.parts)
                    if decides != wanted:
                        failed.append((rule.id, text, found.rule))
    return failed
