"""SaslHandshake (17) and SaslAuthenticate (36) of clients that are authenticated.

Before that, and if sessions expire, `sasl_authenticator.py` serves them.

Source: KafkaApis.handleSaslHandshakeRequest, handleSaslAuthenticateRequest.
"""

from __future__ import annotations

from engine.api.exchange import Exchange
from engine.kafka_errors import ILLEGAL_SASL_STATE
from engine.wire import messages

_TOO_LATE = "SaslAuthenticate request received after successful authentication"


class SaslRequests:
    """Refuses SaslHandshake and SaslAuthenticate."""

    def handshake(
        self, _request: messages.SaslHandshakeRequest, _exchange: Exchange
    ) -> messages.SaslHandshakeResponse:
        """Return ILLEGAL_SASL_STATE.

        An authentication does not take this path, which follows it.
        """
        return messages.SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE)

    def authenticate(
        self, _request: messages.SaslAuthenticateRequest, _exchange: Exchange
    ) -> messages.SaslAuthenticateResponse:
        """Return ILLEGAL_SASL_STATE.

        An authentication does not take this path, which follows it.
        """
        return messages.SaslAuthenticateResponse(
            error_code=ILLEGAL_SASL_STATE, error_message=_TOO_LATE
        )
