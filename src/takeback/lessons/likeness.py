"""Whether lines that were added are lines that had been taken back: pure functions.

A line counts by how much it says. Nothing: braces, keywords, lines that were there all along, and
idioms of a language. Little: imports, declarations and comments, which a second attempt in another
way repeats, too. Lines are the same if their tokens are, whatever the spaces; or with other names,
if the same names stand for each other in all of them. A line whose neighbours came back with it
counts in full, one alone half.
"""

import re
from collections import Counter

from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Lines = Mapping[bytes, Sequence[str]]

SHARE = 0.34
"""Of what was taken back, weighed, so much is back: a relapse."""
RUN, SHARE_OF_RUN = 2.5, 0.2
"""Fewer is enough if so many whole lines, one after the other, are back."""
LEAST = 1.2
"""Less weight than that is no sign of anything, unless all of it is back as it was."""
MOST_LINES = 5000
_NEAR = 3
"""Lines within which what came back together stands together."""
_ALONE, _RENAMED = 0.5, 0.9
_WORDY = 3
"""A line with so many telling tokens has all the weight that a line can have."""
_FAINT = 0.3
_LONGEST = 2000

_TOKENS = re.compile(
    r"""[A-Za-z_$][\w$]*|\d[\w.]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|[-+*/=!<>&|:?.%^]+|\S"""
)
_WORDS = re.compile(r"[A-Za-z_$][\w$]*")
_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z")
_COMMENT = re.compile(r"\s*(#(?!\[)|//|/\*|\*(?!\w)|--\s|\"\"\"|''')")
_FAINT_LINE = re.compile(
    r"\s*(import|from|use|package|using|#include|require|export\s+\{|@|#\[|"
    r"(pub(\([^)]*\))?\s+|export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|final\s+|"
    r"abstract\s+|async\s+|override\s+)*(def|class|func|fn|function|interface|struct|impl|trait|enum|"
    r"type|mod|record)\b|"
    r"(public|private|protected)\b[^=;]*\)\s*(throws\s+\w+\s*)?\{)"
)
_KEYWORDS = frozenset(
    """
    and as assert async await break case catch class const continue crate def defer del delete do
    elif else enum except export extends extern false False final finally fn for from func function
    global go goto if impl implements import in instanceof interface is lambda let loop mod mut new
    nil None nonlocal not null or package pass private protected pub public raise range ref return
    self Self static struct super switch this throw throws trait True true try type typeof unsafe
    use using var while with yield
    """.split()
)
_PLAIN_NAMES = frozenset(
    """
    any bool boolean byte char dyn err Err error Error Exception fmt float i8 i16 i32 i64 int Int
    isize Iterator len List long map match Map Null Number number object Ok ok Option override print
    readonly Result short Some str string String u8 u16 u32 u64 undefined usize Vec void i j k n ctx
    """.split()
)
"""Names that are everywhere."""


class Likeness(Value):
    """How much of what was taken back is there again.

    `lines` of the `taken` telling lines came back, in `paths`. `share` is that by weight, `weight`
    how much came back, `run` the part that stands together, and `is_whole` that all is as it was.
    """

    lines: int = 0
    taken: int = 0
    share: float = 0.0
    weight: float = 0.0
    run: float = 0.0
    is_whole: bool = False
    paths: "tuple[bytes, ...]" = ()

    @property
    def is_relapse(self) -> bool:
        """Whether that is worth telling."""
        if self.is_whole:
            return True
        if self.weight < LEAST or self.lines < 2:
            return False
        return self.share >= SHARE or (self.run >= RUN and self.share >= SHARE_OF_RUN)


