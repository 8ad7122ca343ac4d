"""SQLite without the package `sqlite3`, which imports `datetime` to convert dates.

The C module behind it is all that we use. An interpreter without it has the package.
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
