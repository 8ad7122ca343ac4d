"""`takeback show`: one turn in full, a checkpoint, or a file as it was."""

import os
import time

from takeback.cli import diff_view
from takeback.cli.app import folder, get_project, inside, is_path
from takeback.cli.commands.checkpoint import as_json
from takeback.cli.parser import LOOK, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_content
from takeback.cli.text import now_text, show_text, turn_text
from takeback.cli.text.restores import move_text
from takeback.errors import DecisionNeededError, UnknownReferenceError
from takeback.history.references import is_now
from takeback.model.history import RecordedTurn
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import shell_word
from takeback.model.text.secrets import PLAIN, WHOLE
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from takeback.history.compare import Comparison, OwnChanges
    from takeback.model.history import Change, GitState, RecordedCheckpoint, RecordedStep
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker
    from takeback.project import Project

_MOST, _TURNS = 200, 20
_NOTHING: "dict[str, Json]" = {
    "turn": None,
    "checkpoint": None,
    "file": None,
    "now": None,
    "diff": None,
}

COMMAND = Command(
    "show",
    "show a turn, a checkpoint, or a file as it was",
    text=(
        "REF is the id of a turn, step or checkpoint or its beginning, `@` (now), `@~N` (N turns\n"
        "back), `ID-` (before that), the name of a checkpoint, a time (`10m`, `an hour ago`,\n"
        "`14:05`, `yesterday 15:00`) or words of a prompt. With PATH, prints the file as it was\n"
        "then, byte for byte, and nothing else. On a terminal, control characters are escaped and\n"
        "secrets are masked. Files known for secrets, such as `.env`, are printed only to a\n"
        "terminal, unless you give --show-secrets. With --rescued, REF is the id of a restore,\n"
        "and the file is what a program saved while the restore ran.\n"
        "\n"
        "With -p, shows a diff: of a turn what it changed itself, whatever others changed\n"
        "meanwhile; of a checkpoint what changed since the one before; of `@` what changed since\n"
        "the newest. Secrets are masked, as in `takeback diff`."
    ),
    operands=("REF", "[PATH]"),
    options=(
        Option(("-p", "--patch"), "show what it changed as a diff; with PATH only there"),
        Option(("--rescued",), "print what a program saved while a restore ran", "PATH"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback show mvkr", "what a turn did, step by step"),
        ('takeback show "payment validation"', "the same, by its prompt"),
        ("takeback show -p mvkr", "the lines that it changed"),
        ("takeback show mvkr- src/pay.py", "a file as it was before the turn"),
        ("takeback show 10m src/pay.py > then.py", "as it was ten minutes ago"),
    ),
    group=LOOK,
)


def run(given: "Arguments", screen: "Screen") -> int:
    ref, *paths = given.operands
    with get_project(given, screen) as project:
        screen.page()
        if given.has("rescued"):
            path = os.fsencode(given.get("rescued"))
            _file(path, project.rescued(ref, path, inside=inside(project, folder(given))), screen)
            return 0
        if given.has("patch"):
            _patch(project, ref, [os.fsencode(path) for path in paths], given, screen)
            return 0
        if paths:
            path = os.fsencode(paths[0])
            pieces = project.read(ref, path, inside=inside(project, folder(given)))
            _file(path, pieces, screen)
            return 0
        if is_now(ref):
            _now(project, screen)
            return 0
        found = _found(project, ref, given)
    if screen.json:
        screen.data(_json(found, screen.masker))
    elif isinstance(found, RecordedTurn):
        show_text.turn(found, screen, time.time())
    else:
        show_text.checkpoint(found, screen, time.time())
    return 0


def _found(project: "Project", ref: str, given: "Arguments") -> "RecordedTurn | RecordedCheckpoint":
    """What a reference means; an error that helps if it is a path."""
    try:
        return project.recorded(ref)
    except UnknownReferenceError as problem:
        if is_path(ref, project, folder(given)):
            path = shell_word(ref)
            problem.actions = (
                f"`takeback log {path}` lists the turns that touched it",
                f"`takeback show REF {path}` prints it as it was",
            )
        raise


def _patch(
    project: "Project", ref: str, paths: "list[bytes]", given: "Arguments", screen: "Screen"
) -> None:
    """What a turn or a checkpoint changed, as a diff below a head of two lines."""
    here = inside(project, folder(given))
    found = None if is_now(ref) else _found(project, ref, given)
    comparison: Comparison | OwnChanges
    if isinstance(found, RecordedTurn):
        comparison = project.reader.own_changes(found.id, tuple(paths), here)
    else:
        id = "@" if found is None else found.checkpoint.id
        before = f"{id}-" if found is not None else project.reader.resolve("@").id
        comparison = project.compare(before, id, paths, inside=here, progress=screen.progress)
    with comparison:
        shown = diff_view.made_ready(comparison, screen.masker)
        if screen.json:
            told = _NOTHING if found is None else _json(found, screen.masker)
            screen.data({**told, "diff": [diff_view.as_json(each) for each in shown]})
            return
        if found is not None:
            show_text.head(found, screen, time.time())
        diff_view.show_diffs(shown, screen)
        if not comparison.differences:
            screen.note("No differences.")
    if isinstance(found, RecordedTurn):
        show_text.not_in_patch(found, screen)


def _now(project: "Project", screen: "Screen") -> None:
    """The files as they are: what changed since the newest checkpoint."""
    seen = project.now()
    if screen.json:
        screen.data({**_NOTHING, "now": now_text.as_json(seen, screen.masker)})
        return
    log = project.log(_TURNS, changes=False)
    screen.say(f"Now  {now_text.state(log, seen, time.time())}")
    now_text.show_changes(log, seen, screen, _MOST)
    if seen.changes:
        screen.note("`takeback diff` shows the lines")
    if log.here:
        screen.note(f"`takeback show {log.here[:8]}` shows the newest checkpoint")


def _file(path: bytes, pieces: "Iterator[bytes]", screen: "Screen") -> None:
    how = screen.masker.how_secret(path)
    if screen.json:
        screen.data({**_NOTHING, "file": _file_json(path, pieces, how)})
    elif screen.is_terminal:
        _show_file(path, pieces, how, screen)
    elif how != PLAIN:
        # With its secrets masked it would be another file, and somebody may be about to keep it.
        raise DecisionNeededError(
            f"`{os.fsdecode(path)}` is known for holding secrets, so it was not printed",
            hint="`--show-secrets` prints it byte for byte",
        )
    else:
        for piece in pieces:
            screen.raw(piece)


def _file_json(path: bytes, pieces: "Iterator[bytes]", how: str) -> "dict[str, Json]":
    content = None
    if how == PLAIN:
        from binascii import b2a_base64

        content = b2a_base64(b"".join(pieces), newline=False).decode()
    return {**path_fields(path), "content_b64": content, "masked": how != PLAIN}


def _show_file(path: bytes, pieces: "Iterator[bytes]", how: str, screen: "Screen") -> None:
    """The lines of a file for somebody at a terminal, without secrets."""
    if how == WHOLE:
        screen.note("a secret file; nothing of it is shown; `--show-secrets` shows it")
        return
    if screen.masker.is_open:
        for line in _lines(pieces):
            screen.verbatim(safe_content(line))
        return
    lines = list(_lines(pieces))
    mask = screen.masker.lines(path, lines)
    for number, line in enumerate(lines):
        screen.verbatim(safe_content(mask.line(number) if mask is not None else line))
    if mask is not None and mask.count:
        screen.note(f"{count(mask.count, 'secret')} masked; `--show-secrets` shows them")


def _lines(pieces: "Iterator[bytes]") -> "Iterator[bytes]":
    """The lines of a text that comes in pieces, without their ends."""
    left = b""
    for piece in pieces:
        *whole, left = (left + piece).split(b"\n")
        yield from whole
    if left:
        yield left


def _json(found: "RecordedTurn | RecordedCheckpoint", masker: "Masker") -> "dict[str, Json]":
    if isinstance(found, RecordedTurn):
        return {**_NOTHING, "turn": _turn(found, masker)}
    made: dict[str, Json] = {
        **as_json(found.checkpoint, masker.words),
        "kept": found.kept,
        "changes": [
            {**turn_text.change_json(change), "author": now_text.author_json(change.author)}
            for change in found.changes
        ],
        "restore": turn_text.restore_json(found.restore, masker) if found.restore else None,
        "participants": [move_text.captured_json(each) for each in found.participants],
    }
    return {**_NOTHING, "checkpoint": made}


def _turn(turn: RecordedTurn, masker: "Masker") -> "dict[str, Json]":
    return {
        **turn_text.as_json(turn, masker),
        "account": turn.account,
        "went_back": turn.went_back,
        "git_before": _git(turn.git_before),
        "git_after": _git(turn.git_after),
        "steps": [_step(step, masker) for step in turn.steps],
        "participants": [move_text.captured_json(each) for each in turn.participants],
    }


def _step(step: "RecordedStep", masker: "Masker") -> "dict[str, Json]":
    return {
        "id": step.id,
        "parent": step.parent or None,
        "tool": step.tool,
        "kind": step.kind,
        "summary": masker.words(step.summary),
        "status": step.status,
        "background": step.background,
        "started": turn_text.when(step.started),
        "ended": turn_text.when(step.ended),
        "names": [path_fields(path) for path in step.raw_paths],
        "changes": [_brief(change) for change in step.changes],
        "cwd": step.cwd or None,
        "input": step.input,
        "output": None if step.output is None else masker.words(step.output),
        "exit_code": step.exit_code,
        "model": step.model or None,
        "permission_mode": step.permission_mode or None,
        "agent_version": step.agent_version or None,
    }


def _brief(change: "Change") -> "dict[str, Json]":
    """A change of a step; lines are counted for the whole turn only."""
    origin = path_fields(change.raw_origin) if change.raw_origin is not None else None
    return {
        **path_fields(change.raw_path),
        "verb": change.verb,
        "how": change.author.how or None,
        "origin": origin,
    }


def _git(state: "GitState | None") -> "Json":
    if state is None:
        return None
    return {name: getattr(state, name) for name in ("branch", "head", "index", "refs")}
