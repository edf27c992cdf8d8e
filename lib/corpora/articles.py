"""Readers of long articles in their native XML: PubMed Central's JATS and Wikipedia's dumps."""

import io
import re
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import mwparserfromhell
from lxml import etree
from mwparserfromhell.nodes import Tag, Wikilink
from mwparserfromhell.wikicode import Wikicode

from lib.corpora.records import Document, flat_text, iterate_xml
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import open_bytes

# Elements removed before reading: references, as in Bio-ELECTRA (Ozyurt 2020, section 2.1), and what is not prose.
NO_PROSE = {"ref-list", "table-wrap", "table-wrap-group", "fig", "fig-group", "disp-formula", "disp-formula-group",
            "supplementary-material", "media", "graphic", "tex-math", "array", "fn-group"}  # fmt: skip
# White space sets these elements apart, even inside a paragraph; other mark-up, such as inline formulas, gets none.
BLOCKS = NO_PROSE - {"graphic", "tex-math"} | {
    "address", "attrib", "boxed-text", "break", "chem-struct-wrap", "code", "def", "def-item", "def-list", "disp-quote",
    "fn", "label", "list", "list-item", "p", "preformat", "sec", "speaker", "speech", "statement", "subtitle", "term",
    "title", "verse-group", "verse-line"
}  # fmt: skip
HIDDEN = {"file", "image", "category", "ファイル", "画像", "カテゴリ"}  # namespaces of links whose text is not shown
LANGUAGE = re.compile("[a-z]{2,3}(-[a-z]+)*|simple")  # the prefix of a link to the article in another language
NO_ARTICLE = {"References", "External links", "See also", "Further reading", "Notes", "Bibliography", "Sources",
              "脚注", "参考文献", "関連項目", "外部リンク", "出典"}  # fmt: skip


class Member(tarfile.TarInfo):
    """An archive member. A damaged or missing header is an error, where tarfile would assume the archive's end."""

    @classmethod
    def fromtarfile(cls, archive):
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:
            raise
        except (tarfile.HeaderError, ValueError) as error:
            raise tarfile.ReadError(str(error)) from None


def read_jats(path: Path) -> Iterator[Document]:
    """Read full texts from a JATS file (.nxml, .xml) or a tar archive of such files: title, abstract and body.

    A file holds one article, or a set of articles from E-utilities. A macOS metadata file in an archive (`._name`)
    yields an empty document.
    """
    with open_bytes(path) as file:
        if ".tar" not in path.name:
            yield from read_articles(show_path(path), file)
            return
        try:
            with tarfile.open(fileobj=file, mode="r|", tarinfo=Member) as archive:
                while member := archive.next():
                    archive.members.clear()  # else this list grows with the archive
                    if not member.isfile() or not member.name.endswith((".nxml", ".xml")):
                        continue
                    if PurePosixPath(member.name).name.startswith("._"):
                        yield Document(member.name)
                        continue
                    content = io.BytesIO(archive.extractfile(member).read())
                    yield from read_articles(f"{show_path(path)}, {member.name}", content)
            while file.read(1 << 20):
                pass  # to the end, where gzip has its checksum
        except tarfile.TarError as error:
            raise StudyError(f"{show_path(path)}: cut off or damaged ({error})") from None


def read_articles(name: str, file: BinaryIO) -> Iterator[Document]:
    """Read the articles of a file; each section title is a line, like a paragraph. Raises StudyError if not JATS."""
    for article in iterate_xml(name, file, ("{*}article",), "article", ("article", "pmc-articleset")):
        namespace, brace, _ = article.tag.rpartition("}")
        for element in article.iter(f"{namespace}}}*") if brace else ():
            element.tag = element.tag.removeprefix(f"{namespace}}}")
        yield read_article(f"{name}:{article.sourceline}", article)


