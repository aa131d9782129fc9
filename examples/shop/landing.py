"""What other systems write: four raw tables of a month, made from one seed, through the Iceberg REST catalog with PyIceberg.

About two million rows, and not all of them good: orders sent twice, without a customer, with an amount of a million; payments
that are reversed; addresses without an @. `correct` is what arrives a week later: two days of payments as they should have been,
one more that the provider thought about again, and orders of a day that everybody believed to be complete.
"""

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import EqualTo, Or

DAYS, CUSTOMERS, ORDERS, CLICKS = 30, 50_000, 600_000, 800_000
WRONG_DAYS = ("2025-01-14", "2025-01-15")
CHANGED_DAY, LATE_DAY, LATE_ORDERS = "2025-01-25", "2025-01-03", 250

_CUSTOMERS = """
SELECT i % {customers} AS customer_id, 'Customer ' || (i % {customers}) AS name,
    CASE WHEN hash(i, 1) % 200 = 0 THEN 'no address' ELSE 'c' || (i % {customers}) || '@example.com' END AS email,
    ['DE', 'FR', 'PL', 'NL', 'SE'][1 + (hash(i % {customers}, 2) % 5)::INT] AS country,
    TIMESTAMP '2024-06-01' + INTERVAL (i // {customers} * 90) DAY + INTERVAL (hash(i, 3) % 86400) SECOND AS updated_at
FROM range({customers} + {customers} // 10) AS made(i)
"""

_ORDERS = """
WITH once AS (
    SELECT i AS order_id, DATE '2025-01-01' + (hash(i, 4) % {days})::INT AS date,
        CASE WHEN hash(i, 5) % 500 = 0 THEN NULL ELSE (hash(i, 6) % {customers})::BIGINT END AS customer_id,
        CASE WHEN hash(i, 7) % 700 = 0 THEN 1000000.0 ELSE (hash(i, 8) % 20000) / 100.0 END AS amount,
        CASE WHEN hash(i, 9) % 5000 = 0 THEN 'fax'
             ELSE ['web', 'app', 'shop'][1 + (hash(i, 10) % 3)::INT] END AS channel
    FROM range({orders}) AS made(i)
)
SELECT * FROM once UNION ALL SELECT * FROM once WHERE hash(order_id, 11) % 40 = 0
"""

_PAYMENTS = """
SELECT 'p' || o.order_id AS payment_id, o.order_id, o.date,
    CASE WHEN {wrong} THEN -o.amount ELSE o.amount END AS amount, 'eur' AS currency,
    CASE WHEN hash(o.order_id, 12) % 20 = 0 THEN 'reversed' ELSE 'settled' END AS status
FROM (SELECT DISTINCT * FROM ({orders})) AS o
WHERE o.amount BETWEEN 0.01 AND 100000 AND o.customer_id IS NOT NULL AND hash(o.order_id, 13) % 10 > 0
"""

_CLICKS = """
SELECT day AS date, (hash(i, 14) % 40000)::BIGINT AS visitor_id,
    day + INTERVAL (hash(i, 15) % 86400) SECOND AS at,
    ['home', 'search', 'product', 'basket', 'checkout'][1 + (hash(i, 16) % 5)::INT] AS page
FROM (SELECT i, DATE '2025-01-01' + (hash(i, 17) % {days})::INT AS day FROM range({clicks}) AS made(i))
"""


_LATE_ORDERS = """
SELECT i AS order_id, DATE '{day}' AS date, (hash(i, 6) % {customers})::BIGINT AS customer_id,
    (hash(i, 8) % 20000) / 100.0 AS amount, 'shop' AS channel
FROM range({orders}, {orders} + {late}) AS made(i)
"""


def write(catalog: Catalog) -> int:
    """All four tables; how many rows they have."""
    catalog.create_namespace("raw")
    rows = 0
    for name, query in (
        ("customers", _customers()),
        ("orders", _orders()),
        ("payments", _payments()),
        ("clicks", _clicks()),
    ):
        made = _made(query)
        table = catalog.create_table(f"raw.{name}", schema=made.schema)
        if name != "customers":
            with table.update_spec() as change:
                change.add_identity("date")
        table.append(made)
        rows += made.num_rows
    return rows


def correct(catalog: Catalog) -> tuple[int, int]:
    """What comes late; how many payments are others now, and how many orders are new.

    The days of payments that came with the wrong sign, as they should have been. One day on which nothing is reversed after all.
    And orders that a till had kept to itself.
    """
    days = ", ".join(f"DATE '{day}'" for day in WRONG_DAYS)
    right = _payments(wrong="false")
    payments = _made(
        f"SELECT * FROM ({right}) WHERE date IN ({days})"
        f" UNION ALL SELECT * REPLACE ('settled' AS status) FROM ({right}) WHERE date = DATE '{CHANGED_DAY}'"
    )
    which = Or(*(EqualTo("date", day) for day in (*WRONG_DAYS, CHANGED_DAY)))
    catalog.load_table("raw.payments").overwrite(payments, overwrite_filter=which)
    orders = _made(_LATE_ORDERS.format(day=LATE_DAY, customers=CUSTOMERS, orders=ORDERS, late=LATE_ORDERS))
    catalog.load_table("raw.orders").append(orders)
    return payments.num_rows, orders.num_rows


def _customers() -> str:
    return _CUSTOMERS.format(customers=CUSTOMERS)


def _orders() -> str:
    return _ORDERS.format(days=DAYS, customers=CUSTOMERS, orders=ORDERS)


def _payments(wrong: str = "") -> str:
    days = ", ".join(f"DATE '{day}'" for day in WRONG_DAYS)
    return _PAYMENTS.format(wrong=wrong or f"o.date IN ({days}) AND hash(o.order_id, 18) % 100 = 0", orders=_orders())


def _clicks() -> str:
    return _CLICKS.format(days=DAYS, clicks=CLICKS)


def _made(query: str) -> pa.Table:
    return duckdb.connect().execute(query).arrow().read_all()
