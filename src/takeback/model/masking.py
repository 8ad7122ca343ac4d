"""One masker for all doors: what of the words and files of a project may be shown.

`secrets` knows the files and the shapes of tokens. Here are the rules for words that people type
(prompts, labels, commands): also what stands behind `password=` and the like is a secret. The
store keeps every word as it was; only what is shown is masked.
"""

from takeback.model import secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence

_PASSWORDS = ("password", "passwd", "passphrase", "pwd")
_HINTS = (*_PASSWORDS, "secret", "token", "key", "credential", "bearer", "basic ", "://")
_NAMES = (*_PASSWORDS, "secret", "token", "_key")
_NAMED = r"""(?xi)
    (?P<name> password | passwd | passphrase | pwd | secret | token | api[_\ -]?key | key
      | credential )
    (?: [_-][a-z0-9]{1,12}+ ){0,2}+
    (?P<mark> ["'`]? (?: [ \t]{0,8}+ (?: := | => | = | : ) [ \t]{0,8}+
      | [ \t]{1,8}+ (?: is [ \t]{1,8}+ )?+ ) )
"""
"""A word that announces a secret, and what stands between the two. Nothing in it can go back
further than a few characters, so that no text takes long."""
_BEGIN, _DASHES = "-----BEGIN ", "-----"
_LONGEST_HEAD = 80
_VALUES = {quote: rf"[^{quote}\n]*+" for quote in "\"'`"} | {"": r"[^\s\"'`,;&)}\]|]*+"}
"""What a value is made of, by the quote before it."""
_LOOKED_AT = 400
_HEADER = r"(?i)\b(?P<kind>bearer|basic)[ \t]{1,8}+(?P<value>[0-9a-z+/=._~-]{12,}+)"
_LOGIN = r"(?P<head>://[^\s/:@\"'<>]{0,100}:)(?P<value>[^\s/@\"'<>]{1,200}+)(?=@)"
_CUT = r"(?P<head>\b(?:A[KS]IA|gh[opsru]_|github_pat_|glpat-|[rs]k_(?:live|test)_|sk-|xox[a-z]-|npm_|pypi-|AIza|eyJ))[0-9A-Za-z_.-]{6,}+(?=\u2026|\Z)"  # noqa: E501
"""A token of which the end was cut off when it was stored."""

_NO_VALUES = frozenset(
    "none null nil true false undefined str string int bytes bool object any required optional"
    " empty missing here there changeme example xxx yes no is not was are and or for".split()
)
_REFERENCES = ("$", "<", "{", "%", "*", "(", "[", "@", ".", "/", "~", "-", "\u2022", "\u2026")
_SHORTEST = 6
_LONG_ENOUGH = 16
_LONG_AS_ANY_KEY = 20
_VARIED = 8
_HEX = frozenset("0123456789abcdef-")


class Masker:
    """What may be shown. `is_open` shows everything; `names` are the user's own secret files."""

    __slots__ = ("_names", "is_open")

    def __init__(
        self, *, is_open: bool = False, names: "Callable[[], Iterable[str]] | None" = None
    ) -> None:
        self.is_open = is_open
        self._names = names

    def words(self, text: str) -> str:
        """A prompt, a label, a summary, a title or a reason, as it may be shown."""
        return text if self.is_open else without_secrets(text)

    def how_secret(self, path: bytes) -> str:
        """How much of a file is secret, by its name."""
        if self.is_open:
            return secrets.PLAIN
        how = secrets.how_secret(path)
        if how == secrets.PLAIN and self._names is not None:
            return secrets.added(path, self._names())
        return how

    def lines(self, path: bytes, lines: "Sequence[bytes]", how: str = "") -> "secrets.Mask | None":
        """What shows the lines of a file; None if they are shown as they are."""
        if self.is_open:
            return None
        return secrets.Mask(path, lines, how or self.how_secret(path))


def without_secrets(text: str) -> str:
    """Words as they may be shown: without tokens, private keys, passwords."""
    shown = secrets.without_tokens(_without_keys(text))
    lower = shown.lower()
    if any(hint in lower for hint in _HINTS):
        shown = _without_values(shown)
    if secrets.may_hold_cut_token(shown):
        import re

        shown = re.sub(_CUT, lambda found: found["head"] + _MASK, shown)
    return shown


