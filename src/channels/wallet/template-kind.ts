import { Type } from "@sinclair/typebox";
import { PASS_STYLES, PASS_TYPES, type PassStyle, type PassType } from "../../domain/channels/wallet.ts";
import { done } from "../../domain/store-result.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { enumSchema } from "../../http/schemas.ts";
import type { TemplateKind } from "../../http/template-kind.ts";
import { walletLimits } from "./limits.ts";
import { checkTemplate, passOver } from "./request/accept-pass.ts";
import { ApplePassPart } from "./request/apple-schema.ts";
import { GooglePassPart } from "./request/google-schema.ts";
import { Fault } from "./request/readers.ts";
import { parseWalletTemplate, walletTemplateBody } from "./stored-template.ts";

export type WalletTemplateRecord = {
  readonly slug: string;
  readonly channel: "wallet";
  readonly pass_type: PassType;
  readonly style: PassStyle | null;
  readonly pass_data: JsonObject;
};

const members = {
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
  pass_data: Type.Unsafe<JsonObject>(
    Type.Object(
      {},
      { additionalProperties: true, description: "an object: what requests leave out of their pass_data" },
    ),
  ),
};

/** Templates for wallet passes. */
export const walletTemplateKind: TemplateKind<typeof members, WalletTemplateRecord> = {
  channel: "wallet",
  members,
  ties: {
    anyOf: [
      { properties: { pass_type: { const: "apple" }, pass_data: ApplePassPart } },
      { properties: { pass_type: { const: "google" }, pass_data: GooglePassPart }, not: { required: ["style"] } },
    ],
  },
  example: {
    pass_type: "apple",
    style: "eventTicket",
    pass_data: { organization_name: "Acme", description: "Ticket", label_color: "#22C55E" },
  },
  answer: Type.Object({
    slug: Type.String(),
    channel: Type.Literal("wallet"),
    pass_type: enumSchema(PASS_TYPES),
    style: Type.Union([enumSchema(PASS_STYLES), Type.Null()], {
      description: "Of passes of type apple; null: as the request says.",
    }),
    pass_data: Type.Unsafe<JsonObject>(
      Type.Union([ApplePassPart, GooglePassPart], { description: "The default for members that requests leave out." }),
    ),
  }),
  accept(slug, { pass_type, style = null, pass_data }) {
    if (JSON.stringify(pass_data).length > walletLimits.passTemplateCharsMax) {
      throw new ApiError(400, `pass_data must not be larger than ${walletLimits.passTemplateCharsMax} characters`);
    }
    const fault = checkTemplate({ passType: pass_type, style, passData: pass_data });
    if (fault !== null) throw new ApiError(fault.status, fault.message);
    return { slug, channel: "wallet", pass_type, style, pass_data };
  },
  preview: {
    answer: Type.Object({
      channel: Type.Literal("wallet"),
      pass_type: enumSchema(PASS_TYPES),
      style: Type.Union([enumSchema(PASS_STYLES), Type.Null()]),
      pass_data: Type.Unsafe<JsonObject>(
        Type.Object({}, { additionalProperties: true, description: "The given pass_data laid over the template's." }),
      ),
    }),
    example: {
      channel: "wallet",
      pass_type: "apple",
      style: "eventTicket",
      pass_data: { organizationName: "Acme", description: "Ticket", serialNumber: "ticket-7" },
    },
    weight: ({ pass_data: passData }, data) => JSON.stringify(passData).length + JSON.stringify(data).length,
    render(_tenant, { pass_type: passType, style, pass_data: passData }, data) {
      const merged = passOver({ passType, style, passData }, data);
      if (merged instanceof Fault) throw new ApiError(merged.status, merged.message);
      return { channel: "wallet", pass_type: passType, style, pass_data: merged };
    },
  },
  toStored: ({ pass_type: passType, style, pass_data: passData }) =>
    done(walletTemplateBody({ passType, style, passData })),
  fromStored(slug, stored) {
    const { passType, style, passData } = parseWalletTemplate(stored);
    return { slug, channel: "wallet", pass_type: passType, style, pass_data: passData };
  },
};
