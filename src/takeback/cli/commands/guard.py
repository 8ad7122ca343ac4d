"""`takeback guard`: what a command would do, and what the guard does about it."""

import os
import time
from contextlib import nullcontext

from takeback.cli.app import find_project, folder, get_project, open_project
from takeback.cli.parser import BEYOND, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line, timestamp
from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.effects.modes import Terminal
    from takeback.ledger.beyond.effects import RefusalRow
    from takeback.model.beyond.effects import Judgement, Target
    from takeback.model.text.json_text import Json
    from takeback.upkeep.settings import Settings

_MOST = 20
_NAME = "guard.mode"

COMMAND = Command(
    "guard",
    "stop calls that cannot be taken back",
    text=(
        "Judges each call of an agent before it runs. `watch`, the default, lets all of them run:\n"
        "it records what they do outside and saves what they destroy. `ask` asks you first about\n"
        "what is destructive, irreversible or hidden. `autopilot` is for agents that nobody\n"
        "watches: it refuses what nothing can take back, and tells the agent why. `off` judges\n"
        "nothing. Without a mode, prints the one that counts.\n\n"
        "`allow` lists what was refused; with an ID, the agent's next call that is the same runs,\n"
        "with --session every one in that conversation. That, and a lighter mode, need a terminal\n"
        "that no agent opened.\n\n"
        "`explain` says the class of a command and why; without a command it reads JSON strings,\n"
        "one per line. `test` tries the examples in your rules (`guard.toml`).\n\n"
        "The guard stops mistakes. It does not stop a program that wants to get around it."
    ),
    operands=("[ACTION]", "[ID]", "[-- COMMAND…]"),
    options=(
        Option(("--user",), "set the mode for all projects, not only this one"),
        Option(("--once",), "with `allow`: the next such call only (default)"),
        Option(("--session",), "with `allow`: every such call of that session"),
    ),
    examples=(
        ("takeback guard", "the mode"),
        ("takeback guard autopilot", "before you leave an agent alone"),
        ("takeback guard allow", "what was refused"),
        ("takeback guard allow mvkrxwop", "let that call run once"),
        ("takeback guard explain -- git push --force", "what this would do"),
        ("takeback guard test", "try the examples in your rules"),
    ),
    group=BEYOND,
)


def run(given: "Arguments", screen: "Screen") -> int:
    action = given.operands[0] if given.operands else "mode"
    found = _ACTIONS.get(action)
    if found is None:
        raise UsageError(
            f"`guard` has no action `{action}`", hint="`takeback guard --help` lists them"
        )
    return found(given, screen)


# -- modes -----------------------------------------------------------------------------------


def terminal() -> "Terminal":
    """Where this command was typed."""
    from takeback.agents import registry
    from takeback.effects.modes import Terminal

    return Terminal(os.isatty(0), registry.signs())


def _settings(given: "Arguments") -> "Settings":
    from takeback import environment
    from takeback.upkeep.settings import Settings

    return Settings.at(folder(given), home=environment.default_home())


def _mode(given: "Arguments", screen: "Screen") -> int:
    found = _settings(given).one(_NAME)
    from takeback.effects import modes

    with find_project(given, screen) or nullcontext() as project:
        rows = modes.refusals(project.workspace, _MOST) if project is not None else []
    if screen.json:
        screen.data(
            {
                "mode": str(found.value),
                "origin": found.origin,
                "refused": [refusal_json(row, screen) for row in rows],
            }
        )
        return 0
    screen.say(f"The guard's mode is {found.value}  ({found.origin})")
    if rows:
        screen.note("`takeback guard allow` lists what was refused")
    return 0


def _set(given: "Arguments", screen: "Screen") -> int:
    set_mode(given, screen, given.operands[0], user=given.has("user"))
    return _mode(given, screen)


def set_mode(given: "Arguments", screen: "Screen", mode: str, *, user: bool) -> None:
    """Set the mode, or with an empty one, take it out of the settings."""
    from takeback.effects import modes

    found = find_project(given, screen) if user else open_project(given, screen)
    with found or nullcontext() as project:
        work = project.workspace if project is not None else None
        settings = _settings(given)
        before = str(settings.one(_NAME).value)
        after = mode or str(settings.without(_NAME, user=user))

        def write() -> None:
            if mode:
                settings.set(_NAME, mode, user=user)
            else:
                settings.unset(_NAME, user=user)

        modes.change(work, before, after, terminal(), write)


# -- what was refused ------------------------------------------------------------------------


