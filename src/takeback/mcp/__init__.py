"""The door for agents that call tools: `takeback mcp`, a server of the Model Context Protocol."""
