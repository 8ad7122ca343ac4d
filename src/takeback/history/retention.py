"""How long files are kept: the settings, and which checkpoints may let theirs go.

    1 … 40   41    42 … 60              numbers of checkpoints
    ├ gone ┤ pin ├ gone ┤ H ─────► kept

Everything from the horizon H on is kept. Below it only single states are: those that somebody wants
to keep, and those before turns that never ended. A turn, and what can be undone, needs all from its
first state on; so what began below the highest number that is gone is no longer kept.

What is still kept: the one place that every reader of a checkpoint's files passes.
"""

import time

from takeback.errors import DamagedStoreError, NoLongerKeptError, UsageError
from takeback.model.reasons import Action
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from takeback.ledger.ledger import Ledger
    from takeback.ledger.log.events import CheckpointRow

    Setting = Callable[[str, object], object]

    T = TypeVar("T")


DAYS, TURNS, SIZE = 30, 200, 5_000_000_000
LEAST_TURNS = 20
"""So many of the newest turns are kept however large the history is."""
AGE, TO_SIZE, ASKED = "age", "size", "asked"
"""Why files went: the setting, the size of the history, or somebody said how old they may be."""

_DAY = 86_400 * 10**9
_QUIET = 7 * _DAY
"""A turn that runs is taken to be abandoned if its session was quiet for so long, and for longer
than files are kept."""
_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
_SPANS = {"": 1.0, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0, "h": 1 / 24}

MANY_PACKS = 50
_SMALL = 4 << 20


class Rules(Value):
    """How long files are kept. `days` is None where nothing goes by age."""

    days: "float | None" = DAYS
    turns: int = TURNS
    size_cap: int = SIZE
    size_cap_trims: bool = False


class Trim:
    """Which checkpoints let their files go, as ranges of numbers, and how many turns with them."""

    __slots__ = ("checkpoints", "horizon", "ranges", "turns")

    def __init__(self, horizon: int, numbers: "Iterable[int]", turns: int) -> None:
        self.horizon = horizon
        self.ranges: list[tuple[int, int]] = []
        self.checkpoints = 0
        self.turns = turns
        for number in numbers:
            self.checkpoints += 1
            if self.ranges and self.ranges[-1][1] == number - 1:
                self.ranges[-1] = (self.ranges[-1][0], number)
            else:
                self.ranges.append((number, number))


def from_settings(setting: "Setting") -> Rules:
    """The rules as the settings say them, each with a default."""
    days = setting("days", DAYS)
    trims = setting("size_cap_trims", False)
    if not isinstance(trims, bool):
        raise UsageError(f"`size_cap_trims` is true or false, not {trims!r}", hint=_WHERE)
    turns = setting("turns", TURNS)
    if not isinstance(turns, int) or isinstance(turns, bool) or turns < 0:
        raise UsageError(f"`turns` must be a whole number, not {turns!r}", hint=_WHERE)
    cap = size(setting("size_cap", SIZE))
    return Rules(age(days), max(turns, LEAST_TURNS), cap, size_cap_trims=trims)


_WHERE = "it is in the table `[retention]` of `config.toml`"


def age(given: object) -> "float | None":
    """An age in days: `30`, `30d`, `2w`; None for `forever` and 0."""
    if given in (0, "0", "forever"):
        return None
    number, unit = _parted(given)
    if number is None or unit not in _SPANS or number <= 0:
        raise UsageError(
            f"`{given}` is not an age", hint="use `30d`, `2w`, `6m` or `1y`; `forever` keeps all"
        )
    return number * _SPANS[unit]


def size(given: object) -> int:
    """A size in bytes: `5 GB` (powers of 1000), `5 GiB` (powers of 1024), or a number."""
    number, unit = _parted(given)
    unit = unit.removesuffix("b") if len(unit) > 1 else unit
    if number is None or unit not in _UNITS or number < 0:
        raise UsageError(f"`{given}` is not a size", hint="use `5 GB` or `800 MB`")
    return int(number * _UNITS[unit])


def _parted(given: object) -> "tuple[float | None, str]":
    """The number and the unit of something like `5 GB`."""
    text = str(given).strip().lower() if isinstance(given, int | float | str) else ""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        number = float(digits)
    except ValueError:
        return None, ""
    known = -1e18 < number < 1e18 and not isinstance(given, bool)
    return number if known else None, text[len(digits) :].strip()


def floor(ledger: "Ledger") -> int:
    """The highest number of the line whose files are gone: what began there is no longer kept."""
    return ledger.care.floor()


