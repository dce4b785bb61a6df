"""Other load generators on the load of ours: one file each says how it is installed, asked and read.

What is measured, and how to run it, stands in ``__main__``.
"""

from benchmarks.peers import aiperf, evalscope, genai_bench, guidellm, sglang, vllm
from benchmarks.peers.peer import Peer

PEERS: dict[str, Peer] = {
    "sglang-rust": sglang.RUST,
    "sglang": sglang.PYTHON,
    "vllm": vllm.PEER,
    "evalscope": evalscope.PEER,
    "aiperf": aiperf.PEER,
    "genai-bench": genai_bench.PEER,
    "guidellm": guidellm.PEER,
}
