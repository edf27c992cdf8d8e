"""Long articles from their native XML: PubMed Central's JATS, and Wikipedia's dumps."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import mwparserfromhell
from lxml import etree
from mwparserfromhell.nodes import Tag, Wikilink
from mwparserfromhell.wikicode import Wikicode

from lib.corpora.records import Document, flat_text, iterate_xml, read_year
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import open_bytes, refuse_entities

# Left out of a body, as Bio-ELECTRA leaves out the references (Ozyurt 2020, section 2.1), and what is no prose.
NO_PROSE = {"ref-list", "table-wrap", "table-wrap-group", "fig", "fig-group", "disp-formula", "disp-formula-group",
            "supplementary-material", "media", "graphic", "tex-math", "array", "fn-group"}  # fmt: skip
NO_ARTICLE = {"References", "External links", "See also", "Further reading", "Notes", "Bibliography", "Sources",
              "脚注", "参考文献", "関連項目", "外部リンク", "出典"}  # fmt: skip


class Member(tarfile.TarInfo):
    """A member of an archive. Unlike tarfile's own, a damaged or missing one does not pass for the archive's end."""

    @classmethod
    def fromtarfile(cls, archive):
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:
            raise
        except (tarfile.HeaderError, ValueError) as error:
            raise tarfile.ReadError(str(error)) from None


def read_jats(path: Path) -> Iterator[Document]:
    """Full texts of a JATS file (.nxml, .xml) or of a tar archive of them: title, abstract and body."""
    with open_bytes(path) as file:
        if ".tar" not in path.name:
            yield read_article(f"{show_path(path)}", file.read())
            return
        try:
            with tarfile.open(fileobj=file, mode="r|", tarinfo=Member) as archive:
                while member := archive.next():
                    archive.members.clear()  # else the list of them grows with the archive
                    if member.isfile() and member.name.endswith((".nxml", ".xml")):
                        yield read_article(f"{show_path(path)}, {member.name}", archive.extractfile(member).read())
            while file.read(1 << 20):
                pass  # to the end, where gzip has its checksum
        except tarfile.TarError as error:
            raise StudyError(f"{show_path(path)}: cut off or damaged ({error}); fetch the file again") from None


def read_article(where: str, content: bytes) -> Document:
    """One JATS article; a section's title is a line of its own, as a paragraph is. StudyError where it is no JATS."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True)
    try:
        article = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise StudyError(f"{where}:{error.lineno}: not well-formed XML: {error.msg}; fetch the file again") from None
    refuse_entities(where, article.getroottree())
    entity = next(article.iter(etree.Entity), None)
    if entity is not None:
        raise StudyError(f"{where}:{entity.sourceline}: {entity.text} is declared elsewhere: replace it by a character")
    front = article.find("front/article-meta")
    if front is None:
        raise StudyError(f"{where}: no article-meta: not a JATS article")
    ids = {element.get("pub-id-type"): element.text or "" for element in front.iterfind("article-id")}
    identifier = ids.get("pmcid") or (f"PMC{ids['pmc'].removeprefix('PMC')}" if ids.get("pmc") else ids.get("pmid", ""))
    lines = [line for part in (*front.iterfind("abstract"), article.find("body")) for line in read_prose(part)]
    return Document(
        identifier,
        title=flat_text(front.find("title-group/article-title")),
        text="\n".join(lines),
        language=article.get("{http://www.w3.org/XML/1998/namespace}lang") or "",
        year=read_year(front.findtext("pub-date/year") or ""),
    )


def read_prose(part) -> Iterator[str]:
    """The titles and paragraphs below an element, in order, without what is in NO_PROSE."""
    if part is None:
        return
    etree.strip_elements(part, *NO_PROSE, with_tail=False)
    for element in part.iter("title", "p"):
        if not any(parent.tag == "p" for parent in element.iterancestors("p")):  # its text is the outer one's already
            text = flat_text(element)
            if text:
                yield text


def read_wikipedia(path: Path) -> Iterator[Document]:
    """Articles of a Wikipedia dump (pages-articles .xml, .xml.bz2): no redirects, no pages of other namespaces.

    Mark-up, tables, templates and the closing sections of references and links are left out.
    """
    with open_bytes(path) as file:
        for page in iterate_xml(path, file, ("{*}page",), "page", ("mediawiki",)):
            if page.findtext("{*}ns") != "0" or page.find("{*}redirect") is not None:
                continue
            wikitext = page.findtext("{*}revision/{*}text") or ""
            yield Document(page.findtext("{*}id") or "", page.findtext("{*}title") or "", strip_wikitext(wikitext))


def strip_wikitext(wikitext: str) -> str:
    """Wikitext as plain text, a paragraph a line."""
    code = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    prune(code)
    lines = []
    for section in code.get_sections(flat=True, include_lead=True, include_headings=True):
        headings = section.filter_headings()
        if headings and headings[0].title.strip_code().strip() in NO_ARTICLE:
            continue
        text = re.sub("''+", "", section.strip_code(normalize=True, collapse=True))  # italics, bold
        lines += [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return "\n".join(lines)


def prune(code: Wikicode) -> None:
    """Take out tables and the like, and links to files, categories and other languages, wherever they stand.

    In one pass: Wikicode.remove() searches the whole page for each node, minutes for one with a thousand references.
    """
    code.nodes = [node for node in code.nodes if not is_no_prose(node)]
    for node in code.nodes:
        inner = node.contents if isinstance(node, Tag) else node.text if isinstance(node, Wikilink) else None
        if inner is not None:
            prune(inner)


def is_no_prose(node) -> bool:
    if isinstance(node, Tag):
        return str(node.tag).lower() in ("ref", "table", "math", "gallery")
    return isinstance(node, Wikilink) and re.match(r"[^|\]:]+:(?=\S)", str(node.title)) is not None
