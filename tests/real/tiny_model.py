"""A model folder without weights: what a front end needs to tokenize and to fill a chat template.

The tokenizer is byte-level BPE with a vocabulary of single bytes and the merges that make common
words one token each; texts of random ids are nonsense, with many incomplete characters.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from llm_locust.prompts.words import WORDS

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CONTEXT_TOKENS = 32768
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
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
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
    return folder


if __name__ == "__main__":
    print(make_model(Path(sys.argv[1])))
