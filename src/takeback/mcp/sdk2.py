"""The server with version 2 of the SDK: both eras of the protocol, questions in both."""

from typing import Annotated, Any

from anyio import to_thread
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, InputRequiredResult, Tool
from pydantic import BaseModel, Field

from takeback.mcp.answers import Answer, as_sent
from takeback.mcp.tools import ASKING, INSTRUCTIONS, TOOLS
from takeback.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.mcp.door import Door


class Consent(BaseModel):
    """What the user answers."""

    apply: bool = Field(description="Apply this plan")


class Server(MCPServer[Any]):
    """Lists our tools as they are, and hands calls to the door."""

    def __init__(self, door: "Door") -> None:
        super().__init__(
            "takeback",
            title="Takeback",
            instructions=INSTRUCTIONS,
            version=VERSION,
            log_level="ERROR",
        )
        self._door = door
        self._questions: dict[str, str] = {}

        async def ask(plan: str) -> Elicit[Consent]:
            return Elicit(message=self._questions[plan], schema=Consent)

        async def answered(
            plan: str,
            consent: Annotated[ElicitationResult[Consent], Resolve(ask)],
            because: str = "",
        ) -> CallToolResult:
            given = {"plan": plan, "because": because}
            yes = consent.action == "accept" and consent.data.apply
            return _result(
                await to_thread.run_sync(lambda: door.answered(given, consent.action, yes=yes))
            )

        self.add_tool(answered, name=ASKING)

    async def list_tools(self) -> list[Tool]:
        return [Tool.model_validate(tool.as_sent()) for tool in TOOLS.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if name != ASKING:
            return _result(await to_thread.run_sync(self._door.call, name, arguments))
        asked = await to_thread.run_sync(self._door.ask, arguments)
        if isinstance(asked, Answer):
            return _result(asked)
        self._questions[str(arguments["plan"])] = asked
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return await super().call_tool(name, given, context)
        except MCPError:
            return _result(await to_thread.run_sync(self._door.unasked, arguments))


def _result(answer: Answer) -> CallToolResult:
    return CallToolResult.model_validate(as_sent(answer))
