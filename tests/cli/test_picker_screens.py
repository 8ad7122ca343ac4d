"""The interactive preview on a real terminal: keys in, screens out, files as they were shown."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from oracle import differences
from shop import LABEL, Shop
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("signals_as_in_a_terminal")

STARTED = [sys.executable, "-I", "-m", "takeback"]
MINUS = "\N{MINUS SIGN}"
LEFT = b"\x1b[?25h\x1b[?1049l"
"""What shows the cursor and the ordinary screen again."""

Start = Callable[..., Terminal]


@pytest.fixture
def shop(tree: Path, home: Path) -> Iterator[Shop]:
    """A project with a turn, a later one, and an edit of yours in the same place."""
    (home / "config.toml").write_text("[lessons]\nask = false\n")  # `test_undo` asks why
    made = Shop(tree)
    with made.project:
        made.validation()
        made.turn("Write docs", {"docs.md": "docs\n"})
        yield made


@pytest.fixture
def terminal(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Runs `takeback` on a terminal that can show something."""
    made: list[Terminal] = []
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("LC_ALL", raising=False)

    def start(
        *words: str, rows: int = 16, columns: int = 72, program: Sequence[str] = ("-m", "takeback")
    ) -> Terminal:
        os.chdir(shop.tree)
        made.append(Terminal([sys.executable, "-I", *program, *words], rows, columns))
        return made[-1]

    here = Path.cwd()
    yield start
    os.chdir(here)
    for one in made:
        one.close()


def conflict(shop: Shop) -> None:
    """You change a line that the turn changed."""
    shop.write({"src/pay.py": "def pay():\n    return 3\n"})


def pay(shop: Shop) -> str:
    """What the file in question holds."""
    return (shop.tree / "src/pay.py").read_text()


# -- looking -----------------------------------------------------------------------------------


def test_the_list(shop: Shop, terminal: Start) -> None:
    """Conflicts first, then each path with its verb and its lines; marks, and no colour needed."""
    conflict(shop)
    lines = terminal("undo", LABEL).shows("? help")
    assert lines[:5] == [
        f'Take back "{LABEL}" of claude-code',
        "> [?] conflict src/pay.py                 you changed the same lines…",
        f"  [x] write    src/cart.py         +1 {MINUS}1  by shell",
        f"  [x] delete   src/validate.py     +0 {MINUS}1",
        f"  [x] create   tests/test_cart.py  +1 {MINUS}0  by shell",
    ]
    assert lines[-2:] == [
        "1 conflict to decide; would restore 2 files, remove 1",
        "m mine  t back  b both  s skip  a apply  space on/off  d diff  ? help",
    ]


def test_a_diff_can_be_opened(terminal: Start) -> None:
    """Enter shows what would change there, and `q` goes back to the list."""
    screen = terminal("undo", LABEL)
    screen.shows("> [x] write    src/cart.py")
    screen.type(b"\r")
    lines = screen.shows("@@ -1 +1 @@")
    assert lines[0] == "src/cart.py"
    assert "-items = [1]" in lines
    assert "+items = []" in lines
    screen.type(b"q")
    screen.shows("> [x] write    src/cart.py")


def test_a_conflict_can_be_opened(shop: Shop, terminal: Start) -> None:
    """Enter on a conflict shows its three sides."""
    conflict(shop)
    screen = terminal("undo", LABEL)
    screen.shows("[?]")
    screen.type(b"\r")
    assert screen.shows("undo wants")[3:7] == [
        "line 2",
        "the turn left |     return 2",
        "now it is     |     return 3",
        "undo wants    |     return 1",
    ]


def test_help_tells_the_keys(terminal: Start) -> None:
    """`?` lists them, also on the smallest screen, where one scrolls."""
    screen = terminal("undo", LABEL, rows=10, columns=40)
    screen.shows("? help")
    screen.type(b"?")
    assert screen.shows("[x] is applied when you press")[0] == "Keys"
    screen.type(b"G")
    screen.shows("decide all that are left")


