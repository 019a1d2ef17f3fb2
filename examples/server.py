"""A model behind FastAPI: mpsbar run uvicorn server:app --app-dir examples --workers 2"""

import torch
from fastapi import FastAPI

import mpsbar

app = FastAPI()
device = mpsbar.get_device()
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1))
model.to(device).eval()


@app.get("/score")
def score(rows: int = 64) -> dict[str, float]:
    """A plain `def`: FastAPI runs it in its pool of threads."""
    with torch.inference_mode():
        batch = torch.randn(min(rows, 4096), 512, device=device)
        return {"mean": model(batch).mean().item()}


@app.get("/memory")
def memory() -> dict[str, int]:
    """What this worker process holds, for a health check or a dashboard of your own."""
    return mpsbar.memory()
