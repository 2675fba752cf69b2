import { Type } from "@sinclair/typebox";

/** Bodies of the operator API for wallet passes. */

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

/** A member of a service account's key. The schema does not check its form: the endpoint explains errors better. */
const inKey = (description: string) => Type.Optional(Type.Unknown({ type: "string", description }));

export const googleCredentialsBody = Type.Object(
  {
    service_account: Type.Union(
      [
        Type.Object(
          { client_email: inKey("The account's e-mail address."), private_key: inKey("An RSA key in PEM.") },
          { additionalProperties: true },
        ),
        Type.String({ minLength: 2, maxLength: PEM_CHARS_MAX }),
      ],
      { description: "the JSON key of a service account, as an object or as text" },
    ),
    issuer_id: Type.String({ pattern: "^[0-9]{1,20}$", description: "the issuer's id: digits" }),
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

export const walletWebhookBody = Type.Object(
  {
    wallet_webhook_url: Type.Union([Type.String({ minLength: 1, maxLength: 2_000 }), Type.Null()], {
      description: "the address that device registrations are told to, or null for none",
    }),
  },
  { ...STRICT, examples: [{ wallet_webhook_url: "https://api.example.com/hooks/wallet" }] },
);
