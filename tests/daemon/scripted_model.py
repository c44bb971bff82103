"""A real HTTP server on loopback that answers as language models do, well or badly, by a script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from autoresearch.record.kinds import Run


@dataclass
class Answer:
    """One HTTP answer. ``pause`` seconds go by before each piece of the body."""

    body: bytes | list[bytes] = b""
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0


Script = Callable[[dict[str, Any]], Answer]


@dataclass
class ScriptedModel:
    """The server: what it was asked, and the script that answers."""

    script: Script
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def by(run: Run) -> str:
    """Who proposed a run; without the kind of change that a model was asked for."""
    return "/".join(run.proposed_by.split("/")[:2])


@contextmanager
def serving(script: Script) -> Iterator[ScriptedModel]:
    """Serve a script until the end of the block."""
    model = ScriptedModel(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.requests.append(body)
            model.headers.append(dict(self.headers))
            model.paths.append(self.path)
            answer = model.script(body)
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.kind, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in [answer.body] if isinstance(answer.body, bytes) else answer.body:
                    time.sleep(answer.pause)
                    self.wfile.write(piece)
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client had enough

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def in_turn(*answers: Answer) -> Script:
    """A script that gives these answers one after the other, the last one again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def events(*parts: object, end: str = "data: [DONE]\n\n") -> Answer:
    """Server-sent events, each in a piece of its own."""
    return Answer(
        [*(f"data: {json.dumps(part)}\n\n".encode() for part in parts), end.encode()], kind="text/event-stream"
    )


def openai(text: str, *, finish: str = "stop", tokens: tuple[int, int] = (100, 20)) -> Answer:
    """A streamed chat completion, cut in the middle of words."""
    cut = [text[start : start + 7] for start in range(0, len(text), 7)]
    parts: list[object] = [{"choices": [{"delta": {"content": piece}}]} for piece in cut]
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return events(*parts, {"choices": [{"delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": usage})


def anthropic(text: str, *, stop: str = "end_turn") -> Answer:
    """A streamed message."""
    return events(
        {"type": "message_start", "message": {"usage": {"input_tokens": 90, "cache_read_input_tokens": 10}}},
        {"type": "content_block_start", "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
        end="",
    )


def ollama(text: str, *, done: str = "stop") -> Answer:
    """A streamed chat of Ollama, one JSON object a line."""
    lines = [
        {"message": {"content": text[:5]}, "done": False},
        {"message": {"content": text[5:]}, "done": False},
        {"message": {}, "done": True, "done_reason": done, "prompt_eval_count": 100, "eval_count": 20},
    ]
    return Answer([json.dumps(line).encode() + b"\n" for line in lines], kind="application/x-ndjson")
