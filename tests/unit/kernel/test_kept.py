"""What is kept stays within its bounds, and what is used stays longest."""

import pytest

from arco.kernel.kept import Kept


def test_what_was_used_last_stays_within_so_many_bytes():
    kept: Kept[str, str] = Kept(bytes_max=10)
    for key in "abc":
        kept.put(key, key, 3)
    assert kept.get("a") == "a"
    kept.put("d", "d", 4)
    assert [kept.get(key) for key in "abcd"] == ["a", None, "c", "d"]
    assert kept.size_bytes == 10


def test_so_many_things_and_no_more():
    kept: Kept[int, int] = Kept(bytes_max=1000, things_max=3)
    for number in range(10):
        kept.put(number, number, 1)
    assert [number for number in range(10) if kept.get(number) is not None] == [7, 8, 9]
    assert (len(kept), kept.size_bytes) == (3, 3)


@pytest.mark.parametrize("size_bytes", [1, 50])
def test_what_is_put_again_is_counted_once(size_bytes):
    kept: Kept[str, int] = Kept(bytes_max=10)
    for number in range(5):
        kept.put("a", number, size_bytes)
    assert kept.get("a") == 4
    assert (len(kept), kept.size_bytes) == (1, size_bytes)


def test_the_newest_stays_whatever_its_size_and_nothing_beside_it():
    kept: Kept[str, str] = Kept(bytes_max=10)
    kept.put("small", "small", 1)
    kept.put("large", "large", 100)
    assert (kept.get("small"), kept.get("large")) == (None, "large")
    kept.put("small", "small", 1)
    assert (kept.get("small"), kept.get("large"), kept.size_bytes) == ("small", None, 1)


def test_what_is_forgotten_takes_no_room():
    kept: Kept[str, str] = Kept(bytes_max=10)
    kept.put("a", "a", 7)
    kept.forget("a")
    kept.forget("never there")
    assert (kept.get("a"), kept.size_bytes, len(kept)) == (None, 0, 0)
