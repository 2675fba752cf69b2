import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonObject } from "../../../domain/texts/json.ts";
import type { Acceptance } from "../../../http/sending/acceptance.ts";
import { acceptEmail, type KeptContent } from "../request.ts";
import { keptMessage } from "./kept-message.ts";
import type { Entity } from "./mime-tree.ts";

/** Rejects with an `SmtpRefusal`. */
export async function keptMail(message: Entity): Promise<KeptContent> {
  const { bytes, isEightBit } = await keptMessage(message);
  return { sha256: new Bun.CryptoHasher("sha256").update(bytes).digest("hex"), body: bytes, isEightBit };
}

/**
 * Messages on their way into the queue that are sent unchanged. A request refers to its message, which is too large to
 * be in each body.
 */
export class KeptMails {
  private readonly held = new Map<string, { readonly mail: KeptContent; holders: number }>();

  /** Keeps a message, which requests may refer to until the returned function is called. */
  hold(mail: KeptContent): () => void {
    const entry = this.held.get(mail.sha256) ?? { mail, holders: 0 };
    entry.holders += 1;
    this.held.set(mail.sha256, entry);
    return () => {
      entry.holders -= 1;
      if (entry.holders === 0) this.held.delete(mail.sha256);
    };
  }

  /** As `acceptEmail`, for requests that may refer to a message. */
  accept(tenant: Tenant, given: unknown): Acceptance {
    if (!isJsonObject(given) || typeof given["kept_mail"] !== "string") return acceptEmail(tenant, given);
    const { kept_mail, ...body } = given;
    return acceptEmail(tenant, body, this.held.get(kept_mail)?.mail);
  }
}
