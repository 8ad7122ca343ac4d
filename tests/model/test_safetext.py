"""Untrusted names and labels are shown on one line, harmless, and told apart."""

import random
import shlex
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from takeback.model.text.safe_text import safe, shell_word

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

TRICKS = [
    "\x1b[2J\x1b[H",
    "\x1b]8;;https://example.org\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJmIH4=\x07",
    "\x1b]0;title\x07",
    "\x1bP$qm\x1b\\",
    "\x9b31mred",
    "\x9d0;title\x9c",
    "report\rdone",
    "two\nlines",
    "tab\there",
    "bell\x07",
    "back\x08space",
    "\x7f",
    "gnp.\u202eexe",
    "\u2066isolate\u2069",
    "\u200bzero\u200dwidth\ufeff",
    "soft\u00adhyphen",
    "\U000e0041\U000e0042tags",
    "line\u2028para\u2029",
    "\ue000private",
    "\U0010ffff",
    "\ud800",
    "\udcff",
    "\u0085next",
    "a\\x1b",
    "\u061c",
    "\u180e",
    "\ufff9note\ufffb",
]


def assert_harmless(shown: str) -> None:
    """Fail on anything that is not plain visible text."""
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not {unicodedata.category(char) for char in shown} & HIDDEN
    assert len(shown.splitlines()) <= 1


def unsafe(shown: str) -> str:
    """Undo the escapes, by the rules in the documentation of `safe` and nothing else."""
    text = ""
    while shown:
        head, backslash, shown = shown.partition("\\")
        text += head
        if backslash:
            width = {"x": 2, "u": 4, "U": 8}[shown[0]]
            code = int(shown[1 : 1 + width], 16)
            raw_byte = shown[0] == "x" and code >= 0x80
            text += chr(code + 0xDC00 if raw_byte else code)
            shown = shown[1 + width :]
    return text


def test_plain_text_is_left_alone() -> None:
    """Ordinary names, in any script, are shown as they are."""
    for name in (
        "src/main.py",
        "a b",
        "naïve café.txt",
        "日本語　名前.md",
        "à\u202fvoir",
        "🎉",
        "",
    ):
        assert safe(name) == name
        assert safe(name.encode()) == name


def test_escapes_are_the_documented_ones() -> None:
    """Each kind of character gets the escape that the documentation names."""
    assert safe("\x1b[0m") == "\\x1b[0m"
    assert safe("a\\b") == "a\\x5cb"
    assert safe(b"\xff\x9b") == "\\xff\\x9b"
    assert safe("\x9b") == "\\u009b"
    assert safe("\u202e") == "\\u202e"
    assert safe("\U000e0041") == "\\U000e0041"
    assert safe("\ud800") == "\\ud800"


def test_hostile_strings_become_harmless() -> None:
    """Three hundred mixtures of known tricks carry nothing that a terminal obeys."""
    choose = random.Random(7)
    mixed = ["".join(choose.choices(TRICKS, k=choose.randint(2, 4))) for _ in range(300)]
    for text in TRICKS + mixed:
        assert_harmless(safe(text))
        assert safe(text) != text
        assert unsafe(safe(text)) == text
        for limit in (1, 2, 7, 40):
            assert_harmless(safe(text, limit))


def test_every_single_character_is_harmless() -> None:
    """No character of Unicode gets through that is of a hidden category."""
    for code in range(0x110000):
        char = chr(code)
        hidden = unicodedata.category(char) in HIDDEN or char == "\\"
        assert (safe(char) != char) == hidden, hex(code)


@given(st.binary(max_size=40))
def test_names_are_told_apart(name: bytes) -> None:
    """The bytes of a name can be read back from its text, so no two names look the same."""
    shown = safe(name)
    assert_harmless(shown)
    assert unsafe(shown).encode("utf-8", "surrogateescape") == name


@given(st.text(alphabet=st.characters(), max_size=40))
def test_texts_are_told_apart(text: str) -> None:
    """The same holds for any text, also one with lone surrogates."""
    assert_harmless(safe(text))
    assert unsafe(safe(text)) == text


@given(st.text(alphabet=st.characters(), max_size=30), st.integers(1, 40))
def test_a_cap_holds_and_cuts_no_escape(text: str, limit: int) -> None:
    """A capped text fits, is the start of the whole one, and never ends in half an escape."""
    whole = safe(text)
    capped = safe(text, limit)
    assert len(capped) <= limit
    if len(whole) <= limit:
        assert capped == whole
    else:
        assert capped.endswith("…")
        assert text.startswith(unsafe(capped[:-1]))


@given(st.text())
def test_a_shell_reads_a_word_as_it_was(text: str) -> None:
    """What is printed for copying is one word to a shell, and that word."""
    assert shlex.split(shell_word(text)) == [text]


@given(st.text(alphabet="abc_@%+=:,./-'\" $\\\n~*ü"))
def test_a_plain_word_is_not_quoted(text: str) -> None:
    """Quotes stand only where `shlex.quote` puts them, too."""
    plain = text.replace("@~", "@", 1)
    assert (shell_word(text) == text) == (shlex.quote(plain) == plain)
