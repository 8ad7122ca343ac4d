"""`takeback log -i` with a real project: what it shows, what its keys do to files and terminal."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from oracle import differences
from shop import LABEL, Shop
from takeback.cli import app
from takeback.cli.screen import Screen
from takeback.cli.screens import browser_source, styled
from takeback.cli.screens.browse import Browser
from takeback.errors import TakebackError, UnfinishedError
from takeback.history.compare import OwnChanges
from takeback.history.reader import HistoryReader
from takeback.model.history import Log
from takeback.project import Project
from terminal import ESCAPES, Terminal

LEFT = b"\x1b[?25h\x1b[?1049l"
"""What shows the cursor and the ordinary screen again."""
CONFLICT: dict[str, str | None] = {"src/pay.py": "def pay():\n    return 3\n"}

Key = str | Callable[[], object]


class Fingers:
    """In the place of a terminal: presses keys, or does something in between, and keeps screens."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = iter(keys)
        self._is_over = False
        self.screens: list[str] = []

    def paint(self, painted: Sequence[str]) -> None:
        """Look at the screen."""
        if not self._is_over:
            self.screens.append("\n".join(map(styled.plain, painted)))

    def draw(self, lines: Sequence[tuple[str, str]]) -> None:
        """Look at the screen of the picker."""
        self.paint([text for _, text in lines])

    def key(self) -> str:
        """Press the next one."""
        for key in self._keys:
            if isinstance(key, str):
                return key
            key()
        self._is_over = True
        return "q"

    def is_waiting(self) -> bool:
        """Nobody types ahead."""
        return False

    def drop_typed(self) -> None:
        """There is nothing to drop."""


@pytest.fixture
def shop(tree: Path, home: Path) -> Iterator[Shop]:
    """A project with two turns."""
    assert home.is_dir()
    made = Shop(tree)
    with made.project:
        made.validation()
        made.turn("Write docs", {"docs.md": "docs\n"})
        yield made


SECRET = "hunter2abcdefgh"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A project with a few turns to look at; nobody changes anything in it."""
    folder = tmp_path_factory.mktemp("browsing")
    (folder / "home").mkdir(mode=0o700)
    (folder / "tree").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAKEBACK_HOME", str(folder / "home"))
        made = Shop(folder / "tree")
        with made.project:
            made.validation()
            made.project.rollback("@~1")
            made.project.checkpoint("a name")
            for number in range(4):
                made.turn(f"Turn {number}", {"docs.md": f"{number}\n"})
            made.turn("clear \x1b[2J all", {"evil\x1b[2J\n.py": "\x1b[2J\x07 text\n"})
            made.turn(f"Use password={SECRET}", {".env": f"SECRET={SECRET}\n"})
            with made.session.turn("Both", whole=False) as turn:
                made.write({"notes.md": "mine\n"})
                with turn.step("Write", {"file_path": "own.md"}):
                    made.write({"own.md": "own\n"})
            yield made


def typed(shop: Shop, *keys: Key, secrets: bool = False) -> list[str]:
    """Press keys in the interactive log, and quit; each screen that was shown."""
    reader, screen, fingers = shop.project.reader, Screen(), Fingers(keys)
    screen.show_secrets = secrets

    def load(limit: int, before: str | None) -> Log:
        return reader.log(limit, session=None, since=None, all=True, changes=True, before=before)

    Browser(shop.project, screen, load).loop(fingers)
    return fingers.screens


# -- looking -----------------------------------------------------------------------------------


def test_the_list_and_the_diff(shop: Shop) -> None:
    """Now first, then the turns; on the right the chosen one and its lines."""
    shop.write({"notes.md": "mine\n"})
    first, looked, turn = typed(shop, "j")[:3]
    assert "now  the files as" in first
    assert "> @    now  1 path changed" in looked
    assert "+mine" in looked
    assert "> ○" in turn
    for said in ("Write docs", "create  docs.md", "+++ b/docs.md", "+docs", "takeback undo "):
        assert said in turn
    assert "+mine" not in turn


def test_a_turn_shows_its_own_lines_only(story: Shop) -> None:
    """What you changed while it ran is not in its diff."""
    shown = typed(story, "j")[2]
    assert "+own" in shown
    assert "mine" not in shown


def test_a_diff_is_made_for_the_shown_turn_only(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening the log compares nothing; each turn is compared once, when it is looked at."""
    asked: list[str] = []
    own_changes = HistoryReader.own_changes

    def counted(self: HistoryReader, turn: str, paths: tuple[bytes, ...], at: bytes) -> OwnChanges:
        asked.append(turn)
        return own_changes(self, turn, paths, at)

    monkeypatch.setattr(HistoryReader, "own_changes", counted)
    typed(shop)
    assert asked == []
    typed(shop, "j", "enter", "j", "j", "tab", "j")
    assert asked == [shop.ids["Write docs"], shop.ids[LABEL]]