class _Line:
    """A line with its tokens."""

    __slots__ = ("at", "key", "names", "outline", "path", "shape", "text", "tokens", "weight")

    def __init__(self, path: bytes, text: str, at: int) -> None:
        self.path = path
        self.text = text.strip()
        self.at = at
        self.outline = _outline(text)
        self.tokens: tuple[str, ...] = tuple(_TOKENS.findall(text[:_LONGEST]))
        self.key = " ".join(self.tokens).rstrip(" ;,")
        self.names = [token for token in self.tokens if _is_name(token)]
        self.shape = " ".join("v" if _is_name(token) else token for token in self.tokens)
        telling = {token for token in self.tokens if _tells(token)}
        weight = min(1.0, len(telling) / _WORDY)
        faint = _COMMENT.match(text) or _FAINT_LINE.match(text)
        self.weight = min(weight, _FAINT) if faint else weight


def _is_name(token: str) -> bool:
    return token not in _KEYWORDS and _NAME.match(token) is not None


def _tells(token: str) -> bool:
    if _is_name(token):
        return token not in _PLAIN_NAMES
    if token[0].isdigit():
        return token not in ("0", "1")
    return token[0] in "\"'`" and len(token) > 3


def relapse(before: bytes, taken: bytes, later: bytes) -> Likeness:
    """The same for one file: as it was, as a turn left it that was taken back, and as it is now."""
    old = {b"": text_lines(before)}
    gone, added = (new_lines(old, {b"": text_lines(text)}) for text in (taken, later))
    return Taken(gone, common_lines(old)).compare(added)


def text_lines(content: bytes) -> "list[str]":
    return content.decode("utf-8", "replace").splitlines()[:MOST_LINES]


def common_lines(files: "Lines") -> "set[str]":
    """What says nothing in lines of the same files, because it was there."""
    return {line.strip() for lines in files.values() for line in lines}


def new_lines(before: "Lines", after: "Lines") -> "dict[bytes, list[str]]":
    """The lines that are new in some files; what only moved, also to another file, is not."""
    added: dict[bytes, list[str]] = {}
    gone: Counter[str] = Counter()
    for path in {**before, **after}:
        old, new = before.get(path, ()), after.get(path, ())
        if old == new:
            continue
        left = Counter(old)
        left.subtract(new)
        gone.update(_plain(line) for line, count in left.items() for _ in range(count))
        extra = {line: -count for line, count in left.items() if count < 0}
        found = []
        for line in reversed(new):
            if extra.get(line, 0) > 0:
                extra[line] -= 1
                found.append(line)
        if found:
            added[path] = found[::-1]
    # What went from where it was may have moved, or has other spaces now.
    for path, lines in added.items():
        kept = []
        for line in lines:
            plain = _plain(line)
            if gone[plain] > 0:
                gone[plain] -= 1
            else:
                kept.append(line)
        added[path] = kept
    return {path: lines for path, lines in added.items() if lines}


def _plain(line: str) -> str:
    return " ".join(line.split())


def _outline(line: str) -> str:
    """A line without spaces and names. Lines that are the same with other names have the same."""
    return _WORDS.sub("v", line).replace(" ", "").replace("\t", "").rstrip(";,")


class Taken:
    """Lines that were taken back, made ready to be compared with added ones.

    What is `common` says nothing.
    """

    __slots__ = ("_lines", "_outlines", "_total")

    def __init__(self, taken: "Lines", common: "set[str]") -> None:
        every = [_Line(*each) for each in _numbered(taken) if each[1].strip() not in common]
        self._lines = [line for line in every if line.weight > 0]
        self._outlines = {line.outline for line in self._lines}
        self._total = sum(line.weight for line in self._lines)

    def without(self, common: "set[str]") -> "Taken":
        """The same, if more says nothing."""
        if not any(line.text in common for line in self._lines):
            return self
        less = Taken({}, common)
        less._lines = [line for line in self._lines if line.text not in common]
        less._outlines = {line.outline for line in less._lines}
        less._total = sum(line.weight for line in less._lines)
        return less

    def compare(self, added: "Lines") -> Likeness:
        """How much of it is among added lines."""
        old = self._lines
        if not old:
            return Likeness()
        near = (each for each in _numbered(added) if _outline(each[1]) in self._outlines)
        new = [_Line(*each) for each in near]
        found = _matches(old, new)
        if not found:
            return Likeness(taken=len(old))
        weight, run = _weigh(old, found)
        exact = all(old[n].key == found[n].key for n in found)
        whole = exact and len(found) == len(old) and max(line.weight for line in old) > _FAINT
        return Likeness(
            lines=len(found),
            taken=len(old),
            share=round(weight / self._total, 3),
            weight=weight,
            run=run,
            is_whole=whole,
            paths=tuple(dict.fromkeys(line.path for line in found.values())),
        )


