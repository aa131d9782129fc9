"""Ctrl-C in the moment in which Spark's process is started: one interruption is heard once."""

import subprocess
import sys

# A terminal's Ctrl-C reaches the whole group. The child that was just forked is still a copy of us, with our event loop's pipe.
STORY = """
import asyncio, os, signal, subprocess, sys, threading
from arco.fold.spark_birth import deaf_to_interruptions

forked, go_on = os.pipe(), os.pipe()

def as_pyspark_does():
    os.write(forked[1], b"x")
    os.read(go_on[0], 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

def start(ended, loop):
    with deaf_to_interruptions():
        child = subprocess.Popen(["true"], preexec_fn=as_pyspark_does)
    loop.call_soon_threadsafe(ended.set_result, child.wait())

async def main():
    loop, heard = asyncio.get_running_loop(), []
    loop.add_signal_handler(signal.SIGINT, lambda: heard.append(1))
    ended = loop.create_future()
    threading.Thread(target=start, args=(ended, loop)).start()
    await asyncio.to_thread(os.read, forked[0], 1)
    os.killpg(0, signal.SIGINT)
    os.write(go_on[1], b"x")
    code = await ended
    await asyncio.sleep(0)
    print(len(heard), code)

asyncio.run(main())
"""


def test_an_interruption_while_spark_is_started_is_heard_once() -> None:
    done = subprocess.run([sys.executable, "-c", STORY], capture_output=True, text=True, check=True, start_new_session=True)
    assert done.stdout.split() == ["1", "0"]
