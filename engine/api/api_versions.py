"""ApiVersions (18): which APIs and versions are served.

| versions | difference |
|---|---|
| 0 | key, lowest, highest |
| 1, 2 | + throttle time |
| 3, 4 | flexible; the request has the client's software name and version |

An unknown version is answered in the form of version 0 with UNSUPPORTED_VERSION and the one entry
of this API, so that the client can repeat it; the header of the response is always version 0.
Source: KIP-511, ApiVersionsRequest; KIP-584 for the epoch of finalized features.
"""

from __future__ import annotations

import re

from engine.api.dispatch import DispatchTable
from engine.api.exchange import Exchange
from engine.kafka_errors import INVALID_REQUEST, UNSUPPORTED_VERSION
from engine.wire import messages

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
#: A ZooKeeper-mode broker has no finalized features; their epoch starts at 0.
_FINALIZED_FEATURES_EPOCH = 0


class ApiVersions:
    """Answers ApiVersions from the dispatch table."""

    def __init__(self, table: DispatchTable) -> None:
        self._table = table

    def handle(
        self, request: messages.ApiVersionsRequest, exchange: Exchange
    ) -> messages.ApiVersionsResponse:
        """Return the version ranges of the served APIs.

        From version 3 on the client's software is recorded. A client software name or version with
        wrong characters gets INVALID_REQUEST.
        """
        if exchange.api_version >= 3:
            name = request.client_software_name
            version = request.client_software_version
            if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
                return messages.ApiVersionsResponse(error_code=INVALID_REQUEST)
            exchange.session.client_software_name = name
            exchange.session.client_software_version = version
        return messages.ApiVersionsResponse(
            api_keys=self._advertised_versions(), finalized_features_epoch=_FINALIZED_FEATURES_EPOCH
        )

    def _advertised_versions(self) -> list[messages.ApiVersionsResponse.ApiVersion]:
        """Return the version range of each API that clients may see.

        Some APIs are served unadvertised.
        """
        version = messages.ApiVersionsResponse.ApiVersion
        return [
            version(api_key=row.key, min_version=row.lowest, max_version=row.highest)
            for row in self._table.rows()
            if row.is_advertised
        ]

    def refusal(self) -> messages.ApiVersionsResponse:
        """Return the response to an ApiVersions version that is not served, in version 0.

        It names the served versions of ApiVersions, so that the client repeats it in one of them.
        """
        own = self._table.row(18)
        assert own is not None
        versions = messages.ApiVersionsResponse.ApiVersion(
            api_key=own.key, min_version=own.lowest, max_version=own.highest
        )
        return messages.ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[versions])
