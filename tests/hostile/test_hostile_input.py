"""What people and machines send to see what happens: broken JSON, strange names, wrong methods, bad keys, endless bodies."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from arco.kernel.limits import JSON_BODY_BYTES_MAX, JSON_DEPTH_MAX

from .ground import NAMESPACES, SCHEMA, TABLE, TABLES, VIEW, VIEWS, Ground, ground

POSTS = (
    NAMESPACES,
    f"{NAMESPACES}/ns/properties",
    TABLES,
    TABLE,
    VIEWS,
    VIEW,
    f"{NAMESPACES}/ns/register",
    f"{NAMESPACES}/ns/register-view",
    f"{TABLE}/metrics",
    "/iceberg/v1/default.default/tables/rename",
    "/iceberg/v1/default.default/views/rename",
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground(Path(tmp_path_factory.mktemp("hostile")) / "lake") as made:
        yield made


@pytest.fixture(autouse=True)
def at_the_end_all_is_as_it_was(catalog: Ground) -> Iterator[None]:
    catalog.wrong.clear()
    yield
    catalog.check()


# JSON

TEXTS = {
    "nothing": b"",
    "a space": b" ",
    "half an object": b"{",
    "an open string": b'{"name": "t',
    "a trailing comma": b'{"name": "t",}',
    "single quotes": b"{'name': 't'}",
    "a comment": b'{"name": "t" /* x */}',
    "two texts": b'{"name": "t"}{"name": "u"}',
    "a word": b"name",
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": -Infinity}',
    "a number past doubles": b'{"name": 1e999}',
    "a long number": b'{"name": ' + b"9" * 5000 + b"}",
    "a duplicate key": b'{"namespace": ["a"], "namespace": ["b"], "name": "x", "name": "y"}',
    "a duplicate key inside": b'{"properties": {"a": "1", "a": "2"}, "updates": {"a": "1", "a": "2"}}',
    "a byte order mark": b'\xef\xbb\xbf{"name": "t"}',
    "bytes that are no text": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "t"}'.encode("utf-16"),
    "a lone surrogate": b'{"name": "\\ud800"}',
    "a control character": b'{"name": "a\nb"}',
    "a text": b'"name"',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
}


@pytest.mark.parametrize("case", TEXTS)
def test_what_is_not_json_or_not_an_object_is_refused_everywhere(catalog: Ground, case: str) -> None:
    for path in POSTS:
        assert catalog.send("POST", path, TEXTS[case]).status in {400, 413}, path


@pytest.mark.parametrize("levels", [JSON_DEPTH_MAX + 1, 1000, 500_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_what_is_nested_too_deep_is_refused_before_it_is_read(
    catalog: Ground, levels: int, opening: bytes, closing: bytes
) -> None:
    for path in POSTS:
        assert catalog.send("POST", path, opening * levels + b"1" + closing * levels).status == 413
        assert catalog.send("POST", path, b'{"properties": ' + opening * levels).status == 413


def test_a_body_over_the_limit_is_refused_and_one_just_below_is_read(catalog: Ground) -> None:
    assert catalog.send("POST", NAMESPACES, b" " * (JSON_BODY_BYTES_MAX + 1)).status == 413
    just_below = b'{"namespace": ["ns"], "x": "' + b"y" * (JSON_BODY_BYTES_MAX - 100) + b'"}'
    assert catalog.send("POST", NAMESPACES, just_below).status == 409


# Names

STRANGE = (
    "...",
    "../../etc/passwd",
    "a/b",
    "/",
    "a\\b",
    "a b",
    " a ",
    "?",
    "#",
    "%",
    "%2e%2e",
    "%00",
    "a%1Fb",
    "a.b",
    "\u00e9",  # é as one character
    "e\u0301",  # and as two: another name
    "\u03a9",
    "\u2126",  # the sign for ohm: looks like the letter before
    "日本語",
    "🙂",
    "a\u200bb",
    "\u202egnp",
    "A",
    "a",
    "con",
    "nul.txt",
    "<script>alert(1)</script>",
    "'; drop table t; --",
    "${jndi:ldap://127.0.0.1}",
    "{{7*7}}",
    "*",
    "~",
    "-rf",
    "null",
    "undefined",
    "__proto__",
    "namespaces",
    "x" * 255,
    "é" * 255,
    "🙂" * 255,
)


def encoded(name: str) -> str:
    return quote(name, safe="")


def test_strange_names_are_names_like_any_other_each_its_own(catalog: Ground) -> None:
    for name in STRANGE:
        made = catalog.send("POST", TABLES, {"name": name, "schema": SCHEMA})
        assert made.status == 200, (name, made.body)
        location = made.json["metadata"]["location"]
        assert "/../" not in location
        assert location.isascii()
        assert not set("?#% ") & set(location)
    listed = [one["name"] for one in catalog.send("GET", TABLES).json["identifiers"]]
    assert sorted(listed) == sorted([*STRANGE, "t"])
    for name in STRANGE:
        path = f"{TABLES}/{encoded(name)}"
        assert catalog.send("GET", path).status == 200, name
        assert catalog.send("HEAD", path).status == 204
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"name": name}}]}
        assert catalog.send("POST", path, change).status == 200, name
    for name in STRANGE:
        found = catalog.send("GET", f"{TABLES}/{encoded(name)}").json["metadata"]["properties"]["name"]
        assert found == name, "two names are one"
    for name in STRANGE:
        assert catalog.send("DELETE", f"{TABLES}/{encoded(name)}").status == 204
        assert catalog.send("GET", f"{TABLES}/{encoded(name)}").status == 404
    assert [one["name"] for one in catalog.send("GET", TABLES).json["identifiers"]] == ["t"]


def test_strange_names_are_namespaces_as_well(catalog: Ground) -> None:
    for name in STRANGE:
        assert catalog.send("POST", NAMESPACES, {"namespace": [name]}).status == 200, name
        assert catalog.send("POST", NAMESPACES, {"namespace": [name, name]}).status == 200, name
    listed = [levels for (levels,) in catalog.send("GET", NAMESPACES).json["namespaces"]]
    assert sorted(listed) == sorted([*STRANGE, "ns"])
    for name in STRANGE:
        below = f"{NAMESPACES}/{encoded(name)}%1F{encoded(name)}"
        assert catalog.send("GET", below).json["namespace"] == [name, name]
        assert catalog.send("GET", f"{NAMESPACES}?parent={encoded(name)}").json["namespaces"] == [[name, name]]
        assert catalog.send("DELETE", below).status == 204
        assert catalog.send("DELETE", f"{NAMESPACES}/{encoded(name)}").status == 204


REFUSED = ["", ".", "..", "\x00", "a\x00b", "\n", "\x7f", "\x1f", "a\x1fb", "\x85", "x" * 256, "\ud800"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_name_is_refused_in_bodies(catalog: Ground, name: str) -> None:
    assert catalog.send("POST", TABLES, json.dumps({"name": name, "schema": SCHEMA}).encode()).status == 400
    assert catalog.send("POST", NAMESPACES, json.dumps({"namespace": [name]}).encode()).status == 400
    rename = {"source": {"namespace": ["ns"], "name": "t"}, "destination": {"namespace": ["ns"], "name": name}}
    assert catalog.send("POST", "/iceberg/v1/default.default/tables/rename", json.dumps(rename).encode()).status == 400


MALFORMED = ("%", "%zz", "%2", "%C3%28", "%ED%A0%80", "%C0%AE%C0%AE", "%FF")
NOT_A_NAME = ("%00", "a%00b", "%0A", "%7F", "", "x" * 256)
NO_SUCH_NAME = ("..", "%2e%2e", "%252e", "..%2f..%2f..", "%2F", "no;such=1")


@pytest.mark.parametrize("segment", MALFORMED + NOT_A_NAME + NO_SUCH_NAME)
def test_a_hostile_segment_of_a_path_is_malformed_or_not_found(catalog: Ground, segment: str) -> None:
    allowed = {400} if segment in MALFORMED else {400, 404} if segment in NOT_A_NAME else {404}
    for path in (f"{NAMESPACES}/{segment}", f"{NAMESPACES}/{segment}/tables", f"{NAMESPACES}/ns/tables/{segment}"):
        for method in ("GET", "HEAD"):
            assert catalog.send(method, path).status in allowed, path
    for path in (f"{NAMESPACES}/{segment}", f"{NAMESPACES}/ns/tables/{segment}", f"{NAMESPACES}/ns/views/{segment}"):
        assert catalog.send("DELETE", path).status in allowed, path


@pytest.mark.parametrize(
    "prefix",
    ["default", "default.", ".default", "..", "a.b.c", "DEFAULT.default", "default%2Edefault.x", "%00.a", "*.*"],
)
def test_a_prefix_that_is_none_is_refused(catalog: Ground, prefix: str) -> None:
    assert catalog.send("GET", f"/iceberg/v1/{prefix}/namespaces").status in {400, 404}
    assert catalog.send("POST", f"/iceberg/v1/{prefix}/namespaces", {"namespace": ["x"]}).status in {400, 404}
    assert catalog.send("GET", f"/iceberg/v1/config?warehouse={prefix}").status == 400


# Methods, keys, pages


@pytest.mark.parametrize(
    "path", ["/", "/health", "/iceberg/v1/config", NAMESPACES, f"{NAMESPACES}/ns", TABLES, TABLE, VIEWS, VIEW]
)
def test_a_method_that_a_route_does_not_take_changes_nothing(catalog: Ground, path: str) -> None:
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "LOCK", "PURGE"):
        reply = catalog.send(method, path)
        assert reply.status == 405
        assert "GET" in reply.headers["allow"]


BAD_KEYS = ["", "x", "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40", "01890000-0000-7000-8000-000000000000", "../../x", "x" * 5000]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_a_key_that_is_none_is_refused(catalog: Ground, key: str) -> None:
    line = f"Idempotency-Key: {key}"
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "1"}}]}
    assert catalog.send("POST", TABLE, change, line).status == 400
    assert catalog.send("POST", NAMESPACES, {"namespace": ["other"]}, line).status == 400
    assert catalog.send("DELETE", TABLE, None, line).status == 400


NO_SENSE = (
    *("pageToken=zz", "pageToken=%00", "pageToken=ff", "pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=1.5"),
    *("pageSize=1&pageSize=2", "parent=%1F", "parent=a%1F", "parent=%00", "parent=a&parent=b"),
    "pageSize=" + "9" * 5000,
)


@pytest.mark.parametrize("query", NO_SENSE)
def test_a_query_that_makes_no_sense_is_refused(catalog: Ground, query: str) -> None:
    assert catalog.send("GET", f"{NAMESPACES}?{query}").status in {400, 404}


def test_who_asks_for_more_than_a_page_has_gets_a_page(catalog: Ground) -> None:
    """A size is an upper bound in Iceberg's words."""
    assert catalog.send("GET", f"{NAMESPACES}?pageSize=99999999").status == 200


