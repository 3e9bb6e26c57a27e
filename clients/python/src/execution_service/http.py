"""HTTP over kept-alive connections, with problems as exceptions and retries of calls that may be repeated."""

from __future__ import annotations

import base64
import email.message
import http.client
import json
import logging
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Union

from ._version import __version__
from .errors import ApiError, InvalidMember, ServiceUnreachable

log = logging.getLogger("execution_service")

#: Repeated: the service was busy, was not there, or its answer is unknown.
TEMPORARY = frozenset((408, 429, 500, 502, 503, 504))

_IDLE_CONNECTIONS_MAX = 32


class Response(NamedTuple):
    status: int
    headers: email.message.Message
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class Transport:
    """Sends requests to one service. Threads may share it."""

    def __init__(self, url: str, api_key: str, timeout: float = 30) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"The URL of a service is http://… or https://…, not {url!r}.")
        if not api_key or not api_key.isascii() or not api_key.isprintable():
            raise ValueError("The API key is empty, or has characters that no API key has.")
        self._parts = parts
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {api_key}", "User-Agent": f"execution-service-python/{__version__}"}
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._proxy = _find_proxy(parts)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] = {},
        timeout: Optional[float] = None,
        attempts: int = 4,
        sleep: Callable[[float], Any] = time.sleep,
    ) -> Response:
        """Sends a request that may be repeated.

        :param body: bytes and the file of a ``Path`` are sent as they are, ``None`` is not sent, and other values as JSON.
        :param timeout: seconds for each attempt.
        :param attempts: how often to send it if it fails for a temporary reason.
        :param sleep: waits before the next attempt, and returns something true to give up.
        :raises ApiError: if the service refuses it. :raises ServiceUnreachable: without an answer.
        """
        content = body if body is None or isinstance(body, (bytes, Path)) else dump_json(body)
        for attempt in range(1, attempts + 1):
            try:
                return self._send(method, path, content, headers, timeout)
            except (ApiError, ServiceUnreachable) as error:
                if isinstance(error, ApiError) and error.status not in TEMPORARY or attempt == attempts:
                    raise
                log.warning("%s %s fails; trying again: %s", method, path, error)
                asked = error.retry_after if isinstance(error, ApiError) else None
                if sleep(backoff(attempt) if asked is None else asked + random.random()):
                    raise
        raise AssertionError("unreachable")

    def _send(
        self, method: str, path: str, content: Union[bytes, Path, None], headers: Mapping[str, str], timeout: Optional[float]
    ) -> Response:
        connection = self._take(timeout)
        is_reused = connection.sock is not None
        try:
            response = self._start(connection, method, path, content, headers)
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # The service closes idle connections, perhaps at the moment of this request.
            if is_reused and isinstance(error, ConnectionError):
                return self._send(method, path, content, headers, timeout)
            raise self._unreachable(error) from error
        if response.will_close:
            connection.close()
        else:
            self._put_back(connection)
        return _check(Response(response.status, response.headers, body))

    def stream(
        self,
        path: str,
        headers: Mapping[str, str],
        silence: float,
        on_connected: Callable[[socket.socket], None] = lambda _: None,
    ) -> http.client.HTTPResponse:
        """Begins a response that is read as it comes. The caller closes it.

        :param on_connected: gets the socket, which another thread may shut down.
        """
        connection = self._connect(silence)
        try:
            connection.connect()
            on_connected(connection.sock)
            response = self._start(connection, "GET", path, None, headers)
            if response.status >= 300:
                _check(Response(response.status, response.headers, response.read()))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from error
        return response

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _start(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        content: Union[bytes, Path, None],
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        target = self._parts.path.rstrip("/") + path
        sent = {**self._headers, **headers}
        if self._proxy and not self._ssl:
            target = f"http://{self._parts.netloc.rpartition('@')[2]}{target}"
            sent.update(_proxy_headers(self._proxy))
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        if isinstance(content, Path):
            with content.open("rb") as file:
                sent["Content-Length"] = str(os.fstat(file.fileno()).st_size)
                connection.request(method, target, file, sent)
        else:
            connection.request(method, target, content, sent)
        return connection.getresponse()

    def _take(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            return self._connect(timeout)
        connection.timeout = self._timeout if timeout is None else timeout
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        return connection

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE_CONNECTIONS_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        peer = self._proxy or self._parts
        host = str(peer.hostname)
        seconds = self._timeout if timeout is None else timeout
        if self._ssl is None:
            return http.client.HTTPConnection(host, peer.port, timeout=seconds)
        connection = http.client.HTTPSConnection(host, peer.port, timeout=seconds, context=self._ssl)
        if self._proxy:
            connection.set_tunnel(str(self._parts.hostname), self._parts.port, _proxy_headers(self._proxy))
        return connection

    def _unreachable(self, error: Exception) -> ServiceUnreachable:
        address = f"{self._parts.scheme}://{self._parts.netloc.rpartition('@')[2]}"
        return ServiceUnreachable(f"{address} does not answer: {error or type(error).__name__}")


def dump_json(value: Any) -> bytes:
    # Halves of surrogate pairs have no encoding in UTF-8.
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def quote(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def backoff(attempt: int) -> float:
    """Seconds to wait after this many failures: half a second, doubled each time, at most 30, shortened at random."""
    return float(min(30.0, 0.5 * 2 ** min(attempt - 1, 10)) * random.uniform(0.5, 1))


def _check(response: Response) -> Response:
    if response.status < 300:
        return response
    problem: Dict[str, Any] = {}
    text = response.body[:1000].decode("utf-8", "replace").strip()
    try:
        parsed = json.loads(response.body)
        problem = parsed if isinstance(parsed, dict) else {}
    except ValueError:
        pass
    if response.status == 401:
        text = "The service does not accept the API key: it is unknown, deleted or expired."
    elif response.status == 403:
        text = "The API key lacks a scope that this operation needs."
    elif 300 <= response.status < 400:
        text = f"The service redirects to {response.headers.get('Location')}, which is not followed."
    members = [
        InvalidMember(str(each.get("pointer") or each.get("parameter") or each.get("header") or ""), str(each["detail"]))
        for each in problem.get("errors", [])
    ]
    try:
        retry_after: Optional[float] = float(response.headers.get("Retry-After", ""))
    except ValueError:
        retry_after = None
    raise ApiError(
        response.status,
        str(problem.get("title") or http.client.responses.get(response.status, "Unknown status")),
        str(problem.get("detail", text)),
        type=str(problem.get("type", "about:blank")),
        errors=members,
        request_id=problem.get("requestId") or response.headers.get("X-Request-Id"),
        retry_after=retry_after,
    )


def _find_proxy(parts: urllib.parse.SplitResult) -> Optional[urllib.parse.SplitResult]:
    """The proxy of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, or of the operating system."""
    if urllib.request.proxy_bypass(str(parts.hostname)):
        return None
    address = urllib.request.getproxies().get(parts.scheme)
    if not address:
        return None
    return urllib.parse.urlsplit(address if "//" in address else f"http://{address}")


def _proxy_headers(proxy: urllib.parse.SplitResult) -> Dict[str, str]:
    if proxy.username is None:
        return {}
    credentials = f"{urllib.parse.unquote(proxy.username)}:{urllib.parse.unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