def test_the_smallest_screen(shop: Shop, terminal: Start) -> None:
    """At 40 by 10 everything can be reached, and a conflict be decided and applied."""
    conflict(shop)
    screen = terminal("undo", LABEL, rows=10, columns=40)
    lines = screen.shows("[?]")
    assert len(lines) == 10
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith("> [?] conflict src/pay.py")
    screen.type(b"m")
    screen.shows("> [x] mine     src/pay.py")
    screen.type(b"a")
    assert screen.status() == 0
    assert pay(shop) == "def pay():\n    return 3\n"
    assert not (shop.tree / "src/validate.py").exists()


@pytest.mark.parametrize(("rows", "columns"), [(9, 80), (24, 39)])
def test_a_screen_that_is_too_small(shop: Shop, terminal: Start, rows: int, columns: int) -> None:
    """There the plain preview and its question are enough."""
    screen = terminal("undo", LABEL, rows=rows, columns=columns)
    screen.expect(b"[y/N] ")
    screen.type(b"y\r")
    assert screen.status() == 0
    assert not (shop.tree / "src/validate.py").exists()


def test_long_lists_scroll(shop: Shop, terminal: Start) -> None:
    """The cursor takes the list along, by lines, pages, and to both ends."""
    shop.turn("Many", {}, {f"many/{n:03}": "x\n" for n in range(100)})
    shop.turn("After", {"after": "x\n"})
    screen = terminal("undo", "Many")
    screen.shows("> [x] rmdir    many")
    screen.type(b"G")
    screen.shows("> [x] delete   many/099")
    screen.type(b"\x1b[5~")
    screen.shows("row 89 of 101")
    screen.type(b"g")
    screen.shows("> [x] rmdir    many")


def test_a_window_may_change_its_size(terminal: Start) -> None:
    """Everything is drawn again to fit."""
    screen = terminal("undo", LABEL)
    screen.shows("? help")
    screen.seen = b""
    screen.resize(12, 50)
    assert len(screen.shows("? help")) == 12
    screen.resize(2, 3)
    screen.shows(">")
    screen.resize(16, 72)
    screen.shows("? help")
    screen.type(b"q")
    assert screen.status() == 3


