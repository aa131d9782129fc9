"""Questions over HTTP with whatever anybody can write into an address: a refusal or an answer as described, never an error."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arco.surface.http.api import QUESTIONS
from fixtures.state.shop_story import FAILED_RUN
from fixtures.state.state_world import day_key
from unit.surface.http_ground import HttpGround

HOSTILE = [
    "", " ", ".", "..", "%", "%2e%2e", "../../etc/passwd", "a/b", "'", "''", '"', "`", "\\", ";", "*", "?", "$1", "{}", "[]",
    "' OR '1'='1", "'; DROP TABLE assets; --", "null", "NaN", "-1", "0", "1e3", "9" * 30, "true", "\u202eabc", "名前", "\0",
    "\x1f", "\n", "x" * 300, "x" * 5000, "date=", "date=d:", "date=d:2025-13-45", "part_", "W/",
]  # fmt: skip
# What is there to be found. One parameter at a time is hostile, the others are right.
KNOWN = {
    "asset": ["shop.orders", "shop.sales"],
    "run": [FAILED_RUN],
    "partition": [day_key(0)],
    "before": ["1"],
    "after": ["1"],
    "q": ["orders", "dashbord revenue"],
    "as_of": ["2025-03-21T06:00:00Z", "1900000000000"],
    "as_of_run": [FAILED_RUN],
    "warehouse": ["default/default", "default/other"],
    "fresh": ["true", "false"],
}
EXAMPLES_MAX = 25


@pytest.fixture(scope="module")
def ground() -> Iterator[HttpGround]:
    made = HttpGround()
    yield made
    made.close()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.path)
def test_whatever_is_asked_gets_an_answer_or_a_refusal(ground: HttpGround, question: Any) -> None:
    names = question.asked.__struct_fields__
    in_path = [name for name in names if f"{{{name}}}" in question.path]
    needed = [*in_path, *({"partition", "before", "after", "q"} & set(names))]
    known = KNOWN | ({"before": [ground.snapshot]} if question.path.endswith("catalog/diff") else {})
    seen: set[int] = set()

    @given(
        hostile=st.sampled_from(names), text=st.sampled_from(HOSTILE) | st.text(max_size=40), also=st.sampled_from(names)
    )
    @settings(
        max_examples=EXAMPLES_MAX,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(hostile: str, text: str, also: str) -> None:
        texts = {name: known[name][0] for name in needed} | {name: known[name][-1] for name in (also,) if name in known}
        texts[hostile] = text
        path = question.path.removeprefix("/api/v1/")
        for name in in_path:
            path = path.replace(f"{{{name}}}", texts.pop(name).replace("/", "\u2215") or "-")
        answer = ground.get(path, **texts)
        seen.add(answer.status)
        assert answer.status in {200, 400, 404, 410}, (path, texts, answer.body)
        if answer.status == 200:
            ground.check(path, answer)
        else:
            assert answer.headers["content-type"] == "application/problem+json"
            assert "Traceback" not in answer.json["detail"]

    check()
    assert {200, 400} <= seen
