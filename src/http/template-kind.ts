import type { SchemaOptions, Static, TObject, TProperties, TSchema } from "@sinclair/typebox";
import type { ChannelName } from "../domain/job.ts";
import type { JsonObject } from "../domain/json.ts";

/** A template as the operator sees it. The other members are its channel's. */
export interface TemplateRecord {
  readonly slug: string;
  readonly channel: ChannelName;
  readonly [member: string]: unknown;
}

/** The templates of one channel: what an operator writes, what is stored, and what is shown. */
export interface TemplateKind<P extends TProperties = TProperties, R extends TemplateRecord = TemplateRecord> {
  readonly channel: R["channel"];
  /** Members of the body that stores one, besides `channel`. */
  readonly members: P;
  /** What ties them together, in JSON Schema's words: for the document, `accept` checks it. */
  readonly ties?: SchemaOptions;
  /** An example of such a body, without `channel`. */
  readonly example: JsonObject;
  /** Throws an `ApiError` 400 that names what the channel could not render. */
  accept(slug: string, body: Static<TObject<P>>): R;
  /** The stored form. Throws an `ApiError` 400 for a text that cannot be stored. */
  toStored(template: R): JsonObject;
  /** Reverses `toStored`. */
  fromStored(slug: string, stored: JsonObject): R;
  readonly answer: TSchema & { readonly static: R };
}
