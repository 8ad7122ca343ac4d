"""The turn that does everything, by the real clients: edit tools and shell, undo and redo."""

from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
from clients.model import Say
from clients.place import Place, wait_until
from clients.real import DEEP, Client
from clients.torture_turn import answers, require_exact_ways_back
from torture_checks import Git


@pytest.mark.parametrize("inside", ["", "sub/folder"], ids=["top", "subfolder"])
@pytest.mark.parametrize("git", [True, False], ids=["git", "plain"])
@pytest.mark.parametrize("kind", DEEP)
def test_everything_comes_back_and_goes_again(
    kind: type[Client], git: bool, inside: str, make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """All rows are undone and redone exactly, nothing of the user's is lost, git is not touched."""
    place = make_place(git=git, full=True)
    tree, here = place.tree, place.tree / inside
    client = kind(place)
    client.install()
    if inside:
        client.may_edit(tree)
    if not client.GOES_ON_ELSEWHERE:
        place.takeback("checkpoint")  # the project is the whole tree
    first = tree if client.GOES_ON_ELSEWHERE else here
    warm_up = client.shell(f"echo warm > {tree}/warm.txt")
    client.prompt(place.model.plays("warm up", warm_up), where=first)
    before, users = oracle.picture(tree), Git(tree)
    client.prompt(place.model.plays("do everything", *answers(client, tree)), where=here)
    require_exact_ways_back(client, here, before, users, tmp_path)


@pytest.mark.parametrize("kind", DEEP)
def test_everything_comes_back_in_a_terminal(
    kind: type[Client], make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """The same, with both prompts at a terminal, while the client still sits there."""
    place = make_place(full=True)
    tree = place.tree
    client = kind(place)
    client.install()
    screen = client.sit_down(
        place.model.plays("warm up", client.shell("echo warm > warm.txt"), Say("It is warm."))
    )
    try:
        wait_until("it is warm", lambda: statuses(place) == ["done"])
        before, users = oracle.picture(tree), Git(tree)
        place.model.plays("do everything", *answers(client, tree))
        screen.type("do everything")
        wait_until("everything is done", lambda: statuses(place) == ["done", "done"])
        require_exact_ways_back(client, tree, before, users, tmp_path)
    finally:
        screen.close()


def statuses(place: Place) -> list[str]:
    """How the turns ended, the oldest first."""
    return [turn["status"] for turn in place.turns()]
