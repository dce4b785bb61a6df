"""The pages in Locust's web UI: our front end in place of Locust's, the live answer, downloads, the form's groups.

The front end is Locust's own as a library (npm `locust-ui`) with our tabs beside its own; where it does not fit
(another Locust, `--build-path`) our stage table goes into Locust's page as an extended tab, and the log says so once.
Every route stands behind Locust's login where one is set.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, request
from jinja2 import ChoiceLoader, FileSystemLoader

from llm_locust.measure.snapshot import ALL
from llm_locust.outputs import numbers
from llm_locust.outputs.facts import RunFacts
from llm_locust.outputs.live import LiveHistory
from llm_locust.outputs.picture import Picture

from .form import form_args
from .web_state import StateTold

logger = logging.getLogger(__name__)

BUNDLE = Path(__file__).parent.parent / "webui"
DOWNLOADS = {
    "requests.csv": "text/csv",
    "stages.csv": "text/csv",
    "timeline.csv": "text/csv",
    "summary.json": "application/json",
    "run.conf": "text/plain",
    "report.html": "text/html",
}
"""What may be fetched of a run's folder, and as what."""

_NO_RUN = b'{"token":"","whole":true,"now":null}'
_NO_SAMPLE = b'{"run_id":"","stages":[]}'
_BLOCK_BYTES = 64 * 1024
_NEEDED_ARGS = frozenset({"state", "version", "host", "extra_options", "is_distributed", "history", "num_users"})
_TABLE = (
    ("users", "Users", numbers.count),
    ("requests_ok", "OK", numbers.count),
    ("requests_failed", "Failed", numbers.count),
    ("ttft_ms_p50", "TTFT p50 ms", numbers.three_digits),
    ("ttft_ms_p99", "TTFT p99 ms", numbers.three_digits),
    ("tpot_ms_p50", "TPOT p50 ms", numbers.three_digits),
    ("tpot_ms_p99", "TPOT p99 ms", numbers.three_digits),
    ("output_tok_per_s", "Output tok/s", numbers.three_digits),
    ("goodput_per_s", "Goodput req/s", numbers.three_digits),
)


class Board:
    """What the pages show: the newest run of this process. The loop that takes pictures writes, the routes read."""

    def __init__(self) -> None:
        self._keys = itertools.count(1)
        self.live: LiveHistory | None = None
        self.directory: Path | None = None
        self.picture: Picture | None = None

    def begin(self, run: RunFacts, directory: Path | None) -> LiveHistory:
        """Begin a run, or the part of it since a reset; what pages had is dropped at their next refresh."""
        self.live = LiveHistory(run, str(next(self._keys)))
        self.directory = directory
        self.picture = None
        return self.live


def register(environment: Any, board: Board, shapes: Sequence[str] = ()) -> None:
    """Put our pages into Locust's web UI, in `init`: the server starts after it. ``shapes``: names for --llm-shape."""
    web_ui = environment.web_ui
    _add_routes(environment, board)
    StateTold(environment).hook()
    reason = _why_not_ours(environment)
    if reason is None:
        # Locust serves the assets of `template_folder`, and its own where that has none; auth.html stays Locust's.
        web_ui.app.jinja_loader = ChoiceLoader([FileSystemLoader(BUNDLE), web_ui.app.jinja_loader])
        web_ui.app.template_folder = str(BUNDLE)
        web_ui.template_args["llm"] = {**form_args(shapes), "method": _stop_method(web_ui.app)}
    else:
        logger.warning("llm-locust: %s; the stage table is in Locust's own page, without charts", reason)
        _add_table(web_ui, board)
    web_ui.template_args["extended_csv_files"] = [
        *web_ui.template_args.get("extended_csv_files", ()),
        *({"href": f"llm/files/{name}", "title": f"LLM: {name}"} for name in DOWNLOADS),
    ]


