"""Secrets are kept in the store and masked wherever something is shown, unless asked for."""

import json
import sys
import time
from pathlib import Path

import pytest

from cases import Work
from takeback.cli import app
from takeback.model.text import masking, secrets
from takeback.model.text.masking import Masker
from terminal import Terminal

MASK = secrets.MASK.decode()
KEY = "-----BEGIN RSA PRIVATE KEY-----\n{}\nCAQEA7\n-----END RSA PRIVATE KEY-----"
# Each is put together here, so that no scanner of repositories takes them for real ones.
SECRETS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "fine": "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "slack": "xoxb-" + "123456789012-abcdefGHIJKL",
    "openai": "sk-" + "proj-abcdEFGH1234ijklMNOP5678",
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9",
    "password": "hunter2",
    "told": "tr0ub4dor",
    "quoted": "correct horse battery",
    "flag": "swordfish9",
    "entropy": "Zx81qLmN0pQrS7tUvW2y",
    "aws secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYz" + "EXAMPLES3",
    "login": "s3cr3tpass",
    "bearer": "mF_9.B5f-4.1JqM" + "aaaa",
    "private": "MIIEowIBAAKxyz",
}
SENTENCES = {
    "password": "log in with password={} please",
    "told": "my password is {}, use it",
    "quoted": 'set {{"password": "{}"}} in the file',
    "flag": "mysql --password {} -e quit",
    "entropy": "use api_key: {}",
    "aws secret": "aws_secret_access_key = {}",
    "login": "clone https://ana:{}@example.org/repo.git",
    "bearer": "curl -H 'Authorization: Bearer {}'",
    "private": KEY,
}
HARMLESS = [
    "Add a password field to the login form, and a token: it should expire after 24 hours",
    "password reset flow: see docs/password-reset.md; the key is that nobody waits",
    "def login(user, password=None, token: str = '', api_key=os.environ['API_KEY']):",
    "connect(user=user, password=self.password, key=lambda row: row.created_at)",
    "PASSWORD=$DB_PASSWORD TOKEN=${TOKEN} ./deploy --token <token> --password ***",
    "sort key=created_at, cache key=user:1234:profile, keyboard: qwertz, monkey: banana",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixes key=3f786850e387550fdab836ed7e6dc881de23001b",  # noqa: E501
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 of the pack",
    "session 550e8400-e29b-41d4-a716-446655440000, key 550e8400-e29b-41d4-a716-446655440000",
    "see https://example.org:8443/a/b?page=2 and src/takeback/model/text/secrets.py:120",
    "The tokenizer counts tokens: 4096 per request; max_tokens=1024, token_count=17",
    "basic understanding of bearer tokens is required; the secret is: read the docs",
    "mvkxlpqrstuv nzwoplkqrstu: two ids of turns; sk-learn and task-runner are packages",
    "Passwords: at least 12 characters. password: required. secret: yes",
    "rename SECRET_NAMES to secret_names; key: src/app/keys/primary_key.py2",
    "The password is required, the token is optional, and the key is primary2",
    "ssh-rsa is a kind of key; a public one begins with AAAAB3NzaC1yc2E",
    "--key-file ~/.ssh/id_ed25519 --secret-name my-app/prod",
]


def sentence(name: str) -> str:
    """A prompt in which somebody gave a secret away."""
    return SENTENCES.get(name, "deploy with {} now").replace("{}", SECRETS[name])


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_a_prompt_is_masked(name: str) -> None:
    """What looks like a secret is not in the words that are shown; the words around it are."""
    shown = masking.without_secrets(sentence(name))
    assert SECRETS[name] not in shown
    assert MASK in shown
    assert shown.split()[0] == sentence(name).split()[0]
    assert Masker(is_open=True).words(sentence(name)) == sentence(name)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_words_stay_readable(text: str) -> None:
    """Prose, code, hashes, paths and ids are shown as they are."""
    assert masking.without_secrets(text) == text


def test_a_token_that_was_cut_is_masked() -> None:
    """The beginning of a token at the end of a text that was cut is not shown either."""
    assert masking.without_secrets("curl -H ghp_16C7e42F…") == f"curl -H ghp_{MASK}…"


@pytest.mark.parametrize(
    "piece",
    [
        "password=",
        "token: ",
        '"key": "',
        "://a:",
        "bearer ",
        "key",
        "secret_",
        "-",
        "pwd ",
        "mysql -p",
        "a1:b1@c.",
        "password=a,",
        "bbbb",
    ],
)
def test_no_words_take_long_to_mask(piece: str) -> None:
    """Twice the text takes about twice the time, whatever it is made of."""

    def took(times: int) -> float:
        text = " htpasswd -" + piece * times
        best = 9e9
        for _ in range(3):
            started = time.process_time()
            masking.without_secrets(text)
            best = min(best, time.process_time() - started)
        return best

    short, long = took(1_000), took(8_000)
    assert long < short * 24 + 0.05


# -- every surface -----------------------------------------------------------------------------


@pytest.fixture
def story(work: Work, monkeypatch: pytest.MonkeyPatch) -> Work:
    """A project in whose words and files there are secrets everywhere."""
    monkeypatch.chdir(work.tree)
    env = "".join(f"V{n}={text}\n" for n, text in enumerate(SECRETS.values()))
    (work.tree / "a.txt").write_text("one\n")
    (work.tree / ".env").write_text("A=1\n")
    prompt = "\n".join(map(sentence, SECRETS))
    session = work.project.session("claude", title=prompt)
    for name in SECRETS:
        with session.turn(sentence(name)) as turn, turn.step("Bash", {"command": sentence(name)}):
            (work.tree / "a.txt").write_text(f"{name}\n")
    with session.turn(prompt) as turn, turn.step("Bash", {"command": prompt}):
        (work.tree / ".env").write_text(env)
        (work.tree / "id_rsa").write_text(SECRETS["private"])
        (work.tree / "a.txt").write_text("last\n")
    session.end()
    return work


