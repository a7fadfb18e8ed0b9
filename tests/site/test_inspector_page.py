"""The page "What does this model's RoPE do?": an example, a length, an unknown family, a copy."""

import json

from playwright.sync_api import Browser, Page, expect

from pe_lib.rope import rotary_settings
from tests.site.browser import PHONE, visit
from website.built_site import SITE
from website.extensions.inspector import inspector

PAGE = SITE / "book" / "inspector.html"
EXAMPLES = json.loads(inspector()["examples"])


def answer(page: Page, words: str) -> None:
    expect(page.locator("#inspector-answer")).to_contain_text(words)


def test_inspector(browser: Browser) -> None:
    """From the folder, by mouse and by key."""
    with visit(browser, PAGE.as_uri()) as page:
        answer(page, "qwen3 · 36 layers, all rotated")
        text = page.get_by_label("Your config.json")
        for name, example in EXAMPLES.items():
            page.get_by_role("button", name=name).press("Enter")
            expect(text).to_have_value(example["config"])
            status = page.locator("#inspector [role=status]")
            damaged = name == "A damaged file"
            expect(status).to_contain_text("Cannot say: " if damaged else " layers")
        answer(page, "high_freq_factor must be given")

        page.get_by_role("button", name="Qwen3 4B with YaRN").click()
        page.get_by_label("Length, in tokens").fill("32768")
        answer(page, "Within 32,768, unscaled: no pair meets angles beyond those of training")
        answer(page, "That says nothing about what the scaling costs.")
        page.get_by_role("button", name="SmolLM3 3B").click()
        lines = page.locator("#inspector-test")
        expect(lines).to_contain_text("# Needs pe_lib")
        expect(lines).to_contain_text("def test_which_layers_are_not_rotated")
        # The length asked for is the trained one: one strip says all.
        expect(page.locator(".pairs-row")).to_have_count(1)
        answer(page, "A text of that length meets no other angle.")
        page.get_by_label("Length, in tokens").fill("131072")
        expect(page.locator(".pairs-row")).to_have_count(2)
        page.get_by_role("button", name="Gemma 3 4B").click()
        expect(lines).to_contain_text("turn_of(5), layer.head_dim")
        page.get_by_role("button", name="Qwen3 4B with YaRN").click()
        page.get_by_label("Length, in tokens").fill("32768")
        slider = page.get_by_label("One pair")
        slider.press("Home")
        expect(slider).to_have_attribute(
            "aria-valuetext",
            "Pair 0: 5,215 turns within 32,768; 5,215 turns within 32,768, unscaled; "
            "5,215 turns within 32,768, yarn",
        )
        page.get_by_label("Length, in tokens").fill("-1")
        answer(page, "the length must be a whole number")


def test_an_unknown_family_asks_for_its_layout(browser: Browser) -> None:
    config, other = (
        json.loads(EXAMPLES[name]["config"]) | {"model_type": "a_new_family"}
        for name in ("Qwen3 4B with YaRN", "SmolLM3 3B")
    )
    with visit(browser, PAGE.as_uri()) as page:
        layout = page.get_by_label("Layout, if you know it")
        expect(layout).to_be_hidden()
        page.get_by_label("Your config.json").fill(json.dumps(config))
        answer(page, "its layout is not known, and not guessed")
        layout.select_option("interleaved")
        answer(page, "a_new_family · 36 layers, all rotated")
        expect(layout).to_be_visible()
        # Which of its layers turn, a layout does not say.
        page.get_by_label("Your config.json").fill(json.dumps(other))
        layout.select_option("interleaved")
        answer(page, "its file has no_rope_layer_interval, for which a layout alone does not")
        page.get_by_role("button", name="Llama 3.1 8B").click()
        expect(layout).to_be_hidden()


def test_lines_are_copied_or_selected(browser: Browser, url: str) -> None:
    address = f"{url}/book/inspector.html"
    with visit(browser, address) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        section = page.locator(".inspector-lines", has_text="A test of your own rotation")
        section.get_by_role("button").click()
        expect(page.locator("#inspector [role=status]")).to_have_text("Copied.")
        assert "doctor.assert_turns_as(turn" in page.evaluate("navigator.clipboard.readText()")


def test_on_a_phone_nothing_is_wider_than_the_screen_and_targets_are_large(
    browser: Browser,
) -> None:
    with visit(browser, PAGE.as_uri(), **PHONE) as page:
        for name in EXAMPLES:
            page.get_by_role("button", name=name).click()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            targets = page.locator(
                "#inspector :is(button, input, textarea), #inspector-answer :is(button, input)"
            )
            heights = targets.evaluate_all(
                "all => all.filter((one) => one.checkVisibility()).map((one) => one.offsetHeight)"
            )
            assert min(heights) >= 44


def test_the_first_answer_stands_there_without_scripts(browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(PAGE.as_uri())
    (kind,) = rotary_settings(json.loads(EXAMPLES["Qwen3 4B with YaRN"]["config"])).kinds
    expect(page.locator("#inspector-answer")).to_contain_text(
        f"{kind.attention_factor:.4f} on q and k"
    )
    context.close()