_MASK = secrets.MASK.decode()
CLOSED = Masker()
"""Masks what is known to be secret without any settings."""


def _without_keys(text: str) -> str:
    """Without what stands inside private keys; a summary has them on one line, or half of one."""
    parts: list[str] = []
    done, at = 0, text.find(_BEGIN)
    while at >= 0:
        head = text.find(_DASHES, at + len(_BEGIN))
        if head < 0:
            break
        if head - at > _LONGEST_HEAD or "PRIVATE KEY" not in text[at:head]:
            at = text.find(_BEGIN, at + len(_BEGIN))
            continue
        start = head + len(_DASHES)
        end = text.find("-----END ", start)
        parts += text[done:start], _MASK
        done = len(text) if end < 0 else end
        at = text.find(_BEGIN, done)
    return "".join((*parts, text[done:]))


def _without_values(text: str) -> str:
    import re

    text = re.sub(_LOGIN, lambda found: found["head"] + _MASK, text)
    text = re.sub(_HEADER, _without_header, text)
    named = re.compile(_NAMED)
    parts: list[str] = []
    done = at = 0
    while (found := named.search(text, at)) is not None:
        at = start = found.end()
        quote = text[start : start + 1] if text[start : start + 1] in _VALUES else ""
        start += len(quote)
        # It is not looked at further than a value is long, so that no text takes long.
        value = re.compile(_VALUES[quote]).match(text, start, start + _LOOKED_AT)
        if value is not None and _is_secret(value[0], found, has_quote=bool(quote)):
            rest = re.compile(_VALUES[quote]).match(text, start)
            parts += text[done:start], _MASK
            done = at = rest.end() if rest is not None else value.end()
    return "".join((*parts, text[done:]))


def _without_header(found: "re.Match[str]") -> str:
    value = found["value"]
    is_likely = _is_mixed(value) or len(value) >= _LONG_AS_ANY_KEY
    return found[0][: -len(value)] + _MASK if is_likely else found[0]


def _is_secret(value: str, found: "re.Match[str]", *, has_quote: bool) -> bool:
    name, mark = found["name"].lower(), found["mark"].strip("\"'` \t")
    lower = value.lower()
    if lower.rstrip(".!?:") in _NO_VALUES or lower.startswith(_REFERENCES) or "(" in value:
        return False
    if not value or any(word in lower for word in _NAMES):
        return False  # `password=self.password`: a name, no value
    is_flag = not mark and _is_flag(found)
    if name in _PASSWORDS:
        is_given = mark == "=" or (has_quote and bool(mark)) or is_flag
        return is_given or (bool(mark) and len(value) >= _SHORTEST and _is_mixed(value))
    may_be_hash = name == "key" or not (mark or is_flag)
    return _is_random(value) and not (may_be_hash and _is_hash(lower))


def _is_flag(found: "re.Match[str]") -> bool:
    """Whether the name is that of an option: `--db-password VALUE`."""
    before = found.string[max(found.start() - _SHORTEST * 4, 0) : found.start()]
    return before.split(" ")[-1].startswith("-")


def _is_random(value: str) -> bool:
    """Whether letters and digits are mixed as in no word, path or date that people write."""
    if len(value) < _LONG_ENOUGH or not _is_mixed(value) or len(set(value[:200])) < _VARIED:
        return False
    if "/" not in value:
        return ":" not in value
    # A path, or base64: that has everything, and no dots.
    kinds = (str.isupper, str.islower, str.isdigit)
    return (
        len(value) >= _LONG_AS_ANY_KEY * 2 - 8
        and "." not in value
        and all(any(map(kind, value)) for kind in kinds)
    )


def _is_hash(value: str) -> bool:
    """A SHA or a UUID: nearly always the name of something."""
    if not set(value) <= _HEX:
        return False
    dashes = [at for at, letter in enumerate(value) if letter == "-"]
    return (len(value) == 36 and dashes == [8, 13, 18, 23]) or len(value) in (40, 64)


def _is_mixed(value: str) -> bool:
    """Whether there is more than letters: digits, or signs that no name has."""
    return any(map(str.isalpha, value)) and any(not c.isalpha() and c not in "-_." for c in value)
