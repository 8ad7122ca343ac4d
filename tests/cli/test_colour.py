"""Colours: who gets them, what they mark, and that nothing depends on them."""

import os
from pathlib import Path

import pytest

import program
from history import command
from shop import Shop
from takeback.cli.screen import bare, cut, wrap


@pytest.fixture
def shop(tree: Path, home: Path) -> Shop:
    """A project with one turn."""
    assert home.is_dir()
    shop = Shop(tree)
    shop.validation()
    shop.project.close()
    return shop


def on_terminal(shop: Shop, *words: str, **more: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    env |= {"TERM": "xterm", "TAKEBACK_PAGER": "", **more}
    return program.on_terminal(words, shop.tree, env, (100, 40))[1]


def test_who_gets_colours(shop: Shop) -> None:
    """A terminal does and a pipe does not; variables change that, and `--color` beats them."""
    assert "\x1b[" in on_terminal(shop, "log")
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        assert "\x1b[" not in on_terminal(shop, "log", **more)
    assert "\x1b[" not in on_terminal(shop, "log", "--color", "never", FORCE_COLOR="1")
    assert "\x1b[" not in on_terminal(shop, "--color=never", "log")
    assert "\x1b[" not in command(shop.tree, "log", FORCE_COLOR="0").out
    for more in ({"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1"}):
        assert "\x1b[" in command(shop.tree, "log", **more).out
    assert "\x1b[" in command(shop.tree, "--color", "always", "log", NO_COLOR="1").out
    assert "\x1b[" in command(shop.tree, "diff", "start", "@", "--color=always").out
    assert "\x1b[" not in command(shop.tree, "log", "--json", "--color", "always").out


def test_a_wrong_choice_of_colour_is_a_usage_error(shop: Shop) -> None:
    """It names what there is to choose, and what to type."""
    said = command(shop.tree, "log", "--color", "blue")
    assert said.code == 2
    assert "`--color` takes `auto`, `always` or `never`, not `blue`" in said.err
    assert "hint: takeback log --color never" in said.err
    assert "\x1b[31;1m" in command(shop.tree, "nosuch", "--color", "always").err


def test_what_colours_mark(shop: Shop) -> None:
    """The letters of an id that are enough, lines added and removed, hints, errors, warnings."""
    log = on_terminal(shop, "log")
    turn = shop.ids["Add payment validation"]
    enough = next(n for n in range(1, 13) if f"\x1b[1;35m{turn[:n]}\x1b[0m" in log)
    assert f"\x1b[1;35m{turn[:enough]}\x1b[0m\x1b[2m{turn[enough:4]}\x1b[0m" in log
    assert command(shop.tree, "show", turn[:enough]).code == 0
    if enough > 1:
        assert command(shop.tree, "show", turn[: enough - 1]).code != 0
    assert "\x1b[32m+" in log
    assert "\x1b[31m\N{MINUS SIGN}" in log
    assert "`takeback undo`\x1b[2m takes back" in log
    assert "\x1b[31;1merror:\x1b[0m" in on_terminal(shop, "undo", "zzzz")


def test_nothing_depends_on_colours(shop: Shop) -> None:
    """Without them the same is said."""
    for words in (["log"], ["show", "@~0"], ["diff", "start", "@", "--stat"], ["undo", "-n"]):
        both = (on_terminal(shop, *words, "--color", choice) for choice in ("never", "always"))
        # An id of a plan, and seconds, differ from call to call.
        said = [[line[:12] for line in bare(text).splitlines()] for text in both]
        assert said[0] == said[1]


def test_text_wraps_between_words() -> None:
    """Commands stay whole, later lines hang, colours end with the line, long paths stick out."""
    text = "hint: \x1b[2mrun `takeback log --all` to see all of them at once\x1b[0m"
    lines = wrap(text, 24, 6).split("\n")
    assert [bare(line) for line in lines] == [
        "hint: run `takeback log",
        "      --all` to see all",
        "      of them at once",
    ]
    assert all(line.count("\x1b[2m") == line.count("\x1b[0m") == 1 for line in lines)
    assert bare(wrap(text, 28, 6)).split("\n")[1].startswith("      `takeback log --all`")
    assert wrap("see /a/very/long/path/that/does/not/fit here", 20).split("\n") == [
        "see",
        "/a/very/long/path/that/does/not/fit",
        "here",
    ]
    assert wrap("short", 40) == "short"


def test_shortened_text_ends_with_a_whole_word() -> None:
    """Unless the word is so long that hardly anything would be left."""
    assert cut("Rewrite the payment validation", 20) == "Rewrite the payment…"
    assert cut("Rewrite the payment validation", 19) == "Rewrite the…"
    assert cut("src/a/very/long/path.py", 12) == "src/a/very/…"
    assert cut("x src/a/very/long/path.py", 12) == "x src/a/ver…"
