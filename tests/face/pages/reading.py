"""A page as a test reads it: its words, its links, its commands, and what is wrong with its elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr"}
SHAPES = {"path", "circle", "rect", "line"}
TEXTLESS = {"script", "style"}
FIELDS = {"input", "textarea", "select"}


@dataclass
class Page(HTMLParser):
    """The parsed text of a page."""

    words: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    posts: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)

    @property
    def text(self):
        """All words, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.faults += [f"<{tag} {name}>" for name in attributes if name.startswith("on") or name == "style"]
        if tag == "script" and "src" not in attributes and attributes.get("type") != "application/json":
            self.faults.append("a script without an address")
        if tag == "th" and "scope" not in attributes:
            self.faults.append("a th without scope")
        if (
            tag in FIELDS
            and attributes.get("type") != "hidden"
            and "label" not in self.open
            and not {"id", "aria-label"} & attributes.keys()
        ):
            self.faults.append(f"a {tag} without a label")
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            level = int(tag[1])
            if level > (self.headings[-1] if self.headings else 0) + 1:
                self.faults.append(f"{tag} after {self.headings[-1:]}")
            self.headings.append(level)
        if name := attributes.get("id"):
            if name in self.ids:
                self.faults.append(f"two elements {name}")
            self.ids.append(name)
        self.links += [attributes["href"]] if tag == "a" and "href" in attributes else []
        self.commands += [attributes["data-copy"]] if "data-copy" in attributes else []
        self.values += [attributes["value"]] if tag == "input" and attributes.get("name") == "instead_of" else []
        self.posts += [attributes["data-post"]] if "data-post" in attributes else []
        if tag not in VOID | SHAPES:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in SHAPES | VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> within {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if not TEXTLESS.intersection(self.open):
            self.words.append(data)


def page_of(text):
    """A page, checked: what a reader or a screen reader would stumble over is an error."""
    page = Page()
    page.feed(text)
    page.close()
    assert page.faults == []
    assert page.open == []
    return page


def whole_page(text):
    """The same of a page that is no part: it has one first heading and the landmarks."""
    page = page_of(text)
    assert page.headings.count(1) == 1
    assert "main" in page.ids
    return page