def is_due(ledger: "Ledger", rules: Rules, now: int) -> bool:
    """Whether it is time to put a store in order: many small packs, or something to let go.

    What is old is looked for once a day.
    """
    if ledger.care.small_packs(_SMALL) > MANY_PACKS:
        return True
    last = ledger.care.last_run()
    if rules.days is None or (last is not None and 0 <= now - last < _DAY):
        return False
    # Asked at the end of each session: one state tells whether anything is old at all.
    created = ledger.care.oldest_above(ledger.care.trimmed())
    is_old = created is not None and created < now - rules.days * _DAY
    return is_old and bool(decide(ledger, rules, now).ranges)


def decide(ledger: "Ledger", rules: Rules, now: int, *, beyond: int = 0) -> Trim:
    """What may go, by age and by number; `beyond` is a horizon that the size of all asks for."""
    newest = ledger.care.newest()
    cutoff = -1 if rules.days is None else now - int(rules.days * _DAY)
    horizon = min(newest, _by_rules(ledger, rules, cutoff, newest))
    if beyond > horizon:
        horizon = min(newest, beyond, _at_least(ledger, LEAST_TURNS, newest))
    # A turn that is running, or was at the horizon, is kept whole; a session is not.
    quiet_since = min(cutoff, now - _QUIET)
    horizon = _at_most(horizon, ledger.care.begin_of_running_turns(quiet_since))
    horizon = _at_most(horizon, ledger.care.begin_of_work_across(horizon))
    return _going(ledger, horizon)


def _by_rules(ledger: "Ledger", rules: Rules, cutoff: int, newest: int) -> int:
    """The horizon by age and by number: the state of that moment is kept, and so is what came."""
    if rules.days is None:
        return 0
    # By the first that is younger, not by the last that is older: clocks go wrong, and then
    # rather too much is kept.
    younger = ledger.care.first_since(cutoff)
    by_age = newest if younger is None else younger - 1
    return min(by_age, _at_least(ledger, rules.turns, newest))


def _at_least(ledger: "Ledger", many: int, newest: int) -> int:
    """Where the newest turns that changed something begin, and the newest states."""
    first = ledger.care.begin_of_newest_turns(many)
    by_states = max(newest - many + 1, 1)
    return by_states if first is None else min(first, by_states)


def _going(ledger: "Ledger", horizon: int) -> Trim:
    """Everything below a horizon but single states that are kept; also those no longer wanted."""
    below = ledger.care.trimmed()
    numbers = ledger.care.with_files_below(max(horizon, below + 1))
    last = max(numbers, default=0)
    turns = ledger.care.turns_begun_in(below + 1, last) if last > below else 0
    return Trim(max(horizon, below + 1), numbers, turns)


def _at_most(horizon: int, bound: "int | None") -> int:
    return horizon if bound is None else min(horizon, bound)


_HINT = (Action("log-tells"), Action("keep"))


def require(ledger: "Ledger", row: "CheckpointRow") -> "CheckpointRow":
    """A checkpoint whose files can be read; an error that says since when they cannot."""
    if row.gone is not None:
        raise NoLongerKeptError(
            f"the files of `{row.id}` are no longer kept{_since(ledger, row.gone)}", hint=_HINT
        )
    return row


def is_whole(ledger: "Ledger", before: int) -> bool:
    """Whether all later states of the line are kept, so that what began there can be undone."""
    return before > floor(ledger)


def require_whole(ledger: "Ledger", before: int, what: str) -> None:
    """An error unless what began at a state can still be taken back or put back."""
    if not is_whole(ledger, before):
        gone = ledger.care.first_trim_from(before)
        raise NoLongerKeptError(
            f"the files of {what} are no longer kept{_since(ledger, gone)}", hint=_HINT
        )


def _since(ledger: "Ledger", event: "int | None") -> str:
    """Since when, and why, as far as the log tells."""
    run = ledger.care.run(event)
    if run is None:
        return ""
    at, told = run
    day = time.strftime("%d %b %Y", time.localtime(at / 1e9)).lstrip("0")
    if told.get("why") == TO_SIZE:
        return f" (since {day}, to make the history smaller)"
    days = told.get("days")
    return f" (since {day}, older than {days:g} days)" if days else f" (since {day})"


class Reading:
    """While a checkpoint is read without the lock: if its files go meanwhile, it says so.

    What is missing then is no damage.
    """

    __slots__ = ("_ledger", "_row")

    def __init__(self, ledger: "Ledger", row: "CheckpointRow") -> None:
        self._ledger = ledger
        self._row = require(ledger, row)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if isinstance(problem, DamagedStoreError):
            now = self._ledger.checkpoints.numbered(self._row.number)
            if now is not None:
                require(self._ledger, now)


def again(ledger: "Ledger", read: "Callable[[], T]") -> "T":
    """What `read` returns; if something is forgotten while it reads without the lock, once more.

    Then states are others than they were looked up, and what they named is not there any more.
    """
    while True:
        before = ledger.forgets.last()
        try:
            return read()
        except DamagedStoreError:
            if ledger.forgets.last() == before:
                raise
