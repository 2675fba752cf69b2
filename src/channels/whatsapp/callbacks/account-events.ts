import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import { shortened } from "./shortened.ts";

/** The kind of change that a part of a call reports. */
export interface PartKind {
  readonly field: string;
  /** The provider's name of the event, or null if it gives none. */
  readonly event: string | null;
  /** Whether an operator has to act. */
  readonly isAlarming: boolean;
}

/**
 * Webhook fields that report on an account, its numbers and its templates (WhatsApp Cloud API, "Webhooks", November
 * 2026).
 */
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

/** Members of such a field that name the event. */
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
 * Names of events after which messages fail, or soon will. The vocabulary grows, so a name matches if it begins or ends
 * with one of these: `ACCOUNT_RESTRICTION` and `DISABLED_UPDATE` do.
 */
const ALARMING =
  /(?:^|_)(?:PAUSED|DISABLED?|REJECTED|FLAGGED|LOCKED|DOWNGRADED?|RED|BANNED|RESTRICT(?:ED|ION)|VIOLATION|DELETED|OFFBOARDED|REMOVED|REVOKED|DENIED|COMPROMISED|SUSPENDED|PENDING_DELETION)(?:_|$)/;

export const EVENT_CHARS_MAX = 64;

/** Classifies a change by its field and value; null if the field is not one of `FIELDS`. */
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
