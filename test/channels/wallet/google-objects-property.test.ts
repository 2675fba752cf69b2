import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Pass } from "../../../src/channels/wallet/passes.ts";
import type { GoogleOutcome } from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { eventually } from "../../support/eventually.ts";
import { aPass, changed, GoogleWorld, getObject, ISSUER, ready } from "./google-world.ts";

/** The outcome of a call of the wallet's API. */
const outcome = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constantFrom<GoogleOutcome>("throttled", "broken", "lost") },
);

/** A member that an update changes or removes. */
const member = fc.record({
  name: fc.constantFrom("header", "subheader", "textModulesData", "barcode", "hexBackgroundColor"),
  value: fc.option(fc.constantFrom("1", "2", "3")),
});

type Step =
  | {
      readonly kind: "update";
      readonly members: readonly { name: string; value: string | null }[];
      readonly notify: boolean;
    }
  | { readonly kind: "deliver" }
  | { readonly kind: "crash" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("update" as const),
    members: fc.array(member, { minLength: 1, maxLength: 3 }),
    notify: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("deliver" as const) }),
  fc.record({ kind: fc.constant("crash" as const) }),
);

/** A small model of the registry and the queue: a pass, its jobs in order, each delivered until it is settled. */
class Keeper {
  pass: Pass;
  readonly jobs: { readonly action: "create" | "update"; readonly message: string | null; readonly version: number }[];
  /** An update was accepted, and the memory of an insertion lost, before the creation had ended. */
  isDoubtful = false;
  failure: string | null = null;
  readonly messages: string[] = [];
  private readonly crashes: boolean[] = [];

  constructor(serial: string) {
    this.pass = aPass({ serial });
    this.jobs = [{ action: "create", message: null, version: 1 }];
  }

  accept(members: readonly { name: string; value: string | null }[], notify: boolean): void {
    const values = Object.fromEntries(
      members.map(({ name, value }) => [name, value === null ? null : buildValue(name, value)]),
    );
    this.pass = changed(this.pass, (object) => withoutNulls({ ...object, ...values }));
    const { version } = this.pass;
    const message = notify ? `message ${version}` : null;
    if (message !== null) this.messages.push(message);
    this.jobs.push({ action: "update", message, version });
    this.note();
  }

  crashed(): void {
    this.crashes.push(true);
    this.note();
  }

  async deliver(world: GoogleWorld): Promise<void> {
    const [job] = this.jobs;
    if (job === undefined || this.failure !== null) return;
    const { action, message, version } = job;
    const payload = {
      action,
      jobId: `job-${version}`,
      passId: this.pass.passId,
      version,
      ...(message === null ? {} : { notifyMessage: message }),
    };
    const outcome = await world.wallet.deliver(this.pass, payload, world.tenant, new AbortController().signal);
    this.settle(outcome, action);
  }

  private settle(outcome: Outcome, action: "create" | "update"): void {
    if (outcome.kind === "delivered") {
      if (action === "create") this.pass = ready(this.pass);
      this.jobs.shift();
    } else if (outcome.kind === "failed") this.failure = outcome.error;
  }

  private note(): void {
    if (this.pass.state === "creating" && this.pass.version > 1 && this.crashes.length > 0) this.isDoubtful = true;
  }
}

function buildValue(name: string, value: string): JsonObject[string] {
  if (name === "hexBackgroundColor") return `#00000${value}`;
  if (name === "barcode") return { type: "QR_CODE", value };
  if (name === "textModulesData") return [{ id: "a", header: "A", body: value }];
  return { defaultValue: { language: "en", value } };
}

/** `header` is required in every object of Google's. */
function withoutNulls(object: JsonObject): JsonObject {
  const entries = Object.entries(object).map(([name, value]) =>
    name === "header" && value === null ? ([name, buildValue("header", "0")] as const) : ([name, value] as const),
  );
  return Object.fromEntries(entries.filter(([, value]) => value !== null));
}

test("any sequence of creation, updates, lost answers and crashes leaves the object as the pass, each message shown once", async () => {
  const outcomes: (GoogleOutcome | null)[] = [];
  const world = await GoogleWorld.open({ outcomeFor: () => outcomes.shift() ?? null });
  let serials = 0;
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 12 }),
        fc.array(outcome, { maxLength: 20 }),
        async (steps, given) => {
          outcomes.splice(0, outcomes.length, ...given);
          serials += 1;
          const keeper = new Keeper(`${ISSUER}.pass-${serials}`);
          for (const each of steps) {
            if (each.kind === "update") keeper.accept(each.members, each.notify);
            if (each.kind === "deliver") await keeper.deliver(world);
            if (each.kind === "crash") {
              world.restart();
              keeper.crashed();
            }
          }
          for (let tries = 0; keeper.jobs.length > 0 && keeper.failure === null && tries < 60; tries++) {
            await keeper.deliver(world);
            // After three lost answers in a row the channel pauses its calls for a moment.
            if (!world.wallet.health().up) {
              await eventually("Google is asked again", async () => {
                await keeper.deliver(world);
                return world.wallet.health().up;
              });
            }
          }
          if (keeper.failure !== null) {
            // The object's owner is no longer known, and no object is changed on a guess.
            expect(keeper.isDoubtful).toBe(true);
            return;
          }
          expect(keeper.jobs).toEqual([]);
          expect(world.held(keeper.pass)).toEqual(getObject(keeper.pass));
          const bodies = world.messages(keeper.pass).map(([body]) => body);
          expect(new Set(bodies).size).toBe(bodies.length);
        },
      ),
      { numRuns: 150 },
    );
  } finally {
    await world.close();
  }
}, 300_000);
