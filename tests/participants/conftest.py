"""One PostgreSQL server for all tests that need one."""

from collections.abc import Iterator

import pytest

from postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server of our own."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def one_url(postgres: PostgresServer) -> str:
    """The address of a database for tests that begin with emptying it."""
    return postgres.new_database()


@pytest.fixture
def url(postgres: PostgresServer, one_url: str) -> str:
    """The address of an empty database."""
    postgres.empty(one_url)
    return one_url


@pytest.fixture
def own_url(postgres: PostgresServer) -> str:
    """The address of a database of one's own, for tests that do more than fill it."""
    return postgres.new_database()
