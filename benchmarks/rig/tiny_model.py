"""A tiny model: tokenizer and chat template for a front end, random weights of a real architecture for an engine.

The tokenizer is byte-level BPE with a vocabulary of single bytes and the merges that make common
words one token each; the weights are a Qwen2 of two layers. What it writes is nonsense with many
incomplete characters: tokens without text, which real servers hold back in ways of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from llm_locust.prompts.words import WORDS

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CONTEXT_TOKENS = 32768
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS = 64, 128, 2, 2, 1
HEAD_SPREAD = 0.3
"""Standard deviation of the last layer's weights: with less, greedy output is one token for ever."""
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder: Path) -> Path:
    """Write the folder; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=4096, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([" " + " ".join(WORDS)] * 3, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": size,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "tie_word_embeddings": False,
        "max_position_embeddings": CONTEXT_TOKENS,
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "pad_token_id": tokenizer.token_to_id("<|endoftext|>"),
        "torch_dtype": "float32",
    }
    named = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": CONTEXT_TOKENS,
        "chat_template": TEMPLATE,
    }
    ends = {"eos_token_id": config["eos_token_id"], "pad_token_id": config["pad_token_id"]}
    for name, content in (("config", config), ("tokenizer_config", named), ("generation_config", ends)):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1))
    _write_safetensors(folder / "model.safetensors", dict(_weights(size)))
    return folder


def _weights(vocabulary: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield name and values of each tensor, the same ones each time."""
    random = np.random.default_rng(0)

    def normal(*shape: int, spread: float = 0.02) -> NDArray[np.float32]:
        return random.normal(0.0, spread, shape).astype(np.float32)

    key_value = HIDDEN // HEADS * KV_HEADS
    yield "model.embed_tokens.weight", normal(vocabulary, HIDDEN)
    for layer in range(LAYERS):
        place = f"model.layers.{layer}"
        for name, width in (("q", HIDDEN), ("k", key_value), ("v", key_value)):
            yield f"{place}.self_attn.{name}_proj.weight", normal(width, HIDDEN)
            yield f"{place}.self_attn.{name}_proj.bias", np.zeros(width, np.float32)
        yield f"{place}.self_attn.o_proj.weight", normal(HIDDEN, HIDDEN)
        yield f"{place}.mlp.gate_proj.weight", normal(INNER, HIDDEN)
        yield f"{place}.mlp.up_proj.weight", normal(INNER, HIDDEN)
        yield f"{place}.mlp.down_proj.weight", normal(HIDDEN, INNER)
        yield f"{place}.input_layernorm.weight", np.ones(HIDDEN, np.float32)
        yield f"{place}.post_attention_layernorm.weight", np.ones(HIDDEN, np.float32)
    yield "model.norm.weight", np.ones(HIDDEN, np.float32)
    yield "lm_head.weight", normal(vocabulary, HIDDEN, spread=HEAD_SPREAD)


def _write_safetensors(path: Path, tensors: dict[str, NDArray[np.float32]]) -> None:
    """Write the format of safetensors: length of the header, header in JSON, the values one after the other."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, values in tensors.items():
        begin, end = end, end + values.nbytes
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [begin, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(v.tobytes() for v in tensors.values()))


if __name__ == "__main__":
    print(make_model(Path(sys.argv[1])))
