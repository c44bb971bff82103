"""What others wrote, made fit to stand in a prompt: data that can't close its fence, no path, no secret. Pure."""

from __future__ import annotations

import re

from autoresearch.sanitise import one_line, sanitised

MARKER = "data"
_REMOVED = "[removed]"
_BACKTICKS = re.compile("`+")
# An absolute path, of which the last name alone says something to others.
_PATH = re.compile(r"(?<![\w.:/])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@-]{1,255}){2,}[/\\]?|(?<![\w.:/])~[/\\][\w.+@-]{1,255}")
# Something named as a secret, with its value.
_SECRET = re.compile(r"(?i)([\w-]{0,64}(?:key|token|secret|passw(?:or)?d|credential)[\w-]{0,64}\s?[=:]\s?)[^\s,;]{8,}")
# What looks like a key: the prefixes of known services, and long texts without a space.
_KEY = re.compile(r"\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[a-z]|hf|AKIA|ASIA)[-_A-Z0-9][-_A-Za-z0-9]{10,}")
_LONG = re.compile(r"[A-Za-z0-9+_-]{40,}={0,2}")


def plain_line(text: str, characters: int) -> str:
    """What somebody wrote as one line of at most so many characters, without paths, secrets and backticks."""
    line = one_line(text)
    line = _PATH.sub(_last_name, line)
    line = _SECRET.sub(rf"\1{_REMOVED}", line)
    line = _LONG.sub(_REMOVED, _KEY.sub(_REMOVED, line))
    return one_line(line.replace("`", "'"), characters)


def fenced(text: str, language: str = MARKER) -> str:
    """A text in a fence of backticks that is longer than any row of backticks in it, so that it can't end there.

    The text stays as it is but for harmful characters.
    """
    shown = sanitised(text, lines=True)
    longest = max((len(row) for row in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown.rstrip()}\n{fence}"


def _last_name(found: re.Match[str]) -> str:
    return re.split(r"[/\\]", found[0].rstrip("/\\"))[-1]
