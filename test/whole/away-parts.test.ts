import { expect, test } from "bun:test";
import { AwayParts } from "../../src/http/away-parts.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

const open = { state: "open", why: "it refused the connection: 421 no", waitingJobs: 1 } as const;
const clock = { ...systemClock, nowMs: () => 1_000_000 };

test("the platform's relays are named with their words, tenants' relays are counted, and relays that are up are left out", () => {
  const away = new AwayParts(clock);
  away.addPart("spam filter", () => ({ up: false, sinceMs: 900_000 }));
  away.addPart("mail log", () => ({ up: true, sinceMs: 800_000 }));
  away.addRelays({
    away: () => [
      { channel: "email", relay: "smtp.example.com:25", isOwn: false, forMs: 5_000, ...open },
      { channel: "email", relay: "mail.tenant.example:587", isOwn: true, forMs: 9_000, ...open },
      { channel: "email", relay: "mx.other.example:25", isOwn: true, forMs: 2_000, ...open },
    ],
  });
  expect(away.list()).toEqual([
    { part: "spam filter", sinceMs: 900_000 },
    { part: "relay smtp.example.com:25", sinceMs: 995_000, why: "it refused the connection: 421 no" },
    { part: "relays of tenants' own: 2", sinceMs: 991_000 },
  ]);
});
