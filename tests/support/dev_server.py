"""A development server that keeps its database open: a process that answers line by line."""

import subprocess
import sys
from typing import Any, Self


class DevServer:
    """Starts one, and asks it."""

    def __init__(self, kind: str, place: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, kind, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def notes(self) -> list[str]:
        return self._ask("notes").split()

    def add(self, note: str) -> None:
        assert self._ask(f"add {note}") == "added"

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer.startswith("="), f"the server failed: {answer}"
        return answer[1:].strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


def connections(kind: str, place: str) -> list[Any]:
    """A pool of three, which stay open."""
    if kind == "sqlite":
        import sqlite3

        return [sqlite3.connect(place, isolation_level=None) for _ in range(3)]
    import psycopg

    return [psycopg.connect(place, autocommit=True, prepare_threshold=0) for _ in range(3)]


def serve(kind: str, place: str) -> None:
    """Answer until nobody asks; all connections have to agree."""
    pool, mark = connections(kind, place), "?" if kind == "sqlite" else "%s"
    query = "SELECT * FROM notes ORDER BY note <> 'one', note <> 'two'"
    for each in pool:
        each.execute(query).fetchall()
    for line in sys.stdin:
        what, _, note = line.strip().partition(" ")
        try:
            if what == "add":
                pool[0].execute(f"INSERT INTO notes (note) VALUES ({mark})", (note,))
                answer = "=added"
            else:
                found = [[str(row[0]) for row in each.execute(query).fetchall()] for each in pool]
                answer = "=" + " ".join(found[0]) if found[0] == found[1] == found[2] else "!torn"
        except Exception as problem:
            answer = f"!{problem}".replace("\n", " ")
        print(answer, flush=True)  # noqa: T201 -- the answer


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
