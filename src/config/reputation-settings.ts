import { GOVERNOR_MODES, type Thresholds } from "../domain/tenants/reputation.ts";
import type { Setting } from "./setting.ts";
import { list, parseChoice } from "./values.ts";

const percents = {
  expected: "three percentages that rise, like 4,6,10",
  parse(text: string): Thresholds | undefined {
    const shares = list(text, (item) => (/^\d{1,3}(\.\d{1,4})?$/.test(item) ? Number(item) / 100 : undefined));
    const [warned = 0, slowed = 0, held = 0] = shares ?? [];
    const isRising = 0 < warned && warned < slowed && slowed < held && held <= 1;
    return shares?.length === 3 && isRising ? { warned, slowed, held } : undefined;
  },
};

export const REPUTATION_SETTINGS = {
  reputationGovernor: {
    name: "REPUTATION_GOVERNOR",
    default: "warn",
    meaning:
      "what follows from a tenant's bounces and complaints: `on` warns, then slows its e-mail, then refuses its sends; `warn` only " +
      "warns; `off` is nothing (docs/reputation.md)",
    expected: `one of ${GOVERNOR_MODES.join(", ")}`,
    parse: (text) => parseChoice(text, GOVERNOR_MODES),
  },
  reputationBounces: {
    name: "REPUTATION_BOUNCES",
    default: "4,6,10",
    meaning:
      "percentages of bounced e-mail in 24 hours above which a tenant is warned, slowed and held; from 200 e-mails on",
    ...percents,
  },
  reputationComplaints: {
    name: "REPUTATION_COMPLAINTS",
    default: "0.1,0.2,0.5",
    meaning: "the same of e-mail that was reported as spam; from 1,000 e-mails on",
    ...percents,
  },
} satisfies Record<string, Setting<unknown>>;
