"""DataLoaders with worker processes, made anew for every epoch."""

import time

import torch
from small_model import make, pick_device, show
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    device = pick_device()
    model, (inputs, targets) = make(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(inputs.cpu(), targets.cpu())
    losses = []
    for _ in range(3):
        for x, y in DataLoader(data, batch_size=8, num_workers=2):
            loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            time.sleep(0.05)
    show(losses)
