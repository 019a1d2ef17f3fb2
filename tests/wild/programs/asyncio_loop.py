"""Training steps between the callbacks of an event loop."""

import asyncio

from small_model import STEP_SECONDS, show, steps


async def main():
    losses = []
    for loss in steps():
        losses.append(loss)
        await asyncio.sleep(STEP_SECONDS)
    show(losses)


asyncio.run(main())
