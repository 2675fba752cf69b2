import { assert } from "../../src/domain/errors.ts";
import { aTenant } from "../support/tenants.ts";
import { Story } from "./story.ts";

const WAIT_MS_MAX = 2_000;

/** So many tenants have more messages than their relay takes at one time, and each takes long; two others send now and then. */
function tellOfSlow(count: number, takesMs: number): void {
  const names = Array.from({ length: count }, (_, i) => `slow-${i}`);
  const tenants = [...names, "quick", "middle"].map((tenantId) => aTenant({ tenantId }));
  const story = new Story({ tenants, slots: 48, relayConnections: 48 });
  story.world.provider.delayMs = ({ tenant: { tenantId } }) =>
    tenantId === "quick" ? 11 : tenantId === "middle" ? 1_000 : takesMs;
  for (const name of names) story.acceptMany(5, name);
  story.advance(3_000);
  for (let i = 0; i < 8; i += 1) {
    for (const name of ["quick", "middle"]) {
      const waitedMs = story.measureWait(story.accept(name, `reader${i}@example.com`));
      assert(waitedMs < WAIT_MS_MAX, `${name} waits for ${waitedMs} ms`);
    }
    story.advance(1_000);
  }
  const burst = story.acceptMany(100, "quick");
  const areHandedOver = () => burst.every((jobId) => story.outcomeFor(jobId).handOvers > 0);
  story.until("they are handed over", areHandedOver, WAIT_MS_MAX);
  story.world.provider.delayMs = () => 11;
  story.end();
}

/** Tenants that share a relay. Each throws if it does not go as its name says. */
export const SLOT_STORIES = {
  "a tenant waits less than two seconds beside 60 others whose messages take ten": () => tellOfSlow(60, 10_000),
  "a tenant waits less than two seconds beside 300 others whose messages take ten": () => tellOfSlow(300, 10_000),
  "a tenant waits less than two seconds beside 60 others whose messages take 55": () => tellOfSlow(60, 55_000),
  "a tenant with queued messages gets its part of the slot time, whatever others queue and however long that takes":
    () => {
      // More than there are slots: what they have used decides between those that hold none.
      const kinds = Array.from({ length: 5 }, (_, i) => [
        { tenantId: `few-${i}`, takesMs: 200, messages: 80 },
        { tenantId: `many-${i}`, takesMs: 200, messages: 160 },
        { tenantId: `longer-${i}`, takesMs: 800, messages: 30 },
      ]).flat();
      const tenants = kinds.map(({ tenantId }) => aTenant({ tenantId }));
      const story = new Story({ tenants, slots: 8, relayConnections: 8 });
      const takes = new Map(kinds.map(({ tenantId, takesMs }) => [tenantId, takesMs]));
      story.world.provider.delayMs = ({ tenant: { tenantId } }) => takes.get(tenantId) ?? null;
      const sent = kinds.map(({ tenantId, messages }) => story.acceptMany(messages, tenantId));
      story.advance(20_000);
      const usedMs = kinds.map(({ takesMs }, i) => {
        const handedOver = sent[i]?.filter((jobId) => story.outcomeFor(jobId).handOvers > 0) ?? [];
        return handedOver.length * takesMs;
      });
      const partMs = usedMs.reduce((one, other) => one + other) / usedMs.length;
      const leastMs = Math.min(...usedMs);
      assert(leastMs > 0.8 * partMs, `one has had ${leastMs} ms of slot time, where ${partMs} are its part`);
      story.world.provider.delayMs = () => 11;
      story.end();
    },
} as const;
