"""Every code has a sentence: a reason that nobody can read is a defect."""

import re
import tomllib
from pathlib import Path

import takeback
from takeback.cli.text import reason_text
from takeback.model import reasons

SOURCE = Path(takeback.__file__).parent
CODES = {value for name, value in vars(reasons).items() if name.isupper() and type(value) is str}


def test_every_code_has_a_sentence() -> None:
    """Also those that are written where they are found."""
    written = {
        code
        for path in SOURCE.rglob("*.py")
        for code in re.findall(r'Reason\(\s*"([a-z-]+)"', path.read_text())
    }
    assert written
    assert CODES
    known = set(reason_text.SENTENCES)
    judged = set(tomllib.loads((SOURCE / "guard/reasons.toml").read_text()))
    assert (CODES | written) - known - judged == set()
    rules = {f"guard-{name}" for name in ("no-match", "unknown-class")}  # made in `guard.rules`
    assert known - (CODES | written | rules) == set()
