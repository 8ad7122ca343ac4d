"""The server with version 1 of the SDK, which asks in the middle of a call."""

from typing import Any

from anyio import to_thread
from mcp import types
from mcp.server.fastmcp import FastMCP  # type: ignore[attr-defined]
from pydantic import BaseModel, Field

from takeback.mcp.answers import Answer, as_sent
from takeback.mcp.tools import ASKING, INSTRUCTIONS, TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.mcp.door import Door


class Consent(BaseModel):
    """What the user answers."""

    apply: bool = Field(description="Apply this plan")


class Server(FastMCP):  # type: ignore[misc]
    """Lists our tools as they are, and hands calls to the door."""

    def __init__(self, door: "Door") -> None:
        super().__init__("takeback", instructions=INSTRUCTIONS, log_level="ERROR")
        self._door = door

    async def list_tools(self) -> list[types.Tool]:
        return [types.Tool.model_validate(tool.as_sent()) for tool in TOOLS.values()]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        if name == ASKING:
            return _result(await self._asked(arguments))
        return _result(await to_thread.run_sync(self._door.call, name, arguments))

    async def _asked(self, arguments: dict[str, Any]) -> Answer:
        context = self.get_context()
        can_ask = types.ClientCapabilities(elicitation=types.ElicitationCapability())
        if not context.session.check_client_capability(can_ask):
            return await to_thread.run_sync(self._door.unasked, arguments)
        asked = await to_thread.run_sync(self._door.ask, arguments)
        if isinstance(asked, Answer):
            return asked
        found = await context.elicit(message=asked, schema=Consent)
        yes = found.action == "accept" and found.data.apply
        return await to_thread.run_sync(
            lambda: self._door.answered(arguments, found.action, yes=yes)
        )


def _result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult.model_validate(as_sent(answer))
