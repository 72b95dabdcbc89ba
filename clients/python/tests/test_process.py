"""What happens to the process itself: it is paused, forked, interrupted, ended, killed."""

from __future__ import annotations

import os
import signal
import sys
import time
import unittest
import urllib.error
import urllib.request

import support
import leasehold
from support import until

# Holds the resource, says so, and does what the rest of the program says.
HOLD = """
import os, signal, sys, time
import leasehold
resource = os.environ["RESOURCE"]
"""


class Process(support.Case):
    def is_free(self) -> bool:
        return not self.server.holders(self.resource)

    def end(self) -> dict:
        """Return how the last lease ended."""
        return until("it has ended", lambda: [e for e in self.server.events(self.resource) if e["kind"] == "ended"])[-1]

    def test_a_process_that_is_paused_past_its_ttl(self) -> None:
        """The first line after the pause sees that the hold is lost, whatever thread runs first."""
        child = self.child(HOLD + """
told = []
try:
    with leasehold.hold(resource, ttl=1, on_lost=told.append) as h:
        print("holds", h.token)
        sys.stdin.readline()  # in which it is paused
        print(h.valid, h.lost.how)
        try:
            h.token
        except leasehold.LostError as e:
            print("token", e.how)
        while not told:
            time.sleep(0.01)
        print("told", told[0].how)
except leasehold.LostError as e:
    print("block", e.how)
""")
        self.assertTrue(child.line().startswith("holds"))
        child.signal(signal.SIGSTOP)
        # Another one waits, and has it before the first goes on.
        with self.client().hold(self.resource) as other:
            child.say("go on")
            child.signal(signal.SIGCONT)
            self.assertEqual(child.line(), "False expired")
            self.assertEqual(child.line(), "token expired")
            self.assertEqual(child.line(), "told expired")
            self.assertEqual(child.line(), "block expired")
            self.assertEqual(child.wait(), 0)
            other.check()
            self.assertEqual(self.server.holders(self.resource)[0]["token"], other.token)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_forked_child_holds_nothing(self) -> None:
        child = self.child(HOLD + """
h = leasehold.acquire(resource, ttl=3)
with leasehold.hold(resource + "/block", ttl=3) as block:
    pid = os.fork()
    if pid == 0:
        assert not h.valid and h.lost.how == "forked" and h.remaining == 0, h
        time.sleep(0.5)
        for use in (lambda: h.token, h.check, h.release, block.release, lambda: block.__exit__(None, None, None)):
            try:
                use()
            except leasehold.LostError as e:
                assert e.how == "forked", e
            else:
                os._exit(3)
        with leasehold.hold(resource + "/child", ttl=2, wait=0) as own:  # one of its own it may have
            time.sleep(4)
            own.check()
        sys.exit(0)  # what runs at the end of the interpreter releases nothing of the parent's either
    print("child", os.waitpid(pid, 0)[1])
    h.check(); block.check()
    print("holds", h.token)
    sys.stdin.readline()
h.release()
print("released")
""")
        self.assertEqual(child.line(), "child 0")
        token = int(child.line().split()[1])
        self.assertEqual(self.server.holders(self.resource)[0]["token"], token)
        self.assertEqual(len(self.server.holders(self.resource + "/block")), 1)
        self.assertEqual(self.server.holders(self.resource + "/child"), [])
        child.say("end")
        self.assertEqual(child.line(), "released")
        self.assertEqual(child.wait(), 0)
        self.assertTrue(self.is_free())

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_forked_child_finishes_no_task(self) -> None:
        """The parent goes on with it: what ends the block in the child says nothing to a server."""
        self.client().add_task(self.resource + "/a", attempts=1)
        child = self.child(HOLD + """
def in_child(end):
    pid = os.fork()
    if pid == 0:
        end()
        os._exit(3)
    assert os.waitpid(pid, 0)[1] == 0
def refused(use):
    try:
        use()
    except leasehold.LostError as e:
        os._exit(0 if e.how == "forked" else 4)
claiming = leasehold.claim(resource + "/", ttl=600)
with claiming as task:
    for use in (task.done, task.fail, task.release, lambda: claiming.__exit__(None, None, None)):
        in_child(lambda: refused(use))
    def boom():
        claiming.__exit__(ValueError, ValueError("in the child"), None)
        os._exit(0)
    in_child(boom)
    print("does", task.token)
    sys.stdin.readline()
    task.done("by the parent")
print("done")
""")
        token = int(child.line().split()[1])
        self.assertEqual(self.server.holders(self.resource + "/a")[0]["token"], token)
        child.say("go on")
        self.assertEqual(child.line(), "done")
        self.assertEqual(child.wait(), 0)
        self.assertEqual(self.server.ask("/v1/tasks/" + self.resource + "/a")["result"], "by the parent")

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_fork_while_other_threads_are_busy(self) -> None:
        """Locks that they have at that moment are nobody's in the child."""
        child = self.child(HOLD + """
import threading
stop = threading.Event()
def busy(n):
    while not stop.is_set():
        with leasehold.hold(f"{resource}/{n}", ttl=5) as h:
            h.valid
threads = [threading.Thread(target=busy, args=(n,), daemon=True) for n in range(4)]
for t in threads: t.start()
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        with leasehold.hold(resource, ttl=5, wait=60): pass
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for t in threads: t.join()
print("done")
""")
        self.assertEqual(child.line(), "done")
        self.assertEqual(child.wait(), 0)

    def test_multiprocessing(self) -> None:
        child = self.child(HOLD + """
import multiprocessing
def work(n):
    with leasehold.hold(resource, ttl=5) as h:
        return h.token
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with leasehold.hold(resource + "/outer", ttl=5) as h:
        with context.Pool(3) as pool:
            tokens = pool.map(work, range(9))
        h.check()
    print(len(set(tokens)))
""")
        self.assertEqual(child.line(), "9")
        self.assertEqual(child.wait(), 0)

    def test_an_interrupted_block_releases(self) -> None:
        child = self.child(HOLD + """
with leasehold.hold(resource, ttl=600):
    print("holds")
    time.sleep(600)
""")
        child.line()
        child.signal(signal.SIGINT)
        self.assertNotEqual(child.wait(), 0)
        self.assertTrue(self.is_free())
        self.assertEqual(self.end()["how"], "released")

    def test_an_interrupted_wait_leaves_the_queue(self) -> None:
        with self.client().hold(self.resource):
            child = self.child(HOLD + """
try:
    leasehold.acquire(resource, ttl=600)
except KeyboardInterrupt:
    print("interrupted")
""")
            until("it waits", lambda: self.server.status(self.resource)["waiting"] == 1)
            child.signal(signal.SIGINT)
            self.assertEqual(child.line(), "interrupted")
            self.assertEqual(child.wait(), 0)
            self.assertEqual(self.server.status(self.resource)["waiting"], 0)

    def test_sigterm_as_an_exit_releases(self) -> None:
        child = self.child(HOLD + """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
with leasehold.hold(resource, ttl=600):
    print("holds")
    time.sleep(600)
""")
        child.line()
        child.signal(signal.SIGTERM)
        self.assertEqual(child.wait(), 143)
        self.assertTrue(self.is_free())

    def test_a_killed_process_holds_until_its_ttl(self) -> None:
        child = self.child(HOLD + """
with leasehold.hold(resource, ttl=1):
    print("holds")
    time.sleep(600)
""")
        child.line()
        child.signal(signal.SIGKILL)
        child.wait()
        with self.client().hold(self.resource):  # waits for the TTL, and no longer
            self.assertEqual(self.end()["how"], "expired")

    def test_the_end_of_the_interpreter_releases(self) -> None:
        child = self.child(HOLD + """
h = leasehold.acquire(resource, ttl=600)
print("holds")
""")
        child.line()
        self.assertEqual(child.wait(), 0)
        self.assertTrue(self.is_free())

    def test_a_thread_that_outlives_the_main_one_keeps_its_hold(self) -> None:
        child = self.child(HOLD + """
import threading
ready = threading.Event()
def work():
    with leasehold.hold(resource, ttl=2) as h:
        ready.set()
        time.sleep(3)
        h.check()
        print("holds")
threading.Thread(target=work).start()
ready.wait()
""")
        self.assertEqual(child.line(), "holds")
        self.assertEqual(child.wait(), 0)
        self.assertTrue(self.is_free())

    def test_the_end_of_the_interpreter_without_a_server(self) -> None:
        """It does not wait for ever."""
        server = self.new_server()
        child = self.child(HOLD + """
h = leasehold.acquire(resource, ttl=600)
print("holds")
sys.stdin.readline()
""", LEASEHOLD_SERVER=server.url)
        child.line()
        server.kill()
        child.say("end")
        self.assertEqual(child.wait(), 0)

    def test_two_processes_fight_for_a_fenced_counter(self) -> None:
        """They count in a record that refuses late writers, while who holds the lease is paused past its TTL."""
        program = HOLD + """
import select, urllib.request, urllib.error
url = os.environ["LEASEHOLD_SERVER"] + "/v1/records/" + resource
def read():
    try:
        return int(urllib.request.urlopen(urllib.request.Request(
            url, headers={"Accept": "application/octet-stream"})).read())
    except urllib.error.HTTPError as e:
        if e.code == 404: return 0
        raise
written = refused = lost = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        with leasehold.hold(resource, ttl=0.5) as h:
            token, value = h.token, read()
            time.sleep(0.02)  # in which it may be paused: what follows is late then, and does not look
            put = urllib.request.Request(url, data=str(value + 1).encode(), method="PUT",
                                         headers={"Leasehold-Token": str(token)})
            try:
                urllib.request.urlopen(put)
                written += 1
            except urllib.error.HTTPError as e:
                if e.code != 410: raise
                refused += 1
    except leasehold.LostError:
        lost += 1
print(written, refused, lost)
"""
        children = {}
        for _ in range(2):
            child = self.child(program)
            children[str(child.process.pid)] = child
        paused = 0
        while paused < 4:
            holder = until("one of them holds it", lambda: self.server.holders(self.resource))[0]
            child = children[holder["holder"].rsplit(":")[-1]]
            child.signal(signal.SIGSTOP)
            try:
                if [h["id"] for h in self.server.holders(self.resource)] == [holder["id"]]:  # it did not release
                    paused += 1
                    other = until("the other one holds it", lambda: [
                        h for h in self.server.holders(self.resource) if h["id"] != holder["id"]])[0]
                    until("and has written", lambda: [
                        h for h in self.server.holders(self.resource) if h["token"] > other["token"]])
            finally:
                child.signal(signal.SIGCONT)
        for child in children.values():
            child.say("end")
        counts = [[int(n) for n in child.line().split()] for child in children.values()]
        for child in children.values():
            self.assertEqual(child.wait(), 0)
        request = urllib.request.Request(
            f"{self.server.url}/v1/records/{self.resource}", headers={"Accept": "application/octet-stream"})
        with urllib.request.urlopen(request) as answer:
            value = int(answer.read())
        self.assertEqual(value, sum(count[0] for count in counts))
        self.assertGreater(sum(count[2] for count in counts), 0)  # who was paused noticed


if __name__ == "__main__":
    unittest.main()
