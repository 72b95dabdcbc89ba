"""Real servers, and what can be done to them and to what passes on the way."""

from __future__ import annotations

import ctypes
import json
import os
import queue
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from typing import Any, Callable, Dict, List, Optional

BINARY = os.environ.get("LEASEHOLD_TEST_BINARY", "")

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")

# What the person who runs the tests has set must not change them.
for _name in [name for name in os.environ if name.startswith("LEASEHOLD_") and name != "LEASEHOLD_TEST_BINARY"]:
    del os.environ[_name]

sys.path.insert(0, SOURCE)

import leasehold  # noqa: E402

PATIENCE = 30.0  # after which something hangs


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_address() -> str:
    """Return an address of loopback that nobody else will take, out of sixteen million."""
    while True:
        host = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        with socket.socket() as s:
            try:
                s.bind((host, 0))
            except OSError:
                continue
            return f"{host}:{s.getsockname()[1]}"


def until(what: str, is_so: Callable[[], Any]) -> Any:
    """Wait until something is so, and return it."""
    begin = time.monotonic()
    while True:
        value = is_so()
        if value:
            return value
        if time.monotonic() - begin > PATIENCE:
            raise AssertionError(f"not so after {PATIENCE} s: {what}")
        time.sleep(0.01)


class Server:
    """One process after the other on the same data."""

    def __init__(self, *flags: str, tls: bool = False) -> None:
        self.address = free_address()
        self.url = ("https://" if tls else "http://") + self.address
        self.flags = list(flags)
        self.dir = tempfile.mkdtemp(prefix="leasehold-python-")
        self.log = open(os.path.join(self.dir, "log"), "ab")
        self.process: Optional[subprocess.Popen] = None

    def start(self) -> "Server":
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", self.address, "--data", os.path.join(self.dir, "data"), *self.flags],
            env={}, stdout=self.log, stderr=self.log, preexec_fn=die_with_parent)
        return self

    def ready(self) -> "Server":
        def answers() -> bool:
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.said()}")
            with socket.socket() as s:
                host, port = self.address.split(":")
                return s.connect_ex((host, int(port))) == 0 and (self.url.startswith("https") or self._is_ready())

        until("the server is ready", answers)
        return self

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def said(self) -> str:
        with open(os.path.join(self.dir, "log"), errors="replace") as f:
            return f.read()[-4000:]

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        self.kill()
        self.log.close()
        subprocess.run(["rm", "-rf", self.dir], check=True)

    def ask(self, path: str, body: Optional[Dict[str, Any]] = None) -> Any:
        """Send a request past the client."""
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data=data, timeout=30) as answer:
            return json.load(answer)

    def status(self, resource: str) -> Dict[str, Any]:
        try:
            return self.ask("/v1/resources/" + resource)
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return {"state": "available", "holders": [], "waiting": 0}
            raise

    def holders(self, resource: str) -> List[Dict[str, Any]]:
        return self.status(resource).get("holders") or []

    def events(self, resource: str) -> List[Dict[str, Any]]:
        return self.ask("/v1/history?resource=" + resource)["items"]


def cluster() -> List[Server]:
    """Start three servers as one."""
    servers = [Server("--insecure") for _ in range(3)]
    members = ",".join(f"n{i}={free_address()}" for i in range(3))
    for i, server in enumerate(servers):
        server.flags += ["--name", f"n{i}", "--initial-cluster", members]
        server.start()
    for server in servers:
        server.ready()
    return servers


class Proxy:
    """Passes bytes between clients and a server, and can lose answers."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()  # guards what follows
        self._lose: Dict[bytes, int] = {}
        self._lost: Dict[bytes, int] = {}
        self._see: Callable[[bytes], None] = lambda data: None
        self._black = False
        self._open: List[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answers(self, path: str, count: int) -> None:
        """Pass the next requests for a path on, and cut the connection instead of passing on the answer."""
        with self._lock:
            self._lose[path.encode()] = count

    def see(self, look: Callable[[bytes], None]) -> None:
        """Call something with each request before it is passed on."""
        with self._lock:
            self._see = look

    def lost(self, path: str) -> int:
        with self._lock:
            return self._lost.get(path.encode(), 0)

    def swallow(self, black: bool) -> None:
        """Let connections lead nowhere, without an error, those that there are included."""
        with self._lock:
            self._black = black

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            for s in self._open:
                s.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            host, port = self._target.split(":")
            server = socket.create_connection((host, int(port)))
            with self._lock:
                self._open += [client, server]
            with client, server:
                self._pass(client, server)
        except OSError:
            pass

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        losing: Optional[bytes] = None
        while True:
            for s in select.select([client, server], [], [])[0]:
                data = s.recv(1 << 16)
                if not data:
                    return
                with self._lock:
                    black = self._black
                if black:
                    continue
                if s is client:
                    self._see(data)
                    losing = self._losing(data)
                    server.sendall(data)
                elif losing is not None:
                    with self._lock:
                        self._lost[losing] = self._lost.get(losing, 0) + 1
                    return
                else:
                    client.sendall(data)

    def _losing(self, data: bytes) -> Optional[bytes]:
        with self._lock:
            for path, count in self._lose.items():
                if count > 0 and data.startswith(b"POST " + path + b" "):
                    self._lose[path] = count - 1
                    return path
        return None


class Child:
    """A Python process that uses the client, and says what it does, a line at a time."""

    def __init__(self, program: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", program], env={"PYTHONPATH": SOURCE, "PATH": os.environ["PATH"], **env},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self._lines: "queue.Queue[str]" = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def line(self) -> str:
        try:
            return self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"the process says nothing for {PATIENCE} s") from None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


_count = 0


class Case(unittest.TestCase):
    """A test with a server, which all tests of its class share."""

    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        if not BINARY:
            raise unittest.SkipTest("LEASEHOLD_TEST_BINARY does not name a leasehold binary")
        cls.server = Server().start().ready()
        cls.addClassCleanup(cls.server.close)

    def setUp(self) -> None:
        global _count
        _count += 1
        self.resource = f"{self.id().rsplit('.', 1)[-1]}/{_count}"

    def client(self, servers: Any = None, **options: Any) -> leasehold.Client:
        client = leasehold.Client(servers or self.server.url, **options)
        self.addCleanup(client.close)
        return client

    def new_server(self, *flags: str) -> Server:
        server = Server(*flags).start().ready()
        self.addCleanup(server.close)
        return server

    def proxy(self, server: Optional[Server] = None) -> Proxy:
        proxy = Proxy((server or self.server).address)
        self.addCleanup(proxy.close)
        return proxy

    def child(self, program: str, **env: str) -> Child:
        child = Child(program, **{"LEASEHOLD_SERVER": self.server.url, "RESOURCE": self.resource, **env})
        self.addCleanup(child.close)
        return child
