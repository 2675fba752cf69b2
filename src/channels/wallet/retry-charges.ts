import { carriesPass } from "../../domain/carried-pass.ts";
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

const NOT_GIVEN_BACK = "the token of its pass is not given back yet, which takes some minutes: try again then";

/** The token of the pass that a message carries. A message without one costs none. */
export function carriedPassCharges(passes: Pick<PassStore, "redoCreate" | "undoCreate">): RetryCharges {
  return {
    async take(tenantId, { jobId }, payload) {
      // A payload that is stored elsewhere is "".
      if (payload !== "" && !carriesPass(payload)) return null;
      const done = await passes.redoCreate(tenantId, jobId);
      if (done === "not_failed") return payload === "" ? null : NOT_GIVEN_BACK;
      return done === "done" ? null : WHY_NOT[done];
    },
    giveBack: (tenantId, { jobId }) => passes.undoCreate(tenantId, jobId),
  };
}
