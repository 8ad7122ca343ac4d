"""The door of agents' hooks: one event in, one answer out, always exit 0."""