def _allow(given: "Arguments", screen: "Screen") -> int:
    from takeback.effects import modes

    with get_project(given, screen) as project:
        work = project.workspace
        if len(given.operands) < 2:
            return _list(modes.refusals(work, _MOST), screen)
        if given.has("once") and given.has("session"):
            raise UsageError("--once and --session exclude each other", hint="give one of them")
        scope = "session" if given.has("session") else "once"
        row = modes.allow(work, given.operands[1], scope, terminal())
    if screen.json:
        screen.data({"allowed": {**refusal_json(row, screen), "allowed": scope}})
        return 0
    how = "for the rest of that session" if scope == "session" else "once"
    screen.say(f"Allowed {how}: {_words(row, screen)}")
    screen.note("tell the agent to try again")
    return 0


def _list(rows: "list[RefusalRow]", screen: "Screen") -> int:
    if screen.json:
        screen.data({"refused": [refusal_json(row, screen) for row in rows]})
        return 0
    if not rows:
        screen.say("The guard refused nothing here.")
        return 0
    now = time.time()
    screen.table(
        (f"{row.id[:8]}  {ago(row.at / 1e9, now)}  {row.effect}", _words(row, screen))
        for row in rows
    )
    screen.note(f"`takeback guard allow {rows[0].id[:8]}` lets the first one run once")
    return 0


def refusal_json(row: "RefusalRow", screen: "Screen") -> "dict[str, Json]":
    """A call that was refused, as documented in docs/json.md."""
    return {
        "id": row.id,
        "session": row.session,
        "agent": row.agent,
        "turn": row.turn or None,
        "at": timestamp(row.at / 1e9),
        "tool": row.tool,
        "summary": screen.masker.words(row.summary),
        "class": row.effect,
        "rule": row.rule,
        "instead": screen.masker.words(row.instead) or None,
        "allowed": row.allowed or None,
    }


def _words(row: "RefusalRow", screen: "Screen") -> str:
    allowed = f" (allowed {row.allowed})" if row.allowed else ""
    return safe_line(screen.masker.words(f"{row.tool}: {row.summary}")) + allowed


# -- what a command would do -----------------------------------------------------------------


class _Place:
    """Where commands are judged: the project's folder, the user's home, and the rules."""

    def __init__(self, given: "Arguments") -> None:
        import os

        from takeback import environment, location
        from takeback.disk.home import Home
        from takeback.effects import rule_files
        from takeback.errors import TakebackError

        self.store = store = environment.default_home()
        self.cwd = os.path.abspath(folder(given))
        self.home = environment.user_home()
        try:
            found = location.find(self.cwd, home=store)
        except TakebackError:
            found = None
        self.root = found[0].path if found is not None else self.cwd
        project = found[0].id if found is not None else None
        self.files = rule_files.read(Home(store), project, self.root, reports=True)

    def judge(self, command: str) -> "Judgement":
        from takeback.guard.judge import judge
        from takeback.model import words

        return judge(
            "Bash", {"command": command}, kind=words.SHELL, cwd=self.cwd, root=self.root,
            home=self.home, rules=self.files.rules,
        )  # fmt: skip

    def tampers(self, command: str, found: "Judgement") -> str:
        """What a command would change that no agent may; empty if nothing."""
        from takeback.effects import tamper
        from takeback.hooks.guarded import all_settings
        from takeback.model import words

        own, in_tree = all_settings(self.home, self.root)
        protected = tamper.Protected(self.store, self.home, own, in_tree)
        return tamper.found(words.SHELL, command, (), found, protected)


def _explain(given: "Arguments", screen: "Screen") -> int:
    import shlex

    place = _Place(given)
    if not given.rest:
        return _explain_lines(place, screen)
    command = shlex.join(given.rest) if len(given.rest) > 1 else given.rest[0]
    found = place.judge(command)
    if screen.json:
        screen.data({"command": command, **found.as_json()})
        return 0
    _show(command, found, screen, tampers=bool(place.tampers(command, found)))
    _complain(place, screen)
    return 0


def _explain_lines(place: _Place, screen: "Screen") -> int:
    """Commands from the standard input, a JSON string on each line; one answer per line."""
    import json
    import sys

    if os.isatty(0):
        raise UsageError(
            "`guard explain` needs a command", hint="`takeback guard explain -- git push`"
        )
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            command = json.loads(line)
        except ValueError:
            command = None
        if not isinstance(command, str):
            raise UsageError(
                "a line of the input is not a JSON string",
                hint="""`echo '"git push"' | takeback guard explain --json`""",
            )
        screen.data({"command": command, **place.judge(command).as_json()})
    return 0


_STYLES = {"irreversible": "red", "opaque": "red", "destructive": "yellow", "compensable": "yellow"}
_MEANS = {
    "read": "it only reads",
    "inside": "it changes files that Takeback covers; `undo` takes it back",
    "transactional": "a participant holds what it changes; `rollback` takes it back",
    "local": "it changes this machine, and can be recovered",
    "program": "it runs a program that Takeback cannot read",
    "compensable": "others can see it, and a known command takes it back",
    "destructive": "it destroys what no checkpoint holds",
    "opaque": "it hides what it does",
    "irreversible": "others can see it, and nothing takes it back",
}


