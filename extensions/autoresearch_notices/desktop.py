"""Notices on the desktop of the user who started the node.

See https://specifications.freedesktop.org/notification-spec/latest/protocol.html
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from jeepney import DBusAddress, DBusErrorResponse, new_method_call
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg

from autoresearch.notices import Notice, NotTaken, Taken, heading
from autoresearch.paths import session_bus
from autoresearch.settings import Settings
from autoresearch.text import one_line

SECONDS = 10.0
# So many lines fit on a desktop's notice.
LINES = 5
NAME = "org.freedesktop.Notifications"
DESKTOP = DBusAddress("/org/freedesktop/Notifications", bus_name=NAME, interface=NAME)


def send(notices: Sequence[Notice], _address: str, _settings: Settings, _environment: Mapping[str, str]) -> Taken:
    """One notice with all of them, on the desktop whose session bus is this user's."""
    text = html.escape("\n".join(one_line(notice.text, 200) for notice in notices[-LINES:]), quote=False)
    # Program, none to replace, no icon, title, text, no buttons, no hints, the desktop's own time.
    body: tuple[object, ...] = ("autoresearch", 0, "", heading(notices), text, [], {}, -1)
    try:
        with open_dbus_connection(session_bus()) as bus:
            unwrap_msg(
                bus.send_and_get_reply(new_method_call(DESKTOP, "Notify", "susssasa{sv}i", body), timeout=SECONDS)
            )
    except DBusErrorResponse as error:
        raise NotTaken(f"the desktop refuses: {error.name}") from None
    except (OSError, EOFError, RuntimeError, ValueError):  # TimeoutError is an OSError
        raise NotTaken("no desktop of this user answers on its session bus") from None
    return Taken(len(notices))
