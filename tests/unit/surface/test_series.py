"""What is counted in plain numbers first is told as Prometheus' own series would have told it."""

import random

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

from arco.surface.http.series import Count, Observed, Spread

BOUNDS = (0.0, 0.5, 1.0, 2.5)


def told(registry: CollectorRegistry) -> list[str]:
    """All but when a series began."""
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


def test_many_at_once_are_told_as_one_by_one() -> None:
    chance = random.Random(1)
    amounts = [*BOUNDS, 99.0, *(chance.choice((0.25, 0.75, 1.5, 3.0)) for _ in range(200))]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    plain = Histogram("took", "", ["of"], buckets=BOUNDS, registry=theirs).labels("x")
    series = Observed(Spread("took", "", ["of"], buckets=BOUNDS, registry=ours).labels("x"))
    for number, amount in enumerate(amounts):
        plain.observe(amount)
        series.add(amount)
        if number % 7 == 0:
            series.write()
    series.write()
    series.write()
    assert told(ours) == told(theirs)


def test_a_count_is_written_once() -> None:
    registry = CollectorRegistry()
    count = Count(Counter("asked", "", registry=registry))
    count.add()
    count.add(2)
    assert registry.get_sample_value("asked_total") == 0
    count.write()
    count.write()
    assert registry.get_sample_value("asked_total") == 3
