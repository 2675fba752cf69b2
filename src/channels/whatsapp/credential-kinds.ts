import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { CredentialKind } from "../../http/credential-kind.ts";
import { parseWhatsappCredentials } from "./credentials.ts";

/** A tenant's own phone number for chat. */
export const WHATSAPP_CREDENTIALS: readonly CredentialKind[] = [
  {
    kind: "whatsapp",
    channel: "whatsapp",
    word: "Whatsapp",
    members: {
      phone_number_id: Type.String(),
      business_account_id: Type.Union([Type.String(), Type.Null()], { description: "Null: it was not given." }),
    },
    example: {
      phone_number_id: "106540352242922",
      business_account_id: "102290129340398",
      fingerprint: "0b7d3f5a61c2e894",
      expires_at: null,
    },
    show(text) {
      const { phoneNumberId, accessToken, accountId = null } = parseWhatsappCredentials(text);
      // The provider makes access tokens: they are too long to be guessed from a part of their hash.
      const fingerprint = createHash("sha256").update(accessToken).digest("hex").slice(0, 16);
      return { phone_number_id: phoneNumberId, business_account_id: accountId, fingerprint, expires_at: null };
    },
  },
];
