/*
description = "Of how many visits came how many orders."
partitions = [{ name = "date", kind = "daily", start = 2025-01-01, end = 2025-01-31 }]
partitions_per_task = 10
tags = ["report"]
*/
WITH visits AS (
  SELECT date, count(*) AS visits, sum(reached_checkout) AS checkouts FROM sessions GROUP BY date
), bought AS (
  SELECT date, count(*) AS orders FROM orders WHERE channel IN ('web', 'app') GROUP BY date
)
SELECT v.date, v.visits, v.checkouts, coalesce(b.orders, 0) AS orders
FROM visits v LEFT JOIN bought b ON b.date = v.date
