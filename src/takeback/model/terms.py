"""The words of the log: how things end, what steps are, who did it, what happened to a path."""

RUNNING, DONE, FAILED, INTERRUPTED = "running", "done", "failed", "interrupted"
STATUSES = (RUNNING, DONE, FAILED, INTERRUPTED)
WAITING, REFUSED = "waiting", "refused"
"""What else a step may be: nobody knows whether it has begun; it never did."""

EDIT, SHELL, READ, AGENT, OTHER = "edit", "shell", "read", "agent", "other"
KINDS = (EDIT, SHELL, READ, AGENT, OTHER)
"""What a step may claim depends on its kind: see `engine/attribution`."""

LONGEST_SILENCE = 3600 * 1_000_000_000
"""A window without an end closes so long after its session's last sign of life: nanoseconds."""

STEP, YOU, SHARED, RESTORE = "step", "you", "shared", "restore"
NAMED, BY_SHELL, BY_TURN = "named", "shell", "turn"
PERHAPS = "perhaps"
"""Of a step of which nobody knows when it began: it may as well be the user's."""

WRITE, CREATE, DELETE, MODE = "write", "create", "delete", "mode"
LINK, MKDIR, RMDIR, RENAME = "link", "mkdir", "rmdir", "rename"
MERGE = "merge"
KEEP_MINE, TAKE_BACK, MARKERS, SKIP = "keep-mine", "take-back", "markers", "skip-conflicts"
DECISIONS = (KEEP_MINE, TAKE_BACK, MARKERS, SKIP)
"""How a conflict can be decided."""
UNDO, REDO, ROLLBACK = "undo", "redo", "rollback"
"""What a restore is."""
OMIT = "omit"
"""A path that appeared and is not covered, so that it cannot be taken back."""
