"""The exporter's HTTP server: scraped cluster, served pages, end by Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from engine import __version__
from engine.client.blocking import KafkaClient
from engine.exporter.exporter import Exporter, ExporterOptions
from engine.exporter.metric_family import MetricFamily
from engine.exporter.text_format import check_library, metrics_page
from engine.timing.histogram import MetricValue
from kctl import exits
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.durations import parse_duration_ms
from kctl.embedded_metrics import embedded_metrics
from kctl.run_location import find_embedded_cluster

if TYPE_CHECKING:
    from engine.host.http_server import Page, ServedPage

#: Time-out of a scrape for the commands' lock and the responses of embedded brokers.
_METRICS_TIMEOUT_S = 2.0
_TEXT = "text/plain; charset=utf-8"


class ExporterRequest(NamedTuple):
    """The options of `kctl exporter`."""

    host: str
    port: int
    min_interval: str
    scrape_timeout: str
    has_groups: bool
    is_once: bool

    def exporter_options(self, timeout_s: float) -> ExporterOptions:
        """Return the options of the exporter: version, time-outs, and whether it reads groups.

        The time-out of a scrape is at most `timeout_s`, of --timeout. Errors: UnreadableArgument
        for a malformed duration.
        """
        scrape_timeout_ms = parse_duration_ms(self.scrape_timeout, "--scrape-timeout")
        return ExporterOptions(
            __version__,
            parse_duration_ms(self.min_interval, "--min-interval"),
            max(min(scrape_timeout_ms, round(timeout_s * 1000)), 1),
            self.has_groups,
        )


def export_metrics(options: ClusterOptions, request: ExporterRequest) -> int:
    """Serve metrics until Ctrl-C or SIGTERM, or print them once; returns the exit code."""
    scrape_options = request.exporter_options(options.timeout_s)
    check_library()
    with connect(options) as client:
        exporter = create_exporter(client, scrape_options)
        if request.is_once:
            page = metrics_page(exporter.families(), "")
            sys.stdout.write(page.body.decode())
            return exits.OK if exporter.is_up else exits.UNREACHABLE
        return _serve(exporter, request)


def create_exporter(client: KafkaClient, options: ExporterOptions) -> Exporter:
    """Return the exporter of a cluster, which also reports certificates if the cluster uses TLS."""
    metrics_of = partial(_embedded_metrics, client)
    tls = client.settings.tls
    if tls is None:
        return Exporter(client, options, metrics_of=metrics_of)
    from engine.host.certificate_expiry import fetch_certificate_expiry_ms

    def expiry_of(host: str, port: int, timeout_s: float) -> int:
        """Return when the certificate that a broker presents expires, in ms since 1970."""
        return fetch_certificate_expiry_ms(host, port, tls, timeout_s)

    return Exporter(client, options, expiry_of, metrics_of)


def _embedded_metrics(client: KafkaClient) -> Mapping[int, Mapping[str, MetricValue]]:
    """Return brokers' own metrics if the cluster is embedded and local, else an empty mapping."""
    data = find_embedded_cluster(client)
    return {} if data is None else embedded_metrics(client, data, _METRICS_TIMEOUT_S)


class MetricPages:
    """Renders metrics as a page, and caches it for requests of the same scrape and format."""

    def __init__(self, exporter: Exporter) -> None:
        """Create the pages of an exporter; the first request reads metrics from the cluster."""
        self._exporter = exporter
        #: Metrics and format of the cached page.
        self._families: list[MetricFamily] = []
        self._accept = ""
        self._page: ServedPage | None = None

    def render(self, accept: str) -> ServedPage:
        """Return the metrics page in the format of the Accept header `accept`.

        The page of the same metrics and header is kept, as several Prometheus servers may ask for
        it.
        """
        families = self._exporter.families()
        from engine.host.http_server import ServedPage

        if self._page is None or families is not self._families or accept != self._accept:
            page = metrics_page(families, accept)
            self._page = ServedPage(200, page.content_type, page.body)
            self._families, self._accept = families, accept
        return self._page


def _serve(exporter: Exporter, request: ExporterRequest) -> int:
    """Serve the metrics over HTTP until Ctrl-C or SIGTERM; returns the exit code."""
    from engine.host.http_server import PageServer, ServedPage

    pages: dict[str, Page] = {
        "/metrics": MetricPages(exporter).render,
        "/healthz": lambda _accept: ServedPage(200, _TEXT, b"ok\n"),
        "/": lambda _accept: ServedPage(200, _TEXT, b"metrics are at /metrics\n"),
    }
    server = PageServer(request.host, request.port, pages)
    try:
        host = f"[{request.host}]" if ":" in request.host else request.host
        notify(f"metrics are at http://{host}:{server.port}/metrics; Ctrl-C ends this")
        server.serve()
    except KeyboardInterrupt:
        return exits.OK
    finally:
        server.close()
    return exits.OK
