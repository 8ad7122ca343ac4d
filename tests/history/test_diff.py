"""`takeback diff` as a person, a program and `git apply` meet it."""

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from chance import examples
from takeback import Project
from takeback.cli import app, diff_view
from takeback.cli.commands import diff
from takeback.cli.screen import Screen, safe_content
from takeback.history import unified
from takeback.model.text import secrets
from takeback.model.tree import NO_OBJECT, REGULAR, Difference, Entry

MAIN = Path(app.__file__).parent.parent / "__main__.py"
TOKENS = {
    "AWS": b"AKIA" + b"ABCDEFGHIJKLMNOP",
    "GitHub": b"ghp_" + b"a1" * 18,
    "fine-grained": b"github_pat_" + b"Ab1_" * 8,
    "OpenAI": b"sk-" + b"proj-abcdEFGH1234567890",
    "Slack": b"xoxb-" + b"1234567890-abcdef",
    "JWT": b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
}


class Said:
    """What a command printed, as bytes, and how it ended."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err.decode()


@pytest.fixture(autouse=True)
def _in_the_tree(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in the project, with a store of their own."""
    assert home.is_dir()
    monkeypatch.chdir(tree)


def run(capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> Said:
    """Run a command in this process."""
    code = app.main(list(words))
    captured = capfdbinary.readouterr()
    return Said(code, captured.out, captured.err)


def differ(capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> str:
    """The output of a `takeback diff` that must succeed."""
    said = run(capfdbinary, "diff", *words)
    assert said.code == 0, said.err
    return said.out.decode("utf-8", "surrogateescape")


def checkpoint(tree: Path, home: Path) -> None:
    """Make a checkpoint."""
    with Project.open(os.fsencode(tree), home=os.fsencode(home)) as project:
        project.checkpoint()


def test_a_diff_looks_like_one_of_git(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """Headers, hunks, new and deleted files, modes, links, renames and ends are said."""
    (tree / "a.txt").write_text("".join(f"{number}\n" for number in range(20)))
    (tree / "gone").write_text("x")
    (tree / "moved").write_text("the same\n")
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o644)
    (tree / "secret").write_text("x\n")
    (tree / "secret").chmod(0o600)
    (tree / "link").symlink_to("a.txt")
    (tree / "binary").write_bytes(b"\0one")
    checkpoint(tree, home)
    (tree / "a.txt").write_text("".join(f"{number}\n" for number in range(20) if number != 10))
    (tree / "gone").unlink()
    (tree / "moved").rename(tree / "to here")
    (tree / "run").chmod(0o755)
    (tree / "secret").chmod(0o640)
    (tree / "link").unlink()
    (tree / "link").symlink_to("elsewhere")
    (tree / "binary").write_bytes(b"\0two")
    (tree / "new").write_bytes(b"line\r\n")
    (tree / "folder").mkdir(mode=0o700)
    os.mkfifo(tree / "pipe")
    assert differ(capfdbinary) == (
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n"
        "@@ -8,7 +8,6 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n"
        "diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n"
        "New folder folder mode 0700\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        "diff --git a/link b/link\n--- a/link\n+++ b/link\n"
        "@@ -1 +1 @@\n-a.txt\n\\ No newline at end of file\n"
        "+elsewhere\n\\ No newline at end of file\n"
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n"
        "@@ -0,0 +1 @@\n+line\r\n"
        "Not covered: pipe (absent before, left out as special after)\n"
        "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
        "Mode of secret changed from 0600 to 0640\n"
        "diff --git a/moved b/to here\nsimilarity index 100%\n"
        "rename from moved\nrename to to here\n"
    )


CONTENT = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n", b"\xff\n"]), max_size=8)
FILE = st.tuples(
    st.builds(lambda body, end: b"".join(body) + end, CONTENT, st.sampled_from([b"", b"x"])),
    st.sampled_from([0o644, 0o755]),
)
LINK = st.tuples(st.sampled_from([b"target", b"other/target"]), st.just(0))
NAME = st.sampled_from(
    [b"plain", b"with blank", b"d/plain", b"d/e/deep", b'qu"ote', b"tab\there", b"n\xff",
     b"\xc3\xa9", b"new\nline", b"plain/below", b"-dash", b"back\\slash"]
)  # fmt: skip
TREE = st.dictionaries(NAME, st.one_of(FILE, FILE, LINK), max_size=6)


def build(root: bytes, things: dict[bytes, tuple[bytes, int]]) -> None:
    """Make a tree; what is in the way of something stays."""
    os.mkdir(root)
    for path, (content, mode) in sorted(things.items()):
        target = root + b"/" + path
        parent = os.path.dirname(target)
        if os.path.lexists(parent) and (os.path.islink(parent) or not os.path.isdir(parent)):
            continue
        os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target):
            continue
        if mode:
            with open(target, "wb") as file:
                file.write(content)
            os.chmod(target, mode)
        else:
            os.symlink(content, target)


def files(root: bytes) -> dict[bytes, oracle.Entry]:
    """What git can tell of a tree: files and links."""
    return {path: thing for path, thing in oracle.picture(root).items() if thing[0] != "folder"}


@given(TREE, TREE)
@settings(max_examples=examples(20))
def test_git_applies_what_we_say(
    tmp_path_factory: pytest.TempPathFactory,
    first: dict[bytes, tuple[bytes, int]],
    second: dict[bytes, tuple[bytes, int]],
) -> None:
    """The diff of two trees, applied by git to the first one, makes the second one."""
    base = os.fsencode(tmp_path_factory.mktemp("apply"))
    tree = base + b"/tree"
    build(tree, first)
    os.mkdir(base + b"/home", 0o700)
    with Project.open(tree, home=base + b"/home") as project:
        project.checkpoint()
        shutil.copytree(os.fsdecode(tree), os.fsdecode(base + b"/applied"), symlinks=True)
        for name in os.listdir(tree):
            path = tree + b"/" + name
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            shutil.rmtree(path) if is_folder else os.unlink(path)
        build(base + b"/second", second)
        for name in os.listdir(base + b"/second"):
            os.rename(base + b"/second/" + name, tree + b"/" + name)
        with project.compare(next(project.checkpoints()).id) as comparison:
            patch = b"".join(
                piece
                for found in comparison.differences
                for piece in diff_view._for_programs(
                    unified.Shown(found, comparison.contents(found)).diff()
                )
            )
    if b"diff --git" in patch:
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            input=patch, cwd=base + b"/applied", capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b""), patch
    assert files(base + b"/applied") == files(tree)
    shutil.rmtree(base)


