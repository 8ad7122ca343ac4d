"""`takeback keep`: keep a state whatever its age."""

import time

from takeback.cli.app import get_project
from takeback.cli.commands.checkpoint import note_moved
from takeback.cli.parser import CARE, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, safe_line, timestamp
from takeback.errors import UsageError
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.results import KeptState
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "keep",
    "keep a state whatever its age, list or release those",
    text=(
        "`takeback gc` deletes old files. A state that you keep stays: you can restore, compare\n"
        "and extract it as long as you keep it. With --release and a NAME, Takeback removes the\n"
        "name, and a state that was kept under it expires like any other again."
    ),
    operands=("[REF]",),
    options=(
        Option(
            ("-m", "--label"), "name of the state; works wherever a command takes a REF", "NAME"
        ),
        Option(("--release",), "keep it no longer, or remove a name"),
        SHOW_SECRETS,
    ),
    examples=(
        ('takeback keep @ -m "release 1.0"', "keep the current state"),
        ("takeback keep", "list what is kept"),
        ("takeback keep --release kxvwzyts", "let it expire again"),
    ),
    group=CARE,
)


def run(given: "Arguments", screen: "Screen") -> int:
    ref = given.operands[0] if given.operands else ""
    with get_project(given, screen) as project:
        if not ref:
            if given.has("release") or given.get("label"):
                raise UsageError(
                    "`keep` needs a REF for that", hint="`takeback keep` lists what is kept"
                )
            _list(project.kept(), screen)
            return 0
        release = given.has("release")
        found = project.release(ref) if release else project.keep(ref, given.get("label"))
        every = project.kept()
    if screen.json:
        _data(every, screen, None if release else found, found if release else None)
        return 0
    if release:
        _show_released(found, screen)
    else:
        name = screen.id(found.checkpoint)
        label = screen.quoted(found.label)
        screen.say(f"Kept {name}{label}  {count(found.entries, 'entry', 'entries')}")
        note_moved(found.moved, screen)
        screen.note(f"`takeback keep --release {found.checkpoint[:8]}` releases it")
    return 0


def _show_released(found: "KeptState", screen: "Screen") -> None:
    id, name = screen.id(found.checkpoint), safe_line(screen.words(found.name))
    if found.released:
        gone = "; its name is removed" if name else ""
        label = screen.quoted(found.label)
        screen.say(f"Released {id}{label}: its files expire like any others{gone}")
        again = f" -m '{name}'" if name else ""
        screen.note(f"`takeback keep {found.checkpoint[:8]}{again}` keeps it again")
    else:
        screen.say(f'Removed the name "{name}" of {id}')


def _list(found: "tuple[KeptState, ...]", screen: "Screen") -> None:
    if screen.json:
        _data(found, screen)
        return
    if not found:
        screen.say("You keep no states.")
        screen.note("`takeback keep REF -m NAME` keeps a state")
        return
    now = time.time()
    for each in found:
        name = screen.id(each.checkpoint[:8], of=each.checkpoint)
        screen.say(f"{name}  {ago(each.created, now)}{screen.quoted(each.label)}")
    screen.note("`takeback rollback REF` restores one, `takeback keep --release REF` releases one")


def _data(
    every: "tuple[KeptState, ...]",
    screen: "Screen",
    kept: "KeptState | None" = None,
    released: "KeptState | None" = None,
) -> None:
    screen.data(
        {
            "kept": _json(kept, screen) if kept is not None else None,
            "released": _json(released, screen) if released is not None else None,
            "states": [_json(each, screen) for each in every],
        }
    )


def _json(state: "KeptState", screen: "Screen") -> "dict[str, Json]":
    return {
        "checkpoint": state.checkpoint,
        "created": timestamp(state.created),
        "label": screen.words(state.label),
        "since": timestamp(state.at),
        "entries": state.entries,
        "name": screen.words(state.name) or None,
        "moved": state.moved or None,
    }
