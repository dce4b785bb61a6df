"""What each path answers: routing, authorization, admission of generations, scripts and faults."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

import msgspec

from llm_locust.mock.faults import FAULTS, draw_fault
from llm_locust.mock.generation import Generation
from llm_locust.mock.http import Connection, Request
from llm_locust.mock.metrics import Metrics
from llm_locust.mock.options import Options
from llm_locust.mock.pace import Pace
from llm_locust.mock.pacer import Pacer
from llm_locust.mock.plan import check_context
from llm_locust.mock.script import MODES, Player, Script
from llm_locust.mock.tokens import CHAT_TOKENS_PER_MESSAGE, token_id
from llm_locust.mock.truth import Told, Truth
from llm_locust.mock.voices import VOICES, voice_for
from llm_locust.mock.voices.voice import BadRequestError, chat_prompt, text_prompt

OPEN_PATHS = ("/health", "/health_generate", "/truth", "/metrics")
LOGIN_PAGE = b"<html><body><h1>Sign in</h1></body></html>"


class App:
    """The server's behaviour; holds what all requests share."""

    def __init__(self, options: Options, pace: Pace, truth: Truth, scripts: Mapping[str, Script]) -> None:
        self.options = options
        self.pace = pace
        self.pacer = Pacer(pace)
        self.truth = truth
        self.metrics = Metrics()
        self.model = options.model or "mock"
        self._scripts = scripts
        self._faults = tuple(pair for pair in options.faults if pair[0] != "connect_error")
        self._routes: dict[str, Callable[[Request], Any]] = {
            "/health": lambda request: {},
            "/health_generate": lambda request: {},
            "/truth": self._truth,
            "/v1/models": self._models,
            "/get_server_info": self._server_info,
            "/server_info": self._server_info,
            "/flush_cache": self._flush_cache,
            "/reset_prefix_cache": self._flush_cache,
            "/start_profile": lambda request: {"message": "Start profiling."},
            "/stop_profile": lambda request: {"message": "Stop profiling."},
            "/tokenize": self._tokenize,
            "/v1/tokenize": self._tokenize,
        }

    def handle(self, connection: Connection, request: Request) -> None:
        """Answer one request; an error of our own is printed and answered with 500."""
        arrival_ns = monotonic_ns()
        try:
            self._dispatch(connection, request, arrival_ns)
        except BadRequestError as error:
            self._error(connection, error.status, str(error))
        except Exception:
            traceback.print_exc(file=sys.stderr)
            self._error(connection, 500, "the mock server has a bug: see its stderr")

    def _dispatch(self, connection: Connection, request: Request, arrival_ns: int) -> None:
        path = request.path
        self.truth.paths[path] += 1
        script = self._scripts.get(request.header(b"x-mock-script")) or self._scripts.get(path)
        if script is not None:
            self._play(connection, request, script, arrival_ns)
            return
        if name := request.header(b"x-mock-script"):
            raise BadRequestError(f"no script {name!r}", 404)
        if path not in OPEN_PATHS:
            self._authorize(request)
        if path in self.options.without:
            raise BadRequestError(f"no path {path}", 404)
        if path == "/metrics":
            self.settle()
            page = self.metrics.text(self.pace, self.pacer.generated_tokens, self.model)
            connection.reply(200, page.encode(), b"text/plain; version=0.0.4; charset=utf-8")
        elif path in VOICES:
            if request.method != "POST":
                raise BadRequestError("use POST", 405)
            self._generate(connection, request, arrival_ns)
        elif path in self._routes:
            connection.reply(200, msgspec.json.encode(self._routes[path](request)))
        else:
            raise BadRequestError(f"no path {path}", 404)

    def _error(self, connection: Connection, status: int, message: str,
               headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:  # fmt: skip
        error = {"error": {"message": message, "type": "MockError", "param": None, "code": status}}
        connection.reply(status, msgspec.json.encode(error), headers=headers)

    def _authorize(self, request: Request) -> None:
        key = self.options.api_key
        if key is None:
            return
        given = request.header(b"authorization").removeprefix("Bearer ") or request.header(b"x-api-key")
        if given != key:
            raise BadRequestError("invalid API key", 401)

    # -- generation -------------------------------------------------------------------------------------------------

    def _play(self, connection: Connection, request: Request, script: Script, arrival_ns: int) -> None:
        mode = request.header(b"x-mock-mode") or "whole"
        if mode not in MODES:
            raise BadRequestError(f"X-Mock-Mode is one of {', '.join(MODES)}")
        told = self.truth.begin(request.header(b"x-request-id"), request.path, arrival_ns)
        Player(script, mode, connection, self.truth, told, self.options.time_scale).start()

    def _generate(self, connection: Connection, request: Request, arrival_ns: int) -> None:
        body = json_object(request.body)
        voice_class = voice_for(request.path, body)
        if body.get("model") and self.options.model not in (None, body["model"]):
            raise BadRequestError(f"The model `{str(body['model'])[:100]}` does not exist.", 404)
        self._refuse(body)
        ask = voice_class.parse(body)
        check_context(ask, self.options)
        told = self.truth.begin(request.header(b"x-request-id"), request.path, arrival_ns)
        told.fault = draw_fault(self._faults, self.options.seed, told.number)
        if told.fault is not None and self._answered_with_fault(connection, told):
            return
        voice = voice_class(ask, f"mock-{told.number}", int(time.time()), self.options.stamp)
        Generation(self, connection, voice, told).start()

    def _refuse(self, body: Mapping[str, Any]) -> None:
        """Refuse optional fields, wherever the dialect puts them."""
        given = set(body)
        for nested in ("stream_options", "sampling_params", "parameters", "options"):
            given |= set(body[nested]) if isinstance(body.get(nested), dict) else set()
        if refused := sorted(given & self.options.refuse):
            raise BadRequestError(f"Unexpected fields: {', '.join(refused)}", self.options.refuse_status)

    def _answered_with_fault(self, connection: Connection, told: Told) -> bool:
        """Faults that leave no stream to generate."""
        retry_after = b"%g" % self.options.retry_after_s
        answers: dict[str, Callable[[], None]] = {
            "http_error": lambda: self._error(connection, 500, "internal error on purpose"),
            "rejected": lambda: self._error(connection, 429, "too many requests", ((b"Retry-After", retry_after),)),
            "unavailable": lambda: self._error(connection, 503, "overloaded"),
            "html": lambda: connection.reply(200, LOGIN_PAGE, b"text/html"),
        }
        if told.fault not in answers:
            return False
        told.outcome = FAULTS[told.fault].outcome
        told.completed = True
        self.truth.end(told, monotonic_ns())
        answers[told.fault]()
        return True

    # -- the other paths --------------------------------------------------------------------------------------------

    def settle(self, at_most: int | None = None) -> int:
        """Write and count finished requests, oldest first; return how many."""
        finished = self.truth.write_pending(at_most)
        for told in finished:
            self.metrics.observe(told)
        return len(finished)

    def _truth(self, request: Request) -> dict[str, Any]:
        self.settle()
        return self.truth.summary()

    def _models(self, request: Request) -> dict[str, Any]:
        model = {"id": self.model, "object": "model", "created": 0, "owned_by": "mock",
                 "max_model_len": self.options.max_model_len}  # fmt: skip
        return {"object": "list", "data": [model]}

    def _server_info(self, request: Request) -> dict[str, Any]:
        return {
            "version": "mock",
            "served_model_name": self.model,
            "profile": self.options.profile,
            "time_scale": self.options.time_scale,
            "context_length": self.options.max_model_len,
            "chat_tokens_per_message": CHAT_TOKENS_PER_MESSAGE,
        }

    def _flush_cache(self, request: Request) -> dict[str, Any]:
        self.pace.flush_cache()
        return {"success": True, "message": "Cache flushed."}

    def _tokenize(self, request: Request) -> dict[str, Any]:
        """vLLM's and SGLang's (prompt or messages), llama.cpp's (content)."""
        body = json_object(request.body)
        if self.options.tokenize == "content" and "content" not in body:
            return {"tokens": []}  # as llama.cpp does
        if self.options.tokenize == "prompt" and "prompt" not in body:
            raise BadRequestError("prompt is missing", 422)
        if "content" in body:
            return {"tokens": [token_id(word) for word in str(body["content"]).split()]}
        words, count = chat_prompt(body["messages"]) if "messages" in body else text_prompt(body.get("prompt"))
        ids = [word if isinstance(word, int) else token_id(word) for word in words]
        ids += [0] * (count - len(ids))  # the template's tokens
        return {"count": count, "max_model_len": self.options.max_model_len, "tokens": ids}


def json_object(body: bytes) -> dict[str, Any]:
    """Decode a request's body. Raises BadRequestError."""
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise BadRequestError("the body is not a JSON object")
    return decoded
