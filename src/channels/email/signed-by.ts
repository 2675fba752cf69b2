import type { SendMailOptions } from "nodemailer";
import type { VerifiedDomain } from "../../core/domain.ts";

/**
 * The header fields that a signature covers where they are there (RFC 6376, 5.4.1). Said aloud, because the list that
 * nodemailer has of its own leaves out List-Unsubscribe-Post, which RFC 8058, 3.1 wants to be covered.
 */
const SIGNED_FIELDS =
  "from:reply-to:subject:date:message-id:to:cc:mime-version:content-type:content-transfer-encoding:" +
  "list-unsubscribe:list-unsubscribe-post:feedback-id";

/**
 * Has nodemailer sign a message with the domain's key (DKIM, rsa-sha256, relaxed/relaxed): about a millisecond of this
 * thread. Nothing where the domain's key is not published, because then a signature would only fail. nodemailer sends a
 * message unsigned, without a word, where a key does not work; this one came out of the vault, so it is the one that
 * was made.
 */
export function signedBy({ domain, relay }: VerifiedDomain): Pick<SendMailOptions, "dkim"> {
  if (relay === null) return {};
  const { selector: keySelector, privateKeyPem: privateKey } = relay;
  return { dkim: { domainName: domain, keySelector, privateKey, headerFieldNames: SIGNED_FIELDS } };
}
