import { HtmlWalk, IN_HEAD, UNSEEN } from "../content/html-walk.ts";
import { type Color, type InlineStyle, inlineStyle, isUnseen } from "./inline-style.ts";
import type { Link } from "./link-target.ts";

/** The rules' input from a message's HTML. Counts are of elements unless stated otherwise. */
export interface HtmlReading {
  /** Text that a reader sees; blocks are separated by a space. */
  readonly text: string;
  /** Text that is not displayed at all. */
  readonly hiddenText: string;
  /** Text that is displayed but invisible: in the colour of its background, or extremely small. */
  readonly camouflagedText: string;
  readonly links: readonly Link[];
  readonly images: number;
  readonly forms: number;
  readonly passwordFields: number;
  /** Elements that load another page into the message, or navigate away from it. */
  readonly frames: number;
  readonly refreshes: number;
  /** Attributes that would run a script. */
  readonly handlers: number;
  /** The first characters of `data:` URLs, except for images. */
  readonly dataUrls: readonly string[];
  /** Words with a comment or an empty element inside. */
  readonly brokenWords: number;
  /** Elements that are not closed although HTML requires it, or closed without having been opened. */
  readonly unbalanced: number;
  /** Whether the HTML was longer than what is read. */
  readonly cut: boolean;
}

const HTML_CHARS_MAX = 1024 * 1024;
const TEXT_CHARS_MAX = 200_000;
const LINKS_MAX = 500;
const LABEL_CHARS_MAX = 300;
const ATTRIBUTE_CHARS_MAX = 2_000;
const DATA_URLS_MAX = 20;

/**
 * Reads HTML once, in time proportional to its length, however malformed. Uses the tokenizer instead of the parser,
 * whose stack of open elements makes deep nesting quadratic.
 */
export function readHtml(html: string): HtmlReading {
  const cut = html.length > HTML_CHARS_MAX;
  const reader = new HtmlReader(cut ? html.slice(0, HTML_CHARS_MAX) : html);
  return reader.read(cut);
}

const VOID = new Set("area base br col embed frame hr img input link meta param source track wbr".split(" "));
/** Elements that HTML requires to be closed. */
const CLOSED = new Set("a b big center div em font h1 h2 h3 i ol small span strong sub sup table u ul".split(" "));
const INLINE = new Set("a abbr b big code em font i mark s small span strong sub sup u wbr".split(" "));
const WANTED = new Set("background bgcolor color height href http-equiv src style type width".split(" "));

interface OpenElement {
  readonly tag: string;
  readonly look: Look;
}

/** The style of text at a position. */
interface Look {
  readonly unseen: boolean;
  readonly gone: boolean;
  readonly tiny: boolean;
  readonly color: Color;
  readonly background: Color;
  /** Derived from the other members: the text that this style adds to. */
  readonly kind: TextKind;
}

type TextKind = "seen" | "hidden" | "camouflaged" | "none";

const PLAIN: Look = { unseen: false, gone: false, tiny: false, color: 0, background: 0xffffff, kind: "seen" };

/**
 * 1. `counts` has the number of open elements per name, so a closing tag without an opening one needs no search, and
 *    every search closes as many elements as it visits: linear in total.
 * 2. All state is bounded; the excess is dropped.
 */
class HtmlReader extends HtmlWalk {
  private readonly open: OpenElement[] = [];
  private readonly counts = new Map<string, number>();
  private readonly texts: Readonly<Record<TextKind, BoundedText>> = {
    seen: new BoundedText(),
    hidden: new BoundedText(),
    camouflaged: new BoundedText(),
    none: new BoundedText(),
  };
  private readonly links: { href: string; label: string }[] = [];
  private readonly dataUrls: string[] = [];
  private readonly seen = { images: 0, forms: 0, passwordFields: 0, frames: 0, refreshes: 0, handlers: 0 };
  private brokenWords = 0;
  private unbalanced = 0;
  private look = PLAIN;
  /** The open link. */
  private link: { href: string; label: string } | null = null;
  /** Whether something invisible interrupted the preceding text. */
  private interrupted = false;
  private tag = "";
  /** Whether the open element is still empty. */
  private empty = false;
  private attribute = "";
  private value = "";
  private readonly attributes = new Map<string, string>();
  private readonly styles = new Map<string, InlineStyle>();

