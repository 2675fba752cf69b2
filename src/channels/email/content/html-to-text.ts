import { HtmlWalk, UNSEEN } from "./html-walk.ts";

/**
 * Derives the plain-text alternative of an HTML message: its visible text, with blocks on separate lines, dashes before
 * list items, the `alt` of images, and links followed by their address. Placeholders are kept, so it is computed once
 * per template instead of once per message. Empty if there is no text.
 */
export function htmlToText(html: string): string {
  return new TextWriter(html).text();
}

/** Line breaks around an element; two make an empty line. */
const BREAKS: Readonly<Record<string, number>> = {
  ...byName(1, "address article aside dd div dt figcaption figure footer form header hr li main nav section tr"),
  ...byName(2, "blockquote dl h1 h2 h3 h4 h5 h6 ol p pre table ul"),
};

function byName(breaks: number, names: string): Record<string, number> {
  return Object.fromEntries(names.split(" ").map((name) => [name, breaks]));
}

class TextWriter extends HtmlWalk {
  private readonly pieces: string[] = [];
  /** Line breaks to write before the next visible character. */
  private breaks = 0;
  private spaced = false;
  /** The element whose content is being skipped. */
  private unseen: string | null = null;
  private tag = "";
  private attribute = "";
  private value = "";
  /** Address and first piece of the open link. */
  private link: { readonly href: string; readonly from: number } | null = null;

  text(): string {
    this.walk();
    this.endLink();
    return this.pieces.join("").trim();
  }

  override onwords(start: number, end: number): void {
    if (this.unseen === null) this.write(this.html.slice(start, end));
  }

  override ontextentity(codepoint: number): void {
    if (this.unseen === null) this.write(String.fromCodePoint(codepoint));
  }

  override onopentagname(start: number, end: number): void {
    this.tag = this.html.slice(start, end).toLowerCase();
    if (this.unseen !== null) return;
    // Text ends a head: invisible text in a head has its own elements.
    if (this.tag !== "head" && UNSEEN.has(this.tag)) this.unseen = this.tag;
    if (this.tag === "br") this.breaks += 1;
    if (this.tag === "td" || this.tag === "th") this.spaced = true;
    this.breakFor(this.tag);
    if (this.tag === "li") this.write("- ");
  }

  override onattribname(start: number, end: number): void {
    this.attribute = this.html.slice(start, end).toLowerCase();
    this.value = "";
  }

  override onattribdata(start: number, end: number): void {
    this.value += this.html.slice(start, end);
  }

  override onattribentity(codepoint: number): void {
    this.value += String.fromCodePoint(codepoint);
  }

  override onattribend(): void {
    if (this.unseen !== null) return;
    if (this.tag === "img" && this.attribute === "alt") this.write(this.value);
    if (this.tag === "a" && this.attribute === "href") this.beginLink(this.value.trim());
  }

  override onclosetag(start: number, end: number): void {
    const tag = this.html.slice(start, end).trim().toLowerCase();
    if (this.unseen !== null) {
      if (tag === this.unseen) this.unseen = null;
      return;
    }
    if (tag === "a") this.endLink();
    this.breakFor(tag);
  }

  private breakFor(tag: string): void {
    const breaks = Object.hasOwn(BREAKS, tag) ? (BREAKS[tag] ?? 0) : 0;
    this.breaks = Math.max(this.breaks, breaks);
  }

  private write(text: string): void {
    const words = text.replace(/[\t\n\f\r ]+/g, " ");
    if (words === "") return;
    if (words === " ") {
      this.spaced = true;
      return;
    }
    const started = this.pieces.length > 0;
    if (started && this.breaks > 0) this.pieces.push("\n".repeat(Math.min(this.breaks, 2)));
    else if (started && (this.spaced || words.startsWith(" "))) this.pieces.push(" ");
    this.pieces.push(words.replace(/^ | $/g, ""));
    this.breaks = 0;
    this.spaced = words.endsWith(" ");
  }

  private beginLink(href: string): void {
    this.endLink();
    if (/^(?:https?:|mailto:|tel:|\{\{)/i.test(href)) this.link = { href, from: this.pieces.length };
  }

  private endLink(): void {
    const link = this.link;
    if (link === null) return;
    this.link = null;
    const label = this.pieces.slice(link.from).join("").trim();
    const target = link.href.replace(/^(?:mailto|tel):/i, "");
    // A link whose text is its address needs no second copy; a link without text (an image) becomes its address.
    if (label === link.href || label === target) return;
    this.write(label === "" ? ` ${link.href}` : ` (${link.href})`);
  }
}
