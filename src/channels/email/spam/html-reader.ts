import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";
import { type Color, type InlineStyle, inlineStyle, isUnseen } from "./inline-style.ts";
import type { Link } from "./link-target.ts";

/** What the rules want to know of a message's HTML. Counts are of elements unless they say otherwise. */
export interface HtmlReading {
  /** What a reader sees; blocks are separated by a space. */
  readonly text: string;
  /** What is in the message and no reader sees: not displayed at all. */
  readonly hiddenText: string;
  /** What is displayed so that no reader sees it: in the colour of its background, or next to no size. */
  readonly camouflagedText: string;
  readonly links: readonly Link[];
  readonly images: number;
  readonly forms: number;
  readonly passwordFields: number;
  /** Elements that load another page into the message, or leave it for one. */
  readonly frames: number;
  readonly refreshes: number;
  /** Attributes that would run a script. */
  readonly handlers: number;
  /** The beginnings of addresses that carry their content themselves, images left out. */
  readonly dataUrls: readonly string[];
  /** Words with a comment or an empty element inside. */
  readonly brokenWords: number;
  /** Elements that are not closed, or closed without having been opened, where HTML asks for it. */
  readonly unbalanced: number;
  /** Whether there was more than is looked at. */
  readonly cut: boolean;
}

const HTML_CHARS_MAX = 1024 * 1024;
const TEXT_CHARS_MAX = 200_000;
const LINKS_MAX = 500;
const LABEL_CHARS_MAX = 300;
const ATTRIBUTE_CHARS_MAX = 2_000;
const DATA_URLS_MAX = 20;

/**
 * Reads HTML once, in time proportional to its length, however broken it is. It works on the tokenizer and not on the
 * parser, whose stack of open elements makes deep nesting quadratic.
 */
export function readHtml(html: string): HtmlReading {
  const cut = html.length > HTML_CHARS_MAX;
  const reader = new HtmlReader(cut ? html.slice(0, HTML_CHARS_MAX) : html);
  return reader.read(cut);
}

/** Elements whose content no reader sees in any mail. */
const UNSEEN = new Set(["head", "iframe", "noembed", "noframes", "script", "style", "template", "title"]);
const VOID = new Set("area base br col embed frame hr img input link meta param source track wbr".split(" "));
/** Elements that HTML wants closed. */
const CLOSED = new Set("a b big center div em font h1 h2 h3 i ol small span strong sub sup table u ul".split(" "));
const INLINE = new Set("a abbr b big code em font i mark s small span strong sub sup u wbr".split(" "));
const WANTED = new Set("background bgcolor color height href http-equiv src style type width".split(" "));

interface OpenElement {
  readonly tag: string;
  readonly look: Look;
}

/** How text is shown at a place. */
interface Look {
  readonly unseen: boolean;
  readonly gone: boolean;
  readonly tiny: boolean;
  readonly color: Color;
  readonly background: Color;
  /** What follows from the others: where text of this look belongs. */
  readonly kind: TextKind;
}

type TextKind = "seen" | "hidden" | "camouflaged" | "none";

const PLAIN: Look = { unseen: false, gone: false, tiny: false, color: 0, background: 0xffffff, kind: "seen" };

/**
 * Where the tokenizer reports positions, they are positions in `html`: it is written in one piece.
 *
 * 1. `counts` holds how many elements of each name are open, so a closing tag without an opening one costs no search, and
 *    every search ends with as many elements closed as it has looked at: linear in all.
 * 2. Everything that is kept has a bound; what goes beyond it is left out.
 */
class HtmlReader implements TokenizerCallbacks {
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
  /** The link that is open. */
  private link: { href: string; label: string } | null = null;
  /** Whether the text before was interrupted by something that a reader does not see. */
  private interrupted = false;
  private tag = "";
  /** Whether anything came since the tag was opened. */
  private empty = false;
  private attribute = "";
  private value = "";
  private readonly attributes = new Map<string, string>();
  private readonly styles = new Map<string, InlineStyle>();

  constructor(private readonly html: string) {}

  read(cut: boolean): HtmlReading {
    const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, this);
    tokenizer.write(this.html);
    tokenizer.end();
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

