"""SQLAlchemy, Core and ORM: alchemy.py DRIVER"""

import sys

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import insert as upsert_into
from sqlalchemy.orm import Session, declarative_base, relationship

from common import DATABASE, HOST, PASSWORD, PORT, USER, code, scenarios, show

url = sa.engine.URL.create("mysql+" + sys.argv[1], USER, PASSWORD, HOST, PORT, DATABASE, {"charset": "utf8mb4"})
engine = sa.create_engine(url, future=True, poolclass=sa.pool.StaticPool)  # one connection
Base = declarative_base()


class Order(Base):
    __tablename__ = "orders"
    id = sa.Column(sa.BigInteger, primary_key=True)
    g = sa.Column(sa.String(40), nullable=False)
    n = sa.Column(sa.Integer)
    s = sa.Column(sa.String(60))
    u = sa.Column(sa.String(40))
    items = relationship("Item", order_by="Item.id")


class Item(Base):
    __tablename__ = "items"
    id = sa.Column(sa.BigInteger, primary_key=True)
    order_id = sa.Column(sa.BigInteger, sa.ForeignKey("orders.id"))
    s = sa.Column(sa.String(60))


class Plain(Base):
    __tablename__ = "plain"
    id = sa.Column(sa.BigInteger, primary_key=True)
    s = sa.Column(sa.String(60))


orders = Order.__table__


def rows(g):
    with engine.connect() as db:
        for row in db.execute(sa.select(orders.c.id, orders.c.n, orders.c.s, orders.c.u).where(orders.c.g == g).order_by(orders.c.id)):
            print(f"{g} row=" + "/".join(map(show, row)))


def single(g):
    with engine.begin() as db:
        got = db.execute(sa.insert(orders).values(g=g, n=1, s="it's \\ ü"))
        print(f"{g} key={got.inserted_primary_key[0]} last={got.lastrowid} affected={got.rowcount}")
    rows(g)


def batch(g):
    with engine.begin() as db:
        got = db.execute(sa.insert(orders).values([{"g": g, "n": 1}, {"g": g, "n": None}, {"g": g, "n": 3}]))
        print(f"{g} key={got.lastrowid} affected={got.rowcount}")
    rows(g)


def many(g):
    with engine.begin() as db:
        got = db.execute(sa.insert(orders), [{"g": g, "n": 1}, {"g": g, "n": None}, {"g": g, "n": 3}])
        print(f"{g} affected={got.rowcount}")
    rows(g)


def orm(g):
    with Session(engine, future=True) as session:
        parent = Order(g=g, items=[Item(s="a"), Item(s="b")])
        other = Order(g=g, n=2)
        session.add_all([parent, other])
        session.flush()
        print(f"{g} order={parent.id} item={parent.items[0].id} item={parent.items[1].id} order={other.id}")
        session.commit()
        session.refresh(parent)
        print(f"{g} read={parent.items[0].order_id} read={parent.items[1].order_id}")
    rows(g)


def bulk(g):
    with Session(engine, future=True) as session:
        session.bulk_save_objects([Order(g=g, n=n) for n in (1, None, 3)])
        session.bulk_insert_mappings(Order, [{"g": g, "n": 4, "s": None}, {"g": g, "n": 5, "s": "x"}])
        session.commit()
    rows(g)


def bulk_keys(g):
    with Session(engine, future=True) as session:
        objects = [Order(g=g, n=n) for n in (1, 2)]
        session.bulk_save_objects(objects, return_defaults=True)
        session.commit()
        print(f"{g} key={objects[0].id} key={objects[1].id}")
    rows(g)


def rollback(g):
    with Session(engine, future=True) as session:
        order = Order(g=g)
        session.add(order)
        session.flush()
        print(f"{g} key={order.id}")
        session.rollback()
    rows(g)


def savepoint(g):
    with Session(engine, future=True) as session:
        session.add(Order(g=g, u="sp"))
        session.flush()
        try:
            with session.begin_nested():
                session.add(Order(g=g, u="sp"))
                session.flush()
        except sa.exc.IntegrityError as e:
            print(f"{g} failed={code(e)}")
        session.execute(sa.text("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), :s)"), {"s": g})
        session.commit()
    rows(g)


def upsert(g):
    with engine.begin() as db:
        for n in (1, 2, 2):
            statement = upsert_into(orders).values(g=g, n=n, u="up")
            got = db.execute(statement.on_duplicate_key_update(n=statement.inserted.n))
            print(f"{g} key={got.lastrowid} affected={got.rowcount}")
        got = db.execute(sa.insert(orders).prefix_with("IGNORE").values(g=g, u="up"))
        print(f"{g} key={got.lastrowid} affected={got.rowcount}")
    rows(g)


def explicit(g):
    with Session(engine, future=True) as session:
        session.add(Order(id=42, g=g))
        session.commit()
    with engine.begin() as db:
        got = db.execute(sa.insert(orders).values(id=43, g=g))
        print(f"{g} key={got.inserted_primary_key[0]} last={got.lastrowid}")
    rows(g)


def zero(g):
    with engine.begin() as db:
        for i in (None, 0):
            got = db.execute(sa.insert(orders).values(id=i, g=g))
            print(f"{g} last={got.lastrowid}")
    rows(g)


def plain(g):
    with Session(engine, future=True) as session:
        row = Plain(s=g)
        session.add(row)
        session.commit()
        print(f"{g} key={row.id}")


scenarios([single, batch, many, orm, bulk, bulk_keys, rollback, savepoint, upsert, explicit, zero, plain], lambda: None)
