"""Transactions inside a step: what a step wrote to a database goes when the step fails.

with turn.step("migrate"), savepoint(connection):
    connection.execute("ALTER TABLE orders ADD note text")
"""

from contextlib import contextmanager

from takeback.disk import operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NAME = '"takeback step"'


@contextmanager
def savepoint(connection: "Any") -> "Iterator[None]":  # noqa: ANN401 -- of two drivers
    """Take back what is written through a connection of the harness if the block raises.

    `connection` is one of `sqlite3` or of psycopg 3. In a transaction this is a savepoint; outside
    of one it is a transaction, which commits at the end. Blocks may be nested.
    """
    if hasattr(connection, "transaction"):
        with connection.transaction():
            yield
        return
    operations.sql(connection, f"SAVEPOINT {_NAME}")
    try:
        yield
    except BaseException:
        operations.sql(connection, f"ROLLBACK TO {_NAME}")
        operations.sql(connection, f"RELEASE {_NAME}")
        raise
    operations.sql(connection, f"RELEASE {_NAME}")
