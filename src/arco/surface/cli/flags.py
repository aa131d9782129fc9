"""The flags that several commands take, with their words of help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

Root = Annotated[
    str | None,
    typer.Option(
        "--root", help="Where everything lives: a folder, file://, s3://, gs:// or az://. Default: ARCO_ROOT, arco.toml."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="WORD=VALUE", help="A setting of the store, such as endpoint=https://… (repeatable)."
    ),
]
Warehouse = Annotated[str, typer.Option(metavar="TENANT/WORKSPACE", help="Which workspace of the root.")]
AllowLocation = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREFIX",
        help="Also read metadata in this place outside the root: file:/path, s3://bucket/folder, … (repeatable).",
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ORIGIN", help="Let pages of this site read links to files of state, as https://host:port (repeatable)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Such as shop.orders.", show_default=False)]

ProjectFolder = Annotated[
    str, typer.Option("--project", "-p", metavar="FOLDER", help="The folder of the project, with its arco.toml.")
]

Spark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="MASTER",
        help="Where Spark runs: local[*], spark://…, k8s://…, yarn, sc://… (Connect). Default: arco.toml, then local[*].",
        show_default=False,
    ),
]

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="The state at a time, such as 2025-01-31T12:00.", show_default=False),
]
AsOfRun = Annotated[
    str | None,
    typer.Option("--as-of-run", metavar="RUN", help="The state that first had all of a run.", show_default=False),
]
Snapshot = Annotated[
    str | None, typer.Option("--snapshot", metavar="ID", help="The state with this id.", show_default=False)
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Also what is not folded yet.")]

Workspace = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        metavar="NAME",
        help="The workspace that the project works in. Default: ARCO_WORKSPACE, then warehouse in arco.toml.",
        show_default=False,
    ),
]
DeferTo = Annotated[
    str | None,
    typer.Option(
        "--defer-to",
        metavar="NAME",
        help="The workspace to read what is not built in this one from. Default: ARCO_DEFER_TO, then defer_to in arco.toml.",
        show_default=False,
    ),
]

DEFAULT_WAREHOUSE = "default/default"


@dataclass(frozen=True, slots=True)
class Where:
    """The workspace that a command works on, as it was given."""

    root: str | None
    options: tuple[str, ...]
    warehouse: str
    allowed: tuple[str, ...] = ()
    folder: Path = Path()

    @classmethod
    def of(
        cls,
        root: str | None,
        options: list[str] | None,
        warehouse: str,
        allowed: list[str] | None = None,
        folder: Path = Path(),
    ) -> "Where":
        return cls(root, tuple(options or ()), warehouse, tuple(allowed or ()), folder)
