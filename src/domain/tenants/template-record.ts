import type { ChannelName } from "../jobs/job.ts";
import type { Done, Invalid } from "../store-result.ts";
import type { JsonObject } from "../texts/json.ts";

/** A template as the operator sees it. The other members are its channel's. */
export interface TemplateRecord {
  readonly slug: string;
  readonly channel: ChannelName;
  readonly [member: string]: unknown;
}

/** How the templates of a channel are stored. */
export interface TemplateForm<R extends TemplateRecord = TemplateRecord> {
  readonly channel: R["channel"];
  /** Returns the stored form. */
  toStored(template: R): Done<JsonObject> | Invalid;
  /** Reverses `toStored`. */
  fromStored(slug: string, stored: JsonObject): R;
}
