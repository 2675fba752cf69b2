import type { SchemaOptions, Static, TObject, TProperties, TSchema } from "@sinclair/typebox";
import type { TemplateForm, TemplateRecord } from "../domain/tenants/template-record.ts";
import type { Tenant } from "../domain/tenants/tenant.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import type { Acceptance } from "./sending/acceptance.ts";

/** The templates of one channel: their bodies, stored records and answers. */
export interface TemplateKind<P extends TProperties = TProperties, R extends TemplateRecord = TemplateRecord>
  extends TemplateForm<R> {
  /** Members of the body that stores one, besides `channel`. */
  readonly members: P;
  /** Constraints between the members as JSON Schema, for the document; `accept` checks them. */
  readonly ties?: SchemaOptions;
  /** An example of such a body, without `channel`. */
  readonly example: JsonObject;
  /** Throws an `ApiError` 400 that names the part that the channel cannot render. */
  accept(slug: string, body: Static<TObject<P>>): R;
  readonly answer: TSchema & { readonly static: R };
  readonly preview: {
    readonly answer: TSchema;
    readonly example: JsonObject;
    /** How much work the preview is: about as much as a body of so many bytes. */
    weight(template: R, data: JsonObject): number;
    /** Renders the template with these values. Throws an `ApiError` 400 that says why it cannot be rendered. */
    render(tenant: Tenant, template: R, data: JsonObject): JsonObject | Promise<JsonObject>;
  };
  /** Test sends to one recipient; absent: the channel has none. */
  readonly test?: {
    /** Schema of the body that names the recipient, with an example. */
    readonly schema: TSchema;
    accept(tenant: Tenant, slug: string, body: JsonObject): Acceptance;
  };
}