def read_article(place: str, article: etree._Element) -> Document:
    """Convert an article element to a document. Raises StudyError if it has no article-meta."""
    front = article.find("front/article-meta")
    if front is None:
        raise StudyError(f"{place}: no article-meta: not a JATS article")
    for block in article.iter(*BLOCKS):
        block.text, block.tail = f" {block.text or ''}", f" {block.tail or ''}"
    ids = {element.get("pub-id-type"): element.text or "" for element in front.iterfind("article-id")}
    identifier = ids.get("pmcid") or (f"PMC{ids['pmc'].removeprefix('PMC')}" if ids.get("pmc") else ids.get("pmid", ""))
    parts = [*front.iterfind("abstract"), *article.iterfind("body")]
    return Document(
        identifier,
        title=flat_text(front.find("title-group/article-title")),
        text="\n".join(line for part in parts for line in read_prose(part)),
        language=article.get("{http://www.w3.org/XML/1998/namespace}lang") or "",
    )


def read_prose(part: etree._Element) -> Iterator[str]:
    """Yield the titles and paragraphs below an element, in order, without the elements in NO_PROSE."""
    etree.strip_elements(part, *NO_PROSE, with_tail=False)
    for element in part.iter("title", "p"):
        in_paragraph = next(element.iterancestors("p"), None) is not None  # which already has its text
        if not in_paragraph and (text := flat_text(element)):
            yield text


def read_wikipedia(path: Path) -> Iterator[Document]:
    """Read the articles of a Wikipedia dump (pages-articles .xml, .xml.bz2), without redirects and other namespaces.

    Mark-up, tables, templates and the closing sections of references and links are removed.
    """
    hidden = HIDDEN
    with open_bytes(path) as file:
        for page in iterate_xml(show_path(path), file, ("{*}page",), "page", ("mediawiki",)):
            # These precede the first page: the names of files and categories in the wiki's language.
            names = page.getparent().iterfind("{*}siteinfo/{*}namespaces/{*}namespace")
            hidden = hidden | {name.text.lower() for name in names if name.get("key") in ("6", "14") and name.text}
            if page.findtext("{*}ns") != "0" or page.find("{*}redirect") is not None:
                continue
            text = strip_wikitext(page.findtext("{*}revision/{*}text") or "", hidden)
            yield Document(page.findtext("{*}id") or "", page.findtext("{*}title") or "", text)


def strip_wikitext(wikitext: str, hidden: Collection[str]) -> str:
    """Convert wikitext to plain text, one paragraph a line, without links to namespaces in `hidden` (lower case)."""
    wikicode = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    prune(wikicode, hidden)
    lines, dropped_level = [], 0  # dropped_level: of the section in NO_ARTICLE that goes on, or 0
    for section in wikicode.get_sections(flat=True, include_lead=True, include_headings=True):
        heading = next(section.ifilter_headings(), None)
        if heading and not 0 < dropped_level < heading.level:
            dropped_level = heading.level if heading.title.strip_code().strip() in NO_ARTICLE else 0
        if dropped_level:
            continue
        text = re.sub("''+", "", section.strip_code(normalize=True, collapse=True))  # italics, bold
        lines += [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return "\n".join(lines)


def prune(code: Wikicode, hidden: Collection[str]) -> None:
    """Remove tables and the like, and links to files, categories and other languages, at any depth.

    One pass, because Wikicode.remove() searches the whole page for each node: minutes for a page with a thousand
    references.
    """
    code.nodes = [node for node in code.nodes if not is_no_prose(node, hidden)]
    for node in code.nodes:
        contents = node.contents if isinstance(node, Tag) else node.text if isinstance(node, Wikilink) else None
        if contents is not None:
            prune(contents, hidden)


def is_no_prose(node, hidden: Collection[str]) -> bool:
    if isinstance(node, Tag):
        return str(node.tag).lower() in ("ref", "table", "math", "gallery")
    if not isinstance(node, Wikilink):
        return False
    prefix, colon, _ = str(node.title).partition(":")
    prefix = prefix.strip()
    return bool(colon) and (prefix.lower() in hidden or (node.text is None and LANGUAGE.fullmatch(prefix) is not None))
