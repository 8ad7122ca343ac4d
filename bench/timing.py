"""Repeated measurements of several contenders, taken in turns."""

import statistics
from collections.abc import Callable, Sequence

from contenders import Contender


class Series:
    """The seconds that one contender took, one number per round."""

    def __init__(self, seconds: Sequence[float] = ()) -> None:
        self.seconds = list(seconds)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)

    @property
    def p90(self) -> float:
        """Nine of ten rounds were at least as fast."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, round(0.9 * (len(ordered) - 1)))]


Times = dict[str, Series]


def take_turns(
    contenders: Sequence[Contender], rounds: int, between: Callable[[], object] = lambda: None
) -> Times:
    """Let all contenders take a checkpoint in each round, each round in another order."""
    times: Times = {contender.name: Series() for contender in contenders}
    for number in range(rounds):
        between()
        for place in range(len(contenders)):
            contender = contenders[(place + number) % len(contenders)]
            times[contender.name].seconds.append(contender.take())
    return times
