"""Takes part in kazoo's recipes, as it is told on standard input.

A line is a number, a recipe, an operation and its arguments, as in `1 lock acquire /path`. The
answer is one line on standard output, `1 ok ...` or `1 error ...`; the first line is `ready`.
Commands are carried out one after another, so one that waits in a line keeps those behind it
waiting. The end of standard input ends the session.
"""

import logging
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock

SESSION_TIMEOUT = 4.0
CONNECT_TIMEOUT = 30.0

# What a benchmark puts into a queue.
ITEM = b"." * 100


class CuratorsLock(Lock):
    """A lock whose contenders are named so that Curator orders them as kazoo does."""

    _NODE_NAME = "-lock-"


class LockRecipe:
    """`acquire <path> <naming>`, `kazoo` or `curator`, and `release`."""

    def __init__(self, client):
        self.client = client
        self.lock = None

    def acquire(self, path, naming):
        makers = {
            "kazoo": lambda: self.client.Lock(path),
            "curator": lambda: CuratorsLock(
                self.client, path, extra_lock_patterns=["-lock-"]
            ),
        }
        self.lock = makers[naming]()
        self.lock.acquire()

    def release(self):
        self.lock.release()


class ReadWriteLockRecipe:
    """`acquire-read <path>`, `acquire-write <path>` and `release`."""

    def __init__(self, client):
        self.client = client
        self.lock = None

    def acquire_read(self, path):
        self.acquire(self.client.ReadLock(path))

    def acquire_write(self, path):
        self.acquire(self.client.WriteLock(path))

    def acquire(self, lock):
        self.lock = lock
        self.lock.acquire()

    def release(self):
        self.lock.release()


class ElectionRecipe:
    """`volunteer <path>`, which answers when it is elected, and `resign`."""

    def __init__(self, client):
        self.client = client
        self.resigned = None
        self.candidate = None

    def volunteer(self, path):
        elected = threading.Event()
        self.resigned = threading.Event()

        def lead():
            elected.set()
            self.resigned.wait()

        election = self.client.Election(path)
        # A daemon, so that the end of standard input is the end of a candidate in line, too.
        self.candidate = threading.Thread(target=election.run, args=(lead,), daemon=True)
        self.candidate.start()
        elected.wait()

    def resign(self):
        self.resigned.set()
        self.candidate.join()


class BarrierRecipe:
    """`raise <path>`, `wait <path>` and `lower <path>`."""

    def __init__(self, client):
        self.client = client
        # A word of the language is no name for a method.
        setattr(self, "raise", self.create)

    def create(self, path):
        self.client.Barrier(path).create()

    def wait(self, path):
        self.client.Barrier(path).wait()

    def lower(self, path):
        self.client.Barrier(path).remove()


class QueueRecipe:
    """`put <path> <data> [<priority>]` and `get <path>`, which answers nothing if there is nothing."""

    def __init__(self, client):
        self.client = client

    def put(self, path, data, priority="100"):
        self.client.Queue(path).put(data.encode(), int(priority))

    def get(self, path):
        data = self.client.Queue(path).get()
        return "" if data is None else data.decode()


class BenchRecipe:
    """`double-barrier`, `semaphore`, `read-write-lock` and queues, each with `<path> <members> <cycles>`.

    As many threads go through as many cycles; answers the seconds that takes. A semaphore is told
    its permits as well, a read-write lock of how many cycles one writes, and a queue how many items
    are put in and taken out in a cycle.
    """

    def __init__(self, client):
        self.client = client

    def double_barrier(self, path, members, cycles):
        def cycle(_, number):
            barrier = self.client.DoubleBarrier(f"{path}/{number}", int(members))
            barrier.enter()
            barrier.leave()

        return self.play(members, cycles, cycle)

    def semaphore(self, path, members, cycles, permits):
        def cycle(_, __):
            with self.client.Semaphore(path, max_leases=int(permits)):
                pass

        return self.play(members, cycles, cycle)

    def read_write_lock(self, path, members, cycles, writes):
        def cycle(member, number):
            writes_now = (member + number) % int(writes) == 0
            lock = self.client.WriteLock(path) if writes_now else self.client.ReadLock(path)
            with lock:
                pass

        return self.play(members, cycles, cycle)

    def queue(self, path, members, cycles, batch):
        def cycle(member, _):
            self.put(queues[member], batch)
            self.take(queues[member], batch)

        queues = [self.client.Queue(path) for _ in range(int(members))]
        return self.play(members, cycles, cycle)

    queue_in_batches = queue

    def queue_of_eight(self, path, members, cycles, batch):
        def cycle(member, _):
            act = self.put if member % 2 == 0 else self.take
            act(queues[member], batch)

        queues = [self.client.Queue(path) for _ in range(int(members))]
        return self.play(members, cycles, cycle)

    def queue_acknowledged(self, path, members, cycles, batch):
        def cycle(member, _):
            self.put(queues[member], batch)
            for _ in range(int(batch)):
                queues[member].get()
                queues[member].consume()

        queues = [self.client.LockingQueue(path) for _ in range(int(members))]
        return self.play(members, cycles, cycle)

    @staticmethod
    def put(queue, items):
        for _ in range(int(items)):
            queue.put(ITEM)

    @staticmethod
    def take(queue, items):
        for _ in range(int(items)):
            # kazoo's queue does not wait.
            while queue.get() is None:
                time.sleep(0.001)

    @staticmethod
    def play(members, cycles, cycle):
        members, cycles = int(members), int(cycles)

        def play_one(member):
            for number in range(cycles):
                cycle(member, number)

        with ThreadPoolExecutor(members) as pool:
            started = time.monotonic()
            for outcome in [pool.submit(play_one, member) for member in range(members)]:
                outcome.result()
            return time.monotonic() - started


def serve(recipes):
    print("ready", flush=True)
    for line in sys.stdin:
        number, recipe, operation, *arguments = line.split()
        try:
            answer = getattr(recipes[recipe], operation.replace("-", "_"))(*arguments)
            print(number, "ok", "" if answer is None else answer, flush=True)
        except Exception as error:
            logging.exception("command %s", number)
            print(number, "error", repr(error).replace("\n", " "), flush=True)


def main():
    logging.basicConfig(level=logging.WARNING)
    client = KazooClient(hosts=sys.argv[1], timeout=SESSION_TIMEOUT)
    client.start(timeout=CONNECT_TIMEOUT)
    try:
        serve(
            {
                "lock": LockRecipe(client),
                "read-write-lock": ReadWriteLockRecipe(client),
                "election": ElectionRecipe(client),
                "barrier": BarrierRecipe(client),
                "queue": QueueRecipe(client),
                "bench": BenchRecipe(client),
            }
        )
    finally:
        client.stop()
        client.close()


if __name__ == "__main__":
    main()
