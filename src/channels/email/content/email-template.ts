import type { JsonObject } from "../../../domain/texts/json.ts";
import { type EncodedBody, encodedText } from "../mime/body-encoding.ts";
import { BodySkeleton } from "../mime/body-skeleton.ts";
import { htmlToText } from "./html-to-text.ts";
import { Template } from "./template.ts";
import { type Tracking, trackedHtml } from "./tracked-html.ts";
import { type TrackedSkeleton, trackedSkeleton } from "./tracked-skeleton.ts";

/** A text of one message: its template and the values of its placeholders. */
export interface FilledText {
  readonly template: TextTemplate;
  readonly values: readonly string[];
}

export interface FilledHtml {
  readonly template: HtmlTemplate;
  readonly values: readonly string[];
}

/** A plain text with placeholders, encoded when it is first sent. */
export class TextTemplate {
  private readonly template: Template;
  private skeleton: BodySkeleton | null = null;

  constructor(text: string) {
    this.template = Template.parse(text);
  }

  names(name: string): boolean {
    return this.template.names(name);
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

/** An HTML with placeholders. Links, line breaks and the text alternative are computed when it is first sent. */
export class HtmlTemplate {
  private readonly template: Template;
  /** Undefined until it is computed. */
  private skeleton: TrackedSkeleton | null | undefined;
  private text: TextTemplate | null = null;

  constructor(private readonly source: string) {
    this.template = Template.parse(source);
  }

  /** The text for messages without one of their own. */
  get alternative(): TextTemplate {
    this.text ??= new TextTemplate(htmlToText(this.source));
    return this.text;
  }

  names(name: string): boolean {
    return this.template.names(name);
  }

  /** Throws `RenderTooLargeError`. */
  fill(data: JsonObject, charsMax: number): FilledHtml {
    return { template: this, values: this.template.values(data, "html", charsMax) };
  }

  html(values: readonly string[]): string {
    return this.template.filled(values);
  }

  /** Encodes the message with tracking pixel and links. */
  encodeTracked(values: readonly string[], tracking: Tracking): EncodedBody {
    this.skeleton ??= this.skeleton === undefined ? trackedSkeleton(this.template) : null;
    // If values can change its tags, it is parsed anew for each message.
    if (this.skeleton === null) return encodedText(trackedHtml(this.html(values), tracking));
    return this.skeleton.body.encode(this.skeleton.fill(values, tracking));
  }
}