def test_pages_make_the_whole_log(story: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read page by page, every turn, rollback and name is there once, in its place."""
    monkeypatch.setattr(browser_source, "_PAGE", 2)
    assert "  2+ turns" in typed(story)[0]
    last = typed(story, "G", "g")[-1]
    listed = [line[12:].split("│")[0].strip() for line in last.splitlines()[2:-2]]
    assert [title[:11] for title in listed if title] == [
        "Both",
        "Use passwor",
        r"clear \x1b[",
        *(f"Turn {number}" for number in range(3, -1, -1)),
        "a name",
        "rollback to",
        "Add payment",
        "start",
    ]


def test_a_search_reads_further_pages(story: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts and paths are searched, also in turns that were not on the screen yet."""
    monkeypatch.setattr(browser_source, "_PAGE", 2)
    for word in ("VALIDATION claude", "src/validate"):
        shown = typed(story, "/", *word, "enter", "enter", "G")
        assert LABEL in shown[-3].splitlines()[0]
        assert "+ok = True" in shown[-1]
    assert "! nothing matches `zzz`" in typed(story, "/", *"zzz", "enter")[-1]


def test_secrets_are_masked(story: Shop) -> None:
    """In prompts, diffs and previews, unless somebody wants to see them."""
    keys = ("j", "j", "enter", "G", "u", "n", "p", "enter", "q", "q")
    shown = "\n".join(typed(story, *keys))
    assert "+SECRET=" in shown
    assert SECRET not in shown
    assert SECRET in "\n".join(typed(story, *keys, secrets=True))


def test_words_cannot_act(story: Shop) -> None:
    """Prompts, names and contents with escape sequences are shown, not obeyed."""
    shown = "\n".join(typed(story, "j", "j", "j", "enter", "G", "u"))
    assert r"+\x1b[2J\x07 text" in shown
    assert "\x1b[2J" not in shown
    assert "\x07" not in shown


# -- undo and redo -----------------------------------------------------------------------------


def test_undo_and_redo(shop: Shop) -> None:
    """Each shows first what it would do, and does it after a yes; the list is fresh then."""
    before = shop.picture()
    shown = typed(shop, "j", "j", "u", lambda: unchanged(shop, before), "y")
    asked, done = shown[-3], shown[-1]
    assert "Take this back?" in asked
    assert "delete  src/validate.py" in asked
    assert f'Took back "{LABEL}"' in done
    assert "> ◌" in done
    assert (shop.tree / "src/pay.py").read_text() == "def pay():\n    return 1\n"
    assert not (shop.tree / "src/validate.py").exists()
    assert (shop.tree / "docs.md").exists()
    undone = shop.picture()
    shown = typed(shop, "j", "j", "r", lambda: unchanged(shop, undone), "y")
    assert f'Put back "{LABEL}"' in shown[-1]
    assert not differences(before, shop.picture())


def unchanged(shop: Shop, before: object) -> None:
    """A preview has written nothing."""
    assert not differences(before, shop.picture())  # type: ignore[arg-type]


def test_without_a_yes_nothing_happens(shop: Shop) -> None:
    """Any other answer changes nothing."""
    before = shop.picture()
    for key in ("n", "q", "esc", "x", "u", "enter", "j", "q"):
        typed(shop, "j", "u", key)
    typed(shop, "j", "u", "n", "y")
    assert not differences(before, shop.picture())


def test_on_now_the_newest_is_meant(shop: Shop) -> None:
    """`u` there is a bare undo, `r` a bare redo, also on a turn that is not undone."""
    before = shop.picture()
    assert 'Took back "Write docs"' in typed(shop, "u", "y")[-1]
    assert not (shop.tree / "docs.md").exists()
    assert 'Put back "Write docs"' in typed(shop, "j", "j", "r", "y")[-1]
    assert not differences(before, shop.picture())
    assert "there is nothing to redo" in typed(shop, "r")[-1]


def test_a_rollback_can_be_undone(shop: Shop) -> None:
    """It has a row of its own, and what it went back over comes back."""
    before = shop.picture()
    shop.project.rollback("@~2")
    shown = typed(shop, "j", "u", "y")
    assert "rollback to" in shown[2]
    assert not differences(before, shop.picture())
    assert "Took back the rollback" in shown[-1]


def test_a_conflict_is_decided_in_the_picker(shop: Shop) -> None:
    """A yes is not enough; `p` opens the picker, and what is decided there is done."""
    shop.write(CONFLICT)
    before = shop.picture()
    shown = typed(shop, "j", "j", "u", "y", lambda: unchanged(shop, before))
    assert "1 path is in conflict" in shown[-1]
    assert "a conflict has to be decided first: `p`" in shown[-1]
    assert "nothing was changed" in typed(shop, "j", "j", "u", "p", "q")[-1]
    assert not differences(before, shop.picture())
    shown = typed(shop, "j", "j", "u", "p", "m", "a")
    assert any("[x] mine     src/pay.py" in screen for screen in shown)
    assert "Took back" in shown[-1]
    assert (shop.tree / "src/pay.py").read_text() == CONFLICT["src/pay.py"]
    assert not (shop.tree / "src/validate.py").exists()


def test_paths_are_picked(shop: Shop) -> None:
    """`p` on a turn leaves out what is switched off there."""
    typed(shop, "j", "j", "p", " ", "a")
    assert (shop.tree / "src/cart.py").read_text() == "items = [1]\n"
    assert not (shop.tree / "src/validate.py").exists()


def test_a_stale_preview_is_refused(shop: Shop) -> None:
    """If a file is saved while one looks at the preview, the yes does nothing."""

    def save() -> None:
        shop.write({"src/cart.py": "saved meanwhile\n"})

    shown = typed(shop, "j", "j", "u", save, "y")
    assert "Nothing was changed" in shown[-1]
    assert "hint:" in shown[-1]
    assert (shop.tree / "src/cart.py").read_text() == "saved meanwhile\n"
    assert (shop.tree / "src/validate.py").exists()


def test_what_became_of_it_is_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half done is not called nothing; done is done, though the list cannot be read again."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise UnfinishedError("half of it \x1b[2J", hint="`takeback doctor`")

    with monkeypatch.context() as patch:
        patch.setattr(Project, "apply", fail)
        shown = typed(shop, "j", "u", "y")[-1]
    assert "Half done" in shown
    assert "Nothing was changed" not in shown
    patched = partial(monkeypatch.setattr, browser_source.Source, "now", fail)
    shown = typed(shop, "j", "u", patched, "y")[-1]
    assert "> Done" in shown
    assert 'Took back "Write docs"' in shown
    assert r"error: half of it \x1b[2J" in shown
    assert not (shop.tree / "docs.md").exists()


def test_a_problem_with_the_files_cannot_act(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words may hold names, which are shown like any other."""

    def fail(*_: object) -> NoReturn:
        raise TakebackError(f"no \x1b[2J password={SECRET}", hint="`takeback doctor`")

    monkeypatch.setattr(Project, "now", fail)
    shown = typed(shop)[-1]
    assert r"no \x1b[2J password=" in shown
    assert "\x1b[2J" not in shown
    assert SECRET not in shown


def test_new_turns_are_read_again(shop: Shop) -> None:
    """`R` shows what an agent did meanwhile, and the cursor stays on its turn."""
    later = typed(shop, "j", lambda: shop.turn("Meanwhile", {"new.md": "x\n"}), "R")[-1]
    assert "Meanwhile" in later
    assert [line.split()[4:6] for line in later.splitlines() if line.startswith(">")] == [
        ["Write", "docs"]
    ]


# -- the terminal ------------------------------------------------------------------------------


@pytest.fixture
def terminal(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, signals_as_in_a_terminal: None
) -> Iterator[Callable[..., Terminal]]:
    """Runs `takeback log -i` on a real terminal."""
    del signals_as_in_a_terminal
    made: list[Terminal] = []
    for name, value in (("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.chdir(shop.tree)

    def start(*words: str, rows: int = 16, columns: int = 84) -> Terminal:
        program = words or (sys.executable, "-I", "-m", "takeback", "log", "-i")
        made.append(Terminal(list(program), rows, columns))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_session_at_a_terminal(shop: Shop, terminal: Callable[..., Terminal]) -> None:
    """Browse, search, undo, redo, in a window that changes its size; all is as it was before."""
    before = shop.picture()
    screen = terminal()
    modes = screen.modes()
    screen.shows("> @    now  nothing changed")
    assert screen.modes() != modes
    screen.type(b"/payment\r")
    screen.shows("src/validate.py")
    screen.type(b"u")
    screen.shows("y take back")
    screen.seen = b""
    screen.resize(8, 40)
    lines = screen.shows("y take back")
    assert len(lines) == 8
    assert all(len(line) <= 40 for line in lines)
    screen.type(b"y")
    screen.shows("Took back")
    assert not (shop.tree / "src/validate.py").exists()
    screen.resize(16, 84)
    screen.type(b"r")
    screen.shows("y put back")
    screen.type(b"y")
    screen.shows("Put back")
    screen.type(b"q")
    assert screen.status() == 0
    assert screen.modes() == modes
    after = screen.seen.partition(LEFT)[2].decode()
    assert after.startswith(f'Took back "{LABEL}"')
    whole = " ".join(ESCAPES.sub("", after).split())
    assert re.search(r"Took back [^:]*: restored \d+ .* Put back [^:]*: changed \d+ ", whole), whole
    assert re.search(r"`takeback undo[^`]*` takes it back again$", whole), whole
    assert not differences(before, shop.picture())


def test_an_answer_typed_ahead_is_none(shop: Shop, terminal: Callable[..., Terminal]) -> None:
    """What is pasted cannot say yes to a preview that nobody saw; the outcome is told in full."""
    label = "Make the lines of this prompt longer than the right pane of a terminal is wide"
    shop.turn(label, {"docs.md": "more\n"})
    before = shop.picture()
    screen = terminal()
    screen.shows("> @    now  nothing changed")
    screen.type(b"uy")
    screen.shows("y take back")
    screen.type(b"ny")
    screen.shows("`?` shows the keys")
    assert not differences(before, shop.picture())
    screen.type(b"u")
    screen.shows("y take back")
    screen.type(b"y")
    screen.shows("> Done")
    screen.type(b"q")
    assert screen.status() == 0
    told = " ".join(screen.seen.partition(LEFT)[2].decode().split())
    assert "of claude-code: restored 1 file `takeback redo` puts it back" in told


def test_ctrl_c_leaves_the_terminal_in_order(shop: Shop, terminal: Callable[..., Terminal]) -> None:
    """Also in the middle of a question; nothing is changed."""
    before = shop.picture()
    screen = terminal()
    modes = screen.modes()
    screen.shows("> @    now  nothing")
    screen.type(b"u")
    screen.shows("y take back")
    screen.type(b"\x03")
    assert screen.status() == 130
    assert screen.seen.endswith(LEFT)
    assert screen.modes() == modes
    assert not differences(before, shop.picture())


BROKEN = """
from takeback.cli.screens import browser_view
def fail(*_, **__):
    raise RuntimeError("a bug")
browser_view.BrowserView._row = fail
from takeback.cli.app import main
raise SystemExit(main(["log", "-i"]))
"""


def test_a_bug_leaves_the_terminal_in_order(terminal: Callable[..., Terminal]) -> None:
    """Even an error that nobody expects does not leave a terminal without an echo."""
    screen = terminal(sys.executable, "-I", "-c", BROKEN)
    modes = screen.modes()
    assert screen.status() == 1
    assert screen.seen.index(LEFT) < screen.seen.index(b"RuntimeError: a bug")
    assert screen.modes() == modes


def test_ctrl_z_stops_and_goes_on(terminal: Callable[..., Terminal]) -> None:
    """Stopped, the terminal is the shell's again; continued, the log is drawn as it was."""
    words = shlex.join([sys.executable, "-I", "-m", "takeback", "log", "-i"])
    screen = terminal("/bin/sh", "-mc", f"{words}; echo stopped; read x; fg")
    screen.shows("> @    now  nothing")
    screen.type(b"j\x1a")
    assert LEFT in screen.expect(b"stopped\r\n")
    screen.type(b"\r")
    screen.shows("Write docs")
    screen.type(b"q")
    screen.status()
    assert LEFT in screen.seen


# -- where it cannot be ------------------------------------------------------------------------


def test_it_needs_a_terminal(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere it is an error that names what can be done instead."""
    monkeypatch.chdir(shop.tree)
    for words, said in {
        ("-i",): "`-i` needs a terminal",
        ("-i", "--json"): "`-i` and `--json` exclude each other",
        ("-i", "--checkpoints"): "`-i` and `--checkpoints` exclude each other",
    }.items():
        assert app.main(["log", *words]) == 2
        told = "".join(capsys.readouterr())
        assert said in told
        assert "`takeback log`" in told
    monkeypatch.setattr(Screen, "has_keys", True)
    monkeypatch.setitem(os.environ, "TERM", "dumb")
    assert app.main(["log", "-i"]) == 2
    told = capsys.readouterr().err
    assert "`TERM` is `dumb`" in told
    assert "hint: `takeback log`" in told
