"""Requirements: the texts that clients compare, and nothing let through."""

import pytest

from arco.iceberg import requests, requirements
from arco.iceberg.changes import AssertViewUuid
from arco.iceberg.view_metadata import ViewMetadata
from arco.kernel.errors import Conflict
from fixtures.iceberg.ground import FIRST_SNAPSHOT, TABLE_UUID, commit, load, set_ref, told

FAILED = load("failed_requirements.json")
TABLE = commit(told(1), set_ref(FIRST_SNAPSHOT, "t1", "tag"))


def parsed(*sent):
    return requests.parse_commit_table({"requirements": list(sent), "updates": []}).requirements


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case["name"])
def test_a_requirement_that_fails_says_so_in_the_words_clients_know(case):
    with pytest.raises(Conflict) as error:
        requirements.check(parsed(case["requirement"]), TABLE)
    assert error.value.message == case["message"]
    assert error.value.message.count("Requirement failed: ") == 1


HOLDING = [
    {"type": "assert-table-uuid", "uuid": TABLE_UUID.upper()},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": FIRST_SNAPSHOT},
    {"type": "assert-ref-snapshot-id", "ref": "t1", "snapshot-id": FIRST_SNAPSHOT},
    {"type": "assert-ref-snapshot-id", "ref": "gone", "snapshot-id": None},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 4},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1001},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
]


def test_requirements_that_hold_are_silent():
    requirements.check(parsed(*HOLDING), TABLE)


def test_one_failing_requirement_among_many_is_enough():
    with pytest.raises(Conflict, match="current schema changed"):
        requirements.check(parsed(*HOLDING, {"type": "assert-current-schema-id", "current-schema-id": 3}), TABLE)


@pytest.mark.parametrize("sent", [held for held in HOLDING if held.get("ref") != "gone"], ids=str)
def test_a_table_that_is_not_there_meets_no_requirement_about_its_content(sent):
    with pytest.raises(Conflict, match=r"^Requirement failed: table does not exist$"):
        requirements.check(parsed(sent), None)


def test_a_create_requires_only_that_nothing_is_there():
    create = parsed({"type": "assert-create"}, {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None})
    requirements.check(create, None)
    assert requirements.creates(create)
    assert not requirements.creates(parsed(*HOLDING))


def test_a_view_is_recognized_by_its_uuid():
    view = ViewMetadata({"view-uuid": TABLE_UUID})
    requirements.check_view([AssertViewUuid(TABLE_UUID.upper())], view)
    with pytest.raises(Conflict) as error:
        requirements.check_view([AssertViewUuid("x")], view)
    assert error.value.message == f"Requirement failed: view UUID does not match: expected x != {TABLE_UUID}"
