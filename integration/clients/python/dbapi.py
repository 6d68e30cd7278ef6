"""PyMySQL and mysqlclient through the DB-API: dbapi.py MODULE"""

import importlib
import sys

from common import DATABASE, HOST, PASSWORD, PORT, USER, code, scenarios, show

driver = importlib.import_module(sys.argv[1])
db = driver.connect(host=HOST, port=PORT, user=USER, passwd=PASSWORD, db=DATABASE, charset="utf8mb4")
db.autocommit(True)
c = db.cursor()


def query(sql, values=None):
    c.execute(sql, values)
    return c.fetchall()


def rows(g):
    for row in query("SELECT id, n, s, u FROM orders WHERE g=%s ORDER BY id", (g,)):
        print(f"{g} row=" + "/".join(map(show, row)))


def last():
    return query("SELECT LAST_INSERT_ID()")[0][0]


def single(g):
    affected = c.execute("INSERT INTO orders (g, n, s) VALUES (%s, %s, %s)", (g, 1, "it's \\ ü"))
    print(f"{g} key={c.lastrowid} connection={db.insert_id()} affected={affected}")
    print(f"{g} last={last()}")
    rows(g)


def batch(g):
    affected = c.execute("INSERT INTO orders (g, n) VALUES (%s, 1), (%s, NULL), (%s, 3)", (g, g, g))
    print(f"{g} keys={c.lastrowid},{c.lastrowid + 1},{c.lastrowid + 2} affected={affected}")
    rows(g)


def many(g):
    """executemany makes one INSERT of many rows."""
    values = [(g, n, s) for n, s in ((1, "a"), (None, "b"), (3, None))]
    affected = c.executemany("INSERT INTO orders (g, n, s) VALUES (%s, %s, %s)", values)
    print(f"{g} key={c.lastrowid} affected={affected}")
    rows(g)


def many_ids(g):
    affected = c.executemany("INSERT INTO orders (id, g) VALUES (%s, %s)", [(None, g), (41, g), (0, g), ("0", g)])
    print(f"{g} key={c.lastrowid} affected={affected}")
    rows(g)


def commit(g):
    db.autocommit(False)
    c.execute("INSERT INTO orders (g) VALUES (%s)", (g,))
    order = c.lastrowid
    c.execute("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), %s)", (g,))
    db.commit()
    db.autocommit(True)
    print(f"{g} order={order} item={c.lastrowid}")


def rollback(g):
    db.autocommit(False)
    c.execute("INSERT INTO orders (g) VALUES (%s)", (g,))
    print(f"{g} key={c.lastrowid}")
    db.rollback()
    db.autocommit(True)
    rows(g)


def upsert(g):
    for n in (1, 2, 2):
        affected = c.execute("INSERT INTO orders (g, n, u) VALUES (%s, %s, 'up') ON DUPLICATE KEY UPDATE n=VALUES(n)", (g, n))
        print(f"{g} key={c.lastrowid} affected={affected} last={last()}")
    c.executemany("INSERT INTO orders (g, n, u) VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE n=VALUES(n)", [(g, 5, "m1"), (g, 6, "m2")])
    print(f"{g} key={c.lastrowid} affected={c.rowcount}")
    rows(g)


def ignore(g):
    for _ in range(2):
        affected = c.execute("INSERT IGNORE INTO orders (g, u) VALUES (%s, 'ig')", (g,))
        print(f"{g} key={c.lastrowid} affected={affected}")


def failed(g):
    c.execute("INSERT INTO orders (g, u) VALUES (%s, 'fail')", (g,))
    parent = c.lastrowid
    try:
        c.execute("INSERT INTO orders (g, u) VALUES (%s, 'fail')", (g,))
    except driver.IntegrityError as e:
        print(f"{g} failed={code(e)}")
    c.execute("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), %s)", (g,))
    print(f"{g} parent={parent} child={c.lastrowid}")


def explicit(g):
    c.execute("INSERT INTO orders (id, g) VALUES (%s, %s)", (42, g))
    print(f"{g} key={c.lastrowid} last={last()}")


def zero(g):
    for i in (None, 0, "0"):
        c.execute("INSERT INTO orders (id, g) VALUES (%s, %s)", (i, g))
        print(f"{g} key={c.lastrowid}")
    rows(g)


def plain(g):
    affected = c.execute("INSERT INTO plain (s) VALUES (%s), (%s)", (g, g))
    print(f"{g} key={c.lastrowid} affected={affected}")


def returning(g):
    got = query("INSERT INTO orders (g, n) VALUES (%s, 1), (%s, 2) RETURNING id, n", (g, g))
    print(f"{g} rows=" + ",".join("/".join(map(str, row)) for row in got))


all_ = [single, batch, many, many_ids, commit, rollback, upsert, ignore, failed, explicit, zero, plain]
if "MariaDB" in query("SELECT VERSION()")[0][0]:
    all_.append(returning)


def reset():
    db.rollback()
    db.autocommit(True)


scenarios(all_, reset)
