"""Lightning: fit a module."""

import logging
import platform
import time
import warnings

import lightning
import torch
from small_model import make, show

warnings.simplefilter("ignore")
platform.processor = lambda: "arm"  # on others Lightning does not ask torch for MPS
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
losses = []


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model, self.data = make("cpu")

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        losses.append(loss.item())
        time.sleep(0.03)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

    def train_dataloader(self):
        return torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(*self.data), batch_size=16
        )


trainer = lightning.Trainer(
    max_epochs=12,
    accelerator="mps" if torch.backends.mps.is_available() else "cpu",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module())
show(losses)
