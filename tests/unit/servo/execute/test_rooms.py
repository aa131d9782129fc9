"""Where an output will lie is given out before it is computed, for one table and one creation."""

from pathlib import Path

import pytest

from arco import asset
from arco.kernel.errors import Conflict, NoSuchTable
from arco.servo.execute.outputs import Destinations
from arco.servo.execute.spark_executor import still_there
from fixtures.servo.assigned import assigned
from fixtures.servo.lake import Lake

NAME = (("db",), "t")
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


@asset
def t(run):
    return run.spark.range(3)


@pytest.fixture
def lake(tmp_path: Path):
    with Lake(tmp_path / "lake") as found:
        yield found


def test_a_new_table_gets_the_identity_and_the_place_that_were_given_out(lake: Lake) -> None:
    destinations = Destinations(lake.catalog)
    room = destinations.room(NAME, None, {})
    given = assigned(t)
    place = lake.run(destinations.of(given.asset, NAME, None, SCHEMA, identity=room.uuid))
    assert (place.creates, place.base.table_uuid, place.base.location) == (True, room.uuid, room.location)
    with pytest.raises(NoSuchTable):
        lake.load("t")


def test_two_attempts_that_find_no_table_are_given_two_places(lake: Lake) -> None:
    destinations = Destinations(lake.catalog)
    one, other = destinations.room(NAME, None, {}), destinations.room(NAME, None, {})
    assert one.uuid != other.uuid
    assert one.location != other.location


def test_the_room_of_a_table_is_that_table(lake: Lake) -> None:
    table = lake.create("t", SCHEMA)
    room = Destinations(lake.catalog).room(NAME, table, {"ignored": "x"})
    assert (room.uuid, room.location, room.properties) == (table.table_uuid, table.location, table.properties)
    assert still_there(room, table, NAME) == table


def test_a_table_that_came_or_went_or_is_another_meanwhile_is_not_written_to(lake: Lake) -> None:
    destinations = Destinations(lake.catalog)
    new = destinations.room(NAME, None, {})
    assert still_there(new, None, NAME) is None
    table = lake.create("t", SCHEMA)
    with pytest.raises(Conflict, match="was created while"):
        still_there(new, table, NAME)
    room = destinations.room(NAME, table, {})
    with pytest.raises(Conflict, match="was replaced while"):
        still_there(room, None, NAME)
    with pytest.raises(Conflict, match="was replaced while"):
        still_there(room, lake.create("other", SCHEMA), NAME)
