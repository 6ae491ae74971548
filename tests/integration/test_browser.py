"""Pages in a real browser: they make no requests, log no errors, and can be read.

Needs playwright and Debian's chromium (or Chrome); skipped where they are not installed.
"""

import base64
import shutil

import numpy as np
import pytest

from privatize import Budget, audit, plan, privatize, report, samplers, seal

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
if CHROMIUM is None:
    pytest.skip("there is no chromium on this machine", allow_module_level=True)

PHONE, DESKTOP = 390, 1280
LONG = "a_function_whose_name_is_much_longer_than_a_phone_is_wide_and_has_no_place_to_break"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the files that a user would open, by name."""
    pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
    folder = tmp_path_factory.mktemp("pages")
    table = samplers.table(
        age=samplers.integers(18, 90),
        sex=samplers.categorical(["F", "M"]),
        weight=samplers.normal(75, 15).truncated(30, 200),
        visit=samplers.dates("2020-01-01", "2024-12-31"),
    )
    budget = Budget("survey of the browser, 2026", epsilon=10, gamma=0.9, delta=1e-5, ledger="memory")
    settings = {"epsilon": 1, "gamma": 0.2, "seed": 1, "store": None, "workers": "inline"}

    @privatize(sampler=table, budget=budget, **settings)
    def weight_by_sex(d):
        """Mean weight in kilograms, for women and men."""
        if d["age"].iloc[0] == 90:
            raise ValueError("the first is too old")
        return d.groupby("sex", observed=False)["weight"].mean()

    def long(x, exponent_of_every_number=1):
        return float((x**exponent_of_every_number).mean())

    long.__name__ = long.__qualname__ = LONG
    average = privatize(sampler=samplers.uniform(0, 100), **settings)(long)
    unlucky = privatize(sampler=samplers.uniform(0, 1), **settings)(np.mean)
    data = table.draw(200, np.random.default_rng(3))
    answers = [weight_by_sex.release(seal(data, name="staff of all sites", version=str(i))) for i in range(4)]
    measured = audit(weight_by_sex, 200, pairs=60, releases=200, seed=4)
    full = report(weight_by_sex, [200, 1000], audit=measured, known=3.0)
    assert "failed pairs" in full.html and "staff of all sites" in full.html
    full.save(folder / "report.html")
    report(average, 1000, exponent_of_every_number=1.25, known=0.1).save(folder / "long.html")
    checked = audit(unlucky, 100, pairs=300, releases=400, seed=5, under=[samplers.uniform(0, 9)])
    broken = audit(unlucky, 100, pairs=300, releases=400, seed=5, sampler=samplers.uniform(-9, 9))
    assert checked.holds and not broken.holds
    (folder / "audit.html").write_text(checked.html(), encoding="utf-8")
    (folder / "broken.html").write_text(broken.html(), encoding="utf-8")
    histogram = privatize(sampler=samplers.uniform(0, 1), **settings)(lambda x: np.histogram(x, bins=5)[0])
    views = [
        plan(0.05),
        weight_by_sex.estimate(200),
        answers[0],
        unlucky.release(np.linspace(0, 1, 100)),
        histogram.release(np.linspace(0, 1, 100)),
        budget,
        checked,
        broken,
        weight_by_sex,
        full,
    ]
    shown = "<hr>".join(view._repr_html_().replace("<details>", "<details open='open'>") for view in views)
    for name, style in (("light", "background:#fff;color:#111"), ("dark", "background:#111;color:#ddd")):
        (folder / f"notebook-{name}.html").write_text(
            f"<!doctype html><meta charset='utf-8'><link rel='icon' href='data:,'>"
            f"<meta name='viewport' content='width=device-width'><body style='{style}'>{shown}",
            encoding="utf-8",
        )
    return {file.stem: file for file in folder.glob("*.html")}


CASES = [
    *((name, wide, scheme) for name in ("report", "long", "audit", "broken")
      for wide in (PHONE, DESKTOP) for scheme in ("light", "dark")),
    *((f"notebook-{scheme}", wide, scheme) for wide in (PHONE, DESKTOP) for scheme in ("light", "dark")),
]  # fmt: skip


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case)))
def opened(request, browser, pages):
    """Return an open page with everything on it unfolded, and its requests, messages and errors."""
    name, wide, scheme = request.param
    context = browser.new_context(
        viewport={"width": wide, "height": 844}, color_scheme=scheme, is_mobile=wide == PHONE
    )
    page, happened = context.new_page(), []
    page.on("console", lambda message: happened.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: happened.append(f"error: {error}"))
    page.on("request", lambda request: happened.append(request.url))
    page.goto(pages[name].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.wait_for_timeout(50)
    yield page, happened, pages[name], wide
    context.close()


def test_the_page_makes_no_requests_and_logs_no_errors(opened):
    """A user's page would load something from the network, or log errors."""
    _, happened, file, _ = opened
    # A report in a notebook is in a frame of its own, whose address is its own content.
    assert [each for each in happened if each not in ("about:srcdoc", "data:,")] == [file.as_uri()]


