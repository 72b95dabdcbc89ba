"""Holds in asyncio."""

from __future__ import annotations

import asyncio
import time
import unittest

import support
import leasehold
from support import until


class Async(support.Case):
    def test_a_block_holds_and_releases(self) -> None:
        async def main() -> None:
            async with self.client().ahold(self.resource, ttl=2) as h:
                for _ in range(30):
                    await asyncio.sleep(0.1)
                    h.check()
                self.assertEqual(self.server.holders(self.resource)[0]["token"], h.token)
            self.assertEqual(self.server.holders(self.resource), [])

        asyncio.run(main())

    def test_a_busy_loop_loses_nothing(self) -> None:
        async def main() -> None:
            async with self.client().ahold(self.resource, ttl=2) as h:
                time.sleep(3)  # which nobody should do in a loop
                h.check()

        asyncio.run(main())

    def test_tasks_take_turns(self) -> None:
        async def main() -> int:
            client, counter = self.client(), [0]

            async def count() -> None:
                for _ in range(3):
                    async with client.ahold(self.resource):
                        seen = counter[0]
                        await asyncio.sleep(0)
                        counter[0] = seen + 1

            await asyncio.gather(*(count() for _ in range(10)))
            return counter[0]

        self.assertEqual(asyncio.run(main()), 30)

    def test_a_loss_cancels_the_block(self) -> None:
        told = []

        async def main() -> None:
            async with self.client().ahold(self.resource, ttl=1800, on_lost=told.append) as h:
                before = h._deadline
                while h._deadline == before:  # until it is watched
                    await asyncio.sleep(0.01)
                self.server.ask("/v1/break", {"id": h.id, "period": "0s", "by": "ann", "reason": "the demo"})
                await asyncio.sleep(support.PATIENCE)
                self.fail("nobody cancelled it")

        with self.assertRaises(leasehold.LostError) as caught:
            asyncio.run(main())
        self.assertEqual((caught.exception.how, caught.exception.by), ("broken", "ann"))
        self.assertEqual(len(told), 1)

    def test_the_task_goes_on_after_a_loss(self) -> None:
        async def main() -> str:
            try:
                async with self.client(watch=False).ahold(self.resource, ttl=1) as h:
                    self.server.ask("/v1/break", {"id": h.id, "period": "0s"})
                    await asyncio.sleep(support.PATIENCE)
            except leasehold.LostError:
                await asyncio.sleep(0.01)  # is not cancelled
                return "went on"
            return "not lost"

        self.assertEqual(asyncio.run(main()), "went on")

    def test_somebody_else_cancels_the_task(self) -> None:
        async def main() -> None:
            client = self.client()

            async def work() -> None:
                async with client.ahold(self.resource, ttl=600):
                    held.set()
                    await asyncio.sleep(support.PATIENCE)

            held = asyncio.Event()
            task = asyncio.ensure_future(work())
            await held.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(self.server.holders(self.resource), [])

        asyncio.run(main())

    def test_a_cancelled_wait_leaves_the_queue(self) -> None:
        async def main() -> None:
            client = self.client()
            async with client.ahold(self.resource):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(self.enter(client), 0.5)
                until("it left the queue", lambda: self.server.status(self.resource)["waiting"] == 0)
            until("it is free", lambda: not self.server.holders(self.resource))

        asyncio.run(main())

    async def enter(self, client: leasehold.Client) -> None:
        async with client.ahold(self.resource, ttl=600):
            self.fail("it is held")

    def test_cancelled_at_any_moment_nothing_stays(self) -> None:
        async def main() -> None:
            client = self.client()

            async def brief() -> None:
                async with client.ahold(self.resource, ttl=600):
                    pass

            for n in range(60):
                task = asyncio.ensure_future(brief())
                await asyncio.sleep(0.0002 * n)
                task.cancel()
                await asyncio.wait({task})

        asyncio.run(main())
        until("it is free", lambda: not self.server.holders(self.resource))
        self.assertEqual(self.server.status(self.resource)["waiting"], 0)

    def test_callbacks_run_in_the_loop(self) -> None:
        async def main() -> None:
            client, loop, places = self.client(), asyncio.get_running_loop(), []
            seen = asyncio.Event()

            def place(w: leasehold.Waiting) -> None:
                places.append((w.position, asyncio.get_running_loop() is loop))
                seen.set()

            async with client.ahold(self.resource):
                task = asyncio.ensure_future(self.wait(client, place))
                await seen.wait()
            await task
            self.assertEqual(places[0], (1, True))

        asyncio.run(main())

    async def wait(self, client: leasehold.Client, place: object) -> None:
        async with client.ahold(self.resource, on_wait=place):
            pass

    def test_a_refusal_is_raised(self) -> None:
        async def main() -> None:
            client = self.client()
            async with client.ahold(self.resource):
                async with client.ahold(self.resource, wait=0):
                    self.fail("it is held")

        with self.assertRaises(leasehold.HeldError):
            asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
