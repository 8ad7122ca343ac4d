"""The page about the real clients says which there are, and what they cannot play."""

import os
from pathlib import Path

import torture
from clients.real import CLIENTS, DEEP

PAGE = Path(__file__).parents[2] / "docs/contributing/clients.md"
BEGIN, END = "<!-- clients: made by tests/house/test_client_table.py -->\n", "<!-- end -->\n"


def table() -> str:
    """Each client: where it comes from, how much is tested, which rows it cannot play."""
    lines = ["| client | package | tests | rows of the torture turn that it cannot play |"]
    lines.append("|---|---|---|---|")
    for client in CLIENTS:
        package = client.PACKAGE
        tests = "deep" if client in DEEP else "basic"
        rows = "; ".join(f"`{row}`: {why}" for row, why in client.cannot_play.items())
        told = f"{type(package).__name__} `{package.name}` {package.version}"
        lines.append(f"| {client.NAME} | {told} | {tests} | {rows or 'none'} |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_the_clients() -> None:
    """`UPDATE_SCREENS=1` writes the table into the page."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    shown, end, after = rest.partition(END)
    assert begin, BEGIN
    assert end, END
    if os.environ.get("UPDATE_SCREENS"):
        PAGE.write_text(before + begin + "\n" + table() + "\n" + end + after)
    else:
        assert shown.strip() == table().strip()


def test_the_page_says_what_each_file_of_tests_shows() -> None:
    """A file that it does not name is a promise that nobody finds."""
    page = PAGE.read_text()
    files = (Path(__file__).parents[1] / "clients").glob("test_*.py")
    assert [path.name for path in sorted(files) if f"`tests/clients/{path.name}`" not in page] == []


def test_only_rows_that_exist_are_left_out() -> None:
    """A row that was renamed would be left out for no reason."""
    for client in CLIENTS:
        assert set(client.cannot_play) <= set(torture.ROWS), client.NAME
