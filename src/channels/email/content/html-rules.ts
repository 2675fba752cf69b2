import { emailLimits } from "../limits.ts";
import { HtmlWalk, IN_HEAD, UNSEEN } from "./html-walk.ts";

export type HtmlRule = "empty" | "too_large" | "image_only" | "script";

/** One reason to refuse inline HTML. `message` is shown to the tenant. */
export interface Violation {
  readonly rule: HtmlRule;
  readonly message: string;
}

const MESSAGES: Readonly<Record<HtmlRule, string>> = {
  empty: "the HTML is empty: a reader would see neither text nor an image",
  too_large: `the HTML is larger than ${emailLimits.inlineHtmlBytesMax / 1024} KB`,
  image_only: "the HTML has no text that a reader would see",
  script: "the HTML contains a <script> element",
};

/**
 * Returns the rules that inline HTML breaks, in a fixed order; empty if it may be sent. Takes time proportional to the
 * length of the HTML, and inspects no more of it than `inspectedHtmlCharsMax`.
 *
 * @param bytes length of the HTML in UTF-8, if the caller knows it
 */
export function checkHtml(html: string, bytes: number = Buffer.byteLength(html)): Violation[] {
  const rules: HtmlRule[] = [];
  const tooLarge = bytes > emailLimits.inlineHtmlBytesMax;
  if (!tooLarge && PLAIN_START.test(html) && !MAY_BE_SCRIPT.test(html)) return [];
  const isWhole = html.length <= emailLimits.inspectedHtmlCharsMax;
  const seen = inspect(isWhole ? html : html.slice(0, emailLimits.inspectedHtmlCharsMax));
  // A part without text does not prove that the whole has none.
  const hasNoText = isWhole ? !seen.text : !VISIBLE.test(html);
  if (hasNoText && !seen.image) rules.push("empty");
  if (tooLarge) rules.push("too_large");
  if (hasNoText && seen.image) rules.push("image_only");
  if (seen.script) rules.push("script");
  return rules.map(toViolation);
}

export function toViolation(rule: HtmlRule): Violation {
  return { rule, message: MESSAGES[rule] };
}

/**
 * Most HTML settles both questions without a full parse: it begins with text, perhaps inside plain elements, and has no
 * text that could be read as a script.
 */
const PLAIN_START =
  /^\s*(?:<(?:body|center|div|em|h[1-6]|html|li|main|ol|p|span|strong|table|tbody|td|tr|ul|b|i)>\s*)*[a-z0-9]/i;
const MAY_BE_SCRIPT = /script|<[^\s/><{]*\{\{/i;

/** A character that leaves a mark: no white space, control or format character, filler or braille blank. */
export const VISIBLE = /[^\s\p{Z}\p{Cc}\p{Cf}\p{Cn}\p{Default_Ignorable_Code_Point}\u2800]/u;

function inspect(html: string): { readonly text: boolean; readonly image: boolean; readonly script: boolean } {
  const { text, image, script, ambiguous } = new Inspector(html).inspected();
  return { text, image: image || STYLED_IMAGE.test(html), script: script || hasDisguisedScript(html, ambiguous) };
}

/** Elements that are seen although they have no text. */
const IMAGES = new Set(["canvas", "embed", "image", "img", "object", "picture", "svg", "video"]);
/** An image that an attribute or a style names. */
const STYLED_IMAGE = /\burl\s*\(|\bbackground\s*=/i;

/**
 * Elements after which readers tokenize by other rules than those of plain HTML (foreign content, insertion modes that
 * drop start tags, scripting on or off), which this tokenizer does not track.
 */
const AMBIGUOUS = new Set(["frameset", "math", "noscript", "plaintext", "select", "svg", "template"]);
/** Constructs that our tokenizer and mail readers may parse differently. */
const CONTROL = /[\0-\x08\x0b\x0e-\x1f\x7f]/;
/** A section here, a comment that ends with the next `>` in HTML proper. */
const CDATA = /<!\[CDATA\[/i;
const SCRIPT_TAG = /<(?:[a-z][\w.-]{0,63}:)?script[\s/>]/i;
/** At the very end it is not an element yet, but becomes one with whatever a mail server appends. */
const OPEN_SCRIPT_TAG = /<script$/i;
/** Around a placeholder with an empty value, the text can join into a quote, a tag or the end of one. */
const PLACEHOLDER = /\{\{/;
/** A placeholder in an element's name: its value could be `script`. */
const PLACEHOLDER_TAG = /<[^\s/><{]*\{\{/;

/**
 * Whether there is a `<script>` that the tokenizer may have missed. Where readers may disagree about what is an element,
 * everything that looks like one counts, even inside comments and attributes.
 */
function hasDisguisedScript(html: string, ambiguous: boolean): boolean {
  if (PLACEHOLDER_TAG.test(html) || OPEN_SCRIPT_TAG.test(html)) return true;
  const mayDiffer = ambiguous || CONTROL.test(html) || CDATA.test(html) || PLACEHOLDER.test(html);
  return mayDiffer && SCRIPT_TAG.test(html);
}

const BLANK = /^[\t\n\f\r ]$/;
const PLAIN_NAME = /^[a-z0-9:-]+$/;

class Inspector extends HtmlWalk {
  /** Whether a reader sees any text. */
  text = false;
  image = false;
  script = false;
  ambiguous = false;
  private inHead = false;
  /** The element whose content is being skipped. */
  private unseen: string | null = null;

  inspected(): this {
    this.walk();
    return this;
  }

  override onwords(start: number, end: number): void {
    if (this.isSeen()) this.text = VISIBLE.test(this.html.slice(start, end));
  }

  override ontextentity(codepoint: number): void {
    if (this.isSeen()) this.text = VISIBLE.test(String.fromCodePoint(codepoint));
  }

  /** Whether text here would be seen and the search is still on. */
  private isSeen(): boolean {
    return !this.text && this.unseen === null && !this.inHead;
  }

  override onopentagname(start: number, end: number): void {
    const tag = this.html.slice(start, end).toLowerCase();
    // In XHTML a prefix can stand for the namespace that makes it a script.
    if (tag === "script" || tag.endsWith(":script")) this.script = true;
    if (AMBIGUOUS.has(tag)) this.ambiguous = true;
    if (IMAGES.has(tag)) this.image = true;
    if (this.unseen !== null) return;
    if (tag === "head") this.inHead = true;
    else if (!IN_HEAD.has(tag)) this.inHead = false;
    if (tag !== "head" && UNSEEN.has(tag)) this.unseen = tag;
  }

  override onclosetag(start: number, end: number): void {
    const tag = this.html.slice(start, end).trim().toLowerCase();
    if (!this.endsPlainly(tag, end)) this.ambiguous = true;
    if (tag === "head") this.inHead = false;
    if (tag === this.unseen) this.unseen = null;
  }

  /** An end tag can have attributes, and a quoted `>` does not end it; our tokenizer ends it there. */
  private endsPlainly(tag: string, at: number): boolean {
    let next = at;
    while (BLANK.test(this.html.charAt(next))) next += 1;
    return PLAIN_NAME.test(tag) && this.html.charAt(next) === ">";
  }
}
