"""The application: the route table, what stands around every answer, and the document that describes both."""

from __future__ import annotations

import msgspec
from aiohttp import web

from autoresearch import __version__
from autoresearch_daemon.api import control, reading, system
from autoresearch_daemon.api.events import ENDINGS, end_streams, stream_events
from autoresearch_daemon.api.failures import JSON, answer_failures
from autoresearch_daemon.api.guard import admit, protect
from autoresearch_daemon.api.openapi import openapi
from autoresearch_daemon.api.port import NodePort
from autoresearch_daemon.api.readers import NODE, open_readers
from autoresearch_daemon.api.requests import Nothing
from autoresearch_daemon.api.routes import Route, Text, handler

# A request of this API is a few words; what is larger is a mistake or an attack.
# A program has at most 1 MiB, and JSON writes some characters of it as six.
MAXIMUM_BODY_BYTES = 8 * 1024 * 1024


def get_openapi(_: NodePort, __: Nothing) -> Text:
    """This API, described by OpenAPI 3.1."""
    return Text(msgspec.json.encode(openapi(ROUTES, version=__version__)).decode())


ROUTES = (
    Route("GET", "/healthz", system.get_health),
    Route("GET", "/readyz", system.get_ready),
    Route("GET", "/metrics", system.get_metrics, media="text/plain; version=0.0.4"),
    Route("GET", "/openapi.json", get_openapi, media=JSON),
    Route("GET", "/v1/status", control.get_status),
    Route("GET", "/v1/best", reading.get_best),
    Route("GET", "/v1/top", reading.get_top),
    Route("GET", "/v1/credit", reading.get_credit),
    Route("GET", "/v1/proofs", reading.get_proofs),
    Route("GET", "/v1/proofs/{id}", reading.get_proof),
    Route("POST", "/v1/proofs/{id}/check", control.post_proof_check),
    Route("GET", "/v1/records", reading.get_records),
    Route("GET", "/v1/records/{id}", reading.get_record),
    Route("GET", "/v1/runs/{id}", reading.get_run),
    Route("GET", "/v1/runs/{id}/source", reading.get_source),
    Route("GET", "/v1/runs/{id}/log", reading.get_log),
    Route("GET", "/v1/runs/{id}/lineage", reading.get_lineage),
    Route("GET", "/v1/diff", reading.get_diff),
    Route("GET", "/v1/events", stream_events, media="text/event-stream"),
    Route("GET", "/v1/peers", control.get_peers),
    Route("POST", "/v1/peers", control.post_peers),
    Route("POST", "/v1/work", control.post_work),
    Route("POST", "/v1/pause", control.post_pause),
    Route("POST", "/v1/resume", control.post_resume),
    Route("POST", "/v1/finish", control.post_finish),
    Route("GET", "/v1/proposals", control.get_proposals),
    Route("POST", "/v1/proposals", control.post_proposal),
    Route("POST", "/v1/proposals/drop", control.post_drop),
    Route("POST", "/v1/peers/block", control.post_block),
    Route("POST", "/v1/fetch", control.post_fetch),
    Route("POST", "/v1/verify", control.post_verify),
    Route("POST", "/v1/name", control.post_name),
    Route("POST", "/v1/withdraw", control.post_withdraw_record),
    Route("POST", "/v1/trust", control.post_trust),
    Route("GET", "/v1/attest", control.get_attest),
    Route("POST", "/v1/attest", control.post_attest),
    Route("POST", "/v1/attest/confirm", control.post_confirm),
    Route("GET", "/v1/attestor", control.get_attestor),
    Route("POST", "/v1/attestor/withdraw", control.post_withdraw),
    Route("POST", "/v1/attestor/allow", control.post_allow),
    Route("POST", "/v1/stop", control.post_stop),
)


def make_app(node: NodePort) -> web.Application:
    """The API of ``node``; `serve` listens with it."""
    app = web.Application(middlewares=[answer_failures, admit], client_max_size=MAXIMUM_BODY_BYTES)
    app[NODE] = node
    app[ENDINGS] = set()
    for route in ROUTES:
        app.router.add_route(route.method, route.path, handler(route))
    app.cleanup_ctx.append(open_readers)
    app.on_response_prepare.append(protect)
    app.on_shutdown.append(end_streams)
    return app