def test_kind_changes_are_a_deletion_and_a_creation(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """A file that became a link or a folder, and back, is told as both parts."""
    (tree / "a").write_text("text\n")
    (tree / "b").mkdir()
    (tree / "b" / "inner").write_text("inner\n")
    checkpoint(tree, home)
    (tree / "a").unlink()
    (tree / "a").symlink_to("b")
    shutil.rmtree(tree / "b")
    (tree / "b").write_text("")
    said = differ(capfdbinary)
    assert "deleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n" in said
    assert "new file mode 120000\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+b\n" in said
    assert "Deleted folder b mode 0755\ndiff --git a/b b/b\nnew file mode 100644\n" in said
    assert "diff --git a/b/inner b/b/inner\ndeleted file mode 100644\n" in said


def test_references_and_paths(
    capfdbinary: pytest.CaptureFixture[bytes],
    tree: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any two states in any order; paths from the current folder or from the root."""
    (tree / "src").mkdir()
    for text in ("one\n", "two\n", "three\n"):
        (tree / "src" / "a").write_text(text)
        (tree / "b").write_text(text)
        checkpoint(tree, home)
    (tree / "b").write_text("now\n")
    assert "-two\n+three\n" in differ(capfdbinary, "@~1", "@~0")
    assert "-three\n+one\n" in differ(capfdbinary, "@~0", "@~2")
    assert "-now\n+one\n" in differ(capfdbinary, "@", "@~2", "--", "b")
    assert differ(capfdbinary, "@", "@") == ""
    assert differ(capfdbinary, "@~1", "--name-only", "--", "src") == "src/a\n"
    monkeypatch.chdir(tree / "src")
    assert differ(capfdbinary, "@~1", "--name-only", "--", "a") == "src/a\n"
    assert differ(capfdbinary, "@~1", "--name-only", "--", "../b", "a") == "b\nsrc/a\n"
    assert differ(capfdbinary, "@~1", "--name-only", "--", "src/a") == "src/a\n"
    assert differ(capfdbinary, "--name-only") == "b\n"
    for words, message in (
        (["nope"], "no turn, checkpoint or prompt matches `nope`"),
        (["@~1", "--", "nowhere"], "`nowhere` is in none of these states"),
        (["@~1", "--", "../../x"], "outside the project"),
        (["x", "y", "z"], "does not take `z`"),
        (["@~1", "a"], "for a path: `takeback diff @~1 -- a`"),
    ):
        said = run(capfdbinary, "diff", *words)
        assert (said.code, said.out) == (2, b"")
        assert message in said.err
        assert "hint:" in said.err


@pytest.mark.parametrize("words", [[], ["--json"]], ids=" ".join)
def test_damage_is_told_and_nothing_wrong_is_shown(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path, words: list[str]
) -> None:
    """When the store is damaged, the exit code is 4 and JSON is still one object."""
    (tree / "a").write_bytes(b"".join(b"line %d\n" % number for number in range(200)))
    checkpoint(tree, home)
    (tree / "a").write_text("now\n")
    (pack,) = home.glob("projects/*/git/objects/pack/*.pack")
    data = bytearray(pack.read_bytes())
    data[60] ^= 0xFF  # inside the content of the file
    pack.write_bytes(data)
    said = run(capfdbinary, "diff", *words)
    assert said.code == 4
    if words:
        assert json.loads(said.out)["error"] == "DamagedStoreError"
    else:
        assert said.out == b""
        assert "error:" in said.err


def test_nothing_differs(capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path) -> None:
    """No difference is no output, and no error."""
    (tree / "a").write_text("a\n")
    checkpoint(tree, home)
    said = run(capfdbinary, "diff")
    assert (said.code, said.out, said.err) == (0, b"", "No differences.\n")


def test_stat_fits_its_width(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """The table has a row per path with its lines and bars, and the sum."""
    (tree / "a").write_text("a\n" * 500)
    (tree / ("long" * 40)).write_text("x\n")
    (tree / "bin").write_bytes(b"\0")
    checkpoint(tree, home)
    (tree / "a").write_text("a\n" * 100 + "b\n" * 900)
    (tree / ("long" * 40)).write_text("y\n")
    (tree / "bin").write_bytes(b"\0\0")
    (tree / "empty").write_text("")
    (tree / "folder").mkdir()
    rows = differ(capfdbinary, "--stat").splitlines()
    assert max(map(len, rows)) <= 80
    assert rows[0].startswith(" a ")
    assert rows[0].split("|")[1].split()[0] == "1300"
    assert rows[0].count("+") > rows[0].count("-") > 0
    assert rows[1].split("|")[1].strip() == "binary"
    assert rows[2].split("|")[1].strip() == "empty"
    assert rows[3].split("|")[1].strip() == "mkdir"
    assert rows[4].split("|")[1].split() == ["2", "+-"]
    assert rows[4].startswith(" …")
    assert rows[5] == " 5 paths changed, 901 lines added, 401 removed"


def test_json_says_it_all(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """One object with exact names, counts, entries and hunks."""
    (tree / "a").write_text("one\ntwo\n")
    checkpoint(tree, home)
    (tree / "a").write_text("one\nzwei")
    odd = os.fsencode(tree) + b"/odd\xff"
    Path(os.fsdecode(odd)).write_bytes(b"\xff\n")
    os.mkfifo(tree / "pipe")
    found = json.loads(differ(capfdbinary, "--json"))
    assert list(found) == ["before", "after", "changes", "files", "added", "removed", "masked"]
    with Project.open(os.fsencode(tree), home=os.fsencode(home)) as project:
        newest = next(project.checkpoints()).id
    assert (found["before"], found["after"], found["files"]) == (newest, "@", 3)
    first, second, third = found["changes"]
    assert first == {
        "path": "a",
        "verb": "write",
        "origin": None,
        "added": 1,
        "removed": 1,
        "before": {"kind": "file", "mode": "0644", "size": 8, "left_out": None},
        "after": {"kind": "file", "mode": "0644", "size": 8, "left_out": None},
        "not_shown": None,
        "hunks": [
            {
                "head": "@@ -1,2 +1,2 @@",
                "lines": [" one", "-two", "+zwei", "\\ No newline at end of file"],
            }
        ],
    }
    assert second["path_b64"] == "b2Rk/w=="
    assert second["hunks"][0]["lines"] == ["+\N{REPLACEMENT CHARACTER}"]
    assert (third["verb"], third["after"]["left_out"]) == ("omit", "special")
    assert json.loads(differ(capfdbinary, "--json", "--stat"))["changes"][0]["hunks"] == []
    assert json.loads(differ(capfdbinary, "@", "@", "--json"))["changes"] == []


def test_files_of_very_many_lines_are_only_said_to_differ(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """A million lines are not taken apart, however short they are."""
    (tree / "lines").write_bytes(b"\n" * 600_000)
    checkpoint(tree, home)
    (tree / "lines").write_bytes(b"a\n" * 600_000)
    assert "Large files a/lines and b/lines differ\n" in differ(capfdbinary)


def test_long_json_is_printed_in_pieces(
    capfdbinary: pytest.CaptureFixture[bytes],
    tree: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it is interrupted, it is the same object."""
    checkpoint(tree, home)
    for number in range(10):
        (tree / f"{number}").write_text(f"{number}\n")
    whole = differ(capfdbinary, "--json")
    monkeypatch.setattr(diff, "_HELD_UP_TO", 100)
    assert differ(capfdbinary, "--json") == whole
    assert json.loads(whole)["files"] == 10


def test_large_files_are_only_said_to_differ(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """A file above 10 MiB is named, and its content is not printed."""
    (tree / "large").write_bytes(b"x\n" * (6 << 20))
    checkpoint(tree, home)
    with (tree / "large").open("ab") as file:
        file.write(b"more\n")
    said = differ(capfdbinary)
    assert said == "diff --git a/large b/large\nLarge files a/large and b/large differ\n"
    (change,) = json.loads(differ(capfdbinary, "--json"))["changes"]
    assert (change["not_shown"], change["added"], change["hunks"]) == ("large", None, [])


# -- on a terminal -----------------------------------------------------------------------------


def on_terminal(tree: Path, *words: str, **environment: str) -> str:
    """What the program prints when a person looks at it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-I", str(MAIN), *words],
        cwd=tree, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(pieces).decode().replace("\r\n", "\n")


def test_on_a_terminal_changed_words_stand_out(tree: Path, home: Path) -> None:
    """There are colours, and the word that changed is marked; without colour all is readable."""
    (tree / "a").write_text("limit = first(10, name)\n")
    checkpoint(tree, home)
    (tree / "a").write_text("limit = first(25, name)\n")
    coloured = on_terminal(tree, "diff")
    red, green, marked, end = "\x1b[31m", "\x1b[32m", ";7m", "\x1b[0m"
    before, after = f"limit = first({end}", f", name){end}\n"
    assert f"{red}-{before}{red[:-1]}{marked}10{end}{red}{after}" in coloured
    assert f"{green}+{before}{green[:-1]}{marked}25{end}{green}{after}" in coloured
    plain = on_terminal(tree, "diff", NO_COLOR="1")
    assert "\x1b" not in plain
    assert plain.endswith("@@ -1 +1 @@\n-limit = first(10, name)\n+limit = first(25, name)\n")


def test_nothing_in_a_file_acts_on_a_terminal(tree: Path, home: Path) -> None:
    """Escape sequences in names and contents are shown, not obeyed; backslashes and tabs stay."""
    checkpoint(tree, home)
    (tree / "evil\x1b[2J\n").write_text("a\x1b]0;owned\x07\n\t\\d+\n\N{RIGHT-TO-LEFT OVERRIDE}x\n")
    said = on_terminal(tree, "diff", NO_COLOR="1")
    assert not {"\x1b", "\x07", "\N{RIGHT-TO-LEFT OVERRIDE}"} & set(said)
    assert r"+a\x1b]0;owned\x07" in said
    assert "+\t\\d+\n" in said.expandtabs(0) + said
    assert safe_content(b"a\\b\tc\x1b\xff") == "a\\b\tc\\x1b\\xff"
    for words in (["diff", "--stat"], ["diff", "--name-only"]):
        assert "\x1b" not in on_terminal(tree, *words, NO_COLOR="1")


def test_a_closed_pipe_is_no_error(tree: Path, home: Path) -> None:
    """`takeback diff | head` ends quietly."""
    checkpoint(tree, home)
    (tree / "a").write_text("line\n" * 200_000)
    done = subprocess.run(
        f"'{sys.executable}' -I '{MAIN}' diff | head -1",
        shell=True, cwd=tree, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"diff --git a/a b/a\n", b"")


# -- secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "how"),
    [
        (b".env", secrets.VALUES), (b"app/.env.local", secrets.VALUES),
        (b".env.example", secrets.PLAIN), (b".env.sample", secrets.PLAIN),
        (b".env.template", secrets.PLAIN), (b"server.pem", secrets.WHOLE),
        (b"a/tls.KEY", secrets.WHOLE), (b".ssh/id_rsa", secrets.WHOLE),
        (b"id_ed25519", secrets.WHOLE), (b"id_rsa.pub", secrets.PLAIN),
        (b".npmrc", secrets.VALUES), (b".netrc", secrets.VALUES), (b".pypirc", secrets.VALUES),
        (b".aws/credentials", secrets.VALUES), (b".kube/config", secrets.VALUES),
        (b"config", secrets.PLAIN), (b"kubeconfig", secrets.VALUES),
        (b"store.jks", secrets.WHOLE), (b"cert.p12", secrets.WHOLE), (b"cert.pfx", secrets.WHOLE),
        (b"src/environment.py", secrets.PLAIN), (b"keys.py", secrets.PLAIN),
        (b"prod.tfvars", secrets.VALUES), (b"id_generator.py", secrets.PLAIN),
    ],
)  # fmt: skip
def test_which_files_are_secret(path: bytes, how: str) -> None:
    """Files that are known to hold secrets are known by their names; samples hold none."""
    assert secrets.how_secret(path) == how


@pytest.mark.parametrize(
    ("path", "line", "shown"),
    [
        (b".env", b"KEY=hunter2\n", b"KEY=%s\n"),
        (b".env", b"export KEY = 'hunter2'\r\n", b"export KEY = %s\r\n"),
        (b".env", b"#KEY=hunter2\n", b"#KEY=%s\n"),
        (b".env", b"# a remark\n", b"# a remark\n"),
        (b".env", b"KEY=\n", b"KEY=\n"),
        (b".env", b"\n", b"\n"),
        (b".env", b"hunter2\n", b"%s\n"),
        (b".env", b"aHVudGVyMg==\n", b"%s\n"),
        (b".env", b"KEY=hunter2", b"KEY=%s"),
        (b".npmrc", b"//registry.example.org/:_authToken=hunter2\n",
         b"//registry.example.org/:_authToken=%s\n"),
        (b".netrc", b"machine example.org login ada password hunter2\n", b"%s\n"),
        (b".git-credentials", b"https://ada:hunter2@example.org\n", b"%s\n"),
        (b".pgpass", b"localhost:5432:shop:ada:hunter2\n", b"%s\n"),
        (b".aws/credentials", b"[default]\n", b"[default]\n"),
        (b".aws/credentials", b"aws_secret = hunter2\n", b"aws_secret = %s\n"),
        (b".kube/config", b"    token: hunter2\n", b"    token: %s\n"),
        (b".kube/config", b"- name: hunter2\n", b"- name: %s\n"),
        (b"credentials.json", b'  "private_key": "hunter2",\n', b'  "private_key": %s\n'),
        (b"credentials.json", b'{"a":"hunter2"}\n', b"%s\n"),
        (b"credentials.json", b"{\n", b"{\n"),
        (b"code.py", b"password = hunter2\n", b"password = hunter2\n"),
    ],
)  # fmt: skip
def test_values_are_masked(path: bytes, line: bytes, shown: bytes) -> None:
    """The name of a setting is shown, its value is not; in other files nothing is hidden."""
    mask = secrets.Mask(path, [line])
    assert mask.line(0) == shown.replace(b"%s", secrets.MASK)
    assert mask.count == shown.count(b"%s")


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_tokens_are_masked_in_any_file(token: bytes) -> None:
    """The shapes of well-known tokens are hidden wherever they stand, but for their beginning."""
    line = b"a = '" + token + b"', b = " + token + b"\n"
    mask = secrets.Mask(b"code.py", [line])
    shown = mask.line(0)
    assert (token in shown, token[8:] in shown, mask.count) == (False, False, 2)
    assert shown.startswith(b"a = '" + token[:3])


def test_ordinary_words_are_not_masked() -> None:
    """What only looks a little like a token is shown."""
    ordinary = (
        b"task-sk-very-long-name-of-a-class\n",
        b"risk-management-of-the-year-2024\n",
        b"AKIA is a prefix of sixteen more\n",
        b"eyJ.a.b and the rest of a line\n",
    )
    for line in ordinary:
        assert secrets.Mask(b"a.css", [line]).line(0) == line


@pytest.mark.parametrize(
    "piece", [b"eyJ-", b"sk-", b"eyJa.", b"ghp_", b" ", b"//:_", b"#-", b"AIza_"]
)
def test_no_text_takes_long_to_mask(piece: bytes) -> None:
    """Ten times as long a line of anything takes about ten times as long, not a hundred times."""
    times = []
    for length in (20_000, 200_000):
        line = piece * (length // len(piece)) + b"\n"
        taken = []
        for _ in range(3):
            start = time.process_time()
            for path in (b".env", b"code.js"):
                secrets.Mask(path, [line]).line(0)
            taken.append(time.process_time() - start)
        times.append(min(taken))
    assert times[1] < 40 * times[0] + 0.05


def test_a_very_long_token_is_one_token() -> None:
    """A token longer than any run that is searched is hidden, and other text is not cut."""
    long = b"eyJ" + b"a" * 2000 + b".bbbbbbbb.cccccccc"
    assert secrets.Mask(b"a", [b"t = " + long]).line(0) == b"t = eyJ" + secrets.MASK
    other = b"b" * 2000
    assert secrets.Mask(b"a", [other + b".eyJ"]).line(0) == other + b".eyJ"


def test_private_keys_are_masked_even_from_the_middle() -> None:
    """Lines inside a private key are hidden, also when a hunk shows only some of them."""
    text = [b"-----BEGIN RSA PRIVATE KEY-----\n", *[b"MIIEabc\n"] * 9]
    text += [b"-----END RSA PRIVATE KEY-----\n", b"after\n"]
    mask = secrets.Mask(b"notes.md", text)
    assert mask.line(5) == secrets.MASK + b"\n"
    assert (mask.line(0), mask.line(11)) == (text[0], b"after\n")
    one = b'{"k": "-----BEGIN PRIVATE KEY-----\\nabc\\n-----END PRIVATE KEY-----"}\n'
    assert b"abc" not in secrets.Mask(b"x.json", [one]).line(0)


@pytest.mark.parametrize("words", [[], ["--json"], ["--stat"]], ids=" ".join)
def test_secrets_never_reach_the_output(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path, words: list[str]
) -> None:
    """Values, keys and tokens are masked on both sides and in the context, in text and JSON."""
    for text in ("hunter2", "correct-horse"):
        (tree / ".env").write_text(f"OTHER=hunter2\nKEY={text}\n")
        (tree / "id_rsa").write_text(f"{text}\n")
        (tree / "code.py").write_bytes(b"x = 1\nt = '" + TOKENS["GitHub"] + text.encode() + b"'\n")
        checkpoint(tree, home)
    said = run(capfdbinary, "diff", "@~1", "@~0", *words)
    everything = said.out + said.err.encode()
    for secret in (b"hunter2", b"correct-horse", TOKENS["GitHub"]):
        assert secret not in everything
    if not words:
        assert "+KEY=••••\n".encode() in said.out
        assert b"# Secret files a/id_rsa and b/id_rsa differ (+1 -1 lines)\n" in said.out
        assert said.err == (
            "6 secrets masked in 3 files, which `git apply` and `patch` will not apply;"
            " `--show-secrets` shows them\n"
        )
    elif words == ["--json"]:
        assert json.loads(said.out)["masked"] == 6
    open_said = run(capfdbinary, "diff", "@~1", "@~0", "--show-secrets", *words)
    assert (b"correct-horse" in open_said.out) == (words != ["--stat"])
    assert open_said.err == ""


def _secret_trees() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Two states: secrets that change, come, go, and stand beside lines that are shown."""
    token = TOKENS["GitHub"]
    before = {
        ".env": b"KEY=correct-horse\n",
        ".env.gone": b"KEY=battery-staple\n",
        "code.py": b"a\nb\nc\nt = '%s'\nd\ne\nf\n" % token,
        "gone.pem": b"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n",
        "plain": b"one\n",
    }
    after = {
        ".env": b"KEY=correct-horse\n\nKEY2=another-horse\n",
        ".env.new": b"KEY=battery-staple-2\n",
        "code.py": b"a\nb\nc\nd\ne\nf\n",
        "id_rsa": b"a key\n",
        "plain": b"two\n",
        "z.py": b"t = '%s'\n" % token,
    }
    return before, after


def _put(tree: Path, files: dict[str, bytes]) -> None:
    for path in tree.iterdir():
        path.unlink()
    for name, data in files.items():
        (tree / name).write_bytes(data)


@pytest.mark.parametrize("only", [[], ["--", ".env.gone"], ["--", "plain", "z.py"]], ids=len)
def test_a_masked_diff_cannot_be_applied(
    capfdbinary: pytest.CaptureFixture[bytes],
    tree: Path,
    home: Path,
    tmp_path: Path,
    only: list[str],
) -> None:
    """Whatever it is applied to, no mask is written, and a secret file stays as it is."""
    states = _secret_trees()
    _put(tree, states[0])
    checkpoint(tree, home)
    _put(tree, states[1])
    said = run(capfdbinary, "diff", *only)
    assert "`git apply` and `patch` will not apply" in said.err
    target = tmp_path / "target"
    target.mkdir()
    for before in states:
        for tool in ("git apply", "git apply -R", "patch -p1 -f", "patch -p1 -f -R"):
            _put(target, before)
            done = subprocess.run(
                tool.split(), input=said.out, cwd=target, capture_output=True, check=False
            )
            after = {path.name: path.read_bytes() for path in target.iterdir()}
            assert secrets.MASK not in b"".join(after.values()), tool
            if tool.startswith("git"):
                assert (done.returncode != 0, after) == (True, before), tool
            else:
                secret = {name: data for name, data in after.items() if "plain" not in name}
                assert {**secret, "plain": before["plain"]} == before, tool


def test_a_diff_with_its_secrets_can_be_applied(
    capfdbinary: pytest.CaptureFixture[bytes], tree: Path, home: Path
) -> None:
    """The example of the help takes a difference back, secrets and all."""
    before, after = _secret_trees()
    _put(tree, before)
    checkpoint(tree, home)
    _put(tree, after)
    told = run(capfdbinary, "help", "diff").out
    assert b"takeback diff @~1 --show-secrets | git apply -R" in told
    patch = run(capfdbinary, "diff", "--show-secrets").out
    subprocess.run(["git", "apply", "-R"], input=patch, cwd=tree, check=True)
    assert {path.name: path.read_bytes() for path in tree.iterdir()} == before


def test_a_screen_without_colour_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long replaced blocks are not compared word by word."""
    monkeypatch.setattr(diff_view, "_WORDS_UP_TO", 10)
    monkeypatch.setattr(Screen, "style", lambda _self, text, *names: f"<{'+'.join(names)}>{text}")
    entry = Entry(b"a", REGULAR | 0o644, 0, 9, b"1" * 32, 0, NO_OBJECT)
    other = Entry(b"a", REGULAR | 0o644, 0, 9, b"2" * 32, 0, NO_OBJECT)
    shown = unified.Shown(Difference(b"a", "write", entry, other), (b"a long line\n", b"a line\n"))
    said = list(diff_view.for_people(shown.diff(), Screen()))
    assert said[-2:] == ["<red>-a long line", "<green>+a line"]
