import { type CarriedPass, type MadePass, valuesBefore } from "../../domain/channels/carried-pass.ts";
import { isJsonArray, isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import { acceptCarrying, type CarryingForm, type PassDesk } from "../../http/sending/carried-pass.ts";
import { acceptEmail } from "./request.ts";

/** As `acceptEmail`, for messages that may carry a pass. */
export function acceptEmailCarrying(desk: PassDesk): CarryingForm["accept"] {
  return acceptCarrying(desk, { accept: acceptEmail, bodyWith });
}

/** Fills placeholders with sample values of a pass for the checks. */
function bodyWith(body: JsonObject, pass: CarriedPass): JsonObject | string {
  const { data = null } = body;
  // The check of `data` reports the error.
  if (data !== null && !isJsonObject(data)) return body;
  if (data?.["pass"] !== undefined) return "data must have no member pass beside a pass: it has the values of the pass";
  return { ...body, data: { ...data, pass: { ...valuesBefore(pass) } } };
}

/** Adds the pass to a message's payload (`EmailPayload`): its values to the data, its file to the attachments. */
export function emailWithPass(message: JsonObject, { values, file }: MadePass): JsonObject {
  const { data, attachments } = message;
  const filled = { ...message, data: { ...(isJsonObject(data) ? data : {}), pass: { ...values } } };
  if (file === null) return filled;
  const { filename, sha256, body } = file;
  const attached = { filename, contentType: "application/vnd.apple.pkpass", sha256, bytes: body.length };
  return { ...filled, attachments: [...(isJsonArray(attachments) ? attachments : []), attached] };
}