def _why_not_ours(environment: Any) -> str | None:
    """Say why Locust's own front end stays; None where ours fits."""
    if getattr(environment.parsed_options, "build_path", None):
        return "--build-path names another front end"
    if not (BUNDLE / "index.html").is_file():
        return "the front end is not in this installation"
    environment.web_ui.update_template_args()
    missing = _NEEDED_ARGS - environment.web_ui.template_args.keys()
    if missing:
        return f"this Locust's page lacks {', '.join(sorted(missing))}"
    return None


def _stop_method(app: Any) -> str:
    """How this Locust is stopped and reset: by GET before 2.47, by POST from then on."""
    methods = next(iter(app.url_map.iter_rules("locust.stop"))).methods
    return "POST" if "POST" in methods else "GET"


def _add_routes(environment: Any, board: Board) -> None:
    web_ui = environment.web_ui
    base_path = getattr(environment.parsed_options, "web_base_path", None)
    pages = Blueprint("llm_locust", __name__, url_prefix=base_path or None)

    def live() -> Response:
        token = request.args.get("token", "")
        return _json(_NO_RUN if board.live is None else board.live.answer(token))

    def distributions() -> Response:
        return _json(_NO_SAMPLE if board.live is None else board.live.distributions())

    def files() -> Response:
        return _json(json.dumps([{"name": path.name, "bytes": path.stat().st_size} for path in _downloads(board)]))

    def file(name: str) -> Response:
        for path in _downloads(board):
            if path.name == name:
                return _streamed(path)
        text = f"There is no {name} yet.\n" if name in DOWNLOADS else "No such file.\n"
        return Response(text, 404, mimetype="text/plain")

    views = {"live": live, "distributions": distributions, "files": files, "files/<name>": file}
    for path, view in views.items():
        pages.add_url_rule(f"/llm/{path}", view.__name__, web_ui.auth_required_if_enabled(view))
    web_ui.app.register_blueprint(pages)


def _json(body: bytes | str) -> Response:
    return Response(body, mimetype="application/json", headers={"Cache-Control": "no-store"})


def _downloads(board: Board) -> list[Path]:
    """The files of the newest run that are there."""
    if board.directory is None:
        return []
    return [path for name in DOWNLOADS if (path := board.directory / name).is_file()]


def _streamed(path: Path) -> Response:
    """Send a file as it is now in blocks; what is appended meanwhile is not part of the answer."""
    size = path.stat().st_size
    return Response(
        _blocks(path, size),
        mimetype=DOWNLOADS[path.name],
        headers={
            "Content-Length": str(size),
            "Content-Disposition": f"attachment; filename={path.name}",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(size, _BLOCK_BYTES))):
            size -= len(block)
            yield block


def _add_table(web_ui: Any, board: Board) -> None:
    """Show the stage table by Locust's own means: an extended tab whose rows ride on /stats/requests."""
    web_ui.template_args.setdefault("extended_tabs", []).append({"title": "LLM", "key": "llm"})
    columns = [("name", "Stage"), *((column, title) for column, title, _ in _TABLE), ("validity", "Validity")]
    structure = [{"key": key, "title": title} for key, title in columns]
    web_ui.template_args.setdefault("extended_tables", []).append({"key": "llm", "structure": structure})

    def add_stages(response: Response) -> Response:
        if request.path.endswith("/stats/requests") and response.is_json and board.picture is not None:
            document = json.loads(response.get_data())
            others = [table for table in document.get("extended_stats", []) if table["key"] != "llm"]
            document["extended_stats"] = [*others, {"key": "llm", "data": _table_rows(board.picture)}]
            response.set_data(json.dumps(document))  # Locust keeps this answer for the others who ask
        return response

    web_ui.app.after_request(add_stages)


def _table_rows(picture: Picture) -> list[dict[str, str]]:
    rows = []
    for row in picture.snapshot.rows:
        if row.name != ALL:
            continue
        verdict = picture.verdicts.get(row.stage)
        cells = {column: show(row.values[column]) for column, _, show in _TABLE}
        rows.append({"name": row.stage, **cells, "validity": verdict.validity.value if verdict else numbers.ABSENT})
    return rows
