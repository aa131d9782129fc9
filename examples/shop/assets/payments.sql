/*
description = "Payments that went through, each once, with the day's own currency."
partitions = [{ name = "date", kind = "daily", start = 2025-01-01, end = 2025-01-31 }]
partitions_per_task = 10
tags = ["cleaned"]
checks = [
  { unique = "payment_id" },
  { sql_check = { name = "payments are positive", predicate = "amount > 0" } },
]
*/
SELECT DISTINCT payment_id, order_id, date, CAST(amount AS DECIMAL(12, 2)) AS amount, upper(currency) AS currency
FROM raw.payments
WHERE status = 'settled'
