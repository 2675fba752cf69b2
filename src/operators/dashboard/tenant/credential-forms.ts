import type { CredentialsStored } from "../../../../clients/typescript/generated.ts";
import { call } from "../api.ts";
import type { Field, Filled } from "../dialog.tsx";

export const KINDS = ["email", "whatsapp", "apple", "google"] as const;
export type CredentialKind = (typeof KINDS)[number];

interface CredentialForm {
  readonly name: string;
  readonly fields: readonly Field[];
  put(id: string, filled: Filled): Promise<CredentialsStored>;
  remove(id: string): Promise<null>;
}

/** Members that were left empty are left out. */
function given<const N extends string>(filled: Filled, names: readonly N[]): Partial<Record<N, string>> {
  const pairs = names.map((name) => [name, filled.text(name)] as const).filter(([, value]) => value !== "");
  return Object.fromEntries(pairs) as Partial<Record<N, string>>;
}

/** The form and the call for each kind of credentials. */
export const CREDENTIAL_FORMS: Readonly<Record<CredentialKind, CredentialForm>> = {
  email: {
    name: "E-mail",
    fields: [
      { kind: "email", name: "from_address", label: "Sender's address", isRequired: true },
      { kind: "text", name: "from_name", label: "Sender's name" },
      {
        kind: "password",
        name: "smtp_url",
        label: "Own mail server",
        hint: "smtp://user:password@mail.example.com:587; left empty: the platform's.",
      },
      {
        kind: "date",
        name: "warm_up_from",
        label: "Warm-up began",
        hint: "Of a dedicated address: the UTC day on which it began to send.",
      },
    ],
    put: (id, filled) => {
      const body = {
        from_address: filled.text("from_address"),
        ...given(filled, ["from_name", "smtp_url", "warm_up_from"]),
      };
      return call("putEmailCredentials", { path: { id }, body });
    },
    remove: (id) => call("deleteEmailCredentials", { path: { id } }),
  },
  whatsapp: {
    name: "WhatsApp",
    fields: [
      {
        kind: "text",
        name: "phone_number_id",
        label: "Phone number id",
        isRequired: true,
        hint: "The provider's id of the number: digits.",
      },
      { kind: "password", name: "access_token", label: "Access token", isRequired: true },
      {
        kind: "text",
        name: "business_account_id",
        label: "Business account id",
        hint: "The provider's id of the WhatsApp Business account: digits. Its templates can be listed then.",
      },
    ],
    put: (id, filled) => {
      const body = {
        phone_number_id: filled.text("phone_number_id"),
        access_token: filled.text("access_token"),
        ...given(filled, ["business_account_id"]),
      };
      return call("putWhatsappCredentials", { path: { id }, body });
    },
    remove: (id) => call("deleteWhatsappCredentials", { path: { id } }),
  },
  apple: {
    name: "Apple Wallet",
    fields: [
      { kind: "text", name: "pass_type_id", label: "Pass type identifier", isRequired: true },
      { kind: "text", name: "team_id", label: "Team identifier", isRequired: true },
      { kind: "lines", name: "certificate_pem", label: "Certificate (PEM)", isRequired: true, isCode: true },
      { kind: "lines", name: "private_key_pem", label: "Private key (PEM)", isRequired: true, isCode: true },
      { kind: "password", name: "passphrase", label: "Passphrase of the key" },
      {
        kind: "lines",
        name: "wwdr_pem",
        label: "Apple's intermediate (PEM)",
        isCode: true,
        hint: "Left empty, one is found.",
      },
    ],
    put: (id, filled) => {
      const body = {
        pass_type_id: filled.text("pass_type_id"),
        team_id: filled.text("team_id"),
        certificate_pem: filled.text("certificate_pem"),
        private_key_pem: filled.text("private_key_pem"),
        ...given(filled, ["passphrase", "wwdr_pem"]),
      };
      return call("putAppleCredentials", { path: { id }, body });
    },
    remove: (id) => call("deleteAppleCredentials", { path: { id } }),
  },
  google: {
    name: "Google Wallet",
    fields: [
      { kind: "text", name: "issuer_id", label: "Issuer id", isRequired: true },
      {
        kind: "lines",
        name: "service_account",
        label: "Key of the service account (JSON)",
        isRequired: true,
        isCode: true,
        rows: 10,
      },
    ],
    put: (id, filled) => {
      const body = { issuer_id: filled.text("issuer_id"), service_account: filled.text("service_account") };
      return call("putGoogleCredentials", { path: { id }, body });
    },
    remove: (id) => call("deleteGoogleCredentials", { path: { id } }),
  },
};
