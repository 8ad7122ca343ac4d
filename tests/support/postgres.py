"""A real PostgreSQL server from a wheel, one for all tests of a process, and databases on it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import psycopg

with warnings.catch_warnings():
    # It looks for a runtime folder, which root does not have.
    warnings.simplefilter("ignore")
    from pgserver._commands import POSTGRES_BIN_PATH
    from pgserver.postgres_server import get_server

BIN = Path(POSTGRES_BIN_PATH)
PG_DUMP = str(BIN / "pg_dump")


class PostgresServer:
    """It runs as an account of its own, in a folder of its own, and syncs nothing."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="takeback-pg-")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = get_server(self._folder, cleanup_mode=None)
        self._made = 0
        self.admin("ALTER SYSTEM SET fsync = off")
        self.admin("SELECT pg_reload_conf()")

    def url(self, database: str = "postgres") -> str:
        found: str = self._server.get_uri(database=database)
        return found

    def admin(self, statement: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as session:
            session.execute(statement.encode())

    def new_database(self) -> str:
        """The address of a new and empty database."""
        self._made += 1
        name = f"app{self._made}"
        self.admin(f"CREATE DATABASE {name}")
        return self.url(name)

    def empty(self, url: str) -> None:
        """Drop what tests made in the schema `public`."""
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("DROP SCHEMA public CASCADE")
            session.execute("CREATE SCHEMA public")

    def stop(self) -> None:
        """End it at once: nobody needs what it holds."""
        pid = self._server.get_pid()
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        while os.path.exists(f"{self._folder}/postmaster.pid"):
            time.sleep(0.02)
        shutil.rmtree(self._folder, ignore_errors=True)


def run_psql(url: str, script: str) -> None:
    """What an agent does in a shell; the first error ends it."""
    words = [str(BIN / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url]
    done = subprocess.run(words, input=script, text=True, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def dumped(url: str) -> str:
    """What pg_dump says of a database, without what it makes by chance."""
    words = [PG_DUMP, "--no-password", "-d", url]
    text = subprocess.run(words, text=True, check=True, capture_output=True).stdout
    return "\n".join(line for line in text.splitlines() if not line.startswith("\\"))
