"""`takeback gc`: let old files go, and put the store in order."""

import time

from takeback.cli.app import get_project
from takeback.cli.parser import CARE, Arguments, Command, Option
from takeback.cli.screen import Screen, ago, size, timestamp
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.results import Cleanup

COMMAND = Command(
    "gc",
    "delete expired files and compact the store",
    text=(
        "Takeback keeps files for 30 days, and those of the newest 200 turns at any age. States\n"
        "that you keep with `takeback keep`, and turns that still run, stay at any age. Older\n"
        "turns stay in the log, which shows that their files are no longer kept. Agents can\n"
        "continue to work meanwhile."
    ),
    options=(
        Option(("--dry-run",), "show what would be deleted, and change nothing"),
        Option(("--max-age",), "delete files older than this (such as 30d or 2w)", "AGE"),
        Option(("--to-size",), "delete the oldest files until the history fits into this", "SIZE"),
        Option(("--full",), "rewrite everything, as small as possible; takes longer"),
    ),
    examples=(
        ("takeback gc --dry-run", "what would be deleted"),
        ("takeback gc", "delete expired files"),
        ('takeback gc --to-size "2 GB"', "when the disk is full"),
    ),
    group=CARE,
    warning="deletes expired files",
)

_WHY = {"size": "to make the history smaller", "asked": "as you asked"}


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        done = project.gc(
            max_age=given.get("max-age") or None,
            to_size=given.get("to-size") or None,
            full=given.has("full"),
            dry_run=given.has("dry-run"),
            progress=screen.progress,
        )
    if screen.json:
        _json(done, screen)
    else:
        _show(done, screen)
    return 0


def _json(done: "Cleanup", screen: "Screen") -> None:
    screen.data(
        {
            "dry_run": done.dry_run,
            "why": done.why,
            "days": done.days,
            "checkpoints": done.checkpoints,
            "turns": done.turns,
            "kept": done.kept,
            "turns_kept": done.turns_kept,
            "oldest": None if done.oldest is None else timestamp(done.oldest),
            "pins": list(done.held),
            "bytes_before": done.before,
            "bytes_after": done.after,
            "packs_before": done.packs_before,
            "packs_after": done.packs_after,
            "events_archived": done.archived,
            "warnings": list(done.warnings),
        }
    )


def _show(done: "Cleanup", screen: "Screen") -> None:
    would, head = ("would be", "Would delete") if done.dry_run else ("was", "Deleted")
    if done.checkpoints:
        lost = f"the files of {count(done.checkpoints, 'checkpoint')}"
        lost += f" and {count(done.turns, 'turn')}" if done.turns else ""
        screen.say(f"{head} {lost}  ({_why(done)})")
    else:
        why = "nothing is old enough" if done.days else "everything is kept forever"
        screen.say(f"Nothing {would} deleted: {why}")
    kept = f"{count(done.turns_kept, 'turn')}, {count(done.kept, 'checkpoint')}"
    since = ""
    if done.oldest is not None:
        day = time.strftime("%Y-%m-%d", time.localtime(done.oldest))
        since = f"; all since {day}, {ago(done.oldest, time.time())}"
    screen.say(f"Kept   {kept}{since}")
    if done.held:
        screen.say(
            f"Pinned {count(len(done.held), 'state')}: {', '.join(x[:8] for x in done.held)}"
        )
    now = f"{size(done.after)} in {count(done.packs_after, 'pack')}"
    was = f"{size(done.before)} in {count(done.packs_before, 'pack')}"
    screen.say(f"Size   {was}, {'about' if done.dry_run else 'now'} {now}")
    if done.archived:
        screen.say(f"Log    {count(done.archived, 'old event')} moved to the archive")
    for warning in done.warnings:
        screen.note(f"note: {warning}; `takeback gc --to-size SIZE` deletes the oldest files")
    if done.dry_run:
        screen.note("nothing was changed; `takeback keep REF` keeps a state at any age")
    elif done.checkpoints:
        screen.note("`takeback log --all` still shows what was done; the files cannot be restored")


def _why(done: "Cleanup") -> str:
    if done.why in _WHY:
        return _WHY[done.why]
    return f"older than {done.days:g} days" if done.days else "nothing keeps them"
