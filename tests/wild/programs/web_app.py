"""The app that uvicorn and gunicorn serve."""

import torch
from fastapi import FastAPI
from small_model import make, pick_device

app = FastAPI()
loaded = []


@app.get("/{number}")
def infer(number: int):
    if not loaded:
        loaded.extend(make(pick_device()))
    with torch.no_grad():
        return {"out": round(loaded[0](loaded[1][0] * number).sum().item(), 3)}
