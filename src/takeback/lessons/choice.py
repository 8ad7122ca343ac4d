"""Which lessons matter for a prompt: about the same files, with the same words, and newer ones."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from takeback.lessons.lesson import Lesson

MOST = 5
"""So many lessons an agent is told at once."""
_FILE, _NAME, _WORD = 8, 4, 1
"""What it counts if the same path is meant, a name of it, or a word."""
_SHORTEST = 3
_MOST_WORDS = 400
_COMMON = frozenset(
    """
    the and for with that this from into your you are was were will not but can could should would
    have has had use using make made add fix change update please all any our out its it's they them
    when where what which who how why then than there here also only just now new old file files
    code test tests run into onto about after before because again line lines
    """.split()
)
"""Words that say nothing about what a prompt is about."""


def words_of(text: str) -> "set[str]":
    """The telling words of a text, in lower case; `snake_case` and `camelCase` in parts, too."""
    found: set[str] = set()
    spaced = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    for word in spaced.split()[:_MOST_WORDS]:
        found.add(word.lower())
        found.update(_parts(word))
    return {word for word in found if len(word) >= _SHORTEST and word not in _COMMON}


def _parts(word: str) -> "list[str]":
    spaced = "".join(
        f" {c}" if c.isupper() and at and word[at - 1].islower() else c for at, c in enumerate(word)
    )
    return spaced.replace("_", " ").lower().split()


def score(lesson: "Lesson", prompt: str, paths: "Iterable[bytes]") -> int:
    """How much a lesson has to do with a prompt, and with paths that are worked on."""
    near, meant = frozenset(paths), prompt.lower()
    total = 0
    for path in lesson.raw_paths:
        text = path.decode("utf-8", "replace").lower()
        name = text.rpartition("/")[2]
        if path in near or (text in meant and "/" in text):
            total += _FILE
        elif len(name) > _SHORTEST and name in meant:
            total += _NAME
    about = words_of(f"{lesson.text} {lesson.prompt}")
    return total + _WORD * len(about & words_of(prompt))


def ranked(
    lessons: "Sequence[Lesson]", prompt: str, paths: "Iterable[bytes]" = ()
) -> "list[tuple[int, Lesson]]":
    """Lessons with their scores, the most relevant first; of equal ones the newer."""
    near = tuple(paths)
    found = [(score(lesson, prompt, near), lesson) for lesson in lessons]
    return sorted(found, key=lambda each: (-each[0], -each[1].at))
