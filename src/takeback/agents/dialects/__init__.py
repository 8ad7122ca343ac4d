"""How each agent speaks: one file per agent, with everything about it."""
