import { type TObject, type TProperties, Type } from "@sinclair/typebox";
import { type CredentialForm, type ShownCredentials, whyUnused } from "../domain/channels/credentials.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Tenant } from "../domain/tenants/tenant.ts";
import { reply } from "./endpoint.ts";
import { Timestamp } from "./schemas.ts";

/** One kind of credentials that a tenant may have of its own. */
export interface CredentialKind extends CredentialForm {
  /** The word in the operations' names: `getEmailCredentials`. */
  readonly word: string;
  /** Its own members in answers. */
  readonly members: TProperties;
  readonly example: ShownCredentials;
  /** Why they are not used yet although the tenant may use its own, or null; absent: they always are. */
  unusedYet?(tenant: Tenant): string | null;
}

/** Returns the schema of one kind's credentials in answers. */
export function credentialsSchema({ kind, channel, word, members }: CredentialKind): TObject {
  return Type.Object(
    {
      kind: Type.Literal(kind),
      channel: Type.Literal(channel),
      ...members,
      fingerprint: Type.String({ description: "Equal for equal credentials: the beginning of a SHA-256." }),
      expires_at: Type.Union([Timestamp, Type.Null()], { description: "When their certificate expires." }),
      used: Type.Boolean({
        description: "Whether the channel uses them. For e-mail, the sender's domain must be verified.",
      }),
      reason: Type.Union([Type.String(), Type.Null()], { description: "Why they are not used." }),
      created_at: Type.Union([Timestamp, Type.Null()], { description: "Null: an earlier release stored them." }),
      changed_at: Type.Union([Timestamp, Type.Null()], { description: "Null: an earlier release stored them." }),
    },
    { $id: `${word}Credentials` },
  );
}

const STORED = {
  stored: Type.Literal(true),
  used: Type.Boolean({
    description: "Whether the channel uses them from now on. For e-mail, a sender's domain must be verified as well.",
  }),
  reason: Type.Optional(Type.String({ description: "Why they are not used." })),
};

const CredentialsStored = Type.Object(STORED, { $id: "CredentialsStored" });

const CredentialsStoredWithWarnings = Type.Object(
  { ...STORED, warnings: Type.Optional(Type.Array(Type.String())) },
  { $id: "CredentialsStoredWithWarnings" },
);

/** The answer of a call that stores credentials. */
export const credentialsStored = {
  200: {
    description: "Stored, and in use where `used` says so.",
    schema: CredentialsStored,
    examples: {
      used: { value: { stored: true, used: true } },
      unused: {
        summary: "The tenant may not use its own credentials on the channel.",
        value: { stored: true, used: false, reason: whyUnused("email") },
      },
    },
  },
} as const;

/** The answer of a call that stores credentials which can be usable and yet faulty. */
export const credentialsStoredWithWarnings = {
  200: {
    ...credentialsStored[200],
    schema: CredentialsStoredWithWarnings,
    examples: {
      used: { value: { stored: true, used: true } },
      warned: {
        summary: "No device of Apple's will accept what these credentials sign.",
        value: { stored: true, used: true, warnings: ["the certificate names no team"] },
      },
    },
  },
} as const;

/** Builds the answer. */
export function replyStored(channel: ChannelName, { used }: { readonly used: boolean }) {
  return reply(200, storedBody(channel, used));
}

/** Builds the answer; without warnings, the member is left out. */
export function replyStoredWithWarnings(
  channel: ChannelName,
  { used }: { readonly used: boolean },
  warnings: readonly string[],
) {
  return reply(200, { ...storedBody(channel, used), ...(warnings.length > 0 && { warnings }) });
}

function storedBody(channel: ChannelName, used: boolean) {
  return used
    ? { stored: true as const, used: true }
    : { stored: true as const, used: false, reason: whyUnused(channel) };
}
