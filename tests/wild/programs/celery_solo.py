"""celery: tasks in a worker with the solo pool."""

from celery import Celery
from celery.contrib.testing.worker import start_worker
from small_model import show, train

app = Celery("wild", broker="memory://", backend="cache+memory://")


@app.task(name="train")
def work(seed):
    return train(seed=seed, count=30)


with start_worker(app, pool="solo", perform_ping_check=False, loglevel="ERROR"):
    for result in [work.delay(seed) for seed in range(2)]:
        show(result.get(timeout=120))
