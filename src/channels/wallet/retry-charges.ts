import type { RetryCharges } from "../../domain/retry.ts";
import type { PassStore } from "./passes.ts";
import { parsePayload } from "./payload.ts";

const WHY_NOT = {
  no_tokens: "no token is left: a wallet pass costs 1, also when its job is tried again",
  serial_used: "another pass has the serial by now",
  not_failed: "its pass has not failed",
} as const;

/** A pass's token, which its job's failure gave back. An update costs nothing. */
export function walletCharges(passes: Pick<PassStore, "redoCreate" | "undoCreate">): RetryCharges {
  return {
    async take(tenantId, { jobId }, payload) {
      if (parsePayload(payload)?.action === "update") return null;
      const done = await passes.redoCreate(tenantId, jobId);
      return done === "done" ? null : WHY_NOT[done];
    },
    giveBack: (tenantId, { jobId }) => passes.undoCreate(tenantId, jobId),
  };
}
