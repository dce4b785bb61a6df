"""What servers say: bytes of a body in, token-bearing events, counts and ends out.

Knows no I/O, no clock and no Locust. `SSEDecoder` and `NDJSONDecoder` cut a body into events; a
`Dialect` builds the request's body and makes the `Reader` that says what each event means.
"""

from llm_locust.protocol.lenient import server_message
from llm_locust.protocol.ndjson import NDJSONDecoder
from llm_locust.protocol.registry import ENTRY_POINT_GROUP, dialect_names, get_dialect, make_decoder
from llm_locust.protocol.sse import Event, EventDecoder, SSEDecoder
from llm_locust.protocol.types import (
    ANSWER,
    NOTHING,
    REASONING,
    REFUSAL,
    TOOL,
    UNSEEN,
    Arrival,
    BodyOptions,
    Dialect,
    Framing,
    Message,
    PromptRequest,
    Reader,
    Usage,
)

__all__ = [
    "ANSWER",
    "ENTRY_POINT_GROUP",
    "NOTHING",
    "REASONING",
    "REFUSAL",
    "TOOL",
    "UNSEEN",
    "Arrival",
    "BodyOptions",
    "Dialect",
    "Event",
    "EventDecoder",
    "Framing",
    "Message",
    "NDJSONDecoder",
    "PromptRequest",
    "Reader",
    "SSEDecoder",
    "Usage",
    "dialect_names",
    "get_dialect",
    "make_decoder",
    "server_message",
]
