"""Request bodies: what clients send is understood, what is wrong is named in one line."""

import pytest

from arco.iceberg import changes, requests
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.limits import COMMIT_UPDATES_MAX
from fixtures.iceberg.ground import STORY, load

REFUSED = load("refused_requests.json")


def refused(case):
    return pytest.param(case, id=f"{case['parser']}: {case['name']}")


@pytest.mark.parametrize("case", [refused(case) for case in REFUSED])
def test_a_wrong_body_is_refused_with_one_precise_line(case):
    parse = getattr(requests, f"parse_{case['parser']}")
    with pytest.raises(InvalidInput) as error:
        parse(case["body"])
    assert case["message"] in error.value.message
    assert "\n" not in error.value.message
    assert len(error.value.message) <= 301


@pytest.mark.parametrize("step", STORY["story"], ids=lambda step: step["name"])
def test_every_commit_spark_sends_is_understood(step):
    request = requests.parse_commit_table(step["commit"])
    assert len(request.requirements) == len(step["commit"]["requirements"])
    assert len(request.updates) <= len(step["commit"]["updates"])


def test_null_is_the_same_as_absent():
    body = {"name": "t", "schema": {"type": "struct", "fields": []}}
    nulls = {"location": None, "partition-spec": None, "write-order": None, "stage-create": None, "properties": None}
    assert requests.parse_create_table(body) == requests.parse_create_table({**body, **nulls})


def test_a_null_snapshot_id_means_that_the_ref_must_not_exist():
    body = {"requirements": [{"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": None}], "updates": []}
    assert requests.parse_commit_table(body).requirements == (changes.AssertRefSnapshotId("b", None),)


@pytest.mark.parametrize("name", ["orders", "Ünïcode 表", "with.dot", "with/slash", "a b", "🦆", "...", "%2e", "n" * 255])
def test_any_readable_text_is_a_name(name):
    assert requests.parse_create_table({"name": name, "schema": {}}).name == name


def test_a_lone_surrogate_is_not_a_name():
    with pytest.raises(InvalidInput, match="a lone surrogate"):
        requests.parse_create_namespace({"namespace": ["\ud800"]})


def test_an_identifier_prints_as_clients_compare_it():
    rename = requests.parse_rename(
        {"source": {"namespace": ["a", "b"], "name": "t"}, "destination": {"namespace": ["c"], "name": "u"}}
    )
    assert f"{rename.source} {rename.destination}" == "a.b.t c.u"


def test_neighbouring_removals_of_snapshots_become_one():
    body = {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [n]} for n in range(50_000)]}
    (update,) = requests.parse_commit_table(body).updates
    assert update == changes.RemoveSnapshots(tuple(range(50_000)))


def test_a_commit_of_nothing_but_tiny_updates_is_too_large():
    body = {"requirements": [], "updates": [{"action": "remove-properties", "removals": []}] * (COMMIT_UPDATES_MAX + 1)}
    with pytest.raises(TooLarge):
        requests.parse_commit_table(body)


def test_a_transaction_names_all_unknown_updates_of_all_its_tables_at_once():
    change = {"identifier": {"namespace": ["n"], "name": "t"}, "requirements": []}
    body = {"table-changes": [{**change, "updates": [{"action": "fly"}]}, {**change, "updates": [{"action": "swim"}]}]}
    with pytest.raises(InvalidInput, match="unknown updates: fly, swim"):
        requests.parse_commit_transaction(body)


def test_a_transaction_is_bounded_and_every_change_names_its_table():
    change = {"requirements": [], "updates": []}
    with pytest.raises(InvalidInput, match=r"table-changes\[0\]: it has no identifier"):
        requests.parse_commit_transaction({"table-changes": [change]})
    named = {**change, "identifier": {"namespace": ["n"], "name": "t"}}
    with pytest.raises(TooLarge, match="more than 1000"):
        requests.parse_commit_transaction({"table-changes": [named] * 1001})
    assert len(requests.parse_commit_transaction({"table-changes": [named] * 1000})) == 1000


def test_keys_that_are_set_and_removed_at_once_are_told_apart_from_a_wrong_body():
    request = requests.parse_update_namespace_properties({"removals": ["a", "b", "a"], "updates": {"a": "1", "c": "2"}})
    assert request.keys_in_both == ("a",)


def test_what_a_newer_client_adds_to_a_known_update_is_ignored():
    body = {"requirements": [], "updates": [{"action": "set-location", "location": "s3://b/t", "future": 1}]}
    assert requests.parse_commit_table(body).updates == (changes.SetLocation("s3://b/t"),)
