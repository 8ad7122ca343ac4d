"""`takeback config`: every setting with its value and where that comes from; set one."""

import os

from takeback import environment
from takeback.cli.app import folder
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, bare, columns, safe_line, width
from takeback.cli.text import action_text
from takeback.errors import UsageError
from takeback.model.results import DEFAULT, ENVIRONMENT, PROJECT, USER, Configured
from takeback.model.text.json_text import path_fields
from takeback.upkeep.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.results import Misfit
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "config",
    "show the settings, or change one",
    text=(
        "Settings are in `config.toml`: yours in the folder of all stores, the project's in its\n"
        "store. The project's settings come first. They are never in the work tree, so that an\n"
        "agent that edits files cannot turn off its own recording. Setting one keeps comments and\n"
        "order. Unknown settings are reported and ignored."
    ),
    operands=("[NAME]", "[VALUE]"),
    options=(
        Option(("--user",), "set it for all projects, not only this one"),
        Option(("--unset",), "remove it from the file, so that the default applies again"),
    ),
    examples=(
        ("takeback config", "list all settings"),
        ("takeback config retention.days", "show one"),
        ("takeback config retention.days 90", "keep files for 90 days, in this project"),
        ("takeback config secrets.names '*.vault,keys.txt' --user", "everywhere"),
        ("takeback config retention.days --unset", "back to the default"),
    ),
    group=CARE,
)

_HOME = "the folder of all stores; set by TAKEBACK_HOME"
_LONGEST = 32


def run(given: "Arguments", screen: "Screen") -> int:
    settings = Settings.at(folder(given), home=environment.default_home())
    name, value = (*given.operands, "", "")[:2]
    if given.has("unset") and (not name or value):
        raise UsageError(
            "`--unset` needs the name of one setting, and no value",
            hint="`takeback config --unset NAME`",
        )
    if given.has("user") and not (value or given.has("unset")):
        raise UsageError(
            "`--user` needs a name and a value", hint="`takeback config NAME VALUE --user`"
        )
    if value or given.has("unset"):
        return _change(given, settings, name, value, screen)
    found = [_home()] if name == "home" else [settings.one(name)] if name else settings.all()
    if not name:
        found.insert(0, _home())
    misfits = [each for each in settings.misfits() if not name or each.name == name]
    if screen.json:
        screen.data(_json(found, misfits, settings))
    elif name:
        _show_one(found[0], screen)
        _complain(misfits, screen)
    else:
        _show_all(found, screen)
        _complain(misfits, screen)
        screen.note("`takeback config NAME VALUE` sets one")
    return 0


def _change(given: "Arguments", settings: Settings, name: str, value: str, screen: "Screen") -> int:
    if name == "home":
        raise UsageError(
            "the folder of all stores is not a setting", hint="set TAKEBACK_HOME instead"
        )
    before, user = settings.one(name), given.has("user")
    origin = USER if user else PROJECT
    if name == "guard.mode":
        from takeback.cli.commands import guard

        guard.set_mode(given, screen, value, user=user)
        after = settings.one(name)
    else:
        after = settings.set(name, value, user=user) if value else settings.unset(name, user=user)
    if screen.json:
        screen.data(_json([after], [], settings))
        return 0
    where = safe_line(os.fsdecode(settings.files[origin]))
    screen.say(f"{name} = {_shown(after)}  ({after.origin})  in {where}")
    if after.origin == PROJECT and user:
        screen.note("the project's own setting overrides this one")
    flag = " --user" if user else ""
    if before.origin == origin:
        from takeback.model.text.safe_text import shell_word

        screen.note(f"`takeback config {name} {shell_word(_typed(before))}{flag}` sets it back")
    elif value:
        screen.note(f"`takeback config {name} --unset{flag}` removes it again")
    return 0


def _home() -> Configured:
    path, usual = environment.default_home(), environment.default_home(usual=True)
    origin = DEFAULT if path == usual else ENVIRONMENT
    return Configured("home", os.fsdecode(path), origin, os.fsdecode(usual), _HOME)


def _json(
    found: "list[Configured]", misfits: "list[Misfit]", settings: Settings
) -> "dict[str, Json]":
    project = settings.files.get(PROJECT)
    return {
        "settings": [
            {
                "name": each.name,
                "value": _plain(each.value),
                "origin": each.origin,
                "default": _plain(each.default),
                "text": each.text,
            }
            for each in found
        ],
        "problems": [
            {"name": each.name or None, "origin": each.origin, "problem": each.problem,
             "hint": action_text.hint(each.hint)}
            for each in misfits
        ],
        "user_file": path_fields(settings.files[USER]),
        "project_file": path_fields(project) if project is not None else None,
    }  # fmt: skip


def _plain(value: object) -> "Json":
    """A value as JSON: what TOML reads is what JSON writes."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, bool | int | str) else str(value)


def _show_all(found: "list[Configured]", screen: "Screen") -> None:
    names = max(len(each.name) for each in found)
    values = min(max(len(_brief(each)) for each in found), _LONGEST)
    widest = max(len(each.text) for each in found)
    for each in found:
        value = f"{_brief(each):<{values}}"
        style = "" if each.origin == DEFAULT else "bold"
        value = screen.style(value, style) if style else value
        row = f"{each.name:<{names}}  {value}  {each.origin:<11}"
        if screen.is_terminal and columns(bare(row)) + 2 + widest > width(screen):
            screen.say(row.rstrip(), 4)
            screen.say(f"    {each.text}")
        else:
            screen.say(f"{row}  {each.text}")


def _show_one(each: Configured, screen: "Screen") -> None:
    screen.say(f"{each.name} = {_shown(each)}")
    default = Configured(each.name, each.default, DEFAULT, each.default, each.text)
    screen.table(
        (("from", each.origin), ("default", _shown(default)), ("does", each.text)), indent="  "
    )


def _complain(misfits: "list[Misfit]", screen: "Screen") -> None:
    for each in misfits:
        where = safe_line(os.fsdecode(each.path))
        screen.note(
            f"! {safe_line(each.problem)} ({where}); {safe_line(action_text.hint(each.hint))}"
        )


def _shown(each: Configured) -> str:
    import json

    return safe_line(json.dumps(each.value, ensure_ascii=False))


def _typed(each: Configured) -> str:
    return each.value if isinstance(each.value, str) else _shown(each)


def _brief(each: Configured) -> str:
    text = _shown(each)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
