"""Progress read inside a process: real bars of tqdm and rich, real optimizers, nothing disturbed."""

import importlib.util
import io
import json
import shutil
import sys
import textwrap
import threading
import time
from subprocess import PIPE  # not all of it: the tests that start no process stay in make quick

import pytest
from tqdm import tqdm
from worker_kit import NO_MPS, Workers, need_module, wait_for

from mpsbar.agent.progress import bars, reader
from mpsbar.agent.progress.reader import ProgressReader
from mpsbar.ui.text.progress import say_progress
from mpsbar.workers.parse import _parse_progress


def bar(**options):
    return tqdm(file=io.StringIO(), **options)


@pytest.fixture
def read():
    return ProgressReader().read


# ------------------------------------------------------------------------- tqdm
def test_nothing_to_tell(read):
    assert read() is None


def test_one_bar(read):
    with bar(total=200, desc="train: ", unit="img", initial=10) as shown:
        shown.update(40)
        found = read()
    assert (found["name"], found["done"], found["total"], found["unit"]) == (
        "train",
        50,
        200,
        "img",
    )
    assert found["inner"] is found["steps"] is None
    assert set(found) == {*reader.BAR_FIELDS, "inner", "steps", "steps_per_second"}
    assert read() is None


def test_the_rate_counts_from_where_a_resumed_run_began(read):
    with bar(total=200, initial=100) as shown:
        shown.start_t -= 1000  # beside which the seconds of a busy machine do not count
        shown.update(20)
        assert read()["rate"] == pytest.approx(0.02, rel=0.1)


def test_the_outermost_bar_with_a_total_and_the_innermost_that_moves(read):
    with bar(total=5, desc="epochs") as epochs, bar(desc="no total"), bar(total=90) as steps:
        epochs.update()
        steps.update(30)
        found = read()
    assert (found["name"], found["done"], found["total"]) == ("epochs", 1, 5)
    assert (found["inner"]["done"], found["inner"]["total"]) == (30, 90)


def test_the_loop_of_tqdm_itself(read):
    for number in tqdm(range(3), file=io.StringIO(), mininterval=0):
        assert read()["done"] == number
    assert read() is None


def test_a_bar_without_a_total_is_better_than_none(read):
    with bar(unit="tok") as shown:
        shown.update(7)
        found = read()
    assert (found["done"], found["total"], found["unit"]) == (7, None, "tok")
    assert found["seconds_left"] is None


def test_a_finished_bar_that_somebody_keeps_gives_way(read):
    with bar(total=3, desc="old") as old, bar(total=10, desc="new") as new:
        old.update(3)
        new.update(2)
        assert read()["name"] == "new"


def test_a_bar_that_stands_still_gives_way_to_one_that_moves(read):
    with bar(total=3, desc="stuck") as stuck, bar(total=10, desc="alive") as alive:
        stuck.start_t = stuck.last_print_t = time.time() - 2 * reader.STILL_SECONDS
        alive.update(1)
        assert read()["name"] == "alive"


def test_more_than_the_total_means_that_there_is_none(read):
    with bar(total=3) as shown:
        shown.update(7)
        assert (read()["done"], read()["total"]) == (7, None)


def test_a_bar_that_begins_anew(read):
    with bar(total=10) as shown:
        shown.update(8)
        read()
        shown.reset()
        shown.update(1)
        assert read()["done"] == 1


def test_downloads_and_preparations_are_not_the_run(read):
    with bar(total=10, unit="B"), bar(total=10, desc="Loading checkpoint shards"):
        assert read() is None


def test_disabled_bars_tell_nothing(read):
    with bar(total=10, disable=True):
        assert read() is None


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), 10**30, "3", None, [1], True])
def test_absurd_numbers(read, wrong):
    with bar(total=10) as shown:
        shown.n = wrong
        assert read() is None
        shown.n, shown.total = 3, wrong
        found = read()
        assert (found["done"], found["total"]) == (3, None)
        shown.n, shown.total = 0, 10


def test_numbers_of_numpy(read):
    numpy = pytest.importorskip("numpy")
    with bar(total=numpy.float64(10.0)) as shown:
        shown.update(numpy.int64(4))
        found = read()
    assert (found["done"], found["total"]) == (4, 10)
    json.dumps(found)


def test_names_are_short_and_printable(read):
    with bar(total=10, desc="\x1b[31mred\x07\n " + "x" * 500):
        name = read()["name"]
    assert name.isprintable()
    assert len(name) <= bars.MAX_TEXT


def test_many_bars_cost_no_more_than_a_few(read):
    bars = [bar(total=10) for _ in range(200)]
    assert read()["done"] == 0
    for each in bars:
        each.close()


