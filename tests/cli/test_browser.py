"""The machine behind the interactive log: what each key makes of it, and how it is drawn."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chance import examples
from takeback.cli.screen import Screen, columns
from takeback.cli.screens import browser, styled
from takeback.cli.screens.browser import Model, Overlay, Row
from takeback.cli.screens.browser_view import HELP, BrowserView, Text, panes

LINES = (
    "Turn mvkx",
    "\x1b[1mbold\x1b[0m and \x1b[32m+green " + "long " * 40 + "\x1b[0m",
    "ログインフォームについて説明してください" * 4,
    "",
    "diff --git a/x b/x",
    *(f"line {number}" for number in range(60)),
    "diff --git a/y b/y",
    "needle",
)
KEYS = [
    *("up", "down", "pgup", "pgdn", "home", "end", "j", "k", "g", "G", " ", "b", "J", "K", "]"),
    *("[", "z", "tab", "enter", "left", "esc", "/", "n", "N", "u", "r", "p", "R", "?", "y", "q"),
    *("backspace", "erase", "unknown", "é", "o"),
]


def turn(number: int, **more: object) -> Row:
    """The row of a turn."""
    title = f"Prompt {number} ログイン" if number % 3 else f"Prompt {number} is rather a long one"
    row = Row(
        browser.TURN, f"id{number}", title, "o", "9 min", "claude-code", "+1 -2", f"i{number}"
    )
    return row._replace(words=title.lower())._replace(**more)  # type: ignore[arg-type]


def model(turns: int = 10, *, more: bool = False, page: int = 5) -> Model:
    """A list of turns below the files as they are."""
    rows = (Row(browser.NOW, "", "nothing changed", "@", "now"), *map(turn, range(turns)))
    return Model(rows=rows, more=more, page=page, text_page=page, length=50)


def pressed(of: Model, *keys: str) -> Model:
    """What some keys make of it."""
    for key in keys:
        of = browser.press(of, key)
    return of


def previewed(of: Model, *, is_open: bool = False) -> Model:
    """With the preview of an undo."""
    return browser.covered(of, Overlay(browser.PREVIEW, "Sure?", LINES, browser.UNDO, is_open))


# -- moving ------------------------------------------------------------------------------------


def test_the_cursor_moves_and_takes_the_list_along() -> None:
    """By rows, by pages, to both ends; never beyond."""
    assert pressed(model(), "up").cursor == 0
    assert pressed(model(), "j", "j", "k").cursor == 1
    assert pressed(model(), "pgdn").cursor == 4
    moved = pressed(model(), "G")
    assert (moved.cursor, moved.top) == (10, 6)
    assert pressed(moved, "down").cursor == 10
    assert pressed(moved, "g").top == 0


def test_older_turns_are_asked_for_in_time() -> None:
    """Before the cursor reaches the last row that was read; the end asks until nothing is left."""
    many = model(more=True)
    assert pressed(many, "down").request == ""
    assert pressed(many, "pgdn", "pgdn").request == browser.MORE
    end = pressed(many, "G")
    assert (end.request, end.cursor) == (browser.MORE, 0)
    end = browser.loaded(end, [turn(10), turn(11)], more=True)
    assert (end.request, end.cursor) == (browser.MORE, 0)
    end = browser.loaded(end, [turn(12)], more=False)
    assert (end.request, end.goal, end.cursor) == ("", None, 13)


def test_keys_go_to_the_pane_that_has_the_focus() -> None:
    """Enter and Tab go to the text, where the same keys scroll; another row begins at its top."""
    text = pressed(model(), "enter", "j", "j", "pgdn")
    assert (text.focus, text.cursor, text.scroll) == (browser.TEXT, 0, 6)
    back = pressed(text, "tab")
    assert (back.focus, pressed(back, "j").scroll) == (browser.LIST, 0)
    assert pressed(model(), "J", "J", "K").scroll == 1
    assert pressed(text, "G").request == browser.SEEK


# -- search ------------------------------------------------------------------------------------


def test_a_search_goes_on_in_turns_not_read_yet() -> None:
    """Down to the next match, through more pages, then from the top; `N` goes up."""
    found = pressed(model(), "/", *"PROMPT 7", "enter")
    assert (found.cursor, found.typing, found.word) == (8, None, "prompt 7")
    waiting = pressed(model(more=True), "/", *"prompt 1x", "backspace", *"2", "enter")
    assert (waiting.request, waiting.goal is not None) == (browser.MORE, True)
    found = browser.loaded(waiting, [turn(10), turn(11), turn(12)], more=True)
    assert found.cursor == 13
    assert browser.stopped(waiting).request == ""
    every = pressed(model(), "/", *"prompt", "enter", "n")
    assert every.cursor == 2
    assert pressed(every, "N").cursor == 1
    assert "not above" in pressed(every, "N", "N").message
    assert pressed(every, "G", "n").message == "from the top again"
    assert pressed(model(), "/", *"id4", "enter").cursor == 5
    assert pressed(model(), "/", *"d4", "enter").cursor == 0
    assert pressed(model(), "/", "@", "@", "enter").message == "nothing matches `@@`"


def test_a_search_can_be_given_up() -> None:
    """Esc forgets what was typed, and letters that are keys elsewhere are letters."""
    typing = pressed(model(), "/", "q", "u", "y")
    assert (typing.typing, typing.request) == ("quy", "")
    assert pressed(typing, "esc").typing is None
    assert pressed(typing, "erase").typing == ""
    assert pressed(typing, "erase", "backspace").typing is None


def test_a_text_is_searched_to_its_end() -> None:
    """Also what no page has shown yet; the last match stays where it is."""
    text = Text(iter(LINES))
    text.fill(40, 10)
    assert text.is_open
    text.fill(40, 1 << 30)
    line = text.find("needle", 0, down=True)
    assert line is not None
    assert text.lines(line, 1) == ["needle"]
    assert text.find("needle", line, down=True) is None
    assert text.find("diff --git", line, down=False) == line - 1
    seeking = pressed(model()._replace(focus=browser.TEXT, word="needle"), "n")
    assert seeking.request == browser.SEEK
    assert browser.found(seeking, 30).match == 30
    assert browser.found(seeking, None).message == "`needle` is not below"


def test_endless_texts_end() -> None:
    """A limit is kept, and said."""
    text = Text((f"line {number}" for number in range(100)), most=10)
    assert text.fill(80, 1 << 30) == 11
    assert text.lines(10, 1) == ["(only the first 10 lines are shown)"]


# -- asking ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "request_"), [("u", "undo"), ("r", "redo"), ("p", "pick"), ("R", "reload")]
)
def test_keys_ask_for_something(key: str, request_: str) -> None:
    """They ask; nothing is done by the model."""
    assert pressed(model(), "j", key).request == request_


def test_only_a_yes_to_a_preview_applies() -> None:
    """And a conflict takes none."""
    asked = previewed(model())
    assert pressed(asked, "y").request == browser.APPLY
    for key in ("n", "q", "esc"):
        refused = pressed(asked, key)
        assert (refused.overlay, refused.request) == (None, "")
        assert refused.message == "nothing was changed"
    assert pressed(asked, "x").overlay is not None
    assert pressed(asked, "p").request == browser.PICK
    conflict = pressed(previewed(model(), is_open=True), "y")
    assert (conflict.request, "`p`" in conflict.message) == ("", True)


def test_a_name_is_no_turn() -> None:
    """It cannot be undone, and the keys say so."""
    named = model()._replace(rows=(Row(browser.NAME, "c", "tests green"),))
    assert "not a turn" in pressed(named, "u").message
    assert pressed(named, "r").request == browser.REDO


def test_a_report_is_in_nobodys_way() -> None:
    """The next key closes it and is obeyed, unless it only closes it."""
    report = browser.covered(model(), Overlay(browser.REPORT, "Done", ("done",)))._replace(length=1)
    assert pressed(report, "j").cursor == 1
    assert pressed(report, "j").overlay is None
    assert pressed(report, "q").request == browser.QUIT
    assert pressed(report, "esc") == report._replace(overlay=None)


def test_the_cursor_stays_on_its_turn() -> None:
    """When the list is read again, and there are new turns above it."""
    before = pressed(model(), "j", "j")
    rows = (before.rows[0], turn(99), *before.rows[1:])
    after = browser.reloaded(before, rows, more=False)
    assert after.here == before.here
    gone = browser.reloaded(before, before.rows[:1], more=False)
    assert gone.cursor == 0


# -- drawing -----------------------------------------------------------------------------------


class Coloured(Screen):
    """A screen on which everything has its colour."""

    def style(self, text: str, *names: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if any(names) else text


def answered(of: Model, rows: Sequence[Row]) -> Model:
    """What a project could answer."""
    if of.request == browser.MORE:
        return browser.loaded(of, rows, more=len(of.rows) < 40)
    if of.request in (browser.UNDO, browser.REDO):
        return previewed(of, is_open=len(of.rows) % 2 == 0)
    if of.request == browser.SEEK:
        return browser.found(of, len(of.rows) % 3 * 20 or None)
    if of.request == browser.RELOAD:
        return browser.reloaded(of, of.rows[:-1], more=of.more)
    if of.request in (browser.APPLY, browser.PICK):
        return browser.covered(of, Overlay(browser.REPORT, "Done", LINES))
    return of._replace(request="")


@settings(max_examples=examples(25))
@given(
    keys=st.lists(st.sampled_from(KEYS), max_size=30),
    sizes=st.lists(st.tuples(st.integers(20, 200), st.integers(5, 50)), min_size=1, max_size=4),
    turns=st.integers(0, 12),
    more=st.booleans(),
)
def test_no_key_breaks_it_at_any_size(
    keys: list[str], sizes: list[tuple[int, int]], turns: int, more: bool
) -> None:
    """Every screen is full, no wider than the window, with the chosen row; only `y` applies."""
    view = BrowserView(Coloured(), "shop")
    at = model(turns, more=more)
    for number, key in enumerate(["resized", *keys]):
        wide, high = sizes[number % len(sizes)]
        before = at
        at = browser.press(at, key) if key != "resized" else at
        if at.request == browser.APPLY:
            assert before.overlay is not None
            assert (key, before.overlay.kind, before.overlay.is_open) == ("y", "preview", False)
        while at.request:
            at = answered(at, [turn(len(at.rows)), turn(len(at.rows) + 1)])
        text = Text(iter(at.overlay.lines if at.overlay is not None else LINES))
        found = panes(at, wide, high)
        length = text.fill(found.text_width, at.at + 2 * max(found.text_rows, 1))
        at = browser.resized(
            at, found.list_rows or at.page, found.text_rows or at.text_page, length
        )
        drawn = view.draw(at, text, wide, high)
        assert len(drawn) == high
        assert all(columns(styled.plain(line)) <= wide for line in drawn)
        if found.list_rows and at.rows:
            chosen = [line for line in map(styled.plain, drawn[1:]) if line.startswith("> ")]
            assert len(chosen) >= 1


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (19, 4), (500, 200)])
def test_odd_windows_are_drawn(size: tuple[int, int]) -> None:
    """Nothing is wider or higher than a window, however small."""
    for at in (model(), previewed(model()), pressed(model(), "/", "x"), pressed(model(), "?")):
        text = Text(LINES)
        found = panes(at, *size)
        at = browser.resized(at, found.list_rows, found.text_rows, text.fill(found.text_width, 9))
        drawn = BrowserView(Coloured(), "shop").draw(at, text, *size)
        assert len(drawn) <= size[1]
        assert all(columns(styled.plain(line)) <= size[0] for line in drawn)


def test_the_help_fits_a_small_window() -> None:
    """No line of it is broken at forty columns."""
    assert all(len(line) <= 40 for line in HELP.splitlines())


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.booleans(), st.text("aé語 |x", max_size=12)), max_size=6), st.data())
def test_colours_do_not_count(parts: list[tuple[bool, str]], data: st.DataObject) -> None:
    """A line is cut, filled, broken and marked as if it had none."""
    screen = Coloured()
    line = "".join(screen.style(text, "bold") if bold else text for bold, text in parts)
    bare = "".join(text for _, text in parts)
    room = data.draw(st.integers(2, 30))
    assert styled.plain(line) == bare
    assert styled.plain(styled.fit(line, room)) == styled.fit(bare, room)
    assert columns(styled.fit(bare, room)) == room
    pieces = styled.wrap(line, room)
    assert "".join(map(styled.plain, pieces)) == bare
    assert all(columns(styled.plain(piece)) <= room for piece in pieces)
    assert styled.plain(styled.highlight(line, "x")) == bare
    assert styled.highlight(line, "x").count("\x1b[7m") == bare.count("x")


def test_a_file_of_one_long_line_is_broken_at_once() -> None:
    """Minified files are; the time grows with their length, not with its square."""
    began = time.process_time()
    pieces = styled.wrap(f"\x1b[32m+{'é' * 200_000}\x1b[0m", 50)
    assert time.process_time() - began < 5
    assert len(pieces) == 4001
    assert "".join(map(styled.plain, pieces)) == "+" + "é" * 200_000
