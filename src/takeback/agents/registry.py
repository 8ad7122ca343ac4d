"""The agents that Takeback knows: one file each, registered here and nowhere else.

An agent is recognized by its payloads, never by arguments: several hosts run the same installed
command line, each in its own way.
"""

from takeback.agents.dialects import (
    claude_code,
    cline,
    codex,
    copilot,
    cursor,
    droid,
    gemini_cli,
    goose,
    kilo,
    kimi_code,
    mistral_vibe,
    opencode,
    pi,
    qwen_code,
    unknown,
    vs_code,
    windsurf,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Agent, Payload
    from takeback.effects.modes import Signs

REGISTERED: "tuple[Agent, ...]" = (
    kilo.AGENT,
    opencode.AGENT,
    pi.AGENT,
    cursor.AGENT,
    kimi_code.AGENT,
    qwen_code.AGENT,
    droid.AGENT,
    gemini_cli.AGENT,
    cline.AGENT,
    goose.AGENT,
    mistral_vibe.AGENT,
    windsurf.AGENT,
    copilot.AGENT,
    codex.AGENT,
    vs_code.AGENT,
    claude_code.AGENT,
    unknown.AGENT,
)
"""The first that claims a payload gets it: those with a sign of their own, then Claude Code, whose
payloads others copied; `unknown` claims all."""


def agent_of(payload: "Payload") -> "Agent":
    """The agent that sent a payload."""
    return next(agent for agent in REGISTERED if agent.claims(payload))


def find_agent(name: str) -> "Agent | None":
    """The agent of a name, as the log has it."""
    return next((agent for agent in REGISTERED if agent.name == name), None)


def installable() -> "dict[str, Agent]":
    """The agents whose settings can hold our hooks, by name."""
    known = sorted(REGISTERED, key=lambda agent: agent.name)
    return {agent.name: agent for agent in known if agent.folder}


def signs() -> "Signs":
    """By what their processes are known; not those of an editor, where the user is at work."""
    from takeback.effects.modes import Signs

    return Signs(
        frozenset(
            agent.program.encode() for agent in REGISTERED if agent.program and not agent.is_editor
        ),
        tuple(agent.program_folder.encode() for agent in REGISTERED if agent.program_folder),
        frozenset(mark.encode() for agent in REGISTERED for mark in agent.marks),
    )
