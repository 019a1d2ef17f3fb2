"""uvloop on a thread of its own, which trains; main waits for it."""

import asyncio
import threading

import torch  # noqa: F401
import uvloop
from small_model import STEP_SECONDS, show, steps

loop = uvloop.new_event_loop()
losses = []


async def train():
    for loss in steps():
        losses.append(loss)
        await asyncio.sleep(STEP_SECONDS)


thread = threading.Thread(target=lambda: loop.run_until_complete(train()))
thread.start()
thread.join()
loop.close()
show(losses)
