"""Whose change is whose, by stamps alone: what a real tree shows only once in a thousand runs.

Times are milliseconds after the last look, which began at 0; older stamps tell nothing.
"""

from takeback.capture.attribution import Interval, Window, attribute
from takeback.capture.deltas import Delta

MS = 1_000_000
LOOK = 1_000_000 * MS


def window(started: int, ended: int | None = None, *, session: str = "a", **more: str) -> Window:
    """A shell's window, or that of an edit tool that names a path."""
    names = frozenset([more["names"].encode()]) if more else frozenset()
    return Window(
        session=session,
        turn="turn",
        step=session,
        kind="edit" if names else "shell",
        names=names,
        opened=started,
        started=LOOK + started * MS,
        ended=None if ended is None else LOOK + ended * MS,
    )


def delta(path: str, verb: str, mtime: int, ctime: int, origin: str = "") -> Delta:
    """Something that is there now, with its stamps."""
    made = Delta(path.encode(), verb, time=(LOOK + mtime * MS, LOOK + ctime * MS))
    made.origin = origin.encode() or None
    return made


def gone(path: str, verb: str, latest: int) -> Delta:
    """Something that went, at the latest then."""
    return Delta(path.encode(), verb, latest=LOOK + latest * MS)


def told(deltas: list[Delta], *windows: Window, now: int = 1000) -> dict[str, str]:
    """Who changed each path: a session, `you` or `shared`."""
    ordered = sorted(deltas, key=lambda each: each.path)
    authors = attribute(ordered, windows, Interval(LOOK, LOOK + now * MS, 20 * MS))
    pairs = zip(ordered, authors, strict=True)
    return {d.path.decode(): author.session or author.who for d, author in pairs}


def test_a_file_written_before_the_look_and_moved_over_another_after_it() -> None:
    """The stamp of a write from before the look, however young, is not when a file was moved."""
    found = [delta("x", "write", -12, 300)]
    assert told(found, window(200, 400)) == {"x": "a"}
    assert told(found, window(0, 100)) == {"x": "you"}


def test_a_young_folder_that_is_moved_over_another() -> None:
    """What is in it keeps stamps from before the look, however young: they do not tell when."""
    found = [delta("dist/out.js", "write", -12, -12)]
    assert told(found, window(15)) == {"dist/out.js": "a"}
    assert told(found, window(200, 400)) == {"dist/out.js": "a"}
    assert told(found) == {"dist/out.js": "you"}


def test_a_young_folder_that_is_moved() -> None:
    """A folder that is moved soon after something was put into it came when it was moved."""
    found = [
        gone("old", "rmdir", 15),
        gone("old/file", "delete", 15),
        delta("new", "mkdir", -3, 15),
        delta("new/file", "create", -18, -18, origin="old/file"),
    ]
    assert set(told(found, window(10)).values()) == {"a"}
    assert set(told(found, window(100)).values()) == {"you"}


def test_a_window_that_was_over_before_the_look() -> None:
    """Neither a deletion nor anything else falls into a window that closed before the look."""
    found = [gone("x", "delete", 300), delta("y", "write", 200, 200)]
    assert set(told(found, window(-500, -100)).values()) == {"you"}
    assert set(told(found, window(-500)).values()) == {"a"}


def test_a_clock_that_was_set_back() -> None:
    """When it is earlier now than at the last look, stamps and ends tell nothing."""
    found = [gone("x", "delete", 300), delta("y", "write", -5000, -5000)]
    assert set(told(found, window(-500, -6000), now=-5000).values()) == {"a"}


def test_stamps_that_nobody_can_believe() -> None:
    """A write that claims to be from the future, or from long ago, is when the entry changed."""
    found = [delta("x", "write", 9000, 300), delta("y", "write", -90000, 300)]
    assert set(told(found, window(200, 400)).values()) == {"a"}
    assert set(told(found, window(500)).values()) == {"you"}


def test_a_file_that_was_moved_out_of_a_folder_that_went() -> None:
    """A folder went after what was moved out of it: not in a window that had closed by then."""
    found = [
        gone("dir", "rmdir", 500),
        gone("dir/file", "delete", 500),
        delta("file", "create", -9000, 300, origin="dir/file"),
    ]
    assert set(told(found, window(50, 100)).values()) == {"you"}
    after = told(found, window(50, 100), window(400, 600, session="b"))
    assert after == {"dir": "b", "dir/file": "you", "file": "you"}


def test_a_name_goes_before_a_window_and_two_sessions_share() -> None:
    """Rule 1 as a table: named by one, named by both, in one window, in both, in none."""
    found = [delta(path, "write", 300, 300) for path in ("x", "y")]
    shells = (window(0), window(0, session="b"))
    assert told(found, window(0, names="x"), shells[1]) == {"x": "a", "y": "b"}
    assert told(found, window(0, names="x"), *shells) == {"x": "a", "y": "shared"}
    both = (window(0, names="x"), window(0, session="b", names="x"))
    assert told(found, *both) == {"x": "shared", "y": "you"}
    assert told(found, window(400)) == {"x": "you", "y": "you"}
