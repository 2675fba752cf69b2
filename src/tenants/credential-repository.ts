import { emailCredentialsPlace, emailCredentialsText } from "../channels/email/credentials.ts";
import { applePlace, googlePlace } from "../channels/wallet/credentials.ts";
import { whatsappCredentialsPlace, whatsappCredentialsText } from "../channels/whatsapp/credentials.ts";
import { ApiError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { EmailCredentials, WhatsappCredentials } from "../domain/registry.ts";
import { parseSmtpUrl } from "../domain/smtp-url.ts";
import type { AppleSigner, GoogleIssuer } from "../domain/wallet.ts";
import { isDay } from "../domain/warm-up.ts";
import { ACCESS_TOKEN, PHONE_NUMBER_ID } from "../domain/whatsapp.ts";
import { checkText } from "../storage/check-text.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { requireTenantId } from "../storage/require-tenant.ts";
import { credentials } from "../storage/tables.ts";
import type { SecretPlace, Vault } from "../storage/vault.ts";

/** Enough to keep anything out of a header or an SMTP command that does not belong there; the relay judges the rest. */
const ADDRESS = /^[^\s@<>,;:"()\\[\]\p{Cc}]+@[^\s@<>,;:"()\\\p{Cc}]+$/u;
const NAME_CHARS_MAX = 200;
const URL_CHARS_MAX = 2_000;

export class CredentialRepository {
  constructor(
    private readonly vault: Vault,
    private readonly changes: RegistryChanges,
  ) {}

  /** They are used once the tenant may use credentials of its own on the channel. */
  async putEmail(tenantId: string, given: EmailCredentials): Promise<void> {
    requireTenantId(tenantId);
    checkEmailCredentials(given);
    await this.put(emailCredentialsPlace(tenantId), emailCredentialsText(given));
  }

  /** They are used once the tenant may use credentials of its own on the channel. */
  async putWhatsapp(tenantId: string, given: WhatsappCredentials): Promise<void> {
    requireTenantId(tenantId);
    if (!PHONE_NUMBER_ID.test(given.phone_number_id)) {
      throw new ApiError(400, 'The field "phone_number_id" must be 1 to 32 digits.');
    }
    if (!ACCESS_TOKEN.test(given.access_token)) {
      throw new ApiError(400, 'The field "access_token" must be printable ASCII characters without blanks.');
    }
    await this.put(whatsappCredentialsPlace(tenantId), whatsappCredentialsText(given));
  }

  /** They are used once the tenant may use credentials of its own on the channel. */
  async putApple(tenantId: string, signer: AppleSigner): Promise<void> {
    requireTenantId(tenantId);
    await this.put(applePlace(tenantId), JSON.stringify(signer));
  }

  /** They are used once the tenant may use credentials of its own on the channel. */
  async putGoogle(tenantId: string, issuer: GoogleIssuer): Promise<void> {
    requireTenantId(tenantId);
    await this.put(googlePlace(tenantId), JSON.stringify(issuer));
  }

  private async put(place: SecretPlace, plaintext: string): Promise<void> {
    const { tenantId, kind } = place;
    const sealed = this.vault.seal(place, plaintext);
    await this.changes.ofTenant(tenantId, (transaction) =>
      transaction
        .insert(credentials)
        .values({ tenantId, kind, sealed })
        .onConflictDoUpdate({ target: [credentials.tenantId, credentials.kind], set: { sealed } }),
    );
  }
}

function checkEmailCredentials({ from_address, from_name, smtp_url, warm_up_from }: EmailCredentials): void {
  if (!ADDRESS.test(from_address) || Buffer.byteLength(from_address) > limits.addressBytesMax) {
    throw new ApiError(400, 'The field "from_address" must be one e-mail address.');
  }
  if (from_name !== undefined) checkText(from_name, { field: "from_name", charsMax: NAME_CHARS_MAX });
  if (warm_up_from !== undefined && !isDay(warm_up_from)) {
    throw new ApiError(400, 'The field "warm_up_from" must be a day, YYYY-MM-DD.');
  }
  if (smtp_url === undefined) return;
  if (smtp_url.length > URL_CHARS_MAX || parseSmtpUrl(smtp_url) === null) {
    throw new ApiError(400, 'The field "smtp_url" must have the form smtp://user:password@host:587 or smtps://….');
  }
}
