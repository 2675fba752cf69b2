import { join } from "node:path";
import { type CallMessage, MessageCalls } from "../../src/processes/message-calls.ts";
import { openMadePglite } from "../support/made-home.ts";

/** Opens PGlite in the folder of the argument, and serves it to the parent. */
const [folder = ""] = process.argv.slice(2);
const calls = new MessageCalls((message) => void process.send?.(message));
(await openMadePglite(join(folder, "postgres"))).serveTo(calls);
process.on("message", (message) => calls.take(message as CallMessage));
process.on("disconnect", () => process.exit(0));
process.send?.("open");
