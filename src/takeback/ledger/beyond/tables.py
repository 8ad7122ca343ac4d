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

NAMES = ("lessons", "lessons_told", "relapses")
"""All of them; they follow from events, as the other projections do."""
