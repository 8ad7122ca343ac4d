"""Reasons as people read them."""

from collections.abc import Iterable

from takeback.cli.text.reason_text import of_remark, sentence
from takeback.model.reasons import Reason

__all__ = ["of_remark", "sentence", "spoken"]


def spoken(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """A sentence for each."""
    return tuple(map(sentence, reasons))
