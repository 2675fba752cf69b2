import { Type } from "@sinclair/typebox";
import type { ContentKind } from "../../http/content-kind.ts";
import { parsePayload } from "./payload.ts";
import { AnyObject } from "./raw.ts";
import { isList } from "./templates/params.ts";

const ParameterValue = Type.Union([Type.String(), AnyObject("An amount of money, or a time.")]);

const WhatsappJobContent = Type.Object(
  {
    channel: Type.Literal("whatsapp"),
    to: Type.String(),
    template: Type.Optional(Type.String({ description: "The provider's name of it. Absent: a message without one." })),
    language: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Array(ParameterValue, { description: "Values for the template's body, in order." })),
    named_parameters: Type.Optional(
      Type.Record(Type.String(), ParameterValue, { description: "Values for the template's body, by name." }),
    ),
    header: Type.Optional(AnyObject()),
    buttons: Type.Optional(Type.Array(AnyObject())),
    components: Type.Optional(
      Type.Array(AnyObject(), { description: "Further ones, such as a carousel, in the provider's form." }),
    ),
    message: Type.Optional(AnyObject("Another message without a template, in the provider's form.")),
    text: Type.Optional(Type.Object({ body: Type.String(), preview_url: Type.Boolean() })),
  },
  { $id: "WhatsappJobContent" },
);

export const whatsappContentKind: ContentKind = {
  channel: "whatsapp",
  schema: WhatsappJobContent,
  example: { channel: "whatsapp", to: "4915112345678", template: "order_shipped", language: "en", parameters: ["Ann"] },
  async show(_tenant, text) {
    const payload = parsePayload(text);
    if (payload === null) return null;
    const [channel, { to }] = ["whatsapp", payload];
    if ("message" in payload) return { channel, to, message: payload.message };
    if ("text" in payload) return { channel, to, text: { ...payload.text } };
    const { template, language, params, header, buttons, components } = payload;
    const values = isList(params) ? { parameters: params } : { named_parameters: { ...params } };
    return {
      channel,
      to,
      template,
      language,
      ...values,
      ...(header && { header: { ...header } }),
      ...(buttons && { buttons: buttons.map((button) => ({ ...button })) }),
      ...(components && { components }),
    };
  },
};
