"""Who asks, and whom to trust: tokens and certificates."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from unittest import mock

import support
import leasehold
from leasehold import _credential
from leasehold._connection import Address
from support import until


class Access(support.Case):
    """A server with TLS, at which every request shows a token."""

    @classmethod
    def setUpClass(cls) -> None:
        if not support.BINARY:
            raise unittest.SkipTest("LEASEHOLD_TEST_BINARY does not name a leasehold binary")
        cls.server = support.Server(tls=True)
        cls.addClassCleanup(cls.server.close)
        certs = os.path.join(cls.server.dir, "certs")
        host = cls.server.address.split(":")[0]
        for args in (["cert", "ca"], ["cert", "server", "n1", host]):
            subprocess.run([support.BINARY, *args, "--dir", certs], check=True, env={}, capture_output=True)
        cls.server.flags = [
            "--access", "--tls-cert", os.path.join(certs, "n1.crt"), "--tls-key", os.path.join(certs, "n1.key")]
        cls.server.start().ready()
        cls.ca = os.path.join(certs, "ca.crt")
        name = os.path.join(cls.server.dir, "data", "admin-token")
        until("there is a token", lambda: os.path.exists(name) and os.path.getsize(name) > 0)
        with open(name) as f:
            cls.token = f.read().strip()

    def token_file(self, text: str) -> str:
        folder = tempfile.mkdtemp()
        self.addCleanup(subprocess.run, ["rm", "-rf", folder], check=True)
        path = os.path.join(folder, "token")
        self.replace(path, text)
        return path

    @staticmethod
    def replace(path: str, text: str) -> None:
        with open(path + ".new", "w") as f:
            f.write(text + "\n")
        os.replace(path + ".new", path)

    def test_a_token_and_an_authority(self) -> None:
        with self.client(token=self.token, ca=self.ca).hold(self.resource, ttl=2) as h:
            before = h._deadline
            until("it is watched, and was renewed", lambda: h._deadline > before + 1)

    def test_by_the_environment(self) -> None:
        env = {"LEASEHOLD_SERVER": self.server.url, "LEASEHOLD_CA": self.ca, "LEASEHOLD_TOKEN": self.token}
        with mock.patch.dict(os.environ, env):
            client = leasehold.Client()
        self.addCleanup(client.close)
        with client.hold(self.resource) as h:
            h.check()

    def test_without_a_token(self) -> None:
        with self.assertRaises(leasehold.DeniedError):
            self.client(ca=self.ca).acquire(self.resource)

    def test_an_authority_that_is_not_trusted(self) -> None:
        with self.assertRaisesRegex(leasehold.UnavailableError, "certificate"):
            self.client(token=self.token).acquire(self.resource, wait=0.5)

    def test_a_function_for_the_token(self) -> None:
        asked = []

        def token(rejected: str) -> str:
            asked.append(rejected)
            return self.token if rejected else "lh_wrong"

        with self.client(token=token, ca=self.ca).hold(self.resource) as h:
            h.check()
        self.assertEqual(asked[:2], ["", "lh_wrong"])

    def test_a_token_file_is_replaced(self) -> None:
        path = self.token_file("lh_wrong")
        client = self.client(token_file=path, ca=self.ca, watch=False)
        with self.assertRaises(leasehold.DeniedError):
            client.acquire(self.resource)
        self.replace(path, self.token)
        with client.hold(self.resource, ttl=20) as h:
            self.replace(path, "lh_wrong_too")
            h._renew_at = 0  # now
            with self.assertLogs("leasehold"):
                until("it is refused", lambda: h._failures > 0)
            self.replace(path, self.token)
            until("it is renewed", lambda: h._failures == 0)
            h.check()


class Source(unittest.TestCase):
    def test_the_environment(self) -> None:
        for env, token in (
            ({}, None), ({"LEASEHOLD_TOKEN": "lh_a"}, "lh_a"), ({"LEASEHOLD_TOKEN": "17"}, None),
            ({"LEASEHOLD_TOKEN": "17", "LEASEHOLD_ACCESS_TOKEN": "lh_b"}, "lh_b"),
            ({"LEASEHOLD_TOKEN": "17\n18", "LEASEHOLD_ACCESS_TOKEN": " lh_c\n"}, "lh_c"),
        ):
            source = _credential.of_environment(env)
            self.assertEqual(source("") if source else None, token, env)

    def test_a_token_is_not_sent_where_others_can_read_it(self) -> None:
        client = leasehold.Client("http://192.0.2.1:4653", token="lh_secret")
        with self.assertRaisesRegex(leasehold.RefusedError, "without TLS"):
            client.acquire("x")

    def test_a_token_that_no_header_can_have(self) -> None:
        for token in ("a\r\nHost: b", "a b", "ü"):
            with self.assertRaises(leasehold.InvalidError):
                leasehold.Client("http://127.0.0.1:1", token=token).acquire("x")

    def test_addresses(self) -> None:
        for text, url, private in (
            ("host", "http://host:4653", False), ("127.0.0.1", "http://127.0.0.1:4653", True),
            ("http://host", "http://host", False), ("https://host/a/", "https://host/a", True),
            ("::1", "http://[::1]:4653", True), ("http://[::1]:80", "http://[::1]", True),
            ("localhost:1", "http://localhost:1", True), ("http://127.evil.example:1", "http://127.evil.example:1", False),
        ):
            address = Address(text)
            self.assertEqual((address.url, address.private()), (url, private), text)

    def test_a_file_that_is_gone_for_a_moment(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            source = _credential.TokenFile(path)
            with self.assertRaises(leasehold.InvalidError):
                source("")
            with open(path, "w") as f:
                f.write("lh_a\n")
            self.assertEqual(source(""), "lh_a")
            os.remove(path)
            self.assertEqual(source(""), "lh_a")


if __name__ == "__main__":
    unittest.main()