def test_colours_only_add(shop: Shop, terminal: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """With colours the text is the same."""
    conflict(shop)
    plain = terminal("undo", LABEL).shows("? help")
    monkeypatch.delenv("NO_COLOR")
    screen = terminal("undo", LABEL)
    assert screen.shows("? help") == plain
    assert b"\x1b[31;7m" in screen.seen


def test_names_cannot_act(shop: Shop, terminal: Start) -> None:
    """Names, prompts and contents with escape sequences are shown, not obeyed."""
    shop.turn("clear \x1b[2J all", {"evil\x1b[2J\n.py": "\x1b[2J\x07 text\n"})
    shop.turn("After", {"after": "x\n"})
    screen = terminal("undo", "clear")
    screen.shows(r"evil\x1b[2J\x0a.py")
    screen.type(b"\r")
    screen.shows(r"-\x1b[2J\x07 text")
    assert b"\x1b[2J" not in screen.seen
    assert b"\x07" not in screen.seen


# -- choosing and deciding ---------------------------------------------------------------------


def test_what_is_switched_off_stays(shop: Shop, terminal: Start) -> None:
    """Space leaves a path out: what is marked is done, and nothing else."""
    screen = terminal("undo", LABEL)
    screen.shows("> [x] write    src/cart.py")
    screen.type(b" ")
    lines = screen.shows("> [ ] leave    src/cart.py")
    assert lines[-2] == "Would restore 2 files, remove 1"
    screen.type(b"a")
    screen.expect(b"puts it back")
    assert screen.status() == 0
    assert (shop.tree / "src/cart.py").read_text() == "items = [1]\n"
    assert pay(shop) == "def pay():\n    return 1\n"
    assert not (shop.tree / "src/validate.py").exists()


def test_on_and_off_is_as_before(shop: Shop, terminal: Start) -> None:
    """Switched off and on again, the whole turn is taken back, and counts as undone."""
    screen = terminal("undo", LABEL)
    screen.shows("> [x] write    src/cart.py")
    screen.type(b" ")
    screen.shows("[ ] leave")
    screen.type(b" ")
    screen.shows("> [x] write    src/cart.py")
    screen.type(b"y")
    assert screen.status() == 0
    assert shop("undo", LABEL, "--yes").code == 1


@pytest.mark.parametrize(
    ("key", "row", "text"),
    [
        (b"m", "mine", "def pay():\n    return 3\n"),
        (b"t", "back", "def pay():\n    return 1\n"),
        (b"s", "skip", "def pay():\n    return 3\n"),
        (b"M", "mine", "def pay():\n    return 3\n"),
    ],
)
def test_a_conflict_is_decided(
    shop: Shop, terminal: Start, key: bytes, row: str, text: str
) -> None:
    """Each key does what the row says then; the other paths are taken back in any case."""
    conflict(shop)
    screen = terminal("undo", LABEL)
    screen.shows("> [?] conflict src/pay.py")
    screen.type(key)
    screen.shows(f"> [x] {row:8} src/pay.py")
    screen.type(b"a")
    assert screen.status() == 0
    assert pay(shop) == text
    assert not (shop.tree / "src/validate.py").exists()


def test_both_versions_with_markers(shop: Shop, terminal: Start) -> None:
    """`b` writes both into the file, and the report says what is left to be done."""
    conflict(shop)
    screen = terminal("undo", LABEL)
    screen.shows("[?]")
    screen.type(b"b")
    screen.shows("> [x] both     src/pay.py")
    screen.type(b"a")
    screen.expect(b"`src/pay.py` holds both versions: edit it at the `<<<<<<<`")
    assert screen.status() == 0
    assert pay(shop).count("return") == 3
    assert "<<<<<<<" in pay(shop)


def test_nothing_is_done_before_all_is_decided(shop: Shop, terminal: Start) -> None:
    """`a` says what is missing, and stays."""
    conflict(shop)
    before = shop.picture()
    screen = terminal("undo", LABEL)
    screen.shows("[?]")
    screen.type(b"a")
    screen.shows("! 1 conflict left: m, t, b, s or space")
    screen.type(b"q")
    assert screen.status() == 3
    assert not differences(before, shop.picture())


def test_decisions_of_the_command_line_can_be_changed(shop: Shop, terminal: Start) -> None:
    """They are entered already, and a key gives one path another."""
    conflict(shop)
    screen = terminal("undo", LABEL, "--keep-mine")
    screen.shows("> [x] mine     src/pay.py")
    screen.type(b"t")
    screen.shows("> [x] back     src/pay.py")
    screen.type(b"a")
    assert screen.status() == 0
    assert pay(shop) == "def pay():\n    return 1\n"


def test_a_conflict_of_the_newest_turn(shop: Shop, terminal: Start) -> None:
    """A bare `undo` that meets a conflict lets one decide, and one that meets none asks nothing."""
    shop.write({"docs.md": "mine\n"})
    conflicting = terminal("undo", "--", "docs.md")
    assert conflicting.status() == 0  # made by the turn and changed since: it is kept
    shop.write({"docs.md": "docs\n"})
    assert terminal("undo").status() == 0
    conflict(shop)
    screen = terminal("undo")
    screen.shows("> [?] conflict src/pay.py")
    screen.type(b"t")
    screen.shows("[x] back")
    screen.type(b"a")
    assert screen.status() == 0
    assert pay(shop) == "def pay():\n    return 1\n"


def test_a_redo_is_chosen_from_too(shop: Shop, terminal: Start) -> None:
    """`redo` of a conflict shows what redo wants, and puts back what is decided."""
    shop("undo", LABEL, "--yes")
    conflict(shop)
    screen = terminal("redo", LABEL)
    screen.shows("> [?] conflict src/pay.py")
    screen.type(b"\r")
    screen.shows("redo wants    |     return 2")
    screen.type(b"q")
    screen.type(b"t")
    screen.shows("[x] back")
    screen.type(b"a")
    assert screen.status() == 0
    assert pay(shop) == "def pay():\n    return 2\n"


def test_a_rollback_is_chosen_from_too(shop: Shop, terminal: Start) -> None:
    """Paths can be left out of a rollback."""
    screen = terminal("rollback", "@~2")
    lines = screen.shows("> [x] delete   docs.md")
    assert lines[0] == f'Roll back to before "{LABEL}"'
    screen.type(b" ")
    screen.shows("> [ ] leave    docs.md")
    screen.type(b"a")
    assert screen.status() == 0
    assert (shop.tree / "docs.md").exists()
    assert not (shop.tree / "src/validate.py").exists()


def test_later_turns_can_be_taken_along(shop: Shop, terminal: Start) -> None:
    """What builds on the turn is named, and `+` takes it back, too."""
    shop.turn("Use it", {"src/validate.py": "ok = False\n"})
    shop.turn("After", {"after": "x\n"})
    screen = terminal("undo", LABEL)
    screen.shows('later    "Use it" of claude-code builds on this')
    screen.type(b"+")
    lines = screen.shows("and 1 more turn")
    assert "delete   src/validate.py" in "\n".join(lines)
    screen.type(b"a")
    assert screen.status() == 0
    assert not (shop.tree / "src/validate.py").exists()
    assert (shop.tree / "after").exists()


def test_turns_of_other_sessions_can_be_taken_along(shop: Shop, terminal: Start) -> None:
    """Also if a whole session is taken back, and somebody else built on it."""
    other = shop.project.session("codex")
    with other.turn("Use it") as turn, turn.step("Write", {"file_path": "src/validate.py"}):
        shop.write({"src/validate.py": "ok = False\n"})
    screen = terminal("undo", "--session", shop.session.id[:8])
    screen.shows('"Use it" of codex builds on this')
    screen.type(b"+")
    screen.shows("delete   src/validate.py")
    screen.type(b"a")
    assert screen.status() == 0
    assert not (shop.tree / "src/validate.py").exists()
    assert not (shop.tree / "docs.md").exists()


def test_what_changes_meanwhile_is_not_overwritten(shop: Shop, terminal: Start) -> None:
    """If a file is saved while one looks, nothing is done: one has to look again."""
    screen = terminal("undo", LABEL)
    screen.shows("? help")
    shop.write({"src/cart.py": "saved meanwhile\n"})
    before = shop.picture()
    screen.type(b"a")
    assert screen.status() == 3
    assert not differences(before, shop.picture())


# -- the terminal is left as it was ------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "code"), [(b"q", 3), (b"\x1b", 3), (b"\x04", 3), (b"\x03", 130), (b"a", 0)]
)
def test_the_terminal_is_as_before(shop: Shop, terminal: Start, keys: bytes, code: int) -> None:
    """However it ends, keys are echoed again, and the ordinary screen with its cursor is back."""
    before = shop.picture()
    screen = terminal("undo", LABEL)
    modes = screen.modes()
    screen.shows("? help")
    assert screen.modes() != modes
    screen.type(keys)
    assert screen.status() == code
    assert screen.seen.count(LEFT) == 1
    assert screen.modes() == modes
    assert bool(differences(before, shop.picture())) == (code == 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_leave_the_terminal_in_order(
    shop: Shop, terminal: Start, number: signal.Signals
) -> None:
    """A signal that ends us ends us, with the terminal in order and nothing changed."""
    before = shop.picture()
    screen = terminal("undo", LABEL)
    modes = screen.modes()
    screen.shows("? help")
    os.kill(screen.process, number)
    assert screen.status() == -number
    assert LEFT in screen.seen
    assert screen.modes() == modes
    assert not differences(before, shop.picture())


def test_a_window_may_be_closed(shop: Shop, terminal: Start) -> None:
    """A terminal that goes away ends it, and nothing is changed."""
    before = shop.picture()
    screen = terminal("undo", LABEL)
    screen.shows("? help")
    screen.hang_up()
    _, status = os.waitpid(screen.process, 0)
    screen.process = 0
    assert os.waitstatus_to_exitcode(status) != 0
    assert not differences(before, shop.picture())


BROKEN = """
from takeback.cli.screens import picker_view
def fail(*_):
    raise RuntimeError("a bug")
picker_view.PickerView._rows = fail
from takeback.cli.app import main
raise SystemExit(main(["undo", "Add payment validation"]))
"""


def test_a_bug_leaves_the_terminal_in_order(terminal: Start) -> None:
    """Even an error that nobody expects does not leave a terminal without an echo."""
    screen = terminal(program=["-c", BROKEN])
    modes = screen.modes()
    assert screen.status() == 1
    assert screen.seen.index(LEFT) < screen.seen.index(b"RuntimeError")
    assert screen.modes() == modes


@pytest.mark.usefixtures("terminal")
def test_ctrl_z_stops_and_goes_on(shop: Shop) -> None:
    """Stopped, the terminal is the shell's again; continued, the list is drawn as it was."""
    words = shlex.join([*STARTED, "undo", LABEL])
    line = f"cd {shlex.quote(str(shop.tree))}; {words}; echo stopped; read x; fg"
    screen = Terminal(["/bin/sh", "-mc", line], 16, 72)
    screen.shows("? help")
    screen.type(b"\x1a")
    screen.expect(b"stopped\r\n")
    screen.type(b"\r")
    screen.shows("? help")
    screen.type(b"q")
    screen.status()
    assert LEFT in screen.seen
    screen.close()


# -- when it is not there ----------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--yes"], ["--json", "--yes"], ["--dry-run"]])
def test_options_that_leave_nothing_to_choose(terminal: Start, words: list[str]) -> None:
    """With `--yes`, `--json` or `--dry-run` nothing interactive begins."""
    screen = terminal("undo", LABEL, *words)
    assert screen.status() == 0
    assert b"\x1b[?1049h" not in screen.seen


def test_a_yes_decides_no_conflict(shop: Shop, terminal: Start) -> None:
    """Not on a terminal either: exit code 3, and nothing changed."""
    conflict(shop)
    before = shop.picture()
    screen = terminal("undo", LABEL, "--yes")
    assert screen.status() == 3
    assert b"\x1b[?1049h" not in screen.seen
    assert not differences(before, shop.picture())


# -- choosing hunks ----------------------------------------------------------------------------

LINES = [f"line {number}\n" for number in range(30)]


def two_hunks(shop: Shop) -> str:
    """The newest turn changes two lines of a file; the file before it."""
    shop.write({"long.py": "".join(LINES)})
    changed = ["turn\n" if number in (4, 20) else line for number, line in enumerate(LINES)]
    shop.turn("Two lines", {"long.py": "".join(changed)})
    return "".join(LINES)


def test_hunks_of_the_newest_turn_are_chosen(shop: Shop, terminal: Start) -> None:
    """`undo -i` asks also for the newest turn; what is left of it goes with the next undo."""
    before = two_hunks(shop)
    screen = terminal("undo", "-i")
    lines = screen.shows("? help")
    assert lines[1:4] == [
        f"> [x] write    long.py    +2 {MINUS}2",
        f"  [x] take       line 5   +1 {MINUS}1",
        f"  [x] take       line 21  +1 {MINUS}1",
    ]
    screen.type(b"jj ")
    screen.shows("> [ ] leave      line 21")
    screen.type(b"a")
    screen.expect(b"this turn is partly undone; `takeback undo` takes back the rest")
    assert screen.status() == 0
    left = before.replace("line 20\n", "turn\n")
    assert (shop.tree / "long.py").read_text() == left
    assert shop("undo").code == 0
    assert (shop.tree / "long.py").read_text() == before
    assert shop("redo").code == 0
    assert (shop.tree / "long.py").read_text() == left


def test_choosing_needs_a_terminal(shop: Shop) -> None:
    """Elsewhere `-i` is an error that names what can be done instead."""
    before = shop.picture()
    said = shop("undo", "-i")
    assert said.code == 2
    assert "`-i` needs a terminal" in said.err
    assert not differences(before, shop.picture())


@pytest.mark.parametrize(
    ("rows", "kind", "why"),
    [
        (8, "xterm", b"`-i` needs a larger terminal: at least 40x10, this one has 72x8"),
        (16, "dumb", b"`-i` cannot draw on this terminal: `TERM` is `dumb`"),
    ],
    ids=["small", "dumb"],
)
def test_a_terminal_on_which_nothing_can_be_chosen(
    terminal: Start, monkeypatch: pytest.MonkeyPatch, rows: int, kind: str, why: bytes
) -> None:
    """The error names what is missing, not a terminal that is there."""
    monkeypatch.setenv("TERM", kind)
    screen = terminal("undo", "-i", rows=rows)
    screen.expect(why)
    assert screen.status() == 2


def test_a_rollback_shows_your_own_edits_first(shop: Shop, terminal: Start) -> None:
    """Before anything can be applied."""
    shop.write({"zoo.md": "mine\n"})
    lines = terminal("rollback", "@~1").shows("? help")
    assert "1 change of your own is removed" in lines[1]
    assert "zoo.md" in lines[2]