def _show(command: str, found: "Judgement", screen: "Screen", *, tampers: bool) -> None:
    """The class and what it means, why, and what it touches."""
    from takeback.cli.screen import safe_line

    name = screen.style(found.effect, _STYLES.get(found.effect, "green"))
    screen.say(f"{name}: {_MEANS[found.effect]}")
    facts = dict(found.reason.facts)
    rows = [("why", str(facts.get("text") or facts.get("program") or "")), ("rule", found.rule)]
    rows += [("instead", found.instead), ("taken back by", found.inverse)]
    rows += [(_LOSS[each.loss], _target_text(each)) for each in found.targets[:_MOST_TARGETS]]
    more = len(found.targets) - _MOST_TARGETS
    rows += [("", f"and {more} more")] if more > 0 else []
    rows += [("git loses", ", ".join(_GIT.get(part, part) for part in found.git))]
    rows += [("outside", f"{each.kind} {each.host}".strip()) for each in found.outside]
    rows += [("modes", _modes(found.effect, tampers=tampers))]
    screen.table([(key, safe_line(text)) for key, text in rows if text], indent="  ")
    parts = [each for each in found.parts if each.command.strip() != command.strip()]
    if len(found.parts) > 1:
        screen.say("parts:")
        screen.table([(each.effect, safe_line(each.command)) for each in parts], indent="  ")


_GIT = {
    "whole": "all of it", "worktree": "uncommitted changes", "index": "what is staged",
    "refs": "branches or tags",
}  # fmt: skip
_ANSWERS = {"allow": "runs", "ask": "asks you", "deny": "refuses"}


def _modes(effect: str, *, tampers: bool) -> str:
    """What each mode says of a class."""
    from takeback.effects.verdict import MODES, OFF, verdict

    said = []
    for mode in MODES:
        found = verdict(effect, mode, can_ask=True, tampers=tampers)
        does = _ANSWERS[found.answer]
        if found.needs_rescue:
            does += f" if all is rescued, else {_ANSWERS[found.without_rescue]}"
        said += [f"{mode} {does}"] if mode != OFF else []
    is_same = len({each.split(" ", 1)[1] for each in said}) == 1
    return "it runs in every mode" if is_same else ", ".join(said)


_MOST_TARGETS = 8
_LOSS = {
    "delete": "deletes", "overwrite": "overwrites", "truncate": "empties", "move": "moves",
    "mode": "changes mode",
}  # fmt: skip
_WHERE = {"tree": "", "git": " (git)", "outside": " (outside the project)"}


def _target_text(target: "Target") -> str:
    import os

    if not target.is_known:
        return f"{target.text} (not known before it runs)"
    is_folder = target.is_recursive and not os.path.isfile(target.path)
    below = " and all below" if is_folder else ""
    return f"{os.fsdecode(target.path)}{below}{_WHERE.get(target.where, '')}"


def _complain(place: _Place, screen: "Screen") -> None:
    from takeback.cli.screen import safe_line
    from takeback.cli.text import reason_text

    for each in place.files.problems:
        screen.note(safe_line(f"! {reason_text.sentence(each)}"))


def _test(given: "Arguments", screen: "Screen") -> int:
    """Try the examples in the rules; 1 if one is judged by another rule than it says."""
    from takeback.cli.screen import safe_line
    from takeback.guard.rules import failing
    from takeback.model import words

    place = _Place(given)
    rules = place.files.rules
    failed = failing(rules, place.cwd, place.root, place.home)
    every = (*rules.rules, *rules.tree)
    count = sum(len(each.examples) + len(each.not_examples) for each in every)
    if screen.json:
        screen.data(
            {
                "rules": len(every),
                "examples": count,
                "failed": [
                    {"rule": rule, "command": text, "decided_by": decided}
                    for rule, text, decided in failed
                ],
                "problems": [each.as_json() for each in place.files.problems],
            }
        )
    else:
        for rule, text, decided in failed:
            screen.say(safe_line(f"{rule}: `{text}` is decided by {decided}"))
        right = count - len(failed)
        rules_text = words.count(len(every), "rule")
        screen.say(f"{rules_text}, {right} of {count} examples as written")
        if not every:
            file = safe_line(os.path.join(os.fsdecode(place.store), "guard.toml"))
            screen.note(f"write rules for all your projects to {file}")
        _complain(place, screen)
    return 1 if failed or place.files.problems else 0


_ACTIONS: "dict[str, Callable[[Arguments, Screen], int]]" = {
    "mode": _mode,
    "off": _set,
    "watch": _set,
    "ask": _set,
    "autopilot": _set,
    "allow": _allow,
    "explain": _explain,
    "test": _test,
}