  read(cut: boolean): HtmlReading {
    this.walk();
    for (const { tag } of this.open) if (CLOSED.has(tag)) this.unbalanced += 1;
    return {
      text: this.texts.seen.toString(),
      hiddenText: this.texts.hidden.toString(),
      camouflagedText: this.texts.camouflaged.toString(),
      links: this.links,
      dataUrls: this.dataUrls,
      brokenWords: this.brokenWords,
      unbalanced: this.unbalanced,
      ...this.seen,
      cut,
    };
  }

  override onwords(start: number, end: number): void {
    this.write(this.html.slice(start, end));
  }

  override ontextentity(codepoint: number): void {
    this.write(String.fromCodePoint(codepoint));
  }

  override oncomment(): void {
    this.interrupted = true;
  }

  override onopentagname(start: number, end: number): void {
    this.tag = this.html.slice(start, end).toLowerCase();
    this.attributes.clear();
  }

  override onattribname(start: number, end: number): void {
    this.attribute = this.html.slice(start, end).toLowerCase();
    this.value = "";
    if (this.attribute.startsWith("on") && this.attribute.length > 3) this.seen.handlers += 1;
  }

  override onattribdata(start: number, end: number): void {
    const room = ATTRIBUTE_CHARS_MAX - this.value.length;
    if (room > 0 && WANTED.has(this.attribute)) this.value += this.html.slice(start, Math.min(end, start + room));
  }

  override onattribentity(codepoint: number): void {
    if (this.value.length < ATTRIBUTE_CHARS_MAX) this.value += String.fromCodePoint(codepoint);
  }

  override onattribend(): void {
    // If an attribute is repeated, the first one counts.
    if (WANTED.has(this.attribute) && !this.attributes.has(this.attribute)) {
      this.attributes.set(this.attribute, this.value.trim());
    }
  }

  override onopentagend(): void {
    this.begin(VOID.has(this.tag));
  }

  override onselfclosingtag(): void {
    // HTML ignores the slash; in the SVG and Office XML inside mails, it closes the element.
    this.begin(VOID.has(this.tag) || !CLOSED.has(this.tag));
  }

  override onclosetag(start: number, end: number): void {
    const tag = this.html.slice(start, end).trim().toLowerCase();
    if (tag === "a") this.link = null;
    if (this.empty && tag === this.tag && INLINE.has(tag)) this.interrupted = true;
    this.empty = false;
    this.separate(tag);
    this.close(tag);
  }

  private begin(alone: boolean): void {
    const { tag } = this;
    this.empty = !alone;
    this.separate(tag);
    this.note(tag);
    // The body ends the head, closed or not, as does whatever else does not belong there.
    if (tag === "body" || (!IN_HEAD.has(tag) && IN_OPEN_HEAD.has(this.innermost))) this.close("head");
    if (alone) return;
    const look = this.lookInside(tag);
    this.open.push({ tag, look });
    this.counts.set(tag, (this.counts.get(tag) ?? 0) + 1);
    this.look = look;
  }

  /** The name of the innermost open element, or "". */
  private get innermost(): string {
    return this.open.at(-1)?.tag ?? "";
  }

  private lookInside(tag: string): Look {
    const around = this.look;
    const unseen = around.unseen || UNSEEN.has(tag);
    const own = this.ownStyle();
    if (own === null && !this.attributes.has("background") && unseen === around.unseen) return around;
    const gone = around.gone || (own?.gone ?? false);
    const tiny = own?.tiny ?? around.tiny;
    const color = own?.color ?? around.color;
    // The `background` attribute of old mails names an image.
    const background = this.attributes.has("background") ? "other" : (own?.background ?? around.background);
    const camouflaged = tiny || isUnseen(color, background);
    const shown: TextKind = gone ? "hidden" : camouflaged ? "camouflaged" : "seen";
    return { unseen, gone, tiny, color, background, kind: unseen ? "none" : shown };
  }

  /**
   * Parses the element's own style, or returns null. Each distinct text is parsed once, because messages repeat their
   * styles from cell to cell.
   */
  private ownStyle(): InlineStyle | null {
    const style = this.attributes.get("style");
    const color = this.attributes.get("color");
    const bgcolor = this.attributes.get("bgcolor");
    if (style === undefined && color === undefined && bgcolor === undefined) return null;
    // The lengths distinguish combinations whose concatenations are equal.
    const key = `${style?.length}:${color?.length}:${style}${color}${bgcolor}`;
    const known = this.styles.get(key);
    if (known !== undefined) return known;
    const own = inlineStyle(style ?? "", color, bgcolor);
    this.styles.set(key, own);
    return own;
  }

