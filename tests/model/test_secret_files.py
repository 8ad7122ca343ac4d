"""Which files hold secrets, and what of them is shown."""

import pytest

from takeback.model.text.secrets import MASK, PLAIN, VALUES, WHOLE, Mask, how_secret


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"secrets.json", b'["SECRET"]\n'),
        (b"secrets.yaml", b'keys: [\n  ["SECRET"],\n]\n'),
        (b"secrets.yaml", b"text: |\n  [x] SECRET\n"),
        (b"secrets.toml", b"[part] # SECRET\n"),
        (b".env", b'KEY="one\n[SECRET]\n"\n'),
        (b"a.py", b"-----BEGIN PRIVATE KEY-----SECRET\nMORE\n-----END PRIVATE KEY-----\n"),
    ],
)
def test_no_value_passes_for_a_section(path: bytes, text: bytes) -> None:
    """A list, a line of a longer value and a key on its first line are masked."""
    mask = Mask(path, text.splitlines(keepends=True))
    shown = b"".join(map(mask.line, range(text.count(b"\n"))))
    assert b"SECRET" not in shown
    assert MASK in shown


def test_sections_are_shown() -> None:
    """What only names a part of the file is no secret."""
    lines = [b"[default]\n", b"[[tool.keys]]\n", b"key = 1\n"]
    mask = Mask(b".aws/credentials", lines)
    assert [mask.line(number) for number in range(2)] == lines[:2]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (b".env~", VALUES),
        (b".env-prod", VALUES),
        (b".env_local", VALUES),
        (b".envrc.bak", VALUES),
        (b"prod.env.old", VALUES),
        (b".claude/.credentials.json", VALUES),
        (b".codex/auth.json", VALUES),
        (b"id_rsa.bak", WHOLE),
        (b".env.example", PLAIN),
        (b".environment", PLAIN),
        (b"config.env.ts", PLAIN),
    ],
)
def test_copies_and_variants_are_as_secret(name: bytes, how: str) -> None:
    """A copy of a secret file, or one of several like it, is masked as the usual one is."""
    assert how_secret(name) == how
