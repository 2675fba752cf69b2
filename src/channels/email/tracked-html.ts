import { QuoteType, Tokenizer, type TokenizerCallbacks } from "htmlparser2";

export interface Tracking {
  /** Address of the tracking pixel. */
  readonly pixel: string;
  /** The address that stands in for a link's own, which is absolute, http or https; null leaves the link as it is. */
  trackedUrl(url: string): string | null;
}

/**
 * The HTML with the tracking pixel and its links led past us. Links are `a[href]` and `area[href]` with an absolute
 * http or https address, unless they carry `data-no-track`. The rest of the document is byte for byte as it was:
 * comments (conditional ones, too), scripts, styles and what else no reader follows. The pixel comes before the last
 * `</body>`, or at the end where there is none.
 *
 * Takes time proportional to the length of the HTML.
 */
export function trackedHtml(html: string, { pixel, trackedUrl }: Tracking): string {
  const finder = new LinkFinder(html);
  const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, finder);
  tokenizer.write(html);
  tokenizer.end();
  const edits = finder.links.flatMap(({ url, start, end, quote }): Edit[] => {
    const tracked = trackedUrl(url);
    return tracked === null ? [] : [{ start, end, text: `${quote}${attributeText(tracked)}${quote}` }];
  });
  const image = `<img src="${attributeText(pixel)}" width="1" height="1" alt="" border="0">`;
  const at = finder.bodyEnd ?? html.length;
  edits.push({ start: at, end: at, text: image });
  return edited(
    html,
    edits.sort((one, other) => one.start - other.start),
  );
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

/** Text as it can stand in an attribute, whichever quotes are around it. */
function attributeText(text: string): string {
  return text.replace(/[&"'<>]/g, (char) => `&#${char.charCodeAt(0)};`);
}

interface FoundLink {
  /** Where it leads, decoded and serialised. */
  readonly url: string;
  /** Its value in the HTML, the quotes left out where it has some. */
  readonly start: number;
  readonly end: number;
  /** What the new value needs around it. */
  readonly quote: '"' | "";
}

/** Where the tokenizer reports positions, they are positions in `html`: it is written in one piece. */
class LinkFinder implements TokenizerCallbacks {
  readonly links: FoundLink[] = [];
  /** Where the last `</body>` begins. */
  bodyEnd: number | null = null;
  private isLink = false;
  private attribute = "";
  private attributeEnd = 0;
  private value = "";
  /** The tag's `href`: undefined before there is one, null where it is not tracked. */
  private href: FoundLink | null | undefined;
  private isUntracked = false;

  constructor(private readonly html: string) {}

  onopentagname(start: number, end: number): void {
    const tag = this.html.slice(start, end).toLowerCase();
    this.isLink = tag === "a" || tag === "area";
    this.href = undefined;
    this.isUntracked = false;
  }

  onattribname(start: number, end: number): void {
    if (!this.isLink) return;
    this.attribute = this.html.slice(start, end).toLowerCase();
    this.attributeEnd = end;
    this.value = "";
  }

  onattribdata(start: number, end: number): void {
    if (this.isLink) this.value += this.html.slice(start, end);
  }

  onattribentity(codepoint: number): void {
    if (this.isLink) this.value += String.fromCodePoint(codepoint);
  }

  onattribend(quote: QuoteType, end: number): void {
    if (!this.isLink) return;
    if (this.attribute === "data-no-track") this.isUntracked = true;
    // Of an attribute that is there twice, readers take the first.
    if (this.attribute !== "href" || this.href !== undefined || quote === QuoteType.NoValue) return;
    const url = absoluteUrl(this.value);
    const isQuoted = quote !== QuoteType.Unquoted;
    BEFORE_VALUE.lastIndex = this.attributeEnd;
    BEFORE_VALUE.test(this.html);
    const start = BEFORE_VALUE.lastIndex + (isQuoted ? 1 : 0);
    this.href = url === null ? null : { url, start, end: isQuoted ? end - 1 : end, quote: isQuoted ? "" : '"' };
  }

  onopentagend(): void {
    if (this.href && !this.isUntracked) this.links.push(this.href);
    this.href = undefined;
  }

  onselfclosingtag(): void {
    this.onopentagend();
  }

  onclosetag(start: number, end: number): void {
    if (this.html.slice(start, end).toLowerCase() === "body") this.bodyEnd = start - "</".length;
  }

  // What is no link.
  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onprocessinginstruction(): void {}
  ontext(): void {}
  ontextentity(): void {}
}

/** What the tokenizer skips between an attribute's name and its value. */
const BEFORE_VALUE = /[\t\n\f\r ]*=[\t\n\f\r ]*/y;

const PLAIN_URL = /^https?:\/\/[!-[\]-~]+$/i;

/**
 * The absolute http or https address that a reader's program finds in the attribute, or null. As it stands where it is
 * plain ASCII, otherwise in the form in which it would be asked for (WHATWG URL): it will be a header's value.
 */
function absoluteUrl(value: string): string | null {
  // What a URL parser drops before it looks (WHATWG URL, 4.4).
  const text = value.replace(/^[\0- ]+|[\0- ]+$|[\t\n\r]/g, "");
  if (!/^https?:\/\//i.test(text)) return null;
  const url = URL.parse(text);
  if (url === null) return null;
  return PLAIN_URL.test(text) ? text : url.href;
}
