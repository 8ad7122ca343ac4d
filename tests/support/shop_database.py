"""The database of a shop: everything that a real application has, and what an agent does to it."""

NAMES = (
    "customers addresses suppliers products prices stock warehouses carts cart_items coupons"
    " payments refunds shipments reviews tags product_tags sessions audit newsletters settings"
).split()

SCHEMA = """
CREATE EXTENSION vector;
CREATE SCHEMA sales;
COMMENT ON SCHEMA sales IS 'what is sold';
CREATE TYPE sales.status AS ENUM ('new', 'paid', 'sent; COPY x FROM stdin;', 'back');
CREATE DOMAIN sales.email AS text CHECK (VALUE LIKE '%@%');
CREATE TYPE sales.money_of AS (amount numeric, currency text);
CREATE SEQUENCE sales.invoice_number START 1000 INCREMENT 5;
CREATE FUNCTION sales.touch() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  -- a line that looks like data:
  -- COPY public.nothing (id) FROM stdin;
  NEW.touched := now(); RETURN NEW;
END;
$body$;
CREATE FUNCTION sales.twice(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT n * 2; END;
CREATE PROCEDURE sales.nothing() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE AGGREGATE sales.total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE TABLE "Odd ""x"" name" ("a (b)" int PRIMARY KEY, t text DEFAULT E'tab\\t\\\\.');
CREATE TABLE sales.orders (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  number int NOT NULL DEFAULT nextval('sales.invoice_number'),
  email sales.email, status sales.status NOT NULL DEFAULT 'new',
  net numeric NOT NULL, gross numeric GENERATED ALWAYS AS (net * 1.19) STORED,
  touched timestamptz, extra jsonb NOT NULL DEFAULT '{}', price sales.money_of,
  place vector(2) DEFAULT '[1,2]');
CREATE TABLE sales.lines (
  order_id bigint NOT NULL REFERENCES sales.orders ON DELETE CASCADE,
  line int NOT NULL, note text, PRIMARY KEY (order_id, line));
CREATE TABLE sales.events (at date NOT NULL, order_id bigint REFERENCES sales.orders, what text)
  PARTITION BY RANGE (at);
CREATE TABLE sales.events_2025 PARTITION OF sales.events
  FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE sales.events_2026 PARTITION OF sales.events
  FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE tree (id serial PRIMARY KEY, parent int REFERENCES tree DEFERRABLE);
CREATE INDEX orders_open ON sales.orders (status) WHERE status = 'new';
CREATE UNIQUE INDEX ON sales.orders (number);
CREATE STATISTICS sales.orders_stats ON status, net FROM sales.orders;
CREATE TRIGGER orders_touch BEFORE INSERT OR UPDATE ON sales.orders
  FOR EACH ROW EXECUTE FUNCTION sales.touch();
CREATE VIEW sales.open_orders AS SELECT id, number, gross FROM sales.orders WHERE status = 'new';
CREATE MATERIALIZED VIEW sales.totals AS
  SELECT status, sum(net) AS net FROM sales.orders GROUP BY 1;
CREATE RULE keep_settings AS ON DELETE TO tree DO ALSO NOTHING;
ALTER TABLE sales.lines ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_lines ON sales.lines USING (true);
COMMENT ON COLUMN sales.orders.net IS 'without tax';
GRANT SELECT ON sales.orders TO PUBLIC;
GRANT USAGE ON SCHEMA sales TO PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
CREATE PUBLICATION changes FOR TABLE sales.orders;
"""

TABLE = """
CREATE TABLE {name} (id serial PRIMARY KEY, owner int{refers}, note text NOT NULL DEFAULT '',
  data bytea, made timestamptz NOT NULL DEFAULT '2026-01-01');
CREATE INDEX ON {name} (note);
INSERT INTO {name} (owner, note, data)
  SELECT n, E'row\\t' || n || E'\\nnext \\\\. line', decode(md5(n::text), 'hex')
  FROM generate_series(1, {rows}) n;
"""

ROWS = """
INSERT INTO "Odd ""x"" name" SELECT n, E'a\\tb\\\\.' FROM generate_series(1, 10) n;
INSERT INTO sales.orders (email, status, net, price)
  SELECT n || '@example.org', (enum_range(NULL::sales.status))[n % 4 + 1], n,
    ROW(n, 'EUR'::text)::sales.money_of
  FROM generate_series(1, {rows}) n;
INSERT INTO sales.lines SELECT n, k, NULLIF('note ' || k, 'note 2')
  FROM generate_series(1, {rows}) n, generate_series(1, 3) k;
INSERT INTO sales.events SELECT '2025-06-01'::date + n % 400, n, 'seen'
  FROM generate_series(1, {rows}) n;
INSERT INTO tree (parent) SELECT NULLIF(n, 0) FROM generate_series(0, 20) n;
DELETE FROM sales.lines WHERE order_id % 7 = 3;
UPDATE sales.orders SET net = net + 1 WHERE id % 5 = 0;
REFRESH MATERIALIZED VIEW sales.totals;
"""

MIGRATION = """
BEGIN;
DROP VIEW sales.open_orders;
DROP MATERIALIZED VIEW sales.totals;
CREATE TYPE sales.kind AS ENUM ('a', 'b');
CREATE TABLE sales.accounts (id serial PRIMARY KEY, kind sales.kind, of int REFERENCES customers);
ALTER TABLE sales.orders ADD COLUMN account int REFERENCES sales.accounts;
ALTER TABLE sales.orders DROP COLUMN email, ALTER COLUMN net TYPE float8 USING net, DROP gross;
ALTER TABLE customers ADD CONSTRAINT back FOREIGN KEY (owner) REFERENCES sales.accounts NOT VALID;
ALTER TYPE sales.status ADD VALUE 'lost';
DROP TABLE sales.lines, reviews CASCADE;
DROP TABLE sales.events_2025;
TRUNCATE audit, tags CASCADE;
DELETE FROM newsletters;
UPDATE products SET note = 'gone';
CREATE SCHEMA v2;
CREATE TABLE v2.lines AS SELECT * FROM customers;
CREATE VIEW v2.view_of AS SELECT * FROM v2.lines;
CREATE FUNCTION v2.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE SEQUENCE public.more;
SELECT setval('customers_id_seq', 1);
GRANT ALL ON SCHEMA public TO PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;
COMMENT ON SCHEMA public IS 'changed';
CREATE PUBLICATION others FOR ALL TABLES;
COMMIT;
"""


def script(rows: int) -> str:
    """What makes the database: twenty and more tables, with about so many rows in each."""
    tables = [
        TABLE.format(name=name, rows=rows, refers=f" REFERENCES {NAMES[0]}" if number else "")
        for number, name in enumerate(NAMES)
    ]
    return "".join([SCHEMA, *tables, ROWS.format(rows=rows)])
