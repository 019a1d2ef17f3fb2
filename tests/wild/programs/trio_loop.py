"""trio: steps between checkpoints."""

import trio
from small_model import STEP_SECONDS, show, steps


async def main():
    losses = []
    for loss in steps():
        losses.append(loss)
        await trio.sleep(STEP_SECONDS)
    show(losses)


trio.run(main)
