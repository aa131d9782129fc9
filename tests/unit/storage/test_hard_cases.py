"""Cases that once went wrong in the lowest rooms, each kept as a test."""

import asyncio
import errno
import gc
import os
import shutil
import threading
import warnings
from pathlib import Path

import msgspec
import pytest

from arco.kernel.entropy import SeededEntropy, SystemEntropy
from arco.kernel.errors import AccessDenied, ArcoError, CorruptObject, InvalidInput, StoreRefused
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import HolderId, RunId, TableUuid, TransactionId
from arco.kernel.scope import Scope
from arco.storage import keys
from arco.storage.cas import CasObject
from arco.storage.disk import RealDisk
from arco.storage.lease import Lease
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Always, Landed, Lost, Matches, Unknown, Version
from arco.storage.profile import INSTANT, LatencyProfile, ProfiledStore, operation
from arco.storage.roots import open_root, parse_root
from arco.storage.selftest import SelfTest
from arco.storage.sequence import Sequence
from arco.surface.cli.doctor import examine
from arco.surface.cli.settings import load_settings
from stand_ins.hand_clock import HandClock
from stand_ins.scripted_store import ScriptedStore, stored

SCOPE = Scope.of("acme", "prod")
UUID = "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40"
FAR = "ffffffff-ffff-7fff-bfff-ffffffffffff"
CANARY = "canary-7f3a9e"
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def local(root, scenario, **how):
    async def whole():
        store = LocalStore(str(root), HandClock(), SystemEntropy(), sync=False, **how)
        try:
            return await scenario(store)
        finally:
            await store.close()

    return asyncio.run(whole())


# --- keys.py / clock.py


def test_a_transaction_id_of_the_year_10000_is_refused_not_a_crash():
    with pytest.raises(InvalidInput):
        str(keys.TransactionKey(SCOPE, TransactionId(FAR)))


def test_parsing_such_a_name_is_refused_not_a_crash():
    with pytest.raises(InvalidInput):
        keys.parse(f"acme/prod/_catalog/iceberg_transactions/2025-01-01/{FAR}.json")


def test_a_table_file_cannot_have_the_name_of_a_table_metadata_file():
    name = keys.FileName("00001-" + "a" * 32 + ".metadata.json")
    try:
        key = keys.TableFileKey(SCOPE, keys.Slug("x"), TableUuid(UUID), keys.Word("metadata"), name)
        assert keys.parse(str(key)) == key
    except InvalidInput:
        return


def test_a_number_of_21_digits_is_refused_or_reads_back():
    try:
        name = str(keys.RunLogKey(SCOPE, RunId(ULID), 10**20))
    except InvalidInput:
        return
    keys.parse(name)


def test_a_day_is_a_date_that_exists():
    with pytest.raises(InvalidInput):
        keys.Day("2023-02-31")


# --- lease.py, cas.py, sequence.py, fingerprint.py


class Text:
    format = "test.text"

    def encode(self, value):
        return 1, {"text": value}

    def decode(self, format_version, fields):
        return fields["text"]


def test_a_lease_whose_holder_is_no_id_is_corrupt_and_not_the_callers_mistake():
    body = {
        "format": "arco.lease",
        "format_version": 1,
        "generation": 1,
        "write_id": ULID,
        "recent_write_ids": [],
        "epoch": 1,
        "holder": "nobody",
        "expires_ms": 0,
    }
    store = ScriptedStore(gets=[stored("t/l", msgspec.json.encode(body), "1")])
    with pytest.raises(CorruptObject):
        asyncio.run(Lease(store, "t/l", HolderId(ULID), HandClock(), SeededEntropy(1)).try_acquire())


@pytest.mark.parametrize("data", [b'{"text":"\xff"}', b"[" * 100_000], ids=["bad utf-8 in a string", "deep nesting"])
def test_bytes_that_do_not_parse_are_corrupt_whatever_the_parser_raises(data):
    store = ScriptedStore(gets=[stored("t/d", data, "1")])
    with pytest.raises(CorruptObject):
        asyncio.run(CasObject(store, "t/d", Text(), HandClock(), SeededEntropy(1)).read())


def test_a_lost_reply_over_such_bytes_stays_unknown():
    async def scenario():
        store = ScriptedStore([Landed(Version("1")), Unknown("no reply")], [stored("t/d", b'{"text":"\xff"}', "2")])
        shared = CasObject(store, "t/d", Text(), HandClock(), SeededEntropy(1))
        base = await shared.create("base")
        return await shared.swap(base.held, "ours")

    assert isinstance(asyncio.run(scenario()), Unknown)


