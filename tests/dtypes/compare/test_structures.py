"""Tensors in what models take and return: found, converted and copied, whatever holds them."""

import dataclasses
from collections import OrderedDict
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import pytest

pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.starts_processes]


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    tensor: object
    name: str = "x"


class Cache:
    def __init__(self, keys):
        self.keys, self.length = keys, 3


@pytest.fixture
def structures(torch):
    from mpsbar.dtypes.compare import structures

    return structures


@pytest.fixture(
    params=[
        lambda t: (t, 1), lambda t: [t, None], lambda t: Pair(t, "a"), lambda t: {"x": t, "y": {"z": 2}},
        lambda t: OrderedDict(x=t), lambda t: MappingProxyType({"x": t}), Frozen,
        lambda t: Cache([(t,)]), lambda t: SimpleNamespace(past=Cache(t)),
    ],
    ids=["tuple", "list", "namedtuple", "dict", "ordered", "proxy", "frozen", "cache", "nested"],
)  # fmt: skip
def container(request, torch):
    return request.param(torch.arange(3.0))


def test_every_tensor_is_found_and_converted_in_a_copy(structures, torch, container):
    [tensor] = structures.list_tensors(container)
    made = structures.map_tensors(container, lambda found: found + 10)
    [converted] = structures.list_tensors(made)
    assert converted.tolist() == [10, 11, 12]
    [same] = structures.list_tensors(container)
    assert same is tensor and tensor.tolist() == [0, 1, 2]  # the original is as it was
    if not isinstance(container, MappingProxyType):
        assert type(made) is type(container)


def test_the_order_is_fixed_and_one_that_occurs_twice_is_listed_twice(structures, torch):
    first, second = torch.zeros(1), torch.ones(1)
    found = structures.list_tensors({"a": [second, first], "b": Pair(first, second)})
    assert [id(t) for t in found] == [id(t) for t in (second, first, first, second)]


def test_what_holds_no_tensor_is_used_as_it_is(structures, torch):
    layer, plain = torch.nn.Linear(2, 2), Cache("no tensor")
    for value in ("text", 3, None, torch.float16, layer, plain, len):
        assert structures.map_tensors(value, lambda _: None) is value
    assert structures.list_tensors(layer) == []  # its parameters are not the call's


def test_an_object_that_holds_itself_ends(structures, torch):
    knot = Cache(torch.zeros(1))
    knot.itself = knot
    assert len(structures.list_tensors(knot)) >= 1


def test_the_same_container_twice_is_converted_once(structures, torch):
    shared, converted = [torch.zeros(1)], []
    made = structures.map_tensors((shared, shared), lambda t: converted.append(t) or t + 1)
    assert made[0] is made[1]
    assert len(converted) == 1


def test_a_packed_sequence_keeps_its_batch_sizes(structures, torch):
    packed = torch.nn.utils.rnn.pack_sequence([torch.arange(3.0), torch.arange(2.0)])
    made = structures.map_tensors(packed, lambda t: t.double())
    assert (made.data.dtype, made.batch_sizes.tolist()) == (torch.float64, [2, 2, 1])


def test_a_clone_has_the_values_the_strides_and_memory_of_its_own(structures, torch):
    source = torch.arange(12.0).reshape(3, 4).t()
    made = structures.clone_tensor(source)
    assert made.stride() == source.stride() and torch.equal(made, source)
    made += 1
    assert source[0, 0] == 0
    wide = structures.clone_tensor(source, dtype=torch.float64)
    assert (wide.dtype, wide.stride()) == (torch.float64, source.stride())


def test_elements_that_share_memory_get_their_own_in_a_clone(structures, torch):
    expanded = torch.ones(1, 3).expand(4, 3)
    made = structures.clone_tensor(expanded)
    made[0] += 1
    assert made[1:].eq(1).all()
    sparse = torch.eye(3).to_sparse()
    assert structures.clone_tensor(sparse).to_dense().equal(torch.eye(3))
