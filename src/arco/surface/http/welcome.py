"""The page at `/`: what runs here, and how to connect each client. Plain HTML that needs no script and nothing from elsewhere.

Whoever has no token may see it too, so a server with one says neither its root nor its version.
"""

import base64
import hashlib
from dataclasses import dataclass
from html import escape

from arco.kernel.scope import Scope
from arco.surface.http.access import Access, host_of
from arco.surface.http.connecting import Place, Recipe, recipes
from arco.surface.http.exchange import Request, Response
from arco.surface.http.routes import Door, Route, route

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dde2e9; --paper: #fbfcfd; --card: #fff;
  --accent: #0b6b5d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --soft: #98a4b3; --line: #2b3440; --paper: #12171d;
  --card: #1a2129; --accent: #56c2ae; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -0.02em; }
h2 { margin: 2.75rem 0 0.25rem; font-size: 1.15rem; }
h3 { margin: 0; font-size: 1rem; }
p { margin: 0.25rem 0 0; color: var(--soft); }
a { color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.4rem 1.5rem; margin: 1.75rem 0 0; padding: 1rem 1.25rem;
  background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; margin-top: 0.75rem; }
section { margin-top: 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
section header { display: flex; flex-wrap: wrap; gap: 0 0.75rem; align-items: baseline; padding: 0.7rem 1.25rem;
  border-bottom: 1px solid var(--line); }
section header p { margin: 0; font-size: 0.9rem; }
pre { margin: 0; padding: 1rem 1.25rem; overflow-x: auto; font: 0.85rem/1.6 ui-monospace, monospace; -webkit-user-select: all;
  user-select: all; }
pre:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
code { font: 0.9em ui-monospace, monospace; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class About:
    """What a server may tell about itself. `root` is a URL without credentials."""

    version: str = ""
    root: str = ""
    root_kind: str = "file"
    scheme: str = "http"


class WelcomeRoutes:
    """`GET /`."""

    def __init__(self, about: About, access: Access) -> None:
        self._about = about
        self._access = access

    def routes(self) -> list[Route]:
        return [route("GET", "/", self.page, Door.OPEN)]

    async def page(self, request: Request) -> Response:
        host = host_of(request.headers) or "localhost"
        uri = f"{self._about.scheme}://{host}/iceberg"
        warehouse = Scope.of().warehouse
        place = Place(uri, warehouse, self._about.root_kind, self._access.token is not None)
        return Response(200, self._html(place).encode(), _HEADERS)

    def _html(self, place: Place) -> str:
        all_recipes = recipes(place)
        links = "".join(f'<a href="#{_anchor(one)}">{escape(one.client)}</a>' for one in all_recipes)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Arco</title><style>{_STYLE}</style></head><body><main>"
            "<h1>Arco</h1><p>This is an Apache Iceberg REST catalog. It is running.</p>"
            f"<dl>{''.join(self._facts(place))}</dl>"
            f"<h2>Connect</h2><p>Click into a box to select it, then copy.</p><nav>{links}</nav>"
            f"{''.join(map(_section, all_recipes))}"
            "</main></body></html>"
        )

    def _facts(self, place: Place) -> list[str]:
        said = {"Catalog": f"<code>{escape(place.uri)}</code>", "Warehouse": f"<code>{escape(place.warehouse)}</code>"}
        if place.wants_token:
            said["Access"] = "with a bearer token"
        else:
            reach = "from this machine only" if self._access.this_machine_only else "open to everybody who can reach it"
            said["Access"] = f"without a token, {reach}"
            said["Root"] = f"<code>{escape(self._about.root)}</code>"
            said["Version"] = escape(self._about.version)
        said["State"] = '<a href="/health">health</a>, <a href="/ready">ready</a>'
        return [f"<dt>{name}</dt><dd>{value}</dd>" for name, value in said.items()]


def _section(one: Recipe) -> str:
    return (
        f'<section id="{_anchor(one)}"><header><h3>{escape(one.client)}</h3><p>{escape(one.goes_to)}</p></header>'
        f'<pre tabindex="0">{escape(one.text)}</pre></section>'
    )


def _anchor(one: Recipe) -> str:
    return one.client.lower()
