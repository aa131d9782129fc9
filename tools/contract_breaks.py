"""What breaks somebody who relies on a description: two of them compared, a line for everything that is gone or needed anew.

A schema is flattened first: every place in it by its path, with the types that it may have and whether it is always there. So
names of types may change, and what is sent and answered may not. Limits on lengths and numbers are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """One place of a schema: which types it may have, which words if only some, and whether it is always there."""

    types: frozenset[str]
    words: frozenset[str] | None
    required: bool


def api_breaks(old: Json, new: Json) -> list[str]:
    """What a client of the old API would miss in the new one."""
    found: list[str] = []
    for path, methods in old["paths"].items():
        for method, before in methods.items():
            where = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                found.append(f"{where} is gone")
                continue
            found += [f"{where}: {line}" for line in _operation_breaks(before, after, old, new)]
    return found


def event_breaks(old: Json, new: Json) -> list[str]:
    """What somebody who sends or reads the old events would stumble over. Both are done with the same schema."""
    found: list[str] = []
    for name, before in old.items():
        if name not in new:
            found.append(f"event {name} is gone")
            continue
        mine, theirs = fields(before, before), fields(new[name], new[name])
        lines = dict.fromkeys((*input_breaks(mine, theirs), *output_breaks(mine, theirs)))
        found += [f"event {name}: {line}" for line in lines]
    return found


def _operation_breaks(before: Json, after: Json, old: Json, new: Json) -> Iterator[str]:
    yield from _parameter_breaks(before, after, old, new)
    mine, theirs = _body(before, old), _body(after, new)
    if mine and not theirs:
        yield "it takes no body any more"
    elif theirs and not mine:
        yield "it needs a body"
    else:
        yield from (f"body {line}" for line in input_breaks(mine, theirs))
    for status, response in before["responses"].items():
        if status not in after["responses"]:
            yield f"answer {status} is gone"
            continue
        there = after["responses"][status]
        yield from (f"answer {status} {line}" for line in output_breaks(_content(response, old), _content(there, new)))


def _parameter_breaks(before: Json, after: Json, old: Json, new: Json) -> Iterator[str]:
    mine, theirs = _parameters(before, old), _parameters(after, new)
    for name in sorted(mine.keys() - theirs.keys()):
        yield f"parameter {name} is gone"
    for name in sorted(theirs.keys() - mine.keys()):
        if theirs[name][""].required:
            yield f"parameter {name} is new and required"
    for name in sorted(mine.keys() & theirs.keys()):
        yield from (f"parameter {name} {line}" for line in input_breaks(mine[name], theirs[name]))


def input_breaks(old: dict[str, Field], new: dict[str, Field]) -> Iterator[str]:
    """What was good to send, and is not any more."""
    for place in sorted(old.keys() - new.keys()):
        if not _inside(place, old.keys() - new.keys()):
            yield f"{place} is gone".lstrip()
    for place, field in sorted(new.items()):
        before = old.get(place)
        if before is None:
            if field.required and _parent(place) in old:
                yield f"{place} is new and required"
            continue
        if field.required and not before.required:
            yield f"{place} is required now".lstrip()
        yield from _narrower(place, before, field)


def output_breaks(old: dict[str, Field], new: dict[str, Field]) -> Iterator[str]:
    """What was to be found in an answer, and is not any more."""
    for place in sorted(old.keys() - new.keys()):
        if not _inside(place, old.keys() - new.keys()):
            yield f"{place} is gone".lstrip()
    for place in sorted(old.keys() & new.keys()):
        if old[place].required and not new[place].required:
            yield f"{place} may be missing now"
        mine, theirs = old[place].types, new[place].types
        if mine and (theirs - mine or not theirs):
            yield f"{place} may be {_listed(theirs - mine) or 'anything'} now, not only {_listed(mine)}".lstrip()


def _narrower(place: str, before: Field, after: Field) -> Iterator[str]:
    if after.types and (before.types - after.types or not before.types):
        yield f"{place} may not be {_listed(before.types - after.types) or 'anything'} any more".lstrip()
    if after.words is not None and (before.words is None or before.words - after.words):
        lost = _listed(before.words - after.words) if before.words is not None else "any word"
        yield f"{place} may not be {lost} any more".lstrip()


# Schemas, flattened


def fields(schema: Json, whole: Json) -> dict[str, Field]:
    """Every place of a schema by its path, such as `items[].asset_id`. What a schema leaves open has no types."""
    found: dict[str, Field] = {}
    _flatten(schema, whole, "", required=True, seen=(), found=found)
    return found


def _flatten(
    schema: Json, whole: Json, place: str, *, required: bool, seen: tuple[str, ...], found: dict[str, Field]
) -> None:
    plain = list(_alternatives(schema, whole, seen))
    types = frozenset(kind for one, _ in plain for kind in _types(one))
    said = [one["enum"] for one, _ in plain if "enum" in one]
    words = frozenset(str(word) for some in said for word in some) if said and len(said) == len(plain) else None
    before = found.get(place)
    if before is not None:
        types, required = types | before.types, required and before.required
    found[place] = Field(types, words, required)
    alone = sum(1 for one, _ in plain if _types(one) != ["null"]) == 1
    for one, path in plain:
        always = set(one.get("required", ()))
        for name, below in one.get("properties", {}).items():
            inner = f"{place}.{name}" if place else name
            _flatten(below, whole, inner, required=name in always and alone, seen=path, found=found)
        for word, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(one.get(word), dict) and one[word]:
                _flatten(one[word], whole, f"{place}{mark}", required=False, seen=path, found=found)


def _alternatives(schema: Json, whole: Json, seen: tuple[str, ...]) -> Iterator[tuple[Json, tuple[str, ...]]]:
    """The schemas that a value may fit, with references followed; one that holds itself ends there."""
    if "$ref" in schema:
        ref = str(schema["$ref"])
        if ref in seen:
            return
        target: Any = whole
        for part in ref.removeprefix("#/").split("/"):
            target = target[part]
        yield from _alternatives(target, whole, (*seen, ref))
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _alternatives(one, whole, seen)
    else:
        yield schema, seen


def _types(schema: Json) -> list[str]:
    if "type" in schema:
        named = schema["type"]
        return list(named) if isinstance(named, list) else [named]
    return ["string"] if "enum" in schema or "const" in schema else []


def _parameters(operation: Json, whole: Json) -> dict[str, dict[str, Field]]:
    found = {}
    for one in operation.get("parameters", ()):
        flat = fields(one["schema"], whole)
        flat[""] = Field(flat[""].types, flat[""].words, one["required"])
        found[f"{one['name']} ({one['in']})"] = flat
    return found


def _body(operation: Json, whole: Json) -> dict[str, Field]:
    return _content(operation.get("requestBody", {}), whole)


def _content(said: Json, whole: Json) -> dict[str, Field]:
    schemas = [one.get("schema", {}) for one in said.get("content", {}).values()]
    return fields(schemas[0], whole) if schemas else {}


def _parent(place: str) -> str:
    return place.rpartition(".")[0]


def _inside(place: str, gone: Any) -> bool:
    """Whether something around a place is gone too: then that is what is said."""
    return any(place != one and place.startswith((f"{one}.", f"{one}[", f"{one}{{")) for one in gone if one)


def _listed(words: frozenset[str]) -> str:
    return " or ".join(sorted(words))
