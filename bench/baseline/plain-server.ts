/** The upper bound: the same route, key check and body schema, without a queue behind them. Prints its address. */
import { Elysia, t } from "elysia";
import { sendBody } from "./send-body.ts";

const keys = new Set((process.argv[2] ?? "").split(","));

const app = new Elysia().post(
  "/v1/send/email",
  ({ headers, status }) => {
    if (!keys.has(headers["x-api-key"] ?? "")) return status(401, { error: "unknown key" });
    return status(202, { job_id: crypto.randomUUID(), status: "pending" });
  },
  { body: sendBody(t) },
);
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
console.log(server.url.href);
