import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { parseSmtpUrl } from "../../domain/channels/smtp-url.ts";
import type { CredentialKind } from "../../http/credential-kind.ts";
import { parseEmailCredentials } from "./credentials.ts";
import { findOwnSender } from "./own-sender.ts";

const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

/** A tenant's own sender and mail server. */
export const EMAIL_CREDENTIALS: readonly CredentialKind[] = [
  {
    kind: "email",
    channel: "email",
    word: "Email",
    members: {
      from_address: Type.String(),
      from_name: nullable("The sender's name."),
      smtp_server: nullable("Host and port of the tenant's own mail server; null: the platform's."),
      warm_up_from: nullable("The UTC day on which the warm-up of a dedicated address began."),
    },
    example: {
      from_address: "hello@acme.example",
      from_name: "Acme",
      smtp_server: "mail.acme.example:587",
      warm_up_from: null,
      fingerprint: "5f2d7c3b9a0e4d61",
      expires_at: null,
    },
    unusedYet(tenant) {
      const own = findOwnSender(tenant);
      return own.kind === "unverified" ? `stored, not used because the domain ${own.domain} is not verified` : null;
    },
    show(text) {
      const { fromAddress, fromName, smtpUrl, warmUpFrom = null } = parseEmailCredentials(text);
      const server = smtpUrl === null ? null : parseSmtpUrl(smtpUrl);
      const smtpServer = server === null ? null : `${server.host}:${server.port}`;
      // Without the password, which may be short enough to be guessed from its hash.
      const identity = [fromAddress, fromName, smtpServer, server?.secure, server?.user, warmUpFrom];
      return {
        from_address: fromAddress,
        from_name: fromName,
        smtp_server: smtpServer,
        warm_up_from: warmUpFrom,
        fingerprint: createHash("sha256").update(JSON.stringify(identity)).digest("hex").slice(0, 16),
        expires_at: null,
      };
    },
  },
];