  private note(tag: string): void {
    const target = this.attributes.get("href") ?? this.attributes.get("src") ?? "";
    if (/^data:(?!image\/(?!svg))/i.test(target) && this.dataUrls.length < DATA_URLS_MAX) {
      this.dataUrls.push(target.slice(0, LABEL_CHARS_MAX));
    }
    if (tag === "a" || tag === "area") this.beginLink(this.attributes.get("href"));
    else if (tag === "img") this.seen.images += this.isPixel() ? 0 : 1;
    else if (tag === "form") this.seen.forms += 1;
    else if (tag === "iframe" || tag === "object" || tag === "embed" || tag === "frame") this.seen.frames += 1;
    else if (tag === "input") this.seen.passwordFields += /^password$/i.test(this.attributes.get("type") ?? "") ? 1 : 0;
    else if (tag === "meta") this.seen.refreshes += /^refresh$/i.test(this.attributes.get("http-equiv") ?? "") ? 1 : 0;
  }

  /** Images of one pixel count readers or fill tables. */
  private isPixel(): boolean {
    return [this.attributes.get("width"), this.attributes.get("height")].some((side) => side === "1" || side === "0");
  }

  private beginLink(href: string | undefined): void {
    this.link = null;
    if (href === undefined || this.links.length === LINKS_MAX) return;
    this.link = { href, label: "" };
    this.links.push(this.link);
  }

  /** Closes the innermost open element of this name, and all elements inside it. */
  private close(tag: string): void {
    if ((this.counts.get(tag) ?? 0) === 0) {
      if (CLOSED.has(tag)) this.unbalanced += 1;
      return;
    }
    for (let last = this.open.pop(); last !== undefined; last = this.open.pop()) {
      this.counts.set(last.tag, (this.counts.get(last.tag) ?? 1) - 1);
      if (last.tag === tag) break;
      if (CLOSED.has(last.tag)) this.unbalanced += 1;
    }
    this.look = this.open.at(-1)?.look ?? PLAIN;
  }

  private separate(tag: string): void {
    if (INLINE.has(tag)) return;
    this.interrupted = false;
    this.texts.seen.separate();
    this.texts.hidden.separate();
    this.texts.camouflaged.separate();
  }

  private write(text: string): void {
    if (IN_OPEN_HEAD.has(this.innermost) && NOT_BLANK.test(text)) this.close("head");
    this.empty = false;
    const into = this.texts[this.look.kind];
    if (this.look.kind !== "seen") this.interrupted = true;
    else if (this.interrupted) {
      this.interrupted = false;
      if (LETTER_AT_END.test(into.end()) && LETTER_AT_START.test(text)) this.brokenWords += 1;
    }
    into.add(text);
    if (this.link !== null && this.look.kind === "seen" && this.link.label.length < LABEL_CHARS_MAX) {
      this.link.label += text.slice(0, LABEL_CHARS_MAX);
    }
  }
}

/** Elements in which others, and text, may end the head: the content of any other element there is not displayed. */
const IN_OPEN_HEAD = new Set(["head", "noscript"]);
const NOT_BLANK = /[^\t\n\f\r ]/;
const LETTER_AT_END = /\p{L}$/u;
const LETTER_AT_START = /^\p{L}/u;

/**
 * A text that accepts pieces until it is full. Its end is kept separately, because reading it must not join the pieces
 * each time.
 */
class BoundedText {
  private readonly pieces: string[] = [];
  private room = TEXT_CHARS_MAX;
  private last = "";

  add(piece: string): void {
    if (this.room === 0 || piece === "") return;
    const taken = piece.slice(0, this.room);
    this.pieces.push(taken);
    this.room -= taken.length;
    this.last = taken;
  }

  separate(): void {
    if (this.last !== "" && !this.last.endsWith(" ")) this.add(" ");
  }

  /** Returns the last two code units, enough for one character. */
  end(): string {
    return this.last.slice(-2);
  }

  toString(): string {
    return this.pieces.join("");
  }
}
