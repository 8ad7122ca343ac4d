"""`takeback verify`: check that every byte in the store is what was written."""

from takeback.cli.app import get_project
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line, size
from takeback.cli.text.reason_text import as_json, sentence
from takeback.model.text.masking import CLOSED
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.results import Verification

COMMAND = Command(
    "verify",
    "check that every byte in the store is what was written",
    text=(
        "Hashes every object again, follows every checkpoint down to its files, and checks the\n"
        "chain of events. Reports damage with the affected checkpoints; the exit code is then 4.\n"
        "Undamaged checkpoints can still be extracted."
    ),
    options=(
        Option(
            ("--set-aside",),
            "record a restore that was interrupted and cannot be taken back, and continue",
        ),
    ),
    examples=(
        ("takeback verify", "after disk errors"),
        ("takeback verify --set-aside", "let undo work again; nothing is deleted"),
    ),
    group=CARE,
)

_DAMAGED = 4


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        found = project.verify(progress=screen.progress, set_aside=given.has("set-aside"))
    if screen.json:
        screen.data(
            {
                "ok": found.ok,
                "checkpoints": found.checkpoints,
                "no_longer_kept": found.gone,
                "packs": found.packs,
                "objects": found.objects,
                "bytes": found.bytes,
                "damage": [
                    {"what": as_json(d.what, CLOSED), "checkpoints": list(d.checkpoints)}
                    for d in found.damage
                ],
                "repaired": [as_json(reason, CLOSED) for reason in found.repaired],
            }
        )
    else:
        _show(found, screen)
    return 0 if found.ok else _DAMAGED


def _show(found: "Verification", screen: "Screen") -> None:
    for what in found.repaired:
        screen.say(f"repaired: {safe_line(sentence(what))}")
    looked = f"{count(found.checkpoints, 'checkpoint')}, {count(found.objects, 'object')}"
    looked += f" in {count(found.packs, 'pack')} ({size(found.bytes)})"
    if found.gone:
        looked += f"; the files of {count(found.gone, 'older checkpoint')} are no longer kept"
    if found.ok:
        screen.say(f"{screen.style('Intact', 'green', 'bold')}: {looked}")
        return
    for damage in found.damage:
        screen.say(f"{screen.style('damaged', 'red', 'bold')}: {safe_line(sentence(damage.what))}")
        if damage.checkpoints:
            screen.say(f"  affects {', '.join(damage.checkpoints)}")
    screen.say(f"{count(len(found.damage), 'problem')} in {looked}")
    screen.note(
        "all other checkpoints are intact; `takeback extract REF DIR` writes one to a folder"
    )
