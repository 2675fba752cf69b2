import { Type } from "@sinclair/typebox";
import type { ContentKind } from "../../http/content-kind.ts";
import { parsePayload } from "./payload.ts";

const WhatsappJobContent = Type.Object(
  {
    channel: Type.Literal("whatsapp"),
    to: Type.String(),
    template: Type.String({ description: "The provider's name of it." }),
    language: Type.String(),
    parameters: Type.Array(Type.String(), { description: "Of the template's body, in order." }),
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
    const { to, template, language, params: parameters } = payload;
    return { channel: "whatsapp", to, template, language, parameters };
  },
};
