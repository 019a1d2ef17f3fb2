"""A comparison in a notebook: the headline, then what is behind it. Pure; needs no torch."""

from __future__ import annotations

from html import escape
from typing import Any

from .text import render_text, say_dtype

_COLOURS = {"works": "#1a7f37", "differs": "#cf222e", "nonfinite": "#cf222e", "raised": "#9a6700"}
_SIGNS = {"works": "✓", "differs": "✗", "nonfinite": "✗", "raised": "!"}


def render_html(data: dict[str, Any]) -> str:
    lines = [
        f'<li style="list-style:none"><b style="color:{_COLOURS[found["state"]]}">'
        f"{_SIGNS[found['state']]}</b> {escape(say_dtype(name, found))}</li>"
        for name, found in data["dtypes"].items()
    ]
    return (
        f'<div><ul style="padding-left:0">{"".join(lines)}</ul>'
        f"<details><summary>{escape(data['model'])}, module by module</summary>"
        f"<pre>{escape(render_text(data))}</pre></details></div>"
    )
