"""The daemon's own log: lines in a file, and on the terminal when asked for. What others wrote is made harmless."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from autoresearch.sanitise import sanitised

LOG_FILE_BYTES = 5 * 1024 * 1024
LOG_FILES_KEPT = 3


class SanitisedFormatter(logging.Formatter):
    """Lines of a child process, which go where the daemon's output goes."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; several only where there is a traceback."""
        return sanitised(super().format(record), lines=bool(record.exc_info))


def set_up_logging(path: Path, level: str, *, to_terminal: bool) -> None:
    """JSON lines in a rotating file; readable lines on the terminal when asked for."""
    handler = RotatingFileHandler(path, maxBytes=LOG_FILE_BYTES, backupCount=LOG_FILES_KEPT)
    handler.setFormatter(_formatter(structlog.processors.JSONRenderer()))
    handlers: list[logging.Handler] = [handler]
    if to_terminal:
        terminal = logging.StreamHandler()
        terminal.setFormatter(_formatter(structlog.dev.ConsoleRenderer()))
        handlers.append(terminal)
    logging.basicConfig(level=level.upper(), handlers=handlers, force=True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _formatter(renderer: Processor) -> logging.Formatter:
    """Lines of this program and of the libraries alike: what others wrote is made harmless, then rendered."""
    meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(
        processors=[meta, structlog.processors.format_exc_info, _sanitised, renderer]
    )


def _sanitised(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    # A traceback has lines; everything else is one, so that nobody can write a line of his own into the log.
    texts = {name: str(value) for name, value in entry.items() if not isinstance(value, int | float | None)}
    return {**entry, **{name: sanitised(text, lines=name == "exception") for name, text in texts.items()}}