def leaked(text: str) -> "list[str]":
    """The secrets that are in a text, also in JSON."""
    flat = text.replace("\\/", "/")
    return [name for name, secret in SECRETS.items() if secret in flat]


SURFACES = [
    ("log",),
    ("log", "--all"),
    ("sessions",),
    ("show", "@~1"),
    ("show", "@~2"),
    ("show", "@"),
    (),
    ("diff", "@~1"),
    ("diff", "@~1-", "@~1"),
    ("undo", "--dry-run"),
    ("undo", "@~2", "--dry-run"),
    ("rollback", "@~3", "--dry-run"),
    ("checkpoint", "-m", sentence("github")),
    ("keep", "@", "-m", sentence("password")),
    ("keep",),
    ("projects",),
    ("show", "deploy with"),
]


def test_no_surface_shows_a_secret(story: Work, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither text nor JSON of any command has a secret in it."""
    assert story.tree.is_dir()
    told = {}
    for words in SURFACES:
        for more in ([], ["--json"]):
            app.main([*words, *more])
            told[(*words, *more)] = "".join(capfd.readouterr())
    assert {words: leaked(text) for words, text in told.items() if leaked(text)} == {}
    masked = [words for words, text in told.items() if MASK in text or "\\u2022" in text]
    assert len(masked) > len(told) // 2


@pytest.mark.parametrize("words", [("log",), ("show", "@~1"), ("sessions",), ("undo", "-n")])
def test_secrets_are_shown_to_who_asks(
    story: Work, words: "tuple[str, ...]", capfd: pytest.CaptureFixture[str]
) -> None:
    """With `--show-secrets` the words are as they were written: the store keeps them whole."""
    assert story.tree.is_dir()
    app.main([*words, "--json", "--show-secrets"])
    assert leaked(capfd.readouterr().out)


def test_what_was_undone_for_a_secret_reason_is_masked(
    story: Work, capfd: pytest.CaptureFixture[str]
) -> None:
    """The reason of an undo is masked in its report, in the log and in what it made."""
    assert app.main(["undo", "--json", "--because", sentence("password")]) == 0
    assert app.main(["log", "--all", "--json"]) == 0
    assert app.main(["show", "@"]) == 0
    assert app.main(["redo"]) == 0
    assert leaked("".join(capfd.readouterr())) == []
    assert story.project.log().turns[0].label.count(SECRETS["github"]) == 1


def test_an_ambiguous_reference_names_no_secret(
    story: Work, capfd: pytest.CaptureFixture[str]
) -> None:
    """An error that lists prompts masks them, too."""
    assert story.tree.is_dir()
    assert app.main(["show", "with"]) != 0
    assert leaked("".join(capfd.readouterr())) == []


@pytest.mark.parametrize("path", [".env", "id_rsa"])
def test_a_secret_file_is_not_printed_to_a_program(
    story: Work, path: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What is known for holding secrets goes to a pipe only if asked for, byte for byte."""
    assert app.main(["show", "@", path]) == 3
    told = capfdbinary.readouterr()
    assert (told.out, b"--show-secrets" in told.err) == (b"", True)
    assert app.main(["show", "@", path, "--json"]) == 0
    said = json.loads(capfdbinary.readouterr().out)["file"]
    assert (said["content_b64"], said["masked"]) == (None, True)
    assert app.main(["show", "@", path, "--show-secrets"]) == 0
    assert capfdbinary.readouterr().out == (story.tree / path).read_bytes()


def test_an_ordinary_file_is_printed_byte_for_byte(
    story: Work, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A file that somebody may be about to keep is not changed on its way to a pipe."""
    data = f"t = '{SECRETS['github']}'\r\n\0".encode()
    (story.tree / "b.bin").write_bytes(data)
    assert app.main(["checkpoint"]) == 0
    capfdbinary.readouterr()
    assert app.main(["show", "@", "b.bin"]) == 0
    assert capfdbinary.readouterr().out == data


def test_files_can_be_added_to_the_list(
    story: Work, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What `[secrets] names` adds is masked as a key file is: nothing of it is shown."""
    (home / "config.toml").write_text('[secrets]\nnames = ["a.txt", "*.vault", "conf/own"]\n')
    assert app.main(["diff", "@~2-", "@~2"]) == 0
    told = capfd.readouterr().out
    assert "Secret files" in told
    assert not any(f"+{name}" in told for name in SECRETS)
    names = story.project.workspace.rules.secret_names()
    found = {path: secrets.added(path, names) for path in (b"x/a.txt", b"b.VAULT", b"own")}
    assert found == {b"x/a.txt": "whole", b"b.VAULT": "whole", b"own": "plain"}


@pytest.mark.usefixtures("signals_as_in_a_terminal")
def test_the_interactive_preview_masks(story: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the screen of the interactive preview, in its diffs, too, no secret is to be seen."""
    monkeypatch.setenv("TERM", "xterm")
    words = [sys.executable, "-I", "-m", "takeback", "-C", str(story.tree), "rollback", "@~3"]
    terminal = Terminal(words)
    try:
        terminal.shows("quit")
        shown = ""
        for _ in range(4):
            terminal.type(b"d")
            shown += "\n".join(terminal.shows("q back"))
            terminal.type(b"q")
            shown += "\n".join(terminal.shows("a apply"))
            terminal.type(b"j")
        terminal.type(b"q")
        assert terminal.status() == 3
    finally:
        terminal.close()
    assert leaked(shown) == []
    assert MASK in shown
    assert story.has("id_rsa")
