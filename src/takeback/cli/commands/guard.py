"""`takeback guard`: what a command would do, and what the guard does about it."""

from takeback.cli.parser import AGENTS, Arguments, Command
from takeback.cli.screen import Screen
from takeback.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = Command(
    "guard",
    "judge commands before they run",
    text="Classifies what a command would do, from reading a file to what nothing can take back.",
    operands=("[ACTION]", "[ID]", "[-- COMMAND…]"),
    examples=(("takeback guard explain -- git push --force", "what this would do"),),
    group=AGENTS,
)


def run(given: "Arguments", screen: "Screen") -> int:
    action = given.operands[0] if given.operands else "explain"
    found = _ACTIONS.get(action)
    if found is None:
        raise UsageError(
            f"`guard` has no action `{action}`", hint="`takeback guard explain -- COMMAND`"
        )
    return found(given, screen)


def _explain(given: "Arguments", screen: "Screen") -> int:
    import os
    import shlex

    from takeback import environment
    from takeback.guard.judge import judge
    from takeback.model import words

    command = shlex.join(given.rest) if len(given.rest) > 1 else "".join(given.rest)
    here = os.getcwdb()
    found = judge(
        "Bash", {"command": command}, kind=words.SHELL, cwd=here, root=here,
        home=environment.user_home(),
    )  # fmt: skip
    if screen.json:
        screen.data(found.as_json())
    else:
        screen.say(found.effect)
    return 0


_ACTIONS: "dict[str, Callable[[Arguments, Screen], int]]" = {"explain": _explain}
