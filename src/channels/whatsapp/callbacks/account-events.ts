import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import { shortened } from "./shortened.ts";

/** What kind of news a part is. */
export interface PartKind {
  readonly field: string;
  /** The provider's word for what happened; null: it has none. */
  readonly event: string | null;
  /** Whether somebody has to act. */
  readonly isAlarming: boolean;
}

/** What the provider tells of an account, its numbers and its templates (WhatsApp Cloud API, "Webhooks", November 2026). */
const FIELDS = [
  "account_alerts",
  "account_review_update",
  "account_settings_update",
  "account_update",
  "business_capability_update",
  "business_status_update",
  "business_username_update",
  "message_template_components_update",
  "message_template_quality_update",
  "message_template_status_update",
  "partner_solutions",
  "payment_configuration_update",
  "phone_number_name_update",
  "phone_number_quality_update",
  "security",
  "template_category_update",
  "template_correct_category_detection",
] as const;

/** Members in which one of them says what happened. */
const EVENT_MEMBERS = [
  "event",
  "alert_type",
  "decision",
  "status",
  "new_quality_score",
  "new_category",
  "requested_verified_name",
];
/**
 * Words of events after which messages fail, or soon will. A growing vocabulary: a word that begins or ends with one of these
 * counts, so `ACCOUNT_RESTRICTION` and `DISABLED_UPDATE` do.
 */
const ALARMING =
  /(?:^|_)(?:PAUSED|DISABLED?|REJECTED|FLAGGED|LOCKED|DOWNGRADED?|RED|BANNED|RESTRICT(?:ED|ION)|VIOLATION|DELETED|OFFBOARDED|REMOVED|REVOKED|DENIED|COMPROMISED|SUSPENDED|PENDING_DELETION)(?:_|$)/;

export const EVENT_CHARS_MAX = 64;

/** What the value of a change tells of an account; null: its field is none of those. */
export function accountEvent(field: string | null, value: JsonObject): PartKind | null {
  const known = FIELDS.find((name) => name === field);
  if (known === undefined) return null;
  const words = [value, value["alert_info"]].flatMap((one) =>
    isJsonObject(one) ? EVENT_MEMBERS.map((name) => one[name]) : [],
  );
  const event = shortened(
    words.find((word) => typeof word === "string" && word !== ""),
    EVENT_CHARS_MAX,
  );
  return { field: known, event, isAlarming: isAlarming(event, value) };
}

function isAlarming(event: string | null, value: JsonObject): boolean {
  // A ban is lifted by the event that announces one.
  const ban = isJsonObject(value["ban_info"]) ? value["ban_info"]["waba_ban_state"] : undefined;
  if (ban === "REINSTATE") return false;
  const alert = isJsonObject(value["alert_info"]) ? value["alert_info"] : value;
  const severity = alert["alert_severity"];
  return severity === "CRITICAL" || severity === "WARNING" || (event !== null && ALARMING.test(event.toUpperCase()));
}
