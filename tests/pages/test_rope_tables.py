"""The pages "RoPE by family" and "Rotary conventions" have what the stored tables have."""

import pytest

from pe_lib.rope import rotary_settings
from pe_lib.rope.families import families as known_families
from website.extensions.data_pages import JINJA
from website.extensions.rope_tables import CONVENTIONS_PAGE, FAMILIES, conventions, families
from website.page_measures import BOOK

ROWS = {row["name"]: row for row in families()["rows"]}


def rendered(page: str, data: dict[str, object]) -> str:
    text = (BOOK.parent / f"{page}.md").read_text(encoding="utf-8")
    return JINJA.from_string(text).render(data)


def test_the_page_has_every_family() -> None:
    page = rendered(FAMILIES, families())
    assert [name for name in known_families() if f"`{name}`" not in page] == []
    assert len(ROWS) > 150


@pytest.mark.parametrize("name", ["llama", "llama4_text", "gemma3_text", "qwen3_vl_text"])
def test_a_row_says_what_a_configuration_gives(name: str) -> None:
    row, settings = ROWS[name], rotary_settings({"model_type": name})
    assert {row["layout"]} == {kind.layout for kind in settings.kinds}
    assert all(f"{kind.base:,.0f}" in row["base"] for kind in settings.kinds)
    assert (row["unturned"] == "none") == (None not in settings.layers)
    assert bool(row["axes"]) == (settings.kinds[0].pair_axes is not None)


def test_rows_that_differ_are_told_apart() -> None:
    assert ROWS["deepseek_v3"]["written"] != ROWS["deepseek_v3"]["layout"]
    assert ROWS["nanochat"]["backward"]
    assert ROWS["gpt_neox"]["part"] == "1/4"
    assert "every 4th" in ROWS["smollm3"]["unturned"]
    assert ROWS["cohere2"]["unturned"] == "full attention"
    assert ROWS["zamba2"]["unturned"] == "all, or with `use_mem_rope` linear attention"
    said = "full attention, or as `layer_rope_theta` says"
    assert ROWS["muse_spark_text"]["unturned"] == said
    assert "capped" in ROWS["gemma2"]["beside"]
    assert ROWS["gpt_oss"]["base"] == "150,000, yarn ×32"
    assert "temperature" in ROWS["llama4_text"]["beside"]
    assert "norm" in ROWS["qwen3"]["beside"]
    assert "where `use_qk_norm` is true" in ROWS["cohere"]["beside"]
    assert ROWS["llama4_text"]["beside"].count("norm") == 2  # the norm, and the field


def test_every_convention_is_on_its_page() -> None:
    page = rendered(CONVENTIONS_PAGE, conventions())
    for line in conventions()["lines"]:
        assert line["library"] in page
        assert line["ours"] in page