@pytest.mark.parametrize("table", ["%00", "%0A%1B", "x" * 3000, "..%2F.."])
@pytest.mark.parametrize("lines", [(), ("Idempotency-Key: ../../x",), ("X-Request-Id: " + "y" * 64,)])
def test_a_report_about_a_strange_table_is_kept_or_refused(catalog: Ground, table: str, lines: tuple[str, ...]) -> None:
    report = {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "metrics": {}}
    assert catalog.send("POST", f"{TABLES}/{table}/metrics", report, *lines).status in {204, 400}


LOCATIONS = (
    *(
        "file:/etc/passwd",
        "/etc/passwd",
        "../../x",
        "file:///proc/self/environ",
        "s3://other/x.metadata.json",
        "http://127.0.0.1:9/x",
    ),
    *(
        "",
        "file:",
        "file://",
        "\x00",
        "data:text/plain,x",
        "file:/" + "x" * 5000,
        "file:///dev/zero",
        "gs://a/../b",
        "~/.ssh/id_rsa",
    ),
)


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_location_outside_the_root_is_neither_read_nor_written(catalog: Ground, location: str) -> None:
    inside = catalog.send("GET", TABLE).json["metadata"]["location"]
    for hostile in (location, f"{inside}/../../../../../etc/passwd", f"{inside}/metadata/%2e%2e/x.metadata.json"):
        register = {"name": "other", "metadata-location": hostile}
        assert catalog.send("POST", f"{NAMESPACES}/ns/register", register).status in {400, 404}
        assert catalog.send("POST", f"{NAMESPACES}/ns/register-view", register).status in {400, 404}
        if hostile == location:
            create = {"name": "other", "schema": SCHEMA, "location": hostile}
            assert catalog.send("POST", TABLES, create).status == 400
            change = {"requirements": [], "updates": [{"action": "set-location", "location": hostile}]}
            assert catalog.send("POST", TABLE, change).status == 400


def test_the_same_header_twice_is_refused(catalog: Ground) -> None:
    key = "Idempotency-Key: 01890000-0000-7000-8000-000000000000"
    assert catalog.send("DELETE", TABLE, None, key, key).status == 400
