"""Kilo: a fork of OpenCode with its plugins, unchanged. Recorded from the command line 7.7.9."""

from takeback.agents.dialects.opencode import OpenCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.agent import Payload


class Kilo(OpenCode):
    """The same plugin, which tells by its program whom it serves."""

    name = "kilo"
    title = "Kilo"
    folder = ".config/kilo"
    project_folder = ".kilo"
    program = "kilo"
    variable = "KILO_CONFIG_DIR"
    proven = "7.7.9"
    not_seen = (*OpenCode.not_seen, "the end of `background_process`")

    def claims(self, payload: "Payload") -> bool:
        """It says so, or it is an event as it was recorded from it."""
        known = payload.get("agent")
        return known == self.name or (known is None and "hook" in payload and "input" in payload)


AGENT = Kilo()
