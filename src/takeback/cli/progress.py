"""How far long work has come: one line, which fits the terminal and says how long it will take."""

from takeback.model import words

FIRST_SHOWN_AFTER = 1.0
"""Seconds. What is over by then never shows anything."""
_SHOWN_EVERY = 0.1
_GUESSED_AFTER = 0.5
"""Seconds of one kind of work, after which the rest of it can be guessed."""
_BAR = 24
_DOING = {
    words.LOOKING: "looking at the files",
    words.READING: "reading files",
    words.WRITING: "writing files",
    words.HASHING: "checking packs",
    words.MERGING_PACKS: "merging packs",
    words.SEARCHING_PACKS: "searching packs",
    words.FOLLOWING: "following checkpoints",
    words.FINDING_NEEDED: "finding needed objects",
    words.ATTRIBUTING: "finding who added what",
    words.TRYING_HOOKS: "trying the hooks",
    words.PREPARING: "preparing files",
    words.CHANGING: "changing files",
    words.CHECKING: "checking files",
    words.CLEANING: "cleaning up",
}


class Progress:
    """Knows when the work began, and since when it does what it does."""

    def __init__(self, now: float, *, plain: bool) -> None:
        self._signs = "#." if plain else "━╌"
        self._dots = "..." if plain else "…"
        self._next = now + FIRST_SHOWN_AFTER
        self._phase = ""
        self._began = now
        self._first = 0

    def line(self, phase: str, done: int, total: int, room: int, now: float) -> str:
        """What to show now in so many columns; empty if it is too early, or too soon again."""
        if phase != self._phase:
            self._phase, self._began, self._first = phase, now, done
        if now < self._next:
            return ""
        self._next = now + _SHOWN_EVERY
        doing = _DOING.get(phase, phase)
        if not total:
            return f"{doing}{self._dots}" if len(doing) + 3 < room else ""
        return fitted(doing, *self._numbers(done, total, now), room)

    def _numbers(self, done: int, total: int, now: float) -> "tuple[str, str, str, str]":
        """Bar, percent, count and time left, which is empty as long as nobody can guess it."""
        done = min(done, total)
        filled = _BAR * done // total
        bar = self._signs[0] * filled + self._signs[1] * (_BAR - filled)
        counted = f"{done:,} of {total:,}"
        if self._phase == words.HASHING:
            counted = f"{megabytes(done)} of {megabytes(total)} MB"
        spent, did = now - self._began, done - self._first
        is_known = did > 0 and spent >= _GUESSED_AFTER
        left = time_left(spent * (total - done) / did) if is_known else ""
        return bar, f"{100 * done // total}%", counted, left


def fitted(doing: str, bar: str, percent: str, counted: str, left: str, room: int) -> str:
    """As much as fits: first the bar is left out, then the count, then what is done."""
    ways = (
        (doing, bar, percent, counted, left),
        (doing, percent, counted, left),
        (doing, percent, left),
        (percent, left),
        (percent,),
    )
    for way in ways:
        line = "  ".join(filter(None, way))
        if len(line) < room:  # the last column stays free: some terminals would begin a new line
            return line
    return ""


def time_left(seconds: float) -> str:
    whole = int(seconds) + 1
    if whole < 100:
        return f"{whole} s left"
    return f"{whole // 60} min left" if whole < 5400 else f"{whole // 3600} h left"


def megabytes(number: int) -> str:
    return f"{number / 1e6:,.0f}"
