"""The routes, all of them authenticated and authorised, under `<base_url>/gpu-workbench/api/`.

    GET  version            which server half answers (`ServerHalf`)
    GET  status             the lab now (`Status`), for pages whose websocket is refused
    GET  watch              websocket: `Status` or `Failure` now and after each change
    POST jobs/<id>/cancel   end a job of this user's

An error is answered with the JSON of a `Failure`. Only what a Jupyter server has loaded anyway is
imported here; the rest comes with the first request.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import url_path_join
from tornado.web import HTTPError, authenticated
from tornado.websocket import WebSocketClosedError, WebSocketHandler

if TYPE_CHECKING:
    from logging import Logger

    from workbench.frontends.server.relay import Connect, Relay

AUTH_RESOURCE = "gpu-workbench"


class LazyRelay:
    """Makes the relay, and imports what it needs, when the first request comes.

    Args:
        connect: As in `Relay`.
        log: As in `Relay`.
    """

    def __init__(self, connect: Connect | None, log: Logger) -> None:
        self._connect = connect
        self._log = log

    @cached_property
    def relay(self) -> Relay:
        """The one relay of this server."""
        from workbench.frontends.server.relay import Relay

        return Relay(self._connect, self._log)


class WorkbenchHandler(APIHandler):
    """Base of the routes that answer with JSON."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False  # a page that polls must not keep an idle server from being culled

    def initialize(self, lazy: LazyRelay) -> None:
        """Take what `routes` gave; tornado calls this for each request."""
        self.lazy = lazy

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log an expected error in one line, any other with its traceback."""
        from workbench.client import PeerError, UserError

        if isinstance(value, PeerError | UserError):
            self.log.warning("%s %s: %s", self.request.method, self.request.path, value)
        else:
            super().log_exception(typ, value, tb)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with a `Failure`, except where Jupyter itself refused the request."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        if error is None or isinstance(error, HTTPError):
            super().write_error(status_code, **kwargs)
            return
        import msgspec

        from workbench.frontends.server.errors import HTTP_STATUS, failure_from

        failure = failure_from(error)
        self.set_status(HTTP_STATUS[failure.fault])
        self.finish(msgspec.json.encode(failure))


class VersionHandler(WorkbenchHandler):
    """`GET version`."""

    @authenticated
    @authorized
    async def get(self) -> None:
        """Say which server half answers; needs no controller."""
        import msgspec

        from workbench import __version__
        from workbench.protocol.browser import ServerHalf
        from workbench.protocol.messages import PROTOCOL

        self.finish(msgspec.json.encode(ServerHalf(software=__version__, protocol=PROTOCOL)))


class StatusHandler(WorkbenchHandler):
    """`GET status`."""

    @authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the latest `Status`."""
        self.finish(await self.lazy.relay.latest())


class CancelHandler(WorkbenchHandler):
    """`POST jobs/<id>/cancel`."""

    @authenticated
    @authorized
    async def post(self, job: str) -> None:
        """End a job of this user's."""
        await self.lazy.relay.cancel(job)
        self.finish(b"{}")


class WatchHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """`GET watch`: one websocket a page. What a page sends is ignored."""

    auth_resource = AUTH_RESOURCE
    _sending: asyncio.Task[None] | None = None

    def initialize(self, lazy: LazyRelay) -> None:
        """Take what `routes` gave; tornado calls this for each request."""
        self.lazy = lazy

    @ws_authenticated
    @authorized
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Upgrade to a websocket."""
        await super().get(*args, **kwargs)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to send; tornado calls this once the websocket is open."""
        super().open(*args, **kwargs)
        self._sending = asyncio.create_task(self._send())

    def on_message(self, message: str | bytes) -> None:
        """Ignore what the page says: it has nothing to ask for."""

    def on_close(self) -> None:
        """Stop sending; tornado calls this when the page has gone."""
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self) -> None:
        with suppress(WebSocketClosedError):
            async with aclosing(self.lazy.relay.follow()) as messages:
                async for payload in messages:
                    # Waits until the socket has taken it: a slow page skips, it piles up nothing.
                    await self.write_message(payload)


def routes(base_url: str, lazy: LazyRelay) -> list[tuple[str, type, dict[str, Any]]]:
    """Return what tornado's `add_handlers` takes.

    Args:
        base_url: The Jupyter server's, as it stands in request paths.
        lazy: Shared by all routes.
    """
    handlers = {
        "version": VersionHandler,
        "status": StatusHandler,
        "watch": WatchHandler,
        "jobs/([^/]+)/cancel": CancelHandler,
    }
    root = url_path_join(re.escape(base_url), "gpu-workbench", "api")
    return [
        (url_path_join(root, path), handler, {"lazy": lazy}) for path, handler in handlers.items()
    ]
