import type { StoredEventRow } from "../src/domain/jobs/event-store.ts";
import { type DemoScene, demoHistory, EVENING, OFFICE } from "../src/events/demo-history.ts";

const SCENE: DemoScene = {
  tenants: [
    { id: "acme", name: "Acme", share: 0.65, weekend: 1, hours: OFFICE, email: 72, whatsapp: 24 },
    { id: "globex", name: "Globex", share: 0.29, weekend: 0.6, hours: EVENING, email: 70, whatsapp: 30 },
    { id: "initech", name: "Initech", share: 0.06, weekend: 0, hours: OFFICE, email: 100, whatsapp: 0 },
  ],
  outage: { daysBefore: 5, tenant: "globex", fromHour: 14, toHour: 16 },
  badList: { daysBefore: 4, tenant: "acme" },
  refusal: { daysBefore: 3, tenant: "globex", domain: "example.net", fromHour: 14 },
};

/** Three tenants' messages of the first week of November 2026, the same in every run. */
export function analystsData(): readonly StoredEventRow[] {
  return demoHistory({ seed: 2026, untilMs: Date.UTC(2026, 10, 9), days: 7, perDay: 90 }, SCENE);
}
