"""sentence-transformers: sentences embedded by a tiny BERT with random weights."""

import tempfile
import time

import torch
from sentence_transformers import SentenceTransformer
from small_model import pick_device
from tiny_text import make_tokenizer
from transformers import BertConfig, BertModel

try:
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
except ImportError:
    from sentence_transformers.models import Pooling, Transformer

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    words = Transformer(folder)
    model = SentenceTransformer(modules=[words, Pooling(16)], device=pick_device())
found = []
for _ in range(25):
    vectors = model.encode(["one two three", "nine ten"], show_progress_bar=False)
    found.append(vectors[:, 0].round(4).tolist())
    time.sleep(0.05)
print("result", found[0], [each == found[0] for each in found].count(False), flush=True)
