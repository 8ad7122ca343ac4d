"""An autopilot that works in steps, fails, gets everything back, learns from it and succeeds.

    pip install 'takeback[postgres]' pgserver     # pgserver brings PostgreSQL; it goes without, too
    python examples/autopilot.py

Three plan steps change files, the agent's memory, a SQLite database and a PostgreSQL database. The
third fails half-way, after it changed all four. Takeback undoes that step, and nothing else: your
own edit of `notes.md`, saved in the middle of it, stays. The agent reads the lesson, plans the step
anew, and succeeds. All of it happens in a temporary folder with a history of its own.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import takeback
from takeback.participants.sqlite.participant import SqliteDatabase

GOAL = "Sell in cents"
STEPS = ("read the shop", "add vouchers", "prices in cents")


class Shop:
    """What the agent works on: a folder, its memory, and databases whose connections stay open."""

    def __init__(self, project, session, sqlite, postgres):
        self.project = project
        self.memory = session.memory
        self.root = Path(project.root)
        self.sqlite = sqlite
        self.postgres = postgres

    def user_saves(self, name, text):
        """You, in your editor, while the agent works."""
        (self.root / name).write_text(text)

    @property
    def databases(self):
        return [each for each in (self.sqlite, self.postgres) if each is not None]

    def tables(self, database):
        """Every table of a database with its columns and rows."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
        if database is self.postgres:
            names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        found = {}
        for (name,) in database.execute(names).fetchall():
            rows = database.execute(f"SELECT * FROM {name} ORDER BY 1")
            found[name] = ([column[0] for column in rows.description], rows.fetchall())
        return found

    def state(self):
        """Everything that should come back, to be compared; `notes.md` is yours."""
        files = [path for path in self.root.iterdir() if path.name != "notes.md"]
        return {
            "files": {path.name: path.read_bytes() for path in sorted(files)},
            "memory": dict(self.memory),
            "SQLite": self.tables(self.sqlite),
            "PostgreSQL": self.tables(self.postgres) if self.postgres is not None else {},
        }


# -- the agent ---------------------------------------------------------------------------------


class Agent:
    """A scripted agent: what a model would decide is written down here."""

    def __init__(self, shop):
        self.shop = shop

    def write(self, step, name, text):
        """Its edit tool. It reports each call, so Takeback knows which files are the step's."""
        with step.step("write_file", {"path": name}):
            (self.shop.root / name).write_text(text)

    def work(self, step, lesson=""):
        """One step of the plan."""
        do = {STEPS[0]: self.read, STEPS[1]: self.vouchers, STEPS[2]: self.cents}
        do[step.label](step, lesson)
        self.shop.memory["done"] = [*self.shop.memory.get("done", []), step.label]

    def read(self, step, lesson):
        items = self.shop.sqlite.execute("SELECT name, price FROM items").fetchall()
        self.write(step, "report.md", "".join(f"- {name}: {price}\n" for name, price in items))

    def vouchers(self, step, lesson):
        self.write(step, "models.py", "class Item: price = 0.0\n\n\nclass Voucher: percent = 0\n")
        for database in self.shop.databases:
            database.execute("CREATE TABLE vouchers (code varchar(20) PRIMARY KEY, percent int)")
            database.execute("INSERT INTO vouchers VALUES ('WELCOME', 10)")

    def cents(self, step, lesson):
        """Change all there is; what the first attempt did not think of is in the third row."""
        self.shop.memory["rule"] = "free is 0" if "free" in lesson else "each price is a number"
        self.write(step, "models.py", "class Item: cents = 0\n\n\nclass Voucher: percent = 0\n")
        self.write(step, "settings.toml", 'currency = "cent"\n')
        self.shop.user_saves("notes.md", "buy milk\ncall Ada about the prices\n")
        for database in self.shop.databases:
            database.execute("ALTER TABLE items ADD COLUMN cents int")
            database.execute("CREATE TABLE prices_before AS SELECT * FROM items")
            database.execute("UPDATE vouchers SET percent = percent * 100")
        for database in self.shop.databases:
            for name, price in database.execute("SELECT name, price FROM items").fetchall():
                is_free = price == "free" and self.shop.memory["rule"] == "free is 0"
                cents = 0 if is_free else round(float(price) * 100)
                database.execute(f"UPDATE items SET cents = {cents} WHERE name = '{name}'")


