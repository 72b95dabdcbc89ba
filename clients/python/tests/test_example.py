"""The example, and what the guide shows, as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest

import support
from test_hold import put

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(support.SOURCE)))


class Examples(support.Case):
    def run_python(self, *args: str) -> str:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": support.SOURCE, "LEASEHOLD_SERVER": self.server.url}
        done = subprocess.run(
            [sys.executable, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=support.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_train(self) -> None:
        put(self.server, "/v1/definitions/gpu/pool", {"units": ["0", "1"]})
        out = self.run_python(os.path.join(ROOT, "clients", "python", "examples", "train.py"))
        self.assertRegex(out, "trained on GPU [01]\n")
        self.assertEqual(self.server.ask("/v1/records/model/checkpoint")["text"], "epoch 3")
        self.assertEqual(self.server.holders("gpu/pool"), [])

    def test_the_programs_of_the_guide_run(self) -> None:
        put(self.server, "/v1/definitions/gpu/pool", {"units": ["0", "1"]})
        with open(os.path.join(ROOT, "docs", "clients", "python.md")) as f:
            programs = re.findall(r"```python\n(.*?)```", f.read(), re.DOTALL)
        self.assertGreaterEqual(len(programs), 3)
        given = "def train(*a, **k): pass\ndef write(*a, **k): pass\ndef resize(name): return name\npages = ['one', 'two']\n"
        for program in programs:
            self.run_python("-c", given + program)


if __name__ == "__main__":
    unittest.main()
