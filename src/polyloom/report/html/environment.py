"""Pages from templates: what is common to all of them."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from polyloom.diagnostics import visible


def rendered(template: str, **values: Any) -> str:
    """Return a page. The template gets ``values`` and ``style``; the same values give the same text."""
    made = _environment()
    return made.get_template(template).render(values, style=_verbatim(made, "style.css"))


def scripts(*names: str) -> list[Markup]:
    """Return scripts of this folder, as they stand in a page."""
    made = _environment()
    return [_verbatim(made, name) for name in names]


def as_json(data: dict[str, Any]) -> Markup:
    """Return JSON that no text inside can end: ``<`` is escaped."""
    text = json.dumps(shown(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(text)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("polyloom.report", "html"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _verbatim(environment: Environment, name: str) -> Markup:
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, name)
    return Markup(source)


def shown(data: Any) -> Any:
    """Return data whose texts can be shown: control characters and marks of direction as escapes."""
    if isinstance(data, dict):
        return {shown(key): shown(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [shown(value) for value in data]
    return visible(data) if isinstance(data, str) and not isinstance(data, Markup) else data
