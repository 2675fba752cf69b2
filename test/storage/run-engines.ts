import { join } from "node:path";
import { type CallMessage, MessageCalls } from "../../src/processes/message-calls.ts";
import { openChdb } from "../../src/storage/chdb.ts";
import { openMadePglite } from "../support/made-home.ts";

/** Opens the engine that the second argument names in the folder of the first, and serves it to the parent. */
const [folder = "", engine = ""] = process.argv.slice(2);
const calls = new MessageCalls((message) => void process.send?.(message));
if (engine === "postgres") (await openMadePglite(join(folder, "postgres"))).serveTo(calls);
else openChdb(join(folder, "clickhouse")).serveTo(calls);
process.on("message", (message) => calls.take(message as CallMessage));
process.on("disconnect", () => process.exit(0));
process.send?.("open");
