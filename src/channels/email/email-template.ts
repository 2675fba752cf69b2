import type { JsonObject } from "../../domain/json.ts";
import { Template } from "../../domain/template.ts";
import { htmlToText } from "./html-to-text.ts";
import { type EncodedBody, encodedText } from "./mime/body-encoding.ts";
import { BodySkeleton } from "./mime/body-skeleton.ts";
import { type Tracking, trackedHtml } from "./tracked-html.ts";
import { type TrackedSkeleton, trackedSkeleton } from "./tracked-skeleton.ts";

/** A text of one message: its template and what fills its placeholders. */
export interface FilledText {
  readonly template: TextTemplate;
  readonly values: readonly string[];
}

export interface FilledHtml {
  readonly template: HtmlTemplate;
  readonly values: readonly string[];
}

/** A plain text with placeholders, made ready for the wire when it is first sent. */
export class TextTemplate {
  private readonly template: Template;
  private skeleton: BodySkeleton | null = null;

  constructor(text: string) {
    this.template = Template.parse(text);
  }

  /** Throws `RenderTooLargeError`. */
  fill(data: JsonObject, charsMax: number): FilledText {
    return { template: this, values: this.template.values(data, "none", charsMax) };
  }

  text(values: readonly string[]): string {
    return this.template.filled(values);
  }

  encode(values: readonly string[]): EncodedBody {
    this.skeleton ??= new BodySkeleton(this.template.literals);
    return this.skeleton.encode(values);
  }
}

/** An HTML with placeholders. Links and line breaks are found when it is first sent, the text alternative likewise. */
export class HtmlTemplate {
  private readonly template: Template;
  /** Undefined before it is looked for. */
  private skeleton: TrackedSkeleton | null | undefined;
  private text: TextTemplate | null = null;

  constructor(private readonly source: string) {
    this.template = Template.parse(source);
  }

  /** The text of messages without one of their own. */
  get alternative(): TextTemplate {
    this.text ??= new TextTemplate(htmlToText(this.source));
    return this.text;
  }

  /** Throws `RenderTooLargeError`. */
  fill(data: JsonObject, charsMax: number): FilledHtml {
    return { template: this, values: this.template.values(data, "html", charsMax) };
  }

  html(values: readonly string[]): string {
    return this.template.filled(values);
  }

  /** With tracking pixel and links. */
  encodeTracked(values: readonly string[], tracking: Tracking): EncodedBody {
    this.skeleton ??= this.skeleton === undefined ? trackedSkeleton(this.template) : null;
    // Where its values decide what its tags are, it is taken apart anew for each message.
    if (this.skeleton === null) return encodedText(trackedHtml(this.html(values), tracking));
    return this.skeleton.body.encode(this.skeleton.fill(values, tracking));
  }
}
