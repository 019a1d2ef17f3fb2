"""accelerate: prepare and backward."""

import time

import torch
from accelerate import Accelerator
from small_model import make, show

accelerator = Accelerator()
model, (inputs, targets) = make("cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=16)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for _ in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
        time.sleep(0.03)
show(losses)
