"""The stored table of families, against the code of the installed transformers.

A sample here: one family of every sort. All of them: ``python tests/lib/make_rope_families.py
--check``, some minutes.
"""

import json
from collections import Counter
from typing import Any

import make_rope_families as made
import pytest
import torch
import transformers

from pe_lib.rope import families, rotary_settings

STORED = json.loads(made.TABLE.read_text(encoding="utf-8"))
SAMPLE = [
    "cohere",  # norms, if a field says so
    "cohere2",  # interleaved; full attention does not turn
    "deepseek_v3",  # read interleaved, written split
    "deepseek_v32",  # an indexer with queries, keys and norms of its own
    "deepseek_v4",  # the last entries of a head; labels of its own, and numbers for them
    "ernie4_5",
    "gemma2",  # scores that are capped
    "gemma3_text",  # two bases
    "gemma4_text",  # wider heads in full attention
    "glm4_moe",  # a part of a head, in split
    "gpt_neox",
    "gpt_oss",  # YaRN's factor
    "gptj",  # cosines of no module: the model reads tokens at the positions wanted
    "granite_swa",  # a base for each layer
    "hunyuan_v1_dense",  # norms behind the rotation, with weights
    "llama",
    "llama4_text",  # complex numbers; norms behind the rotation, without weights
    "molmo2_text",  # layers that are not scaled
    "nanochat",  # the other way round
    "qwen2_vl_text",  # sections
    "qwen3",
    "qwen3_5_text",  # interleaved axes, a quarter of a head, layers without attention
    "smollm3",
]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("model_type", SAMPLE)
def test_a_family_is_as_stored(model_type: str) -> None:
    found = json.loads(json.dumps(made.record(model_type)))
    assert found == STORED["families"][model_type]


def test_the_table_is_of_the_installed_version() -> None:
    assert STORED["transformers"] == transformers.__version__


def test_no_family_of_the_installed_transformers_is_missing_without_a_reason() -> None:
    """A new family makes this fail: run the script, and look at what it says of it."""
    known = set(STORED["families"]) | set(STORED["unread"])
    assert set(made.families()) <= known


def test_what_the_table_holds() -> None:
    direct = [each for each in families().values() if "layout" in each]
    assert len(direct) >= 150
    layouts = Counter((each["layout"], each.get("layout_out", each["layout"])) for each in direct)
    assert layouts["split", "split"] > 100
    both = {name for name, each in families().items() if "layout_out" in each}
    assert both >= {"deepseek_v3", "deepseek_v32", "glm4_moe_lite", "longcat_flash", "mistral4"}
    assert layouts["interleaved", "split"] == len(both)
    assert {each["read"] for each in direct} == {"model", "function"}
    assert [name for name, each in families().items() if each.get("direction") == -1] == [
        "nanochat"
    ]


@pytest.mark.parametrize("wrong", ["layout", "base", "unturned"])
def test_a_wrong_record_disagrees(wrong: str) -> None:
    """The check that a record passes can fail."""
    watched = made.watch("cohere2")
    reports = made.examine(watched)
    family = STORED["families"]["cohere2"]
    assert made.disagreements(watched.config, reports, family) == []
    config = watched.config
    if wrong == "layout":
        family = family | {"layout": "split"}
    elif wrong == "unturned":
        family = {name: value for name, value in family.items() if name != "unturned"}
    else:
        config = type(config)(**{**config.to_dict(), "rope_parameters": {"rope_theta": 20_000.0}})
    assert made.disagreements(config, reports, family)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "qwen3"}, "q_norm, k_norm before it (convert them with the weights)"),
        (
            {"model_type": "hunyuan_v1_dense"},
            "query_layernorm, key_layernorm after it (convert them with the weights)",
        ),
        ({"model_type": "nanochat"}, "q_norm, k_norm after it (without weights)"),
        ({"model_type": "cohere"}, None),
        (
            {"model_type": "cohere", "use_qk_norm": True},
            "q_norm, k_norm before it (convert them with the weights)",
        ),
        ({"model_type": "llama4_text", "use_qk_norm": False}, None),
        ({"model_type": "deepseek_v32"}, None),  # the norm is of its indexer's keys
    ],
)
def test_settings_name_the_norms_and_whether_they_are_converted(
    config: dict[str, Any], words: str | None
) -> None:
    said = [each for each in rotary_settings(config).not_rotation if "norm" in each]
    assert said == ([] if words is None else [words])
