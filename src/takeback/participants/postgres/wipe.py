"""Empties a database but for what no dump can make again, in a transaction of a restore.

A dump says what was there, and nothing of what was not: what a turn added has to be dropped first.
Extensions stay where they are as they were. The schema `public` stays, too, and gets back its
owner and its privileges; what is in it is dropped one by one.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from takeback.participants.postgres.server import Warm

_HEAD_EXTENSIONS = b"""
SELECT extname, extversion, nspname FROM pg_extension
JOIN pg_namespace n ON n.oid = extnamespace ORDER BY 1
"""

_HEAD_PUBLIC = b"""
SELECT pg_get_userbyid(nspowner), obj_description(oid, 'pg_namespace'), ARRAY(
  SELECT format('GRANT %s ON SCHEMA public TO %s%s', privilege_type,
    CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM aclexplode(coalesce(nspacl, acldefault('n', nspowner))) ORDER BY 1)
FROM pg_namespace WHERE nspname = 'public'
"""

_TABLES = b"""
SELECT format('%I.%I', nspname, relname) FROM pg_class c
JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p') AND nspname !~ '^pg_' AND nspname <> 'information_schema'
  AND NOT EXISTS (SELECT 1 FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
ORDER BY c.oid
"""

_OTHERS = (
    ("EVENT TRIGGER", "pg_event_trigger", "evtname"),
    ("PUBLICATION", "pg_publication", "pubname"),
    ("FOREIGN DATA WRAPPER", "pg_foreign_data_wrapper", "fdwname"),
    ("LANGUAGE", "pg_language", "lanname"),
    ("ACCESS METHOD", "pg_am", "amname"),
)
"""What is in no schema: how it is called, and where the catalog has it."""

_OTHER = """
SELECT format('DROP {kind} %I CASCADE', {name}) FROM {table} t
WHERE oid >= 16384 AND NOT EXISTS (SELECT 1 FROM pg_depend
  WHERE classid = '{table}'::regclass AND objid = t.oid AND deptype = 'e')
"""

_SCHEMAS = b"""
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace n
WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'public')
  AND NOT EXISTS (SELECT 1 FROM pg_depend
    WHERE classid = 'pg_namespace'::regclass AND objid = n.oid AND deptype = 'e')
"""

_IN_PUBLIC = b"""
SELECT format('DROP %s IF EXISTS %s CASCADE', o.type, o.identity)
FROM (SELECT DISTINCT classid, objid FROM pg_depend d
  WHERE refclassid = 'pg_namespace'::regclass AND deptype = 'n'
    AND refobjid = (SELECT oid FROM pg_namespace WHERE nspname = 'public')
    AND classid <> 'pg_extension'::regclass
    AND NOT EXISTS (SELECT 1 FROM pg_depend e
      WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e')) found,
  pg_identify_object(classid, objid, 0) o
ORDER BY o.type NOT IN ('table', 'foreign table'), o.type NOT LIKE '%view', 1
"""

_CASTS = b"""
SELECT format('DROP CAST IF EXISTS (%s AS %s)', castsource::regtype, casttarget::regtype)
FROM pg_cast c WHERE oid >= 16384 AND NOT EXISTS (SELECT 1 FROM pg_depend
  WHERE classid = 'pg_cast'::regclass AND objid = c.oid AND deptype = 'e')
"""

_DEFAULTS = b"""
WITH changed AS (
  SELECT oid, defaclacl AS acl, acldefault(CASE defaclobjtype WHEN 'S' THEN 's'
      ELSE defaclobjtype END::"char", defaclrole) AS usual, defaclnamespace AS schema,
    format('ALTER DEFAULT PRIVILEGES FOR ROLE %I', pg_get_userbyid(defaclrole))
      || CASE defaclnamespace WHEN 0 THEN ''
           ELSE ' IN SCHEMA ' || defaclnamespace::regnamespace END AS who,
    CASE defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS'
      WHEN 'T' THEN 'TYPES' WHEN 'n' THEN 'SCHEMAS' END AS what
  FROM pg_default_acl)
SELECT format('%s REVOKE ALL ON %s FROM %s', who, what,
  CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM changed, aclexplode(acl) WHERE what IS NOT NULL
UNION ALL
SELECT format('%s GRANT %s ON %s TO %s', who, privilege_type, what,
  CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM changed, aclexplode(usual) WHERE what IS NOT NULL AND schema = 0
"""


def head(session: "Warm") -> "dict[str, Any]":
    """What pg_dump does not say, and a restore needs."""
    rows = session.execute(_HEAD_EXTENSIONS).fetchall()
    public = session.execute(_HEAD_PUBLIC).fetchone()
    return {
        "extensions": [list(row) for row in rows],
        "public": list(public) if public is not None else None,
    }


def tables(session: "Warm") -> "list[str]":
    """The tables of users, quoted."""
    return [str(name) for (name,) in session.execute(_TABLES).fetchall()]


def statements(session: "Warm", wanted: "dict[str, Any]") -> "list[str]":
    """What has to be done before a dump is loaded, in this order."""
    found: list[str] = []
    for kind, table, name in _OTHERS:
        found += _column(session, _OTHER.format(kind=kind, table=table, name=name).encode())
    found += _extensions(session, wanted)
    found += _column(session, _CASTS)
    found += _column(session, _DEFAULTS)
    found += _column(session, _SCHEMAS)
    return found + _public(session, wanted)


def missing(session: "Warm", wanted: "dict[str, Any]") -> "list[str]":
    """The extensions that are not as they were, after a dump was loaded."""
    rows = [list(row) for row in session.execute(_HEAD_EXTENSIONS).fetchall()]
    return [" ".join(each) for each in wanted["extensions"] if each not in rows]


def _extensions(session: "Warm", wanted: "dict[str, Any]") -> "list[str]":
    query = (
        b"SELECT extname, extversion, nspname, extconfig IS NULL, format('%I', extname)"
        b" FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
    )
    rows = session.execute(query).fetchall()
    drops = [
        f"DROP EXTENSION IF EXISTS {row[4]} CASCADE"
        for row in rows
        # One that has rows of users in its tables is made again, with the rows of the dump.
        if list(row[:3]) not in wanted["extensions"] or not row[3]
    ]
    there = {row[0] for row in rows}
    makes = [
        f"""CREATE EXTENSION IF NOT EXISTS "{name}" """
        for name, _, schema in wanted["extensions"]
        if name not in there and schema == "pg_catalog"  # a dump takes it for granted
    ]
    return drops + makes


def _public(session: "Warm", wanted: "dict[str, Any]") -> "list[str]":
    live = session.execute(_HEAD_PUBLIC).fetchone()
    if wanted["public"] is None:
        return ["DROP SCHEMA public CASCADE"] if live is not None else []
    found = _column(session, _IN_PUBLIC)
    if live is None:
        found.append("CREATE SCHEMA public")
    elif list(live) == wanted["public"]:
        return found
    owner, comment, grants = wanted["public"]
    grantees = {grant.split(" TO ", 1)[1] for grant in live[2]} if live is not None else set()
    for grantee in sorted(each.removesuffix(" WITH GRANT OPTION") for each in grantees):
        found.append(f"REVOKE ALL ON SCHEMA public FROM {grantee} CASCADE")
    found.append(f"ALTER SCHEMA public OWNER TO {_quoted(owner)}")
    found += grants
    told = "NULL" if comment is None else "'" + comment.replace("'", "''") + "'"
    return [*found, f"COMMENT ON SCHEMA public IS {told}"]


def _column(session: "Warm", query: bytes) -> "list[str]":
    return [str(row[0]) for row in session.execute(query).fetchall()]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
