import type { Static, TObject, TProperties, TSchema } from "@sinclair/typebox";
import type { JsonObject } from "../domain/json.ts";
import type { TemplateRecord } from "../domain/registry.ts";

/** The templates of one channel: what an operator writes, what is stored, and what is shown. */
export interface TemplateKind<P extends TProperties = TProperties, R extends TemplateRecord = TemplateRecord> {
  readonly channel: R["channel"];
  /** What the body that puts one has, beside `channel`. */
  readonly members: P;
  /** Such a body, beside `channel`. */
  readonly example: JsonObject;
  /** Throws an `ApiError` 400 that names what the channel could not render. */
  accept(slug: string, body: Static<TObject<P>>): R;
  /** What is stored of it. Throws an `ApiError` 400 for a text that cannot be stored. */
  toStored(template: R): JsonObject;
  /** The template that `toStored` wrote. */
  fromStored(slug: string, stored: JsonObject): R;
  readonly answer: TSchema & { readonly static: R };
}
