"""SQLite without the part of Python's `sqlite3` that we do not use.

The package `sqlite3` imports `datetime` to convert dates, which takes longer than our whole
no-change checkpoint. The C module behind it is all we need; where an interpreter has another
one, the package is used.
"""

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
