import { Type } from "@sinclair/typebox";
import type { ContentKind } from "../../http/content-kind.ts";
import { enumSchema } from "../../http/schemas.ts";
import type { PassStore } from "./passes.ts";
import { parsePayload } from "./payload.ts";

const WalletJobContent = Type.Object(
  {
    channel: Type.Literal("wallet"),
    action: enumSchema(["create", "update"] as const),
    pass_id: Type.String(),
    version: Type.Integer({ description: "The version of the pass when the job was accepted." }),
    pass: Type.Object({}, { additionalProperties: true, description: "The pass's data, as they are now." }),
  },
  { $id: "WalletJobContent" },
);

/** Describes a job's effect on a pass. */
export function walletContentKind(passes: Pick<PassStore, "find">): ContentKind {
  return {
    channel: "wallet",
    schema: WalletJobContent,
    example: {
      channel: "wallet",
      action: "create",
      pass_id: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d12",
      version: 1,
      pass: { type: "apple", serial_number: "A-1" },
    },
    async show(tenant, text) {
      const payload = parsePayload(text);
      const pass = payload === null ? null : await passes.find(tenant.tenantId, payload.passId);
      if (payload === null || pass === null) return null;
      const { action, passId: pass_id, version } = payload;
      return { channel: "wallet", action, pass_id, version, pass: pass.content };
    },
  };
}
