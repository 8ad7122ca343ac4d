"""Every command on real terminals of three sizes, with colours: nothing cut, nothing too wide."""

import os
import re
from pathlib import Path

import pytest

import program
from history import noon
from shop import Shop
from takeback.cli import app
from takeback.cli.screen import columns

SIZES = {"usual": (80, 24), "tiny": (40, 8), "huge": (200, 50)}
TYPED = "q"
"""The answer to each question. The terminal shows it before or after the question."""
ASKED = "[y/N] "
"""Where a question ends. An answer that was typed ahead leaves what follows on the same line."""
WIDEST = (900, 50)
"""So wide that nothing has to be shortened; what is said there are all words there are."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
FULL_SCREEN = re.compile(r"\x1b\[\?1049h.*?\x1b\[\?1049l", re.DOTALL)
"""What the picker draws; it has tests of its own."""
PROMPT = "Rewrite the payment validation so that every currency is checked before anything is sent"
CONTENT = "a line of a file that is longer than most terminals are wide, which nobody may wrap " * 2
AGENT = "claude-code"
"""A name, which may be shortened."""
LONG = 16
"""Letters of what may be shortened within: a path, an id, a command. No word of prose is longer."""

PLAIN: dict[str, list[list[str]]] = {
    "": [[], ["--version"], ["--help"], ["help"], ["nosuch"], ["--nosuch"], ["--color", "blue"]],
    "checkpoint": [["checkpoint", "-m", "before lunch"], ["checkpoint"]],
    "run": [["run", "--", "true"], ["run", "--", "sh", "-c", "exit 3"], ["run", "true", "x"]],
    "log": [["log"], ["log", "--all"], ["log", "--checkpoints"], ["log", "--since", "nonsense"]],
    "show": [["show", "@~1"], ["show", "@"], ["show", "start"], ["show", "start", "notes.md"]],
    "diff": [["diff"], ["diff", "start", "@", "--stat"], ["diff", "@~99"], ["diff", "notes.md"]],
    "sessions": [["sessions"]],
    "undo": [
        ["undo", "--dry-run"],
        ["undo", "{first}", "--dry-run"],
        ["undo", "{first}"],
        ["undo", "zzzz"],
        ["undo"],
    ],
    "redo": [["redo", "--dry-run"], ["redo"], ["redo"]],
    "rollback": [["rollback", "start", "--dry-run"], ["rollback", "start"], ["rollback"]],
    "apply": [["apply", "zzzz"]],
    "extract": [["extract", "start", "../copy"], ["extract", "start", "../copy"]],
    "verify": [["verify"]],
    "keep": [["keep", "start", "-m", "the good one"], ["keep"], ["keep", "--release", "start"]],
    "gc": [["gc", "--dry-run"], ["gc"]],
    "usage": [["usage"], ["usage", "--by", "agent"], ["usage", "--by", "moon"]],
    "forget": [["forget", "--dry-run", "--", "notes.md"], ["forget"]],
    "relocate": [["relocate"]],
    "projects": [["projects"]],
    "config": [["config"], ["config", "retention.days", "-3"]],
    "doctor": [["doctor"]],
    "install": [["install", "--dry-run", "claude-code"], ["install", "emacs"]],
    "uninstall": [["uninstall", "claude-code"]],
    "off": [["off"], []],
    "on": [["on"]],
}
"""What each command is called with, in this order; of a command that is not here only the help."""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every word that a command says where nothing has to be shortened."""
    said = shown(tmp_path_factory.mktemp("widest"), WIDEST)
    return {
        word for _, _, lines in said for line in lines for word in ESCAPES.sub("", line).split()
    }


def calls(shop: Shop, *, has_help: bool) -> list[list[str]]:
    """All command lines, with the ids of a project."""
    listed = [call for name in ("", *app.COMMANDS) for call in PLAIN.get(name, [])]
    if has_help:
        listed += [[name, "--help"] for name in app.COMMANDS]
    first = shop.ids[PROMPT][:6]
    return [[word.format(first=first) for word in call] for call in listed]


def shown(folder: Path, size: tuple[int, int]) -> "list[tuple[str, int, list[str]]]":
    """Run everything in a project of its own; each command line, its exit code and its lines."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAKEBACK_HOME", str(folder / "home"))
        patch.setenv("HOME", str(folder))
        shop = Shop(tree)
        shop.turn(PROMPT, {"src/pay.py": CONTENT + "\n", "src/a/very/deep/folder/of/it.py": "1\n"})
        shop.turn("Tidy up", {"src/pay.py": CONTENT + "and more\n", ".env": "KEY=1\n"})
        shop.session.end()
        shop.project.close()
        env = {**os.environ, "TERM": "xterm-256color", "TAKEBACK_PAGER": "cat", "TZ": noon()}
        for name in ("COLUMNS", "NO_COLOR", "LC_ALL", "CI"):
            env.pop(name, None)
        found = []
        # What does not break at 40 columns does not at 80 either; that saves time.
        for call in calls(shop, has_help=size in (WIDEST, SIZES["tiny"])):
            code, text = program.on_terminal(call, tree, env, size, TYPED.encode() + b"\n")
            text = FULL_SCREEN.sub("", text).replace(ASKED, ASKED + "\n")
            found.append((" ".join(call), code, text.split("\n")))
    return found


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_every_command_fits_every_terminal(
    tmp_path: Path, words: set[str], size: tuple[int, int]
) -> None:
    """No traceback, colours, no line too wide because of prose, and no word is cut."""
    said = shown(tmp_path, size)
    for call, code, lines in said:
        assert code in (0, 1, 2, 3), (call, code, lines)
        assert "Traceback" not in "\n".join(lines), (call, lines)
    assert sum("\x1b[" in "\n".join(lines) for _, _, lines in said) > len(said) // 2
    bare = [(call, ESCAPES.sub("", line)) for call, _, lines in said for line in lines]
    problems = [each for each in bare if not fits(each[1], size[0])]
    problems += [
        (call, f"{word}: {line}")
        for call, line in bare
        for word in line.split()
        if not is_whole(word, words | {TYPED})
    ]
    assert not problems, "\n".join(map(str, problems))


def fits(line: str, room: int) -> bool:
    """Whether a line is no wider than the terminal, or could not be; lines of files may be."""
    return columns(line) <= room or CONTENT[:20] in line or is_one_word(line)


def is_one_word(line: str) -> bool:
    """Whether nothing in a line could be broken: a path, or a command line in backticks."""
    return " " not in re.sub(r"`[^`]*`", "``", line.strip())


def is_whole(word: str, words: set[str]) -> bool:
    """Whether a word is all there. Ids and numbers differ from project to project."""
    start = word.removesuffix("…")
    if not re.fullmatch(r"[A-Za-z]+[.,:;]?", start) or re.fullmatch(r"[k-z]{4,12}[.,:;]?", start):
        return True
    known = {each.strip("“”\"'().,:;…`") for each in words}
    bare = start.strip(".,:;")
    return (
        bare in known
        or AGENT.startswith(bare)
        or any(len(each) >= LONG and each.startswith(bare) for each in known)
    )
