"""diffusers: a pipeline with a tiny network of random weights, twice the same image."""

import time

import torch
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel
from small_model import pick_device

torch.manual_seed(0)
network = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
pipeline = DDIMPipeline(network, DDIMScheduler(num_train_timesteps=50)).to(pick_device())
pipeline.set_progress_bar_config(disable=True)
for seed in range(3):
    noise = torch.Generator("cpu").manual_seed(seed)
    image = pipeline(generator=noise, num_inference_steps=15, output_type="numpy").images
    print("result", round(float(image.sum()), 3), image[0, :2, 0, 0].round(4).tolist(), flush=True)
    time.sleep(0.5)
