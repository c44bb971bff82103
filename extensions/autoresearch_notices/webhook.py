"""Notices as JSON, posted to an address such as a chat's incoming webhook."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import aiohttp
import structlog

from autoresearch.notices import Notice, NotTaken, Taken
from autoresearch.settings import Settings

SECONDS = 10.0
logger = structlog.get_logger()


def send(notices: Sequence[Notice], address: str, _settings: Settings, _environment: Mapping[str, str]) -> Taken:
    """Post the first. The address is often a secret: it is not repeated."""
    reason = asyncio.run(_post(notices[0], address))
    if reason:
        logger.warning("the webhook takes no message", reason=reason)
        raise NotTaken(reason)
    return Taken(1)


async def _post(notice: Notice, address: str) -> str:
    """Why it was not taken; empty where it was."""
    # Chat programs show one of these two fields: Slack and Mattermost the first, Discord the second.
    texts = {"text": notice.sentence, "content": notice.sentence}
    fields = {"event": notice.kind, "time_ms": notice.time_ms, "participant": notice.who, "data": notice.data}
    try:
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(trust_env=True) as session,
            session.post(address, json=texts | fields, allow_redirects=False) as response,
        ):
            return "" if response.status < 300 else f"it answered {response.status}"
    except TimeoutError:
        return f"no answer within {SECONDS:g} s"
    except (aiohttp.ClientError, ValueError) as error:
        return type(error).__name__
