"""What a turn did to a path, what happened to it since, and what undo makes of both: one table.

`CELLS` has every combination with the tree afterwards; `docs/undo.md` shows the same table, and
`test_merge_table` plays each cell and compares the two. Files have ten lines: the turn writes the
third, and *you* (or another session) the third or the ninth.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Thing = tuple[str, ...]
"""A file with its text and mode, a link with its target, or a folder."""
Tree = dict[str, Thing]

TURNS_LINE = "three, as the turn wrote it"
YOUR_LINE = "as you wrote it"
YOUR_TEXT = "nothing of what was here before\nall of it is yours\n"
TURNS_TEXT = "put there by the turn\n"


def text(three: str = "three", nine: str = "nine") -> str:
    """Ten lines, of which two get changed."""
    lines = ("one", "two", three, "four", "five", "six", "seven", "eight", nine, "ten")
    return "".join(f"line {line}\n" for line in lines)


def file(content: str, mode: int = 0o644) -> Thing:
    """A file."""
    return ("file", content, f"{mode:o}")


def link(target: str) -> Thing:
    """A link."""
    return ("link", target)


FOLDER: Thing = ("folder",)
OLD = file(text())


def picture(tree: Path) -> Tree:
    """All that is in a folder, but what version control keeps there."""
    found: Tree = {}
    for above, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*folders, *files):
            place = Path(above, name)
            found[str(place.relative_to(tree))] = thing_at(place)
    return found


def thing_at(place: Path) -> Thing:
    """What is at one path."""
    if place.is_symlink():
        return link(str(place.readlink()))
    if place.is_dir():
        return FOLDER
    return file(place.read_bytes().decode("latin-1"), place.stat().st_mode & 0o7777)


def put(tree: Path, things: Tree) -> None:
    """Make what is described."""
    for name, thing in things.items():
        place = tree / name
        if thing[0] == "file":
            place.write_text(thing[1])
            place.chmod(int(thing[2], 8))
        elif thing[0] == "link":
            place.symlink_to(thing[1])
        else:
            place.mkdir()


# -- what the turn does ------------------------------------------------------------------------


class Deed(NamedTuple):
    """What was there before, what the turn does to it, and where it leaves it."""

    before: Tree
    act: Callable[[Path], object]
    left: str = "f"


def _edit(place: Path) -> None:
    place.write_text(place.read_text().replace("line three\n", f"line {TURNS_LINE}\n"))


def _rename_and_edit(tree: Path) -> None:
    (tree / "f").rename(tree / "g")
    _edit(tree / "g")


def _make_link(tree: Path) -> None:
    (tree / "f").unlink()
    (tree / "f").symlink_to("where the turn says")


def _make_file(tree: Path) -> None:
    (tree / "f").unlink()
    (tree / "f").write_text(text(TURNS_LINE))


def _make_folder(tree: Path) -> None:
    (tree / "f").unlink()
    (tree / "f").mkdir()
    (tree / "f/inside").write_text(TURNS_TEXT)


TURNS = {
    "created it": Deed({}, lambda tree: (tree / "f").write_text(text(TURNS_LINE))),
    "edited it": Deed({"f": OLD}, lambda tree: _edit(tree / "f")),
    "deleted it": Deed({"f": OLD}, lambda tree: (tree / "f").unlink()),
    "renamed it": Deed({"f": OLD}, lambda tree: (tree / "f").rename(tree / "g"), "g"),
    "renamed and edited it": Deed({"f": OLD}, _rename_and_edit, "g"),
    "changed its mode": Deed({"f": OLD}, lambda tree: (tree / "f").chmod(0o755)),
    "made a file a link": Deed({"f": OLD}, _make_link),
    "made a link a file": Deed({"f": link("where it led")}, _make_file),
    "made a file a folder": Deed({"f": OLD}, _make_folder),
}

# -- what happens since ------------------------------------------------------------------------


def _change(place: Path, old: str, new: str) -> None:
    """Change a line of a file, where a link leads, or what is in a folder."""
    if place.is_symlink():
        place.unlink()
        place.symlink_to(f"where you say: {new}")
    elif place.is_dir():
        (place / "inside").write_text(f"{new}\n") if old else (place / "yours").write_text(new)
    else:
        line = next(line for line in place.read_text().splitlines() if line.startswith(old))
        place.write_text(place.read_text().replace(f"{line}\n", f"line {new}\n"))


def _edit_elsewhere(tree: Path, left: str) -> None:
    place = tree / left
    is_folder = place.is_dir() and not place.is_symlink()
    _change(place, "" if is_folder else "line nine", YOUR_LINE)


def _edit_same_lines(tree: Path, left: str) -> None:
    _change(tree / left, "line three", YOUR_LINE)


def _delete(tree: Path, left: str) -> None:
    place = tree / left
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def _rename(tree: Path, left: str) -> None:
    (tree / left).rename(tree / "h")


def _rename_and_edit_elsewhere(tree: Path, left: str) -> None:
    _rename(tree, left)
    _edit_elsewhere(tree, "h")


def _make_again(tree: Path, _left: str) -> None:
    # What the turn renamed is made again under the name that it had.
    (tree / "f").write_text(YOUR_TEXT)


Since = tuple[Callable[[Path, str], object], ...]
"""One thing after the other; the tree is looked at in between."""

SINCE: dict[str, Since] = {
    "untouched": (),
    "edited elsewhere": (_edit_elsewhere,),
    "edited in the same lines": (_edit_same_lines,),
    "deleted": (_delete,),
    "renamed": (_rename,),
    "renamed and edited elsewhere": (_rename_and_edit_elsewhere,),
    "made again": (_delete, _make_again),
}


def since(turn: str, what: str) -> Since:
    """What somebody does after a turn; what is not there need not be deleted first."""
    steps = SINCE[what]
    gone = turn.startswith(("deleted", "renamed"))
    return steps[-1:] if what == "made again" and gone else steps


# -- what comes of it --------------------------------------------------------------------------

RESTORED, REMOVED, MERGED = "restored", "removed", "merged"
KEPT, GONE, CONFLICT = "kept", "stays deleted", "**conflict**"
FOLLOWED = "taken back under the new name"
NEVER = "·"
"""There is nothing that could be edited, deleted or renamed."""


class Cell(NamedTuple):
    """What undo does, and what is there afterwards; of a conflict, if it is taken back."""

    outcome: str
    tree: Tree
    is_text: bool = False
    """Whether a conflict can be marked in the text."""
    in_the_way: Tree | None = None
    """What stays if something of yours is in the way: only you can move it away."""


_YOURS = file(text(nine=YOUR_LINE))
_YOURS_HERE = file(text(three=YOUR_LINE))
_BOTH = file(text(TURNS_LINE, YOUR_LINE))
_LEFT = file(text(TURNS_LINE))
_NEW = file(YOUR_TEXT)
_LINK = link("where it led")
_INSIDE = file(TURNS_TEXT)


def _cells() -> dict[tuple[str, str], Cell]:
    rows = {
        "created it": (
            Cell(REMOVED, {}),
            Cell(KEPT, {"f": _BOTH}),
            Cell(KEPT, {"f": _YOURS_HERE}),
            Cell(GONE, {}),
            Cell(KEPT, {"h": _LEFT}),
            Cell(KEPT, {"h": _BOTH}),
            Cell(KEPT, {"f": _NEW}),
        ),
        "edited it": (
            Cell(RESTORED, {"f": OLD}),
            Cell(MERGED, {"f": _YOURS}),
            Cell(CONFLICT, {"f": OLD}, is_text=True),
            Cell(GONE, {}),
            Cell(FOLLOWED, {"h": OLD}),
            Cell(FOLLOWED, {"h": _YOURS}),
            Cell(CONFLICT, {"f": OLD}, is_text=True),
        ),
        "deleted it": (
            Cell(RESTORED, {"f": OLD}),
            *(Cell(NEVER, {}),) * 5,
            Cell(CONFLICT, {"f": OLD}),
        ),
        "renamed it": (
            Cell(RESTORED, {"f": OLD}),
            Cell(MERGED, {"f": _YOURS}),
            Cell(MERGED, {"f": _YOURS_HERE}),
            Cell(GONE, {}),
            Cell(KEPT, {"h": OLD}),
            Cell(KEPT, {"h": _YOURS}),
            Cell(CONFLICT, {"f": OLD}),
        ),
        "renamed and edited it": (
            Cell(RESTORED, {"f": OLD}),
            Cell(MERGED, {"f": _YOURS}),
            Cell(CONFLICT, {"f": OLD}, is_text=True),
            Cell(GONE, {}),
            Cell(FOLLOWED, {"h": OLD}),
            Cell(FOLLOWED, {"h": _YOURS}),
            Cell(CONFLICT, {"f": OLD}),
        ),
        "changed its mode": (
            Cell(RESTORED, {"f": OLD}),
            Cell(MERGED, {"f": _YOURS}),
            Cell(MERGED, {"f": _YOURS_HERE}),
            Cell(GONE, {}),
            Cell(FOLLOWED, {"h": OLD}),
            Cell(FOLLOWED, {"h": _YOURS}),
            Cell(KEPT, {"f": _NEW}),
        ),
        "made a file a link": (
            Cell(RESTORED, {"f": OLD}),
            *(Cell(CONFLICT, {"f": OLD}),) * 2,
            Cell(GONE, {}),
            Cell(FOLLOWED, {"h": OLD}),
            Cell(GONE, {"h": link(f"where you say: {YOUR_LINE}")}),
            Cell(CONFLICT, {"f": OLD}),
        ),
        "made a link a file": (
            Cell(RESTORED, {"f": _LINK}),
            *(Cell(CONFLICT, {"f": _LINK}),) * 2,
            Cell(GONE, {}),
            Cell(FOLLOWED, {"h": _LINK}),
            Cell(CONFLICT, {"h": _LINK}),
            Cell(CONFLICT, {"f": _LINK}),
        ),
        "made a file a folder": (
            Cell(RESTORED, {"f": OLD}),
            Cell(CONFLICT, {}, in_the_way={"f": FOLDER, "f/yours": file(YOUR_LINE)}),
            Cell(CONFLICT, {}, in_the_way={"f": FOLDER, "f/inside": file(f"{YOUR_LINE}\n")}),
            Cell(GONE, {}),
            Cell(GONE, {"h": FOLDER, "h/inside": _INSIDE}),
            Cell(GONE, {"h": FOLDER, "h/inside": _INSIDE, "h/yours": file(YOUR_LINE)}),
            Cell(CONFLICT, {"f": OLD}),
        ),
    }
    return {
        (turn, what): cell for turn in rows for what, cell in zip(SINCE, rows[turn], strict=True)
    }


CELLS = _cells()


def as_document() -> list[str]:
    """The table as `docs/undo.md` has it."""
    lines = [f"| the turn | {' | '.join(SINCE)} |", "|---" * (len(SINCE) + 1) + "|"]
    for turn in TURNS:
        cells = " | ".join(CELLS[turn, what].outcome for what in SINCE)
        lines.append(f"| {turn} | {cells} |")
    return lines
