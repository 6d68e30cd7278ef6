"""SQLAlchemy's pool, of one connection: lost.py DRIVER"""

import os
import sys

import sqlalchemy as sa

from common import DATABASE, HOST, PASSWORD, USER


def engine(port):
    url = sa.engine.URL.create("mysql+" + sys.argv[1], USER, PASSWORD, HOST, int(os.environ[port]), DATABASE)
    return sa.create_engine(url, pool_size=1, max_overflow=0, isolation_level="AUTOCOMMIT")


def attempt(what, on, sql):
    try:
        with on.begin() as db:
            print(f"{what} key={db.execute(sa.text(sql)).lastrowid}")
    except sa.exc.DBAPIError as e:
        while e:  # it may be one of the ROLLBACK behind the one that is looked for
            if isinstance(e, sa.exc.DBAPIError):
                print(what, *e.orig.args)
            e = e.__context__


pool = engine("CLIENT_PORT")
attempt("lost", pool, "INSERT INTO orders (g) VALUES ('lose me')")
attempt("again", pool, "INSERT INTO orders (g) VALUES ('again')")
attempt("connect", engine("CLIENT_PORT_DOWN"), "SELECT 1")
