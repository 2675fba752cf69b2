import { QuoteType } from "htmlparser2";
import { limits } from "../../../domain/limits.ts";
import { parseUrl } from "../../../domain/texts/parse-url.ts";
import { HtmlWalk } from "./html-walk.ts";

export interface Tracking {
  /** Address of the tracking pixel; null for no pixel. */
  readonly pixel: string | null;
  /**
   * Returns the address that replaces a link's own one, which is absolute, http or https; null leaves the link
   * unchanged.
   */
  trackedUrl(url: string): string | null;
}

/**
 * Adds the tracking pixel to the HTML and replaces its links by tracked ones. Links are `a[href]` and `area[href]` with
 * an absolute http or https address and without `data-no-track`. The rest of the document stays byte for byte the same:
 * comments (conditional ones, too), scripts, styles and everything else that readers do not follow. The pixel comes
 * before the last `</body>`, or at the end if there is none.
 *
 * Takes time proportional to the length of the HTML.
 */
export function trackedHtml(html: string, { pixel, trackedUrl }: Tracking): string {
  const finder = findLinks(html, []);
  const edits = finder.links.flatMap(({ value, start, end, quote }): Edit[] => {
    const url = absoluteUrl(value);
    const tracked = url === null ? null : trackedUrl(url);
    return tracked === null ? [] : [{ start, end, text: trackedValue(tracked, quote) }];
  });
  const at = finder.bodyEnd ?? html.length;
  if (pixel !== null) edits.push({ start: at, end: at, text: pixelImage(pixel) });
  return edited(
    html,
    edits.sort((one, other) => one.start - other.start),
  );
}

export function pixelImage(pixel: string): string {
  return `<img src="${attributeText(pixel)}" width="1" height="1" alt="" border="0">`;
}

/** Returns the text that replaces a link's value. */
export function trackedValue(tracked: string, quote: FoundLink["quote"]): string {
  return `${quote}${attributeText(tracked)}${quote}`;
}

/** Finds the links of an HTML, and whether text may be filled in at `gaps`, which are character positions. */
export function findLinks(html: string, gaps: readonly number[]): LinksOfHtml {
  return new LinkFinder(html, gaps).found();
}

export interface LinksOfHtml {
  readonly links: readonly FoundLink[];
  readonly bodyEnd: number | null;
  /**
   * Whether each gap lies in text or in a quoted attribute value, so that escaped text filled in there cannot start or
   * end a tag.
   */
  readonly isSafe: boolean;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function edited(html: string, edits: readonly Edit[]): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { start, end, text } of edits) {
    pieces.push(html.slice(done, start), text);
    done = end;
  }
  return pieces.join("") + html.slice(done);
}

