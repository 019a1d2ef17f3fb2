"""Reads what mpsbar prints as JSON, and checks it strictly against the schema that is shipped."""

import json
from functools import cache

from jsonschema import Draft202012Validator
from worker_kit import ROOT

FOLDER = ROOT / "resources/schema"


def make_strict(schema):
    """The shipped one allows fields of a later mpsbar; here each must be described."""
    if isinstance(schema, list):
        return [make_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: make_strict(part) for key, part in schema.items()}
    if isinstance(strict.get("properties"), dict) and strict.get("type") == "object":
        strict["additionalProperties"] = False
    return strict


@cache
def validator(name):
    return Draft202012Validator(make_strict(json.loads((FOLDER / f"{name}.json").read_text())))


def check(name, data):
    """`data` itself, if it is JSON as resources/schema/NAME.json says."""
    faults = [f"{e.json_path}: {e.message[:300]}" for e in validator(name).iter_errors(data)]
    assert not faults, "\n".join(faults)
    return data


def read_json(name, text):
    return check(name, json.loads(text))
