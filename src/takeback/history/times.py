"""Times as people write them: `10m`, `an hour ago`, `14:05`, `noon`, `last friday`.

`now` is passed in; the zone is the one that the caller's clock has.
"""

import time

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NAMES = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_SECONDS = {name: _UNITS[unit] for unit, names in _NAMES.items() for name in names}
_NUMBERS = {"a": "1", "an": "1", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
_NUMBERS |= {"six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}
_HOURS = {"noon": 12, "midnight": 0}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_LONGEST = 40


def parse(text: str, now: float) -> "float | None":
    """The time that is meant, in seconds since 1970; None if the text is no time.

    A time of day without a day is the last one that was; a day without a time is its beginning.
    The name of a day is the last such day, today included; with `last`, before today.
    """
    words = text.casefold().split()
    if not words or len(text) > _LONGEST:
        return None
    if words == ["now"]:
        return now
    span = _span(words)
    if span is not None:
        return now - span
    try:
        return _absolute(words, now)
    except (OverflowError, ValueError):
        # A day that no calendar has, or one that the system cannot count to.
        return None


def _span(words: "list[str]") -> "int | None":
    """How long ago: `10m`, `10 minutes`, each with or without `ago`; `an hour ago`."""
    is_half = False
    if words[-1] == "ago":
        is_half = words[0] == "half"
        words = words[is_half:-1]
        words = [_NUMBERS.get(word, word) for word in words[:1]] + words[1:]
    text = "".join(words)
    digits = len(text) - len(text.lstrip("0123456789"))
    unit = _SECONDS.get(text[digits:])
    if unit is None or not 0 < digits < 10:
        return None
    return int(text[:digits]) * unit // (2 if is_half else 1)


def _absolute(words: "list[str]", now: float) -> "float | None":
    if len(words) == 1 and words[0][10:11] == "t":
        words = [words[0][:10], words[0][11:]]
    is_last = len(words) > 1 and words[0] == "last" and words[1] in _WEEKDAYS
    words = words[is_last:]
    day = _day(words[0], now, is_last=is_last)
    if len(words) == 1 and day is None:
        clock = _clock(words[0])
        return _last(clock, now) if clock is not None else None
    if len(words) > 2 or day is None:
        return None
    text, offset = _zone(words[1]) if len(words) == 2 else ("midnight", None)
    clock = _clock(text)
    if clock is None:
        return None
    moment = _local(day, clock) if offset is None else _universal(day, clock) - offset
    if moment > now and words[0] in _WEEKDAYS:
        year, month, number = day
        return _local((year, month, number - 7), clock)
    return moment


def _day(word: str, now: float, *, is_last: bool) -> "tuple[int, int, int] | None":
    year, month, day, *_, weekday, _, _ = time.localtime(now)
    if word in ("today", "yesterday"):
        return year, month, day - (word == "yesterday")
    if word in _WEEKDAYS:
        past = (weekday - _WEEKDAYS.index(word)) % 7
        return year, month, day - (past or 7 * is_last)
    parts = word.split("-")
    if [len(part) for part in parts] != [4, 2, 2] or not _are_numbers(parts):
        return None
    year, month, day = map(int, parts)
    if not (year >= 1970 and 1 <= month <= 12 and 1 <= day <= _days_in(year, month)):
        raise ValueError(word)
    return year, month, day


def _days_in(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (
        29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    )


def _clock(word: str) -> "tuple[int, int, float] | None":
    if word in _HOURS:
        return _HOURS[word], 0, 0.0
    if word[-2:] in ("am", "pm"):
        return _twelve_hours(word[:-2], is_afternoon=word[-2:] == "pm")
    parts = word.split(":")
    seconds, _, fraction = parts[-1].partition(".") if len(parts) == 3 else ("0", "", "")
    numbers = [*parts[:2], seconds, fraction or "0"]
    if len(parts) not in (2, 3) or not _are_numbers(numbers) or len(parts[1]) != 2:
        return None
    hour, minute, second = map(int, numbers[:3])
    if not (hour < 24 and minute < 60 and second < 60):
        return None
    return hour, minute, float(f"{second}.{numbers[3]}")


def _twelve_hours(word: str, *, is_afternoon: bool) -> "tuple[int, int, float] | None":
    """`3pm` and `3:30pm`; noon is 12pm, midnight 12am."""
    clock = _clock(word if ":" in word else f"{word}:00")
    if clock is None or not 1 <= clock[0] <= 12:
        return None
    return clock[0] % 12 + 12 * is_afternoon, *clock[1:]


def _zone(word: str) -> "tuple[str, int | None]":
    """A time without its zone, and how many seconds that zone is ahead; None if it has none."""
    if word.endswith("z"):
        return word[:-1], 0
    for sign, factor in (("+", 1), ("-", -1)):
        text, mark, zone = word.partition(sign)
        digits = zone.replace(":", "")
        if mark and len(digits) == 4 and _are_numbers([digits]):
            return text, factor * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    return word, None


def _are_numbers(parts: "list[str]") -> bool:
    return all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)


def _last(clock: "tuple[int, int, float]", now: float) -> float:
    """When it last was this time of day."""
    year, month, day = time.localtime(now)[:3]
    found = _local((year, month, day), clock)
    return found if found <= now else _local((year, month, day - 1), clock)


def _local(day: "tuple[int, int, int]", clock: "tuple[int, int, float]") -> float:
    hour, minute, seconds = clock
    whole = int(seconds)
    return time.mktime((*day, hour, minute, whole, 0, 0, -1)) + (seconds - whole)


def _universal(day: "tuple[int, int, int]", clock: "tuple[int, int, float]") -> float:
    year, month, number = day
    days = sum(366 if _days_in(past, 2) == 29 else 365 for past in range(1970, year))
    days += sum(_days_in(year, past) for past in range(1, month)) + number - 1
    hour, minute, seconds = clock
    return days * 86400 + hour * 3600 + minute * 60 + seconds
