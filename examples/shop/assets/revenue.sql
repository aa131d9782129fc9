/*
description = "What was ordered and what was paid, by day and channel."
partitions = [{ name = "date", kind = "daily", start = 2025-01-01, end = 2025-01-31 }]
partitions_per_task = 10
tags = ["report"]
checks = [{ sql_check = { name = "nobody pays more than was ordered", predicate = "paid <= ordered * 1.05" } }]
*/
SELECT o.date, o.channel, count(*) AS orders, sum(o.amount) AS ordered, coalesce(sum(p.amount), 0) AS paid
FROM orders o LEFT JOIN payments p ON p.order_id = o.order_id AND p.date = o.date
GROUP BY o.date, o.channel
