import { type QuoteType, Tokenizer, type TokenizerCallbacks } from "htmlparser2";

/** Elements whose content is never displayed. */
export const UNSEEN = new Set(["head", "iframe", "noembed", "noframes", "script", "style", "template", "title"]);

/** `head` ends at the first element that is none of these, and at the first text (HTML, 13.2.6.4.4). */
export const IN_HEAD = new Set(["base", "link", "meta", "noscript", "script", "style", "template", "title"]);

/**
 * Walks over the tokens of an HTML; a subclass overrides the callbacks that it needs. Positions are positions in
 * `html`, because it is written in one piece. Uses the tokenizer instead of the parser, whose stack of open elements
 * makes deep nesting quadratic.
 */
export abstract class HtmlWalk implements TokenizerCallbacks {
  constructor(protected readonly html: string) {}

  /** Calls the callbacks, in the order of the text. Call once only. */
  protected walk(): void {
    const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, this);
    tokenizer.write(this.html);
    tokenizer.end();
  }

  onattribdata(_start: number, _end: number): void {}
  onattribend(_quote: QuoteType, _end: number): void {}
  onattribentity(_codepoint: number): void {}
  onattribname(_start: number, _end: number): void {}
  oncdata(): void {}
  onclosetag(_start: number, _end: number): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onopentagend(): void {}
  onopentagname(_start: number, _end: number): void {}
  onprocessinginstruction(): void {}
  onselfclosingtag(): void {}
  /** Receives raw text between entities. */
  onwords(_start: number, _end: number): void {}

  /**
   * The tokenizer reports a closing tag that is cut off by the HTML's end as text from position -1. Readers do not
   * display it (HTML, 13.2.5.32).
   */
  ontext(start: number, end: number): void {
    if (start >= 0) this.onwords(start, end);
  }

  ontextentity(_codepoint: number): void {}
}
