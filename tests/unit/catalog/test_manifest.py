"""The manifest's bytes: the same whether its tail was spelled before or not."""

import msgspec

from arco.catalog.manifest import Author, Commit, Manifest, ManifestCodec
from arco.catalog.operations import Void


def commit(number: int, *, key: str = "k") -> Commit:
    """One of several by different people, with a word that JSON has to escape."""
    authors = (Author(f'a "{number}"', "spark"), Author("béa")) if number % 2 else ()
    operations = (Void(key_hash=f"{key}{number}"), Void(key_hash=f"{key}{number}-"))
    return Commit(f"id{number}", number, None, None, number, "several", None, operations, authors)


def spelled(codec: ManifestCodec, manifest: Manifest) -> bytes:
    return msgspec.json.encode(codec.encode(manifest)[1], order="sorted")


def plainly(manifest: Manifest) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(manifest), order="sorted")


def test_a_manifest_is_spelled_as_if_every_commit_were_new():
    codec, manifest = ManifestCodec(), Manifest()
    for number in range(1, 6):
        manifest = manifest.following(commit(number))
        assert spelled(codec, manifest) == plainly(manifest)
        assert codec.tail_bytes(manifest.tail) == len(msgspec.json.encode(manifest.tail))


def test_after_a_checkpoint_and_on_anothers_tail_nothing_is_left_of_the_tail_before():
    codec = ManifestCodec()
    first = Manifest(tail=tuple(commit(number) for number in range(1, 4)))
    other = Manifest(tail=tuple(commit(number, key="other") for number in range(1, 4)))
    for manifest in (first, Manifest(sequence=3), other, first, Manifest(tail=first.tail[1:])):
        assert spelled(codec, manifest) == plainly(manifest)


def test_what_was_spelled_reads_back():
    codec = ManifestCodec()
    manifest = Manifest().following(commit(1)).following(commit(2))
    assert codec.decode(1, msgspec.json.decode(spelled(codec, manifest))) == manifest


def test_an_empty_tail_takes_little():
    assert ManifestCodec().tail_bytes(()) <= len(b"[]")
