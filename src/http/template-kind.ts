import type { SchemaOptions, Static, TObject, TProperties, TSchema } from "@sinclair/typebox";
import type { JsonObject } from "../domain/json.ts";
import type { TemplateForm, TemplateRecord } from "../domain/template-record.ts";

/** The templates of one channel: what an operator writes, what is stored, and what is shown. */
export interface TemplateKind<P extends TProperties = TProperties, R extends TemplateRecord = TemplateRecord>
  extends TemplateForm<R> {
  /** Members of the body that stores one, besides `channel`. */
  readonly members: P;
  /** What ties them together, in JSON Schema's words: for the document, `accept` checks it. */
  readonly ties?: SchemaOptions;
  /** An example of such a body, without `channel`. */
  readonly example: JsonObject;
  /** Throws an `ApiError` 400 that names what the channel could not render. */
  accept(slug: string, body: Static<TObject<P>>): R;
  readonly answer: TSchema & { readonly static: R };
}
