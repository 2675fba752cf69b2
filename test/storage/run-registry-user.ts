import { sql } from "drizzle-orm";
import { type CallMessage, MessageCalls } from "../../src/processes/message-calls.ts";
import { openRemotePglite } from "../../src/storage/postgres/remote-pglite.ts";

/**
 * Uses the parent's PostgreSQL by command: `hold` stays in a transaction, `add` increments a hundred times in several.
 */
const calls = new MessageCalls((message) => void process.send?.(message));
process.on("message", (message) => calls.take(message as CallMessage));
process.on("disconnect", () => process.exit(0));
const { db } = openRemotePglite(calls);

if (process.argv[2] === "hold") {
  await db.transaction(async (transaction) => {
    await transaction.execute(sql`update counters set n = n + 1000`);
    process.send?.("holds");
    await new Promise(() => {});
  });
} else {
  const addOne = () =>
    db.transaction(async (transaction) => {
      const [row] = await transaction.select({ n: sql<number>`n` }).from(sql`counters`);
      await transaction.execute(sql`update counters set n = ${(row?.n ?? 0) + 1}`);
    });
  await Promise.all(Array.from({ length: 100 }, addOne));
  process.send?.("added");
}
