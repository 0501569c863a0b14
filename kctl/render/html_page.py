"""The common head of HTML pages: self-contained, in light and in dark mode.

The pages load no script and no font, and fit the width of a phone.
"""

from __future__ import annotations

from html import escape

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  overflow-wrap: anywhere;
  color: #1c2127; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin: 2.2rem 0 0 }
p.meaning { color: #5b6570; margin: .1rem 0 .6rem } ul.contents { columns: 3; padding-left: 1.2rem }
div.scroll { overflow-x: auto } table { border-collapse: collapse; white-space: nowrap }
th { text-align: left; border-bottom: 2px solid #c3cad1; padding: .2rem .7rem .2rem .2rem }
td { border-bottom: 1px solid #e6e9ec; padding: .2rem .7rem .2rem .2rem }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.null { color: #9aa4ae } .warning { background: #fff4d6; padding: .3rem .6rem; margin: .2rem 0 }
@media (prefers-color-scheme: dark) { body { color: #dde3e8; background: #15191d }
  td { border-color: #2b3238 } .warning { background: #4a3b10 } p.meaning { color: #9aa4ae } }
"""


def page_head(title: str, style: str = "") -> str:
    """Return the start of an HTML page, up to its heading.

    `style` is CSS appended to the common style.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n"
    )
