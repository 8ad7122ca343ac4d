"""Git's ignore rules for folders, with patterns that cannot make us hang.

The `pathspec` library decides how a pattern is anchored and what `**` reaches. It is asked
with a stand-in character for each path segment, and the segments are translated here, for two
reasons that were measured: the library's own expressions backtrack (`*a*a*a*a*b` takes 21
seconds on one long name), and its character classes differ from git's.

Only folders are asked about, so a pattern's trailing slash makes no difference. Whatever is
over a limit makes the answer "not ignored", because a folder that is captured without need is
the harmless mistake; so a `!` pattern over a limit stands for one that matches everything.
"""

import os

from takeback.store.usergit import find_repository, is_regular, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

LARGEST_FILE = 256 << 10
MOST_PATTERNS = 2000
LONGEST_PATTERN = 512
MOST_WILDCARDS = 32
MOST_DOUBLE_STARS = 2
LONGEST_PATH = 1024
MOST_WORK = 1_500_000
"""What one question may cost, in characters looked at (some 15 ns each)."""
MOST_COMPILED = 32 << 10
"""Characters of pattern that are compiled for all questions together (some 15 us each)."""

_WORK_OF_ONE_TRY = 100
_FIRST_STAND_IN = 0xE000  # private use: cannot come from a byte, which is at most U+00FF
_STAR = "*"
_SLASH = "/"
_CLASSES = {
    "alpha": "AZaz",
    "digit": "09",
    "alnum": "09AZaz",
    "upper": "AZ",
    "lower": "az",
    "space": "\t\r  ",
    "blank": "\t\t  ",
    "cntrl": "\x01\x1f\x7f\x7f",
    "print": " ~",
    "graph": "!~",
    "punct": "!/:@[`{~",
    "xdigit": "09AFaf",
}
"""First and last character of each range that a class like `[:alpha:]` is made of."""


class IgnoreRules:
    """The ignore rules of one work tree, read from its files when they are first needed.

    They come from each `.gitignore` between the top of the repository that a folder is in and
    the folder, and from that repository's `info/exclude`. A nested repository starts afresh.
    """

    __slots__ = ("_budget", "_chains", "_dropped", "_root", "_verdicts")

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._chains: dict[bytes, tuple[_RuleFile, ...]] = {}
        self._verdicts: dict[bytes, bool] = {}
        self._dropped: list[tuple[bytes, int]] = []
        self._budget = _Budget()

    @property
    def dropped(self) -> tuple[tuple[bytes, int], ...]:
        """The patterns that were not obeyed, each as (file, line number).

        Line 0 is a whole file. Of the patterns that are too many only the first is named.
        """
        return tuple(self._dropped)

    def ignores_folder(self, path: bytes) -> bool:
        """Whether git would ignore this folder, given relative to the root."""
        self._budget.work = MOST_WORK
        parent = b""
        for part in path.strip(b"/").split(b"/"):
            folder = _join(parent, part)
            if not part or len(folder) > LONGEST_PATH:
                return False
            if folder not in self._verdicts:
                self._verdicts[folder] = _judge(folder, self._chain(parent), self._budget)
            if self._verdicts[folder]:
                return True
            parent = folder
        return False

    def _chain(self, folder: bytes) -> "tuple[_RuleFile, ...]":
        """Find the rule files that speak about the children of `folder`, nearest first."""
        known = self._chains.get(folder)
        if known is not None:
            return known
        chain = [self._load(folder, self._root, _join(folder, b".gitignore"))]
        repository = find_repository(os.path.join(self._root, folder))
        if repository is not None:
            chain.append(self._load(folder, repository.common_dir, b"info/exclude"))
        elif folder:
            chain.extend(self._chain(folder.rpartition(b"/")[0]))
        self._chains[folder] = tuple(file for file in chain if file.rules)
        return self._chains[folder]

    def _load(self, base: bytes, folder: bytes, name: bytes) -> "_RuleFile":
        """Read one rule file; one that is not there has no rules."""
        text = read_regular(folder, name, LARGEST_FILE)
        if text is None:
            if not is_regular(os.path.join(folder, name)):
                return _RuleFile(base, ())
            self._dropped.append((name, 0))
            return _RuleFile(base, (_nothing_ignored(),))
        rules: list[_Rule] = []
        lines = list(_pattern_lines(text))
        for number, line in lines[:MOST_PATTERNS]:
            try:
                rule = _parse_pattern(line)
            except _NotObeyedError:
                self._dropped.append((name, number))
                rule = _nothing_ignored() if line.startswith("!") else None
            if rule is not None:
                rules.append(rule)
        if len(lines) > MOST_PATTERNS:
            self._dropped.append((name, lines[MOST_PATTERNS][0]))
            if any(line.startswith("!") for _, line in lines[MOST_PATTERNS:]):
                rules.append(_nothing_ignored())
        return _RuleFile(base, tuple(reversed(rules)))