/** Escapes text for an attribute with either kind of quotes. */
function attributeText(text: string): string {
  return text.replace(/[&"'<>]/g, (char) => `&#${char.charCodeAt(0)};`);
}

export interface FoundLink {
  /** The decoded value. */
  readonly value: string;
  /** Position of its value in the HTML, without quotes. */
  readonly start: number;
  readonly end: number;
  /** The quotes to write around the new value. */
  readonly quote: '"' | "";
}

class LinkFinder extends HtmlWalk {
  private readonly links: FoundLink[] = [];
  /** Position of the last `</body>`. */
  private bodyEnd: number | null = null;
  private isLink = false;
  private attribute = "";
  private attributeEnd = 0;
  private value = "";
  /** The tag's `href`; undefined if it has none so far. */
  private href: FoundLink | undefined;
  private isUntracked = false;
  /** Gaps found to be safe, each before all that have not been checked yet. */
  private safeGaps = 0;

  constructor(
    html: string,
    private readonly gaps: readonly number[],
  ) {
    super(html);
  }

  found(): LinksOfHtml {
    this.walk();
    return { links: this.links, bodyEnd: this.bodyEnd, isSafe: this.safeGaps === this.gaps.length };
  }

  override onopentagname(start: number, end: number): void {
    const tag = this.html.slice(start, end).toLowerCase();
    this.isLink = tag === "a" || tag === "area";
    this.href = undefined;
    this.isUntracked = false;
  }

  override onwords(start: number, end: number): void {
    for (let gap = this.nextGap(start); gap < end; gap = this.nextGap(start)) {
      if (this.isAtTag(gap)) return;
      this.safeGaps += 1;
    }
  }

  override onattribname(start: number, end: number): void {
    this.attributeEnd = end;
    if (!this.isLink) return;
    this.attribute = this.html.slice(start, end).toLowerCase();
    this.value = "";
  }

  override onattribdata(start: number, end: number): void {
    if (this.isLink) this.value += this.html.slice(start, end);
  }

  override onattribentity(codepoint: number): void {
    if (this.isLink) this.value += String.fromCodePoint(codepoint);
  }

  override onattribend(quote: QuoteType, end: number): void {
    if (quote === QuoteType.Double || quote === QuoteType.Single) {
      while (this.nextGap(this.attributeEnd) < end) this.safeGaps += 1;
    }
    if (!this.isLink) return;
    if (this.attribute === "data-no-track") this.isUntracked = true;
    // If an attribute is repeated, readers use the first.
    if (this.attribute !== "href" || this.href !== undefined || quote === QuoteType.NoValue) return;
    const isQuoted = quote !== QuoteType.Unquoted;
    BEFORE_VALUE.lastIndex = this.attributeEnd;
    BEFORE_VALUE.test(this.html);
    const start = BEFORE_VALUE.lastIndex + (isQuoted ? 1 : 0);
    this.href = { value: this.value, start, end: isQuoted ? end - 1 : end, quote: isQuoted ? "" : '"' };
  }

  override onopentagend(): void {
    if (this.href !== undefined && !this.isUntracked) this.links.push(this.href);
    this.href = undefined;
  }

  override onselfclosingtag(): void {
    this.onopentagend();
  }

  override onclosetag(start: number, end: number): void {
    if (this.html.slice(start, end).toLowerCase() === "body") this.bodyEnd = start - "</".length;
  }

  /** Returns the next gap, if it is after `start`: an earlier gap was skipped, and is not safe. */
  private nextGap(start: number): number {
    const gap = this.gaps[this.safeGaps] ?? Number.POSITIVE_INFINITY;
    return gap >= start ? gap : Number.POSITIVE_INFINITY;
  }

  /**
   * Whether the filled text could become the name of a tag: there is a `<` since the last gap, and no end of a name.
   */
  private isAtTag(gap: number): boolean {
    const text = this.html.slice((this.gaps[this.safeGaps - 1] ?? -1) + 1, gap);
    const bracket = text.lastIndexOf("<");
    return bracket !== -1 && !/[\s>]/.test(text.slice(bracket));
  }
}

/** Characters that the tokenizer skips between an attribute's name and its value. */
const BEFORE_VALUE = /[\t\n\f\r ]*=[\t\n\f\r ]*/y;

const PLAIN_URL = /^https?:\/\/[!-[\]-~]+$/i;

/**
 * Returns the absolute http or https address that a mail program finds in the attribute; null for others and for
 * addresses too long to be tracked. Unchanged if it is plain ASCII, otherwise in the form used for requests (WHATWG
 * URL), because it will be a header's value.
 */
export function absoluteUrl(value: string): string | null {
  // Characters that a URL parser removes first (WHATWG URL, 4.4).
  const text = trimmed(value).replace(/[\t\n\r]/g, "");
  if (Buffer.byteLength(text) > limits.linkUrlBytesMax || !/^https?:\/\//i.test(text)) return null;
  const url = parseUrl(text);
  if (url === null) return null;
  return PLAIN_URL.test(text) ? text : url.href;
}

/**
 * Removes blanks and control characters at both ends. A regular expression would be quadratic: it tries each inner run
 * as the end.
 */
function trimmed(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && value.charCodeAt(start) <= SPACE) start += 1;
  while (end > start && value.charCodeAt(end - 1) <= SPACE) end -= 1;
  return value.slice(start, end);
}

const SPACE = 0x20;
