"""Why somebody does something that others will ask about: by a flag, or asked for where somebody can answer."""

import sys

import typer

from arco.kernel.errors import InvalidInput


def reason_given(why: str | None, what: str, example: str) -> str:
    """The reason for `what`. Refused where there is none and nobody to ask."""
    if why is None and sys.stdin.isatty():
        why = str(typer.prompt("Why?"))
    if why is None or not why.strip():
        raise InvalidInput(f"{what} without a reason", hint=f'say why: --why "{example}"')
    return why
