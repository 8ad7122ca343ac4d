"""SQLite without the part of Python's `sqlite3` that we do not use.

The package `sqlite3` imports `datetime` to convert dates, which takes longer than our whole
no-change checkpoint. The C module behind it is all we need; where an interpreter has another
one, the package is used.

The C module wants just one thing of Python: `functools.lru_cache`, for prepared statements. All
of `functools` takes 4 ms to import, an eighth of a cold start, so where nobody has imported it
yet the C module is shown a stand-in that has only that, made of the same C function.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _lru_cache(most: int) -> "Callable[[Callable[..., object]], object]":
    """`functools.lru_cache` as far as the C module uses it."""
    from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]

    return lambda function: _lru_cache_wrapper(function, most, False, tuple)


def _stand_in() -> object:
    module = type(sys)("functools")
    module.lru_cache = _lru_cache  # type: ignore[attr-defined]
    return module


_shown = None if "functools" in sys.modules else _stand_in()
if _shown is not None:
    sys.modules["functools"] = _shown  # type: ignore[assignment]
try:
    try:
        from _sqlite3 import (
            SQLITE_ERROR,
            Connection,
            Cursor,
            DatabaseError,
            OperationalError,
            ProgrammingError,
            connect,
        )
    finally:
        if _shown is not None:
            del sys.modules["functools"]
except ImportError:
    from sqlite3 import (
        SQLITE_ERROR,
        Connection,
        Cursor,
        DatabaseError,
        OperationalError,
        ProgrammingError,
        connect,
    )

__all__ = (
    "SQLITE_ERROR",
    "Connection",
    "Cursor",
    "DatabaseError",
    "OperationalError",
    "ProgrammingError",
    "connect",
)