def _numbered(lines: "Lines") -> "Iterable[tuple[bytes, str, int]]":
    """Lines of several files with numbers; those of two files are far apart."""
    at = 0
    for path, each in lines.items():
        for line in each:
            at += 1
            yield path, line, at
        at += _NEAR + 1


def _matches(old: "list[_Line]", new: "list[_Line]") -> "dict[int, _Line]":
    """The added line for each taken one that came back, by the number of the taken one."""
    by_key: dict[str, list[_Line]] = {}
    for line in reversed(new):
        by_key.setdefault(line.key, []).append(line)
    found: dict[int, _Line] = {}
    for n, line in enumerate(old):
        same = by_key.get(line.key)
        if same:
            found[n] = same.pop()
    used = {id(line) for line in found.values()}
    rest = [line for line in new if id(line) not in used]
    return found | _renamed(old, rest, found)


def _renamed(
    old: "list[_Line]", rest: "list[_Line]", found: "dict[int, _Line]"
) -> "dict[int, _Line]":
    """Lines that came back with other names: each name must mean the same in all of them."""
    by_shape: dict[str, list[_Line]] = {}
    for line in reversed(rest):
        by_shape.setdefault(line.shape, []).append(line)
    pairs = {}
    for n, line in enumerate(old):
        if n in found or len(set(line.names)) < 1 or len(line.tokens) < _NEAR:
            continue
        like = by_shape.get(line.shape)
        if like:
            pairs[n] = like.pop()
    votes: dict[str, Counter[str]] = {}
    for n, line in [*pairs.items(), *found.items()]:
        for was, now in zip(old[n].names, line.names, strict=True):
            votes.setdefault(was, Counter())[now] += 1
    means = {was: now.most_common(1)[0] for was, now in votes.items()}
    taken = Counter(now for now, _ in means.values())
    return {n: line for n, line in pairs.items() if _agrees(old[n], line, means, taken)}


def _agrees(
    old: _Line, new: _Line, means: "Mapping[str, tuple[str, int]]", taken: "Counter[str]"
) -> bool:
    """Whether a line is another one with other names."""
    pairs = set(zip(old.names, new.names, strict=True))
    same = sum(was == now for was, now in pairs)
    sure = 0
    for was, now in pairs:
        meant, times = means[was]
        if was == now:
            continue
        if meant != now or taken[now] > 1:
            return False
        sure += times > 1
    other = len(pairs) - same
    return sure == other or same >= other


def _weigh(old: "list[_Line]", found: "Mapping[int, _Line]") -> "tuple[float, float]":
    """The weight of what came back, and of the heaviest part that stands together."""
    total = heaviest = run = 0.0
    numbers = sorted(found)
    for place, n in enumerate(numbers):
        weight = old[n].weight * (1.0 if old[n].key == found[n].key else _RENAMED)
        before = numbers[place - 1] if place else None
        after = numbers[place + 1] if place + 1 < len(numbers) else None
        is_next = before is not None and _is_near(old, found, before, n)
        is_alone = not is_next and not (after is not None and _is_near(old, found, n, after))
        total += weight * (_ALONE if is_alone and len(old) > 1 else 1.0)
        run = run + weight if is_next else weight
        heaviest = max(heaviest, run)
    return round(total, 3), round(heaviest, 3)


def _is_near(old: "list[_Line]", found: "Mapping[int, _Line]", one: int, other: int) -> bool:
    """Whether two lines stood together, and do so again."""
    distance = found[other].at - found[one].at
    return old[other].at - old[one].at <= _NEAR and 0 < distance <= _NEAR