def test_a_bar_that_is_not_ready_yet(read):
    with bar(total=10) as shown:
        del shown.__dict__["n"]
        assert read() is None
        shown.n = 0


def test_no_code_of_a_subclass_runs(read):
    ran = []

    class Curious(tqdm):
        @property
        def total(self):
            ran.append("total")
            return 10

        @total.setter
        def total(self, value):
            pass

    class Nosy(tqdm):
        def __getattribute__(self, name):
            ran.append(name)
            return super().__getattribute__(name)

    with Curious(file=io.StringIO()), Nosy(file=io.StringIO(), total=10):
        ran.clear()
        assert read() is None
        assert ran == []


def test_a_value_with_a_finalizer_is_never_ours(read):
    """`n` may be a tensor: it must not end on our thread."""
    ended = []

    class Value(int):
        def __del__(self):
            ended.append(threading.current_thread())

    with bar(total=10) as shown:
        shown.n = Value(3)
        assert read() is None
        shown.n = 0
    assert ended == [threading.current_thread()]


def test_no_bar_ends_on_the_thread_that_reads(read):
    """A host makes and drops bars as fast as it can, and switches threads as often as it can."""
    ended, reads = [], [0]

    class Canary(tqdm):
        def __del__(self):
            ended.append(threading.current_thread().name)
            super().__del__()

    def look():
        while not stop.is_set():
            read()
            reads[0] += 1

    stop = threading.Event()
    reader = threading.Thread(target=look, name="reader")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        reader.start()
        made = 0
        # On busy cores the reader may come late.
        while made < 3000 or (reads[0] <= 100 and reader.is_alive()):
            shown = Canary(total=10, file=io.StringIO(), mininterval=99)
            shown.update(1)
            del shown
            made += 1
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        reader.join()
    assert len(ended) == made
    assert "reader" not in ended
    assert reads[0] > 100


# ------------------------------------------------------------------------- rich
@pytest.mark.parametrize("own_console", [False, True])
def test_rich(read, own_console):
    need_module("rich")
    import rich
    from rich.console import Console
    from rich.progress import Progress

    quiet = Console(file=io.StringIO(), force_terminal=True)
    if not own_console:
        rich._console = quiet
    try:
        with Progress(console=quiet, auto_refresh=own_console) as shown:
            shown.add_task("hidden", total=10, visible=False)
            task = shown.add_task("[bold]epochs", total=4)
            shown.add_task("endless", total=None)
            shown.advance(task, 1)
            found = read()
        assert (found["name"], found["done"], found["total"]) == ("[bold]epochs", 1, 4)
        assert found["inner"]["name"] == "endless"
        wait_for(lambda: read() is None, "the end of rich's thread")
    finally:
        rich._console = None


# -------------------------------------------------------------------- optimizer
# Each in a fork of one process: an optimizer imports torch._dynamo, a second of a core.
TRAIN = """
import json, os
import torch, torch._dynamo
from mpsbar.agent.progress import optimizer_steps, reader
from torch.optim.optimizer import register_optimizer_step_post_hook as register
def train(is_early):
    optimizer_steps.count_steps(is_early=is_early)
    model = torch.nn.Linear(2, 2)
    one, two = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    for number in range(7):
        model(torch.ones(1, 2)).sum().backward()
        one.step()
        if number % 2:
            two.step()
    return reader.ProgressReader().read()
for scene in ("early", "with a hook", "late"):
    pid = os.fork()
    if not pid:
        if scene == "with a hook":
            register(lambda *_: None)
        print("found", json.dumps([scene, train(scene != "late")]))
        os._exit(0)
    os.waitpid(pid, 0)
"""


@pytest.fixture(scope="module")
def trained():
    """What was found after a training, by its scene."""
    workers = Workers()
    with workers.run([sys.executable, "-c", TRAIN], forked=True) as worker:
        lines = [worker.wait_line("found").removeprefix("found ") for _ in range(3)]
    shutil.rmtree(workers.folder)
    return dict(map(json.loads, lines))


@pytest.mark.starts_processes
def test_steps_of_the_optimizer_that_made_most(trained):
    found = trained["early"]
    assert found["steps"] == 7
    assert {found[name] for name in reader.BAR_FIELDS} == {None}


@pytest.mark.starts_processes
def test_a_program_with_such_a_hook_of_its_own_gets_no_other(trained):
    assert trained["with a hook"] is None


@pytest.mark.starts_processes
def test_late_and_with_torch_compile_there_is_no_hook(trained):
    assert trained["late"] is None


