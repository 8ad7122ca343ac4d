"""The tables of what the ledger holds beside files, in the order in which they are made."""

LESSONS = """
CREATE TABLE lessons (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    at INTEGER NOT NULL, source TEXT NOT NULL, state TEXT NOT NULL, text TEXT NOT NULL,
    restore INTEGER, turns TEXT NOT NULL, session INTEGER, line INTEGER NOT NULL);
CREATE INDEX lessons_of_restore ON lessons (restore) WHERE restore IS NOT NULL;
CREATE TABLE lessons_told (
    session INTEGER NOT NULL, lesson INTEGER NOT NULL, event INTEGER NOT NULL,
    PRIMARY KEY (session, lesson));
CREATE TABLE relapses (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, at INTEGER NOT NULL,
    turn INTEGER NOT NULL, restore INTEGER NOT NULL, lines INTEGER NOT NULL,
    taken INTEGER NOT NULL, paths TEXT NOT NULL);
CREATE UNIQUE INDEX relapses_of_turn ON relapses (turn, restore);
"""

EFFECTS = """
CREATE TABLE effects (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    at INTEGER NOT NULL, session INTEGER, turn INTEGER, step INTEGER, class TEXT NOT NULL,
    kind TEXT NOT NULL, target TEXT NOT NULL, host TEXT NOT NULL, inverse TEXT NOT NULL,
    rule TEXT NOT NULL, status TEXT NOT NULL, undone TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX effects_of_turn ON effects (turn);
CREATE TABLE refusals (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    at INTEGER NOT NULL, session INTEGER NOT NULL, turn INTEGER, verdict TEXT NOT NULL,
    tool TEXT NOT NULL, summary TEXT NOT NULL, class TEXT NOT NULL, rule TEXT NOT NULL,
    reason TEXT NOT NULL, instead TEXT NOT NULL, trace TEXT NOT NULL);
CREATE TABLE allowances (
    event INTEGER PRIMARY KEY, refusal INTEGER NOT NULL, scope TEXT NOT NULL, used INTEGER);
CREATE TABLE guard_modes (
    event INTEGER PRIMARY KEY, at INTEGER NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    author TEXT NOT NULL);
"""

PARTICIPANTS = """
CREATE TABLE tokens (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, at INTEGER NOT NULL,
    line INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, token TEXT NOT NULL,
    mark TEXT NOT NULL, source INTEGER NOT NULL, problem TEXT NOT NULL);
CREATE INDEX tokens_of_name ON tokens (line, name, event);
CREATE TABLE moves (
    restore INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, how TEXT NOT NULL,
    token TEXT NOT NULL, before TEXT NOT NULL, state TEXT NOT NULL, problem TEXT NOT NULL,
    line INTEGER NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (restore, name));
CREATE INDEX moves_owed ON moves (line, state) WHERE state <> 'done';
CREATE TABLE aborts (
    restore TEXT NOT NULL, name TEXT NOT NULL, line INTEGER NOT NULL, event INTEGER NOT NULL,
    PRIMARY KEY (restore, name));
CREATE TABLE memory (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, at INTEGER NOT NULL,
    session INTEGER NOT NULL, layer TEXT NOT NULL, key TEXT NOT NULL, value TEXT,
    persistent INTEGER NOT NULL);
CREATE INDEX memory_of_key ON memory (session, layer, key, number);
CREATE INDEX memory_by_event ON memory (event);
CREATE TABLE mutations (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    at INTEGER NOT NULL, turn INTEGER NOT NULL, target TEXT NOT NULL, before TEXT NOT NULL,
    after TEXT NOT NULL, given TEXT NOT NULL, inverse TEXT NOT NULL, state TEXT NOT NULL);
CREATE INDEX mutations_of_turn ON mutations (turn);
CREATE INDEX mutations_of_target ON mutations (target, event);
"""

RESCUES = """
CREATE TABLE rescues (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    at INTEGER NOT NULL, turn INTEGER, step INTEGER, line INTEGER, state TEXT NOT NULL,
    areas TEXT NOT NULL, tops TEXT NOT NULL, digest TEXT NOT NULL, files INTEGER NOT NULL,
    bytes INTEGER NOT NULL, beyond INTEGER NOT NULL);
CREATE INDEX rescues_of_turn ON rescues (turn) WHERE turn IS NOT NULL;
CREATE INDEX rescues_there ON rescues (number) WHERE state <> 'dropped';
"""

WORK_PLANS = """
CREATE TABLE work_plans (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event INTEGER NOT NULL,
    started INTEGER NOT NULL, session INTEGER, own_id TEXT NOT NULL, label TEXT NOT NULL,
    status TEXT NOT NULL, ended INTEGER, line INTEGER NOT NULL);
CREATE UNIQUE INDEX work_plans_of_agents ON work_plans (line, own_id) WHERE own_id <> '';
CREATE TABLE plan_steps (
    turn INTEGER PRIMARY KEY, plan INTEGER NOT NULL, event INTEGER NOT NULL, key TEXT NOT NULL,
    databases INTEGER NOT NULL, status TEXT NOT NULL, result TEXT, lesson TEXT NOT NULL,
    back INTEGER);
CREATE INDEX plan_steps_of_plan ON plan_steps (plan, turn);
"""

ALL = LESSONS + PARTICIPANTS + RESCUES + WORK_PLANS + EFFECTS
NAMES = tuple(line.split()[2] for line in ALL.splitlines() if line.startswith("CREATE TABLE "))
"""All of them; they follow from events, as the other projections do."""

SOURCES = (
    "SELECT t.source FROM tokens t WHERE t.event > horizon OR NOT EXISTS (SELECT 1 FROM tokens n"
    " WHERE n.line = t.line AND n.name = t.name AND n.event > t.event AND n.event <= horizon)"
)
"""The captures whose content is needed: in effect at the horizon, or named since."""
