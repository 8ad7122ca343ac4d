"""Settings files of agents: read, edited as text and replaced with care; what we wrote where."""