def carry_out(plan, agent, told):
    """The loop of an autopilot: try a step, read the lesson, try again."""
    for label in STEPS:
        for _ in range(2):
            with plan.step(label, key=label, databases=True, raises=False) as step:
                if not step.is_done:
                    agent.work(step, step.lesson.text if step.lesson else "")
            told(step)
            if step.is_done:
                break


# -- the show ----------------------------------------------------------------------------------


class Narrator:
    """Says what happens, and looks whether all is as it was."""

    def __init__(self, shop):
        self.shop = shop
        self.before = shop.state()

    def __call__(self, step):
        number = STEPS.index(step.label) + 1
        dots = "." * (26 - len(step.label))
        if step.is_done:
            print(f"{number}. {step.label} {dots} done")
            self.before = self.shop.state()
            return
        print(f"{number}. {step.label} {dots} failed: {step.error}")
        print(f"\nTakeback undid step {number}, and only that:")
        now = self.shop.state()
        for name, state in now.items():
            same = "exactly as before the step" if state == self.before[name] else "DIFFERS"
            if state:
                print(f"   {name:<12}{same}")
        mine = (self.shop.root / "notes.md").read_text().splitlines()[-1]
        print(f"   notes.md    {mine!r} stays: you wrote it meanwhile")
        print(f"\nThe lesson for the model: {step.lesson.text}")
        print(f"   it was about {', '.join(step.lesson.paths)}\n")
        if now != self.before:
            raise SystemExit("this should not happen")


def begin(project, session, folder, postgres_url):
    """Connect to the databases, and let them take part."""
    sqlite = sqlite3.connect(folder / "shop.db", isolation_level=None)
    project.register(SqliteDatabase("sqlite", str(folder / "shop.db")))
    postgres = None
    if postgres_url:
        import psycopg

        from takeback.participants.postgres.participant import PostgresDatabase

        postgres = psycopg.connect(postgres_url, autocommit=True)
        project.register(PostgresDatabase("postgres", postgres_url, pg_dump=pg_dump()))
    return Shop(project, session, sqlite, postgres)


def fill(shop):
    """What it begins with."""
    (shop.root / "models.py").write_text("class Item: price = 0.0\n")
    (shop.root / "notes.md").write_text("buy milk\n")
    for database in shop.databases:
        database.execute("CREATE TABLE items (name varchar(20) PRIMARY KEY, price varchar(20))")
        for name, price in (("apple", "0.50"), ("bread", "2.40"), ("water", "free")):
            database.execute(f"INSERT INTO items VALUES ('{name}', '{price}')")


def pg_dump():
    """The one that comes with the server of pgserver."""
    from pgserver._commands import POSTGRES_BIN_PATH

    return str(Path(POSTGRES_BIN_PATH) / "pg_dump")


def start_postgres():
    """A server of its own, or None if pgserver and psycopg are not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pgserver
            import psycopg  # noqa: F401

            return pgserver.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    except ImportError:
        print("Without PostgreSQL: `pip install 'takeback[postgres]' pgserver` adds it\n")
        return None


def show_log(folder):
    """What `takeback log` says."""
    print("\n$ takeback log", flush=True)
    environment = {**os.environ, "TAKEBACK_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "takeback", "log"]
    subprocess.run(command, cwd=folder / "shop", env=environment, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-postgres", action="store_true", help="files, memory and SQLite")
    server = None if parser.parse_args().without_postgres else start_postgres()
    with tempfile.TemporaryDirectory(prefix="autopilot-") as place:
        folder = Path(place).resolve()
        (folder / "shop").mkdir()
        with (
            takeback.open(folder / "shop", home=folder / "home") as project,
            project.session("autopilot", id="run 1") as session,
        ):
            shop = begin(project, session, folder, server.get_uri() if server else "")
            fill(shop)
            postgres = " and PostgreSQL" if server else ""
            print(f"{GOAL}: {len(STEPS)} steps on files, memory, SQLite{postgres}\n")
            with session.plan(GOAL, id="cents") as plan:
                carry_out(plan, Agent(shop), Narrator(shop))
            for database in shop.databases:
                database.close()
        show_log(folder)
    if server:
        server.cleanup()


if __name__ == "__main__":
    main()