  ontext(start: number, end: number): void {
    this.write(this.html.slice(start, end));
  }

  ontextentity(codepoint: number): void {
    this.write(String.fromCodePoint(codepoint));
  }

  oncomment(): void {
    this.interrupted = true;
  }

  onopentagname(start: number, end: number): void {
    this.tag = this.html.slice(start, end).toLowerCase();
    this.attributes.clear();
  }

  onattribname(start: number, end: number): void {
    this.attribute = this.html.slice(start, end).toLowerCase();
    this.value = "";
    if (this.attribute.startsWith("on") && this.attribute.length > 3) this.seen.handlers += 1;
  }

  onattribdata(start: number, end: number): void {
    const room = ATTRIBUTE_CHARS_MAX - this.value.length;
    if (room > 0 && WANTED.has(this.attribute)) this.value += this.html.slice(start, Math.min(end, start + room));
  }

  onattribentity(codepoint: number): void {
    if (this.value.length < ATTRIBUTE_CHARS_MAX) this.value += String.fromCodePoint(codepoint);
  }

  onattribend(): void {
    // Of attributes that are there twice, the first one counts.
    if (WANTED.has(this.attribute) && !this.attributes.has(this.attribute)) {
      this.attributes.set(this.attribute, this.value.trim());
    }
  }

  onopentagend(): void {
    this.begin(VOID.has(this.tag));
  }

  onselfclosingtag(): void {
    // In HTML the slash means nothing; in the SVG and Office XML that mails carry, it closes.
    this.begin(VOID.has(this.tag) || !CLOSED.has(this.tag));
  }

  onclosetag(start: number, end: number): void {
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
    // The body ends the head, closed or not.
    if (tag === "body") this.close("head");
    if (alone) return;
    const look = this.lookInside(tag);
    this.open.push({ tag, look });
    this.counts.set(tag, (this.counts.get(tag) ?? 0) + 1);
    this.look = look;
  }

  private lookInside(tag: string): Look {
    const around = this.look;
    const unseen = around.unseen || UNSEEN.has(tag);
    const own = this.ownStyle();
    if (own === null && !this.attributes.has("background") && unseen === around.unseen) return around;
    const gone = around.gone || (own?.gone ?? false);
    const tiny = own?.tiny ?? around.tiny;
    const color = own?.color ?? around.color;
    // The attribute of old mails names an image.
    const background = this.attributes.has("background") ? "other" : (own?.background ?? around.background);
    const camouflaged = tiny || isUnseen(color, background);
    const shown: TextKind = gone ? "hidden" : camouflaged ? "camouflaged" : "seen";
    return { unseen, gone, tiny, color, background, kind: unseen ? "none" : shown };
  }

  /** Read once for each text that it has: messages repeat their styles from cell to cell. Null: there is none. */
  private ownStyle(): InlineStyle | null {
    const style = this.attributes.get("style");
    const color = this.attributes.get("color");
    const bgcolor = this.attributes.get("bgcolor");
    if (style === undefined && color === undefined && bgcolor === undefined) return null;
    // The lengths keep texts apart that only together look alike.
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

  /** Images of one point are there to count readers, or to fill tables. */
  private isPixel(): boolean {
    return [this.attributes.get("width"), this.attributes.get("height")].some((side) => side === "1" || side === "0");
  }

  private beginLink(href: string | undefined): void {
    this.link = null;
    if (href === undefined || this.links.length === LINKS_MAX) return;
    this.link = { href, label: "" };
    this.links.push(this.link);
  }

  /** Closes the innermost open element of this name, and with it all that are inside. */
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

  // What says nothing about the message.
  oncdata(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onprocessinginstruction(): void {}
}

const LETTER_AT_END = /\p{L}$/u;
const LETTER_AT_START = /^\p{L}/u;

/** A text that takes pieces until it is full. Its end is kept apart: looking at it must not join the pieces each time. */
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

  /** Its last two units, enough for one character. */
  end(): string {
    return this.last.slice(-2);
  }

  toString(): string {
    return this.pieces.join("");
  }
}