def test_a_boundary_that_may_not_be_read_does_not_turn_a_landed_record_into_nothing_happened():
    async def boundary():
        raise AccessDenied("the token expired")

    store = MemoryStore(HandClock())
    records = Sequence(store, lambda number: f"t/{number}", boundary, HandClock(), SeededEntropy(1))
    assert isinstance(asyncio.run(records.append(1, b"ours")), Unknown)


def test_text_that_is_not_unicode_is_refused_by_a_fingerprint():
    with pytest.raises(InvalidInput):
        fingerprint("plan", "\ud800")


# --- local.py


def test_a_create_where_a_folder_stands_is_refused_not_lost_to_nobody(tmp_path):
    async def scenario(store):
        await store.put("a/b", b"x", Absent())
        assert await store.get("a") is None
        with pytest.raises(StoreRefused):
            await store.put("a", b"file", Absent())

    local(tmp_path, scenario)


@pytest.mark.parametrize("name", ["back\\slash", "new\nline", "del\x7f"])
def test_a_foreign_file_that_no_key_can_name_does_not_break_the_listing(tmp_path, name):
    async def scenario(store):
        await store.put("f/a", b"x", Absent())
        (tmp_path / "f" / name).write_bytes(b"foreign")
        assert [entry.key for entry in (await store.list_page("")).entries] == ["f/a"]

    local(tmp_path, scenario)


def test_a_link_to_itself_does_not_break_the_listing(tmp_path):
    async def scenario(store):
        await store.put("f/a", b"x", Absent())
        (tmp_path / "f/loop").symlink_to("loop")
        assert [entry.key for entry in (await store.list_page("")).entries] == ["f/a"]

    local(tmp_path, scenario)


def test_a_process_that_died_between_its_lock_and_its_folder_does_not_stop_all_later_sweeps(tmp_path):
    async def scenario(store):
        await store.put("a", b"x", Absent())
        (tmp_path / ".arco/tmp" / f"{ULID}.lock").touch()
        assert await store.sweep_temporaries() == 0
        assert not (tmp_path / ".arco/tmp" / f"{ULID}.lock").exists()

    local(tmp_path, scenario)


def test_closing_after_the_folder_vanished_is_quiet_and_ends_the_threads(tmp_path):
    async def scenario(store):
        await store.put("a", b"x", Absent())
        shutil.rmtree(tmp_path / "lake")

    before = threading.active_count()
    local(tmp_path / "lake", scenario)
    assert threading.active_count() == before


def test_closing_after_a_failed_write_is_quiet(tmp_path):
    class NoTimes(RealDisk):
        def set_mtime(self, path, mtime_ns, *, sync):
            raise OSError(errno.EIO, "Input/output error", path)

    async def scenario(store):
        await store.put("a", b"x", Always())
        (tmp_path / "a").touch()
        os.utime(tmp_path / "a", ns=(2**62, 2**62))
        with pytest.raises(ArcoError):
            await store.put("a", b"y", Always())

    local(tmp_path, scenario, disk=NoTimes())


def test_a_removed_data_folder_does_not_leak_a_lock_and_leave_litter(tmp_path):
    def handles():
        return len(list(Path("/proc/self/fd").iterdir()))

    async def scenario(store):
        await store.put("f/a", b"x", Absent())
        before = handles()
        for _ in range(5):
            shutil.rmtree(tmp_path / "f")
            with pytest.raises(ArcoError):
                await store.put("f/a", b"x", Absent())
            await store.put("f/a", b"x", Absent())
        assert handles() == before

    local(tmp_path, scenario)


def test_after_a_removed_data_folder_closing_leaves_nothing(tmp_path):
    async def scenario(store):
        await store.put("f/a", b"x", Absent())
        shutil.rmtree(tmp_path / "f")
        with pytest.raises(ArcoError):
            await store.put("f/a", b"x", Absent())
        await store.put("f/a", b"x", Absent())

    local(tmp_path, scenario)
    assert list((tmp_path / ".arco/tmp").iterdir()) == []


def test_a_store_does_not_move_when_the_process_changes_its_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    async def scenario(store):
        await store.put("a", b"x", Absent())
        monkeypatch.chdir(tmp_path / "elsewhere")
        found = await store.get("a")
        monkeypatch.chdir(tmp_path)
        assert found is not None

    local("lake", scenario)


def test_deleting_a_name_that_is_a_folder_is_deleting_what_is_not_there(tmp_path):
    async def scenario(store):
        await store.put("a/b", b"x", Absent())
        assert await store.get("a") is None
        await store.delete("a")

    local(tmp_path, scenario)


