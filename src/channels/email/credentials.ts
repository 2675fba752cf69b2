import type { EmailSender } from "../../domain/channels/email.ts";
import { parseSmtpUrl } from "../../domain/channels/smtp-url.ts";
import { limits } from "../../domain/limits.ts";
import { type Done, done, type Invalid, invalid } from "../../domain/store-result.ts";
import { isDay } from "../../domain/tenants/warm-up.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { checkText } from "../../storage/postgres/check-text.ts";
import type { Secret, SecretPlace } from "../../storage/vault.ts";

export interface EmailCredentials {
  readonly from_address: string;
  readonly from_name?: string;
  readonly smtp_url?: string;
  /** UTC day, `YYYY-MM-DD`. */
  readonly warm_up_from?: string;
}

/** Excludes only characters that must not appear in a header or an SMTP command; the relay judges the rest. */
const ADDRESS = /^[^\s@<>,;:"()\\[\]\p{Cc}]+@[^\s@<>,;:"()\\\p{Cc}]+$/u;
const NAME_CHARS_MAX = 200;
const URL_CHARS_MAX = 2_000;

/** Returns the location of a tenant's e-mail credentials in the registry. */
export function emailCredentialsPlace(tenantId: string): SecretPlace {
  return { tenantId, kind: "email", field: "credentials" };
}

/** Converts the credentials to their stored form. */
export function emailSecret(tenantId: string, credentials: EmailCredentials): Done<Secret> | Invalid {
  const fault = findFault(credentials);
  return fault ?? done({ place: emailCredentialsPlace(tenantId), text: JSON.stringify(credentials) });
}

/** Parses the credentials that `emailSecret` wrote. */
export function parseEmailCredentials(text: string): EmailSender {
  const value: unknown = JSON.parse(text);
  const members = isJsonObject(value) ? value : {};
  const [fromAddress, fromName, smtpUrl] = [members["from_address"], members["from_name"], members["smtp_url"]];
  const warmUpFrom = members["warm_up_from"];
  if (typeof fromAddress !== "string") throw new Error("stored e-mail credentials are incomplete");
  return {
    fromAddress,
    fromName: typeof fromName === "string" ? fromName : null,
    smtpUrl: typeof smtpUrl === "string" ? smtpUrl : null,
    ...(typeof warmUpFrom === "string" && { warmUpFrom }),
  };
}

function findFault({ from_address, from_name, smtp_url, warm_up_from }: EmailCredentials): Invalid | null {
  if (!ADDRESS.test(from_address) || Buffer.byteLength(from_address) > limits.addressBytesMax) {
    return invalid('The field "from_address" must be one e-mail address.');
  }
  const ofName =
    from_name === undefined ? null : checkText(from_name, { field: "from_name", charsMax: NAME_CHARS_MAX });
  if (ofName !== null) return ofName;
  if (warm_up_from !== undefined && !isDay(warm_up_from)) {
    return invalid('The field "warm_up_from" must be a day, YYYY-MM-DD.');
  }
  if (smtp_url !== undefined && (smtp_url.length > URL_CHARS_MAX || parseSmtpUrl(smtp_url) === null)) {
    return invalid('The field "smtp_url" must have the form smtp://user:password@host:587 or smtps://….');
  }
  return null;
}
