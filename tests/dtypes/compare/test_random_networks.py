"""No false accusation: random small networks on a device where nothing is wrong.

In `make test` the first 20, in `make thorough` 200.
"""

import pytest
from compare_kit import needs_mps, run_script
from thorough import two_sizes

pytestmark = [needs_mps, pytest.mark.starts_processes]

SCRIPT = """
import json, mpsbar, torch
from random_networks import make_network
torch.set_num_threads(1)
found = []
for seed in SEEDS:
    data = COMPARE
    for dtype, result in data["dtypes"].items():
        wrong = [c for c in result["culprits"] if c["kind"] != "raised"]
        text = (result["raised"] or {}).get("text", "")
        # torch itself refuses a recurrent layer in float32 under autocast after a layer in float16.
        if wrong or result["unexplained"] or result["nonfinite"] or (text and "RNN input dtype" not in text):
            found.append([seed, dtype, wrong, result["unexplained"], result["nonfinite"], text])
        found += [[seed, dtype, "unchecked", u] for u in result["unchecked"]]
print(json.dumps(found))
"""


FORWARD = "mpsbar.compare(*make_network(seed), timing=False).data"
TRAINING = (
    "mpsbar.compare(lambda m, x: m(x).square().mean(), *make_network(seed), timing=False).data"
)


@two_sizes("seeds", small=["range(8)"], whole=[f"range({n}, {n + 20})" for n in range(0, 200, 20)])
def test_none_is_accused(seeds):
    assert run_script(SCRIPT.replace("SEEDS", seeds).replace("COMPARE", FORWARD)) == []


@two_sizes("seeds", small=["range(3)"], whole=[f"range({n}, {n + 20})" for n in range(0, 100, 20)])
def test_none_is_accused_in_training(seeds):
    """The gradients of the whole run are judged too."""
    assert run_script(SCRIPT.replace("SEEDS", seeds).replace("COMPARE", TRAINING)) == []
