import type { Usage } from "../../../clients/typescript/generated.ts";
import type { Column } from "./ui.tsx";
import { count } from "./words.ts";

/** Columns of tenants' billable usage. */
export type UsageSums = Omit<Usage, "tenant_id" | "tenant_name" | "month">;

const number = (head: string, of: (usage: UsageSums) => number): Column<UsageSums> => ({
  head,
  isNumber: true,
  cell: (usage) => count(of(usage)),
});

/** "Tokens" is the billed sum; movements by operators are on a tenant's page of tokens. */
export const USAGE_COLUMNS: readonly Column<UsageSums>[] = [
  number("API calls", ({ api_calls }) => api_calls),
  number("Accepted", ({ accepted }) => accepted),
  number("E-mail", ({ sent }) => sent.email),
  number("WhatsApp", ({ sent }) => sent.whatsapp),
  number("Wallet", ({ sent }) => sent.wallet),
  number("Delivered", ({ delivered }) => delivered),
  number("Bounced", ({ bounced }) => bounced),
  number("Failed", ({ failed }) => failed),
  number("Suppressed", ({ suppressed }) => suppressed),
  number("Tokens billed", ({ tokens_billed }) => tokens_billed),
  number("Charged", ({ tokens_charged }) => tokens_charged),
  number("Given back", ({ tokens_given_back }) => tokens_given_back),
  number("Operators", ({ tokens_topped_up, tokens_taken }) => tokens_topped_up - tokens_taken),
];

/** Adds up several records. */
export function usageSum(records: readonly UsageSums[]): UsageSums {
  const sum = (of: (usage: UsageSums) => number) => records.reduce((total, usage) => total + of(usage), 0);
  return {
    api_calls: sum(({ api_calls }) => api_calls),
    accepted: sum(({ accepted }) => accepted),
    sent: {
      email: sum(({ sent }) => sent.email),
      whatsapp: sum(({ sent }) => sent.whatsapp),
      wallet: sum(({ sent }) => sent.wallet),
    },
    delivered: sum(({ delivered }) => delivered),
    bounced: sum(({ bounced }) => bounced),
    failed: sum(({ failed }) => failed),
    suppressed: sum(({ suppressed }) => suppressed),
    tokens_charged: sum(({ tokens_charged }) => tokens_charged),
    tokens_given_back: sum(({ tokens_given_back }) => tokens_given_back),
    tokens_topped_up: sum(({ tokens_topped_up }) => tokens_topped_up),
    tokens_taken: sum(({ tokens_taken }) => tokens_taken),
    tokens_billed: sum(({ tokens_billed }) => tokens_billed),
  };
}
