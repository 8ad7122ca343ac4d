"""`takeback hook`: what agents call; see `takeback.hooks`."""

from takeback.cli.parser import HIDDEN, Arguments, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.cli.screen import Screen

COMMAND = Command(
    "hook",
    "handle one event of an agent; agents call this, not you",
    text=(
        "Reads one event as JSON from stdin, records it, and answers in the agent's format. The\n"
        "event itself names the agent and the kind of event. FOLDER is where the agent was\n"
        "started, if the agent reports it. The exit code is always 0: Takeback never stops an\n"
        "agent. `takeback install AGENT` sets it up."
    ),
    operands=("[FOLDER]",),
    examples=(("takeback install claude-code", "let Claude Code call it"),),
    group=HIDDEN,
)


def run(given: "Arguments", screen: "Screen") -> int:
    from takeback.hooks import hook

    del screen
    return hook.main(*given.operands)
