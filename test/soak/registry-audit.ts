import { join } from "node:path";
import { and, eq, ne, sql } from "drizzle-orm";
import { passes } from "../../src/channels/wallet/tables.ts";
import { connectPostgres } from "../../src/storage/postgres/connect-postgres.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { tenants as tenantsTable, tokenMovements } from "../../src/storage/tables.ts";
import type { Verdict } from "./judge.ts";
import type { SoakWorld } from "./soak-world.ts";
import { TOKENS } from "./tenants.ts";

/** Tokens and passes in the registry of a stopped program: a token for each pass that exists, and for no other. */
export async function auditTokens({ stores, tenants, book }: SoakWorld): Promise<Verdict> {
  const { db, close } =
    stores.servers === null
      ? await openPglite(join(stores.home, "postgres"))
      : await connectPostgres(stores.servers.postgres.url);
  const broken: string[] = [];
  let existing = 0;
  try {
    for (const { id } of tenants.withTokens) {
      const [tenant] = await db
        .select({ tokens: tenantsTable.tokens })
        .from(tenantsTable)
        .where(eq(tenantsTable.id, id));
      const own = await db.$count(passes, and(eq(passes.tenantId, id), ne(passes.state, "failed")));
      existing += own;
      if (tenant?.tokens !== TOKENS - own)
        broken.push(`${id} has ${tenant?.tokens} tokens of ${TOKENS}, and ${own} passes`);
      const [moved] = await db
        .select({ sum: sql<number>`coalesce(sum(${tokenMovements.amount}), 0)::int` })
        .from(tokenMovements)
        .where(eq(tokenMovements.tenantId, id));
      if (TOKENS + (moved?.sum ?? 0) !== tenant?.tokens) broken.push(`${id}: movements make ${moved?.sum}`);
    }
    const rows = await db.select({ jobId: passes.jobId, state: passes.state }).from(passes);
    const known = new Map(rows.map(({ jobId, state }) => [jobId, state]));
    const ofPasses = book.messages.filter(({ channel, hasPass }) => channel === "wallet" || hasPass);
    for (const { aim, fate, jobId, seq } of ofPasses) {
      if (aim !== "sent" || fate !== "accepted") continue;
      // Its events show whether it may have failed.
      if (!["ready", "failed"].includes(known.get(jobId ?? "") ?? ""))
        broken.push(`message ${seq}: its pass is ${known.get(jobId ?? "") ?? "not there"}`);
    }
    const begun = rows.filter(({ state }) => state === "creating").length;
    const open = ofPasses.filter(({ fate }) => fate !== "accepted").length;
    if (begun > open) broken.push(`${begun} passes are begun and ${open} requests had no answer`);
  } finally {
    await close();
  }
  return { promise: "a token for each pass that exists", checked: existing, broken, note: "" };
}
