"""A conflict in words: the places where the sides clash, and what each side is."""

from takeback.cli.text.restores import conflict_text
from takeback.model import words
from takeback.model.plan import Conflict, Hunk
from takeback.model.reasons import Reason
from takeback.model.tree import FOLDER, LINK, NO_HASH, NO_OBJECT, REGULAR, Entry

NONE = Reason("none")


def entry(kind: int = REGULAR, mode: int = 0o644, size: int = 3, reason: int = 0) -> Entry:
    """An entry of some kind."""
    return Entry(b"", kind | mode, reason, size, NO_HASH, 0, NO_OBJECT)


Place = tuple[list[bytes], list[bytes], list[bytes]]


def told(conflict: Conflict, verb: str = "undo", most_places: int = 0, most: int = 0) -> list[str]:
    """What is told of a conflict, without styles."""
    found = conflict_text.sides(
        conflict, verb, lambda _: "there", most_places=most_places, most_lines=most
    )
    return [text for _, text in found]


def in_text(*places: Place, path: bytes = b"file") -> Conflict:
    """A conflict in a text, which begins with one line."""
    text, line = b"a\n", 2
    hunks: list[Hunk] = []
    for ours, base, theirs in places:
        at = text.count(b"\n")
        hunks.append(Hunk(len(hunks), line, tuple(base), tuple(ours), tuple(theirs), True, at))
        sides = (b"".join(side) for side in (ours, base, theirs))
        text += b"<<<<<<< now\n%s||||||| left\n%s=======\n%s>>>>>>> before\n" % tuple(sides)
        line += len(ours)
    known = entry()
    return Conflict(path, NONE, known, known, known, marked=text, hunks=tuple(hunks))


def test_the_three_sides_of_a_text() -> None:
    """What the turn left, what is there now and what undo wants, line by line."""
    conflict = in_text(([b"mine\n", b"\tmore\n"], [b"turn\n"], []))
    assert told(conflict) == [
        "line 2",
        "the turn left | turn",
        "now it is     | mine",
        "              |         more",
        "undo wants    | (nothing)",
    ]
    assert told(conflict, "redo")[1] == "the undo left | turn"


def test_long_sides_are_cut() -> None:
    """Of many lines the first are shown, and the others counted; of many places, too."""
    place: Place = ([b"%d\n" % n for n in range(9)], [b"x\n"], [b"y\n"])
    said = told(in_text(place, place, place), most_places=2, most=3)
    assert said[2:6] == [
        "now it is     | 0",
        "              | 1",
        "              | 2",
        "              | (and 6 more lines)",
    ]
    assert said[-1] == "and 1 more hunk"
    assert len(told(in_text(place, place, place))) == 3 * (1 + 1 + 9 + 1)


def test_other_conflicts_are_told_in_words() -> None:
    """Of what is no text it says what each side is; modes only where they differ."""
    binary = Conflict(b"bin", NONE, base=entry(size=10), ours=entry(size=20), theirs=entry(size=30))
    assert told(binary) == [
        "the turn left | file, 10 bytes",
        "now it is     | file, 20 bytes",
        "undo wants    | file, 30 bytes",
    ]
    odd = Conflict(b"odd", NONE, ours=entry(LINK), theirs=entry(mode=0o755))
    assert told(odd) == [
        "the turn left | (nothing)",
        "now it is     | link to there",
        "undo wants    | file, 3 bytes",
    ]
    folders = Conflict(b"dir", NONE, base=entry(FOLDER, 0o700), ours=entry(mode=0o644))
    assert told(folders)[:2] == [
        "the turn left | folder, mode 0700",
        "now it is     | file, 3 bytes, mode 0644",
    ]
    unknown = Conflict(b"big", NONE, base=entry(), ours=entry(reason=words.TOO_LARGE))
    assert told(unknown)[1] == "now it is     | not covered (too large)"
    assert told(Conflict(b"way", NONE)) == []


def test_what_acts_on_a_terminal_is_shown_only() -> None:
    """Escape sequences in a file are escaped."""
    said = told(in_text(([b"\x1b[2J\n"], [b"\xff\n"], [b"\r\n"])))
    assert said[1:3] == ["the turn left | \\xff", "now it is     | \\x1b[2J"]


def test_secrets_are_masked() -> None:
    """Neither the preview nor the JSON shows values of `.env`, nor anything of a key."""
    place: Place = ([b"KEY=mine\n"], [b"KEY=turn\n"], [b"KEY=old\n"])
    conflict = in_text(place, path=b".env")
    said = "\n".join(told(conflict)) + str(conflict_text.as_json(conflict))
    assert said.count("KEY=••••") == 9
    assert not any(secret in said for secret in ("mine", "turn\n", "old"))
    key = in_text(place, path=b"id_rsa")
    assert told(key) == ["a secret file; nothing of it is shown"]
    assert conflict_text.as_json(key)["marked"] is None
    assert "KEY" not in str(conflict_text.as_json(key))
    older = conflict.replace(hunks=(conflict.hunks[0].replace(marker=-1),))
    assert "KEY" not in "".join(told(older))


def test_json_of_the_sides() -> None:
    """Kind, size and mode of each side, null where it is absent; the text with its markers."""
    conflict = in_text(([b"1\n"], [b"2\n"], [b"\xff\n"])).replace(base=None)
    said = conflict_text.as_json(conflict)
    assert said["base"] is None
    assert said["ours"] == {"kind": "file", "size": 3, "mode": "0644"}
    assert said["marked"] == (conflict.marked or b"").decode("utf-8", "replace")
    hunk = {"index": 0, "line": 2, "base": "2\n", "ours": "1\n", "theirs": "\ufffd\n"}
    assert said["hunks"] == [hunk]
