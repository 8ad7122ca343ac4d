"""`takeback usage`: what a project's history takes on disk, and who or what added it."""

from takeback.cli import screen as layout
from takeback.cli.app import get_project
from takeback.cli.parser import CARE, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, safe_line, size
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.history.retention import Rules
    from takeback.model.results import Share, Usage
    from takeback.model.text.json_text import Json

COMMAND = Command(
    "usage",
    "show how much disk the history takes, and what takes it",
    text=(
        "An object counts for the first checkpoint that needs it, and there for the author of the\n"
        "change: a session, `you`, or `shared` between sessions. By path it counts for the\n"
        "top-level folder. `other` is what packs need besides their objects, and objects that\n"
        "nothing needs any more. The parts add up to the size of the packs on disk."
    ),
    options=(
        Option(
            ("--by",),
            "`session`, `agent` or `path`: who or what added it",
            "WHAT",
            ("session", "agent", "path"),
        ),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback usage", "of this project"),
        ("takeback usage --by agent", "which agent needs how much"),
        ("takeback usage --by path", "which folders do"),
    ),
    group=CARE,
)

_MOST = 30


def run(given: "Arguments", screen: "Screen") -> int:
    by = given.get("by")
    with get_project(given, screen) as project:
        shares = project.usage_by(by, progress=screen.progress) if by else ()
        used, rules = project.usage(), project.upkeep.retention()
    if screen.json:
        screen.data(_json(used, rules, by, shares, screen))
    else:
        _show(used, rules, screen)
        if by:
            _show_shares(used, by, shares, screen)
        else:
            screen.note("`takeback usage --by session` shows who added it")
    return 0


def _json(
    used: "Usage", rules: "Rules", by: str, shares: "tuple[Share, ...]", screen: "Screen"
) -> "dict[str, Json]":
    return {
        "total": used.total,
        "objects": used.objects,
        "ledger": used.ledger,
        "index": used.index,
        "packs": used.packs,
        "checkpoints": used.checkpoints,
        "gone": used.gone,
        "pinned": used.pinned,
        "rescues": used.rescues,
        "rescued": used.rescued,
        "lessons": used.lessons,
        "relapses": used.relapses,
        "captures": used.captures,
        "memory": used.memory,
        "mutations": used.mutations,
        "retention": {
            "days": None if rules.days is None else int(rules.days),
            "turns": rules.turns,
            "size_cap": rules.size_cap,
            "size_cap_trims": rules.size_cap_trims,
        },
        "by": by or None,
        "shares": [
            {
                "name": share.name,
                "bytes": share.bytes,
                "objects": share.objects,
                "agent": share.agent or None,
                "title": screen.words(share.title) or None,
            }
            for share in shares
        ],
        "other": _other(used, shares) if by else None,
    }


def _beside(used: "Usage") -> str:
    """What is kept of state that is not in files."""
    told = (
        (used.captures, "capture"),
        (used.memory, "value in memory", "values in memory"),
        (used.mutations, "mutation"),
    )
    return ", ".join(count(*each) for each in told if each[0])


def _other(used: "Usage", shares: "tuple[Share, ...]") -> int:
    return used.objects - sum(share.bytes for share in shares)


def _show(used: "Usage", rules: "Rules", screen: "Screen") -> None:
    screen.say(f"{size(used.total)} for {count(used.checkpoints, 'checkpoint')}")
    age = "of any age" if rules.days is None else f"of {rules.days:g} days"
    rows = [
        ("objects", f"{size(used.objects)} in {count(used.packs, 'pack')}"),
        ("ledger", size(used.ledger)),
        ("stat cache", f"{size(used.index)} (disposable)"),
        ("kept", f"files {age}, and those of the newest {rules.turns:,} turns"),
    ]
    if used.gone:
        rows.append(("gone", f"{count(used.gone, 'checkpoint')} whose files were deleted"))
    if used.pinned:
        rows.append(("pinned", f"{count(used.pinned, 'state')}, at any age"))
    if used.rescues:
        many = count(used.rescues, "command")
        rows.append(("rescued", f"{size(used.rescued)} of files that {many} destroyed"))
    if used.lessons or used.relapses:
        said = f"{count(used.lessons, 'lesson')}, {count(used.relapses, 'relapse')}"
        rows.append(("lessons", f"{said}, in the ledger"))
    if beside := _beside(used):
        rows.append(("beside files", beside))
    if rules.size_cap:
        does = (
            "above it, the oldest files are deleted"
            if rules.size_cap_trims
            else "above it, Takeback warns"
        )
        rows.append(("size cap", f"{size(rules.size_cap)}; {does}"))
    screen.table(rows)
    if rules.size_cap and used.total > rules.size_cap:
        screen.note("above the size cap: `takeback gc --to-size SIZE` deletes the oldest files")


def _show_shares(used: "Usage", by: str, shares: "tuple[Share, ...]", screen: "Screen") -> None:
    screen.say(screen.style(f"By {by}", "bold"))
    marks = layout.marks(screen)
    listed = [(_name(share, by), share.bytes, _about(share, screen)) for share in shares[:_MOST]]
    rest = sum(share.bytes for share in shares[_MOST:])
    if rest:
        listed.append((f"{len(shares) - _MOST:,} more", rest, ""))
    listed.append(("other", _other(used, shares), "indexes, and what nothing needs any more"))
    wide = min(max(layout.columns(name) for name, _, _ in listed), 40)
    for name, bytes, about in listed:
        part = 100 * bytes / used.objects if used.objects else 0
        line = f"  {layout.pad(layout.cut(name, wide, marks.cut), wide)}  {size(bytes):>11}"
        screen.say(layout.cut(f"{line}  {part:4.1f} %  {about}".rstrip(), 120, marks.cut))


def _name(share: "Share", by: str) -> str:
    is_session = by == "session" and share.agent
    return share.name[:8] if is_session else safe_line(share.name)


def _about(share: "Share", screen: "Screen") -> str:
    if not share.agent:
        return ""
    called = screen.title(share.title) if share.title else ""
    return f"{safe_line(share.agent)}  {called}".rstrip()
