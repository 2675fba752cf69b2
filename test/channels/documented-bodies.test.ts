import { expect, setDefaultTimeout, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { acceptEmail, EmailSend } from "../../src/channels/email/request.ts";
import { acceptGoogleClass, acceptGoogleClassChange } from "../../src/channels/wallet/request/accept-google-class.ts";
import { acceptPass } from "../../src/channels/wallet/request/accept-pass.ts";
import { acceptPassUpdate, updatedContent } from "../../src/channels/wallet/request/accept-pass-update.ts";
import { ApplePassChange, ApplePassPart } from "../../src/channels/wallet/request/apple-schema.ts";
import { GoogleClassUpdate, NewGoogleClass } from "../../src/channels/wallet/request/google-class-schema.ts";
import { GooglePassChange } from "../../src/channels/wallet/request/google-schema.ts";
import { PassRequest, PassUpdate, TemplatePassRequest } from "../../src/channels/wallet/request/pass-schema.ts";
import { Fault } from "../../src/channels/wallet/request/readers.ts";
import { acceptWhatsapp, ChatSend } from "../../src/channels/whatsapp/request.ts";
import type { Json, JsonObject } from "../../src/domain/texts/json.ts";
import { optional } from "../../src/http/schemas.ts";
import type { Acceptance } from "../../src/http/sending/acceptance.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { listBodyVariants } from "../http/support/body-variants.ts";
import { DocumentSchemas } from "../http/support/document-schemas.ts";
import type { Schema } from "../http/support/documented.ts";
import { aTenant } from "../support/tenants.ts";
import * as good from "./good-bodies.ts";

/*
 * What the document says of a send's body, and what becomes of the body: good bodies of each kind, each changed in one place at a
 * time in all ways that make a difference to some schema or reader, are judged by both.
 */
setDefaultTimeout(120_000);

interface Kind {
  readonly schema: TSchema;
  readonly bodies: readonly JsonObject[];
  /** The sentence with which it is refused, or null. */
  refusal(body: Json): string | null;
}

const tenant = aTenant({
  emailTemplates: new Map([["welcome", { subject: "Hello", html: "<p>Hello</p>", text: null }]]),
});
const chatPorts = {
  platform: { whatsapp: { phoneNumberId: "1", accessToken: "token" }, apple: null, google: null },
  windows: { lastWrittenMs: async () => null },
  templates: { doubt: () => null },
  clock: systemClock,
};
const passContext = {
  templates: new Map([["card", good.CARD_TEMPLATE]]),
  title: "Acme",
  issuerId: "33",
  kind: "generic",
} as const;

/** Refusals that are about more than the body's form have another status. */
const malformed = (acceptance: Acceptance) =>
  acceptance.ok || acceptance.refusal.status !== 400 ? null : acceptance.refusal.message;
const faulty = (checked: unknown) => (checked instanceof Fault ? checked.message : null);

function updateRefusal(body: Json, before: JsonObject): string | null {
  const pass = acceptPass(before, passContext);
  const update = acceptPassUpdate(body);
  if (pass instanceof Fault || update instanceof Fault) return faulty(update);
  const ids = { passId: "p", tenantId: "acme", jobId: "j", passTypeId: null, authenticationToken: null };
  return faulty(updatedContent(update, { ...ids, ...pass, state: "ready", version: 1 }, "Acme"));
}

const KINDS: Readonly<Record<string, Kind>> = {
  email: { schema: EmailSend, bodies: good.EMAILS, refusal: (body) => malformed(acceptEmail(tenant, body)) },
  whatsapp: {
    schema: ChatSend,
    bodies: good.CHATS,
    refusal: (body) => malformed(acceptWhatsapp(tenant, body, chatPorts)),
  },
  "an Apple pass": {
    schema: PassRequest,
    bodies: good.APPLE_PASSES,
    refusal: (body) => faulty(acceptPass(body, passContext)),
  },
  "a Google pass": {
    schema: PassRequest,
    bodies: good.GOOGLE_PASSES,
    refusal: (body) => faulty(acceptPass(body, passContext)),
  },
  "a pass from a template": {
    schema: Type.Object({ ...TemplatePassRequest.properties, pass_data: optional(ApplePassPart) }),
    bodies: good.TEMPLATE_PASSES,
    refusal: (body) => faulty(acceptPass(body, passContext)),
  },
  "an update of an Apple pass": {
    schema: Type.Object({ ...PassUpdate.properties, pass_data: ApplePassChange }),
    bodies: good.APPLE_UPDATES,
    refusal: (body) => updateRefusal(body, good.APPLE_BEFORE),
  },
  "an update of a Google pass": {
    schema: Type.Object({ ...PassUpdate.properties, pass_data: GooglePassChange }),
    bodies: good.GOOGLE_UPDATES,
    refusal: (body) => updateRefusal(body, good.GOOGLE_BEFORE),
  },
  "a Google class": {
    schema: NewGoogleClass,
    bodies: good.NEW_CLASSES,
    refusal: (body) => faulty(acceptGoogleClass(body)),
  },
  "a change of a Google class": {
    schema: GoogleClassUpdate,
    bodies: good.CLASS_CHANGES,
    refusal: (body) => faulty(acceptGoogleClassChange(body, "33.c")),
  },
};

/** As the document has it, but with every schema where it is used. */
function withoutNames(schema: TSchema): Schema {
  return JSON.parse(JSON.stringify(schema, (name, value) => (name === "$id" ? undefined : value)));
}

/** Differences that are meant: what they begin or end with, and why. */
type Excuse = readonly [difference: RegExp, why: string];

/** The document takes it, and the service refuses it: rules that a schema cannot say, or that need more than the body. */
const RULES: readonly Excuse[] = [
  [
    /(?:valid Unicode|without control characters|not contain .*control characters|contain half of a character|take the reaction back)$/,
    "half of a character: no pattern says so in every engine",
  ],
  [/there is no (?:wallet|e-mail) template with the template_id/, "which ones there are"],
  [/^template_id is "": refused: pass_type must be/, "an empty one counts as absent, and then the type is missing"],
  [
    /(?:is another (?:one|attachment)'s|two rows with the same id|must be unique|is there twice|only once|as another entry's)/,
    "what differs in each item",
  ],
  [/must be one e-mail address/, "RFC 5321 in full"],
  [/^topic is/, "counted in bytes, once it is normalised"],
  [/\.content must be a file in base64$/, "whether it can be decoded"],
  [/\.content_type must be a media type/, "its parameters"],
  [/\.filename must be 1 to 255/, "signs that turn the direction of others"],
  [/headers must not set/, "a list of names that grows"],
  [/(?:is for messages (?:from|without) a template|send either \w+ or \w+)/, "members of another kind of message"],
  [/with a host that can exist$/, "which hosts can exist"],
  [/too large for a number: send it as a string$/, "beyond what a double holds exactly"],
  [/is not (?:valid base64|a PNG image)$/, "what is decoded"],
  [/must be a public key for ECDH/, "what is decoded"],
  [/is for (?:the styles? [\w ]+|auxiliary fields of an eventTicket) only$/, "members of other styles"],
  [/needs \w+(?: or \w+)? beside it$/, "members that go together"],
  [/\.value must be |cannot stand beside/, "what a field's other members ask of its value"],
  [/must (?:have only|have 12 or 13|end with the check digit)/, "what a format of barcodes can hold"],
  [/must not be larger than 16384 bytes$/, "counted in bytes"],
  [/ is "😀.*must not be longer than/, "an emoji counts twice"],
  [/must be apple, as in the template/, "what the template is"],
  [/fields\[\d\]\.value is required$/, "whether the template, or the pass, has a field of this key"],
  [/must begin with 33\.$/, "whose issuer it is"],
  [/(?:cannot be changed|must be the class_id, or be left out)$/, "what the pass or class has"],
  [/must not have both \w+ and \w+$/, "members that exclude each other"],
  [/object_data\.\w+ is required$/, "what the kind of the object needs"],
  [/must be a date and time /, "which days there are"],
  [/limited_time_offer.*must be a time with its zone/, "leap seconds"],
];

/** The document refuses it, and the service takes it: it reads more than it asks for. */
const READ_TOO: readonly Excuse[] = [
  [/is "": taken$/, "an empty text counts as absent in an Apple pass"],
  [
    /(?:date|Date|dates\[\]\.\w+|expires_at) is "2026-12-31T23:59(?:Z|:59,5Z|:59\+0100|:59\.1234567890Z)": taken$/,
    "ISO 8601 beyond RFC 3339",
  ],
  [/serial_number is null: taken$/, "null leaves it as it is"],
  [/(?:reservationInfo|balance\.int|textModulesData\[\]\.(?:header|body)) /, "Google judges it"],
  [/(?:[lL]ogo|Image)\.(?:privateImageId|sourceUri(?:\.uri)?) /, "the other of the two says what image it is"],
];

const excused = new Set<Excuse>();

/** What both say of each body in different ways. */
function differences({ schema, bodies, refusal }: Kind): readonly string[] {
  const shown = withoutNames(schema);
  const documented = new DocumentSchemas({}).named(shown);
  const found = new Set<string>();
  const seen = new Set<string>();
  for (const body of bodies) {
    expect([body, documented(body), refusal(body)]).toEqual([body, null, null]);
    for (const { at, how, body: variant } of listBodyVariants(shown, body)) {
      if (seen.has(`${at} ${how}`)) continue;
      seen.add(`${at} ${how}`);
      const [forbidden, refused] = [documented(variant), refusal(variant)];
      if ((forbidden === null) === (refused === null)) continue;
      const difference = `${at} ${how}: ${refused === null ? "taken" : `refused: ${refused}`}`;
      const excuses = (refused === null ? READ_TOO : RULES).filter(([pattern]) => pattern.test(difference));
      for (const excuse of excuses) excused.add(excuse);
      if (excuses.length === 0) found.add(difference);
    }
  }
  return [...found];
}

for (const [name, kind] of Object.entries(KINDS)) {
  test(`${name} is taken or refused as the document says`, () => {
    expect(differences(kind)).toEqual([]);
  });
}

test("every difference that is meant occurs", () => {
  expect([...RULES, ...READ_TOO].filter((excuse) => !excused.has(excuse))).toEqual([]);
});