def test_a_refusal_names_the_object_and_not_a_temporary(tmp_path):
    async def scenario(store):
        await store.put("a", b"x", Absent())
        with pytest.raises(StoreRefused) as caught:
            await store.put("a/b", b"x", Absent())
        assert ".arco" not in caught.value.message

    local(tmp_path, scenario)


# --- roots.py, cloud.py, settings.py


@pytest.mark.parametrize("url", ["s3://[", "s3://[::1", "s3://ex\u2100mple/x"])
def test_a_url_that_the_parser_chokes_on_is_refused_not_a_traceback(url):
    with pytest.raises(InvalidInput):
        parse_root(url)


@pytest.mark.parametrize("url", ["s3://buc\tket/x", "s3://buc\nket", "gs://bucket/a\rb"])
def test_control_characters_are_refused_not_silently_dropped(url):
    with pytest.raises(InvalidInput):
        parse_root(url)


@pytest.mark.parametrize("url", [f"s3://user:{CANARY}@bucket", f"s3://bucket?secret_access_key={CANARY}"])
def test_a_secret_in_a_url_is_not_repeated_in_the_refusal(url):
    with pytest.raises(InvalidInput) as caught:
        parse_root(url)
    assert CANARY not in caught.value.one_line()


def test_a_secret_in_an_endpoint_is_not_repeated_in_the_refusal():
    with pytest.raises(InvalidInput) as caught:
        open_root("s3://b", {"endpoint": f"http://user:{CANARY}@host"}, HandClock(), SeededEntropy(1))
    assert CANARY not in caught.value.one_line()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("az://container", {}),
        ("az://container", {"account_name": "a", "account_key": "!!"}),
        ("gs://bucket", {"service_account_key": "not json"}),
        ("gs://bucket", {"application_credentials": "/no/such/file"}),
        ("s3://bucket", {"express": "true"}),
    ],
)
def test_settings_that_the_client_library_refuses_are_an_arco_error(url, options):
    with pytest.raises(ArcoError):
        open_root(url, options, HandClock(), SeededEntropy(1))


def test_options_of_the_files_root_are_not_forced_on_another_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arco.toml").write_text('root = "s3://b"\n[store]\nendpoint = "https://h"\n')
    settings = load_settings("./lake", [])
    asyncio.run(open_root(settings.root, settings.options, HandClock(), SeededEntropy(1)).close())


# --- profile.py, selftest.py


def test_an_operation_counts_everything_its_block_asks_also_inside_another():
    async def scenario():
        clock = HandClock()
        store = ProfiledStore(MemoryStore(clock), LatencyProfile("test", 10, 20), clock)
        with operation("outer") as outer, operation("inner"):
            await store.get("a")
        assert outer.total_requests == 1

    asyncio.run(scenario())


def test_requests_together_share_a_trip_on_an_instant_store_too():
    async def scenario():
        clock = HandClock()
        store = ProfiledStore(MemoryStore(clock), INSTANT, clock)
        with operation("load") as cost:
            await asyncio.gather(*(store.get(f"k{number}") for number in range(10)))
        assert cost.round_trips == 1

    asyncio.run(scenario())


def test_a_request_cancelled_while_it_waits_leaves_no_coroutine_behind():
    class Endless(HandClock):
        async def sleep(self, seconds):
            await asyncio.Event().wait()

    async def scenario():
        clock = Endless()
        task = asyncio.create_task(ProfiledStore(MemoryStore(clock), LatencyProfile("test", 10, 20), clock).get("a"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(scenario())
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def test_a_store_whose_losers_overwrite_the_winner_in_a_race_is_found_out():
    class LosersOverwrite(MemoryStore):
        """Exactly one rival is told that it won, and the last one's bytes stand."""

        async def put(self, key, data, condition):
            current = await self.get(key)
            await asyncio.sleep(0)
            outcome = await super().put(key, data, condition)
            met = (
                isinstance(outcome, Lost)
                and isinstance(condition, Matches)
                and current
                and current.version == condition.version
            )
            if met:
                self._store(key, data)
            return outcome

    findings = asyncio.run(SelfTest(LosersOverwrite(HandClock()), HandClock(), SeededEntropy(1)).run())
    assert not all(finding.ok for finding in findings)


def test_doctor_does_not_break_a_long_root_over_two_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    root = "a folder " * 20 + "lake"
    asyncio.run(examine(root, []))
    assert f"Testing file://{root}\n" in capsys.readouterr().out


def test_a_range_that_starts_before_the_object_is_refused_alike(tmp_path):
    async def scenario(store):
        await store.put("a", b"0123456789", Absent())
        with pytest.raises(InvalidInput):
            await store.get_range("a", -3, 2)

    asyncio.run(scenario(MemoryStore(HandClock())))
    local(tmp_path, scenario)