class _NotObeyedError(Exception):
    """A pattern that is over one of the limits above, or too odd to be worth the code."""


class _Budget:
    """What may still be spent: work on this question, compiling on all of them."""

    __slots__ = ("compiling", "work")

    def __init__(self) -> None:
        self.work = MOST_WORK
        self.compiling = MOST_COMPILED


class _MalformedError(Exception):
    """A pattern that is not well formed: git lets it match nothing."""


class _RuleFile:
    """The rules of one file, the last first, and the folder they are relative to."""

    __slots__ = ("base", "rules")

    def __init__(self, base: bytes, rules: "tuple[_Rule, ...]") -> None:
        self.base = base
        self.rules = rules


class _Rule:
    """One pattern. Its expression is compiled only when the last segment gives no answer."""

    __slots__ = ("_expression", "_pattern", "_segments", "last", "negated")

    def __init__(self, pattern: str, segments: list[str], last: str | None, negated: bool) -> None:
        self._pattern = pattern
        self._segments = segments
        self._expression: re.Pattern[str] | None = None
        self.last = last
        self.negated = negated

    def matches(self, path: str) -> bool:
        if self._expression is None:
            self._expression = _compile(self._pattern, self._segments)
        if self._pattern.endswith("**"):
            return self._expression.match(path) is not None
        return self._expression.fullmatch(path) is not None

    def pay(self, path: str, budget: _Budget) -> bool:
        """Take what asking this rule costs; False when it is not there."""
        tries = path.count("/") + 1 if self._pattern.count("**") > 1 else 1
        budget.work -= _WORK_OF_ONE_TRY + len(path) * tries
        if self._expression is None:
            budget.compiling -= len(self._pattern) + sum(map(len, self._segments)) // 4
            return budget.work >= 0 and budget.compiling >= 0
        return budget.work >= 0


def _nothing_ignored() -> _Rule:
    return _Rule("**", [], None, negated=True)


def _judge(folder: bytes, chain: tuple[_RuleFile, ...], budget: _Budget) -> bool:
    """Ask the files one after the other; in each, the last pattern that matches decides."""
    name = folder.rpartition(b"/")[2].decode("latin-1")
    for file in chain:
        path = (folder[len(file.base) + 1 :] if file.base else folder).decode("latin-1")
        for rule in file.rules:
            if rule.last is not None and rule.last != name:
                continue
            if not rule.pay(path, budget):
                return False
            if rule.matches(path):
                return not rule.negated
    return False


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _pattern_lines(text: bytes) -> "Iterator[tuple[int, str]]":
    """Split a rule file as git does: what is neither blank nor a comment, with its number."""
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, whole in enumerate(lines, 1):
        if not whole.startswith(b"#"):
            line = whole.removesuffix(b"\r").partition(b"\0")[0]
            pattern = _without_trailing_spaces(line.decode("latin-1"))
            if pattern:
                yield number, pattern


