"""Charts as SVG, rendered by Vega-Lite when the report is made: the page has no script.

Text has the page's colour, so that a drawing is readable in light and dark mode; charts are narrow
enough for a phone. The library is imported for the first chart, since it is an optional extra.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.errors import EngineError
from kctl.render.visible import visible_cell

_WIDTH: Final = 230
_BAR_STEP: Final = 20
#: Width of the axis relative to the longest bar, for the text after it.
_ROOM: Final = 1.4
_BLUE: Final = "#4c90f0"
_ORANGE: Final = "#d9822b"
#: Colours that are distinguishable in light and dark mode, and with colour blindness.
_PALETTE: Final = ("#4c90f0", "#d9822b", "#29a371", "#a67bd6", "#c7a008", "#db5f7e", "#8a97a3")
#: Characters that XML does not allow. Source: XML 1.0 §2.2; controls are escaped before.
_NOT_IN_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
_CONFIG: Final[Mapping[str, object]] = {
    "background": None,
    "view": {"stroke": None},
    "font": "system-ui, sans-serif",
    "text": {"color": "currentColor", "fontSize": 12},
    "axis": {
        "labelColor": "currentColor",
        "labelFontSize": 12,
        "labelLimit": 110,
        "domainColor": "#8886",
        "gridColor": "#8883",
        "tickColor": "#8886",
    },
    "legend": {
        "labelColor": "currentColor",
        "labelFontSize": 12,
        "labelLimit": 110,
        "orient": "bottom",
        "columns": 2,
        "title": None,
    },
}


class NoChartLibrary(EngineError):
    """The library that draws charts is not installed."""

    hint = "pip install 'kctl-kafka[report]', or leave --html out"

    def __init__(self) -> None:
        super().__init__("charts need the package vl-convert-python")


class Bar(NamedTuple):
    """A bar: its name, its length, and the text after it."""

    name: str
    value: float
    text: str


class StackSegment(NamedTuple):
    """A part of a column: the column, the series it belongs to, its height."""

    column: str
    series: str
    value: float


def check_charts() -> None:
    """Raise NoChartLibrary unless charts can be drawn."""
    try:
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise NoChartLibrary from error


def bar_chart(bars: Sequence[Bar], mean: float | None = None) -> str:
    """Return horizontal bars, one below the other in order, as SVG.

    A vertical line is drawn at `mean`, unless that is None.
    """
    most = max((bar.value for bar in bars), default=0)
    scale = {"domainMin": 0, "domainMax": most * _ROOM or 1, "nice": False}
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    x = {"field": "value", "type": "quantitative", "axis": None, "scale": scale}
    layers: list[dict[str, object]] = [{"mark": {"type": "bar", "color": _BLUE}}]
    if mean is not None:
        rule = {"type": "rule", "color": _ORANGE, "strokeWidth": 2}
        at_mean = {"x": {"datum": mean, "type": "quantitative"}, "y": None}
        layers.append({"mark": rule, "encoding": at_mean})
    label_mark = {"type": "text", "align": "left", "dx": 4}
    layers.append({"mark": label_mark, "encoding": {"text": {"field": "text"}}})
    return _render_svg(
        {
            "width": _WIDTH,
            "height": {"step": _BAR_STEP},
            "data": {"values": [{**bar._asdict(), "name": _drawn(bar.name)} for bar in bars]},
            "encoding": {"x": x, "y": y},
            "layer": layers,
        }
    )


def stacked_columns_chart(parts: Sequence[StackSegment], unit: str) -> str:
    """Return vertical columns, each stacked from its segments, as SVG.

    `unit` is the title of the y axis.
    """
    series = list(dict.fromkeys(_drawn(part.series) for part in parts))
    x = {"field": "column", "type": "nominal", "sort": None, "title": None}
    y_axis = {"tickCount": 4, "titleColor": "currentColor"}
    y = {"field": "value", "type": "quantitative", "title": unit, "axis": y_axis}
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": series, "range": list(_PALETTE[: len(series)])},
    }
    return _render_svg(
        {
            "width": _WIDTH + 60,
            "height": 160,
            "data": {
                "values": [{**part._asdict(), "series": _drawn(part.series)} for part in parts]
            },
            "mark": "bar",
            "encoding": {"x": x, "y": y, "color": colour},
        }
    )


def _drawn(name: str) -> str:
    """Return a name without characters that XML does not allow: the library aborts on them."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", visible_cell(name))


def _render_svg(spec: Mapping[str, object]) -> str:
    """Render a Vega-Lite chart as SVG; raises NoChartLibrary."""
    check_charts()
    from vl_convert import vegalite_to_svg

    drawn: str = vegalite_to_svg({**spec, "config": _CONFIG})
    return drawn