# With and without the hook, in two forks of one process: the imports of torch.compile take seconds.
COMPILED = """
import os, sys
import torch
from torch._dynamo.testing import CompileCounterWithBackend
def train():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    counter = CompileCounterWithBackend("eager")
    step = torch.compile(optimizer.step, backend=counter)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        step()
    return counter.frame_count, counter.op_count, model.weight.sum().item()
torch.optim.Adam([torch.ones(1)])  # imports the rest
for hook in (True, False):
    pid = os.fork()
    if not pid:
        if hook:
            from mpsbar.agent.progress import optimizer_steps
            optimizer_steps.count_steps(is_early=True)
            assert sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
        print("compiled", *train())
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_a_compiled_step_is_compiled_as_often_and_to_the_same(workers):
    worker = workers.run([sys.executable, "-c", COMPILED], forked=True)
    assert worker.wait_line("compiled") == worker.wait_line("compiled")


# ---------------------------------------------------------------- real programs
def run_script(workers, code):
    """By `mpsbar run`, on the software MPS device where it is there."""
    script = workers.folder / "train.py"
    script.write_text(textwrap.dedent(code))
    command = [sys.executable, "-m", "mpsbar", "run", sys.executable, str(script)]
    return workers.run(command, popen={"stdin": PIPE}, SOFTMPS="1").wait_attached()


# Parts of one unchanged script, each with what it needs: every start would import torch and, for its first
# optimizer, torch._dynamo. In this order, because the steps told are those of the optimizer that made most.
PARTS = {
    # Gradient accumulation: the bar counts batches, the hook the updates of the weights.
    "accelerate": """
        from accelerate import Accelerator
        from accelerate.utils import tqdm
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        data = torch.utils.data.DataLoader(torch.ones(30, 2))
        model, optimizer, data = accelerator.prepare(*make_model(), data)
        for number, batch in enumerate(tqdm(data, desc="accelerate", mininterval=0)):
            if number == 12:
                stop("accelerate")
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).sum())
                optimizer.step()
                optimizer.zero_grad()
        """,
    "torch": """
        model, optimizer = make_model()
        count = 0
        for epoch in range(2):
            for batch in torch.utils.data.DataLoader(torch.ones(34, 2), batch_size=4):
                model(batch).sum().backward()
                optimizer.step()
                count += 1
        stop("no bar", count)
        """,
    "tqdm": """
        from tqdm import tqdm
        model, optimizer = make_model()
        for epoch in tqdm(range(2), desc="epochs", mininterval=0):
            for step in tqdm(range(30), desc="steps", leave=False, mininterval=0):
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
                if (epoch, step) == (1, 9):
                    stop("two bars")
        """,
    "rich": """
        from rich.progress import Progress
        with Progress() as progress:
            task = progress.add_task("epochs", total=50)
            for number in range(50):
                if number == 20:
                    progress.console.print("rich", f"{progress.tasks[0].percentage:.0f}%")
                    sys.stdin.readline()
                progress.advance(task)
        """,
}
FIRST_PART = """
import sys
import torch
kept = []
def make_model():
    model = torch.nn.Linear(2, 1)
    kept.append(torch.optim.SGD(model.parameters(), lr=0.1))
    return model, kept[-1]
def stop(*words):
    print(*words, flush=True)
    sys.stdin.readline()