def _without_trailing_spaces(line: str) -> str:
    """Cut trailing spaces, but not one that a backslash protects."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(line) else bare


def _parse_pattern(line: str) -> _Rule | None:
    """Make a rule of one line, or None if it can never match."""
    if len(line) > LONGEST_PATTERN:
        raise _NotObeyedError
    negated = line.startswith("!")
    body = line.removeprefix("!").removesuffix("/")
    try:
        segments = _split_segments(body)
    except _MalformedError:
        return None
    if "/" in body and _has_stray_double_star(body):
        raise _NotObeyedError
    if "/" in body and len(segments) == 1:
        segments.insert(0, [])  # a slash inside brackets matches nothing, yet it anchors
    stand_ins: list[str] = []
    pattern: list[str] = []
    for segment in segments:
        if len(segment) > 1 and set(segment) == {_STAR}:
            if pattern[-1:] != ["**"]:
                pattern.append("**")
        elif segment:
            pattern.append(chr(_FIRST_STAND_IN + len(stand_ins)))
            stand_ins.append(_segment_expression(segment))
        else:
            pattern.append("")
    if pattern.count("**") > MOST_DOUBLE_STARS:
        raise _NotObeyedError
    last = _literal(segments[-1])
    return _Rule("/".join(pattern), stand_ins, last, negated) if any(pattern) else None


def _has_stray_double_star(body: str) -> bool:
    """Whether the first wildcard is a `**` that ends a segment but does not begin it.

    Git then lets it cross slashes, against its own documentation (`foo**/bar`, `foo/b**`).
    """
    start = min((at for at in map(body.find, "*?[\\") if at >= 0), default=len(body))
    rest = body[start:].lstrip("*")
    stars = len(body) - start - len(rest)
    begins = start == 0 or body[start - 1] == "/"
    return stars > 1 and not begins and rest[:1] in ("", "/")


def _split_segments(body: str) -> list[list[str]]:
    """Take a pattern apart at its slashes, each segment a list of tokens.

    A token is `*` or an expression for one character.
    """
    segments: list[list[str]] = [[]]
    wildcards = 0
    at = 0
    while at < len(body):
        char = body[at]
        wildcards += char in "*?["
        token, at = _next_token(body, at)
        if token == _SLASH:
            segments.append([])
        else:
            segments[-1].append(token)
    if wildcards > MOST_WILDCARDS:
        raise _NotObeyedError
    return segments


def _next_token(body: str, at: int) -> tuple[str, int]:
    char = body[at]
    if char == "[":
        codes, at = _parse_bracket(body, at + 1)
        return _one_of(codes), at
    if char == "*":
        return _STAR, at + 1
    if char == "?":
        return "[^/]", at + 1
    if char == "/":
        return _SLASH, at + 1
    at += char == "\\"
    if at == len(body):
        raise _MalformedError
    if body[at] == "/":
        raise _NotObeyedError  # an escaped slash: legal, and of no use to anybody
    return _one_of({ord(body[at])}), at + 1


def _parse_bracket(body: str, at: int) -> tuple[set[int], int]:
    """Read a bracket expression from behind its `[`: the characters it matches, and its end."""
    negated = body[at : at + 1] in ("!", "^")
    at += negated
    first = at
    codes: set[int] = set()
    before = -1  # what a range would start with; nothing before the first and after a range
    while body[at : at + 1] != "]" or at == first:
        name, end = _class_name(body, at)
        if name:
            codes |= _codes_of_class(name)
            before, at = -1, end
            continue
        is_range = body.startswith("-", at) and before >= 0 and body[at + 1 : at + 2] != "]"
        at += is_range
        at += body.startswith("\\", at)
        if at >= len(body):
            raise _MalformedError
        code = ord(body[at])
        codes.update(range(before, code + 1) if is_range else (code,))
        before = -1 if is_range else code
        at += 1
    return (set(range(1, 256)) - codes if negated else codes), at + 1


def _class_name(body: str, at: int) -> tuple[str, int]:
    """Read `[:name:]`; the name is empty when there is none here."""
    end = body.find("]", at + 2)
    if body.startswith("[:", at) and end > at + 2 and body[end - 1] == ":":
        return body[at + 2 : end - 1] or "?", end + 1
    return "", at


def _codes_of_class(name: str) -> set[int]:
    if name not in _CLASSES:
        raise _MalformedError
    ends = [ord(char) for char in _CLASSES[name]]
    return {code for at in range(0, len(ends), 2) for code in range(ends[at], ends[at + 1] + 1)}


def _one_of(codes: set[int]) -> str:
    """Write an expression for one character out of `codes`; a slash is never matched."""
    if len(codes) == 1 and codes != {0x2F}:
        return f"\\x{min(codes):02x}"
    wanted = "".join(f"\\x{code:02x}" for code in sorted(codes - {0x2F}))
    return f"[{wanted}]" if wanted else "(?!)"


def _literal(tokens: list[str]) -> str | None:
    """Spell out a segment without wildcards; None if it has any."""
    if not tokens or not all(token.startswith("\\x") for token in tokens):
        return None
    return "".join(chr(int(token.removeprefix("\\x"), 16)) for token in tokens)


def _segment_expression(tokens: list[str]) -> str:
    """Write an expression for one segment that needs no backtracking.

    Between two stars the first place that fits is as good as any later one, so the choice is
    final (an atomic group). Only the last star has to try again, and it can only move on.
    """
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token == _STAR:
            pieces.append([])
        else:
            pieces[-1].append(token)
    texts = ["".join(piece) for piece in pieces]
    if len(texts) == 1:
        return texts[0]
    middle = "".join(f"(?>[^/]*?{text})" for text in texts[1:-1] if text)
    return f"{texts[0]}{middle}[^/]*{texts[-1]}"


def _compile(pattern: str, segments: list[str]) -> "re.Pattern[str]":
    import re

    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    expression, _ = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    if expression is None:
        expression = "(?!)"
    stand_ins = {_FIRST_STAND_IN + at: text for at, text in enumerate(segments)}
    return re.compile(expression.translate(stand_ins), re.DOTALL)
