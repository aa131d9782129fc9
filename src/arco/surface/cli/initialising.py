"""`arco init`: a small project that works, written once and never over anything."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import Conflict, InvalidInput
from arco.kernel.ids import clip
from arco.surface.cli.printing import say
from arco.surface.cli.settings import PROJECT_FILE

_ENDING = ".template"
_HIDDEN = {"gitignore": ".gitignore"}


def init(folder: str, name: str | None) -> None:
    place = Path(folder)
    called = _name(place, name)
    texts = dict(_templates(files("arco.surface.cli") / "template", ""))
    for path in texts:
        if (place / path).exists():
            raise Conflict(f"{place / path} is there already", hint="nothing was written; choose an empty folder")
    _write(place, {path: text.replace("{{name}}", called) for path, text in texts.items()})
    for path in sorted(texts):
        say(f"wrote {place / path}")
    say(f"\nproject {called} is ready. Next:\n")
    if place.resolve() != Path.cwd():
        say(f"  cd {place}")
    say("  arco validate        everything that is wrong, without Spark\n  arco run             make the tables\n  arco ls")


def _templates(folder: Traversable, below: str) -> list[tuple[str, str]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _templates(one, f"{below}{one.name}/")
        elif one.name.endswith(_ENDING):
            name = one.name.removesuffix(_ENDING)
            found.append((f"{below}{_HIDDEN.get(name, name)}", one.read_text(encoding="utf-8")))
    return found


def _write(place: Path, texts: dict[str, str]) -> None:
    # The file that makes it a project comes last: what was broken off half-way is no project yet.
    for path in sorted(texts, key=lambda path: (path == PROJECT_FILE, path)):
        target = place / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8") as stream:
                stream.write(texts[path])
        except OSError as error:
            raise InvalidInput(
                f"{target} cannot be written: {error.strerror}", hint="choose another folder: arco init FOLDER"
            ) from error


def _name(place: Path, given: str | None) -> str:
    """A name that is also a namespace: that of the folder, made fit, unless one is given."""
    if given is None:
        made = re.sub(r"[^a-z0-9_]+", "_", place.resolve().name.lower()).strip("_")
        given = made if re.match(r"[a-z]", made) else f"project_{made}".rstrip("_")
    try:
        return AssetKey(given, "x").namespace
    except InvalidInput as error:
        raise InvalidInput(f"{clip(given)!r} cannot be a project's name", hint=f"give --name: {error.hint}") from error