def test_the_page_fits_its_screen(opened):
    """A user would have to scroll to the right and back to read each line."""
    page, _, _, wide = opened
    assert page.evaluate("window.innerWidth") == wide
    assert page.evaluate("document.documentElement.scrollWidth") <= wide


# Returns contrast and size of every text on the page: by its computed color, with the opacity of all elements
# that it is in, against the nearest background.
READABLE = """
() => {
  const rgba = text => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return found.length < 4 ? [...found.slice(0, 3), 1] : found;
  };
  const canvas = rgba(getComputedStyle(document.body).backgroundColor);
  const over = (top, bottom) => top.slice(0, 3).map((c, i) => c * top[3] + bottom[i] * (1 - top[3]));
  const light = color => {
    const [r, g, b] = color.map(c => c / 255).map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || element.closest('style, script, title')) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element), inSvg = element.closest('svg') !== null;
    const color = rgba(inSvg ? style.fill : style.color);
    let back = canvas.slice(0, 3), opacity = 1;
    const above = [];
    for (let each = element; each; each = each.parentElement) above.unshift(each);
    for (const each of above) {
      const own = getComputedStyle(each);
      back = over(rgba(own.backgroundColor), back);
      opacity *= Number(own.opacity);
    }
    const front = over([...color.slice(0, 3), color[3] * opacity], back);
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
    let size = parseFloat(style.fontSize);
    if (inSvg) size *= Math.hypot(element.getScreenCTM().a, element.getScreenCTM().b);
    found.push({
      text: node.textContent.trim().slice(0, 60), contrast: (high + .05) / (low + .05), size, inSvg,
    });
  }
  return found;
}
"""


def test_text_is_readable(opened):
    """A user could not read text that is too small, or hardly differs from its background."""
    page, _, _, _ = opened
    texts = page.evaluate(READABLE)
    assert len(texts) > 20
    assert [each for each in texts if each["contrast"] < 4.5] == []
    assert [each for each in texts if each["size"] < (8 if each["inSvg"] else 11)] == []


# Returns labels of a picture that are outside it, or overlap by more than 1.5 pixels across and 3 down.
COLLIDING = """
() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
  const boxes = texts.map(t => t.getBoundingClientRect());
  const edge = svg.getBoundingClientRect();
  const found = [];
  boxes.forEach((a, i) => {
    if (a.left < edge.left - 1 || a.right > edge.right + 1) found.push('outside: ' + texts[i].textContent);
    boxes.slice(i + 1).forEach((b, j) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1.5 && down > 3) found.push(texts[i].textContent + ' / ' + texts[i + 1 + j].textContent);
    });
  });
  return found;
})
"""


def test_labels_of_a_picture_do_not_overlap(opened):
    """A user could not read the axes."""
    page, _, _, _ = opened
    assert page.evaluate(COLLIDING) == []


def test_a_screenshot_is_not_blank(opened, tmp_path):
    """A user would see nothing."""
    page, _, _, _ = opened
    taken = page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").read_bytes() == taken
    colors = page.evaluate(
        """
        async shot => {
          const picture = new Image();
          picture.src = 'data:image/png;base64,' + shot;
          await picture.decode();
          const canvas = document.createElement('canvas');
          [canvas.width, canvas.height] = [picture.width, Math.min(picture.height, 4000)];
          const context = canvas.getContext('2d');
          context.drawImage(picture, 0, 0);
          const data = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
          return new Set(data).size;
        }
        """,
        base64.b64encode(taken).decode(),
    )
    assert colors > 20  # text alone has as many shades


def test_a_page_can_be_printed(browser, pages, tmp_path):
    """A user who prints a report would lose what is folded, or get a blank sheet."""
    page = browser.new_page()
    page.goto(pages["report"].as_uri())
    folded = "document.querySelector('details:not([open])').getBoundingClientRect().height"
    before = page.evaluate(folded)
    page.emulate_media(media="print")
    assert page.evaluate(folded) > before + 100
    printed = page.pdf(path=tmp_path / "report.pdf")
    assert printed.startswith(b"%PDF") and len(printed) > 20_000
    page.close()