"""


def test_a_program_started_by_mpsbar_run(workers):
    """Bars and steps of an unchanged script, equal to what it counts itself."""
    there = [name for name in PARTS if importlib.util.find_spec(name)]
    worker = run_script(
        workers, FIRST_PART + "".join(textwrap.dedent(PARTS[name]) for name in there)
    )

    def read_at(text):
        printed = worker.wait_line(text)
        found = worker.ask("stats")["progress"]
        worker.process.stdin.write(b"\n")
        return printed, found

    if "accelerate" in there:
        _, found = read_at("accelerate")
        assert (found["name"], found["done"], found["total"]) == ("accelerate", 12, 30)
        assert found["steps"] == 6

    printed, found = read_at("no bar")
    assert (found["steps"], printed) == (18, "no bar 18")
    assert {found[name] for name in reader.BAR_FIELDS} == {None}
    assert found["inner"] is None

    _, found = read_at("two bars")
    assert (found["name"], found["done"], found["total"]) == ("epochs", 1, 2)
    assert (found["inner"]["name"], found["inner"]["total"]) == ("steps", 30)
    assert found["inner"]["done"] == 9  # the tenth is not done yet
    assert found["steps"] == 40

    if "rich" in there:
        printed, found = read_at("rich")
        assert (found["name"], found["done"], found["total"]) == ("epochs", 20, 50)
        assert say_progress(_parse_progress(found)).startswith("epochs · 40% · ")
        assert "40%" in printed


def test_a_forked_child_counts_its_own_steps(workers):
    worker = workers.start(
        """
        import os, time, torch, mpsbar
        mpsbar.attach()
        from mpsbar.agent.progress import optimizer_steps
        optimizer_steps.count_steps(is_early=True)
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.step()
        if os.fork() == 0:
            print("child", optimizer_steps.read_steps(), flush=True)
            os._exit(0)
        time.sleep(600)
        """
    )
    assert worker.wait_line("child") == "child None"


def test_transformers_trainer(workers):
    need_module("transformers")
    need_module("accelerate")
    worker = run_script(
        workers,
        """
        import time, torch, transformers

        class Tiny(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.line = torch.nn.Linear(2, 1)

            def forward(self, x):
                return {"loss": self.line(x).sum()}

        class Stop(transformers.TrainerCallback):
            def on_step_end(self, args, state, control, **more):
                if state.global_step == 12:
                    bars = trainer.callback_handler.callbacks
                    bar = next(c.training_bar for c in bars if hasattr(c, "training_bar"))
                    print("there", args.device, bar, flush=True)
                    time.sleep(600)

        arguments = transformers.TrainingArguments(
            "out", max_steps=40, report_to=[], save_strategy="no", dataloader_pin_memory=False
        )
        data = [{"x": torch.ones(2)}] * 400
        trainer = transformers.Trainer(Tiny(), arguments, train_dataset=data, callbacks=[Stop()])
        trainer.train()
        """,
    )
    printed = worker.wait_line("there")
    found = worker.ask("stats")["progress"]
    assert found["total"] == 40
    assert found["done"] in (11, 12)  # our callback may run before that of the bar
    assert f" {found['done']:.0f}/40 " in printed
    assert NO_MPS or printed.startswith("there mps")


def test_lightning(workers):
    """Limited by epochs, then by steps; one process, for the import of Lightning."""
    need_module("lightning")
    worker = run_script(
        workers,
        """
        import sys, torch, lightning

        class Tiny(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.line = torch.nn.Linear(2, 1)

            def training_step(self, batch, index):
                if self.current_epoch == 1 and index == 5:
                    bar = self.trainer.progress_bar_callback
                    print("there", getattr(bar, "train_progress_bar", ""), flush=True)
                    sys.stdin.readline()
                return self.line(batch).sum()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        for limit in ({"max_epochs": 3}, {"max_steps": 24}):
            trainer = lightning.Trainer(**limit, logger=False, enable_checkpointing=False)
            trainer.fit(Tiny(), torch.utils.data.DataLoader(torch.ones(10, 2)))
        """,
    )
    for done, total in ((1.5, 3), (15, 24)):
        printed = worker.wait_line("there")
        # Lightning's own bar: rich's or tqdm's.
        assert "total=10, completed=5," in printed or " 5/10 " in printed
        found = worker.ask("stats")["progress"]
        assert (found["done"], found["total"]) == (done, total)
        assert (found["inner"]["name"], found["inner"]["done"], found["inner"]["total"]) == (
            "Epoch 1",
            5,
            10,
        )
        worker.process.stdin.write(b"\n")


def test_mlx_training_with_a_bar(workers):
    need_module("mlx")
    worker = run_script(
        workers,
        """
        import time
        import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim
        from tqdm import tqdm

        model, optimizer = nn.Linear(2, 1), optim.SGD(learning_rate=0.1)
        step = nn.value_and_grad(model, lambda model, x: model(x).sum())
        for number in tqdm(range(80), desc="mlx", unit="batch", mininterval=0):
            if number == 20:
                print("there", optimizer.step.item(), flush=True)
                time.sleep(600)
            loss, gradients = step(model, mx.ones((4, 2)))
            optimizer.update(model, gradients)
            mx.eval(model.parameters(), optimizer.state)
        """,
    )
    counted = int(worker.wait_line("there").split()[1])
    found = worker.ask("stats")["progress"]
    assert (found["name"], found["done"], found["total"]) == ("mlx", counted, 80)
    assert found["unit"] == "batch"
    assert found["steps"] is None  # MLX has no hook that counts them


# ------------------------------------------------------------------------- cost
def test_a_look_does_little_work():
    """Instructions instead of time: Python's own function calls for ten bars."""
    shown = [bar(total=100) for _ in range(10)]
    calls = []
    reader = ProgressReader()
    reader.read()
    sys.setprofile(
        lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None
    )
    try:
        reader.read()
    finally:
        sys.setprofile(None)
    for each in shown:
        each.close()
    assert len(calls) < 120, calls
