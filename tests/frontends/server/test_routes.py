"""The routes of a real Jupyter server: who may ask, and what is answered."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.frontends.server.live_server import REAL, TOKEN, LiveServer, isolated, live_server
from tests.frontends.server.scenes import busy_lab
from workbench import __version__
from workbench.frontends.server.handlers import LazyRelay, routes
from workbench.protocol.messages import PROTOCOL

REFUSALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
AUTHORIZED = {"Authorization": f"token {TOKEN}"}
MINE, ANOTHERS = f"{1:032x}", f"{2:032x}"


def ask(
    server: LiveServer, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    request = urllib.request.Request(
        server.url(path),
        method=method,
        headers=headers or {},
        data=b"" if method != "GET" else None,
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        is_json = error.headers.get_content_type() == "application/json"
        return error.code, json.loads(error.read()) if is_json else None


async def open_watch(server: LiveServer, headers: dict[str, str]) -> WebSocketClientConnection:
    url = server.url("gpu-workbench/api/watch").replace("http", "ws", 1)
    return await websocket_connect(HTTPRequest(url, headers=headers))


async def next_message(watch: WebSocketClientConnection) -> Any:
    return json.loads(await watch.read_message() or "null")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("server")) as live:
        live.show(busy_lab())
        yield live


def all_routes() -> list[tuple[str, str]]:
    """Every method that a handler of ours defines, with a path that its pattern matches."""
    found = []
    for pattern, handler, _ in routes("/", LazyRelay(None, None)):  # type: ignore[arg-type]
        ours = [base for base in handler.__mro__ if base.__module__.startswith("workbench.")]
        methods = {name for base in ours for name in vars(base)} & {
            method.lower() for method in handler.SUPPORTED_METHODS
        }
        path = pattern.replace("([^/]+)", MINE).replace("\\", "").removeprefix("/")
        found += [(method.upper(), path) for method in sorted(methods)]
    return found


@pytest.mark.parametrize("allow_unauthenticated", [False, True])
def test_every_route_refuses_a_stranger(tmp_path: Path, *, allow_unauthenticated: bool) -> None:
    # Where unauthenticated access is allowed, Jupyter's default, a handler without a decorator is
    # open to all; where it is not, Jupyter itself hides that the decorator is missing.
    assert len(all_routes()) >= 4
    with live_server(tmp_path, allow_unauthenticated=allow_unauthenticated) as live:
        answers = {(method, path): ask(live, path, method)[0] for method, path in all_routes()}
    assert {key: code for key, code in answers.items() if code not in REFUSALS} == {}


def test_a_post_with_a_cookie_alone_needs_the_xsrf_token(server: LiveServer) -> None:
    login = urllib.request.Request(server.url(f"lab?token={TOKEN}"))
    jar = urllib.request.HTTPCookieProcessor()
    with pytest.raises(urllib.error.HTTPError):  # there is no page `lab`, but the cookie is set
        urllib.request.build_opener(jar).open(login, timeout=30)
    cookies = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in jar.cookiejar)}
    assert ask(server, "gpu-workbench/api/status", headers=cookies)[0] == HTTPStatus.OK
    code, _ = ask(server, f"gpu-workbench/api/jobs/{MINE}/cancel", "POST", cookies)
    assert code == HTTPStatus.FORBIDDEN


def test_version_names_software_and_protocol(server: LiveServer) -> None:
    answer = ask(server, "gpu-workbench/api/version", headers=AUTHORIZED)
    assert answer == (200, {"software": __version__, "protocol": PROTOCOL})


def test_status_is_what_the_controller_says(server: LiveServer) -> None:
    code, status = ask(server, "gpu-workbench/api/status", headers=AUTHORIZED)
    assert code == HTTPStatus.OK
    assert status["type"] == "Status"
    assert [job["owner"] for job in status["jobs"]] == ["ana", "bob", "ana", "chidi", "ana"]


async def test_the_watch_tells_now_and_after_each_change_and_ignores_what_the_page_says(
    server: LiveServer,
) -> None:
    server.show(busy_lab())
    watch = await open_watch(server, AUTHORIZED)
    assert len((await next_message(watch))["jobs"]) == 5
    for nonsense in ("", "not json", '{"interval_ms": 1}', b"\x00\xff"):
        await watch.write_message(nonsense, binary=isinstance(nonsense, bytes))
    code, _ = ask(server, f"gpu-workbench/api/jobs/{MINE}/cancel", "POST", AUTHORIZED)
    assert code == HTTPStatus.OK
    assert [job["id"] for job in (await next_message(watch))["jobs"]].count(MINE) == 0
    watch.close()


def test_an_error_of_the_user_is_a_400_with_the_next_step(server: LiveServer) -> None:
    server.show(busy_lab())
    answer = ask(server, f"gpu-workbench/api/jobs/{ANOTHERS}/cancel", "POST", AUTHORIZED)
    assert answer == (
        400,
        {
            "type": "Failure",
            "fault": "user",
            "error": "UserError",
            "message": f"there is no job {ANOTHERS} of yours",
            "next_step": "Look at `workbench jobs`",
        },
    )


def test_a_controller_that_cannot_be_reached_is_a_503_with_the_next_step_and_one_log_line(
    tmp_path: Path,
) -> None:
    with live_server(tmp_path) as live:
        live.fail("nothing listens on controller.sock", "Run `workbench doctor`")
        for _ in range(3):
            code, failure = ask(live, "gpu-workbench/api/status", headers=AUTHORIZED)
            assert code == HTTPStatus.SERVICE_UNAVAILABLE
            assert failure["message"] == "nothing listens on controller.sock"
            assert failure["next_step"] == "Run `workbench doctor`"
        said = [line for line in live.log.read_text().splitlines() if "controller.sock" in line]
        assert len([line for line in said if "GPU Workbench:" in line]) == 1
        assert "Traceback" not in live.log.read_text()


def test_the_extension_loads_where_nothing_else_of_workbench_can(tmp_path: Path) -> None:
    # rapidsai/jupyterlab-nvdashboard#69: an odd driver must not stop the server's extension.
    broken = tmp_path / "broken"
    broken.mkdir()
    for module in ("pynvml", "psutil", "msgspec", "dask", "distributed"):
        (broken / f"{module}.py").write_text(f"raise RuntimeError('{module} was imported')\n")
    path = f"{broken}:{isolated(tmp_path)['PYTHONPATH']}"
    with live_server(tmp_path, extension=REAL, environment={"PYTHONPATH": path}) as live:
        log = live.log.read_text()
        assert log.count("GPU Workbench:") == 1
        assert "was imported" not in log
