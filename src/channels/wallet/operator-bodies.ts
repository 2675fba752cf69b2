import { Type } from "@sinclair/typebox";
import { PASS_STYLES, PASS_TYPES } from "../../domain/wallet.ts";

/** Bodies of the operator API that have to do with wallet passes. */

const STRICT = { additionalProperties: false } as const;
const PEM_CHARS_MAX = 64 * 1024;

const pem = (what: string) =>
  Type.String({ minLength: 1, maxLength: PEM_CHARS_MAX, pattern: "-----BEGIN ", description: `${what} in PEM` });

export const appleCredentialsBody = Type.Object(
  {
    certificate_pem: pem("the Pass Type ID certificate"),
    private_key_pem: pem("the certificate's private key"),
    passphrase: Type.Optional(Type.String({ maxLength: 1_000, description: "the passphrase of the private key" })),
    wwdr_pem: Type.Optional(pem("Apple's intermediate that issued the certificate; by default one is found")),
    pass_type_id: Type.String({
      pattern: "^[A-Za-z0-9._-]{1,200}$",
      description: "the pass type identifier, such as pass.com.example.card",
    }),
    team_id: Type.String({ pattern: "^[A-Z0-9]{10}$", description: "the team identifier: 10 characters" }),
  },
  {
    ...STRICT,
    examples: [
      {
        certificate_pem: "-----BEGIN CERTIFICATE-----\n…",
        private_key_pem: "-----BEGIN PRIVATE KEY-----\n…",
        pass_type_id: "pass.com.example.card",
        team_id: "A1B2C3D4E5",
      },
    ],
  },
);

export const googleCredentialsBody = Type.Object(
  {
    service_account: Type.Union(
      [Type.Object({}, { additionalProperties: true }), Type.String({ minLength: 2, maxLength: PEM_CHARS_MAX })],
      { description: "the JSON key of a service account, as an object or as text" },
    ),
    issuer_id: Type.String({ pattern: "^[0-9]{1,32}$", description: "the issuer's id: digits" }),
  },
  {
    ...STRICT,
    examples: [
      {
        service_account: {
          type: "service_account",
          client_email: "passes@example.iam.gserviceaccount.com",
          private_key: "-----BEGIN PRIVATE KEY-----\n…",
        },
        issuer_id: "3388000000012345678",
      },
    ],
  },
);

export const walletTemplateBody = Type.Object(
  {
    channel: Type.Literal("wallet", { description: "email or wallet" }),
    pass_type: Type.Union(
      PASS_TYPES.map((type) => Type.Literal(type)),
      { description: PASS_TYPES.join(" or ") },
    ),
    style: Type.Optional(
      Type.Union(
        PASS_STYLES.map((style) => Type.Literal(style)),
        { description: `one of ${PASS_STYLES.join(", ")}; type apple only` },
      ),
    ),
    pass_data: Type.Object(
      {},
      { additionalProperties: true, description: "an object: what requests leave out of their pass_data" },
    ),
  },
  {
    ...STRICT,
    examples: [
      {
        channel: "wallet",
        pass_type: "apple",
        style: "eventTicket",
        pass_data: { organization_name: "Acme", description: "Ticket", label_color: "#22C55E" },
      },
    ],
  },
);

export const walletWebhookBody = Type.Object(
  {
    wallet_webhook_url: Type.Union([Type.String({ minLength: 1, maxLength: 2_000 }), Type.Null()], {
      description: "the address that device registrations are told to, or null for none",
    }),
  },
  { ...STRICT, examples: [{ wallet_webhook_url: "https://api.example.com/hooks/wallet" }] },
);
