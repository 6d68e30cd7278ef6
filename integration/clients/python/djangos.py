"""Django's ORM over mysqlclient."""

import django
from django.conf import settings

from common import DATABASE, HOST, PASSWORD, PORT, USER, code, scenarios, show

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", "NAME": DATABASE, "USER": USER, "PASSWORD": PASSWORD,
                           "HOST": HOST, "PORT": PORT}},
    USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import IntegrityError, connection, models, transaction  # noqa: E402


class Order(models.Model):
    g = models.CharField(max_length=40)
    n = models.IntegerField(null=True)
    s = models.CharField(max_length=60, null=True)
    u = models.CharField(max_length=40, null=True, unique=True)

    class Meta:
        app_label, db_table = "clients", "orders"


class Item(models.Model):
    order = models.ForeignKey(Order, models.DO_NOTHING, null=True)
    s = models.CharField(max_length=60, null=True)

    class Meta:
        app_label, db_table = "clients", "items"


class Plain(models.Model):
    s = models.CharField(max_length=60, null=True)

    class Meta:
        app_label, db_table = "clients", "plain"


def rows(g):
    for row in Order.objects.filter(g=g).order_by("id").values_list("id", "n", "s", "u"):
        print(f"{g} row=" + "/".join(map(show, row)))


def single(g):
    order = Order.objects.create(g=g, n=1, s="it's \\ ü")
    print(f"{g} key={order.pk}")
    order.n = 2
    order.save()
    rows(g)


def bulk(g):
    made = Order.objects.bulk_create([Order(g=g, n=n) for n in (1, None, 3)])
    print(f"{g} made={len(made)} keys={','.join(show(o.pk) for o in made)}")
    rows(g)


def bulk_ids(g):
    Order.objects.bulk_create([Order(g=g, n=1), Order(id=44, g=g, n=2), Order(g=g, n=3)], ignore_conflicts=True)
    rows(g)


def commit(g):
    with transaction.atomic():
        order = Order.objects.create(g=g)
        items = [Item.objects.create(order=order, s=s) for s in "ab"]
    print(f"{g} order={order.pk} items={items[0].pk},{items[1].pk} read={Item.objects.get(pk=items[1].pk).order.pk}")


def rollback(g):
    try:
        with transaction.atomic():
            order = Order.objects.create(g=g)
            raise RuntimeError
    except RuntimeError:
        print(f"{g} key={order.pk}")
    rows(g)


def upsert(g):
    for n in (1, 2):
        order, created = Order.objects.update_or_create(u="up", defaults={"g": g, "n": n})
        print(f"{g} key={order.pk} created={created}")
    order, created = Order.objects.get_or_create(u="got", defaults={"g": g})
    print(f"{g} key={order.pk} created={created}")
    rows(g)


def failed(g):
    parent = Order.objects.create(g=g, u="fail")
    try:
        with transaction.atomic():
            Order.objects.create(g=g, u="fail")
    except IntegrityError as e:
        print(f"{g} failed={code(e)}")
    with connection.cursor() as c:
        c.execute("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), %s)", [g])
        print(f"{g} parent={parent.pk} child={c.lastrowid}")


def explicit(g):
    print(f"{g} key={Order.objects.create(id=42, g=g).pk}")
    print(f"{g} key={Order.objects.create(pk=None, g=g).pk}")
    rows(g)


def plain(g):
    print(f"{g} key={Plain.objects.create(s=g).pk}")


scenarios([single, bulk, bulk_ids, commit, rollback, upsert, failed, explicit, plain], lambda: None)
