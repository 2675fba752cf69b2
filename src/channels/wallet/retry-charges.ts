import { carriesPass } from "../../domain/channels/carried-pass.ts";
import type { RetryCharge, RetryCharges } from "../../domain/jobs/retry.ts";
import type { PassStore } from "./passes.ts";
import { parsePayload } from "./payload.ts";

const FREE = { kind: "free" } as const;
const TAKEN = { kind: "taken" } as const;
const NOT_FAILED = refused("its pass has not failed");
const NOT_KEPT = refused("its pass is not kept any more");
const NOT_GIVEN_BACK = refused("the token of its pass is not given back yet, which takes some minutes: try again then");
const WHY_NOT = {
  no_tokens: refused("no token is left: a wallet pass costs 1, also when its job is tried again"),
  failed_often: refused("as many of the tenant's passes failed today as may: try again tomorrow (UTC)"),
  serial_used: refused("another pass has the serial by now"),
} as const;

/** Charges a pass's token again, which its job's failure refunded. An update is free. */
export function walletCharges(passes: Pick<PassStore, "redoCreate" | "undoCreate" | "discard">): RetryCharges {
  return {
    async take(tenantId, { jobId }, payload) {
      if (parsePayload(payload)?.action === "update") return FREE;
      const done = await passes.redoCreate(tenantId, jobId);
      if (done === "none") return NOT_KEPT;
      if (done === "not_failed") return NOT_FAILED;
      return done === "done" ? TAKEN : WHY_NOT[done];
    },
    giveBack: (tenantId, { jobId }) => passes.undoCreate(tenantId, jobId),
    discard: (tenantId, { jobId }) => passes.discard(tenantId, jobId),
  };
}

/** Charges the token of the pass that a message carries. A message without one is free. */
export function carriedPassCharges(passes: Pick<PassStore, "redoCreate" | "undoCreate" | "discard">): RetryCharges {
  return {
    async take(tenantId, { jobId }, payload) {
      // A payload that is stored elsewhere is "", so whether it carries a pass is unknown.
      if (payload !== "" && !carriesPass(payload)) return FREE;
      const done = await passes.redoCreate(tenantId, jobId);
      if (done === "none") return payload === "" ? FREE : NOT_KEPT;
      // The token is not refunded yet, or belongs to another retry, whose job must keep it.
      if (done === "not_failed") return NOT_GIVEN_BACK;
      return done === "done" ? TAKEN : WHY_NOT[done];
    },
    giveBack: (tenantId, { jobId }) => passes.undoCreate(tenantId, jobId),
    discard: (tenantId, { jobId }) => passes.discard(tenantId, jobId),
  };
}

function refused(why: string): RetryCharge {
  return { kind: "refused", why };
}
