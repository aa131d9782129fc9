"""Tables that other systems write: read, never written."""

from arco import daily, source

JANUARY = daily("date", start="2025-01-01", end="2025-01-31")

customers_raw = source("raw.customers", description="The sign-up form's own table; people correct their address later.")
orders_raw = source("raw.orders", partitions=JANUARY, description="The web shop's orders. Some arrive twice, some late.")
payments_raw = source("raw.payments", partitions=JANUARY, description="What the payment provider says, day by day.")
clicks_raw = source("raw.clicks", partitions=JANUARY, description="The clickstream as browsers send it.")
